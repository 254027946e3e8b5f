"""Study 000's published archive, as it comes; nothing of it is in the repository."""

from collections import Counter
from pathlib import Path

import pytest
from django.core.management import call_command

from annotation.items import taxonomy
from annotation.models import Item, Resolution

pytestmark = pytest.mark.django_db

# Study 000, table 1, in the order of the taxonomy: long form, factual, instruction following,
# reasoning, score-invariant.
TABLE_1 = [92, 100, 84, 71, 91, 90, 94, 87, 68, 74, 91, 69, 50, 100, 99, 49, 81]
TABLE_1 += [149, 83, 97, 77, 88, 516]


def test_the_published_archive_comes_as_the_study_counts_it(shared_data: Path) -> None:
    path = str(shared_data / "fbi" / "data.zip")
    call_command("import_items", path, project="fbi", create=True, accept=True, verbosity=0)
    check_table_1()
    check_what_figures_need()


def check_table_1() -> None:
    counts = Counter(Item.objects.values_list("category", flat=True))
    assert [counts.pop(category.slug) for category in taxonomy.load_shipped().in_paper()] == TABLE_1
    assert counts == {"formatting": 31, "superficial": 61}
    assert set(Item.objects.exclude(duplicate_of=None).values_list("category", flat=True)) == {
        "formatting",
        "superficial",
    }


def check_what_figures_need() -> None:
    originals = Item.objects.originals()
    assert originals.count() == 2400
    assert originals.values("cluster").distinct().count() == 667
    invariant = originals.filter(category="score-invariant")
    assert Counter(invariant.values_list("source_ability", flat=True)) == {
        "long-form": 282,
        "factual": 108,
        "reasoning": 72,
        "instruction-following": 54,
    }
    flags = Counter(
        flag for flags in Item.objects.values_list("flags", flat=True) for flag in flags
    )
    assert flags == {"identical": 8, "white-space-only": 3}
    values = Counter(Resolution.objects.values_list("value", flat=True))
    assert values == {"valid": 1884, "score-invariant": 608}
