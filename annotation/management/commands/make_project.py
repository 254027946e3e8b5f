from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand
from django.core.validators import validate_slug

from annotation import tasktypes
from annotation.db import transactions
from annotation.labelling import work_order
from annotation.management.files import NO_LEAD, command_error, get_account
from annotation.models import Project
from annotation.projects import creation


class Command(BaseCommand):
    help = "Create a project without items and give it a lead, who can invite others."

    def add_arguments(self, parser: ArgumentParser) -> None:
        known = tasktypes.load_definitions()
        parser.add_argument(
            "slug", metavar="SLUG", help="name of the project in addresses and commands"
        )
        parser.add_argument("--name", help="name of the project on pages; default: the slug")
        parser.add_argument(
            "--task-type",
            choices=known,
            default="perturbation-vetting",
            metavar="SLUG",
            help="task type of the project; default: perturbation-vetting; one of "
            f"{', '.join(known)}",
        )
        parser.add_argument(
            "--lead", metavar="USERNAME", help="user name of the lead; the account must exist"
        )

    def handle(self, *args: Any, slug: str, lead: str | None, **options: Any) -> None:
        _check(slug)
        account = get_account(lead) if lead else None
        named = {"name": options["name"]} if options["name"] else {}
        with transactions.transact():
            project = creation.create_audited_project(
                slug,
                task_type=options["task_type"],
                **work_order.choose_for_new_project(),
                **named,
            )
            if account:
                creation.add_lead(project, account, by_command=True)
        self.stdout.write(f"Created {project.name} at /projects/{slug}/.")
        if account is None:
            self.stdout.write(NO_LEAD)


def _check(slug: str) -> None:
    try:
        validate_slug(slug)
    except ValidationError as error:
        raise command_error(
            f"{slug!r} is not a valid project slug. Use letters, digits, hyphens and underscores."
        ) from error
    if Project.objects.filter(slug=slug).exists():
        raise command_error(f"The project {slug!r} already exists. Choose another slug.")
