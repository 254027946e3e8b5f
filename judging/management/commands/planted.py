from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from annotation.management.files import get_open_project
from judging.management import run_commands
from judging.results.tables import blindspots, choose
from judging.runs.recorded import planted
from judging.runs.recorded.planted import PlantedRun

FIGURES = {"detection": "detection", "false_alarm": "false alarms", "j": "J"}


class Command(BaseCommand):
    help = (
        "Check the figures with evaluators whose rates are known: create runs with randomly drawn "
        "replies (one even, one blind in the largest category, one that finds fault with nearly "
        "everything, one that guesses), and print what was planted beside what is found. A 95 % "
        "interval misses the planted value in one of twenty cases. Use a copy of the project, or "
        "archive the runs afterwards with archive_run."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", required=True, metavar="SLUG", help="the project")
        parser.add_argument(
            "--seed", type=int, default=1, metavar="NUMBER", help="seed of the drawn replies"
        )
        run_commands.add_while_labelling(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        project = get_open_project(options["project"])
        found = run_commands.call_service(
            lambda: planted.plant(
                project,
                options["seed"],
                timezone.now(),
                while_labelling=options["while_labelling"],
            )
        )
        rows = {row["run"]: row for row in choose.tabulate([one.run for one in found])}
        for one in found:
            self.stdout.write(f"run {one.run.number}, {one.evaluator.name}")
            for line in _compare(one, rows[one.run.number]):
                self.stdout.write(f"  {line}")
            self.stdout.write(f"  {_search(one)}")


def _compare(one: PlantedRun, row: dict[str, Any]) -> Iterator[str]:
    for name, title in FIGURES.items():
        truth, low, high = getattr(one, name), row[f"{name}_low"], row[f"{name}_high"]
        if truth is None or low is None:
            yield f"{title}: not measured ({row[f'{name}_reason']})"
            continue
        where = "inside" if low <= truth <= high else "OUTSIDE"
        found = f"{row[name]:.3f} found ({low:.3f} to {high:.3f})"
        yield f"{title}: {truth:.3f} planted, {found}, {where}"


def _search(one: PlantedRun) -> str:
    rows = blindspots.tabulate(one.run.project, [one.run], ["category"])
    blind = ", ".join(row["value"] for row in rows if row["blind"]) or "none"
    tested = sum(row["p"] is not None for row in rows)
    return (
        f"blind spots: {one.blind or 'none'} planted, {blind} found in {tested} categories tested"
    )
