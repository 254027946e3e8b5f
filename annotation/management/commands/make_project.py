from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.core.validators import validate_slug

from annotation import importing, tasktypes
from annotation.db import transactions
from annotation.models import Account, Event, Membership, Project, Role
from annotation.projects import members


class Command(BaseCommand):
    help = "Make a project without items, and somebody its lead; they let others in."

    def add_arguments(self, parser: ArgumentParser) -> None:
        known = tasktypes.load_definitions()
        parser.add_argument("slug", metavar="SLUG", help="what addresses and commands call it")
        parser.add_argument("--name", help="what pages call it; default: its slug")
        parser.add_argument(
            "--task-type",
            choices=known,
            default="perturbation-vetting",
            metavar="SLUG",
            help=f"default: perturbation-vetting; there are {', '.join(known)}",
        )
        parser.add_argument("--lead", metavar="USERNAME", help="has an account already")

    def handle(self, *args: Any, slug: str, lead: str | None, **options: Any) -> None:
        _check(slug)
        account = _account(lead) if lead else None
        named = {"name": options["name"]} if options["name"] else {}
        with transactions.transact():
            project = importing.create_audited_project(
                slug, task_type=options["task_type"], **named
            )
            if account:
                _lead(project, account)
        self.stdout.write(f"{project.name} is there, at /projects/{slug}/.")
        if account is None:
            self.stdout.write("Nobody leads it yet: a site admin gives people a place in it.")


def _check(slug: str) -> None:
    try:
        validate_slug(slug)
    except ValidationError as error:
        raise CommandError(
            f"{slug!r} cannot name a project: use letters, digits, hyphens and underscores.",
            returncode=2,
        ) from error
    if Project.objects.filter(slug=slug).exists():
        raise CommandError(f"There is a project {slug!r} already.", returncode=2)


def _account(name: str) -> Account:
    account = Account.objects.filter(username=name).first()
    if account is None:
        raise CommandError(f"Nobody has the user name {name!r}.", returncode=2)
    return account


def _lead(project: Project, account: Account) -> None:
    member = Membership.objects.create(
        project=project, account=account, alias=account.username, role=Role.LEAD
    )
    new = {"role": Role.LEAD.value}
    Event.record(
        members.MEMBER_EVENT, member.alias, project_id=project.pk, member_id=None, old={}, new=new
    )
