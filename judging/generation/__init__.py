"""What generator runs made comes in as items, or as texts that items lacked."""
