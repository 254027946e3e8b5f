"""Lookups that the databases answer better than the ones that Django has."""

import json
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models.lookups import Lookup

if TYPE_CHECKING:
    Base = Lookup[Any]
else:
    Base = Lookup


class Among(Base):
    """`pk__among=ids`: `in` with one parameter, however many ids, places or keys there are.

    `in` writes a placeholder for each: where hundreds come at once, making the SQL took longer
    than answering it, and it was another statement each time.
    """

    lookup_name = "among"

    def get_prep_lookup(self) -> list[int | str]:
        kind = str if isinstance(self.lhs.output_field, models.CharField) else int
        return [kind(one) for one in self.rhs]

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        column, given = self.process_lhs(compiler, connection)
        ids = self.rhs
        if connection.vendor == "postgresql":
            return f"{column} = ANY(%s)", (*given, ids)
        return f"{column} IN (SELECT value FROM json_each(%s))", (*given, json.dumps(ids))


def register_lookups() -> None:
    """Let ids of rows, ids of others' rows, places, and keys be looked up so."""
    ids = (models.AutoField, models.BigAutoField, models.ForeignKey, models.OneToOneField)
    for field in (*ids, models.PositiveIntegerField, models.CharField):
        field.register_lookup(Among)
