"""The kinds of field that a task type can ask for.

A new kind is one class here, one line in `FIELD_KINDS` and one template in
`templates/annotation/fields/`. Answers come by field name: from a form through `from_post`, from a
program as they are; `clean` makes of either what is stored.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from annotation.errors import FieldError

TEXT_LIMIT = 10_000
EDIT_LIMIT = 1_000_000


class Post(Protocol):
    """What of a submitted form is needed here; Django's QueryDict has it."""

    def get(self, name: str) -> Any: ...
    def getlist(self, name: str) -> list[Any]: ...
    def __iter__(self) -> Any: ...


@dataclass(frozen=True)
class Condition:
    """A field is asked only if another one, above it, has one of these answers."""

    field: str
    values: tuple[str, ...]

    def holds(self, said: Mapping[str, frozenset[str]]) -> bool:
        return not said.get(self.field, frozenset()).isdisjoint(self.values)


@dataclass(frozen=True)
class Option:
    """One answer as people see it; `key` picks it.

    `examples` stand at the point of decision. `route` says where an item goes that gets this
    answer; `drops` that it leaves the final set.
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
    """What every kind of field has. `rule` is how its labels become a resolution, "" if not.

    A field is asked if `when` holds, and must then be answered if it is `required`, unless the
    text field named by `unless` is filled. `option` names the switch of a project that turns the
    field on; `level` is the level of measurement, "" if agreement on it means nothing.
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
        """What the field takes, as an order to the person."""
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

    def said(self, answer: Any) -> frozenset[str]:
        """A stored answer as words, as conditions name it."""
        return frozenset([str(answer)])

    def chosen(self, answer: Any) -> tuple[Option, ...]:
        """The options that a stored answer picks."""
        said = self.said(answer)
        return tuple(option for option in self.options if str(option.value) in said)

    def shown(self, answer: Any) -> str:
        """A stored answer in the words that the person saw."""
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
    """Several of a few options, stored in the order in which they are declared."""

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

    def said(self, answer: Any) -> frozenset[str]:
        return frozenset(answer)


@dataclass(frozen=True, kw_only=True)
class Scale(Field):
    """One of a few numbers, each in words."""

    kind = "scale"
    default_level = "ordinal"
    decides = True

    def shown(self, answer: Any) -> str:
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

    def said(self, answer: Any) -> frozenset[str]:
        return frozenset(["yes" if answer else "no"])


@dataclass(frozen=True, kw_only=True)
class Text(Field):
    """Words of the person's own."""

    kind = "text"
    needed = False
    limit: int = TEXT_LIMIT

    @property
    def takes(self) -> str:
        return "write something."

    def clean(self, answer: object) -> str:
        if not isinstance(answer, str):
            raise self.error("write text.")
        # A browser sends every line break of a text area as CR LF, whatever was in it.
        text = answer.replace("\r\n", "\n")
        if len(text) > self.limit:
            raise self.error(f"write at most {self.limit:,} characters.")
        if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
            raise self.error("remove the character that cannot be saved (NUL or half of a pair).")
        return text


@dataclass(frozen=True, kw_only=True)
class Edit(Text):
    """A text of the item as the person would write it; `text` names the one to begin from."""

    kind = "edit"
    limit: int = EDIT_LIMIT
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class ClaimCheck(Field):
    """Of each changed piece whether the claim explains it; by the number of its segment."""

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

    def said(self, answer: Any) -> frozenset[str]:
        return frozenset(answer.values())

    def shown(self, answer: Any) -> str:
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
    """Whether an answer means this value; a form and a CSV file send numbers as text."""
    if isinstance(value, str) or isinstance(answer, str):
        return str(value) == str(answer).strip() if isinstance(answer, str) else False
    return not isinstance(answer, bool) and value == answer
