"""Readers and writers: they turn files into streams of rows, and rows into files. No Django is used
here."""
