"""Runs against each other, against counts and tests that were made by hand."""

import re

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from annotation.models import Item, Project
from judging.models import Run, StoredFigure
from judging.results import figures
from judging.results.tables import compare
from stats import paired
from tests.judging.builders_decided import CUT, make_replied, scores, verdicts
from tests.judging.builders_judging import make_items
from tests.judging.test_result_pages import lines, shown

pytestmark = pytest.mark.django_db

SAID = {"D": scores(9, 5), "U": scores(9, 9), "-": scores(9, None)}


def make_said(project: Project, items: list[Item], said: str) -> Run:
    return make_replied(project, "vanilla", zip(items, (SAID[one] for one in said), strict=True))


def test_two_runs_differ_over_the_items_that_both_parsed(project: Project) -> None:
    items = make_items(project, 13)
    calm = make_items(project, 2, "score-invariant")
    a = make_said(project, [*items, *calm], "DDDDDDDDUU-DDDD")
    b = make_said(project, [*items, *calm], "UUUUUUUDDUDD-UU")
    row, by_ability = compare.compare([a, b])
    assert (row["run_a"], row["run_b"], row["ability"]) == (1, 2, None)
    # Of ten items both parsed seven only a detects, one only b, one both and one neither; one is
    # missing in a, both detect the next, and one is missing in b.
    assert (row["total"], row["missing"], row["n"]) == (13, 2, 11)
    assert (row["only_a"], row["only_b"], row["difference"]) == (7, 1, 6 / 11)
    # Exact McNemar: 2 x (1 + 8) / 2^8
    assert row["p"] == row["p_holm"] == pytest.approx(18 / 256)
    assert row["low"] < 6 / 11 < row["high"]
    # 11 d - 1 = 1.959964 x 11 (e^2 + d^2 / 11)^.5 + 0.879058 x 11 e, of the one pair.
    error = row["standard_error"]
    flipped = 1.959964 * 11 * (error**2 + row["shows"] ** 2 / 11) ** 0.5
    assert 11 * row["shows"] - 1 == pytest.approx(flipped + 0.879058 * 11 * error, abs=1e-5)
    assert (row["letters_a"], row["letters_b"]) == ("a", "a")
    # Among three pairs it must be over 100 points.
    among_three = compare.compare([a, b, make_said(project, items, "D" * 13)])[0]
    assert (among_three["shows"], among_three["reason"]) == (None, paired.TOO_FEW)
    assert (by_ability["ability"], by_ability["p"]) == ("factual", row["p"])
    assert (by_ability["p_holm"], by_ability["q"]) == (None, row["p"])


def test_runs_that_differ_share_no_letter_and_p_is_adjusted_for_all_pairs(
    project: Project,
) -> None:
    items = make_items(project, 10)
    runs = [make_said(project, items, one * 10) for one in "DDU"]
    rows = compare.compare(runs)[:3]
    assert [(row["letters_a"], row["letters_b"]) for row in rows] == [
        ("a", "a"), ("a", "b"), ("a", "b"),
    ]  # fmt: skip
    # 2 / 2^10 for either pair that differs, three pairs.
    assert [row["p_holm"] for row in rows] == pytest.approx([1, 3 * 2 / 1024, 3 * 2 / 1024])


def test_letters_begin_with_the_runs_that_detect_the_most(project: Project) -> None:
    items = make_items(project, 10)
    runs = [make_said(project, items, one * 10) for one in "UDD"]
    found = {(row["letters_a"], row["letters_b"]) for row in compare.compare(runs)[:2]}
    assert found == {("b", "a")}


def test_p_is_exact_however_small_where_questions_have_several_items(project: Project) -> None:
    # Twenty questions of two items each.
    items = [one for n in range(20) for one in make_items(project, 2, cluster=f"question {n}")]
    a, b, c = (make_said(project, items, said * 20) for said in ("DD", "UU", "DU"))
    found = {(row["run_a"], row["run_b"]): row for row in compare.compare([a, b, c])[:3]}
    assert len(found) == 3
    # Every question differs the same way: one pattern of signs of 2^20, and its mirror.
    for pair, row in found.items():
        assert (row["p"], row["test"]) == (pytest.approx(2**-19), "exact"), pair
        assert row["p_holm"] == pytest.approx(3 * 2**-19)


