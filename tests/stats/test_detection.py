import warnings

import numpy as np
import pytest
from sklearn import metrics

from stats import bootstrap, rates
from stats.detection import (
    ConfusionCounts,
    DetectionScores,
    bound_scores,
    compute_scores,
    count_verdicts,
    estimate_rate,
    make_change_figure,
    make_figure,
    mean_scores,
    score_always_error,
    score_at_random,
    score_valid,
)


def close(**values):
    return {name: pytest.approx(value) for name, value in values.items()}


def shown(found):
    names = ("accuracy", "precision", "recall", "f1", "mcc")
    return {name: getattr(found, name) for name in names}


def test_items_are_counted_by_truth_and_verdict():
    pairs = [(True, True), (True, True), (False, True), (True, False), (False, False)]
    pairs += [(True, None), (False, None), (False, None)]
    counts = count_verdicts(pairs)
    assert counts == ConfusionCounts(tp=2, fp=1, fn=1, tn=1, missing_errors=1, missing_others=2)
    assert (counts.n, counts.missing) == (8, 3)
    assert counts + counts == count_verdicts(pairs * 2)


def test_no_verdict_is_not_error_in_precision_recall_and_f1_and_wrong_in_accuracy():
    # 6 errors: 3 found, 1 denied, 2 without a verdict. 4 others: 1 accused, 2 cleared, 1 without.
    # precision 3 / (3 + 1); recall 3 / 6; F1 2 * 3 / (2 * 3 + 1 + 3) = 6 / 10;
    # accuracy (3 + 2) / 10, the 3 without a verdict being wrong;
    # MCC of tp 3, fp 1, fn 3, tn 3: (9 - 3) / sqrt(4 * 6 * 4 * 6) = 6 / 24
    found = compute_scores(
        ConfusionCounts(tp=3, fp=1, fn=1, tn=2, missing_errors=2, missing_others=1)
    )
    assert shown(found) == close(accuracy=0.5, precision=0.75, recall=0.5, f1=0.6, mcc=0.25)
    assert (found.n, found.invalid, found.reason) == (10, 3, "")


def test_figures_of_valid_verdicts_leave_the_others_out():
    # tp 3, fp 1, fn 1, tn 2: recall 3 / 4, F1 6 / 8, accuracy 5 / 7,
    # MCC (6 - 1) / sqrt(4 * 4 * 3 * 3) = 5 / 12
    found = score_valid(ConfusionCounts(tp=3, fp=1, fn=1, tn=2, missing_errors=2, missing_others=1))
    assert shown(found) == close(accuracy=5 / 7, precision=0.75, recall=0.75, f1=0.75, mcc=5 / 12)
    assert (found.n, found.invalid) == (7, 0)


def test_the_bounds_have_all_missing_verdicts_wrong_or_right():
    # Wrong: 2 errors denied, 1 other accused: tp 3, fp 2, fn 3, tn 2.
    # Right: 2 errors found, 1 other cleared: tp 5, fp 1, fn 1, tn 3.
    both = bound_scores(ConfusionCounts(tp=3, fp=1, fn=1, tn=2, missing_errors=2, missing_others=1))
    assert both.lowest.accuracy == pytest.approx(5 / 10)
    assert both.lowest.precision == pytest.approx(3 / 5)
    assert both.lowest.f1 == pytest.approx(6 / 11)
    assert both.highest.accuracy == pytest.approx(8 / 10)
    assert both.highest.recall == pytest.approx(5 / 6)
    assert both.highest.f1 == pytest.approx(10 / 12)


def test_nothing_over_nothing_is_nought_and_says_so():
    # nobody accused: precision 0/0; recall 0 / 2 and F1 0 / 2 are nought by themselves
    found = compute_scores(ConfusionCounts(fn=2, tn=3))
    assert (found.precision, found.recall, found.f1) == (0, 0, 0)
    assert (found.mcc, found.reason) == (None, "no positive")
    assert compute_scores(ConfusionCounts(fp=2, tn=3)).reason == "no positive"
    assert compute_scores(ConfusionCounts(tn=3)).reason == "no positive"
    assert compute_scores(ConfusionCounts(fp=2, fn=3)).reason == ""


def test_an_unreadable_detector_has_nought_and_no_items_have_nothing():
    found = compute_scores(ConfusionCounts(missing_errors=4, missing_others=1))
    assert (found.accuracy, found.precision, found.recall, found.reason) == (0, 0, 0, "no positive")
    assert compute_scores(ConfusionCounts()) == DetectionScores(
        0, 0, None, None, None, None, None, "no items"
    )
    assert score_valid(ConfusionCounts(missing_errors=4)).reason == "no items"


def test_a_mean_takes_nought_over_nought_as_nought_and_leaves_out_what_does_not_exist():
    # F1 1 and 0 (0/0): mean 0.5; MCC 1 and none: mean 1
    found = mean_scores(
        [
            compute_scores(ConfusionCounts(tp=2, tn=2)),
            compute_scores(ConfusionCounts(fn=2, tn=2)),
            compute_scores(ConfusionCounts()),
        ]
    )
    assert (found.f1, found.mcc, found.n, found.reason) == (0.5, 1.0, 8, "no positive")
    assert (
        mean_scores([]).reason
        == mean_scores([compute_scores(ConfusionCounts())]).reason
        == "no items"
    )


def test_baselines_are_those_of_the_study():
    # 87 errors of 140, the MathGen set of GPT-4: tables 4 and 8 give 62.1 and 52.9
    counts = ConfusionCounts(tp=80, fn=7, fp=20, tn=33)
    chance = score_at_random(counts)
    assert {chance.precision, chance.recall, chance.f1} == {87 / 140}
    assert round(100 * chance.f1, 1) == 62.1
    assert round(100 * chance.accuracy, 1) == 52.9
    always = score_always_error(counts)
    assert (always.recall, always.precision, always.mcc) == (1, 87 / 140, None)
    assert score_at_random(ConfusionCounts()).reason == "no items"
    assert score_at_random(ConfusionCounts(tp=3)).mcc is None


