"""Perturbers that need no model: from a gold answer to one with an error that is known exactly.

A text goes in, changes come out, each with the claim that says what it does (study 000, sections
3.2 and 3.3). Everything drawn at random is drawn by a seed, the same on every machine.
"""