def test_a_run_that_detects_more_by_crying_wolf_has_no_higher_j(project: Project) -> None:
    items = make_items(project, 10)
    calm = make_items(project, 5, "score-invariant")
    a = make_said(project, [*items, *calm], "DDDDDDDDUU" + "DDDDU")
    b = make_said(project, [*items, *calm], "DDDDDUUUUU" + "DUUUU")
    row, of_ability = compare.compare([a, b])
    assert (row["difference"], row["invariant"]) == (pytest.approx(0.3), 5)
    assert row["false_alarm"] == pytest.approx(0.6)
    # McNemar: 0 against 3, 2 / 8.
    assert row["false_alarm_p"] == pytest.approx(0.25)
    assert row["j"] == pytest.approx(-0.3)
    # Ten items are as good as nine independent ones: (3.7 - 1) / 11, variance (4.7 / 11 - .2455^2)
    # / 11, t of 9; five as four: (3.4 - 1) / 6, variance (4.4 / 6 - .4^2) / 6, t of 4, cut at 1.
    assert (row["low"], row["high"]) == pytest.approx((-0.16776, 0.65867), abs=1e-4)
    ends = (row["false_alarm_low"], row["false_alarm_high"])
    assert ends == pytest.approx((-0.45826, 1), abs=1e-4)
    # Newcombe, from these: the ends that lie towards each other.
    below, above = (0.46776**2 + 0.4**2) ** 0.5, (0.35867**2 + 1.05826**2) ** 0.5
    assert (row["j_low"], row["j_high"]) == pytest.approx((-0.3 - below, -0.3 + above), abs=1e-4)
    # The 23.75 % interval ends at 0: t of 9 is .3115 and t of 4 .3235, and the upper distance is
    # ((.3115 x .18266 - .05455)^2 + (.3235 x .30912 + .2)^2)^.5 = .3.
    assert row["j_p"] == pytest.approx(1 - 0.2375, abs=1e-4)
    assert (of_ability["j"], of_ability["j_p"]) == (row["j"], row["j_p"])


def test_score_invariant_items_belong_to_the_ability_they_were_made_from(project: Project) -> None:
    items = make_items(project, 2)
    calm = make_items(project, 3, "score-invariant", ability="", source_ability="long-form")
    a, b = (make_said(project, [*items, *calm], said) for said in ("DDDDD", "UUUUU"))
    whole, factual = compare.compare([a, b])
    assert (whole["invariant"], whole["false_alarm"], whole["j"]) == (3, 1, 0)
    assert (factual["ability"], factual["invariant"]) == ("factual", 0)
    assert factual["false_alarm_reason"] == factual["j_reason"] == "no score-invariant item"
    assert (factual["false_alarm_p"], factual["j_p"]) == (None, None)


