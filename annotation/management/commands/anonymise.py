from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from annotation.errors import Refused
from annotation.models import Account, Membership
from annotation.reports import personal_data


class Command(BaseCommand):
    help = "Anonymise an account permanently: delete name, address, sessions and keys, keep labels."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", metavar="USERNAME", help="user name of the account")
        parser.add_argument(
            "--apply",
            action="store_true",
            help="anonymise the account; without this option, only show it",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        account = Account.objects.filter(username=options["username"]).first()
        if account is None:
            raise CommandError(
                f"There is no user {options['username']!r}. Give the user name of an account."
            )
        places = Membership.objects.filter(account=account).select_related("project")
        known = ", ".join(f"{place.alias} in {place.project.slug}" for place in places)
        self.stdout.write(f"aliases (they are kept): {known or 'none'}")
        try:
            if not options["apply"]:
                personal_data.check_can_anonymise(account)
                self.stdout.write(
                    "Nothing is changed yet. Add --apply to anonymise; this cannot be undone."
                )
                return
            personal_data.anonymise(account, None, now=timezone.now())
        except Refused as refused:
            raise CommandError(str(refused)) from refused
        self.stdout.write("The account is anonymised. Nobody can sign in with it any more.")
