"""Versions of a project under a name: freezing them, and what changed between two."""
