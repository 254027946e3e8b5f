"""Backup and restore: the same rows and files in an empty place, or nothing changed at all."""

import hashlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from django.utils import timezone

from annotation.jobs import job_queue
from operation import backups, databases
from operation.databases import BackupError
from tests.conftest import ON_POSTGRESQL
from tests.databases import (
    drop_postgresql,
    make_postgresql,
    make_sqlite,
    postgresql_template,
    sqlite_template,
)

ROOT = Path(__file__).resolve().parents[2]
# Each process has one, and it is no part of what was saved.
OF_THE_MOMENT = {"judging_worker"}


@dataclass(frozen=True)
class Place:
    """A database and a folder, as an installation has them."""

    url: str
    var: Path

    def manage(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.endswith("_URL")},
            "DATABASE_URL": self.url,
            "VAR_DIR": str(self.var),
            "SECRET_KEY": "x" * 50,
            "DJANGO_SUPERUSER_PASSWORD": "a-long-enough-password",
        }
        # Whether all pages can be imported is asked once, not by each of twenty programs.
        command = job_queue.manage_command(*words)
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)

    def did(self, *words: str) -> str:
        done = self.manage(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def digests(self) -> dict[str, str]:
        """The digest of all rows of each table, in an order that does not depend on the place."""
        with closing(self.connect()) as connection:
            tables = [row[0] for row in connection.execute(TABLES[self.kind]).fetchall()]
            return {
                table: digest(connection.execute(f'SELECT * FROM "{table}"').fetchall())
                for table in tables
                if table not in OF_THE_MOMENT
            }

    @property
    def kind(self) -> str:
        return urlsplit(self.url).scheme

    def run(self, statement: str) -> list[tuple[object, ...]]:
        """Rows of one statement, whose changes stay."""
        with closing(self.connect()) as connection, connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def connect(self) -> sqlite3.Connection | psycopg.Connection[tuple[object, ...]]:
        if self.kind == "sqlite":
            return sqlite3.connect(self.url.removeprefix("sqlite:///"))
        return psycopg.connect(self.url)


TABLES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name",
    "postgresql": "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1",
}


def digest(rows: list[tuple[object, ...]]) -> str:
    return hashlib.sha256("\n".join(sorted(map(repr, rows))).encode()).hexdigest()


Maker = Callable[..., Place]


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)]
)
def maker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Maker]:
    """Makes places, all on one kind of database: empty ones, or copies of one that is in use."""
    made: list[str] = []
    kind = request.param
    server = request.getfixturevalue("postgres_server") if kind == "postgresql" else ""

    def make(template: str = "") -> Place:
        var = tmp_path_factory.mktemp("var")
        if not server:
            path = var / "blindspot.sqlite3"
            if template:
                shutil.copyfile(template, path)
            return Place(f"sqlite:///{path}", var)
        made.append(f"blindspot_backup_{os.getpid()}_{len(made)}")
        return Place(make_postgresql(server, made[-1], template=template or "template1"), var)

    in_use = make(postgresql_template(server) if server else str(sqlite_template()))
    in_use.did("import_items", "examples/items.jsonl", "--project", "legs", "--create")
    in_use.did("createsuperuser", "--no-input", "--username", "admin", "--email", "a@b.example")

    def make_place(*, used: bool = False) -> Place:
        one = make(made[0] if server else in_use.url.removeprefix("sqlite:///")) if used else make()
        if used:
            (one.var / "archives").mkdir()
            (one.var / "archives" / "results-1.zip").write_bytes(b"frozen")
            (one.var / "exports").mkdir()
            (one.var / "exports" / "export-1.csv").write_bytes(b"made again")
        return one

    yield make_place
    for database in made:
        drop_postgresql(server, database)


def rewritten(source: Path, to: Path, parts: dict[str, bytes], **manifest: object) -> Path:
    """A backup with other parts, whose manifest is true of them, or with another manifest."""
    with zipfile.ZipFile(source) as archive:
        told = json.loads(archive.read("manifest.json")) | manifest
        kept = {name: archive.read(name) for name in told["parts"]} | parts
    said = {
        name: {"bytes": len(part), "sha256": hashlib.sha256(part).hexdigest()}
        for name, part in kept.items()
    }
    with zipfile.ZipFile(to, "w") as archive:
        for name, part in kept.items():
            archive.writestr(name, part)
        archive.writestr("manifest.json", json.dumps({**told, "parts": said}))
    return to


