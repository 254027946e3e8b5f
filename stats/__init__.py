"""Statistics as pure functions: numbers in, small frozen results out. No Django here."""
