"""The result pages: each view's figures, what the address can ask of all of them, and saving."""

import re
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Item, Membership, Project
from judging.models import Run, SavedView
from judging.results import cells, figures, published_rates
from judging.results.page_parts import ResultPage, ResultView
from judging.results.tables import PAGES
from stats.estimates import Estimate
from tests.builders import make_member
from tests.judging import builders_decided
from tests.judging.builders_decided import make_audit, make_replied, scores
from tests.judging.builders_judging import make_items, make_run

pytestmark = pytest.mark.django_db

INDEX = "/projects/fbi/results/"
VIEWS = [(slug, view.slug) for slug, page in PAGES.items() for view in page.views]
# Pages over items of other task types, or over no runs; they have files of tests of their own.
OTHERWISE = {"people", "detector", "corrected", "data-set", "agreement", "pairwise", "cost"}
JUDGED = [(page, view) for page, view in VIEWS if page not in OTHERWISE]
# Those that have no figures while nothing is judged.
NEED_RUNS = {(page, view.slug) for page in PAGES for view in PAGES[page].views if view.of_runs}
OF_JUDGED = [
    (page, view)
    for page, view in VIEWS
    if page not in OTHERWISE - {"people", "detector", "corrected"} and (page, view) in NEED_RUNS
]


def shown(browser: Client, path: str, **options: Any) -> str:
    answer = browser.get(INDEX + path, **options)
    assert answer.status_code == 200, path
    return " ".join(answer.content.decode().split())


def lines(page: str) -> list[list[str]]:
    """The table's rows as plain text, cell by cell."""
    body = page[page.index("<tbody") : page.index("</table>")]
    return [
        [
            " ".join(re.sub(r"<[^>]*>", " ", cell).split()).replace(" ,", ",")
            for cell in re.split(r"</t[hd]>", row)[:-1]
        ]
        for row in (found.partition(">")[2] for found in body.split("<tr")[1:])
    ]


def links(page: str, words: str) -> list[str]:
    """Where links that lead to outcomes go whose address has these words."""
    found = re.findall(r'href="([^"]*#outcomes)"', page)
    return [one.replace("&amp;", "&") for one in found if words in one.replace("&amp;", "&")]


def keys(browser: Client, address: str) -> list[str]:
    """The items that a link of a figure leads to."""
    page = browser.get(address).content.decode()
    return re.findall(r'/items/(item-\d+)/[?"]', page)


@pytest.fixture
def items(project: Project) -> list[Item]:
    return [
        *make_items(project, 8, dose=1),
        *make_items(project, 4, category="spelling", ability="long-form", dose=2),
        *make_items(
            project, 4, "score-invariant", category="score-invariant", ability="score-invariant"
        ),
    ]


@pytest.fixture
def base(project: Project, items: list[Item]) -> Run:
    """Of each four items one lower, one equal, one higher, one missing."""
    said = cycle([scores(9, 5), scores(9, 9), scores(8, 9), scores(9, None)])
    return make_replied(project, "vanilla", zip(items, said, strict=False))


@pytest.fixture
def judged(project: Project, items: list[Item], base: Run) -> Project:
    """One run of every frame, explanations of both answers checked, and one with repeats."""
    equal = [outcome.item for outcome in base.outcomes.filter(detail="equal")]
    for slug, flags in (("", ["true", "false"]), ("-gold", ["false", "true"])):
        said = cycle([(f'{{"flag": {flag}}}',) for flag in flags])
        checked = list(zip(equal, said, strict=False))
        make_replied(project, f"explanation-check{slug}", checked, sources=[base], base=base)
    make_replied(project, "reference", zip(items, cycle([scores(9), scores(10)]), strict=False))
    pairs = [builders_decided.verdicts(one) for one in ("G", "both_good", "first_twice", "P")]
    make_replied(project, "pairwise", zip(items, cycle(pairs), strict=False))
    make_audit(base, (True, "correct"), (False, "wrong"))
    twice = [scores(9, 5, 9, 9), scores(9, 9, 9, 9)]
    make_replied(project, "vanilla", zip(items, cycle(twice), strict=False), samples=2)
    return project


def test_headings_say_what_their_columns_hold(judged: Project, browser: Client) -> None:
    head = shown(browser, "blind-spots/").partition("<tbody")[0]
    assert 'title="Undetected rate in the slice, a share of its n items. Click to sort."' in head


