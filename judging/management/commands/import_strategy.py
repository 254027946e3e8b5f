from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.management import files
from judging.management import run_commands
from judging.strategies import catalogue, prompt_files


class Command(BaseCommand):
    help = (
        "Import a file of prompts as a project's own strategy. Without headings all of the file is "
        "the prompt; lines such as === system ===, === prompt === or === step NAME === divide it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path, help="the file of prompts, as text in UTF-8")
        parser.add_argument("--project", required=True, metavar="SLUG", help="the project")
        parser.add_argument(
            "--like",
            required=True,
            metavar="SLUG",
            help="the strategy that gives everything but the prompts",
        )
        parser.add_argument(
            "--name", required=True, metavar="SLUG", help="name of the new strategy"
        )
        parser.add_argument(
            "--title", default="", help="title of the new strategy; default: its name"
        )
        parser.add_argument("--note", default="", help="a note about this version")

    def handle(self, *args: Any, **options: Any) -> None:
        project = files.get_open_project(options["project"])
        like = catalogue.find_version(project, options["like"])
        if like is None:
            raise CommandError(f"There is no strategy {options['like']}. Check the name.")
        try:
            content = options["path"].read_bytes()
        except OSError as problem:
            raise CommandError(
                f"{options['path']} cannot be read: {problem.strerror}."
            ) from problem
        made = run_commands.call_service(
            lambda: prompt_files.import_strategy(
                project,
                like,
                content,
                slug=options["name"],
                title=options["title"] or options["name"],
                note=options["note"],
                member=None,
            )
        )
        self.stdout.write(f"{made} created from {options['path'].name}")
