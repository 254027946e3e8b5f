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


def report_ok(says: str) -> Finding:
    """Return a finding that requires no action."""
    return Finding(Grade.FINE, says)


def report_warning(says: str, remedy: str) -> Finding:
    """Return a finding that may become an error; the remedy says what to do."""
    return Finding(Grade.DOUBTFUL, says, remedy)


def report_error(says: str, remedy: str) -> Finding:
    """Return a finding about something that does not work; the remedy says what to do."""
    return Finding(Grade.WRONG, says, remedy)
