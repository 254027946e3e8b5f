import itertools
import warnings
from math import comb

import krippendorff as oracle
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from sklearn.metrics import confusion_matrix as sklearn_confusion
from statsmodels.stats import inter_rater

from stats import agreement, ratings
from stats.rates import clustered_wilson, sum_clusters
from tests.stats.builders_ratings import ratings_from_names

NAN = np.nan
# Two people, ten items: both A 4 times, both B 3, A and B twice, B and A once.
TEN = [["A", "A"]] * 4 + [["B", "B"]] * 3 + [["A", "B"]] * 2 + [["B", "A"]]
# Twelve items, four people, some labels missing: Krippendorff (2011), Gwet (2014).
PUBLISHED = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
).T
COLLECTIVE = {
    "cohen": agreement.cohen_kappa,
    "cohen linear": lambda r: agreement.cohen_kappa(r, "linear"),
    "cohen quadratic": lambda r: agreement.cohen_kappa(r, "quadratic"),
    "fleiss": lambda r: agreement.fleiss_kappa(r, 2),
    "alpha nominal": agreement.krippendorff_alpha,
    "alpha ordinal": lambda r: agreement.krippendorff_alpha(r, "ordinal"),
    "alpha interval": lambda r: agreement.krippendorff_alpha(r, "interval"),
    "AC1": agreement.gwet_ac,
    "AC2": lambda r: agreement.gwet_ac(r, "quadratic"),
}


def tables(missing: bool, scale: int = 4):
    """Random tables of whole numbers from 1 to scale, items x raters, with holes or without."""
    value = st.integers(1, scale).map(float)
    cell = st.one_of(st.just(NAN), value) if missing else value
    shape = st.tuples(st.integers(1, 12), st.integers(1, 5))
    return shape.flatmap(
        lambda s: st.lists(st.tuples(*[cell] * s[1]), min_size=s[0], max_size=s[0])
    ).map(np.array)


def known(estimate):
    return (estimate.value, estimate.n, estimate.reason)


# Percent


def test_percent_of_two_people_by_hand():
    # 7 of 10 agree; the interval is the rate's.
    got = agreement.percent_agreement(ratings_from_names(TEN))
    wilson = clustered_wilson(sum_clusters([(1, 1)] * 7 + [(1, 0)] * 3))
    assert known(got) == (0.7, 10, "")
    assert (got.low, got.high) == (wilson.low, wilson.high)


def test_percent_counts_pairs_by_hand():
    # AAB: 1 of 3 pairs; AA: 1 of 1; AB: 0 of 1; a single A: none. 2 of 5 pairs on 3 items.
    rows = [["A", "A", "B"], ["A", "A", None], ["A", None, "B"], [None, "A", None]]
    got = agreement.percent_agreement(ratings_from_names(rows))
    assert known(got) == (0.4, 3, "")
    assert (got.low, got.high) == pytest.approx(_wilson([(3, 1), (1, 1), (1, 0)]))


def test_percent_knows_clusters_by_hand():
    # Two clusters of two items: 2 of 2 and 1 of 2.
    rows = [["A", "A"], ["B", "B"], ["A", "A"], ["A", "B"]]
    got = agreement.percent_agreement(ratings_from_names(rows, clusters=["q1", "q1", "q2", "q2"]))
    assert (got.value, got.low, got.high) == pytest.approx((0.75, *_wilson([(2, 2), (2, 1)])))


@given(tables(missing=True))
def test_percent_is_the_mean_of_pairs_of_people_weighted_by_shared_items(table):
    shares = []
    for a, b in itertools.combinations(table.T, 2):
        both = ~np.isnan(a) & ~np.isnan(b)
        shares.append(((a == b)[both].sum(), both.sum()))
    assume(any(n for _, n in shares))
    expected = sum(y for y, _ in shares) / sum(n for _, n in shares)
    assert agreement.percent_agreement(ratings.ratings_from_values(table)).value == pytest.approx(
        expected
    )


# Confusion and Cohen


def test_confusion_by_hand():
    got = agreement.confusion_matrix(ratings_from_names(TEN), 0, 1)
    assert got.tolist() == [[4, 2], [1, 3]]
    assert agreement.confusion_matrix(ratings_from_names(TEN), 1, 0).tolist() == [
        [4, 1],
        [2, 3],
    ]


