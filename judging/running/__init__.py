"""What becomes of a run: foreseen, started, steered, asked or read again, and paid."""
