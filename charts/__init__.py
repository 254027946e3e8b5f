"""Charts as Vega-Lite specifications, drawn from table rows.

Altair takes a second and 40 MB to import, so only the modules that draw import it.
"""
