"""Snapshots, which are named versions of a project: creating them and comparing two."""
