"""How close a worker's call rate comes to the maximum for an evaluator of known latency, with every
reply stored at the end.

    python -m benchmarks.asking [--large | --pace | --tail] [--generating]
        [--databases sqlite postgresql] [--calls 10000] [--in-flight 64 256] [--times 3]
        [--latency 0.2]

On SQLite one process serves pages and calls the evaluator, like `manage.py serve`; on PostgreSQL
(at TEST_POSTGRES_URL) gunicorn serves and a worker with Redis calls, both started as in
docker-compose.yml. The evaluator is a process on the same machine. The rate is measured at the
evaluator, over all calls from the first request to the last reply; its share is relative to the
ceiling, which is calls in flight divided by latency. A bare loop with the same client, which stores
nothing, is measured for comparison. Meanwhile the run's progress, the list of runs and the
project's page are requested in turn, one page every 0.4 s. A small warm-up run is made first and
not counted.

`--generating` requests perturbed answers, of about 2 KB each, instead of scores. `--large` makes
2,000 and then 100,000 calls and compares the memory. With `--pace` two workers share a limit of
calls per minute. With `--tail` one call in twenty takes 100 s beside 3 s, and the share of the 64
places that are taken until the last request is measured, in five minutes. The exit code is 1 if a
call was made twice, a reply was not stored, or a call failed; a missed limit is only reported.
"""

import argparse
import asyncio
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.engine.evaluator import Evaluator, evaluator, occupied, steady
from benchmarks.workbench import pressing, reporting, scratch

Figures = dict[str, Any]

SHARES = {64: 0.95, 256: 0.9}
PAGE_P95 = 50.0
FIRST, SMALL, LARGE = 1_000, 2_000, 100_000
# Words in an answer: 1 KB, or 2 KB if replies contain an answer.
SHORT, LONG = 180, 330
# The maximum ratio between the memory used in a large run and in a small run.
FLAT = 1.1
PER_MINUTE, PACE_WITHIN, PACE_SECONDS = 600, 0.03, 60.0
# Places, calls, and seconds of a call, of a long one, and until all places are taken.
TAIL_IN_FLIGHT, TAIL_CALLS, TAIL_SHORT, TAIL_LONG, TAIL_SETTLED = 64, 2_200, 3.0, 100.0, 5.0
TAIL_SHARE = 0.9


def main() -> None:
    """Measure each database in its own process, and print the results."""
    options = _options()
    if options.one:
        with tempfile.TemporaryDirectory(prefix="blindspot-bench-") as folder:
            _measure(options, Path(folder))
        return
    if options.pace:
        # A single process has no second worker with which to share the limit.
        options.databases = ["postgresql"]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    lacking = scratch.lacking_postgresql() if "postgresql" in options.databases else ""
    if lacking:
        print(lacking)
    wrong = False
    for kind in options.databases:
        if not (lacking and kind == "postgresql"):
            figures = [each for each in _in_process(kind) if _print(each)]
            wrong |= any(each.get("wrong") for each in figures)
            print(_summary(kind, figures, options))
    raise SystemExit(1 if wrong else 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--databases", nargs="+", choices=scratch.KINDS, default=[*scratch.KINDS])
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--in-flight", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--generating", action="store_true")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--large", action="store_true")
    only.add_argument("--pace", action="store_true")
    only.add_argument("--tail", action="store_true")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _in_process(kind: str) -> Iterator[Figures]:
    """Measure one database in its own process, with the same options."""
    given = sys.argv[1:]
    if "--databases" in given:
        at = given.index("--databases")
        given = given[:at] + [w for w in given[at + 1 :] if w not in scratch.KINDS]
    return reporting.figures_of("benchmarks.asking", "--one", *given, "--databases", kind)


# ------------------------------------------------------------------------------------- measuring


def _measure(options: argparse.Namespace, folder: Path) -> None:
    """Measure everything on one database; prints one JSON object per line."""
    kind = options.databases[0]
    os.environ["EVALUATOR_HOSTS"] = "127.0.0.1"
    with ExitStack() as stack:
        if kind == "postgresql":
            stack.enter_context(scratch.redis())
        stack.enter_context(scratch.database(kind, with_redis=True))
        if options.pace or options.tail:
            figures = _paced(options, folder) if options.pace else _tailed(kind, folder)
            print(json.dumps(figures), flush=True)
            return
        for figures in _asked(kind, options, folder):
            print(json.dumps(figures), flush=True)


