"""What a run wants of each item: calls to the byte, chains, and the outcomes of both."""
