"""Findings of checks, with instructions for what to do about them."""

from dataclasses import dataclass
from enum import StrEnum


class Grade(StrEnum):
    """How bad a finding is. Only `WRONG` makes `doctor` fail and /readyz answer 503."""

    FINE = "fine"
    DOUBTFUL = "doubtful"
    WRONG = "wrong"


@dataclass(frozen=True)
class Finding:
    """The state of one component. It contains no keys, passwords or texts."""

    grade: Grade
    says: str
    remedy: str = ""


@dataclass(frozen=True)
class Problem:
    """A finding that a check can have, as docs/troubleshooting.md lists it.

    says, remedy: what is found and what to do. Names in braces are filled in when it is found.
    means: what it means for people; only the documentation says it.
    """

    grade: Grade
    says: str
    means: str
    remedy: str

    def found(self, **values: object) -> Finding:
        """Return the finding, with these values in place of the names in braces."""
        return Finding(self.grade, self.says.format(**values), self.remedy.format(**values))


def report_ok(says: str) -> Finding:
    """Return a finding that requires no action."""
    return Finding(Grade.FINE, says)


def declare_warning(says: str, *, means: str, remedy: str) -> Problem:
    """Declare a problem that may become an error."""
    return Problem(Grade.DOUBTFUL, says, means, remedy)


def declare_error(says: str, *, means: str, remedy: str) -> Problem:
    """Declare a problem because of which something does not work."""
    return Problem(Grade.WRONG, says, means, remedy)
