"""What a check found, in words that whoever runs the service can act on."""

from dataclasses import dataclass
from enum import StrEnum


class Grade(StrEnum):
    FINE = "fine"
    DOUBTFUL = "doubtful"
    WRONG = "wrong"


@dataclass(frozen=True)
class Finding:
    """How one part stands, said without keys, passwords and anybody's texts."""

    name: str
    grade: Grade
    says: str
    remedy: str = ""


def fine(name: str, says: str) -> Finding:
    return Finding(name, Grade.FINE, says)


def doubtful(name: str, says: str, remedy: str) -> Finding:
    return Finding(name, Grade.DOUBTFUL, says, remedy)


def wrong(name: str, says: str, remedy: str) -> Finding:
    return Finding(name, Grade.WRONG, says, remedy)
