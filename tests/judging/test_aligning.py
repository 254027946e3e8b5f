"""Study 003's figures on three raters, several golds and texts beyond ASCII, against scipy and by
hand."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import krippendorff
import numpy as np
import pytest
from django.core.management import call_command
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from scipy import stats as scipy_stats

from annotation.models import Item, Project, Resolution
from judging.evaluators.providers import Target, baseline
from judging.results import correlations, paired_scores, tables
from judging.results.counted import UnknownField
from judging.results.tables import alignment_groups, ceiling, majority, paired_answers, rated_items
from judging.results.tables.alignment import tabulate_alignment
from judging.runs import lifecycle as running
from tests.builders import make_member
from tests.judging.builders_judging import answer_as, api_client, make_run
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
RATERS = ("ada", "björn", "चित्रा")
GOLDS = {
    "sv": ["Åsa åt äpplen i går.", "I går åt Åsa äpplen, mest röda och gröna av dem."],
    "hi": ["हिन्दी भाषा", "वह हिन्दी बोलती है और लिखती भी है"],
    "en": ["Plausible", "It is plausible"],
}
RESPONSES = ["Åsa åt äpplen", "हिन्दी भाषा", "plausible it is", "något helt annat"]


def texts(number: int) -> dict[str, Any]:
    language = ("sv", "hi", "en")[number % 3]
    return {
        "key": f"i{number}",
        "prompt": f"Fråga {number // 2}?",
        "gold": GOLDS[language],
        "response": RESPONSES[number % 4],
        "language": language,
        "task": f"t{number % 4}",
    }


def drawn(rng: np.random.Generator, truth: int, noise: float) -> int:
    return int(rng.integers(1, 4)) if rng.random() < noise else truth


@pytest.fixture(scope="module")
def rated(tmp_path_factory: pytest.TempPathFactory, module_db: None) -> Project:
    """60 items of 30 prompts, rated by three; an evaluator with gold, and a worse one without."""
    return make_rated(tmp_path_factory.mktemp("rated"))


def make_rated(folder: Path) -> Project:
    rng = np.random.Generator(np.random.PCG64(3))
    project = bring_items(folder, "p", (texts(number) for number in range(60)))
    truths = {f"i{n}": {metric: int(rng.integers(1, 4)) for metric in METRICS} for n in range(60)}
    said = [
        (key, rater, {metric: drawn(rng, truth[metric], 0.3) for metric in METRICS})
        for key, truth in truths.items()
        for rater in RATERS
    ]
    bring_labels(folder, project, said)
    for slug, noise in (("likert", 0.3), ("likert-no-gold", 0.8)):
        given = [
            (key, {metric: drawn(rng, truth[metric], noise) for metric in METRICS})
            for key, truth in truths.items()
        ]
        bring_scores(folder, project, "judge", slug, given)
    return project


def three(values: list[int]) -> int:
    """Study 003, section 3.4, as it says it."""
    value, count = Counter(values).most_common(1)[0]
    return value if count >= 2 else 2


def labels(project: Project, metric: str) -> dict[str, list[int]]:
    """What the three gave each item, by its key."""
    found: dict[str, list[int]] = {}
    for key, answers in project.labels.order_by("pk").values_list("item__key", "answers"):
        found.setdefault(key, []).append(answers[metric])
    return found


def evaluator(project: Project, slug: str, metric: str) -> dict[str, float]:
    outcomes = runs_of(project)[0].outcomes.model.objects.filter(run__strategy__slug=slug)
    return {key: values[metric] for key, values in outcomes.values_list("item__key", "values")}


def measured(body: str) -> str:
    """What the baseline replies."""
    return asyncio.run(baseline.ask(None, Target(""), body.encode())).text


def alignment(project: Project, *by: str) -> list[dict[str, Any]]:
    return list(tabulate_alignment(project, runs_of(project), by))


@pytest.mark.parametrize("slug", ["likert", "likert-no-gold"])
@pytest.mark.parametrize("metric", METRICS)
def test_correlations_with_the_majority_of_three_equal_scipy_s(
    rated: Project, slug: str, metric: str
) -> None:
    given, said = labels(rated, metric), evaluator(rated, slug, metric)
    people = [three(given[key]) for key in said]
    theirs = list(said.values())
    row = only(alignment(rated), strategy=slug, metric=metric)
    assert (row["n"], row["total"], row["missing"]) == (60, 60, 0)
    assert row["rho"] == pytest.approx(scipy_stats.spearmanr(people, theirs).statistic)
    assert row["pearson"] == pytest.approx(scipy_stats.pearsonr(people, theirs).statistic)
    assert row["tau"] == pytest.approx(scipy_stats.kendalltau(people, theirs).statistic)
    apart = np.array(theirs) - np.array(people)
    assert row["rmse"] == pytest.approx(np.sqrt(np.mean(apart**2)))
    assert (row["mae"], row["bias"]) == pytest.approx((np.abs(apart).mean(), apart.mean()))
    # Scaled to 0..1: (x - 1) / 2.
    means = (np.mean(people) - 1) / 2, (np.mean(theirs) - 1) / 2
    assert (row["mean_people"], row["mean_evaluator"]) == pytest.approx(means)
    reason = correlations.NO_TOTAL_REASON
    assert (row["accuracy002"], row["accuracy002_reason"]) == (None, reason)
    for name in {*correlations.WITH_INTERVAL} - {"accuracy002"}:
        assert row[f"{name}_low"] < row[name] < row[f"{name}_high"]
        assert row[f"{name}_reason"] is None


def test_three_different_ratings_give_2_and_count_as_no_majority(rated: Project) -> None:
    given = labels(rated, "correctness")
    split = [key for key, values in given.items() if len(set(values)) == 3]
    assert split
    found = list(rated_items.tabulate_points(rated, runs_of(rated)[:1], []))
    points = {row["item"]: row for row in found if row["metric"] == "correctness"}
    assert {(points[key]["people"], points[key]["decided"]) for key in split} == {(2, False)}
    row = only(majority.tabulate_majority(rated, []), metric="correctness")
    assert (row["n"], row["decided"]) == (60, 60 - len(split))
    assert row["share"] == pytest.approx(1 - len(split) / 60)
    first = points["i0"]
    assert (first["raters"], first["mean"]) == (3, pytest.approx(np.mean(given["i0"])))


def test_groups_are_those_of_scipy_and_their_mean_stands_beside_the_pooled_figure(
    rated: Project,
) -> None:
    rows = [row for row in alignment(rated, "language") if row["metric"] == "correctness"]
    with_gold = [row for row in rows if row["strategy"] == "likert"]
    assert [row["language"] for row in with_gold] == ["en", "hi", "sv"]
    assert sum(row["n"] for row in with_gold) == 60
    found = alignment_groups.tabulate_groups(rated, runs_of(rated), ["language"])
    over = only(found, strategy="likert", metric="correctness", figure="rho")
    rhos = [row["rho"] for row in with_gold]
    assert (over["mean"], over["sd"]) == pytest.approx((np.mean(rhos), np.std(rhos, ddof=1)))
    assert (over["groups"], over["undefined"], over["reason"]) == (3, 0, None)
    pooled = only(alignment(rated), strategy="likert", metric="correctness")
    assert over["pooled"] == pytest.approx(pooled["rho"])


def test_a_task_that_people_rate_alike_has_no_correlation_and_is_counted(tmp_path: Path) -> None:
    """As task 034 of study 003, which everybody rated 1."""
    project = bring_items(tmp_path, "q", (texts(number) for number in range(12)))
    right = {f"i{n}": 1 if n % 4 == 0 else 1 + n % 3 for n in range(12)}
    said = [(key, one, dict.fromkeys(METRICS, n)) for key, n in right.items() for one in RATERS]
    bring_labels(tmp_path, project, said)
    given = [(key, dict.fromkeys(METRICS, 1 + n % 2)) for n, key in enumerate(right)]
    bring_scores(tmp_path, project, "judge", "likert", given)
    first = only(alignment(project, "task"), task="t0", metric="correctness")
    assert (first["rho"], first["rho_reason"]) == (None, "one side is constant")
    assert first["rmse"] == 0
    over = alignment_groups.tabulate_groups(project, runs_of(project), ["task"])
    rho = only(over, metric="correctness", figure="rho")
    # The evaluator gives all items of an odd number 2, so that every task is constant on a side.
    assert (rho["mean"], rho["groups"], rho["undefined"]) == (None, 0, 4)


def test_mean_ratings_lie_apart_by_model_as_in_table_1(tmp_path: Path) -> None:
    """Two models: people's scaled means 0.5 and 1, the evaluator's 0.75 and 0.5."""
    people = {"a": [1, 3], "b": [3, 3]}
    theirs = {"a": [2, 3], "b": [2, 2]}
    items = [
        {**texts(place), "key": f"{model}{place}", "model": model}
        for model in people
        for place in range(2)
    ]
    project = bring_items(tmp_path, "q", items)
    said = [
        (f"{model}{place}", rater, dict.fromkeys(METRICS, value))
        for model, values in people.items()
        for place, value in enumerate(values)
        for rater in RATERS
    ]
    bring_labels(tmp_path, project, said)
    given = [
        (f"{model}{place}", dict.fromkeys(METRICS, value))
        for model, values in theirs.items()
        for place, value in enumerate(values)
    ]
    bring_scores(tmp_path, project, "judge", "likert", given)
    over = alignment_groups.tabulate_groups(project, runs_of(project), ["model"])
    row = only(over, metric="correctness", figure="distance")
    # |0.5 - 0.75| and |1 - 0.5|; pooled |0.75 - 0.625|.
    assert (row["mean"], row["pooled"]) == pytest.approx((0.375, 0.125))


def test_agreement_by_people_s_score_and_pairs_with_their_number(rated: Project) -> None:
    given, said = labels(rated, "correctness"), evaluator(rated, "likert", "correctness")
    people = {key: three(values) for key, values in given.items()}
    runs = runs_of(rated)
    for score in (1, 2, 3):
        keys = [key for key, value in people.items() if value == score]
        same = sum(said[key] == score for key in keys)
        found = paired_answers.tabulate_by_score(rated, runs, [])
        row = only(found, strategy="likert", metric="correctness", score=score)
        assert (row["n"], row["same"], row["agreement"]) == (len(keys), same, same / len(keys))
    pairs = Counter((people[key], said[key]) for key in said)
    cells = {
        (row["people"], row["evaluator"]): row["n"]
        for row in paired_answers.tabulate_pairs(rated, runs, [])
        if row["strategy"] == "likert" and row["metric"] == "correctness"
    }
    assert cells == pairs


def test_each_person_is_held_against_the_mean_of_the_others(rated: Project) -> None:
    given, said = labels(rated, "correctness"), evaluator(rated, "likert", "correctness")
    table = np.array([given[key] for key in said])
    theirs = list(said.values())
    rows = list(ceiling.tabulate_ceiling(rated, runs_of(rated), []))
    found = [
        only(rows, strategy="likert", metric="correctness", measure="rho", rater=rater)
        for rater in RATERS
    ]
    for column, row in enumerate(found):
        others = np.delete(table, column, axis=1).mean(axis=1)
        own = scipy_stats.spearmanr(table[:, column], others).statistic
        its = scipy_stats.spearmanr(theirs, others).statistic
        assert (row["n"], row["people"], row["evaluator"]) == (
            60, pytest.approx(own), pytest.approx(its),
        )  # fmt: skip
        assert row["low"] < row["difference"] < row["high"]
    mean = only(rows, strategy="likert", metric="correctness", measure="rho", rater=None)
    assert mean["people"] == pytest.approx(np.mean([row["people"] for row in found]))
    # All three rated every item, so that the reliability of two is the same whoever is left out.
    for measure, level in (("rho", "ordinal"), ("pearson", "interval")):
        r = krippendorff.alpha(table.T, level_of_measurement=level)
        of = {"strategy": "likert", "metric": "correctness", "measure": measure}
        for rater in (*RATERS, None):
            row = only(rows, **of, rater=rater)
            assert row["bound"] == pytest.approx((2 * r / (1 + r)) ** 0.5)
            assert row["bound_low"] < row["bound"] < row["bound_high"]
    error = only(rows, strategy="likert", metric="correctness", measure="rmse", rater=None)
    assert (error["bound"], error["bound_reason"]) == (None, "only for correlations")


def test_an_evaluator_that_may_stand_in_for_people_passes_and_a_worse_one_does_not(
    rated: Project,
) -> None:
    rows = list(ceiling.tabulate_alt_test(rated, runs_of(rated), []))
    at = {"metric": "correctness", "epsilon": 0.2, "rater": None}
    assert only(rows, strategy="likert", **at)["passed"] is True
    assert only(rows, strategy="likert-no-gold", **at)["passed"] is False
    assert {row["epsilon"] for row in rows} == {0.1, 0.15, 0.2}
    one = only(rows, **(at | {"rater": "björn"}), strategy="likert")
    assert (one["n"], one["wins"]) == (60, None)
    assert 0 <= one["p"] <= one["q"] <= 1


def test_rouge_l_of_several_golds_stands_beside_people_in_any_script(rated: Project) -> None:
    run = make_run(rated, strategy="rouge-l-unicode-response")
    running.plan_calls(run)
    answer_as(run, measured)
    (found,) = [one for one in aligned(rated, "correctness") if one.run == run]
    by_key = dict(zip(found.key, found.evaluator, strict=True))
    # "Åsa åt äpplen" of "Åsa åt äpplen i går": 2 x 3 / (3 + 5), better than the longer gold.
    assert by_key["i0"] == pytest.approx(0.75)
    # Golds of item 1 are Hindi, and so is the response: the whole of the first gold.
    assert by_key["i1"] == 1
    row = only(alignment(rated), run=run.number, metric="correctness")
    people = [three(labels(rated, "correctness")[key]) for key in found.key]
    assert row["rho"] == pytest.approx(scipy_stats.spearmanr(people, found.evaluator).statistic)
    assert (row["rmse"], row["rmse_reason"]) == (None, correlations.OTHER_SCALE_REASON)
    assert (row["rmse_highest"], row["accuracy002"]) == (None, None)
    assert row["mean_evaluator"] == pytest.approx(np.mean(found.evaluator))


def test_short_answers_are_those_of_at_most_the_median_of_words(rated: Project) -> None:
    # Means over the golds: Swedish 5 and 10 words, Hindi 2 and 8, English 1 and 3; the median is 5.
    (found,) = aligned(rated, "correctness", ["answer_length", "language"])[:1]
    groups = {found.groups[place] for place in found.group.tolist()}
    assert groups == {("short", "en"), ("short", "hi"), ("long", "sv")}


def test_excluded_items_do_not_say_what_is_short(rated: Project) -> None:
    # Without the Swedish items, the median is that of 5 and 2 words (means over the golds).
    Item.objects.filter(project=rated, fields__language="sv").update(deleted_at=timezone.now())
    (found,) = aligned(rated, "correctness", ["answer_length", "language"])[:1]
    groups = {found.groups[place] for place in found.group.tolist()}
    assert groups == {("short", "en"), ("long", "hi")}


def test_a_field_of_that_name_takes_the_place_of_counting_words(tmp_path: Path) -> None:
    items = [{**texts(n), "answer_length": "short answers" if n else "essays"} for n in range(3)]
    project = bring_items(tmp_path, "q", items)
    ones = dict.fromkeys(METRICS, 1)
    bring_labels(tmp_path, project, [(f"i{n}", who, ones) for n in range(3) for who in RATERS])
    bring_scores(tmp_path, project, "judge", "likert", [(f"i{n}", ones) for n in range(3)])
    (found,) = aligned(project, "correctness", ["answer_length"])
    assert set(found.groups) == {("short answers",), ("essays",)}


def test_what_could_not_be_read_is_missing_and_bounds_the_error(tmp_path: Path) -> None:
    project = bring_items(tmp_path, "q", (texts(number) for number in range(4)))
    right = [1, 2, 3, 2]
    said = [
        (f"i{n}", who, dict.fromkeys(METRICS, value)) for n, value in enumerate(right)
        for who in RATERS
    ]  # fmt: skip
    bring_labels(tmp_path, project, said)
    ratings = [{"correctness": 2}, None, {"correctness": 3}, {"correctness": 9}]
    bring_scores(
        tmp_path, project, "judge", "likert", ((f"i{n}", r) for n, r in enumerate(ratings))
    )
    both = [row for row in alignment(project) if row["metric"] == "correctness"]
    kept, left_out = both
    assert (left_out["off_scale"], left_out["total"], left_out["missing"]) == ("left out", 4, 2)
    # Errors 1 and 0 over two items; missing 2s are 0 off at best and 1 at worst.
    assert left_out["rmse"] == pytest.approx((1 / 2) ** 0.5)
    assert (left_out["rmse_lowest"], left_out["rmse_highest"]) == pytest.approx(
        ((1 / 4) ** 0.5, (3 / 4) ** 0.5)
    )
    # As it was recorded: 9 where people gave 2.
    assert (kept["off_scale"], kept["missing"]) == ("kept", 1)
    assert kept["rmse"] == pytest.approx(((1 + 0 + 49) / 3) ** 0.5)
    rows = list(rated_items.tabulate_points(project, runs_of(project), []))
    last = only(rows, item="i3", metric="correctness")
    assert (last["evaluator"], last["off_scale"]) == (9, True)
    second = only(rows, item="i1", metric="correctness")
    assert (second["evaluator"], second["off_scale"]) == (None, False)
    assert second["cause"]


def test_a_field_that_no_item_has_is_refused(rated: Project) -> None:
    with pytest.raises(UnknownField, match="grouped by colour"):
        alignment(rated, "colour")


def test_the_same_question_draws_the_same_intervals(rated: Project) -> None:
    assert alignment(rated) == alignment(rated)


def test_queries_do_not_grow_with_runs_and_groups(
    rated: Project, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    runs = runs_of(rated)
    assert rated.task_type.slug == "rating"  # read before
    # Whether items have each of the fields, outcomes, texts, what labels were given under, what is
    # held.
    for some in (runs[:1], runs):
        with django_assert_num_queries(7):
            paired_scores.load_paired_scores(rated, some, ["language", "task", "answer_length"])
    # Outcomes, what labels were given under, what is held, labels.
    for some in (runs[:1], runs):
        with django_assert_num_queries(4):
            list(ceiling.tabulate_ceiling(rated, some, []))


TABLES = (
    "alignment", "alignment_groups", "ceiling", "alt_test", "by_score", "pairs", "points",
    "majority",
)  # fmt: skip


def test_every_table_of_people_says_the_same_by_command_and_api_in_its_columns(
    rated: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """Some seconds: every table of people is made three times, with its draws."""
    program = api_client(make_member(rated, role="researcher"))
    for name in TABLES:
        call_command("results", name, project="p", format="json", by="language")
        printed = json.loads(capsys.readouterr().out)
        columns = tables.RESULT_TABLES[name].list_file_columns(["language"])
        assert printed["columns"] == list(columns)
        assert printed["rows"], name
        assert all(sorted(row) == sorted(printed["columns"]) for row in printed["rows"]), name
        sent = program.get(f"/api/v1/projects/p/results/{name}/?by=language")
        assert sent.json() == printed, name


def test_tables_can_be_asked_for_by_the_length_of_answers(rated: Project) -> None:
    program = api_client(make_member(rated, role="researcher"))
    sent = program.get("/api/v1/projects/p/results/by_score/?by=answer_length").json()
    assert {row["answer_length"] for row in sent["rows"]} == {"short", "long"}


def test_a_run_of_which_nothing_counts_has_no_rows(rated: Project) -> None:
    Resolution.objects.of_project(rated).update(current=False)
    assert alignment(rated) == []
    assert list(alignment_groups.tabulate_groups(rated, runs_of(rated), [])) == []
