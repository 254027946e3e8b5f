"""The names in double braces that a prompt may hold, and how they are filled.

Which texts of an item a frame shows is said here; a strategy adds names by what it declares:
{{axis}} and {{rubric}} with axes, {{metrics}} and {{form}} with metrics, {{examples}} with
examples, and in a chain the names of the earlier steps. {{guidance}} is what a person said against
an earlier attempt, and the attempt; "" for the first one.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
# Names that are not free for a step of a chain.
RESERVED_NAMES = frozenset(
    {
        "question", "response", "reference", "first", "second", "explanation", "score",
        "axis", "rubric", "metrics", "form", "examples", "guidance",
    }
)  # fmt: skip


class FramePlaceholders(NamedTuple):
    """What the prompts of a frame show: names that they must hold, and that they may."""

    needed: frozenset[str]
    allowed: frozenset[str] = frozenset()


FRAME_PLACEHOLDERS: dict[str, FramePlaceholders] = {
    "single": FramePlaceholders(frozenset({"question", "response"})),
    "pair": FramePlaceholders(frozenset({"question", "first", "second"})),
    "reference": FramePlaceholders(frozenset({"question", "response", "reference"})),
    "detection": FramePlaceholders(frozenset({"question", "response"})),
    "rating": FramePlaceholders(frozenset({"question", "response"}), frozenset({"reference"})),
    "rubric": FramePlaceholders(frozenset({"response"}), frozenset({"question", "reference"})),
    "matching": FramePlaceholders(frozenset({"response", "reference"}), frozenset({"question"})),
    "explanation": FramePlaceholders(frozenset({"explanation"}), frozenset({"score"})),
    "answer": FramePlaceholders(frozenset({"question"})),
    "perturbation": FramePlaceholders(frozenset({"question", "reference", "guidance"})),
    "input": FramePlaceholders(frozenset({"question"})),
    "sorting": FramePlaceholders(frozenset({"question"})),
}
# frame -> the names that its prompt must hold
NEEDED_PLACEHOLDERS = {frame: shown.needed for frame, shown in FRAME_PLACEHOLDERS.items()}


def fill_template(template: str, values: Mapping[str, str]) -> str:
    """`template` with each {{name}} replaced, in one pass: inserted text is never expanded."""
    return PLACEHOLDER.sub(lambda found: values[found[1]], template)


def find_names(template: str) -> set[str]:
    """The names that a template holds."""
    return set(PLACEHOLDER.findall(template))


def split_template(template: str) -> Iterator[tuple[str, bool]]:
    """The template cut up: each piece with whether it is a placeholder; none is empty."""
    at = 0
    for found in PLACEHOLDER.finditer(template):
        if at < found.start():
            yield template[at : found.start()], False
        yield found[0], True
        at = found.end()
    if at < len(template):
        yield template[at:], False


def has_malformed(template: str) -> bool:
    """Whether double braces are left that make no name, such as {{ first }}."""
    return "{{" in PLACEHOLDER.sub("", template)
