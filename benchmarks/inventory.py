"""Everything that users and scripts rely on, one per line, so that `diff` can compare two versions.

    python -m benchmarks.inventory [--tests] > before.txt

The output is sorted, with a kind at the start of each line:

    route             pattern and name of every URL
    operation, parameter, answer, property, value      the API by its OpenAPI document
    command, option   every command of ours with its options and their choices
    table, column     the database
    stored            every choice of a column that has choices
    task              the names of the Celery tasks
    figures, export   the columns of every table of `results` and of `export`
    reads, writes     file formats
    strategy, task-type, provider                      what is shipped
    test              with `--tests`: the ids of the tests that `make test` runs

Everything is collected from what users can see: commands, documents, and files of an example
project in a temporary database. A name that no longer exists is an error.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

from benchmarks.workbench import scratch

ROOT = Path(__file__).resolve().parents[1]
DEMO, MADE = "demo", "made-{}"
# Commands whose options list what is available: kind, command, option.
CHOICES = (
    ("task-type", "make_project", "--task-type"),
    ("reads items", "import_items", "--format"),
    ("reads labels", "import_labels", "--format"),
    ("reads replies", "import_replies", "--format"),
    ("writes rows", "export", "--format"),
    ("writes figures", "results", "--format"),
)


def main() -> None:
    """Print every line once."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tests", action="store_true")
    with_tests = parser.parse_args().tests
    with scratch.database("sqlite"):
        lines = {*_routes(), *_api(), *_commands(), *_database(), *_tables(), *_shipped()}
        if with_tests:
            lines.update(_tests())
    print("\n".join(sorted(lines)))


# --------------------------------------------------------------------------------------- addresses


def _routes() -> Iterator[str]:
    from django.urls import get_resolver

    yield from _routes_of(get_resolver().url_patterns, "/", "")


def _routes_of(patterns: Iterable[Any], before: str, space: str) -> Iterator[str]:
    for one in patterns:
        address = before + str(one.pattern)
        if hasattr(one, "url_patterns"):
            inner = f"{space}{one.namespace}:" if one.namespace else space
            yield from _routes_of(one.url_patterns, address, inner)
        else:
            given = f" {one.default_args}" if one.default_args else ""
            yield f"route {address} {space}{one.name}{given}"


def _api() -> Iterator[str]:
    document = json.loads(_said("spectacular", "--format", "openapi-json"))
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield from _operation(f"{method.upper()} {path}", operation)
    for name, schema in document["components"]["schemas"].items():
        yield from _schema(name, schema)


