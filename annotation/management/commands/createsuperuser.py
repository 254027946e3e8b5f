"""Django's command, which creates the first site admins, with an entry in the audit log."""

from typing import Any

from django.contrib.auth.management.commands import createsuperuser
from django.db.models import Max

from annotation.models import Account
from annotation.projects import audit


class Command(createsuperuser.Command):
    help = "Create a site admin; the audit log records it."

    def handle(self, *args: Any, **options: Any) -> None:
        last = Account.objects.aggregate(last=Max("pk"))["last"] or 0
        super().handle(*args, **options)
        for account in Account.objects.filter(pk__gt=last, is_superuser=True):
            new = {"account": "made", "is_staff": account.is_staff, "is_superuser": True}
            audit.record_account_change(account, None, new=new)
