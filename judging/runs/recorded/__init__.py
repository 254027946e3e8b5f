"""Recorded replies: import of replies that were made outside this program."""
