"""Perturbers that need no model: they turn a gold answer into an answer with an exactly known
error.

A perturber takes a text and yields possible changes, each with a claim that says what it does
(study 000, sections 3.2 and 3.3). All random choices depend on a seed and are the same on every
machine.
"""
