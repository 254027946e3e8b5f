"""Task types: what annotators see and are asked. Each task type is declared in one TOML file of
this folder.

Also checks the answers to the fields of a form.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from annotation.errors import FieldError
from annotation.tasktypes import field_schema, fields
from annotation.tasktypes.fields import Field, Option
from annotation.tasktypes.fields.base import Move
from annotation.tasktypes.toml_tables import DeclarationError, Place, TomlTable


def clean_answers(asked: Sequence[Field], answers: Mapping[str, object]) -> dict[str, Any]:
    """Check the answers to these fields and return them as they are stored. Raises `FieldError` for
    unknown fields, and for invalid or missing answers.

    Answers to fields whose condition is not met are left out, since a page without JavaScript shows
    all fields. Empty answers are left out too.
    """
    if unknown := set(answers) - {field.name for field in asked}:
        raise FieldError(f"This task does not ask for {', '.join(sorted(unknown))}.")
    cleaned: dict[str, Any] = {}
    said: dict[str, frozenset[str]] = {}
    for field in asked:
        answer = answers.get(field.name)
        if (field.when and not field.when.holds(said)) or fields.is_empty(answer):
            continue
        cleaned[field.name] = field.clean(answer)
        said[field.name] = field.answer_values(cleaned[field.name])
    for field in asked:
        is_there = field.name in cleaned or field.unless in cleaned
        if field.required and not is_there and (field.when is None or field.when.holds(said)):
            raise _missing_error(field, asked)
    return cleaned


def _missing_error(field: Field, asked: Sequence[Field]) -> FieldError:
    """Return the error for a missing answer; it names the text field that may be filled in
    instead."""
    instead = next((other.title for other in asked if other.name == field.unless), "")
    return field.error(f"{field.takes} Or write it in “{instead}”." if instead else "")


FOLDER = Path(__file__).parent
SWITCHES = field_schema.SWITCHES
CHOICE_LENGTH = 40
MAX_RATERS = 20
SIDES = ("A", "B")  # what annotators call the two texts of a pair
CHANGED_TITLE = "Answer"  # neutral title of a changed text in the blind view


class TaskTypeError(ValueError):
    """An invalid task type. The message names the task type and the place in the file, and says
    what to do."""

    def __init__(self, message: str, place: Place = ()) -> None:
        super().__init__(message)
        self.place = place


@dataclass(frozen=True)
class ItemText:
    """A text of an item of this type; with `many` a list of equally good alternatives.

    `place` is its position on the screen: "main", or "side" next to the question. In the blind
    view, `blind_title` replaces a title that would reveal what to find.
    """

    name: str
    title: str
    required: bool
    many: bool = False
    place: str = "main"
    blind_title: str = ""


@dataclass(frozen=True)
class BlindQuestions:
    """The first questions, if a project shows items blind: the annotator sees the texts in `shows`,
    and no diff."""

    shows: tuple[str, ...]
    question: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class ResponsePair:
    """Two texts of an item that are compared with each other, without an order of their own.

    Annotators see them as A and B, in an order that is drawn for each item and member. `systems`
    names the fields of an item that say which system wrote each text; annotators never see them.
    """

    texts: tuple[str, str]
    systems: tuple[str, str]

    def in_order(self, first: str) -> tuple[str, str]:
        """Return the names of the two texts, with `first` in front."""
        one, other = self.texts
        return (other, one) if first == other else (one, other)


@dataclass(frozen=True)
class TaskType:
    """The texts of an item of this type, and the questions about the item.

    `diff` names the two texts that are compared, `correctable` the text that annotators may
    correct. The answer to the deciding field is the label's choice and can become the resolution.
    With `categories` each item has a category of the taxonomy; with `quick`, one key press is a
    complete label; `raters` is the recommended number of annotators per item. `awaits` names a text
    that an item may lack at import, but needs before it can be labelled. `pair` names the two texts
    that annotators see in an order that is drawn. If this one has its texts in such an order,
    `declared` is the task type as declared, and `sides` has A and B by the titles of the texts.
    """

    slug: str
    title: str
    question: str
    texts: tuple[ItemText, ...]
    diff: tuple[str, str] | None
    correctable: str
    fields: tuple[Field, ...]
    blind: BlindQuestions | None = None
    categories: bool = True
    quick: bool = False
    raters: int = 1
    decides: str = ""
    awaits: str = ""
    pair: ResponsePair | None = None
    declared: "TaskType | None" = None
    sides: tuple[tuple[str, str], ...] = ()

    @property
    def awaited(self) -> ItemText | None:
        """The text that items of this type may have to wait for; None if there is none."""
        return next((text for text in self.texts if text.name == self.awaits), None)

    def is_ready(self, texts: Mapping[str, Any]) -> bool:
        """True if an item with these texts can be labelled."""
        return not self.awaits or self.awaits in texts

    @cached_property
    def deciding(self) -> Field:
        """The field named by `decides`; if it names none, the first field."""
        return next((f for f in self.fields if f.name == self.decides), self.fields[0])

    @property
    def rates(self) -> bool:
        """True if annotators rate responses with numbers; each response is then a separate unit."""
        return self.deciding.is_number

    @cached_property
    def scores(self) -> tuple[Field, ...]:
        """The fields whose numbers make up a label's choice; () if the choice is a word."""
        summed = self.deciding.is_summed
        numbers = tuple(f for f in self.fields if f.is_number and f.is_summed == summed)
        return numbers if self.rates else ()

    @cached_property
    def resolved(self) -> tuple[Field, ...]:
        """The fields whose labels become part of the resolution. The deciding field is always among
        them."""
        return tuple(f for f in self.fields if f.rule or f is self.deciding)

    def field(self, name: str) -> Field | None:
        """Return the field with this name, including blind fields; None if there is none."""
        every = self.fields + (self.blind.fields if self.blind else ())
        return next((field for field in every if field.name == name), None)

    def fields_at(self, stage: str) -> tuple[Field, ...]:
        """Return the fields that are asked at a stage."""
        return self.blind.fields if stage == "blind" and self.blind else self.fields

    def at_first_look(self) -> "TaskType":
        """Return the same task type with the titles of the blind view.

        Without a `blind_title`, the changed text of the diff is called "Answer". Older versions
        have no blind titles, and the usual title may reveal that the text was changed.
        """
        changed = self.diff[1] if self.diff else ""
        usual = {t.name: CHANGED_TITLE if t.name == changed else t.title for t in self.texts}
        texts = tuple(replace(t, title=t.blind_title or usual[t.name]) for t in self.texts)
        return replace(self, texts=texts)

    def in_order(self, first: str) -> "TaskType":
        """Return the same task type as a page shows it whose text A is `first`, one of the pair;
        unchanged if that is no text of the pair.

        The two texts are called A and B, also where the titles and help texts of fields name them.
        An option about one of them stands at its place, with the key of this place, but keeps its
        value. So an answer says which text it is about, whatever the order.
        """
        declared = self.declared or self
        pair = declared.pair
        if pair is None or first not in pair.texts:
            return declared
        order = pair.in_order(first)
        known = {text.name: text for text in declared.texts}
        sides = {known[name].title: side for name, side in zip(order, SIDES, strict=True)}
        pages = (
            replace(known[name], title=f"Response {side}")
            for name, side in zip(order, SIDES, strict=True)
        )
        return replace(
            declared,
            texts=tuple(next(pages) if text.name in order else text for text in declared.texts),
            fields=tuple(_field_in_order(field, order, sides) for field in declared.fields),
            declared=declared,
            sides=tuple(sides.items()),
        )

    def in_words_of_page(self, words: str) -> str:
        """Return words about the item as a page says them that shows the texts in this order: A and
        B instead of the titles of the pair's texts."""
        return _rename(words, dict(self.sides))

    def with_switches(self, switches: Collection[str]) -> "TaskType":
        """Return the same task type without the fields whose switch is off."""
        asked = tuple(f for f in self.fields if not f.option or f.option in switches)
        return replace(self, fields=asked)

    def clean(self, answers: Mapping[str, object], *, stage: str = "label") -> dict[str, Any]:
        """Check the answers by their fields and return them as they are stored. Raises
        `FieldError`."""
        return clean_answers(self.fields_at(stage), answers)

    def names_changes(self, answers: Mapping[str, Any]) -> bool:
        """True if an answer is about single changes, which it names by their number in the diff."""
        return any(field.per_change and field.name in answers for field in self.fields)

    def marks_texts(self, answers: Mapping[str, Any], *, stage: str = "label") -> bool:
        """True if an answer marks passages of the item's texts."""
        return any(field.marks_texts and field.name in answers for field in self.fields_at(stage))

    def check_texts(
        self, answers: Mapping[str, Any], texts: Mapping[str, Any], *, stage: str = "label"
    ) -> dict[str, Any]:
        """Return cleaned answers whose passages were compared with the item's texts; in the blind
        view, with those that it shows. Raises `FieldError`."""
        if stage == "blind" and self.blind:
            texts = {name: text for name, text in texts.items() if name in self.blind.shows}
        asked = {field.name: field for field in self.fields_at(stage)}
        return {name: asked[name].check_texts(said, texts) for name, said in answers.items()}

    def carry_answers(self, answers: Mapping[str, Any], move: Move) -> dict[str, Any] | None:
        """Return stored answers as they hold for corrected texts; None if one of them does not.
        `move` finds places in the new texts."""
        carried = {
            name: field.carry(said, move) if (field := self.field(name)) else said
            for name, said in answers.items()
        }
        return None if None in carried.values() else carried

    def without_changes(self, answers: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answers without those about single changes."""
        per_change = {field.name for field in self.fields if field.per_change}
        return {name: said for name, said in answers.items() if name not in per_change}

    def choice_of(self, answers: Mapping[str, Any], stage: str = "label") -> str:
        """Return the choice of cleaned answers, at most 40 characters: the deciding answer, the
        total of points, or the numbers of scales.

        Numbers of scales are joined by "/", with "-" for a missing one. A total is "-" if any of
        its points is missing. "" without a deciding answer.
        """
        asked = self.fields_at(stage)
        deciding = asked[0] if stage == "blind" else self.deciding
        if deciding.is_summed:
            return str(self.totals(answers).get("total", "-"))
        if deciding.is_number:
            numbers = [
                str(answers.get(f.name, "-")) for f in asked if f.is_number and not f.is_summed
            ]
            return "/".join(numbers)[:CHOICE_LENGTH]
        if deciding.name not in answers:
            return ""
        return "/".join(sorted(deciding.answer_values(answers[deciding.name])))[:CHOICE_LENGTH]

    def title_of(self, choice: str) -> str:
        """Return the title of a label's choice as on the screen; numbers stay numbers."""
        found = [o.title for o in self.deciding.options if str(o.value) == choice]
        return found[0] if found and self.deciding.is_word else choice

    def chosen(self, answers: Mapping[str, Any]) -> list[Option]:
        """Return the options that cleaned answers choose, in the order of the fields."""
        said = [field for field in self.fields if field.name in answers]
        return [option for field in said for option in field.chosen(answers[field.name])]

    def route_of(self, answers: Mapping[str, Any]) -> str:
        """Return the route of an item with these answers: expert, gold-error, exclude or ""."""
        return next((option.route for option in self.chosen(answers) if option.route), "")

    def drops(self, answers: Mapping[str, Any]) -> bool:
        """True if one of the answers removes the item from the final set."""
        return any(option.drops for option in self.chosen(answers))

    def totals(self, answers: Mapping[str, Any]) -> dict[str, int | float]:
        """Return the sum of the points as "total"; {} if the task has no points, or if one is
        missing."""
        names = [field.name for field in self.fields if field.is_summed]
        if not names or any(name not in answers for name in names):
            return {}
        return {"total": sum(answers[name] for name in names)}


def _field_in_order(field: Field, order: tuple[str, str], sides: Mapping[str, str]) -> Field:
    """Return the field with its options about the two texts in this order, in the words of
    `TaskType.in_words_of_page`."""

    def called(words: str) -> str:
        return _rename(words, sides)

    about = {str(option.value): option for option in field.options if option.value in order}
    places = iter(name for name in order if name in about)
    options = tuple(
        replace(about[next(places)], key=option.key) if option.value in order else option
        for option in field.options
    )
    return replace(
        field,
        title=called(field.title),
        help=called(field.help),
        options=tuple(
            replace(
                option,
                title=called(option.title),
                help=called(option.help),
                examples=tuple(map(called, option.examples)),
            )
            for option in options
        ),
    )


def _rename(words: str, names: Mapping[str, str]) -> str:
    """Replace each of the names by its new name. A name that contains another one comes first."""
    if not names:
        return words
    found = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.sub(rf"(?<!\w)({found})(?!\w)", lambda name: names[name[0]], words)


def parse_definition(definition: Mapping[str, Any]) -> TaskType:
    """Return the task type that a parsed file or a stored version declares.

    Raises `TaskTypeError`. Whether the parts fit together is checked by `validation.find_problems`.
    """
    try:
        return _parse_table(TomlTable(definition))
    except DeclarationError as error:
        slug = definition.get("slug", "?")
        raise TaskTypeError(f"Task type {slug!r}: {error}", error.place) from error


def load_version(version: Any) -> TaskType:
    """Return the task type of a stored version; each version is parsed once per process."""
    known = _PARSED.get(version.digest)
    if known is None:
        known = _PARSED[version.digest] = parse_definition(version.definition)
    return known


def load_task_type(project: Any) -> TaskType:
    """Return the current task type of a project, without the fields whose switch is off; each is
    built once per process."""
    switches = enabled_switches(project)
    known = _ASKED.get((project.task_type.digest, switches))
    if known is None:
        known = load_version(project.task_type).with_switches(switches)
        _ASKED[project.task_type.digest, switches] = known
    return known


def enabled_switches(project: Any) -> frozenset[str]:
    """Return the names of the switches that are on in a project."""
    return frozenset(switch for switch in SWITCHES if getattr(project, switch))


def asked_definition(project: Any) -> dict[str, Any]:
    """Return the definition of a project's current task type, without the fields whose switch is
    off."""
    definition = project.task_type.definition
    off = {*SWITCHES} - enabled_switches(project)
    fields = [field for field in definition["fields"] if field.get("option", "") not in off]
    return {**definition, "fields": fields}


# Cached by digest. Submitting a label takes a few milliseconds; parsing would take a tenth of that
# time.
_PARSED: dict[str, TaskType] = {}
# By digest and switches, since a label asks for the task type of its project several times.
_ASKED: dict[tuple[str, frozenset[str]], TaskType] = {}


@cache
def load_sources() -> dict[str, str]:
    """Return the text of every file, by the file's name without the suffix."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.toml"))}


@cache
def load_definitions() -> dict[str, dict[str, Any]]:
    """Return the parsed content of every file by slug. Raises `TaskTypeError` for an invalid file
    and for a file whose name differs from its slug."""
    found = {}
    for stem, source in load_sources().items():
        definition = tomllib.loads(source)
        if definition.get("slug") != stem:
            raise TaskTypeError(f"{stem}.toml: slug must be {stem!r}, the name of the file.")
        parse_definition(definition)
        found[stem] = definition
    return found


def digest_definition(definition: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a definition in hex; the order of the keys does not matter."""
    canonical = json.dumps(definition, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _parse_table(table: TomlTable) -> TaskType:
    asked = tuple(field_schema.parse_field(entry) for entry in table.tables("fields"))
    # Versions that were stored before other fields existed had one choice, and one key press was a
    # complete label.
    was_quick = len(asked) == 1 and isinstance(asked[0], fields.Choice)
    read = TaskType(
        slug=table.text("slug"),
        title=table.text("title"),
        question=table.text("question"),
        texts=tuple(_text(entry) for entry in table.tables("texts")),
        diff=_diff(table),
        correctable=table.text("correctable", ""),
        fields=asked,
        blind=_blind(table),
        categories=table.flag("categories", True),
        quick=table.flag("quick", was_quick),
        raters=table.whole("raters", 1, 1, MAX_RATERS),
        decides=table.text("decides", ""),
        awaits=table.text("awaits", ""),
        pair=_pair(table),
    )
    table.close()
    return read


def _text(table: TomlTable) -> ItemText:
    text = ItemText(
        name=table.text("name"),
        title=table.text("title"),
        required=table.flag("required", True),
        many=table.flag("many", False),
        place=table.one_of("place", "main", ("main", "side")),
        blind_title=table.text("blind_title", ""),
    )
    table.close()
    return text


def _diff(table: TomlTable) -> tuple[str, str] | None:
    diff = table.table("diff")
    if diff is None:
        return None
    pair = diff.text("from"), diff.text("to")
    diff.close()
    return pair


def _pair(table: TomlTable) -> ResponsePair | None:
    pair = table.table("pair")
    if pair is None:
        return None
    read = ResponsePair(_two_names(pair, "texts"), _two_names(pair, "systems"))
    pair.close()
    return read


def _two_names(table: TomlTable, name: str) -> tuple[str, str]:
    names = table.texts(name)
    if len(names) != 2 or names[0] == names[1]:
        raise table.wrong(name, "needs two different names.")
    return names[0], names[1]


def _blind(table: TomlTable) -> BlindQuestions | None:
    blind = table.table("blind")
    if blind is None:
        return None
    asked = tuple(field_schema.parse_field(entry) for entry in blind.tables("fields"))
    read = BlindQuestions(blind.texts("shows"), blind.text("question"), asked)
    blind.close()
    return read
