"""Backups. A backup is one zip with the database, the files that cannot be created again, and a
manifest.

The manifest has the time of the backup, the program version, the number of rows of each table, and
the digest of every part. A backup leaves out data that can be created again (collected static
files, exports) and Redis, which has no permanent data. It also leaves out credentials: sessions,
passwords of archives that are being imported, and the embedded default's SECRET_KEY.
"""

import hashlib
import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import IO, Any

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from annotation.db import clock
from annotation.importing.upload_files import PASSWORD_SUFFIX
from annotation.models import Account, Project
from formats.archives import DAMAGED_ERRORS
from judging.archive.versions import program_version
from judging.models import Worker
from operation import databases, former_databases
from operation.databases import BackupError

FORMAT_VERSION = 1
MANIFEST_NAME, DATABASE_NAME, FILES_FOLDER = "manifest.json", "database", "files"
EXCLUDED_FOLDERS = frozenset({"static", "exports", "metrics", "scratch"})
# Rows that are valid only on this installation at the time of the backup: active workers and
# sessions.
TRANSIENT_MODELS: tuple[type[Any], ...] = (Worker, Session, UserSession)
CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Manifest:
    """The manifest of a backup. `parts` has the size and the SHA-256 of each file in the backup."""

    form: int
    made: str
    program: str
    database: str
    migrations: list[str]
    tables: dict[str, int]
    parts: dict[str, dict[str, Any]]

    @property
    def rows(self) -> int:
        """The number of rows in all tables together."""
        return sum(self.tables.values())


def create_backup(to: Path, *, now: datetime) -> Manifest:
    """Write a backup while people keep working. The file only appears once it is complete.

    Raises BackupError if the file exists already, or if it is in a folder that the backup includes.
    """
    if to.exists():
        raise BackupError(f"{to} already exists. Choose another file.")
    if to.resolve().is_relative_to(settings.VAR_DIR.resolve()):
        raise BackupError(
            f"{to} would become part of the backup. Choose a file outside {settings.VAR_DIR}."
        )
    part = to.with_name(to.name + ".part")
    try:
        with tempfile.TemporaryDirectory(dir=to.parent) as folder:
            dumped = Path(folder) / DATABASE_NAME
            emptied = [model._meta.db_table for model in TRANSIENT_MODELS]
            tables = databases.dump_database(dumped, emptied=emptied)
            if not tables:
                raise BackupError(
                    f"The database {connection.settings_dict['NAME']} has no tables, so there is "
                    "nothing to back up. Set DATABASE_URL and VAR_DIR as for the server."
                )
            part.touch(mode=0o600)  # it contains all data, including password hashes
            with zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive:
                parts = {DATABASE_NAME: _add_file(archive, DATABASE_NAME, dumped)}
                parts |= {name: _add_file(archive, name, path) for name, path in _files()}
                manifest = Manifest(
                    form=FORMAT_VERSION,
                    made=now.isoformat(timespec="seconds"),
                    program=program_version(),
                    database=connection.vendor,
                    migrations=_applied_migrations(),
                    tables=tables,
                    parts=parts,
                )
                archive.writestr(MANIFEST_NAME, json.dumps(asdict(manifest), indent=1))
        part.replace(to)
    finally:
        part.unlink(missing_ok=True)
    return manifest


def verify_backup(source: Path) -> Manifest:
    """Return the manifest of a backup after checking every digest. Raises BackupError if a digest
    differs."""
    try:
        with zipfile.ZipFile(source) as archive:
            manifest = Manifest(**json.loads(archive.read(MANIFEST_NAME)))
            names = set(archive.namelist()) - {MANIFEST_NAME}
            if names != set(manifest.parts) or manifest.form != FORMAT_VERSION:
                raise BackupError(f"{source} does not contain the parts that it lists.")
            for name, said in manifest.parts.items():
                _check_name(name)
                with archive.open(name) as stream:
                    if _digest(stream) != said["sha256"]:
                        raise BackupError(
                            f"{source} is damaged: {name} has changed since the backup."
                        )
    except (*DAMAGED_ERRORS, AttributeError, KeyError, TypeError) as error:
        raise BackupError(f"{source} is not a backup, or is incomplete.") from error
    return manifest


def restore_backup(source: Path, *, replace: bool = False) -> Manifest:
    """Replace the current data with a backup, or change nothing and raise BackupError.

    The database must be empty unless `replace` is true, and nobody may be using it. Afterwards the
    tables are those of the backup; `migrate` updates them.
    """
    manifest = verify_backup(source)
    _check_compatible(manifest)
    _check_unused(replace)
    with tempfile.TemporaryDirectory(dir=settings.VAR_DIR) as folder:
        with zipfile.ZipFile(source) as archive:
            for name in manifest.parts:
                archive.extract(name, folder)
        databases.load_dump(Path(folder) / DATABASE_NAME, manifest.tables)
        _restore_files(Path(folder) / FILES_FOLDER)
    # Backups of earlier versions include these rows.
    for model in TRANSIENT_MODELS:
        if model._meta.db_table in manifest.tables:
            model.objects.all().delete()
    return manifest


