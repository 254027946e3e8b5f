from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from annotation.management.files import command_error
from annotation.models import Project
from judging import demo, demo_model, planted_demo
from judging.demo_model import LocalModel, NoServer

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
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on")
        parser.add_argument(
            "--model",
            type=Path,
            metavar="GGUF",
            help="a language model to serve on this machine and to start runs with; see make "
            "demo-llm",
        )
        parser.add_argument(
            "--model-python",
            type=Path,
            default=settings.BASE_DIR / ".venv-llm/bin/python",
            help="the Python that has xllamacpp",
        )
        parser.add_argument("--model-port", type=int, default=8090, help="port of this model")

    def handle(self, *args: Any, data: Path | None, **options: Any) -> None:
        if settings.SITE_URL:
            raise CommandError("SITE_URL is set. Demo accounts are not allowed on a public site.")
        if data and not data.exists():
            raise command_error(f"There is no file {data}.")
        call_command("migrate", interactive=False, verbosity=0)
        project = self._project(data)
        projects = [project] if data else [project, self._planted_project()]
        words = demo.load_passwords(settings.VAR_DIR / "demo-passwords")
        opens = [demo.create_accounts(one, words) for one in projects][-1]
        self._tell_people(projects, {name: words[name] for name in words if opens[name]})
        if options["model"] is None:
            self._serve(options)
            return
        model = LocalModel(
            options["model"].resolve(),
            options["model_python"],
            options["model_port"],
            settings.VAR_DIR / "model.log",
        )
        try:
            with demo_model.running_server(model) as address:
                site = f"http://{options['host']}:{options['port']}" if options["serve"] else ""
                self._start_runs(project, model, address, site)
                self._serve(options)
        except NoServer as problem:
            raise command_error(str(problem)) from problem

    def _serve(self, options: dict[str, Any]) -> None:
        if options["serve"]:
            call_command("serve", host=options["host"], port=options["port"])

    def _start_runs(self, project: Project, model: LocalModel, address: str, site: str) -> None:
        """Let the served model evaluate some items, and say what that is. `site` is the address at
        which the application will answer, "" if it is not started here."""
        endpoint = demo_model.get_endpoint(model, address)
        note = demo_model.TOY_NOTE if model.is_toy else ""
        runs = demo_model.start_runs(project, endpoint, note)
        self.stdout.write(
            f"The model {endpoint.model} is served at {address}, as {endpoint.name!r}."
        )
        if note:
            self.stdout.write(f"{note} A better model is one path away: make demo-llm GGUF=path.")
        if runs:
            numbers = ", ".join(f"{run.number} ({run.strategy.slug})" for run in runs)
            self.stdout.write(
                f"Runs {numbers} are asking it about ten items, which takes some minutes; watch "
                f"them at {site}/projects/{project.slug}/runs/."
            )
        self.stdout.write("")

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

    def _planted_project(self) -> Project:
        if not Project.objects.filter(slug=planted_demo.SLUG).exists():
            self.stdout.write("demo: recording the replies of planted evaluators")
        return planted_demo.make_project(timezone.now())

    def _tell_people(self, projects: list[Project], words: dict[str, str]) -> None:
        names = " and ".join(repr(one.name) for one in projects)
        ready = f"Project {names} is ready" if len(projects) == 1 else f"Projects {names} are ready"
        self.stdout.write(f"\n{ready}. Sign in as one of:")
        for person in demo.PEOPLE:
            word = words.get(person.name, "(changed)")
            self.stdout.write(f"  {person.name:<11}{word:<15}{person.does}")
        self.stdout.write("")
