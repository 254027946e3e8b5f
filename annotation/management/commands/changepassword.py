"""Django's command, with an entry in the audit log."""

import getpass
from typing import Any

from django.contrib.auth.management.commands import changepassword

from annotation.models import Account
from annotation.projects import audit


class Command(changepassword.Command):
    help = "Change the password of an account; the audit log records it."

    def handle(self, *args: Any, **options: Any) -> str | None:
        said = super().handle(*args, **options)
        name = options["username"] or getpass.getuser()
        audit.record_account_change(
            Account.objects.get(username=name), None, new={"password": "set anew"}
        )
        return str(said)
