"""A check of which changes the claim explains."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from annotation.tasktypes.fields.base import Field, Option, Post

MOST_PIECES = 20_000
"""Changes with an answer; nobody checks so many one by one."""


@dataclass(frozen=True, kw_only=True)
class ClaimCheck(Field):
    """Asks for each changed piece whether the claim explains it; pieces have the numbers of their
    segments."""

    kind = "claim_check"
    asks_for = "for each change, whether the claim explains it"
    needed = False
    has_several = True
    per_change = True
    about = "claim"
    options: tuple[Option, ...] = (
        Option("explained", "Explained by the claim", key="1"),
        Option("collateral", "Collateral", key="2"),
    )

    @property
    def takes(self) -> str:
        return "for the number of each changed piece, answer explained or collateral."

    def clean(self, answer: object) -> dict[str, str]:
        """Return the answers by number of the changed piece, in ascending order; numbers are text
        without leading zeros. Raises `FieldError`, but not for pieces without an answer."""
        if not isinstance(answer, Mapping):
            raise self.error()
        if len(answer) > MOST_PIECES:
            raise self.error(f"answer for at most {MOST_PIECES:,} changes.")
        cleaned: dict[str, str] = {}
        for number, said in answer.items():
            if not re.fullmatch(r"[0-9]{1,6}", str(number), re.ASCII):
                raise self.error()
            cleaned[str(int(number))] = super().clean(said)
        return dict(sorted(cleaned.items(), key=lambda piece: int(piece[0])))

    def from_post(self, post: Post) -> object:
        """Return the answers by number of the piece, from the names `FIELD.NUMBER` or, from a page
        with scripts, from JSON under the field's own name; None if there are none. What is not JSON
        is returned as it is, so that `clean` refuses it."""
        if sent := post.get(self.name):
            try:
                return json.loads(sent) or None
            except (ValueError, RecursionError):
                return str(sent)
        prefix = f"{self.name}."
        found = {name[len(prefix) :]: post.get(name) for name in post if name.startswith(prefix)}
        return {number: said for number, said in found.items() if said} or None

    def answer_values(self, answer: Any) -> frozenset[str]:
        """Return the distinct answers, over all pieces."""
        return frozenset(answer.values())

    def describe(self, answer: Any) -> str:
        """Say in words how many of the answered pieces the claim explains."""
        explained = list(answer.values()).count("explained")
        return f"{explained} of {len(answer)} explained by the claim"