@pytest.mark.parametrize(("page", "view"), JUDGED)
def test_every_view_has_a_table_and_a_chart(
    judged: Project, browser: Client, page: str, view: str
) -> None:
    found = shown(browser, f"{page}/?view={view}")
    assert lines(found)
    assert '<script id="figures-chart" type="application/json">' in found
    # A sentence that names a variable in place of its value.
    assert not re.search(r"\{_?[A-Za-z]\w*\}", re.sub(r"(?s)<script.*?</script>", "", found))


def test_a_chart_that_is_longer_than_a_screen_is_below_its_table(
    judged: Project, browser: Client
) -> None:
    for path, is_first in (("by-category/", True), ("sensitivity/", False)):
        page = shown(browser, path)
        assert page.count('id="figures-chart"') == 1
        assert (page.index("<table") < page.index('id="figures-chart"')) == is_first
        assert ('<a href="#chart">Chart below the table</a>' in page) == is_first


@pytest.mark.parametrize(("page", "view"), OF_JUDGED)
def test_a_view_without_figures_says_what_to_do(
    project: Project, browser: Client, page: str, view: str
) -> None:
    make_items(project, 2)
    make_run(project)
    assert "No figures here yet" in shown(browser, f"{page}/?view={view}")


@pytest.mark.parametrize("path", ["nothing/", "overview/?view=nothing", "overview/?run=9"])
def test_what_is_not_there_is_not_found(base: Run, browser: Client, path: str) -> None:
    assert browser.get(INDEX + path).status_code == 404


def test_the_index_has_every_page_and_every_table_of_a_study(base: Run, browser: Client) -> None:
    found = shown(browser, "?run=1")
    for slug, page in PAGES.items():
        assert f'href="{INDEX}{slug}/?run=1"' in found
        assert page.question in found
    # Study 000 prints its results in tables 3 to 24 and in figure 2.
    for name in ("figure 2", *(f"table {number}" for number in range(3, 25))):
        assert f">{name}</a>" in found


def test_a_line_of_the_overview_is_a_run(base: Run, browser: Client) -> None:
    [line] = lines(shown(browser, "overview/"))
    # Nine of twelve error items are parsed, three of them detected; one of three is a false alarm.
    third = "33.3 % n {}, {} missing"
    assert line == [
        "1 · vanilla judge", third.format(9, 3), third.format(3, 1), third.format(6, 2),
        third.format(3, 1),
    ]  # fmt: skip


def test_the_rate_of_all_errors_leads_to_no_score_invariant_item(
    base: Run, browser: Client
) -> None:
    [address] = links(shown(browser, "overview/"), "items=errors&result=parsed")
    assert keys(browser, address) == [f"item-{n}" for n in range(1, 13) if n % 4]
    [detected] = links(shown(browser, "overview/"), "items=errors&result=detected")
    assert keys(browser, detected) == ["item-1", "item-5", "item-9"]
    [undetected] = links(
        shown(browser, "overview/?measure=undetected"), "items=errors&result=undetected"
    )
    assert len(keys(browser, undetected)) == 6


def test_a_run_that_checks_explanations_is_no_line_of_the_overview(
    judged: Project, browser: Client
) -> None:
    heads = [line[0] for line in lines(shown(browser, "overview/"))]
    assert heads == [
        "1 · vanilla judge", "4 · reference judge", "5 · pairwise judge", "6 · vanilla judge",
    ]  # fmt: skip


def test_lines_are_sorted_by_a_column_and_dashes_come_last(
    judged: Project, browser: Client
) -> None:
    def order(sort: str) -> list[str]:
        return [line[0][0] for line in lines(shown(browser, f"overview/?sort={sort}"))]

    # Of the factual: vanilla 2 of 6, reference 4 of 8, pairwise 2 of 8, repeated 2 of 8.
    assert order("-factual")[:2] == ["4", "1"]
    assert order("factual")[-2:] == ["1", "4"]
    assert order("run") == ["1", "4", "5", "6"]
    assert order("nothing") == ["1", "4", "5", "6"]


def test_a_heading_says_how_it_is_sorted_and_turns_it_round(base: Run, browser: Client) -> None:
    found = shown(browser, "overview/?sort=-factual")
    [heading] = re.findall(r'<th[^>]*aria-sort="descending"[^>]*>.*?</th>', found)
    assert "Factual" in heading
    assert 'href="?sort=factual"' in heading