@pytest.mark.processes
def test_a_backup_brings_back_every_row_and_file_in_an_empty_place(
    maker: Maker, tmp_path: Path
) -> None:
    """Some ten seconds for each kind of database: seven commands, each a process of its own."""
    here, there, file = maker(used=True), maker(), tmp_path / "kept.zip"
    here.run(
        "INSERT INTO judging_worker"
        " (name, host, process, started_at, alive_until, slices, failures)"
        " VALUES ('one', 'here', 1, '2026-01-01', '2100-01-01', 0, 0)"
    )
    said = here.did("backup", str(file))
    assert "and 1 files" in said
    assert f"{file} contains " in there.did("restore", str(file), "--look")
    assert there.did("restore", str(file)).splitlines()[0].startswith(f"{file} restored: ")
    assert there.run("SELECT COUNT(*) FROM judging_worker") == [(0,)]
    assert there.digests() == here.digests()
    assert (there.var / "archives" / "results-1.zip").read_bytes() == b"frozen"
    assert not (there.var / "exports").exists()
    # Numbers that the database gives out go on behind those that are taken.
    more = ("import_items", "examples/items.jsonl", "--project", "more", "--create")
    assert there.did(*more) == here.did(*more)
    assert [*tmp_path.glob("*.part")] == []


@pytest.mark.processes
def test_what_is_there_is_lost_only_if_told_and_only_for_a_whole_backup(
    maker: Maker, tmp_path: Path
) -> None:
    """Some ten seconds for each kind of database: five commands, each a process of its own."""
    here, file = maker(used=True), tmp_path / "kept.zip"
    here.did("backup", str(file))
    here.did("import_items", "examples/items.jsonl", "--project", "later", "--create")
    later = here.digests()
    refused = here.manage("restore", str(file))
    assert (refused.returncode, "add --replace" in refused.stderr) == (1, True)
    with zipfile.ZipFile(file) as archive:
        whole = archive.read("database")
    half = rewritten(file, tmp_path / "half.zip", {"database": whole[: len(whole) * 2 // 3]})
    broken = here.manage("restore", str(half), "--replace")
    assert broken.returncode == 1
    assert "Traceback" not in broken.stderr
    assert here.digests() == later
    here.did("restore", str(file), "--replace")
    assert here.digests() != later


COOKIE = "the-key-of-a-session-0123456789ab"
SIGNED_IN = (
    f"INSERT INTO django_session VALUES ('{COOKIE}', 'what-it-holds', '2100-01-01')",
    "INSERT INTO usersessions_usersession"
    " (user_id, created_at, ip, last_seen_at, session_key, user_agent, data)"
    f" SELECT id, '2026-01-01', '10.0.0.1', '2026-01-01', '{COOKIE}', 'Fox', '{{}}'"
    " FROM annotation_account",
)
SESSIONS = ("django_session", "usersessions_usersession")


def written(place: Place, database: Path) -> bytes:
    """All that a database holds as it lies in a backup."""
    if place.kind == "sqlite":
        return database.read_bytes()
    command = ["pg_restore", "--file=-", str(database)]
    return subprocess.run(command, check=True, capture_output=True).stdout


@pytest.mark.processes
def test_a_backup_holds_no_session_and_none_comes_back_of_one_that_does(
    maker: Maker, tmp_path: Path
) -> None:
    """Some ten seconds for each kind of database: three commands, each a process of its own."""
    here, there, file = maker(used=True), maker(), tmp_path / "kept.zip"
    if here.kind == "sqlite":
        # Not every SQLite takes the bytes of what is deleted out of its pages.
        with closing(here.connect()) as connection, connection:
            connection.execute("PRAGMA secure_delete=OFF")
            ended = f"INSERT INTO django_session VALUES ('ended', '{COOKIE * 999}', '2100-01-01')"
            connection.execute(ended)
            connection.execute("DELETE FROM django_session")
    for statement in SIGNED_IN:
        here.run(statement)
    here.did("backup", str(file))
    assert [here.run(f"SELECT COUNT(*) FROM {table}") for table in SESSIONS] == [[(1,)]] * 2
    with zipfile.ZipFile(file) as archive:
        archive.extract("database", tmp_path)
    assert b"annotation_account" in written(here, tmp_path / "database")
    assert COOKIE.encode() not in written(here, tmp_path / "database")

    whole = copied(here, tmp_path / "whole")
    assert COOKIE.encode() in written(here, whole)
    tables = backups.verify_backup(file).tables | dict.fromkeys(SESSIONS, 1)
    older = rewritten(file, tmp_path / "older.zip", {"database": whole.read_bytes()}, tables=tables)
    there.did("restore", str(older))
    assert [there.run(f"SELECT COUNT(*) FROM {table}") for table in SESSIONS] == [[(0,)]] * 2


def copied(place: Place, to: Path) -> Path:
    """All of a database, as earlier programs wrote it."""
    if place.kind == "sqlite":
        with closing(place.connect()) as source, closing(sqlite3.connect(to)) as copy:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")
        return to
    options = ["--format=custom", "--no-owner", "--no-privileges", "--schema=public"]
    subprocess.run(["pg_dump", *options, f"--file={to}", place.url], check=True)
    return to


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small backup of SQLite, which lies in a folder among others that are saved."""
    folder = tmp_path_factory.mktemp("kept")
    one = Place(f"sqlite:///{folder}/var/data/blindspot.sqlite3", folder / "var")
    (one.var / "data").mkdir(parents=True)
    make_sqlite(one.var / "data" / "blindspot.sqlite3")
    (one.var / "data" / "blindspot.sqlite3-notes.txt").write_bytes(b"of a person")
    (one.var / "archives").mkdir()
    (one.var / "archives" / "results-1.zip").write_bytes(b"frozen")
    (one.var / "imports").mkdir()
    (one.var / "imports" / "import-1.zip").write_bytes(b"sealed")
    (one.var / "imports" / "import-1.password").write_bytes(b"what opens it")
    one.did("backup", str(folder / "kept.zip"))
    return folder / "kept.zip"


def test_a_database_without_tables_is_not_backed_up(tmp_path: Path) -> None:
    empty = Place(f"sqlite:///{tmp_path / 'empty.sqlite3'}", tmp_path / "var")
    done = empty.manage("backup", str(tmp_path / "empty.zip"))
    assert done.returncode == 1
    assert "has no tables, so there is nothing to back up" in done.stderr
    assert not (tmp_path / "empty.zip").exists()


def test_a_backup_is_for_who_made_it_alone(kept: Path) -> None:
    assert kept.stat().st_mode & 0o077 == 0


def test_a_backup_says_what_it_holds(kept: Path) -> None:
    found = backups.verify_backup(kept)
    assert found.database == "sqlite"
    assert found.tables["annotation_account"] == 0
    assert found.tables["django_migrations"] == len(found.migrations) > 20
    files = {"files/archives/results-1.zip", "files/imports/import-1.zip"}
    files.add("files/data/blindspot.sqlite3-notes.txt")
    assert set(found.parts) == {"database", *files}
    assert b"what opens it" not in kept.read_bytes()


@pytest.mark.parametrize(
    "name",
    [
        *("files/../../evil", "/etc/evil", "files/a/../../b", "files\\..\\evil", "evil", "files/x"),
        *("files/static/js/page.js", "files/exports/x.csv"),
    ],
)
def test_no_part_climbs_out_of_its_folder(kept: Path, tmp_path: Path, name: str) -> None:
    bad = rewritten(kept, tmp_path / "bad.zip", {name: b"evil"})
    with pytest.raises(BackupError, match="wrong name"):
        backups.verify_backup(bad)


def test_parts_are_those_that_the_backup_names_and_it_is_of_a_known_form(
    kept: Path, tmp_path: Path
) -> None:
    newer = rewritten(kept, tmp_path / "newer.zip", {}, form=backups.FORMAT_VERSION + 1)
    more = tmp_path / "more.zip"
    more.write_bytes(kept.read_bytes())
    with zipfile.ZipFile(more, "a") as archive:
        archive.writestr("files/archives/results-2.zip", b"not named")
    for bad in (newer, more):
        with pytest.raises(BackupError, match="does not contain the parts that it lists"):
            backups.verify_backup(bad)


def test_a_part_that_was_changed_is_told(kept: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.zip"
    with zipfile.ZipFile(kept) as archive, zipfile.ZipFile(bad, "w") as other:
        for name in archive.namelist():
            text = archive.read(name)
            other.writestr(name, b"thawed" if name.endswith("results-1.zip") else text)
    with pytest.raises(BackupError, match=r"results-1\.zip has changed since the backup"):
        backups.verify_backup(bad)


def test_a_packed_part_of_which_a_byte_changed_is_told(kept: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(kept) as archive:
        begins = archive.getinfo("database").header_offset + 200
    bad, whole = tmp_path / "bad.zip", kept.read_bytes()
    bad.write_bytes(whole[:begins] + b"\xff" * 60 + whole[begins + 60 :])
    with pytest.raises(BackupError, match=r"bad\.zip is"):
        backups.verify_backup(bad)


def test_a_backup_does_not_lie_among_what_it_saves(settings: Any, tmp_path: Path) -> None:
    settings.VAR_DIR = tmp_path
    (tmp_path / "backups").mkdir()
    for place in (tmp_path, tmp_path / "backups"):
        with pytest.raises(BackupError, match="outside"):
            backups.create_backup(place / "new.zip", now=timezone.now())


@pytest.mark.parametrize("text", [b"", b"not a zip", b"PK\x05\x06" + b"\0" * 18])
def test_what_is_no_backup_is_told(tmp_path: Path, text: bytes) -> None:
    bad = tmp_path / "bad.zip"
    bad.write_bytes(text)
    with pytest.raises(BackupError, match="is not a backup"):
        backups.verify_backup(bad)


@pytest.mark.skipif(ON_POSTGRESQL, reason="The backup is of SQLite.")
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ({"migrations": ["judging.9999_of_tomorrow"]}, "A newer version of the program"),
        ({"migrations": ["judging.0001_initial"]}, "made before version 0.2.0"),
        ({"database": "postgresql"}, "is for sqlite"),
    ],
)
def test_a_backup_that_does_not_fit_changes_nothing(
    kept: Path, tmp_path: Path, manifest: dict[str, object], words: str
) -> None:
    bad = rewritten(kept, tmp_path / "bad.zip", {}, **manifest)
    with pytest.raises(BackupError, match=words):
        backups.restore_backup(bad, replace=True)


def test_a_backup_whose_manifest_lies_about_its_rows_changes_nothing(
    maker: Maker, tmp_path: Path
) -> None:
    """Some seconds for each kind of database: three commands, each a process of its own."""
    place, saved = maker(used=True), tmp_path / "saved.zip"
    place.did("backup", str(saved))
    place.run("UPDATE annotation_account SET first_name = 'Later'")
    with zipfile.ZipFile(saved) as archive:
        tables = json.loads(archive.read("manifest.json"))["tables"]
    bad = rewritten(saved, tmp_path / "bad.zip", {}, tables=tables | {"annotation_account": 7})
    before = place.digests()
    done = place.manage("restore", str(bad), "--replace")
    assert done.returncode
    assert "not those that it lists" in done.stderr
    assert place.digests() == before


# Writes enough for three reads of the command, lets psql connect, then kills the command.
KILLER = f"""#!{sys.executable}
import os, signal, sys, time
sys.stdout.write("CREATE TABLE half (a int);" + " " * 3_500_000)
sys.stdout.flush()
time.sleep(2)
os.kill(os.getppid(), signal.SIGKILL)
"""
OTHERS = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@pytest.mark.postgresql
@pytest.mark.processes
def test_a_restore_that_is_killed_changes_nothing(
    postgres_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some seconds: two commands, each a process of its own."""
    name, saved = f"blindspot_killed_{os.getpid()}", tmp_path / "saved.zip"
    template = postgresql_template(postgres_server)
    place = Place(make_postgresql(postgres_server, name, template=template), tmp_path / "var")
    try:
        place.did("backup", str(saved))
        before = place.digests()
        program = tmp_path / "bin" / "pg_restore"
        program.parent.mkdir()
        program.write_text(KILLER)
        program.chmod(0o700)
        monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
        assert place.manage("restore", str(saved), "--replace").returncode == -signal.SIGKILL
        while place.run(OTHERS) != [(0,)]:
            time.sleep(0.05)
        assert place.digests() == before
    finally:
        drop_postgresql(postgres_server, name)


def test_programs_that_are_not_here_are_named_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BackupError, match="apt install postgresql-client"):
        databases._run("pg_dump")


def test_a_backup_does_not_write_over_a_file(tmp_path: Path) -> None:
    (tmp_path / "there.zip").write_text("mine")
    with pytest.raises(BackupError, match="already exists"):
        backups.create_backup(tmp_path / "there.zip", now=timezone.now())
    assert (tmp_path / "there.zip").read_text() == "mine"
