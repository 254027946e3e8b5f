"""Django's command, put into the audit."""

import getpass
from typing import Any

from django.contrib.auth.management.commands import changepassword

from annotation import auditing
from annotation.models import Account


class Command(changepassword.Command):
    def handle(self, *args: Any, **options: Any) -> str | None:
        said = super().handle(*args, **options)
        name = options["username"] or getpass.getuser()
        auditing.record_account_change(
            Account.objects.get(username=name), None, new={"password": "set anew"}
        )
        return str(said)
