"""A project's own strategies: created as copies, edited as TOML, and saved as versions."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from annotation.db import transactions
from annotation.errors import Refused, Stale
from annotation.items import taxonomy
from annotation.items.taxonomy import Taxonomy
from annotation.models import Event, Membership, Project
from annotation.tasktypes import toml_text
from annotation.tasktypes.toml_text import Place, TomlProblem
from judging import strategies
from judging.models import StrategyVersion
from judging.runs.run_config import ALL_AXES, MAIN_AXIS
from judging.strategies import Strategy, StrategyError, catalogue

MAX_SOURCE_LENGTH = 200_000
MAX_SLUG_LENGTH = 80
MAX_NOTE_LENGTH = 2_000

# What a copy leaves out of the prompts -> the keys that are set to false.
LEFT_OUT = {"": (), "guard": ("guard",), "markers": ("markers", "guard")}
_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_UNKNOWN_PLACEHOLDER = re.compile(r"unknown placeholder (\{\{\w*(?:\}\})?)")
# For an error in one of these lists, the key contains the number of the entry: steps.0.prompt.
_LIST_KEYS = ("axes", "metrics", "steps", "verdicts")


@dataclass(frozen=True)
class StrategyDraft:
    """A TOML source with its strategy, or with the problems that make it invalid."""

    source: str
    definition: dict[str, Any]
    strategy: Strategy | None
    problems: tuple[TomlProblem, ...] = ()

    def version(self) -> StrategyVersion:
        """The draft as an unsaved version; ValueError if it has problems."""
        if self.strategy is None:
            raise ValueError("A text with problems cannot be saved.")
        digest = strategies.compute_digest(self.strategy.definition)
        return StrategyVersion(
            slug=self.strategy.slug,
            digest=digest,
            definition=self.strategy.definition,
            source=self.source,
        )


def parse_source(source: str, slug: str, known: Taxonomy | None = None) -> StrategyDraft:
    """Parse a source into a draft; the slug in the source is replaced by `slug`. `known` has the
    project's categories, by default those that ship. Never raises."""
    source = source.replace("\r\n", "\n")
    if len(source) > MAX_SOURCE_LENGTH:
        return StrategyDraft(
            source,
            {},
            None,
            (TomlProblem(None, f"Shorten it to {MAX_SOURCE_LENGTH:,} characters."),),
        )
    source = toml_text.set_slug(source, slug)
    try:
        draft = _parse_toml(source)
        return _in_project(draft, taxonomy.load_shipped() if known is None else known)
    except tomllib.TOMLDecodeError as error:
        problem = toml_text.describe_parse_error(error, source)
    except StrategyError as error:
        problem = TomlProblem(_line(source, error), f"{error.key}: {error.remedy}.")
    except RecursionError:
        problem = TomlProblem(None, "Brackets are nested too deeply. Use fewer levels.")
    except (OverflowError, ValueError):
        problem = TomlProblem(None, "A number is too large to be used. Make it smaller.")
    return StrategyDraft(source, {}, None, (problem,))


def _in_project(draft: StrategyDraft, known: Taxonomy) -> StrategyDraft:
    """Return the draft as it is in a project with these categories. Raises `StrategyError` if it
    generates a category that the project does not have."""
    if draft.strategy is None:
        return draft
    strategy = draft.strategy.with_categories(known)
    names = strategies.definitions.format_names(known.category_names())
    right = not strategy.category or strategy.made is not None
    remedy = f"the project has no such category; use one of {names}"
    strategies.definitions.require(right, strategy.slug, "category", remedy)
    return replace(draft, strategy=strategy)


def copy_strategy(
    project: Project,
    parent: StrategyVersion,
    *,
    slug: str,
    title: str = "",
    note: str = "",
    leave_out: str = "",
    member: Membership,
) -> StrategyVersion:
    """Create the project's own strategy as a copy of another one, without what `leave_out` names
    (see LEFT_OUT).

    Raises `Refused` for a slug that is invalid or in use, and if the copy is not valid.
    """
    check_slug(slug)
    source = catalogue.get_source(parent)
    if title:
        source = toml_text.set_value(source, "title", title)
    for key in LEFT_OUT[leave_out]:
        source = toml_text.set_value(source, key, False)
    draft = parse_source(source, slug, taxonomy.load_taxonomy(project))
    return create(project, draft, parent, slug=slug, note=note, member=member)


def create(
    project: Project,
    draft: StrategyDraft,
    parent: StrategyVersion,
    *,
    slug: str,
    note: str,
    member: Membership | None,
) -> StrategyVersion:
    """Store a draft as the first version of the project's own strategy; `member` is None for
    commands. Raises `Refused` if the draft has problems or an axis that may not be named so, or if
    the slug is in use."""
    if draft.strategy is None:
        raise Refused(f"The strategy cannot be used: {draft.problems[0].text}")
    parent = catalogue.store_version(parent)
    with transactions.transact():
        _lock(project)
        if StrategyVersion.objects.own(project).named(slug).exists():
            raise Refused(f"The project already has a strategy {slug}. Choose another name.")
        if StrategyVersion.objects.deleted(project).named(slug).exists():
            raise Refused(
                f"A deleted strategy is named {slug}. Restore it, or choose another name."
            )
        return _store(project, draft, parent, 1, member, note)


