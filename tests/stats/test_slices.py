import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.contingency_tables import StratifiedTable

from stats import families, slices

NAN = math.nan


def generator(seed=1):
    return np.random.Generator(np.random.PCG64(seed))


def table(inside_hits, inside, rest_hits, rest):
    """Values and memberships of items, each a cluster of its own."""
    values = [1.0] * inside_hits + [0.0] * (inside - inside_hits)
    values += [1.0] * rest_hits + [0.0] * (rest - rest_hits)
    return np.array(values), np.arange(inside + rest) < inside


def studentised(values, inside, cluster, stratum):
    """The statistic item by item, from its definition."""
    parts = dict.fromkeys(cluster, 0.0)
    for k in set(stratum):
        of = [i for i in range(len(values)) if stratum[i] == k]
        y, s = (np.mean([float(side[i]) for i in of]) for side in (values, inside))
        for i in of:
            parts[cluster[i]] += (inside[i] - s) * (values[i] - y)
    return sum(parts.values()) / math.sqrt(sum(part**2 for part in parts.values()))


def test_rates_and_their_difference_by_hand():
    # 15 of 20 against 10 of 40; two missing ones have no say.
    values, inside = table(15, 20, 10, 40)
    values, inside = np.append(values, [NAN, NAN]), np.append(inside, [True, False])
    found = slices.contrast_slice(values, inside, np.arange(62), generator())
    assert (found.n, found.clusters, found.rate, found.rest) == (20, 20, 0.75, 0.25)
    assert found.rest_n == 40
    assert found.difference == pytest.approx(0.5)
    assert found.reason == ""


def test_the_difference_within_strata_by_hand():
    # Stratum A: 9 of 10 in the slice, 4 of 5 beside: .1, weight 10 x 5 / 15 = 10/3. Stratum B: 5
    # of 10, 2 of 20: .4, weight 20/3. C has no rest and no say. (.1 x 10 + .4 x 20) / 30 = .3.
    parts = [table(9, 10, 4, 5), table(5, 10, 2, 20), table(3, 3, 0, 0)]
    values, inside = (np.concatenate(side) for side in zip(*parts, strict=True))
    strata = ["A"] * 15 + ["B"] * 30 + ["C"] * 3
    found = slices.contrast_slice(values, inside, np.arange(48), generator(), strata)
    assert found.difference == pytest.approx(0.3)
    assert (found.n, found.rate, found.rest) == (23, 17 / 23, 6 / 25)
    assert (found.compared, found.rest_n, found.rest_compared) == (20, 25, 25)


@given(
    st.lists(
        st.tuples(st.sampled_from([0, 0.5, 1, NAN]), st.booleans(), st.integers(0, 3)), max_size=19
    )
)
def test_the_difference_is_the_weighted_mean_of_those_of_strata(items):
    values, inside, strata = (
        (list(side) for side in zip(*items, strict=True)) if items else [[]] * 3
    )
    parsed = [item for item in items if not math.isnan(item[0])]
    weighted = []
    for k in range(4):
        own, other = ([y for y, s, of in parsed if of == k and s == side] for side in (True, False))
        if own and other:
            weight = len(own) * len(other) / (len(own) + len(other))
            weighted.append((weight, np.mean(own) - np.mean(other)))
    found = slices.contrast_slice(values, inside, np.arange(len(items)), generator(), strata)
    assert found.n == sum(s for _, s, _ in parsed)
    if weighted:
        expected = sum(w * d for w, d in weighted) / sum(w for w, _ in weighted)
        assert found.difference == pytest.approx(expected, abs=1e-12)
    else:
        assert found.difference is None


