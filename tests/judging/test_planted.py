"""Planted evaluators: what is known of them is what the figures find."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.utils import timezone

from annotation.models import Item, Project
from judging.errors import Refused
from judging.models import Run
from judging.results.tables import blindspots, choose, compare
from judging.runs.recorded import planted
from tests.judging.builders_judging import make_items

pytestmark = pytest.mark.django_db

SEEDS = range(1, 7)


@pytest.fixture
def items(project: Project) -> list[Item]:
    """300 items of 75 questions: five categories, of which one has twice as many, and a fifth
    without an error."""
    categories = ["spelling", "spelling", "number-errors", "grammar", "entity"]
    made = []
    for question in range(75):
        category = categories[question % 5]
        of = {"cluster": f"question {question}", "category": category}
        made += make_items(project, 3 + (question % 3 == 0), **of)
        made += make_items(project, 1 - (question % 3 == 0), "score-invariant", **of)
    return made


def test_figures_find_what_was_planted(project: Project, items: list[Item]) -> None:
    """Ten seconds: four evaluators, six times."""
    inside, tested, falsely, seen = 0, 0, 0, 0
    for seed in SEEDS:
        found = planted.plant(project, seed, timezone.now())
        runs = [one.run for one in found]
        rows = {row["run"]: row for row in choose.tabulate(runs)}
        for one in found:
            row = rows[one.run.number]
            for name in ("detection", "false_alarm", "j"):
                tested += 1
                inside += row[f"{name}_low"] <= getattr(one, name) <= row[f"{name}_high"]
        for row in compare.compare(runs)[:6]:
            a, b = (
                next(o for o in found if o.run.number == row[name]) for name in ("run_a", "run_b")
            )
            for value, ends in (
                (a.detection - b.detection, ("low", "high")),
                (a.false_alarm - b.false_alarm, ("false_alarm_low", "false_alarm_high")),
                (a.j - b.j, ("j_low", "j_high")),
            ):
                tested += 1
                inside += row[ends[0]] <= value <= row[ends[1]]
        even, blind, *_ = found
        spots = [
            {
                row["value"]
                for row in blindspots.tabulate(project, [one.run], ["category"])
                if row["blind"]
            }
            for one in (even, blind)
        ]
        falsely += bool(spots[0])
        seen += spots[1] == {"spelling"}
        assert [one.blind for one in found] == ["", "spelling", "", ""]
    assert tested == len(SEEDS) * (4 * 3 + 6 * 3)
    # Two standard errors below 90 %.
    assert inside / tested > 0.9 - 2 * (0.09 / tested) ** 0.5
    assert falsely <= 1
    assert seen >= len(SEEDS) - 1


def test_the_same_seed_is_the_same_run(project: Project, items: list[Item]) -> None:
    one, other = (planted.plant(project, 3, timezone.now()) for _ in range(2))
    assert [found.run.pk for found in one] == [found.run.pk for found in other]
    assert Run.objects.count() == len(planted.EVALUATORS)


def test_the_command_prints_what_was_planted_beside_what_is_found(
    project: Project, items: list[Item]
) -> None:
    said = StringIO()
    call_command("planted", project="fbi", seed=2, stdout=said)
    lines = said.getvalue().splitlines()
    assert lines[0] == "run 1, planted-even"
    assert lines[1].startswith("  detection: 0.750 planted, 0.")
    assert len(lines) == 4 * 5
    assert "spelling planted, spelling found in" in lines[9]


def test_without_items_nothing_is_planted(project: Project) -> None:
    with pytest.raises(Refused):
        planted.plant(project, 1, timezone.now())
    make_items(project, 3, "score-invariant")
    with pytest.raises(Refused, match="no error items"):
        planted.plant(project, 1, timezone.now())
    assert not Run.objects.exists()
