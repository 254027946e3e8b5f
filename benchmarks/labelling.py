"""Eight annotators label through the API as fast as it responds: how fast is it, and is every label
stored?

    python -m benchmarks.labelling [--large] [--databases postgresql sqlite] [--items 2500 100000]
        [--seconds 20] [--people 8] [--overlap 2] [--half] [--order random] [--begun-first]

Each size has its own database, filled with items with about 2 KB in each text and stored diffs, and
a server as in production: gunicorn as in docker-compose.yml on PostgreSQL (at TEST_POSTGRES_URL),
`manage.py serve` on SQLite. A pair is POST queue/next/ and POST labels/, with a token, over
persistent connections. Each size is compared with two lower bounds, measured with the same server,
client and authentication: calls that do nothing, and calls that change one row each in their own
transaction. No queue can be faster than the latter.

`--large` compares 1,000,000 items with 2,500 on PostgreSQL, also for an annotator who has labelled
half of them. The small size is measured before and after the large one, since the speed of a
machine changes over time. The exit code is 1 if a label was duplicated or lost; a missed limit is
only reported.
"""

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.workbench import pressing, reporting, scratch

ROOT = Path(__file__).resolve().parents[1]

Figures = dict[str, Any]

SMALL, USUAL, LARGE = 2_500, 100_000, 1_000_000
WARM_UP = 2.0
FLOOR_SECONDS = 5.0
# At most this share of the slots is used, so that the search for the last free slots is not
# measured.
SHARE = 0.8
KEPT_RATE = 0.8


@dataclass(frozen=True)
class Limit:
    """The required number of pairs per second, and the maximum milliseconds of each call."""

    rate: float
    p95: float
    longest: float = float("inf")


LIMITS = {"postgresql": Limit(150, 60), "sqlite": Limit(80, 100, 500)}


def main() -> None:
    """Measure every size in its own process, and print the results."""
    options = _options()
    if options.one:
        print(json.dumps(_measured(options)))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print(_heading())
    results = []
    lacking = "postgresql" in options.databases and scratch.lacking_postgresql()
    if lacking:
        print(lacking)
    for case in _cases(options):
        if lacking and case[0] == "postgresql":
            continue
        figures = _in_process(case, options)
        results.append(figures)
        print(_lines(figures), flush=True)
    if options.large:
        print(_compared(results))
    if any(figures["doubled"] or figures["lost"] for figures in results):
        raise SystemExit(1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--databases", nargs="+", choices=scratch.KINDS, default=[*scratch.KINDS])
    parser.add_argument("--items", nargs="+", type=int, default=[SMALL, USUAL])
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--half", action="store_true", help="the first person has done half")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--people", type=int, default=8)
    parser.add_argument("--overlap", type=int, default=2)
    parser.add_argument("--order", choices=("file", "random"), default="file")
    parser.add_argument("--begun-first", action="store_true")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _cases(options: argparse.Namespace) -> Iterator[list[str]]:
    if options.large:
        for items, half in ((SMALL, False), (LARGE, False), (LARGE, True), (SMALL, False)):
            yield ["postgresql", "--items", str(items), *(["--half"] if half else [])]
        return
    for kind in options.databases:
        for items in options.items:
            yield [kind, "--items", str(items), *(["--half"] if options.half else [])]


def _in_process(case: list[str], options: argparse.Namespace) -> Figures:
    # A Django process has one set of settings.
    command = [sys.executable, "-m", "benchmarks.labelling", "--one", "--databases", *case]
    for name in ("seconds", "people", "overlap", "order"):
        command += [f"--{name}", str(getattr(options, name))]
    command += ["--begun-first"] * options.begun_first
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            printed, _ = process.communicate()
        finally:
            process.terminate()  # has no effect on a process that has ended
    if process.returncode:
        raise SystemExit(process.returncode)
    figures: Figures = json.loads(printed.splitlines()[-1])
    return figures


# ------------------------------------------------------------------------------------- measuring


def _measured(options: argparse.Namespace) -> Figures:
    kind, items = options.databases[0], options.items[0]
    with scratch.database(kind):
        from benchmarks.workbench import filling

        begun = time.perf_counter()
        order = {"order": options.order, "order_seed": 7, "begun_first": options.begun_first}
        project = filling.project(items, people=options.people, overlap=options.overlap, **order)
        first = project.members.order_by("pk")[0]
        before = filling.label_half(project, first) if options.half else 0
        filled = filling.open_to(project)
        figures = {"database": kind, "items": items, "half": options.half}
        figures["filled_in"] = round(time.perf_counter() - begun, 1)
        most = int((items * options.overlap - before) * SHARE)
        figures |= _served(kind, filled, options.seconds, most, options.overlap, before)
        return figures | {"floor": _floor(kind, filled.keys)}


