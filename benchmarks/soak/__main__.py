"""A trial of an installation under random kills.

    python -m benchmarks.soak --database postgresql --seconds 600 --seed 1 [--upgrade-from v0.2.0]

Eight people label, skip, undo, correct and comment through the API and the label screen; a lead
imports, generates, exports and makes snapshots; a run asks a scripted evaluator that sometimes
fails, and reaches its cap once. Meanwhile processes are killed, Redis comes back empty, PostgreSQL
crashes, and the disk of exports is full for a while. With `--upgrade-from`, everything begins with
the code of another commit, and is upgraded to this one after half of the time. At the end,
everything that was acknowledged is compared with what is stored, all rules of `manage.py verify`
are checked, and a backup that was made under load is restored into an empty place. The exit code is
1 if anything was lost or doubled, or if a rule is broken. All servers listen on loopback only;
nothing of the real installation is used.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from benchmarks.soak.faults import cause_faults
from benchmarks.soak.installation import Installation, write_items
from benchmarks.soak.journal import Caller, Journal
from benchmarks.soak.people import (
    JUDGED,
    LABELLED,
    PRESSED,
    ApiAnnotator,
    ScreenAnnotator,
    Trial,
    add_items,
    adjudicate,
    export_again_and_again,
    researcher,
)
from benchmarks.soak.processes import ROOT, Missing

MOST_SECONDS = 1_800
# With fewer faults, a trial shows little.
FEW_FAULTS = 5
CSRF_SECRET = "s" * 32
ROLES = {"lead": "lead", "researcher": "researcher", "adjudicator": "adjudicator"}
ANNOTATORS = tuple(f"annotator{number}" for number in range(1, 9))
ON_SCREEN = ANNOTATORS[6:]
LATE = ANNOTATORS[5]
# Calls a second that the run can make between kills; a run has at most as many as asked for.
CALLS_A_SECOND, MOST_CALLS = 30, 10_000


def main() -> int:
    """Run one trial, print its table, and return the exit code."""
    options = _read_options()
    # Whoever ends it ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print(f"seed {options.seed}, {options.seconds} s on {options.database}", flush=True)
    with tempfile.TemporaryDirectory(prefix="blindspot-soak-", ignore_cleanup_errors=True) as name:
        try:
            with Installation(options.database, Path(name), options.upgrade_from) as place:
                return _try(place, options)
        except Missing as missing:
            print(f"The trial cannot run. {missing}", file=sys.stderr)
            return 2


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--database", choices=["postgresql", "sqlite"], default="postgresql")
    parser.add_argument("--seconds", type=int, default=600, help="seconds with faults")
    parser.add_argument(
        "--calm", type=int, default=600, help="seconds that jobs and runs may then take"
    )
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument(
        "--upgrade-from", default="", metavar="COMMIT", help="begin with the code of this commit"
    )
    parser.add_argument("--journal", type=Path, help="keep the notes in this file")
    options = parser.parse_args()
    if not 10 <= options.seconds <= MOST_SECONDS:
        parser.error(f"--seconds: choose 10 to {MOST_SECONDS}.")
    return options


def _try(place: Installation, options: argparse.Namespace) -> int:
    import django

    django.setup()
    calls = min(MOST_CALLS, CALLS_A_SECOND * options.seconds)
    _report(place.manage("migrate", "--no-input"))
    if place.kind == "postgresql":
        _report(place.manage("collectstatic", "--no-input"))
    headers = _fill_by_installed_code(place, calls, many=options.seconds >= 300)
    place.start()
    cap = _half_of_cost(calls)
    trial = Trial(threading.Event(), threading.Event(), place.folder, str(cap))
    journal = Journal(options.journal or place.folder / "journal.jsonl")
    threads = _start_people(place, trial, journal, headers, options.seed)
    backup = threading.Thread(target=_back_up, args=(place, trial, journal), daemon=True)
    backup.start()
    ends = threading.Timer(options.seconds, trial.calm.set)
    ends.start()
    upgrade = threading.Timer(options.seconds / 2, _upgrade, args=(place, journal))
    if options.upgrade_from:
        upgrade.start()
    cause_faults(place, trial, journal, options.seed)
    _wait_for_end(threads, options.calm)
    _wait_for_jobs(options.calm)
    if options.upgrade_from:
        upgrade.join()
    trial.over.set()
    for thread in threads:
        thread.join(60)
    backup.join()
    place.stop()
    return _print_table(place, journal, cap)


def _report(done: Any) -> None:
    if done.returncode:
        raise RuntimeError(f"{done.args[1:]} failed:\n{done.stderr[-2000:]}")


def _half_of_cost(calls: int) -> Decimal:
    # What a call costs by the tokens that the scripted evaluator reports, at 1 and 5 for a million.
    return round(Decimal(calls) * Decimal("0.00013"), 3)


def _fill(place: Installation, calls: int, *, many: bool) -> dict[str, dict[str, str]]:
    """Create projects, items, people and an endpoint; return the headers of each person."""
    from django.conf import settings
    from django.core.management import call_command
    from django.db import connection
    from django.test import Client

    from annotation.labelling import work_order
    from annotation.models import Account, ApiToken, Membership, Project
    from judging.models import Endpoint

    sizes = {LABELLED: 3_000, PRESSED: 60, JUDGED: max(20, calls // 2)}
    for slug, count in sizes.items():
        path = write_items(place.folder / f"{slug}.jsonl", slug, count)
        accepted = {"accept": True} if slug == JUDGED else {}
        call_command("import_items", str(path), project=slug, create=True, verbosity=0, **accepted)
    write_items(place.folder / "import.jsonl", "import", 20_000 if many else 4_000)
    for slug, overlap in ((LABELLED, 2), (PRESSED, 3)):
        project = Project.objects.get(slug=slug)
        project.overlap, project.hold_minutes = overlap, 1
        # As new projects are.
        project.order, project.order_seed, project.begun_first = work_order.RANDOM, 7, True
        project.save()
        _give_slots(project)
    headers = {}
    for name in (*ROLES, *ANNOTATORS):
        account = Account.objects.create_user(name, f"{name}@soak.example")
        for project in Project.objects.all():
            role = ROLES.get(name, "annotator")
            Membership.objects.create(project=project, account=account, alias=name, role=role)
        if name in ON_SCREEN:
            client = Client()
            client.force_login(account)
            session = client.cookies[settings.SESSION_COOKIE_NAME].value
            cookies = f"{settings.SESSION_COOKIE_NAME}={session}"
            headers[name] = {"Cookie": f"{cookies}; {settings.CSRF_COOKIE_NAME}={CSRF_SECRET}"}
        else:
            headers[name] = {"Authorization": f"Bearer {ApiToken.issue(account, 'soak')[1]}"}
    Endpoint.objects.create(
        name="scripted", provider="openai_compatible", model="scripted-1",
        address="http://127.0.0.1:1/v1", in_flight=16, timeout=10, price_in=1, price_out=5,
    )  # fmt: skip
    connection.close()
    return headers


def _fill_by_installed_code(
    place: Installation, calls: int, *, many: bool
) -> dict[str, dict[str, str]]:
    """`_fill`, by the code that made the tables."""
    if place.code == ROOT:
        return _fill(place, calls, many=many)
    words = (
        "import json, sys, pathlib, types, django; django.setup();"
        " from benchmarks.soak.__main__ import _fill;"
        f" place = types.SimpleNamespace(folder=pathlib.Path({str(place.folder)!r}));"
        f" print(json.dumps(_fill(place, {calls}, many={many})))"
    )
    done = place.run("-c", words)
    _report(done)
    filled: dict[str, dict[str, str]] = json.loads(done.stdout.splitlines()[-1])
    return filled


def _upgrade(place: Installation, journal: Journal) -> None:
    begun = time.monotonic()
    try:
        failures = place.upgrade()
    except RuntimeError as error:
        journal.note("upgrade", good=False, said=str(error))
        return
    seconds = time.monotonic() - begun
    journal.note("upgrade", good=True, said=f"in {seconds:.0f} s, {len(failures)} tries failed")


def _give_slots(project: Any) -> None:
    from django.utils import timezone

    from annotation.labelling import assignment, work_order

    for _ in work_order.sort_slots(project):
        pass
    for _ in assignment.resize_items(project, now=timezone.now()):
        pass


def _start_people(
    place: Installation,
    trial: Trial,
    journal: Journal,
    headers: dict[str, dict[str, str]],
    seed: int,
) -> list[threading.Thread]:
    from django.db import connection

    from judging.models import Endpoint

    Endpoint.objects.update(address=f"http://127.0.0.1:{place.evaluator_port}/v1")
    connection.close()
    callers = {
        name: Caller(name, place.port, journal, own, trial.over.is_set)
        for name, own in headers.items()
    }
    work: list[tuple[str, Callable[[], None]]] = [
        (
            name,
            (
                ScreenAnnotator(callers[name], trial, seed + number)
                if name in ON_SCREEN
                else ApiAnnotator(callers[name], trial, seed + number, late=name == LATE)
            ).work,
        )
        for number, name in enumerate(ANNOTATORS)
    ]
    work += [
        ("adjudicator", lambda: adjudicate(callers["adjudicator"], trial)),
        ("lead", lambda: add_items(callers["lead"], trial)),
        ("lead", lambda: export_again_and_again(callers["lead"], trial)),
        ("researcher", lambda: researcher(callers["researcher"], trial)),
    ]
    threads = [
        threading.Thread(target=_note_crash, args=(journal, name, does), daemon=True)
        for name, does in work
    ]
    for thread in threads:
        thread.start()
    return threads


def _note_crash(journal: Journal, who: str, does: Callable[[], None]) -> None:
    try:
        does()
    except Exception as error:
        journal.note("crash", who=who, said=repr(error)[:300])
        raise


def _back_up(place: Installation, trial: Trial, journal: Journal) -> None:
    """Back up under load. A backup that a fault ends is made again."""
    trial.calm.wait(15)
    file = place.folder / "backup.zip"
    before = {note["submission"] for note in journal.all("label") if note["good"]}
    while not trial.over.is_set():
        begun = time.monotonic()
        made = place.manage("backup", str(file))
        said = (made.stdout + made.stderr).strip()[-200:]
        journal.note("backup", good=made.returncode == 0, seconds=time.monotonic() - begun,
                     said=said, labels=sorted(before))  # fmt: skip
        if made.returncode == 0:
            return
        trial.over.wait(5)


def _wait_for_end(threads: list[threading.Thread], seconds: float) -> None:
    ends = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.1, ends - time.monotonic()))


def _wait_for_jobs(seconds: float) -> None:
    from django.db import connection

    from annotation.models import Job

    ends = time.monotonic() + seconds
    while Job.objects.filter(finished_at=None).exists() and time.monotonic() < ends:
        time.sleep(1)
    connection.close()


def _print_table(place: Installation, journal: Journal, cap: Decimal) -> int:
    from benchmarks.soak.audit import Line, audit

    lines = [*audit(journal, place.evaluator_log, cap), *_restored(place, journal)]
    lines += [
        Line("upgrade under load", note["said"], int(not note["good"]))
        for note in journal.all("upgrade")
    ]
    lines += [Line("not tried here", words) for words in place.untried]
    width = max(len(line.name) for line in lines)
    for line in lines:
        print(f"{'WRONG' if line.wrong else '     '}  {line.name:<{width}}  {line.told}")
    wrong = [line.name for line in lines if line.wrong]
    faults = sum(not note["failed"] for note in journal.all("fault"))
    weak = f" This was a weak trial: only {faults} faults." if faults < FEW_FAULTS else ""
    print("Nothing was lost or doubled." + weak if not wrong else f"Wrong: {'; '.join(wrong)}.")
    return int(bool(wrong))


def _restored(place: Installation, journal: Journal) -> Any:
    """Restore the backup into an empty place, and look whether the labels that were acknowledged
    before it are there."""
    from benchmarks.soak.audit import Line

    made = [note for note in journal.all("backup") if note["good"]]
    if not made:
        yield Line("backup", "none could be made", 1)
        return
    note, var = made[-1], place.folder / "restored"
    var.mkdir()
    address = (
        place.postgres.create("restored")
        if place.postgres
        else f"sqlite:///{var / 'blindspot.sqlite3'}"
    )
    elsewhere = {"DATABASE_URL": address, "VAR_DIR": str(var)}
    file = str(place.folder / "backup.zip")
    done = place.manage("restore", file, **elsewhere)
    told = (done.stdout + done.stderr).strip().splitlines()[-1:]
    yield Line(f"backup under load ({note['seconds']:.0f} s), restored", " ".join(told),
               int(done.returncode != 0))  # fmt: skip
    code = (
        "import sys; from annotation.models import Label;"
        " told = set(sys.stdin.read().split());"
        " print(len(told - set(Label.objects.values_list('submission', flat=True))))"
    )
    lost = subprocess.run(
        [sys.executable, "manage.py", "shell", "-v", "0", "-c", code], env=os.environ | elsewhere,
        input="\n".join(note["labels"]), capture_output=True, text=True,
    )  # fmt: skip
    n = int(lost.stdout.split()[-1]) if lost.returncode == 0 and lost.stdout.split() else -1
    yield Line("labels missing in the backup", f"{n} of {len(note['labels'])}", abs(n))


if __name__ == "__main__":
    sys.exit(main())
