"""The speed of `manage.py verify`, and the memory needed for it.

    python -m benchmarks.verifying [--databases postgresql sqlite] [--items 100000]

Each database is filled with items with about 2 KB in each text, half of them labelled and resolved,
a snapshot of some of them, and a finished run with a reply for each item. `verify` then runs in a
process of its own. Beside its time is that of only reading all texts and hashing them. The exit
code is 1 if a rule is broken; a missed limit is only reported.
"""

import argparse
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.workbench import reporting, scratch

ROOT = Path(__file__).resolve().parents[1]
USUAL, MOST_SECONDS, MOST_MEGABYTES = 100_000, 60, 300
COST = "0.000260"


def main() -> None:
    options = _options()
    if options.one:
        _measure(options.databases[0], options.items)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print(f"{'database':<11}{'items':>10}{'replies':>10}{'s':>7}{'floor':>7}{'MB':>6}  longest")
    lacking = "postgresql" in options.databases and scratch.lacking_postgresql()
    if lacking:
        print(lacking)
    for kind in options.databases:
        if not (lacking and kind == "postgresql"):
            # A Django process has one set of settings.
            command = [sys.executable, "-m", "benchmarks.verifying", "--one"]
            command += ["--databases", kind, "--items", str(options.items)]
            subprocess.run(command, cwd=ROOT, check=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--databases", nargs="+", choices=scratch.KINDS, default=[*scratch.KINDS])
    parser.add_argument("--items", type=int, default=USUAL)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _measure(kind: str, items: int) -> None:
    with scratch.database(kind):
        from benchmarks.workbench import filling

        project = filling.project(items, people=2, overlap=1)
        filling.label_half(project, project.members.order_by("pk")[0])
        _judge(project, items)
        floor = _read_all_texts()
        begun = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "manage.py", "verify", "--json"], cwd=ROOT, env=os.environ,
            capture_output=True, text=True,
        )  # fmt: skip
        seconds = time.perf_counter() - begun
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000
        print(_line(kind, items, seconds, floor, memory, json.loads(done.stdout)), flush=True)
        if done.returncode:
            raise SystemExit(done.stderr)


def _judge(project: Any, items: int) -> None:
    """Create a finished run over all items, with a call, a request, a reply and a reading each."""
    from django.db import connection

    from annotation.models import Event, Item, Revision
    from benchmarks.workbench.filling import tidy, unchecked
    from benchmarks.workbench.judged import _insert
    from judging.models import Call, Endpoint, Outcome, Reading, Reply, Request, Run
    from judging.runs import pinning, selection

    endpoint = Endpoint.objects.create(
        name="judge", provider="openai_compatible", model="judge",
        address="https://judge.invalid/v1", price_in=1, price_out=5,
    )  # fmt: skip
    version = selection.get_strategy_version("reference")
    draft = pinning.draft_run(project, version, endpoint, seed=1, state=Run.State.FINISHED)
    run = pinning.store_run(draft, pinning.DrawnItems([]))
    first, revision = (each.objects.order_by("pk")[0].pk - 1 for each in (Item, Revision))
    same = {"id": "s.n", "request_id": "s.n"}
    now = "CURRENT_TIMESTAMP"
    with unchecked(Outcome, Request, Reply, Reading, Call):
        _insert(Outcome, items, {
            "id": "s.n", "item_id": f"{first} + s.n", "revision_id": f"{revision} + s.n",
            "run_id": str(run.pk), "invariant": "1 > 2", "result": "'detected'", "truth": "'valid'",
            "category": "'number-errors'", "ability": "'factual'", "cluster": "'c-' || (s.n / 4)",
        })  # fmt: skip
        _insert(Request, items, {
            "id": "s.n", "digest": "'request-' || s.n", "endpoint_id": str(endpoint.pk),
            "place": "s.n", "state": "'answered'", "attempts": "1",
        })  # fmt: skip
        _insert(Reply, items, {
            **same, "text": "'I looked at both answers. {\"score\": 4}'", "finish": "'stop'",
            "model": "'judge'", "tokens_in": "210", "tokens_out": "10", "cost": COST,
            "asked_at": now, "seconds": "0.5", "created_at": now,
        })  # fmt: skip
        _insert(Call, items, {
            **same, "run_id": str(run.pk), "outcome_id": "s.n", "role": "'perturbed'",
        })  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE annotation_item SET first_reply_at = {now}")
        cursor.execute(f"UPDATE judging_run SET spent = {items} * {COST}")
    Run.objects.filter(pk=run.pk).update(digest=pinning.compute_digest(run))
    Event.record("run finished", f"run {run.number}", project_id=project.pk, member_id=None,
                 old={"state": "running"}, new={"state": "finished"})  # fmt: skip
    tidy()


def _read_all_texts() -> float:
    """The seconds that it takes only to read and hash all texts."""
    from operation.integrity.checks import select_text, stream_rows

    begun = time.perf_counter()
    from annotation.db.snapshot_reads import consistent_reads

    with consistent_reads():
        rows = stream_rows(f"SELECT {select_text('texts')} AS texts FROM annotation_revision")
        for row in rows:
            hashlib.sha256(row["texts"].encode()).digest()
    return time.perf_counter() - begun


def _line(
    kind: str, items: int, seconds: float, floor: float, memory: float, told: dict[str, Any]
) -> str:
    longest = sorted(told["checks"], key=lambda check: -check["seconds"])[:4]
    words = ", ".join(f"{check['name']} {check['seconds']:.1f}" for check in longest)
    broken = [check["name"] for check in told["checks"] if check["breaches"]]
    row = f"{kind:<11}{items:>10,}{items:>10,}{seconds:>7.1f}{floor:>7.1f}{memory:>6.0f}  {words}"
    limits = [
        reporting.limit_line(seconds < MOST_SECONDS, f"under {MOST_SECONDS} s"),
        reporting.limit_line(memory < MOST_MEGABYTES, f"under {MOST_MEGABYTES} MB"),
    ]
    return f"{row}  {'; '.join(limits)}" + (f"  BROKEN: {', '.join(broken)}" if broken else "")


if __name__ == "__main__":
    main()
