"""Whether the figures of a thawed archive come out as they were frozen."""

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from formats import sealed
from formats.rows import FormatError
from formats.sealed import Opener
from formats.writers import write_table
from judging.models import Run
from judging.paper import freezing, thawing
from judging.paper.thawing import Thawed
from judging.results import figures, tables


@dataclass(frozen=True)
class Compared:
    """A table, and whether it is now what the archive has."""

    table: str
    same: bool
    said: str


def compare(archive: Path, thawed: Thawed) -> Iterator[Compared]:
    """Make each table of the archive anew, and compare it with what is in it."""
    runs = list(Run.objects.in_project(thawed.project).for_results().numbered(thawed.facts["runs"]))
    with sealed.opened(archive, thawing.LIMITS) as (facts, members):
        for name in facts["tables"]:
            path = f"figures/{name}.json"
            if name not in tables.RESULTS or path not in members:
                raise FormatError(f"{archive}: {name!r} is no table of this program.")
            yield _compared(name, _now(name, thawed, runs), _then(members[path]))


def _now(name: str, thawed: Thawed, runs: list[Run]) -> Any:
    stream = io.StringIO()
    columns = tables.columns(name, figures.fields(figures.BY))
    write_table(name, freezing.rows(name, thawed.project, runs), columns, stream)
    return json.loads(stream.getvalue())


def _then(opener: Opener) -> Any:
    with opener() as stream:
        return json.load(stream)


def _compared(name: str, now: Any, then: Any) -> Compared:
    if now == then:
        return Compared(name, True, f"the same, {len(now['rows']):,} rows")
    differ = sum(one != other for one, other in zip(now["rows"], then["rows"], strict=False))
    return Compared(
        name,
        False,
        f"differs in {differ:,} of {len(then['rows']):,} rows, and has {len(now['rows']):,} now",
    )