def test_a_slice_of_hard_categories_is_no_blind_spot_within_them():
    # 80 % of the hard category and 20 % of the easy one are missed, in the slice as beside it.
    parts = [table(32, 40, 8, 10), table(2, 10, 8, 40)]
    values, inside = (np.concatenate(side) for side in zip(*parts, strict=True))
    raw = slices.contrast_slice(values, inside, np.arange(100), generator())
    within = slices.contrast_slice(values, inside, np.arange(100), generator(), [0] * 50 + [1] * 50)
    assert raw.difference == pytest.approx(34 / 50 - 16 / 50)
    assert raw.p < 0.001
    assert within.difference == pytest.approx(0)
    assert within.p > 0.4


@pytest.mark.parametrize("cells", [(12, 20, 10, 40), (6, 25, 12, 70), (20, 20, 30, 40)])
def test_of_single_items_p_is_fisher_s_exact_one(cells):
    values, inside = table(*cells)
    hits, n, rest_hits, rest = cells
    exact = scipy_stats.fisher_exact(
        [[hits, n - hits], [rest_hits, rest - rest_hits]], alternative="greater"
    ).pvalue
    found = slices.contrast_slice(values, inside, np.arange(n + rest), generator())
    # Two standard errors of the draws, or two tenths where it stopped at 100 as far.
    assert found.p == pytest.approx(exact, rel=0.2, abs=2 * math.sqrt(exact / 9_999))


def test_the_statistic_is_studentised_by_clusters_within_strata(monkeypatch):
    # By way of its limit, which is no matter of chance.
    monkeypatch.setattr(slices, "MANY_ITEMS", 0)
    monkeypatch.setattr(slices, "MANY_CLUSTERS", 0)
    rng = generator(11)
    for _ in range(20):
        cluster, stratum = rng.integers(30, size=90), rng.integers(4, size=90)
        inside = rng.random(90) < 0.2 + stratum / 5
        values = (rng.random(90) < stratum / 4).astype(float)
        t = studentised(values, inside, cluster, stratum)
        expected = scipy_stats.t.sf(t, len(set(cluster)) - 1)
        found = slices.contrast_slice(values, inside, cluster, generator(), stratum)
        assert found.p == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("cut", [True, False])
@pytest.mark.parametrize("many", [0, 10**6])
def test_of_matched_pairs_p_is_the_one_sided_mcnemar_test(monkeypatch, cut, many):
    # 40 pairs, a stratum each, one of either in the slice: 13 only there, 6 only beside, 21 alike.
    # Pairs may be clusters, which the slice then cuts, or each item its own.
    monkeypatch.setattr(slices, "MANY_ITEMS", many)
    monkeypatch.setattr(slices, "ENOUGH_EXTREME", 10**6)
    inside, stratum = np.arange(80) % 2 == 0, np.arange(80) // 2
    values = np.array([1, 0] * 13 + [0, 1] * 6 + [1, 1] * 10 + [0, 0] * 11, dtype=float)
    exact = scipy_stats.binom.sf(12, 19, 0.5)
    cluster = stratum if cut else np.arange(80)
    found = slices.contrast_slice(values, inside, cluster, generator(), stratum)
    # Three standard errors of 9,999 draws.
    assert found.p == pytest.approx(exact, abs=0.0085)


def test_whole_clusters_are_dealt_where_the_slice_cuts_none():
    # 10 of 15 clusters of two or three items in the slice: all 3,003 choices written out.
    rng = generator(5)
    sizes = np.array([2, 3, 2, 2, 3, 2, 3, 2, 2, 3, 3, 2, 2, 3, 2])
    cluster = np.repeat(np.arange(15), sizes)
    values = (rng.random(len(cluster)) < 0.5).astype(float)
    stratum = rng.integers(2, size=len(cluster))
    seen = [
        studentised(values, np.isin(cluster, chosen), cluster, stratum)
        for chosen in itertools.combinations(range(15), 10)
    ]
    for first in ([0, 1, 2, 6, 13], [3, 4, 7, 12, 14], [5, 8, 9, 10, 11]):
        inside = ~np.isin(cluster, first)
        exact = np.mean(np.array(seen) >= studentised(values, inside, cluster, stratum) - 1e-9)
        found = slices.contrast_slice(values, inside, cluster, generator(), stratum, draws=4_000)
        assert found.p == pytest.approx(exact, rel=0.25, abs=0.01)