def test_confusion_has_a_line_for_classes_nobody_chose_and_skips_what_one_did_not_label():
    got = agreement.confusion_matrix(
        ratings_from_names([["A", "C"], ["A", None]], ["A", "B", "C"]), 0, 1
    )
    assert got.tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]


@given(tables(missing=False))
def test_confusion_equals_scikit_learn(table):
    assume(table.shape[1] > 1)
    got = agreement.confusion_matrix(ratings.ratings_from_values(table, [1, 2, 3, 4]), 0, 1)
    expected = sklearn_confusion(table[:, 0], table[:, 1], labels=[1, 2, 3, 4])
    assert got.tolist() == expected.tolist()


def test_cohen_of_two_people_by_hand():
    # Agreement 7/10; by chance 6/10 x 5/10 + 4/10 x 5/10 = 1/2; (0.7 - 0.5) / 0.5 = 0.4.
    got = agreement.cohen_kappa(ratings_from_names(TEN)).point()
    assert got.value == pytest.approx(0.4)
    assert got.n == 10


def test_weighted_cohen_by_hand():
    # (1,1), (2,2), (3,3), (1,3), (2,1): |x - y| sums to 2 + 1 = 3, squares to 4 + 1 = 5.
    # Shares of the first 2/5, 2/5, 1/5, of the second 2/5, 1/5, 2/5. By chance, times 25:
    # 1-2: 2x1 + 2x2 = 6, 2-3: 2x2 + 1x1 = 5, 1-3: 2x2 + 1x2 = 6. So |x - y| of 5 items is
    # 5 x (6 + 5 + 12) / 25 = 23/5, squares 5 x (6 + 5 + 24) / 25 = 7.
    table = ratings.ratings_from_values([[1, 1], [2, 2], [3, 3], [1, 3], [2, 1]])
    assert agreement.cohen_kappa(table, "linear").point().value == pytest.approx(1 - 3 / (23 / 5))
    assert agreement.cohen_kappa(table, "quadratic").point().value == pytest.approx(1 - 5 / 7)


def test_weights_of_cohen_are_of_values_not_of_positions():
    # On 1, 2, 5 the step from 2 to 5 is 3: |x - y| sums to 3 for (1,1), (2,5), (5,5); shares 1/3
    # each and 1/3, 0, 2/3; by chance (2 x 4 + 1 + 2 x 3 + 4) / 9 x 3 = 19/3.
    table = ratings.ratings_from_values([[1, 1], [2, 5], [5, 5]])
    assert agreement.cohen_kappa(table, "linear").point().value == pytest.approx(1 - 3 / (19 / 3))


def test_cohen_of_three_people_is_the_mean_weighted_by_shared_items_by_hand():
    # a and b as TEN: 0.4 on 10 items. a and c share two more items, AA and BB: kappa 1 on 2 items.
    # b and c share none. (10 x 0.4 + 2 x 1) / 12 = 0.5.
    rows = [[a, b, None] for a, b in TEN] + [["A", None, "A"], ["B", None, "B"]]
    got = agreement.cohen_kappa(ratings_from_names(rows)).point()
    assert got.value == pytest.approx(0.5)
    assert (got.n, got.reason) == (12, "")


@pytest.mark.parametrize("weights", ["identity", "linear", "quadratic"])
def test_cohen_of_many_people_adds_up_few_numbers_of_each_pair_however_long_the_scale(weights):
    rng = np.random.Generator(np.random.PCG64(1))
    scale = range(100)
    table = rng.integers(100, size=(30, 8)).astype(float)
    figure = agreement.cohen_kappa(ratings.ratings_from_values(table, scale), weights)
    pairs = list(itertools.combinations(range(8), 2))
    each = [
        cohen_kappa_score(
            table[:, a],
            table[:, b],
            labels=list(scale),
            weights=None if weights == "identity" else weights,
        )
        for a, b in pairs
    ]
    assert figure.point().value == pytest.approx(np.mean(each))
    # The rows and columns of each pair's matrix, and not its 10,000 cells, in each of 2,000 draws.
    assert figure.terms.shape[1] < 300 * len(pairs)


