"""How many of our modules and functions does each request use?

    python -m benchmarks.journeys [--list]

Each journey is repeated on its own data, in a temporary database, until templates, URLs and caches
are warm; then it is repeated once more and counted. A module counts if any of its code runs after
its import, including middleware and template tags; a function counts by its name, without lambdas
and comprehensions. The column "Besides" leaves out the modules that every page uses, that is, the
front page of a project and all journeys except that of the worker. Pages are requested by their
URLs, as a browser and its scripts do: a label is sent while the next item is already on the screen,
and the one after that is then fetched. The worker calls a scripted evaluator and is counted from
the first request that reaches it, when the run is planned and the first calls are leased, until all
outcomes are decided.

`--list` prints the modules of each journey, with "=" before those that every page uses.
"""

import argparse
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.workbench import scratch

ROOT = Path(__file__).resolve().parents[1]
OURS = (
    *("annotation", "judging", "config", "operation"),
    *("charts", "formats", "perturbers", "stats"),
)
# For two runs over this many items, a worker computes the figures, and they are cached.
MANY = 30_000
WARM_UPS = 2
# Seconds per call, so that a run takes long enough to include what a worker does every few seconds.
LATENCY = 0.15
SCRIPT, IS_HERE = {"HX-Request": "true"}, {"Label-Next": "here"}
EVERY, WORKER = "every page", "worker: leased request to outcome"


@dataclass
class Entered:
    """The modules and functions of ours that were used."""

    modules: set[str] = field(default_factory=set)
    functions: set[tuple[str, str]] = field(default_factory=set)

    def note(self, code: Any) -> None:
        name, inside = _module(code.co_filename), code.co_name
        if name and inside != "<module>":
            self.modules.add(name)
            if not inside.startswith("<"):
                self.functions.add((name, code.co_qualname))


