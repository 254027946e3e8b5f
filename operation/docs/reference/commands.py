"""The page of the commands, from the parsers of their arguments."""

import re
from argparse import SUPPRESS, Action, ArgumentParser, _ArgumentGroup
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand

from operation.docs.pages import make_anchor
from operation.docs.reference import markdown
from operation.docs.reference.markdown import code, codes, plain

_APPS = {
    "annotation": "Projects, items and labels",
    "judging": "Evaluators, runs and results",
    "operation": "The installation",
}
# More choices than this are listed below the table.
_FEW_CHOICES = 15


def write_page() -> str:
    """The page as Markdown."""
    return markdown.page(
        "Commands",
        "The commands of Blindspot with all their arguments and options; `--help` shows the same "
        "in the terminal. Run `manage.py` with `.venv/bin/python`, or after `. .venv/bin/activate` "
        "with `python`. Words in capitals stand for values, and dots for several of them. Each "
        "command also has Django's options, such as `--verbosity` and `--traceback`.",
        *(part for app, title in _APPS.items() for part in _app(app, title)),
    )


def load_own_commands() -> dict[str, BaseCommand]:
    """The commands of this project by name, sorted."""
    return {
        name: load_command_class(app, name)
        for name, app in sorted(get_commands().items())
        if app in _APPS
    }


def list_own_arguments(command: BaseCommand, name: str) -> list[tuple[str, list[Action]]]:
    """The arguments and options of a command without those that every command has, by group. The
    two usual groups have no title."""
    parser = command.create_parser("manage.py", name)
    usual = {one.dest for one in BaseCommand().create_parser("manage.py", name)._actions}
    found = [
        (
            _group_title(parser, group),
            [one for one in group._group_actions if one.dest not in usual],
        )
        for group in parser._action_groups
    ]
    return [(title, actions) for title, actions in found if actions]


def _group_title(parser: ArgumentParser, group: _ArgumentGroup) -> str:
    is_usual = group in (parser._positionals, parser._optionals)
    return "" if is_usual else group.title or ""


def _app(app: str, title: str) -> Iterator[str]:
    own = {name: one for name, one in load_own_commands().items() if get_commands()[name] == app}
    yield f"## {title}"
    yield markdown.table(
        ("command", "what it does"),
        (
            (f"[{code(name)}](#{make_anchor(name)})", plain(re.split(r"[.;:](?: |$)", one.help)[0]))
            for name, one in own.items()
        ),
    )
    for name, command in own.items():
        yield from _command(name, command)


def _command(name: str, command: BaseCommand) -> Iterator[str]:
    yield f"### {code(name)}"
    yield plain(command.help)
    groups = list_own_arguments(command, name)
    every = [one for _, actions in groups for one in actions]
    needed = [one for one in every if one.required or not one.option_strings]
    words = [_usage(one) for one in needed] + ["[OPTIONS]"] * (len(needed) < len(every))
    yield markdown.fence(" ".join(["manage.py", name, *words]))
    usual = [one for title, actions in groups if not title for one in actions]
    yield markdown.table(("argument", "meaning"), map(_row, usual))
    for title, actions in groups:
        if title:
            yield f"Options: {title}"
            yield markdown.table(("option", "meaning"), map(_row, actions))
    for one in every:
        if one.choices is not None and len(list(one.choices)) > _FEW_CHOICES:
            yield f"{code(_name(one))} is one of {codes(one.choices)}."


def _usage(action: Action) -> str:
    if action.option_strings:
        return _words(action, action.option_strings[-1])
    return _words(action, "") if action.required else f"[{_words(action, '')}]"


def _words(action: Action, option: str) -> str:
    """An option with its value, or the value of an argument."""
    if action.nargs == 0:
        return option
    value = action.metavar or action.dest.upper()
    return f"{option} {value}{' ...' if action.nargs == '+' else ''}".strip()


def _name(action: Action) -> str:
    return action.option_strings[-1] if action.option_strings else _words(action, "").split()[0]


def _row(action: Action) -> tuple[str, str]:
    *short, long = action.option_strings or [""]
    name = codes([*short, _words(action, long)])
    said = [plain(action.help or ""), _choices(action), _default(action)]
    if action.required and action.option_strings:
        said.append("required")
    return name, "; ".join(one.rstrip(".") for one in said if one)


def _choices(action: Action) -> str:
    named = list(action.choices or ())
    said = action.help or ""
    if not named or all(str(one) in said for one in named):
        return ""
    if len(named) > _FEW_CHOICES:
        return "one of those below"
    return codes(named) if len(named) == 1 else f"one of {codes(named)}"


def _default(action: Action) -> str:
    value = action.default
    # 0 and 1 are equal to False and True, and are values to name.
    if isinstance(value, bool | list) or value in (None, "", SUPPRESS):
        return ""
    if "default" in (action.help or "").lower():
        return ""
    if isinstance(value, Path) and value.is_relative_to(settings.BASE_DIR):
        value = value.relative_to(settings.BASE_DIR)
    return f"default: {code(value)}"
