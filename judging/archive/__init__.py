"""For publication: the methods paragraph, and archives that reproduce the figures elsewhere."""