@pytest.mark.parametrize("seed", range(20))
def test_figures_equal_those_of_scikit_learn(seed):
    rng = np.random.Generator(np.random.PCG64(seed))
    size = int(rng.integers(1, 40))
    truths = rng.random(size) < rng.random()
    said = rng.choice([True, False, None], size=size, p=[0.5, 0.3, 0.2])
    verdict = np.array([one is True for one in said.tolist()])
    found = compute_scores(count_verdicts(zip(truths.tolist(), said.tolist(), strict=True)))
    right = [one == truth for truth, one in zip(truths.tolist(), said.tolist(), strict=True)]
    assert found.accuracy == pytest.approx(np.mean(right))
    expected = metrics.precision_recall_fscore_support(
        truths, verdict, average="binary", zero_division=0
    )
    assert (found.precision, found.recall, found.f1) == pytest.approx(expected[:3])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # it gives 0 where there is none
        assert (found.mcc or 0.0) == pytest.approx(metrics.matthews_corrcoef(truths, verdict))


def test_a_figure_is_the_mean_over_prompts_and_gets_an_interval():
    rng = np.random.Generator(np.random.PCG64(5))
    truths = (rng.random(60) < 0.6).tolist()
    verdicts = rng.choice([True, False, None], size=(60, 4)).tolist()
    columns = zip(*verdicts, strict=True)
    prompts = [compute_scores(count_verdicts(zip(truths, said, strict=True))) for said in columns]
    for measure, value in shown(mean_scores(prompts)).items():
        found = bootstrap.estimate(
            make_figure(measure, truths, verdicts), np.arange(60), rng, draws=200
        )
        assert found.value == pytest.approx(value)
        assert found.low < found.value < found.high
    assert make_figure("f1", [], []).point().reason == "no items"


def test_accuracy_precision_and_recall_have_the_interval_of_a_rate():
    rng = np.random.Generator(np.random.PCG64(7))
    truths = (rng.random(60) < 0.6).tolist()
    verdicts = rng.choice([True, False, None], size=(60, 4)).tolist()
    cluster = [f"q{n % 20}" for n in range(60)]
    columns = zip(*verdicts, strict=True)
    prompts = [compute_scores(count_verdicts(zip(truths, said, strict=True))) for said in columns]
    for measure in ("accuracy", "precision", "recall"):
        found = estimate_rate(measure, truths, verdicts, cluster)
        assert found.value == pytest.approx(getattr(mean_scores(prompts), measure))
        assert found.low < found.value < found.high
    # Of one prompt, precision is the rate among the accused.
    accused = [n for n in range(60) if verdicts[n][0]]
    one = estimate_rate("precision", truths, [said[:1] for said in verdicts], cluster)
    expected = rates.estimate_rate([truths[n] for n in accused], [n % 20 for n in accused])
    assert (one.low, one.high, one.n) == pytest.approx((expected.low, expected.high, len(accused)))


def test_a_detector_without_a_fault_has_an_interval_of_some_width():
    truths = [True] * 12 + [False] * 4
    verdicts = [[truth] for truth in truths]
    for measure, items in (("accuracy", 16), ("precision", 12), ("recall", 12)):
        found = estimate_rate(measure, truths, verdicts, [f"q{n}" for n in range(16)])
        # Wilson for all of n: from n / (n + 1.96^2) to 1.
        assert (found.low, found.high) == (pytest.approx(items / (items + 1.96**2), abs=1e-4), 1)
    found = estimate_rate("precision", truths, [[False]] * 16, ["q"] * 16)
    assert (found.value, found.low, found.reason) == (None, None, "no positive")


def test_the_interval_of_a_figure_is_that_of_samples_drawn_one_by_one():
    rng = np.random.Generator(np.random.PCG64(6))
    truths = rng.random(50) < 0.5
    said = np.where(rng.random(50) < 0.8, truths, ~truths)
    drawn = rng.integers(50, size=(3_000, 50))
    # F1 = 2 tp / (what is said to be an error + what is one)
    hits, sides = (truths & said).astype(float), truths.astype(float) + said
    values = 2 * hits[drawn].sum(axis=1) / sides[drawn].sum(axis=1)
    one_each = [[verdict] for verdict in said.tolist()]
    found = bootstrap.estimate(make_figure("f1", truths.tolist(), one_each), np.arange(50), rng)
    low, high = np.quantile(values, [0.025, 0.975])
    # Quantiles of 2,000 and 3,000 draws with a spread of 0.06 each lie within about 0.01.
    assert (found.low, found.high) == (pytest.approx(low, abs=0.02), pytest.approx(high, abs=0.02))


def test_a_change_is_after_minus_before():
    # Before 1 of 2 errors detected and no other accused: recall 1/2, precision 1, F1 2/3; after
    # both and one other: recall 1, precision 2/3, F1 4/5.
    truths = [True, True, False]
    verdicts = [(True, True), (None, True), (False, True)]
    found = {
        name: make_change_figure(name, truths, verdicts).point().value
        for name in ("recall", "precision")
    }
    assert found == {"recall": 0.5, "precision": pytest.approx(-1 / 3)}
    assert make_change_figure("f1", truths, verdicts).point().value == pytest.approx(4 / 5 - 2 / 3)
    # After it everything is called an error: there is no MCC, so there is no change of it.
    assert make_change_figure("mcc", truths, verdicts).point().value is None