def test_figures_are_narrowed_down_by_what_the_address_says(base: Run, browser: Client) -> None:
    found = lines(shown(browser, "by-category/?view=counts&ability=long-form"))
    # Category, ability, total, missing, parsed, detected, undetected, rate.
    assert found == [["Spelling", "Long form", "4", "1", "3", "1", "2", "66.7 % n 3, 1 missing"]]


def test_groups_are_chosen_by_a_switch(base: Run, browser: Client) -> None:
    [line] = lines(shown(browser, "by-category/?view=counts&by="))
    assert line[:3] == ["1 · vanilla judge", "12", "3"]


def test_how_far_scores_moved_leads_to_the_items_that_did(base: Run, browser: Client) -> None:
    found = shown(browser, "by-category/?view=changes&ability=factual")
    # Parsed, missing, then by 4 down, unmoved, by 1 up.
    assert lines(found) == [
        ["Factual", "6", "2", "2 33.3 % of 6", "2 33.3 % of 6", "2 33.3 % of 6"]
    ]
    [down] = links(found, "moved_from=-4.5")
    [up] = links(found, "moved_from=0.5")
    assert (keys(browser, down), keys(browser, up)) == (["item-1", "item-5"], ["item-3", "item-7"])


def test_items_are_found_by_how_far_their_scores_moved(base: Run, browser: Client) -> None:
    page = "/projects/fbi/runs/1/?ability=factual&moved_from=-0.5&moved_below=0.5"
    assert keys(browser, page) == ["item-2", "item-6"]


def test_golds_at_the_ends_of_the_scale(project: Project, browser: Client) -> None:
    items = make_items(project, 4)
    said = [scores(1, 1), scores(10, 10), scores(10, 4), scores(5, 5)]
    make_replied(project, "vanilla", zip(items, said, strict=True))
    page = shown(browser, "by-category/?view=ends")
    [line] = lines(page)
    # No filter of outcomes tells these, and a link to none or to others would be wrong.
    assert not links(page, "detail=")
    assert line[3:] == ["1 to 10", "1 25.0 % of 4", "1 25.0 % of 4", "2 50.0 % of 4"]


def test_pairs_are_shown_by_verdict(judged: Project, browser: Client) -> None:
    found = lines(shown(browser, "verdicts/?ability=factual&run=5"))
    quarter = "2 25.0 % of 8"
    # Gold twice, mixed, both good, both bad, perturbed twice.
    assert found == [
        ["Factual", "8", "0", "0", quarter, quarter, quarter, "0 0.0 % of 8", quarter, "75.0 % n 8"]
    ]


def test_the_order_effect_is_of_the_parsed_pairs(judged: Project, browser: Client) -> None:
    [line] = lines(shown(browser, "verdicts/?view=order&ability=factual"))
    # Two items of eight: 2 of the 4 patterns of two signs are as far from 0.
    assert line[-5:] == ["25.0 % n 8", "0.0 % n 8", "0.0 % n 8", "+25.0", "0.500"]


def test_the_first_sample_stands_beside_all_of_them(judged: Project, browser: Client) -> None:
    [line] = lines(shown(browser, "verdicts/?view=repeats&ability=factual"))
    # Four of eight are lower in the first sample and not in the second: of the 16 results 4 are
    # detected, and alpha is 1 - 15 x 8 / (2 x 4 x 12).
    assert line[-5:] == ["2 repeats", "50.0 % n 8", "75.0 % n 8", "50.0 % n 8", "−0.25"]


def test_only_the_top_is_undetected_against_a_reference(judged: Project, browser: Client) -> None:
    [line] = lines(shown(browser, "reference/?ability=factual"))
    assert line[-4:] == ["0 0.0 % of 8", "4 50.0 % of 8", "4 50.0 % of 8", "50.0 % n 8"]


def test_what_explanations_add_leads_to_the_check(judged: Project, browser: Client) -> None:
    page = shown(browser, "explanations/?ability=factual")
    [line] = lines(page)
    # Of six parsed two are detected and two equal, one of which the explanation tells.
    third, sixth = "2 33.3 % of 6", "1 16.7 % of 6"
    assert line[4:8] == [third, third, sixth, "3 50.0 % of 6"]
    # The same share of gold answers gets credit: none of it counts.
    assert line[8:] == ["50.0 % n 2", "50.0 % n 6, 2 missing", "66.7 % n 6"]
    assert links(page, "/runs/2/?ability=factual&result=detected")
    [missed] = [one for one in links(page, "/runs/1/?ability=factual") if "not_detected" in one]
    query = missed.partition("?")[2].partition("#")[0]
    found = browser.get(f"/api/v1/projects/fbi/runs/1/outcomes/?{query}").json()
    assert found["count"] == 3


