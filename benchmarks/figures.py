"""The response times of tables of figures and of result pages, and the time that their first
computation takes.

    python -m benchmarks.figures [--outcomes 60000 ...] [--runs 10] [--databases postgresql sqlite]
        [--kinds perturbed detected rated] [--times 30]

Each size has its own database, filled with items and with runs over all of them, and a server as in
production: gunicorn as in docker-compose.yml and a worker on PostgreSQL (at TEST_POSTGRES_URL),
`manage.py serve` on SQLite. Each table, view of a page and chart file is first requested until it
is ready. Then it is requested repeatedly, to measure the milliseconds of complete responses on a
persistent connection, with the client on the same machine. Runs have no calls, so `cost` counts
outcomes only.

There are limits for 1,000,000 outcomes and for 10,000,000 outcomes.
"""

import argparse
import json
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from typing import Any

from benchmarks.workbench import pressing, reporting, scratch

Figures = dict[str, Any]

SMALL = 60_000
LARGE = 10_000_000
FIRST = 10.0
# Seconds to wait for a million outcomes; for more outcomes, proportionally more.
PATIENCE = 120.0
# By kind of item: perturbed answers (study 000), responses with errors (001), rated (003).
TABLES = {
    "perturbed": (
        *("undetected", "scores", "score_changes", "verdicts", "order_effect", "left_out", "cost"),
        *("missing", "sensitivity", "doses", "penalties", "compare", "blindspots"),
    ),
    "detected": ("detector", "detector_ranges", "changes", "bias"),
    "rated": ("alignment", "alignment_groups", "ceiling", "by_score", "pairs"),
}
# The pages whose views are measured, by kind of item.
PAGES = {
    "perturbed": (
        *("choose", "overview", "by-category", "verdicts", "reference", "compare", "blind-spots"),
        *("sensitivity", "missing", "data-set", "agreement", "plan", "cost"),
    ),
    "detected": ("detector", "data-set"),
    "rated": ("people", "data-set"),
}
OTHER_PAGES = ("results/", "results/methods/", "results/overview/chart.svg", "runs/")
# A page shows the progress of its figures, and a chart asks to try again.
IN_PROGRESS = b'aria-busy="true"'


