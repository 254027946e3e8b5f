"""The result pages: each answers one question, with a table, a chart and links to the items.

A page is a module of this package with its `VIEWS`, and has one entry in `registry.PAGES`.
Requesting, filtering, sorting, drawing, downloading and saving work in the same way for all pages.
"""
