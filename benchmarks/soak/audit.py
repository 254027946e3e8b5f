"""Compare what clients were told with what is stored, and what the evaluator was asked with the
replies."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

from django.db.models import Count, F, Max, Q, Sum

from annotation.models import Comment, Draft, Item, Job, Label, Mark, Revision, Slot, Snapshot
from benchmarks.soak.journal import Journal
from benchmarks.soak.people import JUDGED, LABELLED, PRESSED
from judging.models import Outcome, Reply, Request, Run
from operation.integrity import CHECKS
from operation.integrity.checks import run_checks

# Requests that a killed worker had asked, but whose reply it had not stored yet.
KILLS = ("kill a worker", "kill another worker", "kill the server")
DATABASE_FAULTS = ("crash PostgreSQL", "cut the database connections")
# Seconds: how far clocks may be apart, how long the database may be away after a fault, and how
# long before a kill an answer may have come.
SLACK, AWAY_SECONDS, EXPLAINED_SECONDS = 0.05, 15.0, 5.0
# Each comes with some labels in a hundred, so among so many there are some of each.
MANY_LABELS, BESIDE_LABELS = 400, ("skip", "undo", "comment", "correction", "draft")
ENDED = (Job.State.FINISHED, Job.State.FAILED, Job.State.CANCELLED)


@dataclass(frozen=True)
class Line:
    """A line of the final table. `wrong` is a number that must be 0, or None if nothing is
    asserted."""

    name: str
    told: str
    wrong: int | None = None


def audit(journal: Journal, evaluator_log: Path, cap: Decimal) -> Iterator[Line]:
    """Yield the lines of the table."""
    yield from _events(journal)
    yield from _labels(journal)
    yield from _other_writing(journal)
    yield from _jobs(journal)
    yield from _run(journal, evaluator_log, cap)
    yield from _answers(journal)
    yield from _what_did_not_happen(journal)
    broken = [result for result in run_checks(CHECKS.values()) if result.count]
    for result in broken:
        rows = [dict(breach) for breach in result.breaches[:3]]
        yield Line(f"rule {result.check.name} broken", f"{result.count}: {rows}")
    yield Line("rules of `verify` that are broken", f"{len(broken)} of {len(CHECKS)}", len(broken))


def _events(journal: Journal) -> Iterator[Line]:
    faults = Counter(note["what"] for note in journal.all("fault") if not note["failed"])
    yield Line("faults", ", ".join(f"{n} × {what}" for what, n in sorted(faults.items())))


def _what_did_not_happen(journal: Journal) -> Iterator[Line]:
    """A trial in which too little happened proves nothing."""
    states = Counter((note["what"], note["state"]) for note in journal.all("job"))
    happened = {
        "faults": len(journal.all("fault")),
        "imports that finished": states["import", "finished"],
        "exports that finished": states["export", "finished"],
        "pauses by the cap": len(_pauses(journal, by_cap=True)),
        "acknowledged: label": (labels := _count_good(journal, "label")),
    }
    if labels >= MANY_LABELS:
        happened |= {f"acknowledged: {kind}": _count_good(journal, kind) for kind in BESIDE_LABELS}
    for name, number in happened.items():
        if not number:
            yield Line(f"did not happen: {name}", "0", 1)
    for note in journal.all("crash"):
        yield Line(f"{note['who']} stopped with an error", note["said"], 1)


def _count_good(journal: Journal, kind: str) -> int:
    return sum(note["good"] for note in journal.all(kind))


def _pauses(journal: Journal, *, by_cap: bool) -> list[str]:
    paused = [note["said"] for note in journal.all("run") if note["what"] == "paused"]
    return [said for said in paused if ("cap" in said) == by_cap]


def _labels(journal: Journal) -> Iterator[Line]:
    notes = journal.all("label", "twin", "again")
    told = {note["submission"] for note in notes if note["good"]}
    sent = {note["submission"] for note in journal.all("sent", "label")}
    stored = set(Label.objects.values_list("submission", flat=True))
    yield Line("labels", f"{len(sent):,} sent, {len(told):,} acknowledged, {len(stored):,} stored")
    yield Line("labels lost (acknowledged, not stored)", str(n := len(told - stored)), n)
    yield Line(
        "labels stored that nobody sent", str(n := len(stored - sent - _decided(journal))), n
    )
    current = Label.objects.filter(current=True).order_by()
    doubled = current.values("item", "stage", "member").annotate(n=Count("pk")).filter(n__gt=1)
    # The database refuses both this and two replies to one request.
    yield Line("labels doubled (two by one person)", str(n := doubled.count()), n)
    counted = Label.objects.counted().at_stage("label").order_by()
    per_item = counted.values("item").annotate(n=Count("pk"), k=Max("item__project__overlap"))
    over = per_item.filter(n__gt=F("k")).count()
    full = per_item.filter(item__project__slug=PRESSED, n=F("k")).count()
    yield Line("items over their number of annotators", str(over), over)
    yield Line("items with all labels under pressure", f"{full} of 60 with 3 annotators each")
    extra = Label.objects.filter(current=True, counted=False).count()
    yield Line("late labels kept as extra", str(extra))
    filled = Slot.objects.filter(state="filled", labels__isnull=True).count()
    yield Line("filled slots without a label", str(filled), filled)


def _decided(journal: Journal) -> set[str]:
    return {note["submission"] for note in journal.all("decision")}


def _other_writing(journal: Journal) -> Iterator[Line]:
    undone = {note["submission"] for note in journal.all("undo") if note["good"]}
    withdrawn = set(Label.objects.exclude(withdrawn_at=None).values_list("submission", flat=True))
    yield Line("undos lost", f"{(n := len(undone - withdrawn))} of {len(undone)}", n)
    decided = {note["submission"] for note in journal.all("decision") if note["good"]}
    stored = set(Label.objects.filter(stage="adjudicate").values_list("submission", flat=True))
    yield Line("decisions lost", f"{(n := len(decided - stored))} of {len(decided)}", n)
    comments = Counter(Comment.objects.values_list("text", flat=True))
    yield from _once("comments", [note["mark"] for note in journal.all("comment") if note["good"]],
                     comments)  # fmt: skip
    marks = [note["mark"] for note in journal.all("correction") if note["good"]]
    texts = Revision.objects.filter(number__gt=1).values_list("texts", flat=True)
    corrected = Counter(mark for text in texts for mark in marks if mark in str(text))
    yield from _once("corrections", marks, corrected)
    skipped = [(note["who"], note["item"]) for note in journal.all("skip") if note["good"]]
    kept = set(Mark.objects.filter(kind="skip").values_list("member__alias", "item__key"))
    yield Line("skips lost", f"{(n := len(set(skipped) - kept))} of {len(skipped)}", n)
    yield from _drafts(journal)


def _once(what: str, told: list[str], stored: Counter[str]) -> Iterator[Line]:
    lost, doubled = sum(not stored[mark] for mark in told), sum(stored[mark] > 1 for mark in told)
    yield Line(f"{what} lost", f"{lost} of {len(told)}", lost)
    yield Line(f"{what} doubled", str(doubled), doubled)


def _drafts(journal: Journal) -> Iterator[Line]:
    """A draft stays until the person labels the item, or saves a later draft of it."""
    notes = journal.all("draft", "label")
    last: dict[tuple[str, str], dict[str, Any]] = {}
    for note in notes:
        if note["good"]:
            last[note["who"], note["item"]] = note
    open_drafts = {place: note for place, note in last.items() if note["kind"] == "draft"}
    kept = {
        (alias, key): str(data)
        for alias, key, data in Draft.objects.values_list("member__alias", "item__key", "data")
    }
    # A label whose answer did not arrive may be stored all the same, and ends the draft.
    labelled = set(Label.objects.values_list("member__alias", "item__key"))
    lost = [
        place
        for place, note in open_drafts.items()
        if note["mark"] not in kept.get(place, "") and place not in labelled
    ]
    yield Line("drafts lost", f"{len(lost)} of {len(open_drafts)} open ones", len(lost))


def _jobs(journal: Journal) -> Iterator[Line]:
    ended = Counter((note["what"], str(note["state"])) for note in journal.all("job"))
    yield Line(
        "jobs", ", ".join(f"{n} × {what} {state}" for (what, state), n in sorted(ended.items()))
    )
    failed = Counter(str(note["said"]) for note in journal.all("job") if note["state"] == "failed")
    for said, n in sorted(failed.items()):
        yield Line("jobs that failed", f"{n} × {said}")
    for what in ("import", "export", "generation", "snapshot"):
        sent = sum(note["what"] == what for note in journal.all("job sent"))
        known = sum(note["what"] == what and note["number"] > 0 for note in journal.all("job"))
        stored = Job.objects.filter(kind=what).count()
        off = max(0, stored - sent) + max(0, known - stored)
        yield Line(f"jobs doubled or lost: {what}", f"{off}; {sent} sent, {stored} stored", off)
    left = Job.objects.exclude(state__in=ENDED)
    words = ", ".join(f"{job.kind} {job.state}" for job in left)
    yield Line("jobs without an end", words or "0", left.count())
    unfinished = Snapshot.objects.filter(made_at=None).count()
    yield Line("snapshots without an end", str(unfinished), unfinished)
    imported = Item.objects.filter(project__slug=LABELLED, key__startswith="import-")
    lacking = imported.annotate(n=Count("slots", filter=Q(slots__stage="label"))).filter(n=0)
    yield Line("imported items", f"{imported.count():,}")
    yield Line("imported items without slots", str(n := lacking.count()), n)


def _run(journal: Journal, evaluator_log: Path, cap: Decimal) -> Iterator[Line]:
    runs = list(Run.objects.filter(project__slug=JUDGED))
    yield Line("runs", f"{len(runs)}, of one that was asked for", int(len(runs) != 1))
    if not runs:
        return
    run = runs[0]
    yield Line("run", f"{run.state} {run.reason}".strip(), int(run.state != Run.State.FINISHED))
    results = Counter(run.outcomes.values_list("result", "cause"))
    said = ", ".join(f"{n:,} {result} {cause}".strip() for (result, cause), n in results.items())
    yield Line("outcomes", said)
    pending = Outcome.objects.filter(result="pending").count()
    yield Line("outcomes without a result", str(pending), pending)
    twice = Reply.objects.values("request").annotate(n=Count("pk")).filter(n__gt=1).count()
    yield Line("requests with two replies", str(twice), twice)
    yield from _asked_against_replies(journal, evaluator_log)
    paid = Reply.objects.aggregate(cost=Sum("cost"))["cost"] or Decimal(0)
    lost = Request.objects.aggregate(charged=Sum("charged"))["charged"] or Decimal(0)
    off = abs(paid + lost - run.spent) > Decimal("0.000001")
    said = f"{run.spent:f}: {paid:f} by the replies and {lost:f} by calls without one"
    yield Line("spent", said, int(off))
    over = [note for note in journal.all("spent") if Decimal(note["spent"]) > Decimal(note["cap"])]
    yield Line("times that the run was seen above its cap", str(len(over)), len(over))
    reached, others = (len(_pauses(journal, by_cap=by_cap)) for by_cap in (True, False))
    yield Line("pauses", f"{reached} by the cap of {cap}, {others} other")


def _asked_against_replies(journal: Journal, log: Path) -> Iterator[Line]:
    """Compare the usable answers of the evaluator with the stored replies."""
    answered: dict[str, list[float]] = defaultdict(list)
    faults: Counter[str] = Counter()
    for text in log.read_text("utf-8").splitlines():
        entry = json.loads(text)
        faults[entry["fault"] or "none"] += 1
        if not entry["fault"] and entry["answered"]:
            answered[entry["digest"]].append(entry["answered"])
    replies = Reply.objects.count()
    yield Line("asked", f"{faults.total():,} times; faults: {dict(sorted(faults.items()))}")
    yield Line("answered", f"{len(answered):,} requests, {replies:,} replies stored")
    failed = Request.objects.filter(state="failed").count()
    lost = max(0, len(answered) - replies)
    yield Line("answers without a stored reply", f"{lost}; {failed} requests failed", lost)
    yield _asked_again(journal, answered)


def _asked_again(journal: Journal, answered: Mapping[str, list[float]]) -> Line:
    """Answers that were asked for again, because a worker was killed before it had stored them. It
    cannot store them while the database is away."""
    faults = [(note["at"], note["what"]) for note in journal.all("fault")]
    kills = [at for at, what in faults if what in KILLS]
    away = [at for at, what in faults if what in DATABASE_FAULTS]
    ages, while_away, unexplained = list[float](), 0, 0
    for times in answered.values():
        for at in sorted(times)[:-1]:
            kill = min((one for one in kills if at <= one + SLACK), default=inf)
            if any(at - AWAY_SECONDS < one < kill for one in away):
                while_away += 1
            elif kill - at > EXPLAINED_SECONDS:
                unexplained += 1
            else:
                ages.append(max(0.0, kill - at))
    oldest = f"up to {max(ages):.2f} s, median {median(ages):.2f} s" if ages else "none"
    return Line(
        "answers asked for again",
        f"{len(ages) + while_away + unexplained}: {len(ages)} came before a kill ({oldest}), "
        f"{while_away} while the database was away, {unexplained} others",
    )


def _answers(journal: Journal) -> Iterator[Line]:
    notes = journal.all("request")
    statuses = Counter(note["status"] for note in notes)
    yield Line("answers by status (0: connection lost)", str(dict(sorted(statuses.items()))))
    errors = Counter((note["status"], note["said"][:60]) for note in notes if note["status"] >= 500)
    for (status, said), n in errors.most_common(6):
        yield Line(f"answers {status}", f"{n} × {said}")
    unlike = sum(
        note["status"] >= 500 and not {"title", "html"} & {*re.findall(r"\w+", note["said"])}
        for note in notes
    )
    yield Line("errors of the server without an explanation", str(unlike))
    times = sorted(note["at"] for note in notes if 200 <= note["status"] < 500)
    silence = max((after - before for before, after in pairwise(times)), default=0)
    yield Line("longest time without any answer", f"{silence:.1f} s")