def test_false_credit_is_what_is_found_in_gold_answers(judged: Project, browser: Client) -> None:
    [line] = lines(shown(browser, "explanations/?view=false-credit&ability=factual"))
    assert line[-2:] == ["50.0 % n 2", "50.0 % n 2"]


def test_audits_are_shown_by_whether_the_verdict_was_right(base: Run, browser: Client) -> None:
    said = ["correct", "insufficient", "correct", ""]
    make_audit(base, *((True, quality) for quality in said), (False, "none"))
    assert lines(shown(browser, "explanations/?view=audits")) == [
        ["1 · vanilla judge", "right", "4", "1", "2 66.7 % of 3", "1 33.3 % of 3", "0 0.0 % of 3",
         "0 0.0 % of 3"],
        ["1 · vanilla judge", "wrong", "1", "0", "0 0.0 % of 1", "0 0.0 % of 1", "0 0.0 % of 1",
         "1 100.0 % of 1"],
    ]  # fmt: skip


@pytest.mark.usefixtures("charts_fit_their_schema")
def test_audits_are_shown_by_class_as_shares_of_all_explanations(
    base: Run, browser: Client
) -> None:
    make_audit(base, (True, "correct"), (True, "correct"), (True, ""), (False, "none"))
    page = shown(browser, "explanations/?view=audits&show=classes")
    found = [line[1:] for line in lines(page)]
    assert found[0] == ["right", "Correct", "2", "66.7 % n 3, 1 missing"]
    assert found[4] == ["wrong", "None", "1", "33.3 % n 3, 1 missing"]
    assert len(found) == 7
    assert "audited=right-correct" in " ".join(links(page, "audited"))
    assert '<script id="figures-chart" type="application/json">' in page


def test_a_rate_has_its_range_had_labels_been_wrong(base: Run, browser: Client) -> None:
    page = shown(browser, "overview/?wrong=10")
    # Of eight factual items six are parsed and two detected: (2/6 - .1) / .9 to 2/6 / .9.
    assert "33.3 % n 6, 2 missing 25.9 % to 37.0 % if 10 % wrong" in " ".join(lines(page)[0])
    assert "if 10 % of the final labels of its items were wrong" in page
    side = shown(browser, "by-category/?wrong=10&measure=undetected")
    # 4/6: (4/6 - .1) / .9 to 4/6 / .9.
    assert "63.0 % to 74.1 % if 10 % wrong" in side
    assert "wrong" not in " ".join(lines(shown(browser, "overview/"))[0])


def test_runs_are_compared_on_what_both_parsed(judged: Project, browser: Client) -> None:
    [line, *_] = lines(shown(browser, "compare/?view=pairs&run=1&run=4&intervals=yes"))
    # Of items 1 to 12 run 1 parsed all but each fourth, and detected 1, 5 and 9; run 4 detected
    # every odd one: 9 in both, none by run 1 alone, 3, 7 and 11 by run 4 alone.
    # Variance (3 - 1) / 81 x 9/8, that of 8 independent items: (1 - 11/3) / 10, variance (14/3 / 10
    # - .2667^2) / 10, 2.31 of its roots either way (t of 8); p of McNemar for 0 against 3 is 2 / 8;
    # 9 d - 1 = 1.96 x 9 (.1667^2 + d^2 / 9)^.5 + 0.889 x 9 x .1667 would be found: 97.5 points.
    assert line[:7] == [
        "All", "1 · vanilla judge", "4 · reference judge", "9 3 missing", "−33.3 −72.5 to +19.2",
        "0.250", "a | a",
    ]  # fmt: skip
    assert line[10:13] == ["0", "3", "0.250"]
    assert line[14] == "97.5"


