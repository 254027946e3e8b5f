"""The speed at which items are imported, from a file with 5 KB per row to slots in the queue, and
the memory needed for it.

    python -m benchmarks.importing [--databases postgresql sqlite] [--rows 40000] [--format jsonl]

Each database is new, and each measurement runs in its own process. Memory is the maximum that this
process and the process that reads ahead use together, including the memory that they share,
measured every WEIGHED_EVERY rows. The file is read twice, as in every import, and imported again at
the end, when it contains nothing new. `bare` is the upper bound: the lines of the same file,
unchanged, inserted into a plain table of texts, in transactions of the same size; `share` is the
import's rate divided by it. Other load on the machine lowers both rates. `longest` is the longest
transaction, during which nobody else can write to SQLite. The CPU time of the process that stores
is also reported, since it hardly depends on other load. PostgreSQL is expected at
TEST_POSTGRES_URL. The exit code is 1 if a row is lost or duplicated; a missed limit is only
reported.
"""

import argparse
import csv
import gc
import json
import multiprocessing
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.workbench import reporting, scratch

ROOT = Path(__file__).resolve().parents[1]

Figures = dict[str, Any]

RATE = 8_000
MEGABYTES = 300
LONGEST = 200
WEIGHED_EVERY = 1_000
FORMATS = ("jsonl", "csv")
WORDS = ["the", "of", "and", "to", "energy", "water", "1914", "system", "café", "light", "Übung"]


def main() -> None:
    """Measure each database in its own process, and print the results."""
    options = _options()
    if options.one:
        print(json.dumps(_measured(options)))
        return
    print(
        f"{'database':<12}{'rows':>9}{'rows/s':>9}{'again/s':>9}{'bare/s':>9}{'share':>7}"
        f"{'longest ms':>12}{'MB':>6}{'CPU us a row':>14}"
    )
    lacking = "postgresql" in options.databases and scratch.lacking_postgresql()
    if lacking:
        print(lacking)
    kinds = [kind for kind in options.databases if not (lacking and kind == "postgresql")]
    results = [_in_process(kind, options) for kind in kinds]
    if any(figures["stored"] != options.rows or figures["twice"] for figures in results):
        print("A row was lost or doubled.")
        raise SystemExit(1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--databases", nargs="+", choices=scratch.KINDS, default=[*scratch.KINDS])
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--format", choices=FORMATS, default="jsonl")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _in_process(kind: str, options: argparse.Namespace) -> Figures:
    # A Django process has one set of settings, and memory is measured by process.
    command = [sys.executable, "-m", "benchmarks.importing", "--one", "--databases", kind]
    command += ["--rows", str(options.rows), "--format", options.format]
    printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    figures: Figures = json.loads(printed.splitlines()[-1])
    print(_lines(kind, figures), flush=True)
    return figures


def _measured(options: argparse.Namespace) -> Figures:
    with tempfile.TemporaryDirectory(prefix="blindspot-bench-") as folder:
        path = Path(folder, f"items.{options.format}")
        _write(path, options.rows)
        with scratch.database(options.databases[0]):
            return {"rows": options.rows, **_imported(path, options.format)}


def _imported(path: Path, form: str) -> Figures:
    from annotation import importing
    from annotation.models import Item, Revision, Slot

    gc.freeze()  # as a worker does
    project = importing.create_project("bench")
    megabytes: list[float] = []
    with _longest_transaction() as longest:
        begun = time.process_time()
        first, report = _timed(project, path, form, megabytes)
        cpu = time.process_time() - begun
    again, repeated = _timed(project, path, form, megabytes)
    stored = min(each.objects.count() for each in (Item, Revision, Slot))
    rate, bare = report.rows / first, _bare(path)
    return {
        "rate": round(rate),
        "again": round(repeated.rows / again),
        "bare": round(bare),
        "share": rate / bare,
        "longest": round(max(longest) * 1000),
        "cpu": round(cpu / report.rows * 1e6),
        "megabytes": round(max(megabytes)),
        "stored": stored if report.new == stored else -1,
        "twice": repeated.new,
    }


def _timed(project: Any, path: Path, form: str, megabytes: list[float]) -> tuple[float, Any]:
    from annotation import importing, tasktypes
    from formats.readers import FORMATS

    begun = time.perf_counter()
    rows = FORMATS[form].read(path)
    drafts = importing.parse_items(rows, tasktypes.load_task_type(project))
    report = importing.store_items(
        project, _weighed(importing.read_in_subprocess(drafts), megabytes)
    )
    return time.perf_counter() - begun, report


def _weighed(drafts: Iterator[Any], megabytes: list[float]) -> Iterator[Any]:
    """Yield the drafts unchanged; now and then measure the memory of this process and the process
    that reads ahead.
    """
    for number, draft in enumerate(drafts):
        if number % WEIGHED_EVERY == 0:
            also = multiprocessing.active_children()
            megabytes.append(sum(map(_megabytes, ["self", *(one.pid for one in also)])))
        yield draft


def _megabytes(process: object) -> float:
    """Return the memory of a process. Memory that it shares with one other process counts half."""
    told = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in told.splitlines() if line[:4] == "Pss:") / 1024