def _operation(name: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"operation {name} {operation['operationId']}"
    for one in operation.get("parameters", ()):
        needed = " required" if one.get("required") else ""
        yield f"parameter {name} {one['in']} {one['name']}{needed}"
        yield from _schema(f"{name} {one['name']}", one["schema"])
    yield from _bodies(f"{name} body", operation.get("requestBody", {}))
    for status, answer in operation["responses"].items():
        yield f"answer {name} {status}"
        yield from _bodies(f"{name} {status}", answer)


def _bodies(name: str, holder: dict[str, Any]) -> Iterator[str]:
    for kind, body in holder.get("content", {}).items():
        yield from _schema(f"{name} {kind}", body.get("schema", {}))


def _schema(name: str, schema: dict[str, Any]) -> Iterator[str]:
    """Yield the properties of a schema, as `name.property[].property type`, and the values of
    enums.
    """
    kind = schema.get("$ref", "").rpartition("/")[2] or schema.get("type", "")
    yield f"property {name} {kind if isinstance(kind, str) else '|'.join(kind)}".strip()
    for value in schema.get("enum", ()):
        yield f"value {name}={json.dumps(value)}"
    for inner, found in schema.get("properties", {}).items():
        needed = "" if inner in schema.get("required", ()) else "?"
        yield from _schema(f"{name}.{inner}{needed}", found)
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            yield from _schema(f"{name}[]", schema[inner])
    for several in ("allOf", "oneOf", "anyOf"):
        for one in schema.get(several, ()):
            yield from _schema(name, one)


# ---------------------------------------------------------------------------------------- commands


@cache
def _parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of our commands by name of the command."""
    from django.core.management import get_commands, load_command_class

    found: dict[str, argparse.ArgumentParser] = {}
    for name, app in get_commands().items():
        command = load_command_class(app, name) if isinstance(app, str) else app
        place = Path(str(sys.modules[type(command).__module__].__file__))
        if place.is_relative_to(ROOT) and ".venv" not in place.parts:
            found[name] = command.create_parser("manage.py", name)
    return found


def _commands() -> Iterator[str]:
    from django.core.management.base import BaseCommand

    common = {words for words, _ in _options_of(BaseCommand().create_parser("manage.py", "x"))}
    for name, parser in _parsers().items():
        yield f"command {name}"
        for words, action in _options_of(parser):
            if words in common:
                continue
            needed = " required" if action.required else ""
            several = f" {action.nargs}" if action.nargs is not None else ""
            yield f"option {name} {words}{several}{needed}"
            for choice in action.choices or ():
                yield f"option {name} {words}={choice}"


def _options_of(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
    for action in parser._actions:
        yield "|".join(action.option_strings) or action.dest, action
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                for words, one in _options_of(inner):
                    yield f"{name} {words}", one


def _choices(command: str, option: str) -> list[str]:
    for words, action in _options_of(_parsers()[command]):
        if words == option and action.choices:
            return [str(choice) for choice in action.choices]
    raise SystemExit(f"{command} has no {option} that is one of several.")


def _said(*words: str) -> str:
    """Capture the output of a command."""
    from django.core.management import call_command

    said = StringIO()
    with redirect_stdout(said):
        call_command(*words, stdout=said, stderr=StringIO())
    return said.getvalue()


# ---------------------------------------------------------------------------------------- database


def _database() -> Iterator[str]:
    from django.apps import apps
    from django.db import connection

    from config import celery_app

    look = connection.introspection
    with connection.cursor() as cursor:
        for table in look.table_names(cursor):
            yield f"table {table}"
            for one in look.get_table_description(cursor, table):
                null = " null" if one.null_ok else ""
                yield f"column {table}.{one.name} {one.type_code}{null}"
    for model in apps.get_models():
        for field in model._meta.concrete_fields:
            for value, _ in field.flatchoices:
                yield f"stored {model._meta.db_table}.{field.column}={value}"
    yield from (f"task {name}" for name in celery_app.tasks if not name.startswith("celery."))


# ------------------------------------------------------------------------------------------ tables


def _tables() -> Iterator[str]:
    """Yield the columns in a project's files. The columns of exports depend on the task type."""
    _said("demo")
    for table in _choices("results", "table"):
        if table == "methods":  # a text
            continue
        said = _said("results", table, "--project", DEMO, "--format", "csv", "--by", "")
        yield from (f"figures {table}.{column}" for column in _header(said))
    projects = [DEMO]
    for task_type in _choices("make_project", "--task-type"):
        projects.append(MADE.format(task_type))
        _said("make_project", projects[-1], "--task-type", task_type)
    with tempfile.TemporaryDirectory(prefix="blindspot-bench-") as folder:
        file = Path(folder) / "table.csv"
        for table in _choices("export", "table"):
            for project in projects:
                words = ("--project", project, "--format", "csv", "--output", str(file))
                _said("export", table, *words)
                columns = _header(file.read_text("utf-8-sig"))
                yield from (f"export {table}.{column}" for column in columns)


def _header(text: str) -> list[str]:
    return next(csv.reader(StringIO(text)))


def _shipped() -> Iterator[str]:
    from django.apps import apps
    from django.contrib.auth import get_user_model
    from django.test import Client

    for kind, command, option in CHOICES:
        yield from (f"{kind} {choice}" for choice in _choices(command, option))
    endpoint = apps.get_model("judging.Endpoint")
    yield from (f"provider {name}" for name, _ in endpoint._meta.get_field("provider").flatchoices)
    client = Client(headers={"Host": "127.0.0.1"})
    client.force_login(get_user_model().objects.get(username="lead"))
    answer = client.get(f"/api/v1/projects/{DEMO}/strategies/?limit=1000").json()
    found = answer["results"] if isinstance(answer, dict) else answer
    yield from (f"strategy {one['slug']}" for one in found)


# ------------------------------------------------------------------------------------------- tests


def _tests() -> Iterator[str]:
    # Tests have their own settings.
    ours = {"DATABASE_URL", "SECRET_KEY", "API_PER_MINUTE"}
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    environment["HYPOTHESIS_STORAGE_DIRECTORY"] = environment["VAR_DIR"]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0"]
    command += ["-p", "no:cacheprovider"]
    collected = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    if collected.returncode:
        raise SystemExit(collected.stdout[-2000:])
    yield from (f"test {line}" for line in collected.stdout.splitlines() if "::" in line)


if __name__ == "__main__":
    main()