def test_runs_are_compared_by_ability(judged: Project, browser: Client) -> None:
    [long_form, factual] = lines(shown(browser, "compare/?view=pairs&run=1&run=4&of=ability"))
    assert (long_form[0], long_form[3], long_form[9:11]) == (
        "Long form", "3 1 missing", ["0", "1"],
    )  # fmt: skip
    assert (factual[0], factual[3], factual[9:11]) == ("Factual", "6 2 missing", ["0", "2"])
    # No letters, which are of all items.
    assert "a | a" not in factual
    assert len(factual) == 15


def test_what_is_missing_stands_beside_what_it_could_have_changed(
    base: Run, browser: Client
) -> None:
    page = shown(browser, "missing/")
    # Of twelve error items six are undetected and three missing: from 6 to 9 of 12, 6 of 9 as it
    # is. The bounds stand once, and each cause has a line.
    assert lines(page) == [
        [
            "1 · vanilla judge", "3 25.0 % of 12", "50.0 % n 12", "66.7 % n 9, 3 missing",
            "75.0 % n 12", "1.000",
        ],
        [
            "Truncated the reply was cut off; incomplete replies are not parsed", "3 25.0 % of 12",
            "", "", "", "",
        ],
    ]  # fmt: skip
    [address] = links(page, "cause=truncated")
    assert keys(browser, address) == ["item-4", "item-8", "item-12"]
    assert "Missing: 25.0 % of 12 outcomes. Most frequent cause: truncated, 100.0 % of" in page
    assert "would have said, the undetected rate is 50.0 % to 75.0 %." in page


def test_what_is_missing_is_shown_by_group_the_largest_share_first(
    base: Run, browser: Client
) -> None:
    base.outcomes.filter(ability="long-form", result="undetected").update(
        result="missing", cause="refused"
    )
    page = shown(browser, "missing/?by=ability")
    found = [line[:2] for line in lines(page)]
    cut = "the reply was cut off; incomplete replies are not parsed"
    refused = "the evaluator refused, so there is no answer"
    assert found == [
        ["Long form", "3 75.0 % of 4"], [f"Refused {refused}", "2 50.0 % of 4"],
        [f"Truncated {cut}", "1 25.0 % of 4"],
        # A cause is described once.
        ["Factual", "2 25.0 % of 8"], ["Truncated", "2 25.0 % of 8"],
        ["Score-invariant", "1 25.0 % of 4"], ["Truncated", "1 25.0 % of 4"],
    ]  # fmt: skip
    [address] = links(page, "ability=long-form&result=missing&cause=refused")
    assert keys(browser, address) == ["item-10", "item-11"]


def test_runs_whose_bounds_overlap_could_change_places(
    project: Project, items: list[Item], browser: Client
) -> None:
    detected, equal, cut = scores(9, 5), scores(9, 9), scores(9, None)
    # Undetected: 2 of 4; 1 to 3 of 4; 3 of 4. The second could be on either side of the first,
    # and reach the third at most, which is no other order.
    for said in (
        [detected, detected, equal, equal],
        [detected, equal, cut, cut],
        [detected, equal, equal, equal],
    ):
        make_replied(project, "vanilla", zip(items[:4], said, strict=True))
    page = shown(browser, "missing/?run=1&run=2&run=3")
    assert "In 1 of 3 pairs of runs the bounds overlap" in page
    assert "Widest bounds: 25.0 % to 75.0 %, run 2." in page
    ends = re.findall(r'"title": ?"(Lowest|Highest|95 % from)"', page)
    assert set(ends) == {"Lowest", "Highest"}, "bounds are no confidence interval"


def test_replies_that_are_all_usable_are_said_to_be(project: Project, browser: Client) -> None:
    make_replied(project, "vanilla", [(make_items(project, 1)[0], scores(9, 9))])
    page = shown(browser, "missing/")
    assert "Nothing is missing: every reply could be used." in page
    assert [line[1] for line in lines(page)] == ["0 0.0 % of 1"]


def test_detection_stands_against_false_alarms(base: Run, browser: Client) -> None:
    [line, *_] = lines(shown(browser, "sensitivity/"))
    # Three of nine errors, and one of three score-invariant changes: J = 1/3 - 1/3.
    # Equal rates: d' = z(5 / 14) - z(5 / 14).
    assert line == ["All", "1 · vanilla judge", "33.3 % n 9", "33.3 % n 3", "0.00", "0.00"]


def test_a_switch_brings_the_figures_alone(base: Run, browser: Client) -> None:
    part = shown(browser, "overview/?measure=undetected", headers={"HX-Request": "true"})
    assert part.startswith('<div id="figures"')
    assert 'data-address="?measure=undetected"' in part


