"""Readers and writers: files to streams of rows and back. Knows no Django."""
