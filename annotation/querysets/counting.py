"""Counts by a key."""

from typing import Any

from django.db import models
from django.db.models import Count


def counts(rows: models.QuerySet[Any], field: str) -> dict[Any, int]:
    return dict(rows.order_by().values_list(field).annotate(Count("pk")))
