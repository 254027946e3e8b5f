"""The kinds of fields that a task type can have.

A new kind needs a class here that is listed in `FIELD_KINDS`, an entry in
`field_schema._KIND_READERS` and a template in `templates/annotation/fields/`. Answers are given by
field name: `from_post` reads them from a form, programs send them as they are. `clean` turns both
into the stored form.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from annotation.errors import FieldError

TEXT_LIMIT = 10_000
EDIT_LIMIT = 1_000_000


class Post(Protocol):
    """The part of a submitted form that is needed here; Django's QueryDict has it."""

    def get(self, name: str) -> Any: ...
    def getlist(self, name: str) -> list[Any]: ...
    def __iter__(self) -> Any: ...


@dataclass(frozen=True)
class Condition:
    """The condition of a field: an earlier field must have one of these answers."""

    field: str
    values: tuple[str, ...]

    def holds(self, said: Mapping[str, frozenset[str]]) -> bool:
        return not said.get(self.field, frozenset()).isdisjoint(self.values)


@dataclass(frozen=True)
class Option:
    """One of the answers to choose from; `key` is its hotkey.

    `examples` are shown next to it. `route` says where an item with this answer goes next; `drops`
    removes the item from the final set.
    """

    value: str | int | float
    title: str
    help: str = ""
    key: str = ""
    examples: tuple[str, ...] = ()
    route: str = ""
    drops: bool = False


@dataclass(frozen=True, kw_only=True)
class Field:
    """The base class of all fields. `rule` aggregates its labels into a resolution, "" if none.

    A field is asked if `when` holds. It must then be answered if it is `required`, unless the text
    field named by `unless` is filled in. `option` names the project's switch that enables the
    field; `level` is the level of measurement, "" if agreement on it has no meaning.
    """

    kind: ClassVar[str] = ""
    needed: ClassVar[bool] = True
    default_level: ClassVar[str] = ""
    decides: ClassVar[bool] = False

    name: str
    title: str
    help: str = ""
    required: bool = True
    when: Condition | None = None
    option: str = ""
    rule: str = ""
    level: str = ""
    unless: str = ""
    options: tuple[Option, ...] = ()

    @property
    def takes(self) -> str:
        """What the field accepts, as an instruction to the annotator."""
        values = ", ".join(str(option.value) for option in self.options)
        return f"choose one of {values}."

    def clean(self, answer: object) -> Any:
        """The answer as it is stored. Raises `FieldError`."""
        for option in self.options:
            if _means_value(option.value, answer):
                return option.value
        raise self.error()

    def from_post(self, post: Post) -> object:
        """The answer that a form sends; None if it has none."""
        return post.get(self.name) or None

    def answer_values(self, answer: Any) -> frozenset[str]:
        """A stored answer as the strings that conditions use."""
        return frozenset([str(answer)])

    def chosen(self, answer: Any) -> tuple[Option, ...]:
        """The options that a stored answer chooses."""
        said = self.answer_values(answer)
        return tuple(option for option in self.options if str(option.value) in said)

    def describe(self, answer: Any) -> str:
        """A stored answer in the words on the screen."""
        return ", ".join(option.title for option in self.chosen(answer)) or str(answer)

    def error(self, problem: str = "") -> FieldError:
        return FieldError(f"{self.title}: {problem or self.takes}", self.name)


@dataclass(frozen=True, kw_only=True)
class Choice(Field):
    """Exactly one of a few options."""

    kind = "choice"
    default_level = "nominal"
    decides = True


@dataclass(frozen=True, kw_only=True)
class Choices(Field):
    """Several of a few options, stored in the order of their declaration."""

    kind = "choices"
    needed = False
    default_level = "nominal"

    @property
    def takes(self) -> str:
        return f"choose one or more of {', '.join(str(o.value) for o in self.options)}."

    def clean(self, answer: object) -> list[str]:
        if isinstance(answer, str) or not isinstance(answer, Sequence):
            raise self.error(f"give a list of {', '.join(str(o.value) for o in self.options)}.")
        picked = [super(Choices, self).clean(one) for one in answer]
        return [str(option.value) for option in self.options if option.value in picked]

    def from_post(self, post: Post) -> object:
        return [value for value in post.getlist(self.name) if value] or None

    def answer_values(self, answer: Any) -> frozenset[str]:
        return frozenset(answer)


