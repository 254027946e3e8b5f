"""What the figures against people leave out, and what they make of repeats, panels and numbers off
the scale."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from annotation.models import Label, Project
from annotation.tasktypes import versions
from judging.errors import Refused
from judging.models import Run
from judging.results import correlations
from judging.results.paired_scores import PairedScores
from judging.results.tables import alignment, majority, paired_answers, rated_items
from judging.results.tables.ceiling import tabulate_alt_test, tabulate_ceiling
from judging.runs import derived, pinning
from stats import ceiling
from tests.builders import make_member
from tests.judging.builders_judging import make_strategy
from tests.judging.builders_rated import (
    aligned,
    bring_items,
    bring_labels,
    bring_scores,
    only,
    runs_of,
)

pytestmark = pytest.mark.django_db

METRICS = ("naturalness", "relatedness", "correctness")


def all_three(value: int) -> dict[str, int]:
    return dict.fromkeys(METRICS, value)


def bring_rated(folder: Path, values: Sequence[int], **said: Any) -> Project:
    """Items i0, i1 ... that were rated elsewhere, taken as they are."""
    rows = [
        {"key": f"i{n}", "prompt": f"Q{n}?", "gold": "A", "response": f"R{n}", **all_three(value)}
        for n, value in enumerate(values)
    ]
    rows[-1] |= said
    return bring_items(folder, "p", rows, accept=True)


def judge(folder: Path, project: Project, values: Sequence[Any], endpoint: str = "judge") -> None:
    said = [(f"i{n}", {"correctness": one} if one else None) for n, one in enumerate(values)]
    bring_scores(folder, project, endpoint, "likert", said)


def correctness(project: Project, **wanted: Any) -> dict[str, Any]:
    rows = alignment.tabulate_alignment(project, runs_of(project), [])
    return only(rows, metric="correctness", **wanted)


def test_an_item_that_repeats_another_is_no_second_one(tmp_path: Path) -> None:
    project = bring_rated(tmp_path, [1, 2, 2], repeats="i1")
    judge(tmp_path, project, [1, 3, 3])
    # Of i0 and i1: errors 0 and 1.
    row = correctness(project)
    assert (row["n"], row["mae"]) == (2, 0.5)


def test_means_are_those_of_the_items_that_both_have(tmp_path: Path) -> None:
    project = bring_rated(tmp_path, [3, 2, 1])
    judge(tmp_path, project, [3, 2, None])
    # (3 - 1) / 2 and (2 - 1) / 2 of either.
    row = correctness(project)
    assert (row["mean_people"], row["mean_evaluator"]) == (0.75, 0.75)
    assert (row["total"], row["missing"], row["n"]) == (3, 1, 2)


def test_the_distance_of_two_means_lacks_what_either_of_them_lacks(tmp_path: Path) -> None:
    project = bring_rated(tmp_path, [3, 2])
    judge(tmp_path, project, [2, 2])
    (sides,) = aligned(project, "correctness")

    def distance(**scales: Any) -> tuple[float | None, str]:
        metric = replace(sides.metric, **scales)
        found = correlations.compute_points(replace(sides, metric=metric))["distance"]
        return found.value, found.reason

    # |0.75 - 0.5|, on the scale from 1 to 3.
    assert distance() == (0.25, "")
    assert distance(people=None) == (None, correlations.NOT_ASKED_REASON)
    assert distance(evaluator=None) == (None, correlations.NO_SCALE_REASON)
    assert distance(people=None, evaluator=None) == (None, correlations.NOT_ASKED_REASON)


def test_ratings_that_were_taken_as_they_are_have_no_raters(tmp_path: Path) -> None:
    project = bring_rated(tmp_path, [3, 2])
    judge(tmp_path, project, [3, None])
    rows = list(rated_items.tabulate_points(project, runs_of(project), []))
    first, second = (only(rows, item=key, metric="correctness") for key in ("i0", "i1"))
    assert (first["people"], first["raters"], first["mean"], first["decided"]) == (3, 0, None, None)
    assert (second["evaluator"], second["cause"]) == (None, "unparsable")
    assert list(majority.tabulate_majority(project, [])) == []
    assert list(tabulate_ceiling(project, runs_of(project), [])) == []


def test_a_number_off_the_scale_is_found_by_the_title_of_its_metric(tmp_path: Path) -> None:
    project = bring_items(
        tmp_path, "p", [{"key": "a", "prompt": "Q", "gold": "G", "response": "R"}], "rubric-scoring"
    )
    points = {"m1": 2, "m2": 3, "m3": 0, "m4": 0, "m5": 3}
    bring_labels(tmp_path, project, [("a", "ada", points)])
    said = {"M1 Class": 2, "M2 Family": 3, "M3 Species": 0, "M4 Context": 0, "M5 Overall": 4}
    bring_scores(tmp_path, project, "judge", "score-matrix-animals", [("a", said)])
    (m5,) = aligned(project, "m5")
    (total,) = aligned(project, "total")
    assert (m5.given.tolist(), total.given.tolist()) == ([4], [9])


def test_of_repeats_only_those_on_the_scale_have_a_mean(tmp_path: Path) -> None:
    project = bring_rated(tmp_path, [2])
    said = [{"correctness": value} for value in (1, 9, 3)]
    bring_scores(tmp_path, project, "judge", "likert", [("i0", one) for one in said])
    row = correctness(project)
    assert (row["off_scale"], row["n"], row["bias"]) == (None, 1, 0)
    bring_scores(tmp_path, project, "wild", "likert", [("i0", {"correctness": 9})] * 2)
    assert correctness(project, endpoint="wild")["off_scale"] is None


def test_a_panel_of_evaluators_is_held_against_people_as_its_members_are(tmp_path: Path) -> None:
    project = bring_rated(tmp_path, [1, 3])
    judge(tmp_path, project, [1, 2], "one")
    judge(tmp_path, project, [2, 3], "other")
    run = derived.derive_run(project, strategy=make_strategy("mean"), sources=runs_of(project))
    assert run.digest == pinning.compute_digest(run)
    # Means 1.5 and 2.5 against 1 and 3.
    row = correctness(project, strategy="mean")
    assert (row["mae"], row["bias"], row["tau"]) == pytest.approx((0.5, 0, 1))


def test_only_finished_runs_that_called_an_evaluator_are_combined(tmp_path: Path) -> None:
    project = bring_rated(tmp_path, [1, 3])
    judge(tmp_path, project, [1, 2], "one")
    judge(tmp_path, project, [2, 3], "other")
    strategy = make_strategy("mean")
    panel = derived.derive_run(project, strategy=strategy, sources=runs_of(project))
    one, other, _ = runs_of(project)
    with pytest.raises(Refused, match=f"Run {panel.number} is a derived run"):
        derived.derive_run(project, strategy=strategy, sources=[one, panel])
    other.state = Run.State.PAUSED
    with pytest.raises(Refused, match=f"Run {other.number} is paused"):
        derived.derive_run(project, strategy=strategy, sources=[one, other])


def test_one_label_is_no_majority(tmp_path: Path) -> None:
    rows = [{"key": key, "prompt": "Q", "gold": "G", "response": key} for key in ("a", "b", "c")]
    project = bring_items(tmp_path, "p", rows)
    said = [("a", "ada", 1), ("b", "ada", 1), ("b", "bo", 1), ("c", "ada", 1), ("c", "bo", 2)]
    bring_labels(tmp_path, project, [(key, who, all_three(value)) for key, who, value in said])
    # Of b two alike, of c two unlike; a has one label.
    row = only(majority.tabulate_majority(project, []), metric="correctness")
    assert (row["n"], row["decided"], row["share"]) == (2, 1, 0.5)
    # Whoever left the field out has no say on it.
    project.labels.filter(item__key="c", member__alias="bo").update(answers={"naturalness": 2})
    assert only(majority.tabulate_majority(project, []), metric="correctness")["n"] == 1


def test_pairs_are_shares_of_the_items_with_people_s_number(tmp_path: Path) -> None:
    project = bring_rated(tmp_path, [1, 1, 1, 3])
    judge(tmp_path, project, [1, 1, 2, 3])
    rows = list(paired_answers.tabulate_pairs(project, runs_of(project), []))
    found = [(r["people"], r["evaluator"], r["n"], r["share"]) for r in rows]
    assert found == [(1, 1, 2, 2 / 3), (1, 2, 1, 1 / 3), (3, 3, 1, 1)]


def test_a_missing_number_would_have_been_on_a_step_of_the_scale(tmp_path: Path) -> None:
    """Of two people the median, 1.5: at nearest 1 or 2, at farthest 0 or 3, of 3 points."""
    project = bring_items(
        tmp_path, "p", [{"key": "a", "prompt": "Q", "gold": "G", "response": "R"}], "rubric-scoring"
    )
    project.items.get().slots.create(project=project, number=2, position=1)
    points = {"m1": 2, "m3": 0, "m4": 0, "m5": 3}
    bring_labels(
        tmp_path, project, [("a", who, points | {"m2": n}) for n, who in ((1, "ada"), (2, "bo"))]
    )
    said = {"m1": 2, "m3": 0, "m4": 0, "m5": 3}
    bring_scores(tmp_path, project, "judge", "score-matrix-animals", [("a", said)])
    row = only(alignment.tabulate_alignment(project, runs_of(project), []), metric="m2")
    assert (row["rmse"], row["rmse_reason"]) == (None, "no item with both scores")
    assert (row["rmse_lowest"], row["rmse_highest"]) == (0.5, 1.5)


def test_who_is_nearer_to_people_is_told_by_distances(tmp_path: Path) -> None:
    """The evaluator is never right and never far off: 2, where two say 1 and one says 3."""
    rows = [{"key": f"i{n}", "prompt": f"{n}", "gold": "G", "response": "R"} for n in range(60)]
    project = bring_items(tmp_path, "p", rows)
    said = [(f"i{n}", who, v) for n in range(60) for who, v in (("a", 1), ("b", 1), ("c", 3))]
    bring_labels(tmp_path, project, [(key, who, all_three(value)) for key, who, value in said])
    judge(tmp_path, project, [2] * 60)
    found = list(tabulate_alt_test(project, runs_of(project), []))
    table = np.array([[1, 1, 3]] * 60)
    expected = ceiling.alt_test(table, [2] * 60, np.arange(60), 0.15, "interval")
    row = only(found, metric="correctness", epsilon=0.15, rater=None)
    assert (row["wins"], row["evaluator"]) == (expected.wins, expected.advantage)
    # To what b and c say, 1 and 3, 2 is at 1 and a's 1 at sqrt(2); to two 1s 2 is at 1, c's 3 at 2.
    assert expected.advantage == 1


def test_as_many_groups_as_items_look_at_each_item_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = bring_rated(tmp_path, [1, 2, 3, 2])
    judge(tmp_path, project, [3, 2, 1, 2])
    [few] = aligned(project, "correctness")
    n = 600
    # Each item is in a group of its own; the groups are numbered backwards.
    which = np.arange(n) % len(few.key)
    many = replace(
        few.only(which),
        groups=tuple((f"{one:03}",) for one in range(n)),
        group=np.arange(n)[::-1],
        position=np.arange(n),
    )
    looked_at, only_these = list[int](), PairedScores.only

    def count(scores: PairedScores, these: Any) -> PairedScores:
        looked_at.append(len(these))
        return only_these(scores, these)

    monkeypatch.setattr(PairedScores, "only", count)
    found = list(many.by_group())
    assert sum(looked_at) == n
    assert [group for group, _ in found] == list(many.groups)
    assert [part.position.tolist() for _, part in found] == [[n - 1 - one] for one in range(n)]
    # Items of one group stay in their order, and groups of no item are left out.
    two = replace(many, groups=(("b",), ("c",), ("a",)), group=np.arange(n) % 2 * 2)
    parts = [(group, part.position[:3].tolist()) for group, part in two.by_group()]
    assert parts == [(("a",), [1, 3, 5]), (("b",), [0, 2, 4])]


def widen_scale(project: Project) -> None:
    """From now on, people can give 4 and 5 for correctness too."""
    source = versions.version_source(project.task_type).rstrip()
    further = (f'[[fields.choices]]\nvalue = {n}\ntitle = "{n}"' for n in (4, 5))
    head, name, field = source.rpartition('name = "correctness"')
    cut = field.find("[[fields]]")
    parts = (field, "") if cut < 0 else (field[:cut], field[cut:])
    source = "\n\n".join((head + name + parts[0].rstrip(), *further, parts[1]))
    adapted = versions.parse_source(project, source)
    lead = make_member(project, role="lead")
    assert versions.save_version(project, adapted, member=lead, shown=project.task_type_id)


def test_imported_final_labels_are_measured_by_the_scale_of_their_import(tmp_path: Path) -> None:
    rows = [
        {"key": key, "prompt": key, "gold": "A", "response": "R", **all_three(number)}
        for key, number in (("i0", 1), ("i1", 3))
    ]
    project = bring_items(tmp_path, "p", rows, accept=True)
    judge(tmp_path, project, [1, 3])

    def figures() -> dict[str, Any]:
        project.refresh_from_db()
        found = alignment.tabulate_alignment(project, runs_of(project), [])
        return only(found, metric="correctness")

    before = figures()
    assert (before["mean_people"], before["rmse"]) == (0.5, 0)
    widen_scale(project)
    assert figures() == before


def test_people_are_measured_by_the_scale_on_which_they_rated(tmp_path: Path) -> None:
    numbers = {"i0": 1, "i1": 3}
    rows = [{"key": key, "prompt": key, "gold": "A", "response": "R"} for key in numbers]
    project = bring_items(tmp_path, "p", rows)
    people = ("ann", "bob", "cid")
    said = [(key, one, all_three(number)) for key, number in numbers.items() for one in people]
    bring_labels(tmp_path, project, said)
    judge(tmp_path, project, [1, 3])

    def figures() -> dict[str, Any]:
        project.refresh_from_db()
        found = alignment.tabulate_alignment(project, runs_of(project), [])
        return only(found, metric="correctness")

    before = figures()
    assert (before["mean_people"], before["rmse"]) == (0.5, 0)
    widen_scale(project)
    assert figures() == before
    Label.objects.filter(item__key="i1").update(task_type=Project.objects.get().task_type)
    mixed = figures()
    assert (mixed["mean_people"], mixed["rmse"]) == (None, None)
    assert mixed["mean_people_reason"] == mixed["rmse_reason"]
    assert mixed["rmse_reason"].startswith("people rated on several scales")
