"""Replies that were made elsewhere: what files tell of them, and how they are kept."""
