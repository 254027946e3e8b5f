"""Charts as Vega-Lite specifications, drawn from rows that tables have.

Altair takes a second and 40 MB, so that it is loaded by the modules that draw and by nothing else.
"""