def _asked(kind: str, options: argparse.Namespace, folder: Path) -> Iterator[Figures]:
    from benchmarks.engine import asked
    from benchmarks.workbench import serving

    sizes = [SMALL, LARGE] if options.large else [options.calls] * options.times
    project = asked.project(max(sizes), words=LONG if options.generating else SHORT)
    cookie = asked.cookie(asked.researcher(project))
    with ExitStack() as stack:
        server = stack.enter_context(serving.server(kind))
        workers = [server]
        if kind == "postgresql":
            workers.append(stack.enter_context(serving.worker()))
        with evaluator(folder, options.latency) as other:
            _run(project, workers, other, cookie, FIRST, options.in_flight[0], 0, options)
        for in_flight in options.in_flight[-1:] if options.large else options.in_flight:
            for number, calls in enumerate(sizes):
                with evaluator(folder, options.latency) as other:
                    yield _run(
                        project, workers, other, cookie, calls, in_flight, number, options
                    ) | {"what": kind}
                    if not options.large:
                        yield _bare(other, calls, in_flight, number, options)


def _run(
    project: Any,
    workers: list[Any],
    other: Evaluator,
    cookie: str,
    calls: int,
    in_flight: int,
    number: int,
    options: argparse.Namespace,
) -> Figures:
    """Measure one run from its first request to its last outcome."""
    from benchmarks.engine import asked, watching
    from benchmarks.workbench import serving

    def cpu() -> list[float]:
        return [*(worker.cpu() for worker in workers), serving.backends_cpu()]

    model = f"run-{in_flight}-{number}-{calls}"
    begun, before = time.monotonic(), cpu()
    ways = {"in_flight": in_flight, "limit": calls, "generating": options.generating}
    run = asked.start(project, other.address, model, **ways)
    # The progress that the page of the run polls, and pages that other users view.
    home = f"/projects/{project.slug}/"
    pages = [f"{home}runs/{run.number}/", f"{home}runs/", home]

    def processes() -> list[int]:
        return [pid for worker in workers for pid in worker.processes()]

    with watching.watched(workers[0].port, pages, cookie, processes) as seen:
        asked.wait(run, seconds=60 + 20 * calls * options.latency / in_flight)
    kept, log = asked.kept(run), other.calls(model)
    wrong = {kept.replies, kept.decided - kept.missing, len({d for *_, d in log})} != {calls}
    return {
        **asdict(steady(log, in_flight=in_flight, latency=options.latency)),
        "in_flight": in_flight,
        "seconds": time.monotonic() - begun,
        "cpu": [(now - then) / calls * 1000 for now, then in zip(cpu(), before, strict=True)],
        "page": pressing.quantiles(seen.milliseconds),
        "pages": seen.milliseconds,
        "memory": seen.memory,
        "wrong": f"{asdict(kept)}, {len(log)} calls" if wrong or len(log) != calls else "",
        "troubles": seen.troubles[:3],
    }


def _bare(
    other: Evaluator, calls: int, in_flight: int, number: int, options: argparse.Namespace
) -> Figures:
    """Make the same number of calls with the same client, and discard the replies."""
    from benchmarks.scripted import call_all

    model = f"bare-{in_flight}-{number}"
    begun, cpu = time.monotonic(), time.process_time()
    asyncio.run(call_all(other.address, calls, in_flight, model=model))
    figures = asdict(steady(other.calls(model), in_flight=in_flight, latency=options.latency))
    return figures | {
        "what": "bare loop",
        "in_flight": in_flight,
        "seconds": time.monotonic() - begun,
        "cpu": [(time.process_time() - cpu) / calls * 1000],
    }


def _paced(options: argparse.Namespace, folder: Path) -> Figures:
    """Measure two workers that share one limit of calls per minute."""
    from benchmarks.engine import asked
    from benchmarks.workbench import serving
    from judging.models import Request
    from judging.runs import lifecycle

    project = asked.project(SMALL, words=SHORT)
    with evaluator(folder, 0.05) as other, serving.worker(), serving.worker():
        run = asked.start(project, other.address, "paced", in_flight=64, per_minute=PER_MINUTE)
        holders: set[str] = set()
        ends = None
        while ends is None or time.monotonic() < ends:
            leased = Request.objects.wanted_by(run).exclude(leased_by="")
            holders |= set(leased.values_list("leased_by", flat=True).distinct())
            if ends is None and other.calls("paced"):
                ends = time.monotonic() + PACE_SECONDS
            time.sleep(0.5)
        run.refresh_from_db()
        lifecycle.cancel(run, None)
        came = sorted(received for received, _, _ in other.calls("paced"))
    rate = (len(came) - 1) / (came[-1] - came[0]) * 60
    return {"what": "pace", "rate": rate, "calls": len(came), "holders": len(holders)}


