"""What the file of a strategy may say, and the prompts that are made by it; pure."""
