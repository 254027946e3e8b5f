"""Import of recorded replies, which evaluators or people gave outside this program."""
