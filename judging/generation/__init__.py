"""Turns the replies of generator runs into items, or into texts that items lacked."""