def test_items_are_dealt_within_strata_where_the_slice_cuts_clusters():
    rng = generator(6)
    n = 60
    cluster, stratum = np.arange(n) // 2, rng.integers(3, size=n)
    inside, values = rng.random(n) < 0.5, np.round(rng.random(n), 1)
    found = studentised(values, inside, cluster, stratum)
    as_far = 0
    for _ in range(1_500):
        dealt = inside.copy()
        for k in range(3):
            dealt[stratum == k] = rng.permutation(inside[stratum == k])
        as_far += studentised(values, dealt, cluster, stratum) >= found - 1e-9
    got = slices.contrast_slice(values, inside, cluster, generator(), stratum)
    assert got.p == pytest.approx(as_far / 1_500, rel=0.25, abs=0.02)


def brute_force(values, inside, cluster, stratum, unit, level, draws=2_000):
    """The share of random slices that are as far. Units (items or clusters) are dealt within
    levels, and all items are scored from the definition."""
    rng, found = generator(99), studentised(values, inside, cluster, stratum)
    _, first, unit = np.unique(unit, return_index=True, return_inverse=True)
    among, of = ((one[:, None] == np.unique(one)).astype(float) for one in (stratum, cluster))
    as_far = 0
    for _ in range(draws):
        dealt = inside[first].astype(float)
        for one in np.unique(level):
            dealt[level[first] == one] = rng.permutation(dealt[level[first] == one])
        s, y = (
            side - among @ (among.T @ side / among.sum(axis=0)) for side in (dealt[unit], values)
        )
        scores = of.T @ (s * y)
        as_far += scores.sum() / math.sqrt((scores**2).sum()) >= found - 1e-9
    return as_far / draws


@pytest.mark.parametrize(
    ("case", "share", "strata", "many"),
    [
        *(("split clusters", 0.4, strata, many) for strata in (1, 4) for many in (0, 10**6)),
        # The slice is the smaller side, the larger one, and either of them by stratum.
        *(("split clusters", share, 4, many) for share in (0.15, 0.85) for many in (0, 10**6)),
        *(("split clusters", (0.25, 0.75), 4, many) for many in (0, 10**6)),
        *(("whole clusters in strata", share, 4, 10**6) for share in (0.3, 0.7)),
        *(("whole clusters across strata", share, 4, 10**6) for share in (0.3, 0.7)),
    ],
)
def test_p_is_that_of_slices_dealt_by_brute_force(monkeypatch, case, share, strata, many):
    monkeypatch.setattr(slices, "ENOUGH_EXTREME", 10**6)
    monkeypatch.setattr(slices, "MANY_ITEMS", many)
    for seed in (1, 2, 3):
        rng = generator(seed)
        cluster = np.sort(rng.integers(60, size=180))
        stratum, unit = rng.integers(strata, size=180), np.arange(180)
        if case != "split clusters":
            unit = cluster
        if case == "whole clusters in strata":
            stratum = stratum[cluster]
        level = np.zeros(180, dtype=int) if case == "whole clusters across strata" else stratum
        inside = rng.random(180)[unit] < np.broadcast_to(share, 2)[level % 2]
        alike = rng.random(60)[cluster] / 2
        values = (rng.random(180) < alike + 0.1 * inside).astype(float)
        expected = brute_force(values, inside, cluster, stratum, unit, level)
        found = slices.contrast_slice(values, inside, cluster, generator(seed), stratum)
        # Four standard errors of both numbers of draws.
        error = math.sqrt(max(expected, 0.001) * (1 - expected) * (1 / 2_000 + 1 / 9_999))
        assert found.p == pytest.approx(expected, abs=4 * error)


