"""A table as a page shows it: columns, blocks of lines, cells, and how it is sorted."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from annotation.templatetags.figures import DASH

SortKey = float | str


@dataclass(frozen=True)
class Column:
    """A column; `name` is what it is sorted by, without one it is not."""

    title: str
    name: str = ""
    note: str = ""
    is_number: bool = True
    href: str = ""


@dataclass(frozen=True)
class Cell:
    """What stands in one place of a table.

    `text` is the figure as people read it, a dash where there is none, for which `reason` then
    says why; with an interval missing it says why that is. `n` are the items that the figure rests
    on, None where it is a count itself; `missing` are those that it leaves out. `place` is what
    the line is sorted by. `heat` 0 to 4 is how bad it is. `note` is for what else must be said.
    """

    text: str = DASH
    place: SortKey | None = None
    href: str = ""
    n: int | None = None
    missing: int = 0
    missing_href: str = ""
    interval: str = ""
    reason: str = ""
    heat: int | None = None
    note: str = ""
    is_number: bool = True

    @property
    def is_there(self) -> bool:
        return self.text != DASH


@dataclass(frozen=True)
class GridLine:
    """A row: its first cell is its head. `kind`: "group" for the whole of a block, which stays on
    top of it, "published" for figures that are not ours, or ""."""

    cells: tuple[Cell, ...]
    kind: str = ""


@dataclass(frozen=True)
class LineBlock:
    """Lines that are sorted among themselves; `kind` as in "invariant"."""

    lines: tuple[GridLine, ...]
    kind: str = ""


@dataclass(frozen=True)
class Grid:
    """A table with its title, for those who do not see it; blocks without lines are not shown."""

    title: str
    columns: tuple[Column, ...]
    blocks: tuple[LineBlock, ...]

    @property
    def is_empty(self) -> bool:
        return not any(block.lines for block in self.blocks)

    @property
    def has_intervals(self) -> bool:
        return any(
            cell.interval for block in self.blocks for line in block.lines for cell in line.cells
        )

    def sorted(self, sort: str) -> "Grid":
        """By a column's name, downwards with a "-" before it; as it is by any other."""
        names = [column.name for column in self.columns]
        name = sort.removeprefix("-")
        if not name or name not in names:
            return self
        at = names.index(name)
        blocks = tuple(_sorted(block, at, downwards=sort.startswith("-")) for block in self.blocks)
        return replace(self, blocks=blocks)


def build_grid(title: str, columns: Sequence[Column], lines: Sequence[GridLine]) -> Grid:
    """A table of one block."""
    return Grid(title, tuple(columns), (LineBlock(tuple(lines)),))


def _sorted(block: LineBlock, at: int, *, downwards: bool) -> LineBlock:
    heads = [line for line in block.lines if line.kind == "group"]
    rest = [line for line in block.lines if line.kind != "group"]
    there = [line for line in rest if line.cells[at].place is not None]
    none = [line for line in rest if line.cells[at].place is None]

    def place(line: GridLine) -> Any:
        return line.cells[at].place

    return replace(block, lines=(*heads, *sorted(there, key=place, reverse=downwards), *none))
