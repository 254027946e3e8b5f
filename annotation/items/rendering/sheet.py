"""What a person reads of an item: its texts in their order, drawn in every way they may choose.

Two texts that a task compares stand in one sheet, any other in one of its own. Each way to see a
text is a pane; the one that the reader chose is shown, the others are there to be turned to. Of
long texts only the chosen way is made, and the page asks for another when it is wanted.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from annotation.items.diffing.difference import Difference
from annotation.items.rendering import differences, formulas, texts
from annotation.items.rendering.change_kinds import ClassifiedChange
from annotation.items.rendering.differences import DifferenceRenderer, Side
from annotation.items.rendering.texts import FORMATS, Format
from annotation.tasktypes import ItemText, TaskType

VIEWS = ("inline", "side", "after", "before", "raw")
"""Both texts as one, side by side, the later text alone, the earlier alone, the later as it is."""

FORMAT_TITLES: dict[Format, str] = {
    "plain": "Plain", "markdown": "Markdown", "math": "With formulas",
}  # fmt: skip

FOLD_CHOICES = ("off", "on")

# Hebrew, Arabic and their kin, and signs that turn the direction. A browser lays a text without any
# of them out several times faster if it is not asked to look for the direction of each line.
_RIGHT_TO_LEFT = re.compile(
    "[\u0590-\u08ff\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefe"
    "\U00010800-\U00010fff\U0001e800-\U0001efff]"
)

_SINGLE_TEXT_VIEWS: dict[str, Side] = {"after": "perturbed", "before": "gold"}


@dataclass(frozen=True)
class ReadingPreferences:
    """How a person likes to read: a view of differences, a format of texts, and what to fold."""

    view: str = VIEWS[0]
    format: Format = "plain"
    fold: bool = False

    @classmethod
    def of(
        cls, asked: Mapping[str, str], kept: Mapping[str, str], project: str, default: str = ""
    ) -> "ReadingPreferences":
        """What an address asks for, else what cookies keep, else what the project prefers."""

        def chosen(name: str, cookie: str, values: tuple[str, ...], other: str = "") -> str:
            found = (asked.get(name), kept.get(cookie), other)
            return next((value for value in found if value in values), values[0])

        form = chosen("format", f"format-{project}", FORMATS, default)
        return cls(
            view=chosen("view", "diff", VIEWS),
            format=next(known for known in FORMATS if known == form),
            fold=chosen("fold", "fold", FOLD_CHOICES) == "on",
        )

    @property
    def names(self) -> frozenset[str]:
        """What a pane that serves these habits may call itself."""
        return frozenset({self.view, f"{self.view}:{self.format}", f"*:{self.format}"})


def preference_cookies(asked: Mapping[str, str], project: str) -> dict[str, str]:
    """The cookies that remember what an address asks for; the format is one of the project."""
    known = {
        "view": ("diff", VIEWS),
        "format": (f"format-{project}", FORMATS),
        "fold": ("fold", FOLD_CHOICES),
    }
    return {
        cookie: asked[name] for name, (cookie, values) in known.items() if asked.get(name) in values
    }


@dataclass(frozen=True)
class Pane:
    """One way to see a text, as safe HTML.

    kind: its class on the page, with "prose" for what Markdown made; `table` if it has two sides.
    serves: the views ("side"), or views in a format ("after:plain", "*:math"), that it shows.
    chosen: whether it is shown at first.
    """

    html: str
    kind: str
    serves: tuple[str, ...]
    chosen: bool

    @property
    def table(self) -> bool:
        return "diff-sides" in self.kind


@dataclass(frozen=True)
class TextSheet:
    """A text, or several that are each as good, under one title."""

    name: str
    title: str
    parts: tuple[tuple[Pane, ...], ...]


@dataclass(frozen=True)
class Comparison:
    """Two texts and what changed between them."""

    before: ItemText
    after: ItemText
    difference: Difference
    changes: tuple[ClassifiedChange, ...]
    panes: tuple[Pane, ...]
    strip: str

    @property
    def title(self) -> str:
        """Both titles; a last word that they share is said once: Gold vs perturbed answer."""
        before, after = self.before.title, self.after.title
        start, _, last_word = before.rpartition(" ")
        if start and after.endswith(f" {last_word}"):
            before = start
        return f"{before} vs {after[:1].lower()}{after[1:]}"

    @property
    def folded(self) -> int:
        return sum(change.folds for change in self.changes)

    @property
    def views(self) -> tuple[tuple[str, str], ...]:
        titles = ("Inline", "Side by side", self.after.title, self.before.title, "Raw")
        return tuple(zip(VIEWS, titles, strict=True))

    @property
    def marks(self) -> tuple[tuple[str, str], ...]:
        """The marks that occur, each with its badge, for the legend."""
        found = {mark for change in self.changes for mark in change.marks}
        return tuple((mark, badge) for mark, badge in differences.BADGES.items() if mark in found)


@dataclass(frozen=True)
class ItemSheet:
    """Everything that is read, in the order of the task type. `key` tells these texts apart."""

    habits: ReadingPreferences
    key: str
    sheets: tuple[TextSheet | Comparison, ...]

    @property
    def formats(self) -> tuple[tuple[Format, str], ...]:
        return tuple(FORMAT_TITLES.items())

    @property
    def comparison(self) -> Comparison | None:
        return next((sheet for sheet in self.sheets if isinstance(sheet, Comparison)), None)


def build_sheet(
    task: TaskType,
    texts: Mapping[str, Any],
    difference: Difference | None,
    habits: ReadingPreferences,
) -> ItemSheet:
    """The texts that have their place in the middle of the screen; compared, if they were."""
    compared = task.diff if difference and task.diff else ()
    sheets: list[TextSheet | Comparison] = []
    for text in task.texts:
        if text.place != "main" or not _has_text(texts.get(text.name)):
            continue
        if text.name not in compared:
            sheets.append(_build_text(text, texts[text.name], habits))
        elif difference and not any(isinstance(sheet, Comparison) for sheet in sheets):
            sheets.append(_comparison(task, difference, habits))
    packed = json.dumps(dict(texts), sort_keys=True).encode("utf-8", "surrogatepass")
    return ItemSheet(habits, hashlib.sha256(packed).hexdigest()[:16], tuple(sheets))


def _has_text(text: Any) -> bool:
    """Whether there is a text; an empty one is a text too, but a list of none is none."""
    return text is not None and text != []


def _build_text(text: ItemText, content: Any, habits: ReadingPreferences) -> TextSheet:
    alternatives = [content] if isinstance(content, str) else list(content)
    return TextSheet(
        text.name, text.title, tuple(tuple(_panes(one, habits)) for one in alternatives)
    )


def _panes(text: str, habits: ReadingPreferences) -> Iterator[Pane]:
    length = len(text)
    yield from _make_pane(lambda: differences.render_plain(text), "text", ("*:plain",), habits)
    for form, others in _distinct_formats(text):
        serves = tuple(f"*:{name}" for name in (form, *others))
        yield from _make_pane(
            partial(texts.render_text, text, form), "prose", serves, habits, length
        )


def _distinct_formats(text: str) -> list[tuple[Format, tuple[Format, ...]]]:
    """The formats but plain, each with those in which the text looks the same."""
    return (
        [("markdown", ()), ("math", ())]
        if formulas.may_contain_formula(text)
        else [("markdown", ("math",))]
    )


def _make_pane(
    make: Callable[[], str],
    kind: str,
    serves: tuple[str, ...],
    habits: ReadingPreferences,
    length: int = 0,
) -> Iterator[Pane]:
    """The pane, if it is chosen, or short enough to be made in case it is wanted."""
    chosen = not habits.names.isdisjoint(serves)
    if not chosen and length >= differences.LONG_TEXT:
        return
    html = make()
    if length >= differences.LONG_TEXT:
        kind += " long"
    if _RIGHT_TO_LEFT.search(html):
        kind += " bidi"
    yield Pane(html, kind, serves, chosen)


def _comparison(task: TaskType, difference: Difference, habits: ReadingPreferences) -> Comparison:
    assert task.diff is not None
    before, after = (next(t for t in task.texts if t.name == name) for name in task.diff)
    drawn = DifferenceRenderer(difference)
    panes = tuple(_comparison_panes(drawn, habits))
    return Comparison(before, after, difference, drawn.changes, panes, drawn.strip())


def _comparison_panes(drawn: DifferenceRenderer, habits: ReadingPreferences) -> Iterator[Pane]:
    """Source texts, then each text alone in Markdown.

    The inline drawing serves either source text alone too: the style sheet hides the other.
    """
    plain = ("inline", "after:plain", "before:plain")
    yield from _make_pane(drawn.inline, "diff diff-inline", plain, habits, drawn.length)
    yield from _make_pane(drawn.sides, "diff diff-sides", ("side",), habits, drawn.length)
    yield from _make_pane(drawn.raw, "diff diff-raw", ("raw",), habits, drawn.length)
    for view, side in _SINGLE_TEXT_VIEWS.items():
        for form, others in _distinct_formats(drawn.text(side)):
            serves = tuple(f"{view}:{name}" for name in (form, *others))
            make = partial(drawn.one, side, form)
            yield from _make_pane(make, "diff prose", serves, habits, drawn.length)
