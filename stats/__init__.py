"""Figures as pure functions: numbers in, small frozen results out. Knows no Django."""
