from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from annotation.management.files import command_error
from judging.management import run_commands
from judging.results.counted import UnknownField
from judging.results.tables.overlap import tabulate_overlap
from stats import tasks


class Command(BaseCommand):
    help = "Draw tasks evenly over low and high mean and SD of ROUGE-L and length of the reference."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", required=True, metavar="SLUG", help="the project")
        parser.add_argument(
            "--run", required=True, type=int, metavar="NUMBER", help="number of a run of ROUGE-L"
        )
        parser.add_argument(
            "--by",
            default="task",
            metavar="FIELD",
            help="field that names the task of an item; default: task",
        )
        parser.add_argument("--number", type=int, default=20, help="how many tasks; default: 20")
        parser.add_argument("--seed", type=int, default=1, help="seed of the draw; default: 1")
        parser.add_argument(
            "--keep",
            nargs="+",
            action="extend",
            default=[],
            metavar="TASK",
            help="tasks that are always drawn",
        )
        parser.add_argument(
            "--leave-out",
            nargs="+",
            action="extend",
            default=[],
            metavar="TASK",
            help="tasks that are never drawn",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        by, run = options["by"], run_commands.get_run(options["project"], options["run"])
        try:
            rows = list(tabulate_overlap(run.project, [run], [by]))
            if not rows:
                raise command_error(f"Run {run.number} has no ROUGE-L. Choose a run of it.")
            # A task with one score has no SD, so it cannot be placed in a cell.
            figures = {
                row[by]: (row["mean"], row["sd"], row["words"])
                for row in rows
                if row["sd"] is not None
            }
            if alone := sorted(row[by] for row in rows if row[by] not in figures):
                self.stderr.write(f"Left out, with a single score: {', '.join(alone)}")
            if kept := sorted({*options["keep"]}.intersection(alone)):
                raise command_error(
                    f"{', '.join(kept)}: only one score, so no standard deviation. Take it without "
                    "a draw."
                )
            drawn = tasks.draw_tasks(
                figures, options["number"], options["seed"], options["keep"], options["leave_out"]
            )
        except (UnknownField, ValueError) as error:
            raise command_error(str(error)) from error
        self.stdout.write("\n".join(drawn))
