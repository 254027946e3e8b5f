"""The fields of a label form; each kind of field has its own template."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django import template

from annotation.accounts import keymap
from annotation.items.diffing.difference import Difference
from annotation.tasktypes.fields import Field, Option

register = template.Library()


@dataclass(frozen=True)
class DrawnOption:
    """An option of a field; `chosen` if it is the answer."""

    option: Option
    chosen: bool


@dataclass(frozen=True)
class Drawn:
    """A field with its earlier answer. `legend` is its title, or the question of the form if the
    field asks just that. `only_if` is its condition in words, "" if there is none.

    With `sends`, the options are buttons that send the form.
    """

    field: Field
    options: tuple[DrawnOption, ...]
    legend: str
    value: str = ""
    only_if: str = ""
    sends: bool = False

    @property
    def template(self) -> str:
        return f"annotation/fields/_{self.field.kind}.html"

    @property
    def always_required(self) -> bool:
        """True if the browser may require an answer (the HTML attribute `required`)."""
        return self.field.required and not (self.field.when or self.field.unless or self.sends)


@register.inclusion_tag("annotation/fields/_fields.html", takes_context=True)
def label_fields(
    context: Mapping[str, Any],
    asked: tuple[Field, ...],
    answers: Mapping[str, Any] | None = None,
    *,
    question: str = "",
    quick: bool = False,
    asks_once: bool = False,
    difference: Difference | None = None,
    texts: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """All fields of a label form with earlier answers, and the submit button.

    `answers` may be stored answers or the answers of a sent form. The first field asks the
    `question` in a quick form, and with `asks_once`; otherwise the question stands above it.
    """
    answers, task = answers or {}, context.get("task")
    if task and texts:
        absent = {text.name for text in task.texts if not texts.get(text.name)}
        asked = tuple(field for field in asked if field.about not in absent)
    drawn = [
        Drawn(
            field=field,
            options=tuple(_options(field, answers.get(field.name))),
            legend=question if question and number == 0 and (quick or asks_once) else field.title,
            value=_value(field, answers.get(field.name), texts or {}),
            only_if=_only_if(field, asked),
            sends=quick and number == 0,
        )
        for number, field in enumerate(asked)
    ]
    points = [field for field in asked if field.is_summed]
    most = sum(max(option.value for option in field.options) for field in points)  # type: ignore[misc]
    return {
        "drawn": drawn,
        "question": "" if quick or asks_once else question,
        "quick": quick,
        "points": points,
        "most": most,
        "answers": answers,
        "difference": difference,
        "hotkeys": getattr(context.get("user"), "hotkeys", keymap.DEFAULT_KEYS),
    }


def _options(field: Field, answer: Any) -> Iterator[DrawnOption]:
    said = _said(answer)
    for option in field.options:
        yield DrawnOption(option, str(option.value) in said)


def _said(answer: Any) -> set[str]:
    """The values of the options in an answer, which may be incomplete."""
    if isinstance(answer, bool):
        return {"yes" if answer else "no"}
    return {str(one) for one in (answer if isinstance(answer, list) else [answer])}


def _value(field: Field, answer: Any, texts: Mapping[str, Any]) -> str:
    """The content of a text field: the answer or, in an edit field without an answer, the item's
    text. Marked passages are JSON."""
    if field.marks_texts and answer and not isinstance(answer, str):
        return json.dumps(answer, ensure_ascii=False)
    if isinstance(answer, str):
        return answer
    begin = texts.get(getattr(field, "text", ""), "")
    return begin if isinstance(begin, str) else ""


def _only_if(field: Field, asked: tuple[Field, ...]) -> str:
    if field.when is None:
        return ""
    above = next((other for other in asked if other.name == field.when.field), None)
    options = above.options if above else ()
    titles = [option.title for option in options if str(option.value) in field.when.values]
    return " or ".join(f"“{title}”" for title in titles)
