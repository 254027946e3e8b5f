"""Prepares the texts of an item for reading, in every view that a person can choose.

Two texts that a task compares share a sheet; any other text has its own sheet. Each view of a text
is a pane; the chosen pane is shown, and the reader can switch to the others. For long texts only
the chosen pane is rendered, and the page requests another one when it is needed.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from annotation.items.diffing.difference import Difference
from annotation.items.rendering import differences, formulas, texts
from annotation.items.rendering.change_kinds import ClassifiedChange, Side
from annotation.items.rendering.differences import DifferenceRenderer
from annotation.items.rendering.texts import FORMATS, Format
from annotation.tasktypes import ItemText, TaskType

VIEWS = ("inline", "side", "after", "before", "raw")
"""Both texts in one, side by side, the later text alone, the earlier alone, the later one raw."""

KEPT_VIEWS = ("inline", "side", "after")
"""Those that show what changed: the next item is shown in the same way. The others are for a look
at one item."""

FORMAT_TITLES: dict[Format, str] = {
    "plain": "Plain", "markdown": "Markdown", "math": "With formulas",
}  # fmt: skip

FOLD_CHOICES = ("off", "on")

FOUND = "found"
"""In place of a format: that which the texts of an item hold."""

ORIGINALS_FIELD = "before_translation"
"""The field of a translated item with the texts from which it was translated, by their names."""

# Hebrew, Arabic and related scripts, and characters that change the direction. For a text without
# them, layout is several times faster if the browser does not determine the direction of each line.
_RIGHT_TO_LEFT = re.compile(
    "[\u0590-\u08ff\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefe"
    "\U00010800-\U00010fff\U0001e800-\U0001efff]"
)

_SINGLE_TEXT_VIEWS: dict[str, Side] = {"after": "perturbed", "before": "gold"}


@dataclass(frozen=True)
class ReadingPreferences:
    """How a person prefers to read: the view of differences, the format of texts, and whether
    changes of appearance are folded. With `finds_format`, nobody chose a format, and texts are
    shown in the format that they hold."""

    view: str = VIEWS[0]
    format: Format = "plain"
    fold: bool = False
    finds_format: bool = False

    @classmethod
    def from_request(
        cls, asked: Mapping[str, str], kept: Mapping[str, str], project: str, default: str = ""
    ) -> "ReadingPreferences":
        """Read the preferences from the query string, otherwise from the cookies, otherwise take
        the project's default."""

        def chosen(name: str, cookie: str, values: tuple[str, ...], other: str = "") -> str:
            found = (asked.get(name), kept.get(cookie), other)
            return next((value for value in found if value in values), values[0])

        form = chosen("format", f"format-{project}", (*FORMATS, FOUND), default)
        return cls(
            view=chosen("view", "diff", VIEWS if asked.get("view") in VIEWS else KEPT_VIEWS),
            format=next((known for known in FORMATS if known == form), FORMATS[0]),
            fold=chosen("fold", "fold", FOLD_CHOICES) == "on",
            finds_format=form == FOUND,
        )

    def for_texts(self, shown: Iterable[str]) -> "ReadingPreferences":
        """These preferences, with the format that the texts hold if nobody chose one."""
        return replace(self, format=texts.find_format(shown)) if self.finds_format else self

    @property
    def names(self) -> frozenset[str]:
        """The names in `Pane.serves` that match these preferences."""
        return frozenset({self.view, f"{self.view}:{self.format}", f"*:{self.format}"})


def preference_cookies(asked: Mapping[str, str], project: str) -> dict[str, str]:
    """Return the cookies that store the preferences of a query string; each project has its own
    format."""
    known = {
        "view": ("diff", KEPT_VIEWS),
        "format": (f"format-{project}", FORMATS),
        "fold": ("fold", FOLD_CHOICES),
    }
    return {
        cookie: asked[name] for name, (cookie, values) in known.items() if asked.get(name) in values
    }


