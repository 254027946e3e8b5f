"""Who gets what was made here, as a page, a program or a command asks for it; pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from annotation.errors import FieldError


@dataclass(frozen=True, kw_only=True)
class ReleasePolicy:
    """Who sees what was made: of each category this share, in percent, drawn at random, at least
    one. The rest waits until a lead gives it out, or with `accept` is taken for what its category
    is made for. Items with a flag of `aside` wait, whatever the rest does."""

    share: int = 100
    accept: bool = False
    aside: frozenset[str] = frozenset()

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> "ReleasePolicy":
        """As these values say, of a job, a body or a command; there may be others among them."""
        return cls(share=said["share"], accept=said["accept"], aside=frozenset(said["aside"]))

    def facts(self) -> dict[str, Any]:
        """As a job keeps it, for `of` to read."""
        return {"share": self.share, "accept": self.accept, "aside": sorted(self.aside)}

    def check(self) -> None:
        """Raises `FieldError` for a share that is none."""
        if not 0 <= self.share <= 100:
            raise FieldError("must lie between 0 and 100.", "share")


RELEASE_ALL = ReleasePolicy()
