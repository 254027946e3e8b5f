"""The page on waits and costs by size, with the figures that `benchmarks.growth` stored."""

import csv
from collections.abc import Iterator

from django.conf import settings

from operation.docs.reference import markdown

_MEASURED = "docs/growth.csv"
_HEADINGS = {"items": "items", "outcomes": "outcomes"}
_CHARTS = {
    "items": "Median waits at the label screen and for a search, by the number of items",
    "outcomes": "Median waits for pages of results, by the number of outcomes",
}


def write_page() -> str:
    """The page as Markdown."""
    return markdown.page(
        "How waits and costs grow",
        "How long people wait, and what evaluators cost, in projects of different sizes. "
        "The waits are medians on PostgreSQL, with server, worker and client on one machine with "
        "two cores; `python -m benchmarks.growth` measures them on yours.",
        "## Items",
        "The queue finds the next item by an index, so a label hardly takes longer in a large "
        "project than in a small one. Eight annotators label at once here, each as fast as the "
        "server answers; people who read wait less. A search looks words up in an index.",
        *_measured("items"),
        "## Outcomes",
        "A run over 10,000 items has 10,000 outcomes. Figures are computed by a worker when they "
        "are first asked for or when their data have changed, and then kept. Until then a page "
        "shows the progress and the figures from before.",
        *_measured("outcomes"),
        "## Calls and money",
        "Calls cost money in proportion to their number: *items* × *calls per item* (two for "
        "scores of both answers, two for pairs in both orders) × *samples* × *price of a call*. "
        "*New run* shows the sum before anything is sent. Each distinct request is paid for once: "
        "a second run that would send the same one uses the stored reply.",
        "Time is the number of calls, divided by the calls in flight, times the seconds of a call. "
        "64 calls in flight of 2 seconds each are 32 calls a second: 10,000 calls take 5 minutes, "
        "a million 9 hours, ten million 4 days. A call costs a worker less than a "
        "millisecond of computing, so the evaluator's own limits decide.",
    )


def _measured(chart: str) -> Iterator[str]:
    rows = [row for row in _load_rows() if row["chart"] == chart]
    sizes = list(dict.fromkeys(row["size"] for row in rows))
    found = {(row["what"], row["size"]): float(row["milliseconds"]) for row in rows}
    yield f"![{_CHARTS[chart]}](pictures/growth-{chart}.svg)"
    yield markdown.table(
        (f"median wait by {_HEADINGS[chart]}", *(f"{int(size):,}" for size in sizes)),
        (
            (what, *(_write(found.get((what, size))) for size in sizes))
            for what in dict.fromkeys(row["what"] for row in rows)
        ),
    )


def _load_rows() -> list[dict[str, str]]:
    with (settings.BASE_DIR / _MEASURED).open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def _write(milliseconds: float | None) -> str:
    if milliseconds is None:
        return ""
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:.1f} s"
    return f"{milliseconds:.0f} ms" if milliseconds >= 1 else "under 1 ms"
