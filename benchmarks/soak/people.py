"""What people do during a trial: annotators, an adjudicator, a lead and a researcher.

Everything that the server acknowledges is noted, so that it can be compared with what is stored.
"""

import hashlib
import random
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from benchmarks.soak.journal import Caller, Reply

LABELLED, PRESSED, JUDGED = "soak", "pressure", "calls"
CHOICES = ("valid", "valid", "valid", "invalid", "score-invariant")
# Reservations in the trial last a minute; a label after that time is late.
LATE_SECONDS = 63.0
BOUNDARY = "soak-boundary"
ENDED = ("finished", "failed", "cancelled")


@dataclass(frozen=True)
class Trial:
    """When the trial is calm (people finish what they have begun) and when it is over."""

    calm: threading.Event
    over: threading.Event
    folder: Path
    cap: str


def submission_of(key: str) -> str:
    """The name under which the label of a page's key is stored."""
    return hashlib.sha256(key.encode()).hexdigest()


class ApiAnnotator:
    """An annotator with a program of their own."""

    def __init__(self, caller: Caller, trial: Trial, seed: int, *, late: bool = False) -> None:
        self.caller, self.trial, self.late = caller, trial, late
        self.chance = random.Random(seed)

    def work(self) -> None:
        """Label until the trial is calm."""
        share = 0.4
        while not self.trial.calm.is_set():
            slug = PRESSED if self.chance.random() < share else LABELLED
            offer = self.caller.ask("POST", f"/api/v1/projects/{slug}/queue/next/")
            if offer.status != 200 or "key" not in offer.body:
                share = 0.1 if offer.status == 200 and slug == PRESSED else share
                self.trial.calm.wait(0.3)
                continue
            if self.late:
                self.trial.calm.wait(LATE_SECONDS)
            else:
                self.trial.calm.wait(self.chance.uniform(0.05, 0.4))
            self._answer(slug, offer.body)

    def _answer(self, slug: str, offer: dict[str, Any]) -> None:
        dice, base = self.chance.random(), f"/api/v1/projects/{slug}/"
        shown = {name: offer[name] for name in ("key", "revision")} | {"item": offer["item"]["key"]}
        if dice < 0.03:
            done = self.caller.insist("POST", f"{base}queue/skip/", shown)
            self._note("skip", slug, shown, done, 204)
            return
        if dice < 0.06:
            corrected = self._correct(base, slug, shown)
            if corrected is None:
                return
            shown = corrected
        body = {**shown, "answers": {"choice": self.chance.choice(CHOICES)}, "seconds": 3}
        self.caller.journal.note(
            "sent", who=self.caller.name, submission=submission_of(shown["key"])
        )
        if self.chance.random() < 0.08:  # the same twice at once
            twin = threading.Thread(target=self._store, args=(base, slug, body, "twin"))
            twin.start()
        if self._store(base, slug, body, "label") != 201:
            return
        if self.chance.random() < 0.1:
            self._store(base, slug, body, "again")
        if self.chance.random() < 0.05:
            self._comment(base, shown["item"])
        if self.chance.random() < 0.03:
            done = self.caller.ask("POST", f"{base}undo/")
            self._note("undo", slug, shown, done, 200)

    def _store(self, base: str, slug: str, body: dict[str, Any], kind: str) -> int:
        insist = self.caller.ask if kind == "twin" else self.caller.insist
        done = insist("POST", f"{base}labels/", body)
        self._note(kind, slug, body, done, 201)
        return done.status

    def _note(self, kind: str, slug: str, sent: dict[str, Any], done: Reply, good: int) -> None:
        self.caller.journal.note(
            kind, who=self.caller.name, project=slug, item=sent["item"],
            submission=submission_of(sent["key"]), status=done.status, good=done.status == good,
        )  # fmt: skip

    def _correct(self, base: str, slug: str, shown: dict[str, Any]) -> dict[str, Any] | None:
        """Correct the text, and return what the new page shows; None if that was refused."""
        mark = f"corrected {self.chance.getrandbits(64):016x}"
        texts = {"perturbed": f"The river is north of the {mark} mill."}
        done = self.caller.insist("POST", f"{base}corrections/", {**shown, "texts": texts})
        good = done.status == 201
        self.caller.journal.note(
            "correction", who=self.caller.name, project=slug, item=shown["item"], mark=mark,
            status=done.status, good=good,
        )  # fmt: skip
        if not good:
            return None
        return {"key": done.body["key"], "revision": done.body["revision"], "item": shown["item"]}

    def _comment(self, base: str, item: str) -> None:
        mark = f"comment {self.chance.getrandbits(64):016x}"
        done = self.caller.insist(
            "POST", f"{base}comments/", {"item": item, "text": mark}, headers=once(mark)
        )
        self.caller.journal.note("comment", mark=mark, status=done.status, good=done.status == 201)