def test_a_pair_that_agreed_on_one_class_is_left_out_and_counted():
    rows = [[a, b, None] for a, b in TEN] + [["A", None, "A"]] * 5
    got = agreement.cohen_kappa(ratings_from_names(rows)).point()
    assert got.value == pytest.approx(0.4)
    assert got.reason == "left out 1 of 2 pairs: all labels are the same"


def test_a_person_who_always_says_the_same_is_no_better_than_chance():
    assert agreement.cohen_kappa(ratings_from_names([["A", "A"], ["A", "B"]])).point().value == 0


@given(tables(missing=True), st.sampled_from(["identity", "linear", "quadratic"]))
def test_cohen_equals_scikit_learn_for_each_two(table, weights):
    rated = ratings.ratings_from_values(table, [1, 2, 3, 4])
    for a, b in itertools.combinations(range(table.shape[1]), 2):
        both = ~np.isnan(table[:, [a, b]]).any(axis=1)
        got = agreement.cohen_kappa(rated.only(a, b), weights).point()
        assert got.n == both.sum()
        if len(set(table[both][:, [a, b]].ravel())) > 1:
            expected = cohen_kappa_score(
                table[both, a],
                table[both, b],
                labels=[1, 2, 3, 4],
                weights=None if weights == "identity" else weights,
            )
            assert got.value == pytest.approx(expected)
        else:
            assert got.value is None


@given(tables(missing=False), st.sampled_from(["linear", "quadratic"]))
def test_cohen_equals_statsmodels(table, weights):
    assume(table.shape[1] > 1 and len(set(table[:, :2].ravel())) > 1)
    rated = ratings.ratings_from_values(table, [1, 2, 3, 4]).only(0, 1)
    square = agreement.confusion_matrix(rated, 0, 1)
    plain = inter_rater.cohens_kappa(square, return_results=False)
    weighted = inter_rater.cohens_kappa(square, wt=weights, return_results=False)
    assert agreement.cohen_kappa(rated).point().value == pytest.approx(plain)
    assert agreement.cohen_kappa(rated, weights).point().value == pytest.approx(weighted)


# Fleiss


def test_fleiss_by_hand():
    # Three labels each: AAA, AAB, BBB, ABB. P = (1 + 1/3 + 1 + 1/3) / 4 = 2/3; A has 6 of 12
    # labels, so Pe = 1/2, kappa = (2/3 - 1/2) / (1/2) = 1/3.
    rows = [["A", "A", "A"], ["A", "A", "B"], ["B", "B", "B"], ["A", "B", "B"]]
    got = agreement.fleiss_kappa(ratings_from_names(rows), 3).point()
    assert got.value == pytest.approx(1 / 3)
    assert got.n == 4


def test_fleiss_takes_items_with_exactly_k_labels():
    rows = [
        ["A", "A", "A"],
        ["A", "B", None],
        [None, "A", "A"],
        ["B", None, "B"],
        ["A", None, None],
    ]
    # Two labels: AB, AA, BB. P = 2/3, Pe = 1/2.
    assert agreement.fleiss_kappa(ratings_from_names(rows), 2).point().value == pytest.approx(1 / 3)


@given(tables(missing=True), st.integers(2, 5))
def test_fleiss_equals_statsmodels(table, k):
    exact = table[(~np.isnan(table)).sum(axis=1) == k]
    got = agreement.fleiss_kappa(ratings.ratings_from_values(table, [1, 2, 3, 4]), k).point()
    assert got.n == len(exact)
    if len(exact) and len(set(exact[~np.isnan(exact)])) > 1:
        counts = np.array([[(row == value).sum() for value in (1, 2, 3, 4)] for row in exact])
        assert got.value == pytest.approx(inter_rater.fleiss_kappa(counts, "fleiss"))
    else:
        assert got.value is None


@pytest.mark.parametrize("k", [0, 1])
def test_fleiss_needs_two_labels_an_item(k):
    got = agreement.fleiss_kappa(ratings_from_names([["A"], ["B"]]), k).point()
    assert known(got) == (None, 0, f"no item with exactly {k} labels, two or more")