def test_very_many_pairs_are_compared_over_all_items_alone(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = make_items(project, 4)
    runs = [make_said(project, items, said) for said in ("DDUU", "DUUU", "UUUU")]
    rows = compare.compare(runs)
    assert [row["ability"] for row in rows] == [None] * 3 + ["factual"] * 3
    monkeypatch.setattr(compare, "MOST_BY_ABILITY", 2)
    assert compare.compare(runs) == rows[:3]


def test_runs_that_agree_everywhere_have_an_interval(project: Project) -> None:
    items = make_items(project, 10)
    row, *_ = compare.compare([make_said(project, items, "D" * 10) for _ in range(2)])
    # Bonett and Price: t of 9 x (1/12 + 1/12)^.5 / 12^.5.
    assert (row["low"], row["high"]) == pytest.approx((-0.26660, 0.26660), abs=1e-4)
    assert (row["standard_error"], row["shows"], row["p"]) == (None, None, 1)
    assert row["reason"] == "all clusters differ alike"


def test_a_difference_has_bounds_whatever_is_missing(project: Project) -> None:
    items = make_items(project, 10)
    a = make_said(project, items[:9], "DDDDDUU--")
    b = make_said(project, items, "DDDUUU-DU-")
    row, *_ = compare.compare([a, b])
    # Of the nine that both were asked, a detects 5 to 7 and b 4 to 5.
    assert (row["lowest"], row["highest"]) == pytest.approx((0, 3 / 9))
    agreed, *_ = compare.compare([make_said(project, items, "D" * 10), b])
    assert (agreed["lowest"], agreed["highest"]) == pytest.approx((0.4, 0.6))


def test_a_pair_with_one_order_that_did_not_choose_gold_is_undetected_in_both_bounds(
    project: Project, browser: Client
) -> None:
    items = make_items(project, 4)
    both = verdicts("G")
    lost, open_ = (verdicts("P")[0], CUT), (both[0], CUT)
    a = make_replied(project, "pairwise", zip(items, (both, lost, open_, both), strict=True))
    b = make_replied(project, "pairwise", zip(items, (both,) * 4, strict=True))
    row, *_ = compare.compare([a, b])
    assert (row["lowest"], row["highest"]) == pytest.approx((-0.5, -0.25))
    # Both parsed two of the four items, where they agree: outside the bounds, as the page explains.
    assert (row["n"], row["difference"]) == (2, 0)
    for view in ("pairs", "control"):
        page = " ".join(shown(browser, f"compare/?view={view}").split())
        assert "over all error items that both runs were asked" in page
        assert "it can lie outside its bounds" in page


def test_runs_are_compared_with_one_control_and_a_margin(project: Project, browser: Client) -> None:
    items = [*make_items(project, 200), *make_items(project, 8, "score-invariant")]
    make_said(project, items, "D" * 150 + "U" * 50 + "U" * 8)
    make_said(project, items, "D" * 151 + "U" * 49 + "D" * 8)
    make_said(project, items, "D" * 140 + "U" * 60 + "U" * 8)
    # With many samples, each pair is a test of a million random numbers: a worker's work.
    waiting = shown(browser, "compare/?view=control&control=1")
    assert "<tbody" not in waiting
    for figure in StoredFigure.objects.exclude(wanted_at=None):
        assert figures.run_job(figure.pk)
    control = lines(shown(browser, "compare/?view=control&control=1"))
    # Against run 1: 1 more of 200, p 1; 10 fewer, 2 x 2 / 2^10 after Holm.
    assert [(line[0][0], line[2], line[5], line[6]) for line in control] == [
        ("2", "+0.5", "1.000", "equivalent"),
        ("3", "−5.0", "0.004", "detects less"),
    ]
    wide = lines(shown(browser, "compare/?view=control&margin=10"))
    assert [line[6] for line in wide] == ["equivalent", "detects less, within the margin"]
    of_alarms = lines(shown(browser, "compare/?view=control&measure=false_alarm&control=3"))
    assert [(line[0][0], line[6]) for line in of_alarms] == [
        ("1", "not settled"), ("2", "more false alarms"),
    ]  # fmt: skip
    page = shown(browser, "compare/?view=control&control=3")
    assert re.search(r'type="radio" name="control" value="3" checked', page)
    assert "Control: 3" in page


def test_items_of_one_cluster_flip_together(project: Project) -> None:
    items = make_items(project, 6, cluster="one") + make_items(project, 1)
    a, b = (make_said(project, items, said) for said in ("DDDDDDU", "UUUUUUU"))
    row, *_ = compare.compare([a, b])
    # One cluster differs, and could as well have differed the other way.
    assert row["p"] == 1


def test_items_that_repeat_another_one_are_compared_in_no_row(project: Project) -> None:
    (item,) = make_items(project, 1)
    items = [item, *make_items(project, 1, duplicate_of=item)]
    row, *_ = compare.compare([make_said(project, items, said) for said in ("DD", "DU")])
    assert (row["total"], row["difference"]) == (1, 0)


def test_runs_over_other_items_have_no_difference_but_a_reason(project: Project) -> None:
    one, other = make_items(project, 1), make_items(project, 1)
    row, *_ = compare.compare([make_said(project, one, "D"), make_said(project, other, "D")])
    assert (row["total"], row["n"], row["difference"], row["p"]) == (2, 0, None, None)
    assert row["reason"] == "no item that both parsed"


def test_one_run_alone_is_compared_with_nothing(project: Project) -> None:
    run = make_said(project, make_items(project, 1), "D")
    assert compare.compare([run]) == compare.compare([]) == []


def test_any_number_of_runs_are_one_query(
    project: Project, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    items = make_items(project, 3)
    for said in ("DDU", "UUD", "DUD"):
        make_said(project, items, said)
    runs = list(Run.objects.for_results())
    with django_assert_num_queries(1):
        compare.compare(runs)


def test_the_matrix_is_sorted_by_its_measure_and_leads_to_each_pair(
    project: Project, browser: Client
) -> None:
    items = [*make_items(project, 12), *make_items(project, 4, "score-invariant")]
    make_said(project, items, "U" * 12 + "UUUU")
    make_said(project, items, "D" * 12 + "DDDD")
    make_said(project, items, "D" * 10 + "UU" + "UUUU")
    page = shown(browser, "compare/")
    # 12 against 0: p = 3 x 2 / 2^12; 10 against 0: 2 x 2 / 2^10; 2 against 0: 1/2.
    assert lines(page) == [
        ["2 · vanilla judge-2", "a", "", "+16.7", "+100.0 p 0.001"],
        ["3 · vanilla judge-3", "a", "−16.7", "", "+83.3 p 0.004"],
        ["1 · vanilla judge", "b", "−100.0 p 0.001", "−83.3 p 0.004", ""],
    ]
    assert 'href="?view=pairs&amp;intervals=yes&amp;run_a=1&amp;run_b=3"' in page
    of_alarms = lines(shown(browser, "compare/?measure=false_alarm"))
    assert [line[0] for line in of_alarms] == [
        "1 · vanilla judge", "3 · vanilla judge-3", "2 · vanilla judge-2",
    ]  # fmt: skip
    assert of_alarms[0][1:] == ["", "0.0", "−100.0"]
    page = shown(browser, "compare/?measure=j&intervals=yes")
    assert "Differences of J on the items that both runs parsed" in page
    of_j = lines(page)
    assert (of_j[0][0], of_j[0][2][:4]) == ("3 · vanilla judge-3", "+0.8")
    assert "Each two runs share 12 error items and 4 score-invariant items." in page
    # Turned round, the interval is turned too.
    there, back = (
        [float(one.replace("−", "-")) for one in re.findall(r"−?\d+\.\d+", cell)[:3]]
        for cell in (of_j[0][2], of_j[1][1])
    )
    assert back == [-there[0], -there[2], -there[1]]


def test_the_matrix_says_how_many_items_its_pairs_share(project: Project, browser: Client) -> None:
    items = [*make_items(project, 12), *make_items(project, 4, "score-invariant")]
    for said in ("U" * 16, "D" * 10 + "--" + "UUU-", "D" * 12 + "UUUU"):
        make_said(project, items, said)
    page = shown(browser, "compare/?measure=j")
    shared = "Each two runs share 10 to 12 error items and 3 to 4 score-invariant items."
    assert shared in " ".join(page.split())


def test_a_pair_keeps_the_p_of_the_matrix_that_led_to_it(project: Project, browser: Client) -> None:
    items = make_items(project, 12)
    for said in ("U" * 12, "D" * 12, "D" * 10 + "UU", "D" * 12):
        make_said(project, items, said)
    [before] = lines(shown(browser, "compare/?run=1&run=3&view=pairs"))
    matrix = shown(browser, "compare/?run=1&run=2&run=3&measure=difference")
    # 2 / 2^10, the second smallest of three.
    assert ["3 · vanilla judge-3", "a", "−16.7", "", "+83.3 p 0.004"] in lines(matrix)
    [href] = re.findall(r'href="(\?[^"]*run_a=1&amp;run_b=3)"', matrix)[:1]
    query = href.replace("&amp;", "&")
    assert query == "?run=1&run=2&run=3&view=pairs&intervals=yes&run_a=1&run_b=3"
    page = shown(browser, f"compare/{query}")
    [line] = lines(page)
    assert line[4].startswith("−83.3")
    assert line[5] == "0.004"
    assert "1 of 3 pairs shown. The adjusted p is for all pairs of the 3 runs." in page
    # Of two chosen runs it is another p, and the page says why.
    alone = shown(browser, "compare/?run=1&run=3&view=pairs")
    assert before[5] == "0.002"
    assert "Only two runs are chosen, so p is adjusted for one pair: it stays as it is." in alone


def test_each_difference_of_a_pair_names_its_measure(project: Project, browser: Client) -> None:
    items = make_items(project, 6)
    for said in ("DDDDDD", "DUUUUU"):
        make_said(project, items, said)
    page = shown(browser, "compare/?view=pairs")
    assert re.findall(r">\s*([^<>]*a minus b)\s*<", page) == [
        "Detection, a minus b",
        "False alarms, a minus b",
        "J, a minus b",
    ]
    # p, adjusted p and letters.
    assert page.count("<small>of detection</small>") == 3


def test_the_matrix_has_no_cell_where_two_runs_share_no_items(
    project: Project, browser: Client
) -> None:
    items = make_items(project, 9)
    make_said(project, items[:6], "DDDDDD")
    make_said(project, items[3:6] + items[6:], "DUUUUU")
    make_said(project, items[6:], "DDU")
    found = {line[0][0]: line[2:] for line in lines(shown(browser, "compare/"))}
    assert {one for line in found.values() for one in line if not one} == {""}
    assert sorted(sum(1 for one in line if one) for line in found.values()) == [1, 1, 2]


def test_the_matrix_of_runs_without_score_invariant_items_says_why(
    project: Project, browser: Client
) -> None:
    items = make_items(project, 3)
    for said in ("DDU", "DUU"):
        make_said(project, items, said)
    found = lines(shown(browser, "compare/?measure=j"))
    assert found[0][2] == "— no score-invariant item"
