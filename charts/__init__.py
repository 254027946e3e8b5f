"""Charts as Vega-Lite specifications, drawn from rows that tables have.

Only tests check a specification against the schema: to check the values of every mark again for
every reader takes as long as all the rest of a page.
"""

from altair.utils import schemapi

schemapi.disable_debug_mode()