# Krippendorff


def test_nominal_alpha_by_hand():
    # AA, AB, BB, and a single A that pairs with nothing. Coincidences: AA 2, BB 2, AB and BA 1;
    # n = 6, n_A = n_B = 3. alpha = 1 - 5 x 2 / (2 x 3 x 3) = 4/9.
    rows = [["A", "A"], ["A", "B"], ["B", "B"], ["A", None]]
    got = agreement.krippendorff_alpha(ratings_from_names(rows)).point()
    assert got.value == pytest.approx(4 / 9)
    assert got.n == 3


def test_ordinal_and_interval_alpha_by_hand():
    # 11, 13, 22: coincidences 11 2, 13 and 31 1, 22 2; n_c = 3, 2, 1; n = 6.
    # Interval: d13 = 4, d12 = d23 = 1: seen 2 x 4 = 8; chance 2 x (3x2x1 + 2x1x1 + 3x1x4) = 40;
    # alpha = 1 - 5 x 8 / 40 = 0. Ordinal: mid-ranks 1.5, 4, 5.5: d12 = 6.25, d23 = 2.25, d13 = 16;
    # seen 2 x 16 = 32; chance 2 x (6 x 6.25 + 2 x 2.25 + 3 x 16) = 180; 1 - 5 x 32 / 180 = 1/9.
    table = ratings.ratings_from_values([[1, 1], [1, 3], [2, 2]])
    assert agreement.krippendorff_alpha(table, "interval").point().value == pytest.approx(0)
    assert agreement.krippendorff_alpha(table, "ordinal").point().value == pytest.approx(1 / 9)


def test_alpha_of_an_item_with_three_labels_by_hand():
    # AAB: each pair both ways, over 3 - 1: AA 2/2 = 1, AB and BA 2/2 = 1 each; BB: 2.
    # n_A = 2, n_B = 3, n = 5; alpha = 1 - 4 x 2 / (2 x 2 x 3) = 1/3.
    rows = [["A", "A", "B"], ["B", "B", None]]
    got = agreement.krippendorff_alpha(ratings_from_names(rows)).point()
    assert got.value == pytest.approx(1 / 3)


def test_alpha_of_published_labels():
    # Krippendorff (2011): nominal 0.743, ordinal 0.815, interval 0.849.
    rated = ratings.ratings_from_values(PUBLISHED)
    got = [agreement.krippendorff_alpha(rated, level).point() for level in ("nominal", "ordinal")]
    assert [round(one.value, 3) for one in got] == [0.743, 0.815]
    interval = agreement.krippendorff_alpha(rated, "interval").point()
    assert (round(interval.value, 3), interval.n) == (0.849, 11)


@given(tables(missing=True), st.sampled_from(["nominal", "ordinal", "interval"]))
def test_alpha_equals_the_krippendorff_package(table, level):
    paired = table[(~np.isnan(table)).sum(axis=1) > 1]
    got = agreement.krippendorff_alpha(
        ratings.ratings_from_values(table, [1, 2, 3, 4]), level
    ).point()
    if len(set(paired[~np.isnan(paired)])) > 1:
        expected = oracle.alpha(table.T, level_of_measurement=level)
        assert got.value == pytest.approx(expected)
    else:
        assert got.value is None


@given(tables(missing=True))
def test_alpha_of_numbers_equals_the_krippendorff_package(table):
    paired = table[(~np.isnan(table)).sum(axis=1) > 1]
    got = agreement.interval_alpha(table).point()
    if len(set(paired[~np.isnan(paired)])) > 1:
        expected = oracle.alpha(table.T, level_of_measurement="interval")
        assert got.value == pytest.approx(expected, abs=1e-9)
        assert got.n == len(paired)
    else:
        assert got.value is None


@given(tables(missing=True, scale=2))
def test_alpha_of_two_numbers_is_the_nominal_alpha(table):
    got = agreement.interval_alpha(table - 1).point()
    expected = agreement.krippendorff_alpha(ratings.ratings_from_values(table)).point()
    assert (got.n, got.reason) == (expected.n, expected.reason)
    assert got.value == pytest.approx(expected.value, abs=1e-9)