def searchable(rng, n=300):
    """Items with a known blind spot, and slices that split clusters and that do not."""
    cluster = np.arange(n) // 3
    sides = [rng.random(n) < 0.1 * share for share in range(1, 9)]
    sides += [(rng.random(n) < 0.4)[cluster] for _ in range(4)]
    values = (rng.random(n) < np.where(sides[2], 0.6, 0.3)).astype(float)
    stratum = rng.integers(5, size=n)
    return sides, lambda: slices.SliceableItems.from_values(values, cluster, generator(), stratum)


@pytest.mark.parametrize("many", [10**6, 0])
def test_a_slice_has_the_same_p_alone_and_among_others_in_any_order(monkeypatch, many):
    monkeypatch.setattr(slices, "MANY_ITEMS", many)
    sides, prepare = searchable(generator(3))
    alone = [prepare().contrast(side).p for side in sides]
    among = prepare()
    assert [among.contrast(side).p for side in sides] == alone
    assert [among.contrast(side).p for side in reversed(sides)] == alone[::-1]
    assert min(alone) < 0.001 < 0.1 < max(alone)


def test_permutations_are_kept_up_to_a_number_of_bytes_and_those_beyond_are_the_same(monkeypatch):
    sides, prepare = searchable(generator(4))
    among = prepare()
    expected = [among.contrast(side).p for side in sides]
    # Two bytes for each item of each draw.
    assert among.permuted_items.kept_bytes >= 2 * 300 * slices.DRAWS
    assert among.permuted_clusters.kept_bytes <= slices.KEPT_BYTES
    for bound in (0, 2 * 300 * 250, 2 * 300 * 300):
        monkeypatch.setattr(slices, "KEPT_BYTES", bound)
        among = prepare()
        assert [among.contrast(side).p for side in sides] == expected
        # Blocks of 100 and 200 draws.
        held = {0: [], 2 * 300 * 250: [100], 2 * 300 * 300: [100, 200]}[bound]
        assert [len(block) for block in among.permuted_items.kept] == held


def test_permutations_are_uniform_within_strata_and_independent_of_the_number_of_draws():
    stratum = np.array([2, 0, 2, 1, 2, 1])
    found = np.concatenate([*slices.Permutations(stratum, 5).blocks(6_050)])
    assert found.shape == (6_050, 6)
    assert (stratum[found] == stratum).all()
    assert (np.sort(found, axis=1) == np.arange(6)).all()
    # 3! orders of one stratum times 2! of another.
    seen = np.unique(found, axis=0, return_counts=True)[1]
    assert len(seen) == 12
    assert scipy_stats.chisquare(seen).pvalue > 0.001
    few = np.concatenate([*slices.Permutations(stratum, 5).blocks(150)])
    assert (few == found[:150]).all()
    assert (found[:100] != found[100:200]).any()


def test_within_strata_p_comes_near_the_mantel_haenszel_test_of_statsmodels():
    cells = [(18, 30, 30, 70), (9, 30, 14, 70), (25, 40, 30, 60)]
    values, inside = (
        np.concatenate(side) for side in zip(*(table(*c) for c in cells), strict=True)
    )
    strata = np.repeat([0, 1, 2], [100, 100, 100])
    found = slices.contrast_slice(values, inside, np.arange(300), generator(), strata)
    squares = [[[a, n - a], [b, m - b]] for a, n, b, m in cells]
    test = StratifiedTable([np.array(square) for square in squares]).test_null_odds()
    assert found.p == pytest.approx(test.pvalue / 2, abs=0.01)


def test_twins_are_one_item():
    rng = generator(7)
    values, inside = (rng.random(60) < 0.4).astype(float), np.arange(60) < 25
    single = slices.contrast_slice(values, inside, np.arange(60), generator())
    twins = slices.contrast_slice(
        np.repeat(values, 4), np.repeat(inside, 4), np.repeat(np.arange(60), 4), generator()
    )
    assert (twins.p, twins.difference) == (single.p, pytest.approx(single.difference))
    # Taken for 240 items the same difference would show far more.
    alone = slices.contrast_slice(
        np.repeat(values, 4), np.repeat(inside, 4), np.arange(240), generator()
    )
    assert abs(alone.p - 0.5) > abs(single.p - 0.5)


