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
    """`pk__among=ids`: `in` with one parameter, however many ids or places there are.

    `in` writes a placeholder for each: where hundreds come at once, making the SQL took longer
    than answering it, and it was another statement each time.
    """

    lookup_name = "among"

    def get_prep_lookup(self) -> list[int]:
        return [int(one) for one in self.rhs]

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        column, given = self.process_lhs(compiler, connection)
        ids = self.rhs
        if connection.vendor == "postgresql":
            return f"{column} = ANY(%s)", (*given, ids)
        return f"{column} IN (SELECT value FROM json_each(%s))", (*given, json.dumps(ids))


def register() -> None:
    """Let keys of rows, keys of others' rows, and places be looked up so."""
    keys = (models.AutoField, models.BigAutoField, models.ForeignKey, models.OneToOneField)
    for field in (*keys, models.PositiveIntegerField):
        field.register_lookup(Among)