def main() -> None:
    """Measure every size in its own process, and print the results."""
    options = _options()
    if options.one:
        _measure(options)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    lacking = scratch.lacking_postgresql() if "postgresql" in options.databases else ""
    if lacking:
        print(lacking)
    print(f"{'':<11}{'outcomes':>12}  {'table':<38}{'first s':>9}{'median ms':>11}{'p95 ms':>9}"
          f"{'queries':>9}")  # fmt: skip
    for kind in options.databases:
        for outcomes in options.outcomes:
            if not (lacking and kind == "postgresql"):
                found = [
                    each
                    for judged in options.kinds
                    for each in _in_process(kind, outcomes, judged, options)
                    if _print(each)
                ]
                print(_summary(kind, outcomes, found), flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--databases", nargs="+", choices=scratch.KINDS, default=[*scratch.KINDS])
    parser.add_argument("--outcomes", nargs="+", type=int, default=[SMALL])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--kinds", nargs="+", choices=TABLES, default=[*TABLES])
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _in_process(
    kind: str, outcomes: int, judged: str, options: argparse.Namespace
) -> Iterator[Figures]:
    command = ["benchmarks.figures", "--one", "--databases", kind]
    command += ["--outcomes", str(outcomes), "--runs", str(options.runs)]
    command += ["--kinds", judged, "--times", str(options.times)]
    return reporting.figures_of(*command)


# ------------------------------------------------------------------------------------- measuring


def _measure(options: argparse.Namespace) -> None:
    """Measure one size on one database; prints one JSON object per line."""
    [kind], [outcomes], [items] = options.databases, options.outcomes, options.kinds
    with ExitStack() as stack:
        if kind == "postgresql":
            stack.enter_context(scratch.redis())
        stack.enter_context(scratch.database(kind, with_redis=kind == "postgresql"))
        from benchmarks.workbench import judged, serving

        begun = time.perf_counter()
        filled = judged.fill(outcomes // options.runs, options.runs, items)
        seconds = time.perf_counter() - begun
        server = stack.enter_context(serving.server(kind))
        if kind == "postgresql":
            stack.enter_context(serving.worker())
        figures = {"kind": kind, "outcomes": outcomes, "filled_in": seconds}
        for table, path, headers in _addresses(filled, items):
            patience = PATIENCE * max(1, outcomes / 1_000_000)
            found = _asked(server.port, path, headers, options.times, patience)
            counted = _queries(path, headers)
            print(json.dumps(figures | found | {"table": table, "queries": counted}), flush=True)


def _addresses(filled: Any, items: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Return the names, paths and headers of the requests: tables through the API, and pages as a
    browser requests them.
    """
    from judging.results import tables

    key = {"Authorization": f"Bearer {filled.key}"}
    home = f"/projects/{filled.project.slug}/"
    for table in TABLES[items]:
        yield table, f"/api/v1{home}results/{table}/", key
    cookie = {"Cookie": _cookie(filled.project)}
    for page in OTHER_PAGES if items == "perturbed" else ("results/methods/",):
        yield f"page {page}", f"{home}{page}", cookie
    for page in PAGES[items]:
        for view in tables.PAGES[page].views:
            yield f"page {page} {view.slug}", f"{home}results/{page}/?view={view.slug}", cookie


def _cookie(project: Any) -> str:
    from django.conf import settings
    from django.test import Client

    client = Client()
    client.force_login(project.members.get(alias="researcher").account)
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"


def _asked(port: int, path: str, headers: dict[str, str], times: int, patience: float) -> Figures:
    """Request until the figures are ready, then repeatedly. Returns the seconds until they were
    ready, and quantiles of the milliseconds of later requests."""
    connection = HTTPConnection("127.0.0.1", port, timeout=patience)
    begun, told = time.perf_counter(), 0
    while (status := _get(connection, path, headers)) == 202:
        told += 1
        if time.perf_counter() - begun > patience:
            break
        time.sleep(0.1)
    # If the figures are not ready in time, report the time waited.
    first, waits = time.perf_counter() - begun, []
    for _ in range(times):
        asked = time.perf_counter()
        status = _get(connection, path, headers)
        waits.append((time.perf_counter() - asked) * 1000)
    if status not in (200, 202):
        raise SystemExit(f"{path} answers with {status}.")
    return {"first": first, "told": told, **pressing.quantiles(waits)}


def _get(connection: HTTPConnection, path: str, headers: dict[str, str]) -> int:
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    waits = IN_PROGRESS in answer.read() or answer.status == 503
    return 202 if waits else answer.status


def _queries(path: str, headers: dict[str, str]) -> int:
    """Count the database queries for the same response, including authentication."""
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    client = Client(headers={**headers, "Host": "127.0.0.1"})
    with CaptureQueriesContext(connection) as seen:
        client.get(path)
    return len(seen)


# -------------------------------------------------------------------------------------- printing


def _print(found: Figures) -> bool:
    print(
        f"{found['kind']:<11}{found['outcomes']:>12,}  {found['table']:<38}{found['first']:>9.1f}"
        f"{found['p50']:>11.0f}{found['p95']:>9.0f}{found['queries']:>9}",
        flush=True,
    )
    return True


def _summary(kind: str, outcomes: int, found: list[Figures]) -> str:
    limit = 300 if kind == "sqlite" or outcomes >= LARGE else 150
    slowest = max(found, key=lambda each: float(each["p95"]))
    longest = max(found, key=lambda each: float(each["first"]))
    lines = [
        reporting.limit_line(
            slowest["p95"] < limit,
            f"{kind}, {outcomes:,} outcomes: p95 {slowest['p95']:.0f} ms of {slowest['table']},"
            f" under {limit}",
        )
    ]
    if outcomes < LARGE:
        first = f"{longest['first']:.1f} s of {longest['table']} asked for the first time"
        lines.append(
            reporting.limit_line(longest["first"] < FIRST, f"  {first}, within {FIRST:.0f}")
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