def test_pairs_of_twins_that_the_slice_cuts_count_once_too():
    # 40 questions, each with an item in the slice and one beside, all four times over.
    rng = generator(8)
    values = (rng.random(80) < np.where(np.arange(80) % 2, 0.35, 0.5)).astype(float)
    inside, cluster = np.arange(80) % 2 == 0, np.arange(80) // 2
    single = slices.contrast_slice(values, inside, cluster, generator())
    four = slices.contrast_slice(
        np.repeat(values, 4), np.repeat(inside, 4), np.repeat(cluster, 4), generator()
    )
    assert four.p == pytest.approx(single.p, abs=0.04)


@pytest.mark.parametrize("share", [0.4, 0.6])
def test_with_many_items_dealing_goes_another_way_and_then_gives_way_to_its_limit(
    monkeypatch, share
):
    rng = generator(13)
    cluster, stratum = np.arange(1_200) // 2, np.arange(1_200) % 3
    inside = rng.random(1_200) < share
    values = (rng.random(1_200) < np.where(inside, 0.35, 0.3) + stratum / 10).astype(float)
    monkeypatch.setattr(slices, "ENOUGH_EXTREME", 600)

    def p():
        return slices.contrast_slice(values, inside, cluster, generator(), stratum).p

    dealt = p()
    monkeypatch.setattr(slices, "MANY_ITEMS", 1_200)
    limit = p()
    monkeypatch.setattr(slices, "MANY_CLUSTERS", 601)
    chosen = p()
    assert 0.001 < dealt < 0.2
    assert limit != dealt
    assert chosen == pytest.approx(dealt, rel=0.15)
    assert limit == pytest.approx(dealt, rel=0.15)


def test_it_stops_dealing_once_100_were_as_far(monkeypatch):
    values, inside = table(8, 20, 10, 30)
    stopped = slices.contrast_slice(values, inside, np.arange(50), generator()).p
    # A hundred over a number of draws.
    assert (slices.ENOUGH_EXTREME / stopped) == pytest.approx(
        round(slices.ENOUGH_EXTREME / stopped)
    )
    assert slices.ENOUGH_EXTREME / stopped < 1_000
    monkeypatch.setattr(slices, "ENOUGH_EXTREME", 10**6)
    assert slices.contrast_slice(values, inside, np.arange(50), generator()).p == pytest.approx(
        stopped, rel=0.25
    )


def test_p_withstands_a_correction_for_hundreds_of_slices_and_it_is_one_sided():
    # 46 of 46 beside 30 %, among 749 slices: no dealt slice is as far, and 1 / 10,000 would not do.
    values, inside = table(46, 46, 150, 500)
    found = slices.contrast_slice(values, inside, np.arange(546), generator())
    assert families.benjamini_hochberg([found.p, *[0.5] * 748])[0] < 1e-6
    assert slices.contrast_slice(1 - values, inside, np.arange(546), generator()).p == 1


@pytest.mark.parametrize(
    "cells",
    [
        (46, 46, 150, 500), (40, 40, 0, 40), (20, 20, 60, 300), (30, 40, 6, 300), (8, 40, 3, 300),
        (133, 200, 200, 400), (42, 42, 320, 400), (92, 200, 120, 400),
    ],
)  # fmt: skip
def test_a_p_beyond_the_draws_is_never_below_fisher_s_exact_one(cells):
    hits, n, rest_hits, rest = cells
    values, inside = table(*cells)
    exact = scipy_stats.hypergeom.sf(hits - 1, n + rest, hits + rest_hits, n)
    found = slices.contrast_slice(values, inside, np.arange(n + rest), generator(), draws=199)
    assert exact <= found.p <= 1 / 200


