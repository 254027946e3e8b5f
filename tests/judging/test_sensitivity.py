"""Detection against false alarm, against rates that were made by hand."""

import pytest
from pytest_django import DjangoAssertNumQueries

from annotation.models import Project
from judging.models import Run
from judging.results.tables import sensitivity
from tests.judging.builders_decided import make_replied, scores, verdicts
from tests.judging.builders_judging import make_items

pytestmark = pytest.mark.django_db

DETECTED, EQUAL, CUT = scores(9, 5), scores(9, 9), scores(9, None)


def rows_of(run: Run) -> dict[tuple[str | None, str | None], dict[str, object]]:
    return {(row["ability"], row["origin"]): row for row in sensitivity.tabulate([run])}


@pytest.fixture
def run(project: Project) -> Run:
    """Of 20 factual errors 15 are detected, of 12 invariant answers 3 alarm; one of each cut."""
    errors = make_items(project, 21)
    calm = make_items(project, 13, "score-invariant", origin="paraphrase")
    said = [*[DETECTED] * 15, *[EQUAL] * 5, CUT, *[DETECTED] * 3, *[EQUAL] * 9, CUT]
    return make_replied(project, "vanilla", zip([*errors, *calm], said, strict=True))


def test_j_is_detection_minus_false_alarm(run: Run) -> None:
    row = rows_of(run)[None, None]
    assert (row["total"], row["missing"], row["errors"], row["invariant"]) == (34, 2, 20, 12)
    assert (row["detection"], row["false_alarm"], row["j"]) == (0.75, 0.25, 0.5)
    # Newcombe, from Wilson's .5313 to .8881 and .0889 to .5323: .5 - (.2187^2 + .2823^2)^.5 and
    # .5 + (.1381^2 + .1611^2)^.5.
    assert (row["j_low"], row["j_high"]) == pytest.approx((0.1429, 0.7122), abs=2e-4)
    # z((15 + 20/32) / (20 + 40/32)) - z((3 + 12/32) / (12 + 24/32)) = z(25/34) - z(9/34)
    assert row["d_prime"] == pytest.approx(0.6289 + 0.6289, abs=1e-3)


def test_invariant_items_go_to_the_ability_they_were_made_from_and_to_their_origin(
    run: Run,
) -> None:
    found = rows_of(run)
    assert set(found) == {(None, None), ("factual", None), (None, "paraphrase")}
    assert found["factual", None]["j"] == found[None, "paraphrase"]["j"] == 0.5


def test_the_same_figures_come_again(run: Run) -> None:
    assert sensitivity.tabulate([run]) == sensitivity.tabulate([run])


def test_of_an_item_asked_again_and_again_the_share_counts(run: Run) -> None:
    run.outcomes.filter(invariant=False, result="detected").update(share=0.8)
    run.outcomes.filter(invariant=False, result="undetected").update(share=0.4)
    # One that could not be read has no share, whatever was read of it.
    run.outcomes.filter(result="missing").update(share=0.9)
    row = rows_of(run)[None, None]
    assert (row["detection"], row["missing"]) == (pytest.approx((15 * 0.8 + 5 * 0.4) / 20), 2)


def test_without_invariant_items_there_is_no_j_but_a_reason(project: Project) -> None:
    items = make_items(project, 2)
    run = make_replied(project, "vanilla", zip(items, [DETECTED, EQUAL], strict=True))
    row = rows_of(run)[None, None]
    assert (row["detection"], row["false_alarm"], row["j"]) == (0.5, None, None)
    assert row["j_reason"] == row["d_prime_reason"] == "no score-invariant item"


def test_pairs_have_no_d_prime(project: Project) -> None:
    items = [*make_items(project, 1), *make_items(project, 1, "score-invariant")]
    run = make_replied(
        project, "pairwise", zip(items, [verdicts("G"), verdicts("both_good")], strict=True)
    )
    row = rows_of(run)[None, None]
    assert (row["j"], row["d_prime"], row["d_prime_reason"]) == (1, None, "not for pairs")


def test_any_number_of_runs_are_one_query(
    run: Run, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    make_replied(run.project, "pairwise", [])
    runs = list(Run.objects.for_results())
    with django_assert_num_queries(1):
        sensitivity.tabulate(runs)