def _files() -> Iterator[tuple[str, Path]]:
    for folder in sorted(settings.VAR_DIR.iterdir()):
        if not folder.is_dir() or folder.name in EXCLUDED_FOLDERS:
            continue
        for path in sorted(folder.rglob("*")):
            left_out = path.is_symlink() or path.suffix == PASSWORD_SUFFIX or _is_database(path)
            if path.is_file() and not left_out:
                yield f"{FILES_FOLDER}/{path.relative_to(settings.VAR_DIR).as_posix()}", path


def _is_database(path: Path) -> bool:
    """True if a file is the SQLite database or one of its side files."""
    own = Path(connection.settings_dict["NAME"]).resolve()
    beside = {own.with_name(own.name + ending) for ending in ("", "-journal", "-shm", "-wal")}
    return connection.vendor == "sqlite" and path.resolve() in beside


def _add_file(archive: zipfile.ZipFile, name: str, path: Path) -> dict[str, Any]:
    """Add a file to the archive and record its size and digest."""
    digest, size = hashlib.sha256(), 0
    entry = zipfile.ZipInfo.from_file(path, name)
    # PostgreSQL's dump is already compressed.
    packed = name == DATABASE_NAME and connection.vendor == "sqlite"
    entry.compress_type = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with path.open("rb") as stream, archive.open(entry, "w", force_zip64=True) as into:
        while part := stream.read(CHUNK_BYTES):
            into.write(part)
            digest.update(part)
            size += len(part)
    return {"bytes": size, "sha256": digest.hexdigest()}


def _digest(stream: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while part := stream.read(CHUNK_BYTES):
        digest.update(part)
    return digest.hexdigest()


def _check_name(name: str) -> None:
    """Raise BackupError if the path of a part is outside the folders of a backup, or in a folder
    that backups leave out, such as that of the scripts that pages load."""
    path = PurePosixPath(name)
    inside = path.parts[:1] == (FILES_FOLDER,) and len(path.parts) > 2 and ".." not in path.parts
    inside = inside and path.parts[1] not in EXCLUDED_FOLDERS
    if name != DATABASE_NAME and not (inside and "\\" not in name and path.as_posix() == name):
        raise BackupError(f"This backup contains a part with a wrong name: {name[:200]!r}.")


def _applied_migrations() -> list[str]:
    found = MigrationRecorder(connection).applied_migrations()
    return sorted(".".join(one) for one in found)


def _check_compatible(manifest: Manifest) -> None:
    if manifest.database != connection.vendor:
        raise BackupError(
            f"This backup is from {manifest.database}, but DATABASE_URL is for "
            f"{connection.vendor}. Restore it into the same kind of database."
        )
    applied = {(app, name) for app, _, name in (one.partition(".") for one in manifest.migrations)}
    if former := former_databases.find_missing(applied):
        raise BackupError(
            "This backup was made before version 0.2.0 by a database without the last migrations "
            f"of that time ({former[0]}). Restore it with the last commit before 0.2.0, run "
            "`python manage.py migrate` there, and back up again."
        )
    replaced = chain.from_iterable(former_databases.list_replaced().values())
    known = {*MigrationLoader(None).graph.nodes, *replaced}
    newer = sorted(".".join(one) for one in applied - known)
    if newer:
        raise BackupError(
            f"A newer version of the program made this backup (it has {newer[-1]}). Update the "
            "program first."
        )


def _check_unused(replace: bool) -> None:
    there = set(databases.list_tables())
    used = Account._meta.db_table in there and (
        Account.objects.exists() or Project.objects.exists()
    )
    if used and not replace:
        raise BackupError(
            "This database contains accounts or projects. Restore into an empty one, or add "
            "--replace to delete what is in it."
        )
    at_work = databases.count_other_connections()
    if Worker._meta.db_table in there:
        at_work = max(at_work, Worker.objects.alive(clock.now()).count())
    if at_work:
        raise BackupError(
            f"{at_work} other connections use this database. Stop servers and workers."
        )


def _restore_files(folder: Path) -> None:
    """Move the files into place and replace existing ones. Other files stay, but no row refers to
    them any more."""
    for path in sorted(folder.rglob("*")) if folder.exists() else []:
        if path.is_file():
            to = settings.VAR_DIR / path.relative_to(folder)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(path, to)
