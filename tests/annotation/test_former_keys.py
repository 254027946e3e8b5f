"""Changed keys were stored under the default key of an action; now under its slug."""

from importlib import import_module

import pytest
from django.apps import apps

from annotation.accounts import keymap
from annotation.models import Account
from tests.builders import make_account

pytestmark = pytest.mark.django_db

MIGRATION = import_module("annotation.migrations.0017_hotkey_slugs")


def test_the_update_keeps_what_a_person_changed_and_goes_back() -> None:
    before = {"u": "z", "1": "v", "?": "h"}
    Account.objects.filter(pk=make_account("ada").pk).update(keys=before)
    make_account("ben")
    MIGRATION.rename(apps, None)
    now = {"undo": "z", "option-1": "v", "keys": "h"}
    assert Account.objects.get(username="ada").keys == now
    assert keymap.hotkeys(now)["undo"] == "z"
    MIGRATION.rename_back(apps, None)
    assert Account.objects.get(username="ada").keys == before


def test_every_action_of_before_has_its_slug() -> None:
    assert set(MIGRATION.SLUGS.values()) <= set(keymap.DEFAULT_KEYS)