def test_alpha_of_published_numbers_far_from_0():
    # Krippendorff (2011): 0.849, whatever is added to all numbers.
    got = agreement.interval_alpha(PUBLISHED + 1e6).point()
    assert (round(got.value, 3), got.n) == (0.849, 11)


# Gwet


def test_ac1_by_hand():
    # pa = 0.7; pi_A = (0.6 + 0.5) / 2 = 0.55; pe = 2 x 0.55 x 0.45 = 0.495.
    got = agreement.gwet_ac(ratings_from_names(TEN)).point()
    assert got.value == pytest.approx((0.7 - 0.495) / (1 - 0.495))


def test_quadratic_ac2_by_hand():
    # 11, 13, 22 and a single 3 on a scale of 1 to 3; closeness 1 on the diagonal, 3/4 a step, 0 for
    # 1 and 3. pa = (1 + 0 + 1) / 3 = 2/3. pi = (1 + 1/2) / 4, 1/4, (1/2 + 1) / 4: 3/8, 2/8, 3/8;
    # sum pi (1 - pi) = (15 + 12 + 15) / 64 = 42/64. T = 3 + 4 x 3/4 = 6, so pe = 6/6 x 42/64.
    table = ratings.ratings_from_values([[1, 1], [1, 3], [2, 2], [3, NAN]])
    chance = 42 / 64
    assert agreement.gwet_ac(table, "quadratic").point().value == pytest.approx(
        (2 / 3 - chance) / (1 - chance)
    )


def test_ac1_depends_on_the_classes_that_could_have_been_chosen_by_hand():
    # As TEN, with a third choice that nobody took: pe = 0.495 / (3 - 1).
    got = agreement.gwet_ac(ratings_from_names(TEN, ["A", "B", "C"])).point()
    assert got.value == pytest.approx((0.7 - 0.2475) / (1 - 0.2475))


def test_ac1_and_ac2_of_published_labels():
    # Printed by the reference implementation of Gwet (2014) for these labels: 0.77544.
    assert agreement.gwet_ac(ratings.ratings_from_values(PUBLISHED)).point().value == pytest.approx(
        0.77544, abs=5e-6
    )


def closeness(kind, a, b, q):
    return {
        "identity": float(a == b),
        "linear": 1 - abs(a - b) / (q - 1),
        "quadratic": 1 - (a - b) ** 2 / (q - 1) ** 2,
        "ordinal": 1 - comb(abs(a - b) + 1, 2) / comb(q, 2),
    }[kind]


def gwet_label_by_label(rows, kind, q):
    """The same definition written out over labels: pairs of different labels of an item."""
    rows = [[int(x) for x in row if not np.isnan(x)] for row in rows]
    rows = [row for row in rows if row]
    shares = [
        np.mean([closeness(kind, a, b, q) for a, b in itertools.permutations(row, 2)])
        for row in rows
        if len(row) > 1
    ]
    pi = [np.mean([row.count(value) / len(row) for row in rows]) for value in range(1, q + 1)]
    total = sum(closeness(kind, a, b, q) for a in range(q) for b in range(q))
    chance = total / (q * (q - 1)) * sum(p * (1 - p) for p in pi)
    return (np.mean(shares) - chance) / (1 - chance)


@given(tables(missing=True), st.sampled_from(["identity", "linear", "quadratic", "ordinal"]))
def test_gwet_equals_its_definition_label_by_label(table, kind):
    got = agreement.gwet_ac(ratings.ratings_from_values(table, [1, 2, 3, 4]), kind).point()
    if got.n:
        assert got.value == pytest.approx(gwet_label_by_label(table, kind, 4))
    else:
        assert got.reason == "no item with two labels"


# A person against others


def test_against_the_rest_by_hand():
    # Of the others: AA, A alone, AB (no majority), none, BB. The first said A, B, A, A, B: of the
    # three items with a majority, 2 agree.
    rows = [
        ["A", "A", "A"],
        ["B", None, "A"],
        ["A", "A", "B"],
        ["A", None, None],
        ["B", "B", "B"],
        [None, "A", "A"],
    ]
    got = agreement.agreement_with_majority(ratings_from_names(rows), 0)
    assert known(got) == (2 / 3, 3, "")
    assert (got.low, got.high) == pytest.approx(_wilson([(1, 1), (1, 0), (1, 1)]))


