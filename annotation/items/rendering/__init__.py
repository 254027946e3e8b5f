"""Reading an item: its texts drawn safely, what changed in them, and what kind of change it is."""
