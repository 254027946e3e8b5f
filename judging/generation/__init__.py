"""Turns the replies of generator runs into items, or into missing texts of items."""