def test_figures_that_are_being_made_show_no_number(
    base: Run, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    making = figures.PendingTable(7, "undetected", (), None, "counting", 3, 10, "", None)
    monkeypatch.setattr(figures, "fetch_or_enqueue", lambda asked: making)
    found = shown(browser, "overview/")
    assert "counting, 3 of 10" in found
    assert 'hx-trigger="every 1s"' in found
    assert "<table" not in found


# --- published figures --------------------------------------------------------------------------


def published(browser: Client, query: str) -> Iterator[list[str]]:
    page = shown(browser, f"overview/?intervals=yes&{query}")
    assert 'data-kind="published"' in page
    return (line for line in lines(page) if line[0].startswith("Table"))


def test_published_figures_stand_beside_with_their_own_n_and_interval(
    base: Run, browser: Client
) -> None:
    line = next(published(browser, "measure=undetected&published=3/vanilla/gpt-4-turbo"))
    assert (
        line[0] == "Table 3 · vanilla · gpt-4-turbo study 000; of all items, including missing ones"
    )
    # Wilson for .57 of 528: 52.7 to 61.2 %. Ours is 66.7 %, from 20.8 % to 93.9 %.
    assert line[2] == "57.0 % 52.7 % to 61.2 % n 528 inside our interval of run 1"
    assert "no interval: no counts are printed" in line[-1]


def test_a_published_figure_outside_our_interval_has_an_error_of_its_own() -> None:
    ours = Estimate(0.5, 0.45, 0.55, 400)

    def told(value: float, low: float | None, high: float | None) -> str:
        return published_rates._compare_with(Estimate(value, low, high, 50), ours, "our interval")

    assert told(0.55, 0.41, 0.68) == "inside our interval"
    # .5 - .6: its upper end is -.1 + (.05^2 + .13^2)^.5 = .039.
    assert told(0.6, 0.47, 0.72) == "outside our interval, but its own error could explain that"
    # .5 - .7: -.2 + (.05^2 + .13^2)^.5 = -.061.
    assert told(0.7, 0.57, 0.8) == "outside our interval, by more than its own error explains"
    assert told(0.7, None, None) == "outside our interval; its own error is not known"


def invariant_pairs(project: Project, *said: str) -> Run:
    """A run of pairs: one error that is detected, and score-invariant items with these verdicts."""
    items = make_items(project, 1) + make_items(project, len(said), "score-invariant")
    replies = map(builders_decided.verdicts, ("G", *said))
    return make_replied(project, "pairwise", zip(items, replies, strict=True))


def test_pairs_of_score_invariant_items_have_both_good_beside_left_unmoved(
    project: Project, browser: Client
) -> None:
    invariant_pairs(project, "G", "both_good", "both_good", "P")
    make_replied(project, "vanilla", [(one, scores(9, 5)) for one in project.items.all()])
    for measure, unmoved in (("undetected", "75.0 %"), ("detection", "25.0 %")):
        page = shown(browser, f"overview/?measure={measure}")
        name = {"undetected": "no false alarm", "detection": "false alarms"}[measure]
        for note in (name, "both good"):
            assert f"<small>{note}</small>" in page
        pair, single = lines(page)
        # One of four pairs is a false alarm, and two were called equally good.
        assert pair[-2].startswith(unmoved)
        assert pair[-1].startswith("50.0 %")
        assert single[-1] == "— not a pair"
        assert "leaves 15 of 16 pairs unmoved, but calls both answers good in 1 of 16" in page
    assert "both good" not in shown(browser, "overview/?run=2").split("Both good</h3>")[0]


def test_a_published_figure_of_score_invariant_pairs_stands_in_both_good(
    project: Project, browser: Client
) -> None:
    invariant_pairs(project, *["both_good"] * 9, "P", "P", "P")
    for query, both in (("", "74.0 %"), ("&measure=undetected", "74.0 %")):
        line = next(published(browser, f"published=3/pairwise/gpt-4-turbo{query}"))
        assert line[-2] == "— not printed"
        assert line[-1].startswith(both)
        assert "inside our interval of run 1" in line[-1]


def test_published_figures_turn_round_with_the_measure(base: Run, browser: Client) -> None:
    line = next(published(browser, "published=3/vanilla/gpt-4-turbo"))
    assert line[2].startswith("43.0 % 38.8 % to 47.3 %")


def test_published_figures_of_the_same_strategies(base: Run, browser: Client) -> None:
    models = [line[0].split(" study")[0] for line in published(browser, "published=same")]
    known = [one.series for one in published_rates.load_overview() if one.strategy == "vanilla"]
    assert models == [f"Table {t} · {s} · {m}" for t, s, m in dict.fromkeys(known)]


def test_nothing_is_said_of_runs_with_another_strategy(base: Run, browser: Client) -> None:
    line = next(published(browser, "published=3/rubric/gpt-4-turbo"))
    assert not any("our interval" in cell for cell in line)


# --- saved views --------------------------------------------------------------------------------

SAVED = f"{INDEX}views/"
WISH = {"name": "Mine", "page": "overview", "query": "measure=undetected"}


def test_a_view_is_saved_and_opened(base: Run, browser: Client, member: Membership) -> None:
    answer = browser.post(SAVED, WISH)
    assert answer["Location"] == f"{INDEX}overview/?measure=undetected"
    link = f'<a href="{INDEX}overview/?measure=undetected">Mine</a>'
    for path in ("", "overview/", "views/"):
        assert link in shown(browser, path)
    assert link not in shown(browser, "verdicts/")


def test_a_view_is_seen_by_others_if_it_is_shared(
    base: Run, browser: Client, client: Client, project: Project
) -> None:
    browser.post(SAVED, WISH)
    other = make_member(project, role="researcher", alias="otto")
    assert other.account
    client = Client()
    client.force_login(other.account)
    assert "Mine" not in shown(client, "views/")
    view = SavedView.objects.get()
    browser.post(SAVED, {"view": view.pk, "name": "Ours", "shared": "on"})
    found = shown(client, "views/")
    assert "Ours" in found
    assert "shared by rita" in found
    assert client.post(SAVED, {"view": view.pk, "name": "Taken"}).status_code == 404


def test_a_view_is_deleted_by_who_saved_it(base: Run, browser: Client) -> None:
    browser.post(SAVED, WISH)
    browser.post(SAVED, {"view": SavedView.objects.get().pk, "name": "Mine", "delete": "1"})
    assert not SavedView.objects.exists()


@pytest.mark.parametrize(
    ("wish", "status"),
    [
        ({**WISH, "name": ""}, 422),
        ({**WISH, "page": "nothing"}, 422),
        ({**WISH, "query": "run=7"}, 404),
        ({"view": "x"}, 422),
    ],
)
def test_what_cannot_be_saved_is_refused(
    base: Run, browser: Client, wish: dict[str, str], status: int
) -> None:
    assert browser.post(SAVED, wish).status_code == status
    assert not SavedView.objects.exists()


def test_two_views_of_one_name_are_refused(base: Run, browser: Client) -> None:
    browser.post(SAVED, WISH)
    answer = browser.post(SAVED, WISH)
    assert answer.status_code == 422
    assert "You already have a view with this name." in answer.content.decode()


# --- the registry -------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_page_is_one_question_with_views_of_names_of_their_own(page: ResultPage) -> None:
    assert page.question.endswith("?")
    slugs = [view.slug for view in page.views]
    assert len(set(slugs)) == len(slugs)
    for view in page.views:
        assert isinstance(view, ResultView)
        assert view.empty.endswith(".")


def test_every_page_has_an_address_and_a_picture(base: Run, browser: Client) -> None:
    found = shown(browser, "")
    for slug in PAGES:
        assert reverse("results-page", args=["fbi", slug]) in found
    assert reverse("results-methods", args=["fbi"]) in found
    *pictures, lines = re.findall(r'<svg class="result-picture".*?</svg>', found)
    assert all("<circle" in one or "<rect" in one for one in pictures)
    assert len(pictures) == len(PAGES)
    assert "<path" in lines


def test_a_mean_of_shares_is_percent_with_its_interval_or_the_reason_for_none() -> None:
    row = {"x": 0.5, "x_low": 0.4, "x_high": 0.625, "x_reason": None}
    assert cells.percent_figure_cell(row, "x").interval == "40.0 % to 62.5 %"
    bare = cells.percent_figure_cell(
        row | {"x_low": None, "x_high": None, "x_reason": "one cluster"}, "x"
    )
    assert (bare.interval, bare.reason) == ("", "one cluster")
