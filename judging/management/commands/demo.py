from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from annotation.management.files import command_error
from annotation.models import Project
from judging import demo

EXAMPLES = settings.BASE_DIR / "examples"
ARCHIVE = "fbi"


class Command(BaseCommand):
    help = "Set up an example project with accounts to sign in. Repeating it changes nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--data",
            type=Path,
            metavar="PATH",
            help=f"study 000's archive, as project {ARCHIVE!r}, instead of the example items",
        )
        parser.add_argument(
            "--serve", action="store_true", help="then start the server in this process"
        )
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)

    def handle(self, *args: Any, data: Path | None, **options: Any) -> None:
        if settings.SITE_URL:
            raise CommandError("SITE_URL is set. Demo accounts are not allowed on a public site.")
        if data and not data.exists():
            raise command_error(f"There is no file {data}.")
        call_command("migrate", interactive=False, verbosity=0)
        project = self._project(data)
        words = demo.load_passwords(settings.VAR_DIR / "demo-passwords")
        opens = demo.create_accounts(project, words)
        self._tell_people(project, {name: words[name] for name in words if opens[name]})
        if options["serve"]:
            call_command("serve", host=options["host"], port=options["port"])

    def _project(self, data: Path | None) -> Project:
        slug = ARCHIVE if data else "demo"
        project = Project.objects.filter(slug=slug).first()
        if project and demo.is_made(project):
            return project
        if data:
            self.stdout.write(f"demo: importing {data}")
            call_command("import_items", data, project=slug, create=True, accept=True, name="FBI")
            project = Project.objects.get(slug=slug)
        else:
            self.stdout.write("demo: importing the example items and labelling some")
            project = demo.import_project(EXAMPLES / "items.jsonl", slug, "Demo")
            demo.write_guidelines(project, EXAMPLES / "guidelines.md")
            demo.label_part(project)
            self.stdout.write("demo: putting 1, 2 and 4 errors into the gold answers")
            demo.make_perturbed_items(project)
        self.stdout.write(f"demo: running the offline evaluators {', '.join(demo.BASELINES)}")
        demo.run_baselines(project)
        demo.record_made(project)
        return project

    def _tell_people(self, project: Project, words: dict[str, str]) -> None:
        self.stdout.write(f"\nProject {project.name!r} is ready. Sign in as one of:")
        for person in demo.PEOPLE:
            word = words.get(person.name, "(changed)")
            self.stdout.write(f"  {person.name:<11}{word:<15}{person.does}")
        self.stdout.write("")