def once(key: str) -> dict[str, str]:
    """The header with which a repeated request is executed only once."""
    return {"Idempotency-Key": key}


class ScreenAnnotator:
    """An annotator with a browser without scripts: pages, forms and drafts."""

    def __init__(self, caller: Caller, trial: Trial, seed: int) -> None:
        self.caller, self.trial = caller, trial
        self.chance = random.Random(seed)

    def work(self) -> None:
        """Label until the trial is calm."""
        page = f"/projects/{LABELLED}/label/"
        while not self.trial.calm.is_set():
            shown = self.caller.ask("GET", page)
            fields = _read_form(shown)
            if fields is None:
                self.trial.calm.wait(1)
                continue
            self.trial.calm.wait(self.chance.uniform(0.2, 0.8))
            if self.chance.random() < 0.3:
                self._save_draft(page, fields)
                if self.chance.random() < 0.5:
                    continue  # the page is closed, and opened again
            answers = {"choice": self.chance.choice(CHOICES), "comment": "", "seconds": "2"}
            done = self._post(f"{page}submit/", fields | answers)
            self.caller.journal.note(
                "label", who=self.caller.name, project=LABELLED, item=fields["item"],
                submission=submission_of(fields["key"]), status=done.status,
                # A page without scripts is redirected to the next item.
                good=done.status == 302 and done.headers["Location"].startswith("/projects/"),
            )  # fmt: skip

    def _save_draft(self, page: str, fields: dict[str, str]) -> None:
        mark = f"draft {self.chance.getrandbits(64):016x}"
        body = {name: fields[name] for name in ("key", "item")}
        body |= {"revision": int(fields["revision"]), "data": {"comment": mark}}
        token = {"X-CSRFToken": fields["csrfmiddlewaretoken"]}
        done = self.caller.insist("POST", f"{page}draft/", body, headers=token)
        self.caller.journal.note(
            "draft", who=self.caller.name, item=fields["item"], mark=mark, status=done.status,
            good=done.status == 200 and done.body["kept"],
        )  # fmt: skip

    def _post(self, path: str, fields: dict[str, str]) -> Reply:
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.caller.insist("POST", path, urlencode(fields).encode(), headers=kind)


def _read_form(page: Reply) -> dict[str, str] | None:
    """The hidden fields of the label screen's form; None if the page shows no item."""
    if page.status != 200 or not isinstance(page.body, bytes):
        return None
    _, found, form = page.body.decode().partition('data-send="label"')
    names = ("csrfmiddlewaretoken", "key", "item", "revision")
    fields = {}
    for name in names if found else ():
        value = re.search(rf'name="{name}" value="([^"]*)"', form)
        if value is None:
            return None
        fields[name] = value[1]
    return fields or None


def adjudicate(caller: Caller, trial: Trial) -> None:
    """Decide the items on which annotators disagree."""
    slugs = cycle((LABELLED, PRESSED))
    while not trial.calm.is_set():
        base = f"/api/v1/projects/{next(slugs)}/adjudications/"
        case = caller.ask("POST", f"{base}next/", {})
        if case.status != 200 or "offer" not in case.body:
            trial.calm.wait(0.5)
            continue
        offer = case.body["offer"]
        shown = {"key": offer["key"], "revision": offer["revision"], "item": offer["item"]["key"]}
        why = {"why": "guidelines"} if case.body["disagree"] else {}
        done = caller.insist(
            "POST", f"{base}labels/", {**shown, **why, "answers": {"choice": "valid"}}
        )
        caller.journal.note(
            "decision", item=shown["item"], submission=submission_of(shown["key"]),
            status=done.status, good=done.status == 201, said=str(done.body)[:200],
        )  # fmt: skip
        trial.calm.wait(0.5)


def add_items(caller: Caller, trial: Trial) -> None:
    """Generate items, and import a file, again if it failed on a full disk."""
    base = f"/api/v1/projects/{LABELLED}/"
    asked = {"perturbers": ["spelling"], "limit": 150, "seed": "1"}
    _follow(caller, trial, f"{base}generations/", asked, "generation")
    number = 1
    while _import(caller, trial, base, number) == "failed" and not trial.calm.wait(5):
        number += 1


