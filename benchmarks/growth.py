"""How waits grow with the size of a project: measures what docs/growth.md shows, draws its charts.

    python -m benchmarks.growth [--items 1000 10000 100000 1000000]
        [--outcomes 10000 100000 1000000 10000000]

Runs `benchmarks.labelling`, `benchmarks.searching` and `benchmarks.figures` on PostgreSQL, one size
after the other, and stores the medians in docs/growth.csv, so that `manage.py write_docs` can write
the page, and draws the charts. `--items` or `--outcomes` without a number measures none and keeps
what is stored. On two cores, with nothing else running, the default sizes take about an hour.
"""

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import altair as alt

from benchmarks.workbench import reporting
from charts import files, marks

Row = tuple[str, str, int, float]

ROOT = Path(__file__).resolve().parents[1]
MEASURED = ROOT / "docs" / "growth.csv"
ITEMS = (1_000, 10_000, 100_000, 1_000_000)
OUTCOMES = (10_000, 100_000, 1_000_000, 10_000_000)
# What is shown of a project with many outcomes, by the names in `benchmarks.figures`.
RESULTS = {
    "page overview abilities": "Overview",
    "page by-category rates": "By category",
    "page blind-spots slices": "Blind spots",
    "page runs/": "List of runs",
}
# `benchmarks.searching` stores items in turns of 2,000, with and without the index.
LEAST_SEARCHED = 10_000
COLUMNS = ("chart", "what", "size", "milliseconds")
CHARTS = {"items": "Items in the project", "outcomes": "Outcomes of all runs together"}


def main() -> None:
    """Measure, store and draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", nargs="*", type=int, default=ITEMS)
    parser.add_argument("--outcomes", nargs="*", type=int, default=OUTCOMES)
    options = parser.parse_args()
    _store("items", [*_of_items(options.items)])
    _store("outcomes", [*_of_outcomes(options.outcomes)])
    stored = _load()
    for chart, title in CHARTS.items():
        spec = _chart([row for row in stored if row["chart"] == chart], title)
        picture = ROOT / "docs" / "pictures" / f"growth-{chart}.svg"
        picture.write_bytes(files.render(spec, "svg"))


def _load() -> list[dict[str, Any]]:
    if not MEASURED.exists():
        return []
    with MEASURED.open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def _store(chart: str, rows: list[Row]) -> None:
    """Replace the rows of a chart; without new rows, the stored ones stay."""
    if not rows:
        return
    kept = [tuple(one[name] for name in COLUMNS) for one in _load() if one["chart"] != chart]
    with MEASURED.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *sorted(kept), *rows])


def _of_items(sizes: tuple[int, ...]) -> Iterator[Row]:
    for size in sizes:
        one = ("--one", "--databases", "postgresql", "--items", str(size))
        *_, label = reporting.figures_of("benchmarks.labelling", *one, "--seconds", "10")
        yield _told("items", "Next item, eight annotators at once", size, label["next"]["p50"])
        yield _told("items", "Label, eight annotators at once", size, label["label"]["p50"])
        if size >= LEAST_SEARCHED:
            *_, search = reporting.figures_of("benchmarks.searching", *one)
            yield _told("items", "Search for words", size, search["median"])


def _of_outcomes(sizes: tuple[int, ...]) -> Iterator[Row]:
    for size in sizes:
        one = ("--one", "--databases", "postgresql", "--outcomes", str(size), "--times", "10")
        found = {
            each["table"]: each
            for each in reporting.figures_of("benchmarks.figures", *one, "--kinds", "perturbed")
        }
        for name, title in RESULTS.items():
            yield _told("outcomes", title, size, found[name]["p50"])
        slowest = max(one["first"] for one in found.values())
        yield _told("outcomes", "Slowest figure, when computed first", size, 1000 * slowest)


def _told(chart: str, what: str, size: int, found: float) -> Row:
    print(f"{chart:<9}{size:>12,}  {what:<40}{found:>10.1f} ms", flush=True)
    return chart, what, size, round(found, 1)


def _chart(rows: list[dict[str, Any]], title: str) -> dict[str, Any]:
    """Return a line for each thing that is waited for; both axes count in powers of ten."""
    names = [*dict.fromkeys(row["what"] for row in rows)]
    values = [
        {**row, "size": int(row["size"]), "milliseconds": float(row["milliseconds"])}
        for row in rows
    ]
    tens = alt.Scale(type="log")
    shared = {
        "x": alt.X("size:Q", scale=tens, axis=alt.Axis(title=title, format="~s", tickCount=4)),
        "y": alt.Y(
            "milliseconds:Q",
            scale=tens,
            axis=alt.Axis(title="Median wait in milliseconds", format="~s", tickCount=4),
        ),
        "color": marks.colour_by("what", names, ""),
    }
    layers = [
        marks.layer(alt.MarkDef("line", strokeWidth=1.5, opacity=0.6, aria=False), **shared),
        marks.layer(
            alt.MarkDef("point", size=75, filled=True, opacity=1),
            **shared,
            shape=marks.shape_by("what", names, ""),
        ),
    ]
    return marks.draw(layers, values, 260)


if __name__ == "__main__":
    main()
