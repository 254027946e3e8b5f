"""Findings of checks, with what to do about them."""

from dataclasses import dataclass
from enum import StrEnum


class Grade(StrEnum):
    FINE = "fine"
    DOUBTFUL = "doubtful"
    WRONG = "wrong"


@dataclass(frozen=True)
class Finding:
    """The state of one component; contains no keys, passwords or texts."""

    grade: Grade
    says: str
    remedy: str = ""


def report_ok(says: str) -> Finding:
    return Finding(Grade.FINE, says)


def report_warning(says: str, remedy: str) -> Finding:
    return Finding(Grade.DOUBTFUL, says, remedy)


def report_error(says: str, remedy: str) -> Finding:
    return Finding(Grade.WRONG, says, remedy)
