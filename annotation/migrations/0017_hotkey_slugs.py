"""What a person changed of their keys is stored by the action, no longer by its default key."""

from typing import Any

from django.db import migrations

SLUGS = {
    "c": "comment",
    "e": "correct",
    "f": "flag",
    "u": "undo",
    "s": "skip",
    "d": "difference",
    "n": "next",
    "p": "previous",
    "w": "fold",
    "g": "guidelines",
    "m": "comments",
    "b": "siblings",
    "?": "keys",
} | {digit: f"option-{digit}" for digit in "1234567890"}


def rename(apps: Any, editor: Any) -> None:
    _update(apps, SLUGS)


def rename_back(apps: Any, editor: Any) -> None:
    _update(apps, {slug: key for key, slug in SLUGS.items()})


def _update(apps: Any, words: dict[str, str]) -> None:
    accounts = apps.get_model("annotation", "Account").objects
    for account in accounts.exclude(keys={}).only("keys").iterator():
        account.keys = {words.get(action, action): key for action, key in account.keys.items()}
        account.save(update_fields=["keys"])


class Migration(migrations.Migration):
    dependencies = [("annotation", "0016_help_texts")]
    operations = [migrations.RunPython(rename, rename_back)]
