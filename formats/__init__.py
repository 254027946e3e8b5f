"""Readers and writers: files to streams of rows and back. No Django here."""