def test_against_the_rest_half_of_four_is_no_majority():
    rows = [["A", "A", "A", "B", "B"], ["A", "A", "A", "A", "B"]]
    assert agreement.agreement_with_majority(ratings_from_names(rows), 0).n == 1


def test_alone_there_is_no_rest():
    got = agreement.agreement_with_majority(ratings_from_names([["A"], ["B"]]), 0)
    assert known(got) == (None, 0, "no item with a majority of the others")


def test_with_two_people_the_rest_is_the_other():
    rated = ratings_from_names(TEN)
    assert agreement.agreement_with_majority(rated, 0) == agreement.percent_agreement(rated)
    assert agreement.agreement_with_majority(rated, 1) == agreement.percent_agreement(rated)


def test_against_known_answers_by_hand():
    # 1 right, 3 for 2 wrong, no answer known, no label, 2 for an answer off the scale wrong.
    rated = ratings.ratings_from_values([[1], [3], [1], [NAN], [2]], [1, 2, 3])
    got = agreement.accuracy_against_known(rated, 0, [1, 2, NAN, 1, 7])
    assert known(got) == (1 / 3, 3, "")


def test_without_known_answers_there_is_nothing_to_compare():
    got = agreement.accuracy_against_known(ratings.ratings_from_values([[1], [2]]), 0, [NAN, NAN])
    assert known(got) == (None, 0, "no item with a known answer")


# Empty, constant, alone


@pytest.mark.parametrize("measure", COLLECTIVE.values(), ids=COLLECTIVE)
@pytest.mark.parametrize(
    "table",
    [[], [[]], [[1.0], [2.0]], [[1, NAN], [NAN, 2]], [[NAN, NAN]]],
    ids=["no item", "no rater", "one rater", "nothing shared", "no label"],
)
def test_without_two_labels_of_an_item_there_is_no_value(measure, table):
    got = measure(ratings.ratings_from_values(table, [1, 2, 3])).point()
    assert (got.value, got.low, got.high, got.n) == (None, None, None, 0)
    assert got.reason in (agreement.NO_PAIR, "no item with exactly 2 labels, two or more")
    assert known(agreement.percent_agreement(ratings.ratings_from_values(table))) == (
        None,
        0,
        agreement.NO_PAIR,
    )


@pytest.mark.parametrize("measure", COLLECTIVE.values(), ids=COLLECTIVE)
def test_labels_all_the_same_leave_nothing_to_correct_for_chance(measure):
    got = measure(ratings.ratings_from_values([[2, 2]] * 12, [1, 2, 3])).point()
    if measure in (COLLECTIVE["AC1"], COLLECTIVE["AC2"]):
        assert known(got) == (1, 12, "")
    else:
        assert known(got) == (None, 12, "all labels are the same")


def test_with_one_class_ac1_is_undefined():
    got = agreement.gwet_ac(ratings.ratings_from_values([[2, 2]] * 3)).point()
    assert known(got) == (None, 3, "one class")


@pytest.mark.parametrize("measure", COLLECTIVE.values(), ids=COLLECTIVE)
def test_all_agree_on_different_values_is_one(measure):
    assert measure(ratings.ratings_from_values([[1, 1], [2, 2], [3, 3]])).point().value == 1


@given(tables(missing=True), st.sampled_from(sorted(COLLECTIVE)))
def test_no_figure_warns_exceeds_one_or_minds_who_sits_where(table, name):
    measure = COLLECTIVE[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = measure(ratings.ratings_from_values(table, [1, 2, 3, 4])).point()
        turned = measure(ratings.ratings_from_values(table[::-1, ::-1], [1, 2, 3, 4])).point()
    assert (got.value is None) == bool(got.reason and not got.reason.startswith("left out"))
    assert got.value is None or got.value <= 1
    assert turned.value == pytest.approx(got.value)


def _wilson(clusters):
    rate = clustered_wilson(sum_clusters(clusters))
    return rate.low, rate.high