def main() -> None:
    """Make every journey and print what it uses."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--list", action="store_true")
    names = options.parse_args().list
    os.environ["EVALUATOR_HOSTS"] = "127.0.0.1"
    with scratch.database("sqlite"):
        _fill()
        found = {**_pages(), WORKER: _asked_by_worker()}
    pages = [entered for journey, entered in found.items() if journey != WORKER]
    every = Entered(
        set.intersection(*(one.modules for one in pages)),
        set.intersection(*(one.functions for one in pages)),
    )
    _print({EVERY: every, **found}, every.modules, names=names)


# --------------------------------------------------------------------------------------- counting


def _module(path: str) -> str:
    """Return the path of one of our files, relative to the project's folder; "" for any
    other file.
    """
    if not path.startswith(f"{ROOT}{os.sep}"):
        return ""
    inside = Path(path).relative_to(ROOT)
    return inside.as_posix() if inside.parts[0] in OURS and "migrations" not in inside.parts else ""


@contextmanager
def counting(when: Callable[[], bool] = lambda: True, *, here: bool = True) -> Iterator[Entered]:
    """While `when` returns True, count the modules and functions used by threads that start
    meanwhile and, if `here`, by this thread."""
    entered = Entered()

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and when():
            entered.note(frame.f_code)

    threading.setprofile(watch)
    sys.setprofile(watch if here else None)
    try:
        yield entered
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


# --------------------------------------------------------------------------------------- journeys


def _fill() -> None:
    """Fill a project with many outcomes, and the demo project, which has items to label."""
    from django.core.management import call_command

    from benchmarks.workbench import judged

    judged.fill(MANY, 2)
    call_command("demo", stdout=StringIO())


def _pages() -> dict[str, Entered]:
    annotator, lead, researcher = map(_client, ("annotator", "lead", "researcher"))
    project = "/projects/demo/"
    screen, label, ahead = (f"{project}label/{step}" for step in ("", "submit/", "next/"))
    results = "/projects/bench/results/by-category/"
    shown = ""

    def show() -> None:
        nonlocal shown
        shown = _get(annotator, screen)

    def store(**headers: str) -> None:
        # As static/js/outbox.js sends a label.
        _check(annotator.post(label, _pressed(shown, label), headers=SCRIPT | headers), label)

    def bring() -> None:
        _get(annotator, ahead, **SCRIPT)

    def label_and_bring() -> None:
        store(**IS_HERE)
        bring()

    def show_and_bring() -> None:
        show()
        bring()

    def show_bring_and_label() -> None:
        show_and_bring()
        store(**IS_HERE)

    return {
        "front page of a project": _warm(lambda: _get(lead, project)),
        "label": _warm(lambda: store(**IS_HERE), before=show_and_bring),
        "next item": _warm(bring, before=show_bring_and_label),
        "label and next item": _warm(label_and_bring, before=show_and_bring),
        "label, answered by the next item": _warm(store, before=show),
        "label screen": _warm(show),
        "form of a new run": _warm(lambda: _get(lead, f"{project}runs/new/")),
        "results by category": _kept(lambda: _get(researcher, results)),
    }


def _kept(act: Callable[[], object]) -> Entered:
    """Return the modules and functions that `act` uses with figures already cached. A worker
    computes the figures at once, when the page first requests them.
    """
    from django.apps import apps

    from config import celery_app

    logging.getLogger("celery").setLevel(logging.WARNING)
    celery_app.conf.task_always_eager = True
    entered = _warm(act)
    celery_app.conf.task_always_eager = False
    if not apps.get_model("judging.StoredFigure").objects.exists():
        raise SystemExit("No figures were kept.")
    return entered


def _warm(act: Callable[[], object], before: Callable[[], object] = lambda: None) -> Entered:
    for _ in range(WARM_UPS):
        before()
        act()
    before()
    with counting() as entered:
        act()
    return entered


def _asked_by_worker() -> Entered:
    """Make two runs with different models, so that none of their requests was sent before."""
    from tests.services.scripted_evaluator import Script, running

    with running(Script(latency=LATENCY)) as evaluator:
        _ask(evaluator.address, "cold")
        before = len(evaluator.log)
        # What follows is part of the command: it prints the progress.
        with counting(lambda: len(evaluator.log) > before, here=False) as entered:
            _ask(evaluator.address, "warm")
    assert len(evaluator.log) == 2 * before, "the second run did not ask what the first one did"
    return entered


def _ask(address: str, model: str) -> None:
    """Run a strategy over all suitable items, with a worker in this process."""
    from django.apps import apps
    from django.core.management import call_command

    provider = {"provider": "openai_compatible", "address": address, "model": model}
    apps.get_model("judging.Endpoint").objects.create(name=model, in_flight=1, **provider)
    words = ("--project", "demo", "--strategy", "vanilla", "--endpoint", model, "--seed", "1")
    call_command("run_strategy", *words, "--wait", stdout=StringIO(), stderr=StringIO())


# --------------------------------------------------------------------------------------- a browser


def _client(name: str) -> Any:
    from django.contrib.auth import get_user_model
    from django.test import Client

    client = Client(headers={"Host": "127.0.0.1"})
    client.force_login(get_user_model().objects.get(username=name))
    return client


def _get(client: Any, path: str, **headers: str) -> str:
    answer = client.get(path, headers=headers)
    _check(answer, path)
    page: str = answer.content.decode()
    return page


def _check(answer: Any, path: str) -> None:
    if answer.status_code != 200:
        raise SystemExit(f"{path} answers with {answer.status_code}.")


class _Form(HTMLParser):
    """The hidden fields of the form for a URL, and its first button's name and value."""

    def __init__(self, action: str) -> None:
        super().__init__()
        self.action, self.is_inside, self.is_pressed = action, False, False
        self.fields: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.is_inside = given.get("action") == self.action
        is_button = tag == "button" and not self.is_pressed
        if self.is_inside and "name" in given and (given.get("type") == "hidden" or is_button):
            self.fields[given["name"]] = given.get("value", "")
            self.is_pressed |= tag == "button"


def _pressed(page: str, action: str) -> dict[str, str]:
    """Return the data that are sent when the first button of a form is pressed after four
    seconds.
    """
    form = _Form(action)
    form.feed(page)
    if not form.is_pressed:
        raise SystemExit(f"There is no button to press for {action}.")
    return form.fields | {"seconds": "4"}


# -------------------------------------------------------------------------------------- printing


def _print(found: dict[str, Entered], every: set[str], *, names: bool) -> None:
    print(f"{'journey':<36}{'modules':>9}{'functions':>11}{'besides':>9}")
    for journey, entered in found.items():
        besides = len(entered.modules - every)
        print(f"{journey:<36}{len(entered.modules):>9}{len(entered.functions):>11}{besides:>9}")
    for journey, entered in found.items() if names else ():
        print(f"\n{journey}")
        for module in sorted(entered.modules):
            print(f"  {'=' if module in every else ' '} {module}")


if __name__ == "__main__":
    main()