@dataclass(frozen=True)
class Pane:
    """One view of a text, as safe HTML.

    kind: its CSS classes, with "prose" for rendered Markdown. serves: the views ("side"), or the
    views in a certain format ("after:plain", "*:math"), that this pane shows. chosen: True if the
    pane is shown at first. `table` is True for the side-by-side view.
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
    """One text, or several alternative texts, under a title; `parts` contains the panes of each
    text. Two texts of a pair stand side by side: `half` is "first" or "second", otherwise ""."""

    name: str
    title: str
    parts: tuple[tuple[Pane, ...], ...]
    half: str = ""


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
        """Both titles; if their last word is the same, it appears once: Gold vs perturbed
        answer."""
        before, after = self.before.title, self.after.title
        start, _, last_word = before.rpartition(" ")
        if start and after.endswith(f" {last_word}"):
            before = start
        return f"{before} vs {after[:1].lower()}{after[1:]}"

    @property
    def folded(self) -> int:
        """The number of changes that readers may fold."""
        return sum(change.folds for change in self.changes)

    @property
    def stops(self) -> tuple[str, ...]:
        """The places that a reader is led to, as numbers of changes: each change, both ends of a
        move ("3+9"), and all changes that readers may fold as one ("2,5f")."""
        folding = [str(change.number) for change in self.changes if change.folds]
        stops: list[str] = []
        for change in self.changes:
            if not change.folds:
                ends = (change.number, *(change.other_end or ())[:1])
                stops.append("+".join(map(str, ends)))
            elif str(change.number) == folding[0]:
                stops.append(f"{','.join(folding)}f")
        return tuple(stops)

    @property
    def places(self) -> dict[str, dict[int, int]]:
        """Where each change begins in each text, by the name of the text and the number of the
        change, in UTF-16 units as a text box counts them: a line break is one."""
        places: dict[str, dict[int, int]] = {self.before.name: {}, self.after.name: {}}
        at = dict.fromkeys(places, 0)
        for segment in self.difference.segments:
            sides = {self.before.name: segment.gold, self.after.name: segment.perturbed}
            for name, parts in sides.items():
                places[name][segment.number] = at[name]
                text = "".join(part.text for part in parts).replace("\r\n", "\n")
                at[name] += len(text.encode("utf-16-le")) // 2
        changes = {change.number for change in self.changes}
        return {
            name: {number: place for number, place in found.items() if number in changes}
            for name, found in places.items()
        }

    @property
    def views(self) -> tuple[tuple[str, str, bool], ...]:
        """The views of the two texts as (name, title, whether the next item is shown so too), in
        the order of the buttons."""
        titles = ("Inline", "Side by side", self.after.title, self.before.title, "Raw")
        return tuple(
            (name, title, name in KEPT_VIEWS) for name, title in zip(VIEWS, titles, strict=True)
        )

    @property
    def marks(self) -> tuple[tuple[str, str], ...]:
        """The marks that occur in the texts, each with its badge, for the legend."""
        found = {mark for change in self.changes for mark in change.marks}
        return tuple((mark, badge) for mark, badge in differences.BADGES.items() if mark in found)


@dataclass(frozen=True)
class ItemSheet:
    """All sheets of an item, in the order of the task type. `key` is a digest of its texts."""

    habits: ReadingPreferences
    key: str
    sheets: tuple[TextSheet | Comparison, ...]

    @property
    def formats(self) -> tuple[tuple[Format, str], ...]:
        """The formats to choose from, each with its title."""
        return tuple(FORMAT_TITLES.items())

    @property
    def comparison(self) -> Comparison | None:
        """The first comparison among the sheets; None if the task type compares no texts."""
        return next((sheet for sheet in self.sheets if isinstance(sheet, Comparison)), None)


def build_sheet(
    task: TaskType,
    texts: Mapping[str, Any],
    difference: Difference | None,
    habits: ReadingPreferences,
) -> ItemSheet:
    """Return the sheets of the texts whose place is "main". The two compared texts share a sheet if
    there is a difference."""
    shown = [texts.get(text.name) for text in task.texts if text.place == "main"]
    habits = habits.for_texts(
        part for text in shown for part in ([text] if isinstance(text, str) else text or ())
    )
    compared = task.diff if difference and task.diff else ()
    halves = iter(("first", "second"))
    sheets: list[TextSheet | Comparison] = []
    for text in task.texts:
        if text.place != "main" or not _has_text(texts.get(text.name)):
            continue
        if text.name not in compared:
            half = next(halves) if task.pair and text.name in task.pair.texts else ""
            sheets.append(_build_text(text, texts[text.name], habits, half))
        elif difference and not any(isinstance(sheet, Comparison) for sheet in sheets):
            sheets.append(_comparison(task, difference, habits))
    packed = json.dumps(dict(texts), sort_keys=True).encode("utf-8", "surrogatepass")
    return ItemSheet(habits, hashlib.sha256(packed).hexdigest()[:16], tuple(sheets))


def build_side_sheets(
    task: TaskType, texts: Mapping[str, Any], habits: ReadingPreferences
) -> list[TextSheet]:
    """Return the sheets of the texts whose place is "side", without those that are missing or
    empty. Each is shown in the format that it holds if nobody chose one."""
    given = [(text, texts.get(text.name)) for text in task.texts if text.place == "side"]
    return [
        _build_text(text, said, habits.for_texts([said] if isinstance(said, str) else said))
        for text, said in given
        if said
    ]


def build_original_sheets(
    task: TaskType, fields: Mapping[str, Any], habits: ReadingPreferences
) -> list[TextSheet]:
    """Return the sheets of the texts from which an item was translated, in the order of the task
    type; [] for an item that is no translation. Its fields may come from a file: what is no text is
    not shown."""
    originals = fields.get(ORIGINALS_FIELD)
    given = originals if isinstance(originals, dict) else {}
    sheets = []
    for text in task.texts:
        said = given.get(text.name)
        parts = [part for part in (said if isinstance(said, list) else [said]) if part]
        if parts and all(isinstance(part, str) for part in parts):
            sheets.append(_build_text(text, parts, habits.for_texts(parts)))
    return sheets


def _has_text(text: Any) -> bool:
    """True if there is a text; "" counts as a text, but an empty list does not."""
    return text is not None and text != []


def _build_text(
    text: ItemText, content: Any, habits: ReadingPreferences, half: str = ""
) -> TextSheet:
    alternatives = [content] if isinstance(content, str) else list(content)
    parts = tuple(tuple(_panes(one, habits)) for one in alternatives)
    return TextSheet(text.name, text.title, parts, half)


def _panes(text: str, habits: ReadingPreferences) -> Iterator[Pane]:
    length = len(text)
    yield from _make_pane(lambda: differences.render_plain(text), "text", ("*:plain",), habits)
    for form, others in _distinct_formats(text):
        serves = tuple(f"*:{name}" for name in (form, *others))
        yield from _make_pane(
            partial(texts.render_text, text, form), "prose", serves, habits, length
        )


def _distinct_formats(text: str) -> list[tuple[Format, tuple[Format, ...]]]:
    """Return the formats other than plain, each with all formats in which the text looks the
    same."""
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
    """Yield the pane if it is chosen or short enough to render in advance; otherwise nothing."""
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
    """Yield the panes of the source texts, then the panes that show one text in Markdown.

    The inline pane can also show only one source text: the style sheet then hides the other text.
    Formatted texts stand beside each other in columns, without rows.
    """
    plain = ("inline", "after:plain", "before:plain")
    yield from _make_pane(drawn.inline, "diff diff-inline", plain, habits, drawn.length)
    sides = ("side:plain",)
    yield from _make_pane(drawn.sides, "diff diff-sides", sides, habits, drawn.length)
    yield from _make_pane(drawn.raw, "diff diff-raw", ("raw",), habits, drawn.length)
    for form, others in _distinct_formats(drawn.text("gold") + drawn.text("perturbed")):
        serves = tuple(f"side:{name}" for name in (form, *others))
        make = partial(drawn.columns, form)
        yield from _make_pane(make, "diff diff-columns", serves, habits, drawn.length)
    for view, side in _SINGLE_TEXT_VIEWS.items():
        for form, others in _distinct_formats(drawn.text(side)):
            serves = tuple(f"{view}:{name}" for name in (form, *others))
            make = partial(drawn.render_side, side, form)
            yield from _make_pane(make, "diff prose", serves, habits, drawn.length)