@dataclass(frozen=True, kw_only=True)
class Scale(Field):
    """One of a few numbers, each with a title."""

    kind = "scale"
    default_level = "ordinal"
    decides = True

    def describe(self, answer: Any) -> str:
        titles = [f"{option.value} {option.title}" for option in self.chosen(answer)]
        return titles[0] if titles else str(answer)


@dataclass(frozen=True, kw_only=True)
class Points(Scale):
    """A scale whose number is added to the total of the task."""

    kind = "points"
    default_level = "interval"


@dataclass(frozen=True, kw_only=True)
class YesNo(Field):
    """Yes or no, stored as true or false."""

    kind = "yesno"
    default_level = "nominal"
    decides = True
    options: tuple[Option, ...] = (Option("yes", "Yes", key="1"), Option("no", "No", key="2"))

    def clean(self, answer: object) -> bool:
        value = {"yes": True, "true": True, "no": False, "false": False}.get(str(answer).lower())
        if value is None:
            raise self.error()
        return value

    def answer_values(self, answer: Any) -> frozenset[str]:
        return frozenset(["yes" if answer else "no"])


@dataclass(frozen=True, kw_only=True)
class Text(Field):
    """Free text."""

    kind = "text"
    needed = False
    limit: int = TEXT_LIMIT

    @property
    def takes(self) -> str:
        return "write something."

    def clean(self, answer: object) -> str:
        if not isinstance(answer, str):
            raise self.error("write text.")
        # A browser sends every line break of a text area as CR LF.
        text = answer.replace("\r\n", "\n")
        if len(text) > self.limit:
            raise self.error(f"write at most {self.limit:,} characters.")
        if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
            raise self.error("remove the character that cannot be saved (NUL or half of a pair).")
        return text


@dataclass(frozen=True, kw_only=True)
class Edit(Text):
    """An edited text of the item; `text` names the text that the annotator starts from."""

    kind = "edit"
    limit: int = EDIT_LIMIT
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class ClaimCheck(Field):
    """For each changed piece whether the claim explains it, by the number of its segment."""

    kind = "claim_check"
    needed = False
    options: tuple[Option, ...] = (
        Option("explained", "Explained by the claim", key="1"),
        Option("collateral", "Collateral", key="2"),
    )

    @property
    def takes(self) -> str:
        return "answer explained or collateral for each changed piece, by its number."

    def clean(self, answer: object) -> dict[str, str]:
        if not isinstance(answer, Mapping):
            raise self.error()
        cleaned: dict[str, str] = {}
        for number, said in answer.items():
            if not re.fullmatch(r"[0-9]{1,6}", str(number), re.ASCII):
                raise self.error()
            cleaned[str(int(number))] = super().clean(said)
        return dict(sorted(cleaned.items(), key=lambda piece: int(piece[0])))

    def from_post(self, post: Post) -> object:
        prefix = f"{self.name}."
        found = {name[len(prefix) :]: post.get(name) for name in post if name.startswith(prefix)}
        return {number: said for number, said in found.items() if said} or None

    def answer_values(self, answer: Any) -> frozenset[str]:
        return frozenset(answer.values())

    def describe(self, answer: Any) -> str:
        explained = list(answer.values()).count("explained")
        return f"{explained} of {len(answer)} explained by the claim"


FIELD_KINDS: dict[str, type[Field]] = {
    kind.kind: kind for kind in (Choice, Choices, Scale, Points, YesNo, Text, Edit, ClaimCheck)
}


def is_empty(answer: object) -> bool:
    if isinstance(answer, str):
        return not answer.strip()
    return answer is None or answer == [] or answer == {}


def _means_value(value: str | int | float, answer: object) -> bool:
    """Whether an answer means this value; forms and CSV files send numbers as text."""
    if isinstance(value, str) or isinstance(answer, str):
        return str(value) == str(answer).strip() if isinstance(answer, str) else False
    return not isinstance(answer, bool) and value == answer