def test_what_a_p_beyond_the_draws_rests_on_item_by_item():
    rng = generator(14)
    cluster, stratum = rng.integers(30, size=90), rng.integers(3, size=90)
    inside, values = rng.random(90) < 0.3 + stratum / 5, rng.random(90)
    means = [np.bincount(stratum, weights=side) / np.bincount(stratum) for side in (inside, values)]
    s, y = inside - means[0][stratum], values - means[1][stratum]
    left = s * (y - (s @ y) / (s @ s) * s)
    expected = (np.bincount(cluster, weights=left) ** 2).sum()
    among = slices.SliceableItems.from_values(values, cluster, generator(), stratum)
    part = slices._SliceItems.from_places(among, np.flatnonzero(inside))
    assert slices._residual_squares(among, part) == pytest.approx(expected)


def test_the_interval_of_a_difference_of_single_items_is_that_of_two_rates():
    # 30 of 50 against 10 of 40: .6 - .25, variance (.24 / 50 + .1875 / 40) x 90 / 89; t of 39.
    values = np.repeat([1.0, 0, 1, 0], [30, 20, 10, 30])
    found = slices.contrast_slice(values, np.arange(90) < 50, np.arange(90), generator())
    half = 2.022691 * np.sqrt((0.24 / 50 + 0.1875 / 40) * 90 / 89)
    assert found.difference == pytest.approx(0.35)
    assert (found.difference_low, found.difference_high) == pytest.approx(
        (0.35 - half, 0.35 + half), abs=1e-6
    )


def test_a_difference_that_is_not_tested_has_no_interval():
    found = slices.contrast_slice([1.0, 0] * 12, np.arange(24) < 21, np.arange(24), generator())
    assert found.difference is not None
    assert (found.difference_low, found.difference_high, found.p) == (None, None, None)


@pytest.mark.parametrize(
    ("cells", "cluster", "reason"),
    [
        ((0, 0, 5, 9), range(9), "no items in the slice"),
        ((0, 0, 0, 0), [], "no items in the slice"),
        ((9, 25, 0, 0), range(25), "no items beside the slice"),
        ((9, 19, 5, 9), range(28), "under 20 items"),
        ((9, 25, 5, 9), [i % 9 for i in range(34)], "under 10 clusters"),
        ((9, 25, 5, 9), range(34), "under 10 other items to compare with"),
        (
            (9, 25, 5, 12),
            [*range(25), *[25, 26, 27, 28] * 3],
            "other items to compare with in under 5 clusters",
        ),
        ((25, 25, 10, 10), range(35), "all comparable items are alike"),
        ((0, 25, 0, 10), range(35), "all comparable items are alike"),
    ],
)
def test_where_there_is_no_p_the_reason_says_why(cells, cluster, reason):
    values, inside = table(*cells)
    found = slices.contrast_slice(values, inside, list(cluster), generator())
    assert (found.p, found.reason) == (None, reason)
    assert (found.difference is None) == (reason.startswith("no "))


def test_items_of_strata_without_both_sides_make_a_slice_no_larger():
    # Nineteen of 23 items of the slice are in a stratum of its own: the test would rest on four.
    values, inside = (
        np.concatenate([np.ones(4), np.ones(19), np.tile([0, 1], 20)]),
        [1] * 23 + [0] * 40,
    )
    strata = [0] * 4 + [1] * 19 + [0] * 40
    found = slices.contrast_slice(values, inside, np.arange(63), generator(), strata)
    assert (found.p, found.reason) == (None, "under 20 items in categories that others are in too")
    assert found.difference == pytest.approx(0.5)
    assert slices.contrast_slice(values, inside, np.arange(63), generator()).p < 0.01


def test_strata_without_both_sides_leave_nothing_to_compare():
    values, inside = table(9, 25, 5, 25)
    found = slices.contrast_slice(values, inside, np.arange(50), generator(), inside)
    assert (found.rate, found.difference, found.reason) == (
        9 / 25,
        None,
        "no items beside the slice",
    )
