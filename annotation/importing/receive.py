"""Receive an uploaded file: store it under a new name, detect its format, and inspect it.

Parquet files, workbooks and JSON lists are first converted by a separate process, within limits.
"""

import unicodedata
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePath
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile

from annotation import tasktypes
from annotation.db import transactions
from annotation.errors import FieldError
from annotation.importing import jobs, preview, upload_files
from annotation.importing.sources import Source
from annotation.items import taxonomy
from annotation.models import Job, Membership
from formats import bundles, unpacking
from formats.readers import FORMATS, find_format
from formats.rows import DEFAULT_LIMITS, FormatError

NAME_LENGTH = 120
# This many earlier imports are searched for one with the same columns.
MAX_EARLIER = 50


@dataclass(frozen=True)
class ItemUpload:
    """A file, its layout if the file name does not show it, and the password of an archive."""

    file: UploadedFile
    layout: str = ""
    password: str = ""


def receive_file(member: Membership, sent: ItemUpload, now: datetime) -> Job:
    """Store and inspect a file. A small file with known columns is also checked at once.

    Raises `FieldError` if the file cannot be read; nothing is stored then.
    """
    name = _display_name(sent.file)
    ending = _ending(name)
    note = ""
    with _temporary_file(sent.file, ending) as path:
        try:
            with preview.take_turn(name):
                if kind := unpacking.find_kind(path):
                    note = unpacking.unpack(path, kind, _rows_path(path, kind), DEFAULT_LIMITS)
                    path = _rows_path(path, kind)
                    ending = path.suffix
                form = _detect_format(path, sent)
                source = Source(path, form, password=sent.password)
                found = preview.detect_columns(source)
        except FormatError as error:
            message = str(error).replace(str(path), name).replace(path.name, name)
            raise FieldError(message, "file") from error
        task = tasktypes.load_version(member.project.task_type)
        told: dict[str, Any] = {
            "name": name,
            "ending": ending,
            "form": form,
            "bytes": sent.file.size,
            "note": note,
        }
        begun = _initial_columns(member, task, source, found)
        job = _move_into_place(member, path, {**told, "found": found, **begun}, sent.password, now)
    if not preview.missing_columns(task, source, begun["columns"]):
        jobs.choose_columns(job, begun["columns"], accept=begun["accept"])
    return job


def too_large_error(name: str = "The file") -> FieldError:
    """Return the error for a file that exceeds the size limit."""
    most = settings.IMPORT_BYTES // 1_000_000
    return FieldError(
        f"{name} is larger than {most:,} MB. Split it, or import it on the server with the command "
        "import_items.",
        "file",
    )


def _display_name(file: UploadedFile) -> str:
    """Return the name that the person gave the file, on one line and safe to display."""
    name = PurePath(str(file.name or "file")).name
    plain = "".join(one for one in name if unicodedata.category(one)[0] != "C")
    stem, ending = PurePath(plain).stem, PurePath(plain).suffix
    return f"{stem[:NAME_LENGTH]}{ending[:10]}" or "file"


def _ending(name: str) -> str:
    ending = PurePath(name).suffix.lower()
    if ending not in upload_files.list_suffixes():
        sheet = " Save the spreadsheet as XLSX or CSV." if ending in {".xls", ".ods"} else ""
        raise FieldError(
            f"The name of {name} does not end in any of "
            f"{', '.join(upload_files.list_suffixes())}.{sheet}",
            "file",
        )
    return ending


@contextmanager
def _temporary_file(file: UploadedFile, ending: str) -> Iterator[Path]:
    """Provide the file while it is inspected, and delete it afterwards unless it was moved."""
    if file.size and file.size > settings.IMPORT_BYTES:
        raise too_large_error()
    path = upload_files.uploads_folder() / f"coming-{uuid.uuid4()}{ending}"
    try:
        with path.open("wb") as stream:
            stream.writelines(file.chunks())
        yield path
    except OSError as error:
        raise FieldError(f"The file cannot be saved: {error.strerror}.", "file") from error
    finally:
        path.unlink(missing_ok=True)
        for kind in unpacking.CONVERTERS:
            _rows_path(path, kind).unlink(missing_ok=True)


def _rows_path(path: Path, kind: str) -> Path:
    """The path of what a file of this kind is converted to while it is inspected."""
    return path.with_suffix(f".rows{unpacking.CONVERTERS[kind][1]}")


def _detect_format(path: Path, sent: ItemUpload) -> str:
    if path.suffix != ".zip":
        if sent.password:
            raise FormatError("Only an archive (.zip) has a password. Leave the password empty.")
        of_lines = sent.layout == "realmistake" and find_format(path.name) == "jsonl"
        return sent.layout if of_lines else find_format(path.name)
    form = sent.layout or bundles.detect_layout(path, DEFAULT_LIMITS)
    if sent.password and not FORMATS[form].has_password:
        raise FormatError("An archive of this kind has no password. Leave the password empty.")
    return form


def _initial_columns(
    member: Membership, task: tasktypes.TaskType, source: Source, found: list[str]
) -> dict[str, Any]:
    """Return the initial choice of columns, and of categories for words: the choice for an earlier
    file with the same columns, otherwise a guess."""
    if FORMATS[source.form].is_fixed:
        return {"columns": {}, "accept": False, "step": upload_files.CHOOSE}
    guessed = preview.suggest_columns(task, found)
    for job in jobs.list_imports(member.project)[:MAX_EARLIER]:
        earlier = job.result
        if earlier["found"] == found and earlier["columns"].keys() == guessed.keys():
            kept = {name: earlier[name] for name in ("columns", "accept")}
            known = taxonomy.load_taxonomy(member.project)
            offered = {one.slug for one in known.offered}
            meant = {
                word: slug
                for word, slug in earlier.get("categories", {}).items()
                if slug in offered and known.find(known.category_called(word)) is None
            }
            return {**kept, "categories": meant, "step": upload_files.CHOOSE}
    return {"columns": guessed, "accept": False, "step": upload_files.CHOOSE}


def _move_into_place(
    member: Membership, path: Path, told: dict[str, Any], password: str, now: datetime
) -> Job:
    with transactions.transact():
        job = jobs.create_import(member, told, now)
        path.rename(upload_files.uploaded_path(job))
        if password:
            upload_files.save_password(job, password)
    return job
