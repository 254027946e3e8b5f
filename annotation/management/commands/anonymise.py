from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from annotation.errors import Refused
from annotation.models import Account, Membership
from annotation.reports import personal_data


class Command(BaseCommand):
    help = "Anonymise an account for good: name, address, sessions, keys. What they did stays."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", metavar="USERNAME")
        parser.add_argument("--apply", action="store_true", help="do it; else only say what it is")

    def handle(self, *args: Any, **options: Any) -> None:
        account = Account.objects.filter(username=options["username"]).first()
        if account is None:
            raise CommandError(f"Nobody has the user name {options['username']!r}.")
        places = Membership.objects.filter(account=account).select_related("project")
        known = ", ".join(f"{place.alias} in {place.project.slug}" for place in places)
        self.stdout.write(f"known as {known or 'nobody in any project'}, which stays")
        try:
            if not options["apply"]:
                personal_data.check_can_anonymise(account)
                self.stdout.write("nothing is done yet: add --apply, and there is no way back")
                return
            personal_data.anonymise(account, None, now=timezone.now())
        except Refused as refused:
            raise CommandError(str(refused)) from refused
        self.stdout.write("the account is anonymised, and nobody can sign in with it")
