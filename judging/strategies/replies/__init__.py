"""Parse replies into values, and decide the outcome of an item from them; pure."""