def _bare(path: Path) -> float:
    """Return how many lines of a file per second the database can insert as texts."""
    from django.db import connection

    from annotation.db import bulk, transactions
    from annotation.importing.items import BATCH

    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE bare (id bigint PRIMARY KEY, texts text)")
        count, begun = 0, time.perf_counter()
        with path.open(encoding="utf-8") as lines, bulk.WriteAheadLog() as log:
            numbered = enumerate(lines)
            while batch := list(islice(numbered, BATCH)):
                with transactions.transact():
                    bulk.set_up_import()
                    _put(cursor, batch)
                log.grown(sum(len(text) for _, text in batch))
                count += len(batch)
        return count / (time.perf_counter() - begun)


def _put(cursor: Any, rows: list[tuple[int, str]]) -> None:
    if cursor.db.vendor == "sqlite":
        cursor.executemany("INSERT INTO bare VALUES (%s, %s)", rows)
        return
    with cursor.copy("COPY bare FROM STDIN") as copying:
        for row in rows:
            copying.write_row(row)


@contextmanager
def _longest_transaction() -> Iterator[list[float]]:
    """Collect the durations of write transactions in seconds, appended as they end."""
    from annotation.db import transactions

    usual, took = transactions.transact, [0.0]

    @contextmanager
    def watched() -> Iterator[None]:
        begun = time.perf_counter()
        with usual():
            yield
        took.append(time.perf_counter() - begun)

    transactions.transact = watched
    try:
        yield took
    finally:
        transactions.transact = usual


def _write(path: Path, rows: int) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        if path.suffix == ".jsonl":
            stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in _rows(rows))
            return
        writer = csv.DictWriter(stream, next(_rows(1)))
        writer.writeheader()
        writer.writerows(_rows(rows))


def _rows(count: int) -> Iterator[dict[str, str]]:
    chance = random.Random(5)
    for number in range(count):
        gold = " ".join(chance.choices(WORDS, k=440))
        yield {
            "key": f"item-{number:07}",
            "category": "number-errors",
            "prompt": f"{number}? " + " ".join(chance.choices(WORDS, k=20)),
            "gold": gold,
            "perturbed": gold.replace("1914", "1915", 1),
            "claim": "A number was changed.",
        }


def _lines(kind: str, figures: Figures) -> str:
    rate, size, longest = figures["rate"], figures["megabytes"], figures["longest"]
    checks = [
        reporting.limit_line(rate >= RATE, f"{rate:,} rows/s, at least {RATE:,}"),
        reporting.limit_line(size < MEGABYTES, f"{size} MB, under {MEGABYTES}"),
        reporting.limit_line(
            longest < LONGEST, f"longest transaction {longest} ms, under {LONGEST}"
        ),
    ]
    row = f"{kind:<12}{figures['rows']:>9,}{rate:>9,}{figures['again']:>9,}{figures['bare']:>9,}"
    row = f"{row}{figures['share']:>7.0%}{longest:>12}{size:>6}{figures['cpu']:>14}"
    return f"{row}\n  {'; '.join(checks)}"


if __name__ == "__main__":
    main()
