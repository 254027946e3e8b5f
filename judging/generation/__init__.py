"""Turn the replies of generator runs into new items, or into the missing texts of existing
items."""
