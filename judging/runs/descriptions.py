"""The name, the tags and the note of a run. No figure and no digest depends on them."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from annotation.db import transactions
from annotation.models import Membership, Project
from judging.errors import Refused
from judging.models import Run
from judging.runs.transitions import record_event

FIELDS = ("name", "tags", "note")
MAX_NAME, MAX_TAG, MAX_TAGS, MAX_NOTE = 60, 30, 10, 4_000
# Joiners have no shape of their own, but some scripts need them within words.
_JOINERS = "\u200c\u200d"
# Letters and signs that are printable and empty: fillers of Hangul, and Braille without dots.
_BLANK = "\u115f\u1160\u3164\uffa0\u2800"
_NUMBERED = re.compile(r"(run|#)?\s*#?\d+", re.IGNORECASE)


def clean_name(text: str) -> str:
    """The name with single spaces. Raises `Refused` for a name that is too long, that reads as a
    run's number, or that has characters which cannot be seen."""
    name = _clean_line(text, "name", MAX_NAME)
    if _NUMBERED.fullmatch(name):
        raise Refused(f"The name {name} could be taken for a run's number. Add a word.")
    return name


def clean_tags(words: Iterable[str]) -> list[str]:
    """The tags in small letters, with hyphens for spaces, without repetitions. A word may hold
    several tags, separated by commas. Raises `Refused` for too many tags, or for one that is too
    long or has characters which cannot be seen."""
    parts = [_clean_line(part, "tag", MAX_TAG) for word in words for part in word.split(",")]
    tags = list(dict.fromkeys(part.lstrip("# ").lower().replace(" ", "-") for part in parts))
    found = [tag for tag in tags if tag]
    if len(found) > MAX_TAGS:
        raise Refused(f"Give a run at most {MAX_TAGS} tags, not {len(found)}.")
    return found


def clean_note(text: str) -> str:
    """The note without spaces around it. Raises `Refused` for a note that is too long or that
    cannot be stored."""
    note = "\n".join(text.strip().splitlines())
    if len(note) > MAX_NOTE:
        raise Refused(f"The note has {len(note):,} characters. Shorten it to {MAX_NOTE:,}.")
    if "\x00" in note or any("\ud800" <= one <= "\udfff" for one in note):
        raise Refused("The note contains a character that cannot be stored. Remove it.")
    return note


def _clean_line(text: str, what: str, limit: int) -> str:
    line = " ".join(unicodedata.normalize("NFC", text).split())
    if len(line) > limit:
        raise Refused(f"The {what} “{line[:limit]}…” is too long. Use at most {limit} characters.")
    # A joiner between letters of scripts that join none would make two names look the same.
    joined = re.sub(r"[\u0600-\u1cff\u2190-\U0010ffff][\u200c\u200d]", "", line)
    seen = all(one.isprintable() and one not in _BLANK for one in joined)
    if not seen or (line and not line.strip(_JOINERS)):
        raise Refused(f"The {what} contains a character that cannot be seen. Remove it.")
    return line


def set_description(run: Run, name: str, tags: Iterable[str], note: str) -> None:
    """Set the name, the tags and the note of an unsaved run. Raises `Refused` for values that are
    not allowed; whether the name is free is checked when the run is stored."""
    run.name, run.tags, run.note = clean_name(name), clean_tags(tags), clean_note(note)


def check_name_free(project: Project, name: str, run: Run | None = None) -> None:
    """Raise `Refused` if an unarchived run other than `run` has the name."""
    if not name:
        return
    others = Run.objects.in_project(project).with_name(name)
    taken = (others.exclude(pk=run.pk) if run else others).first()
    if taken:
        raise Refused(
            f"Run {taken.number} already has the name “{taken.name}”. Choose another name, or "
            "rename or archive that run first."
        )


def describe_run(
    run: Run,
    member: Membership | None,
    *,
    name: str | None = None,
    tags: Sequence[str] | None = None,
    note: str | None = None,
) -> None:
    """Change the name, the tags or the note of a run, those that are not None, with an event that
    has the old and the new values. Raises `Refused` for values that are not allowed, and for a name
    that another unarchived run has."""
    given: dict[str, Any] = {
        **({} if name is None else {"name": clean_name(name)}),
        **({} if tags is None else {"tags": clean_tags(tags)}),
        **({} if note is None else {"note": clean_note(note)}),
    }
    with transactions.transact():
        # Runs start under the same lock, so that no two of them take a name at the same time.
        Project.objects.select_for_update(no_key=True).only("pk").get(pk=run.project_id)
        run.refresh_from_db(fields=[*FIELDS, "archived_at"])
        new = {field: value for field, value in given.items() if value != getattr(run, field)}
        if "name" in new and run.archived_at is None:
            check_name_free(run.project, new["name"], run)
        if new:
            old = {field: getattr(run, field) for field in new}
            Run.objects.filter(pk=run.pk).update(**new)
            record_event("run described", run, member, old=old, new=new)
    for field, value in new.items():
        setattr(run, field, value)