def _served(
    kind: str, filled: Any, seconds: float, most: int, overlap: int, before: int
) -> Figures:
    from benchmarks.workbench import checking, serving

    pair = pressing.labelling(filled.slug, filled.answers)
    with serving.server(kind) as server:
        warm = _press(server.port, filled.keys, pair, WARM_UP, most // 4)
        cpu = server.cpu(), serving.backends_cpu()
        done = _press(server.port, filled.keys, pair, seconds, most - warm.pairs)
        cpu = server.cpu() - cpu[0], serving.backends_cpu() - cpu[1]
    found = checking.look(warm.acknowledged + done.acknowledged, overlap=overlap, before=before)
    return {
        **_speed(done, cpu),
        "doubled": found.doubled,
        "lost": found.lost,
        "unacknowledged": found.unacknowledged,
        "problems": dict(warm.problems + done.problems),
    }


def _floor(kind: str, keys: list[str]) -> Figures:
    from annotation.models import Account
    from benchmarks.workbench import bare, serving

    bare.prepare([account.pk for account in Account.objects.all()])
    figures = {}
    with serving.server(kind, "benchmarks.workbench.bare_settings") as server:
        for name in ("nothing", "write"):
            pair = pressing.same_twice(f"/{name}/")
            _press(server.port, keys, pair, WARM_UP / 2, 10**9)
            cpu = server.cpu(), serving.backends_cpu()
            done = _press(server.port, keys, pair, FLOOR_SECONDS, 10**9)
            cpu = server.cpu() - cpu[0], serving.backends_cpu() - cpu[1]
            figures[name] = _speed(done, cpu)
    return figures


def _press(port: int, keys: list[str], pair: Any, seconds: float, most: int) -> pressing.Pressed:
    return pressing.press(port, keys, pair, seconds=seconds, most=most)


def _speed(done: pressing.Pressed, cpu: tuple[float, float]) -> Figures:
    pairs = max(1, done.pairs)
    return {
        "pairs": done.pairs,
        "rate": round(done.rate, 1),
        "next": pressing.quantiles(done.first),
        "label": pressing.quantiles(done.second),
        "cpu_server": round(cpu[0] / pairs * 1000, 2),
        "cpu_database": round(cpu[1] / pairs * 1000, 2),
        "cpu_client": round(done.cpu / pairs * 1000, 2),
    }


# -------------------------------------------------------------------------------------- printing


def _heading() -> str:
    return (
        f"{'database':<11}{'items':>10}{'pairs/s':>9}"
        f"{'next ms p50/p95/max':>22}{'label ms p50/p95/max':>22}"
        f"{'CPU ms a pair: server + database + client':>44}"
    )


def _row(name: str, items: str, figures: Figures) -> str:
    calls = "".join(
        f"{'/'.join(f'{figures[call][at]:.0f}' for at in ('p50', 'p95', 'max')):>22}"
        for call in ("next", "label")
    )
    cpu = " + ".join(f"{figures[f'cpu_{of}']:.1f}" for of in ("server", "database", "client"))
    return f"{name:<11}{items:>10}{figures['rate']:>9.1f}{calls}{cpu:>44}"


def _lines(figures: Figures) -> str:
    kind, limit = figures["database"], LIMITS[figures["database"]]
    items = f"{figures['items']:,}" + (" half" if figures["half"] else "")
    rate, floor = figures["rate"], figures["floor"]["write"]["rate"]
    p95 = max(figures[call]["p95"] for call in ("next", "label"))
    longest = max(figures[call]["max"] for call in ("next", "label"))
    checks = [
        reporting.limit_line(rate >= limit.rate, f"{rate} pairs/s, at least {limit.rate:.0f}"),
        reporting.limit_line(p95 < limit.p95, f"p95 {p95} ms, under {limit.p95:.0f}"),
        reporting.limit_line(
            longest <= limit.longest, f"longest {longest} ms, at most {limit.longest:.0f}"
        ),
        reporting.limit_line(not figures["doubled"], f"{figures['doubled']} doubled"),
        reporting.limit_line(not figures["lost"], f"{figures['lost']} lost"),
    ]
    return "\n".join(
        [
            _row(kind, items, figures),
            _row("  nothing", "", figures["floor"]["nothing"]),
            _row("  one row", "", figures["floor"]["write"]),
            f"  {figures['pairs']:,} pairs, {rate / floor:.2f} of the floor: {'; '.join(checks)}",
            *(f"  {count} x {problem}" for problem, count in figures["problems"].items()),
        ]
    )


def _compared(results: list[Figures]) -> str:
    small = [figures["rate"] for figures in results if figures["items"] == SMALL]
    base = sum(small) / len(small)
    return "\n".join(
        reporting.limit_line(
            figures["rate"] / base >= KEPT_RATE,
            f"{figures['items']:,} items{', half done by one' if figures['half'] else ''}:"
            f" {figures['rate'] / base:.2f} of the rate at {SMALL:,}, at least {KEPT_RATE}",
        )
        for figures in results
        if figures["items"] != SMALL
    )


if __name__ == "__main__":
    main()