def export_again_and_again(caller: Caller, trial: Trial) -> None:
    """Export tables and make snapshots until the trial is calm."""
    base, number = f"/api/v1/projects/{LABELLED}/", 0
    chance = random.Random(5)
    while not trial.calm.is_set():
        number += 1
        table, form = chance.choice(
            [("labels", "csv"), ("items", "jsonl"), ("items", "csv"), ("labels", "parquet")]
        )
        _follow(caller, trial, f"{base}exports/", {"table": table, "format": form}, "export")
        if number % 3 == 0:
            _follow(caller, trial, f"{base}snapshots/", {"name": f"state {number}"}, "snapshot")
        trial.calm.wait(4)


def _import(caller: Caller, trial: Trial, base: str, time: int) -> str:
    """Import the file for this time; return the state of the import in the end, "" for none."""
    head = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="more.jsonl"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    content = (trial.folder / "import.jsonl").read_bytes()
    body = head.encode() + content + f"\r\n--{BOUNDARY}--\r\n".encode()
    kind = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    caller.journal.note("job sent", what="import")
    sent = caller.insist(
        "POST", f"{base}imports/", body, headers=kind | once(f"import {time}"), timeout=60
    )
    if sent.status != 201:
        caller.journal.note("job", what="import", number=0, state=f"refused {sent.status}")
        return ""
    number = sent.body["number"]
    path = f"{base}imports/{number}/"
    ready = _wait(caller, trial, path, lambda job: job["step"] == "ready" or job["state"] in ENDED)
    if ready and ready["step"] == "ready":
        caller.insist("POST", f"{path}start/")
    ended = _wait(caller, trial, path, lambda job: job["state"] in ENDED)
    caller.journal.note(
        "job", what="import", number=number, state=ended and ended["state"],
        said=ended and ended["message"],
    )  # fmt: skip
    return ended["state"] if ended else ""


def _follow(caller: Caller, trial: Trial, path: str, asked: dict[str, Any], what: str) -> None:
    """Start a job and wait for its end."""
    key = f"{what} {random.SystemRandom().getrandbits(64):016x}"
    caller.journal.note("job sent", what=what)
    sent = caller.insist("POST", path, asked, headers=once(key))
    if sent.status not in (201, 202):
        caller.journal.note(
            "job", what=what, number=0, state=f"refused {sent.status}", said=str(sent.body)[:200]
        )
        return
    number = sent.body["number"]
    ended = _wait(caller, trial, f"{path}{number}/", lambda job: _state(job) in ENDED)
    caller.journal.note(
        "job", what=what, number=number, state=ended and _state(ended),
        said=ended and ended.get("message"),
    )  # fmt: skip


def _state(job: dict[str, Any]) -> str:
    # A snapshot has no state, but the time at which it was complete.
    return job.get("state") or ("finished" if job.get("made_at") else "running")


def _wait(
    caller: Caller, trial: Trial, path: str, ended: Callable[[dict[str, Any]], bool]
) -> dict[str, Any] | None:
    while not trial.over.is_set():
        job = caller.ask("GET", path)
        if job.status == 200 and ended(job.body):
            found: dict[str, Any] = job.body
            return found
        trial.over.wait(1)
    return None


def researcher(caller: Caller, trial: Trial) -> None:
    """Start a run with a cap, raise the cap once it is reached, and wait for the end of the run."""
    base = f"/api/v1/projects/{JUDGED}/runs/"
    asked = {"strategy": "vanilla-score", "endpoint": "scripted", "seed": 1, "cap": trial.cap}
    sent = caller.insist("POST", base, asked, headers=once("run"))
    caller.journal.note("run", what="started", status=sent.status, said=str(sent.body)[:300])
    if sent.status != 201:
        return
    run = sent.body.get("run", sent.body)
    path = f"{base}{run['number']}/"
    while not trial.over.is_set():
        found = caller.ask("GET", path)
        if found.status == 200:
            run = found.body["run"]
            caller.journal.note("spent", cap=run["cap"], spent=run["spent"])
            if run["state"] in ("finished", "cancelled"):
                caller.journal.note("run", what=run["state"], said=run["reason"])
                return
            if run["state"] == "paused":
                raised = str(10 * Decimal(trial.cap))
                more = raised if "cap" in run["reason"] else run["cap"]
                caller.journal.note("run", what="paused", said=run["reason"])
                caller.insist("POST", f"{path}resume/", {"cap": more})
        trial.over.wait(1)
