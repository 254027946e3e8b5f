"""Renders an item for readers: its texts as safe HTML, their changes, and the kind of each
change."""