def _tailed(kind: str, folder: Path) -> Figures:
    """Measure how many places are taken while some calls take long, over several time slices."""
    from benchmarks.engine import asked
    from benchmarks.workbench import serving

    project = asked.project(TAIL_CALLS, words=SHORT)
    with ExitStack() as stack:
        other = stack.enter_context(evaluator(folder, TAIL_SHORT, TAIL_LONG))
        stack.enter_context(serving.server(kind))
        if kind == "postgresql":
            stack.enter_context(serving.worker())
        ways = {"in_flight": TAIL_IN_FLIGHT, "limit": TAIL_CALLS, "timeout": 300}
        run = asked.start(project, other.address, "tailed", **ways)
        asked.wait(run, seconds=900)
        kept, calls = asked.kept(run), other.calls("tailed")
    share = occupied(calls, in_flight=TAIL_IN_FLIGHT, settled=TAIL_SETTLED)
    is_whole = kept.replies == len(calls) == len({digest for *_, digest in calls}) == TAIL_CALLS
    wrong = "" if is_whole else f"{asdict(kept)}, {len(calls)} calls"
    return {"what": "tail", "kind": kind, "share": share, "calls": len(calls), "wrong": wrong}


# -------------------------------------------------------------------------------------- printing


def _print(figures: Figures) -> bool:
    if figures["what"] in {"pace", "tail"}:
        return True
    page = figures.get("page")
    pages = f"{page['p50']:.0f}/{page['p95']:.0f}/{page['max']:.0f}" if page else ""
    cpu = " + ".join(f"{part:.2f}" for part in figures["cpu"])
    memory = f"{figures['memory']:.0f}" if "memory" in figures else ""
    print(
        f"{figures['what']:<11}{figures['in_flight']:>4} in flight{figures['calls']:>8} calls"
        f"{figures['rate']:>8.1f}/s{figures['share']:>7.3f} of the ceiling"
        f"{figures['seconds']:>8.1f} s in all{cpu:>20} ms CPU a call"
        f"{pages:>12} ms page p50/p95/max {memory:>6} MB",
        flush=True,
    )
    for trouble in [figures.get("wrong"), *figures.get("troubles", [])]:
        if trouble:
            print(f"  WRONG {trouble}")
    return True


def _summary(kind: str, figures: list[Figures], options: argparse.Namespace) -> str:
    if options.pace:
        return _of_pace(figures[0])
    if options.tail:
        return _of_tail(figures[0])
    own = [each for each in figures if each["what"] == kind]
    if options.large:
        small, large = own[0]["memory"], own[-1]["memory"]
        grown = large / small
        return reporting.limit_line(
            grown <= FLAT,
            f"{kind}: memory {small:.0f} MB at {SMALL:,} calls, {large:.0f} MB at {LARGE:,}:"
            f" {grown:.2f}, at most {FLAT}",
        )
    lines = []
    for in_flight in options.in_flight:
        alike = [each for each in own if each["in_flight"] == in_flight]
        bare = [each for each in figures if each["in_flight"] == in_flight and each not in alike]
        share = statistics.median(each["share"] for each in alike)
        beside = statistics.median(each["share"] for each in bare)
        page = pressing.quantiles([ms for each in alike for ms in each["pages"]])["p95"]
        least = SHARES.get(in_flight, 0.0)
        what = f"{kind}{', generating' if options.generating else ''}"
        said = f"{what}, {in_flight} in flight: median {share:.3f} of the ceiling, at least {least}"
        lines.append(reporting.limit_line(share >= least, f"{said} (the bare loop {beside:.3f})"))
        lines.append(
            reporting.limit_line(
                page < PAGE_P95, f"  p95 of a page {page:.0f} ms, under {PAGE_P95:.0f}"
            )
        )
    return "\n".join(lines)


def _of_pace(figures: Figures) -> str:
    off = abs(figures["rate"] / PER_MINUTE - 1)
    return reporting.limit_line(
        off <= PACE_WITHIN and figures["holders"] > 1,
        f"{figures['holders']} workers: {figures['rate']:.1f} calls a minute of {PER_MINUTE},"
        f" {off:.1%} off, at most {PACE_WITHIN:.0%}",
    )


def _of_tail(figures: Figures) -> str:
    return reporting.limit_line(
        figures["share"] >= TAIL_SHARE and not figures["wrong"],
        f"{figures['kind']}: {figures['share']:.3f} of {TAIL_IN_FLIGHT} places taken while one call"
        f" in twenty takes {TAIL_LONG:.0f} s, at least {TAIL_SHARE}; {figures['calls']} calls"
        f" {figures['wrong']}".rstrip(),
    )


if __name__ == "__main__":
    main()
