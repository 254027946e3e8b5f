"""The queue's hot path in SQL: whose turn it is, which slot is next, and all that an offer shows.

Building these queries by hand on each call costs more than the database needs to answer them, so
they stand here as text. Conditions of partial indexes are literal: a plan made for a placeholder
would not use them. Both databases read the same statements; SQLite has no row locks and needs
none, since its write transactions come one after the other (`writing.transact`).
"""
