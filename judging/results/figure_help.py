"""What each figure is: formula, interval, what was measured of it, limits and source.

The texts are in `figure_help.toml`. Result pages show those of their figures, the methods paragraph
says how intervals are made in the same words, and `python -m judging.results.figure_help` writes
all of them to docs/figures.md.
"""

import textwrap
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from stats import bootstrap

TEXTS = Path(__file__).with_suffix(".toml")
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "figures.md"
_NUMBERS = {
    "draws": f"{bootstrap.DRAWS:,}",
    "fewest": str(bootstrap.FEWEST_CLUSTERS),
    "enough": str(bootstrap.ENOUGH_CLUSTERS),
}
_HEAD = """# Figures

What each figure on the result pages is, how it is computed, and what it does not say. Each result
page has the texts of its figures below the table (*How these figures are made*). This page is
written by `python -m judging.results.figure_help` from `judging/results/figure_help.toml`.
"""


@dataclass(frozen=True)
class IntervalHelp:
    """How an interval is made. `measured` says how often it contained the true value in
    simulations, "" where that was not measured, and `questions` from how many questions to how many
    this was measured, None where that is not said."""

    how: str
    source: str
    measured: str = ""
    questions: tuple[int, int] | None = None


@dataclass(frozen=True)
class FigureHelp:
    """A figure, or figures that are explained together. `measured` is about its test."""

    title: str
    what: str
    formula: str
    limits: str
    source: str
    interval: IntervalHelp | None = None
    measured: str = ""

    @property
    def parts(self) -> list[tuple[str, str]]:
        """What is said of the figure, with a title for each part."""
        interval = self.interval
        measured = [self.measured, interval.measured if interval else ""]
        sources = [self.source, interval.source if interval else ""]
        found = [
            ("What", self.what),
            ("Formula", self.formula),
            ("Interval", interval.how if interval else ""),
            ("Measured", " ".join(filter(None, measured))),
            ("Limits", self.limits),
            ("Source", "; ".join(filter(None, sources))),
        ]
        return [(title, text) for title, text in found if text]


@cache
def load_intervals() -> dict[str, IntervalHelp]:
    """The ways in which intervals are made, by name."""
    return {
        name: IntervalHelp(**{key: _fill_in(value) for key, value in said.items()})
        for name, said in _load_texts()["intervals"].items()
    }


def _fill_in(value: Any) -> Any:
    return value.format_map(_NUMBERS) if isinstance(value, str) else tuple(value)


@cache
def load_figures() -> dict[str, FigureHelp]:
    """The figures by name, in the order of the document."""
    return {name: _make_help(said) for name, said in _load_texts()["figures"].items()}


def _make_help(said: dict[str, Any]) -> FigureHelp:
    interval = load_intervals()[said["interval"]] if "interval" in said else None
    return FigureHelp(**{**said, "interval": interval})


def _load_texts() -> dict[str, Any]:
    return tomllib.loads(TEXTS.read_text(encoding="utf-8"))


def write_document() -> str:
    """The text of docs/figures.md."""
    parts = [_HEAD]
    for one in load_figures().values():
        said = [
            f"- **{title}**: " + (f"`{text}`" if title == "Formula" else text)
            for title, text in one.parts
        ]
        lines = [
            textwrap.fill(
                text, 115, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
            )
            for text in said
        ]
        parts.append(f"## {one.title}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    DOCUMENT.write_text(write_document(), encoding="utf-8")
