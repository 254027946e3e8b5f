"""The base class of fields. Answers are given by field name. A form's answers are read by
`from_post`, programs send theirs directly, and `clean` turns both into the stored form."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from annotation.errors import FieldError
from annotation.tasktypes.toml_tables import TomlTable

# Finds where a passage starts in corrected texts, by the name of its text, its alternative, start
# and end; None if it was corrected itself.
Move = Callable[[str, int | None, int, int], int | None]


class Post(Protocol):
    """The part of a submitted form that fields need; Django's QueryDict provides it."""

    def get(self, name: str) -> Any: ...
    def getlist(self, name: str) -> list[Any]: ...
    def __iter__(self) -> Any: ...


@dataclass(frozen=True)
class Condition:
    """The condition of a field: an earlier field must have one of these answers."""

    field: str
    values: tuple[str, ...]

    def holds(self, said: Mapping[str, frozenset[str]]) -> bool:
        """True if the field has one of the answers. `said` has the answers so far by field, as
        strings."""
        return not said.get(self.field, frozenset()).isdisjoint(self.values)


@dataclass(frozen=True)
class Option:
    """One of the answers to choose from; `key` is its hotkey.

    `examples` are shown next to the option. `route` says where an item with this answer goes next.
    With `drops`, this answer removes the item from the final set.
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
    """The base class of all fields. The aggregation `rule` turns the labels of the field into a
    resolution; "" if there is no rule.

    A field is asked if its condition `when` is met. If it is `required`, it must then be answered,
    unless the text field named by `unless` is filled in. `option` names the project's switch that
    enables the field. `level` is the level of measurement, "" if agreement on the field has no
    meaning.

    A kind declares these attributes, which the rest of the program uses:
    kind: its name in task types and in the path of its template,
        `templates/annotation/fields/_KIND.html`.
    asks_for: what it asks for, as the editor of task types explains it.
    needed: whether an answer is required unless a task type says otherwise.
    decides: whether its answer can be the final label of an item.
    is_word: whether its answer is one of a few words, which a label's `choice` stores unchanged.
    is_number: whether its answer is a number on a scale, for agreement, errors and correlations;
        its `options` are the numbers.
    is_summed: whether its numbers add up to the total of the task.
    picks_one: whether one key press answers it, so that the form can move to the next field.
    is_written: whether people write the answer; archives leave it out if texts are left out.
    in_own_words: whether people write it in their own words, so that it is not a text of the item.
    has_several: whether an answer has several values, which are separated in a table cell.
    per_change: whether each changed piece of the texts gets its own answer.
    about: the text that it asks about. If a task type has this text and an item lacks it, the form
        of the item leaves the field out.
    marks_texts: whether the answer marks passages of the item's texts, by their place and a quote;
        archives mask the quotes if texts are left out, and agreement is measured by overlap.
    """

    kind: ClassVar[str] = ""
    asks_for: ClassVar[str] = ""
    needed: ClassVar[bool] = True
    default_level: ClassVar[str] = ""
    decides: ClassVar[bool] = False
    is_word: ClassVar[bool] = False
    is_number: ClassVar[bool] = False
    is_summed: ClassVar[bool] = False
    picks_one: ClassVar[bool] = False
    is_written: ClassVar[bool] = False
    in_own_words: ClassVar[bool] = False
    has_several: ClassVar[bool] = False
    per_change: ClassVar[bool] = False
    about: ClassVar[str] = ""
    marks_texts: ClassVar[bool] = False

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

    @classmethod
    def read_own(cls, table: TomlTable) -> dict[str, Any]:
        """Read the values that only this kind has from a task type's entry. Raises
        `DeclarationError`."""
        return {}

    @property
    def takes(self) -> str:
        """Return what the field accepts, as an instruction to the annotator."""
        values = ", ".join(str(option.value) for option in self.options)
        return f"choose one of {values}."

    def clean(self, answer: object) -> Any:
        """Return the answer as it is stored; forms and CSV files send numbers as text. Raises
        `FieldError`."""
        for value in (option.value for option in self.options):
            if isinstance(answer, str):
                if str(value) == answer.strip():
                    return value
            elif value == answer and not isinstance(value, str) and not isinstance(answer, bool):
                return value
        raise self.error()

    def check_texts(self, answer: Any, texts: Mapping[str, Any]) -> Any:
        """Return a cleaned answer, checked against the item's texts that the annotator saw. Raises
        `FieldError`."""
        return answer

    def carry(self, answer: Any, move: Move) -> Any:
        """Return a stored answer as it holds for texts that were corrected; None if it does not.
        `move` finds places in the new texts."""
        return answer

    def from_post(self, post: Post) -> object:
        """Return the answer that a form sends; None if the form has none."""
        return post.get(self.name) or None

    def answer_values(self, answer: Any) -> frozenset[str]:
        """Return a stored answer as the strings that conditions use."""
        return frozenset([str(answer)])

    def chosen(self, answer: Any) -> tuple[Option, ...]:
        """Return the options that a stored answer chooses."""
        said = self.answer_values(answer)
        return tuple(option for option in self.options if str(option.value) in said)

    def describe(self, answer: Any) -> str:
        """Describe a stored answer in the words on the screen."""
        return ", ".join(option.title for option in self.chosen(answer)) or str(answer)

    def error(self, problem: str = "") -> FieldError:
        """Return the error to raise for an answer. If no problem is given, the error says what the
        field accepts."""
        return FieldError(f"{self.title}: {problem or self.takes}", self.name)


def is_empty(answer: object) -> bool:
    """True if there is no answer. White space alone is no answer; False and 0 are answers."""
    if isinstance(answer, str):
        return not answer.strip()
    return answer is None or answer == [] or answer == {}
