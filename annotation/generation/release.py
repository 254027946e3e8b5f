"""The release policy of generated items, for pages, the API and commands; pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from annotation.errors import FieldError


@dataclass(frozen=True, kw_only=True)
class ReleasePolicy:
    """Which generated items annotators get at once: a random share of each category, in percent and
    rounded up. The rest is held until a lead releases it. With `accept`, it is instead accepted
    without review, with the intended final label of its category. Items with a flag in `aside` are
    always held."""

    share: int = 100
    accept: bool = False
    aside: frozenset[str] = frozenset()

    @classmethod
    def from_values(cls, said: Mapping[str, Any]) -> "ReleasePolicy":
        """Read the policy from the values of a job, a request body or a command; ignore all other
        values."""
        return cls(share=said["share"], accept=said["accept"], aside=frozenset(said["aside"]))

    def facts(self) -> dict[str, Any]:
        """Return the values that a job stores and that `from_values` reads."""
        return {"share": self.share, "accept": self.accept, "aside": sorted(self.aside)}

    def check(self) -> None:
        """Raise `FieldError` if the share is not between 0 and 100."""
        if not 0 <= self.share <= 100:
            raise FieldError("must lie between 0 and 100.", "share")


RELEASE_ALL = ReleasePolicy()
