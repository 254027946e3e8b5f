"""What leaves for a paper: methods in words, and archives that give the same figures elsewhere."""
