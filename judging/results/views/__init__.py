"""The result pages: each is one question, with a table, a chart and links to the items behind.

A page is a module here with its `VIEWS` and one entry in `registry.PAGES`; how it is asked for,
narrowed down, sorted, drawn, downloaded and saved is the same for all.
"""
