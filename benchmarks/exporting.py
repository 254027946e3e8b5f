"""The speed at which tables are exported, and the memory needed for it.

    python -m benchmarks.exporting [--databases postgresql sqlite] [--items 100000 ...]
        [--tables items labels] [--formats jsonl csv]

Each size has its own database, filled with items with about 2 KB in each text, half of them
labelled and resolved. Each table is then written by `manage.py export` in its own process, which
reports the time from its first query to its last byte, and its peak memory. The exit code is 1 if
rows are missing; a missed limit is only reported.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.workbench import reporting, scratch

ROOT = Path(__file__).resolve().parents[1]

USUAL = 100_000
# Targets: rows per second of the table of items, and MB of memory at any size.
RATE, MEMORY = 20_000, 200

Figures = dict[str, Any]


def main() -> None:
    options = _options()
    if options.write:
        print(json.dumps(_written(*options.write)))
        return
    if options.one:
        _measure(options)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print(f"{'database':<11}{'items':>10} {'table':<8}{'format':<8}{'rows':>10}{'s':>8}"
          f"{'rows/s':>9}{'MB':>6}{'MB file':>9}")  # fmt: skip
    lacking = "postgresql" in options.databases and scratch.lacking_postgresql()
    if lacking:
        print(lacking)
    for kind in options.databases:
        if not (lacking and kind == "postgresql"):
            for items in options.items:
                _in_process(kind, items, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--databases", nargs="+", choices=scratch.KINDS, default=[*scratch.KINDS])
    parser.add_argument("--items", nargs="+", type=int, default=[USUAL])
    parser.add_argument("--tables", nargs="+", default=["items", "labels"])
    parser.add_argument("--formats", nargs="+", default=["jsonl", "csv", "parquet"])
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--write", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def _in_process(kind: str, items: int, options: argparse.Namespace) -> None:
    # A Django process has one set of settings.
    command = [sys.executable, "-m", "benchmarks.exporting", "--one", "--databases", kind]
    command += ["--items", str(items), "--tables", *options.tables, "--formats", *options.formats]
    with subprocess.Popen(command, cwd=ROOT) as process:
        try:
            process.wait()
        finally:
            process.terminate()  # has no effect on a process that has ended
    if process.returncode:
        raise SystemExit(process.returncode)


def _measure(options: argparse.Namespace) -> None:
    kind, items = options.databases[0], options.items[0]
    with scratch.database(kind):
        from benchmarks.workbench import filling

        project = filling.project(items, people=2, overlap=1)
        labels = filling.label_half(project, project.members.order_by("pk")[0])
        for table in options.tables:
            for form in options.formats:
                figures = _apart(table, form)
                print(_line(kind, items, table, form, figures), flush=True)
                if figures["rows"] != {"labels": labels}.get(table, items):
                    raise SystemExit("Rows are missing.")


def _apart(table: str, form: str) -> Figures:
    command = [sys.executable, "-m", "benchmarks.exporting", "--write", table, form]
    printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    figures: Figures = json.loads(printed.splitlines()[-1])
    return figures


def _written(table: str, form: str) -> Figures:
    import django

    # This package is only installed with development tools, and pyarrow would load it, which takes
    # 60 MB.
    sys.meta_path.insert(0, _Without("pandas"))
    django.setup()
    from django.core.management import call_command

    from annotation.models import Event

    output = Path(os.environ["VAR_DIR"]) / f"{table}.{form}"
    begun = time.perf_counter()
    call_command("export", table, project="bench", format=form, output=output)
    seconds = time.perf_counter() - begun
    event = Event.objects.filter(kind="export").latest("pk")
    size = output.stat().st_size / 1e6
    output.unlink()
    return {"rows": event.data["rows"], "seconds": seconds, "memory": _peak(), "size": size}


class _Without:
    """Make a package appear not installed."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] == self._package:
            raise ImportError(f"{name} is not to be loaded")


def _peak() -> float:
    """Return the peak memory of this process in MB; NaN if the system does not report it."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    held = [int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM:")]
    return held[0] if held else float("nan")


def _line(kind: str, items: int, table: str, form: str, figures: Figures) -> str:
    rate = figures["rows"] / figures["seconds"]
    row = (
        f"{kind:<11}{items:>10,} {table:<8}{form:<8}{figures['rows']:>10,}"
        f"{figures['seconds']:>8.1f}{rate:>9,.0f}{figures['memory']:>6.0f}{figures['size']:>9.0f}"
    )
    checks = [reporting.limit_line(figures["memory"] < MEMORY, f"under {MEMORY} MB")]
    if table == "items":
        checks.append(reporting.limit_line(rate >= RATE, f"at least {RATE:,} rows/s"))
    return f"{row}  {'; '.join(checks)}"


if __name__ == "__main__":
    main()
