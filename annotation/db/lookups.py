"""Lookups that are faster than Django's own."""

import json
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models.lookups import Lookup

if TYPE_CHECKING:
    Base = Lookup[Any]
else:
    Base = Lookup


class Among(Base):
    """`pk__among=ids`: `in` with one parameter, however many ids, positions or keys there are.

    `in` writes a placeholder for each value: with hundreds of them, building the SQL took longer
    than running it, and each number of values was another statement.
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
    """Register `among` for primary keys, foreign keys, positive integers and text columns."""
    ids = (models.AutoField, models.BigAutoField, models.ForeignKey, models.OneToOneField)
    for field in (*ids, models.PositiveIntegerField, models.CharField):
        field.register_lookup(Among)