def save_version(
    project: Project, draft: StrategyDraft, *, shown: int, note: str = "", member: Membership
) -> StrategyVersion | None:
    """Save the draft as the next version of the project's strategy; return None if nothing changed.

    `shown` is the number of the version that was edited. Raises `Stale` if a newer version was
    saved meanwhile, and `Refused` for a draft with problems, or with an axis that may not be named
    so. Existing runs keep the version that they pin.
    """
    if draft.strategy is None:
        raise Refused(" ".join(format_problem(problem) for problem in draft.problems))
    with transactions.transact():
        _lock(project)
        newest = StrategyVersion.objects.own(project).named(draft.strategy.slug).first()
        if newest is None:
            raise Refused(f"{draft.strategy.slug} does not belong to this project. Copy it first.")
        if newest.retired_at:
            raise Refused(f"{newest.slug} is retired. Restore it to change it.")
        if newest.number != shown:
            raise Stale(f"{newest} was saved while you were editing.")
        if catalogue.get_source(newest) == draft.source:
            return None
        return _store(project, draft, newest, newest.number + 1, member, note)


def format_problem(problem: TomlProblem) -> str:
    """Format a problem as one sentence, with its line number."""
    return f"Line {problem.line}: {problem.text}" if problem.line else problem.text


def _parse_toml(source: str) -> StrategyDraft:
    definition = toml_text.parse(source)
    strategy = strategies.from_definition(definition)
    for place, text in _iterate_texts(strategy.definition, ()):
        if "\0" in text:
            line = toml_text.find_line(source, place)
            remedy = "contains the character U+0000, which cannot be stored. Remove it."
            return StrategyDraft(
                source, {}, None, (TomlProblem(line, f"{_format_place(place)}: {remedy}"),)
            )
    return StrategyDraft(source, definition, strategy)


def _iterate_texts(value: Any, place: Place) -> Iterator[tuple[Place, str]]:
    """Yield every string in a definition, including keys, with its place."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield place, key
            yield from _iterate_texts(inner, (*place, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _iterate_texts(inner, (*place, number))


def _format_place(place: Place) -> str:
    return ".".join(str(part) for part in place)


def _line(source: str, error: StrategyError) -> int | None:
    """Find the line of an error; for an unknown placeholder, the line of the prompt that contains
    it.
    """
    line = toml_text.find_line(source, _parse_key(error.key))
    unknown = _UNKNOWN_PLACEHOLDER.match(error.remedy)
    if line is None or unknown is None:
        return line
    behind = source.split("\n")[line - 1 :]
    return next((at for at, text in enumerate(behind, start=line) if unknown[1] in text), line)


def _parse_key(key: str) -> Place:
    """The place of an error's key: steps.0.prompt, metrics.1.points.0.5, scale.low."""
    first, *rest = key.split(".", 1)
    if not rest or first not in _LIST_KEYS:
        return (first, *rest)
    number, *inner = rest[0].split(".", 2)
    return (first, int(number) if number.isdecimal() else number, *inner)


def check_slug(slug: str) -> None:
    """Raise `Refused` unless the slug may be that of a project's own strategy."""
    if len(slug) > MAX_SLUG_LENGTH or not _SLUG.fullmatch(slug):
        raise Refused(
            f"Use small letters, digits and single hyphens for the name, at most {MAX_SLUG_LENGTH} "
            "characters."
        )
    if slug in strategies.load_all():
        raise Refused(f"A built-in strategy is named {slug}. Choose another name.")


def _lock(project: Project) -> None:
    """Lock the project, so that two people cannot save at the same time."""
    Project.objects.select_for_update(no_key=True).only("pk").get(pk=project.pk)


def _check_axes(strategy: Strategy | None, parent: StrategyVersion) -> None:
    """Raise `Refused` for a new axis with a name that means something else where a run's axes are
    chosen. A version that was stored with such an axis keeps it, and so do its successors."""
    kept = {axis.slug for axis in parent.strategy().axes}
    for axis in strategy.axes if strategy else ():
        if axis.slug in {MAIN_AXIS, ALL_AXES} - kept:
            raise Refused(
                f"Give the axis {axis.slug} another slug. Where the axes of a run are chosen, "
                f"{MAIN_AXIS} is the axis of each item's ability, and {ALL_AXES} are all axes."
            )


def _store(
    project: Project,
    draft: StrategyDraft,
    parent: StrategyVersion,
    number: int,
    member: Membership | None,
    note: str,
) -> StrategyVersion:
    _check_axes(draft.strategy, parent)
    version = draft.version()
    version.project, version.parent, version.number = project, parent, number
    version.member, version.note = member, note.strip()
    version.save()
    Event.record(
        "strategy",
        str(version),
        project_id=project.pk,
        member_id=member.pk if member else None,
        parent=str(parent),
    )
    return version
