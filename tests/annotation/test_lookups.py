from typing import Any

import pytest

from annotation.models import Item, Revision
from tests.builders import make_item, make_project

pytestmark = pytest.mark.django_db


def test_rows_are_found_among_ids_however_many_there_are(
    django_assert_num_queries: Any,
) -> None:
    project = make_project()
    items = [make_item(project, str(number)) for number in range(5)]
    wanted = [items[1].pk, items[3].pk]
    with django_assert_num_queries(1):
        found = Item.objects.filter(pk__among=[*wanted, *range(10**9, 10**9 + 2000)])
        assert sorted(item.pk for item in found) == wanted
    assert Item.objects.filter(pk__among=[]).count() == 0
    assert Item.objects.exclude(pk__among=wanted).count() == 3


def test_ids_of_other_rows_are_looked_up_alike() -> None:
    item = make_item(make_project(), "a")
    make_item(item.project, "b")
    assert Revision.objects.filter(item__among=[item.pk]).get().item == item


def test_what_is_no_id_is_refused() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        Item.objects.filter(pk__among=["1) OR 1=1"])


def test_keys_are_looked_up_as_they_are_written() -> None:
    project = make_project()
    odd = ["a", "it's", 'say "x", {y}', "b\\c", "ключ", "1"]
    for key in odd:
        make_item(project, key)
    found = Item.objects.filter(key__among=[*odd[1:], "other"])
    assert sorted(item.key for item in found) == sorted(odd[1:])
