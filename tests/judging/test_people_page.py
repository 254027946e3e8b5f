"""Against people, as a page: its figures by hand, where they lead, and that they are those of the
command and the API."""

import csv
import io
import json
import re
from html import unescape
from itertools import count
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from django.http import QueryDict
from django.test import Client

from annotation.models import Label, Project
from judging.models import Outcome
from judging.results.filters import OutcomeFilter
from judging.results.tables import PAGES
from stats.paired import ONE_CLUSTER
from tests.judging.builders_rated import bring_items, bring_labels, bring_scores, command
from tests.judging.test_result_pages import lines

pytestmark = pytest.mark.django_db

PAGE = "/projects/p/results/people/"
VIEWS = [view.slug for view in PAGES["people"].views]
# People's number and the evaluator's of six items a task, five times over. Within a task those
# that differ make the only pairs, so that high numbers of one side meet low ones of the other;
# over both tasks high meets high.
PAIRS = {
    "t1": [(1, 2), (2, 1), (1, 1), (1, 1), (1, 1), (1, 1)],
    "t2": [(3, 2), (2, 3), (3, 3), (3, 3), (3, 3), (3, 3)],
}
GOLD = {"t1": "yes", "t2": "a far longer answer than that"}


def make_rated(folder: Path, slug: str = "p", *, dozens: int = 5) -> Project:
    """So many dozens of items of their own prompts; with gold as in `PAIRS`, without gold as people
    but for one that cannot be read, and a measure of overlap with a scale of its own."""
    number = count(1)
    rated = {
        f"i{next(number)}": (task, *pair)
        for _ in range(dozens)
        for task, pairs in PAIRS.items()
        for pair in pairs
    }
    items = [
        {"key": key, "prompt": f"Question {key}?", "gold": [GOLD[task]], "response": "Yes.",
         "task": task}
        for key, (task, *_) in rated.items()
    ]  # fmt: skip
    project = bring_items(folder, slug, items)
    said = [
        (key, f"rater-{place}", answers(given))
        for key, (_, people, evaluator) in rated.items()
        for place, given in enumerate((1, 2, 3) if (people, evaluator) == (2, 1) else [people] * 3)
    ]
    bring_labels(folder, project, said)
    scores = [(key, answers(evaluator)) for key, (*_, evaluator) in rated.items()]
    bring_scores(folder, project, "judge", "likert", scores)
    alike = [(key, answers(people)) for key, (_, people, _) in rated.items()]
    bring_scores(folder, project, "judge", "likert-no-gold", [*alike[:-1], (alike[-1][0], None)])
    overlap = [(key, people / 4) for key, (_, people, _) in rated.items()]
    bring_scores(folder, project, "overlap", "rouge-l-response", overlap)
    return project


def answers(number: int) -> dict[str, int]:
    return {"naturalness": 3, "relatedness": number, "correctness": number}


@pytest.fixture(scope="module")
def rated(tmp_path_factory: pytest.TempPathFactory, module_db: None) -> Project:
    return make_rated(tmp_path_factory.mktemp("rated"))


@pytest.fixture
def project(rated: Project) -> Project:
    return rated


def shown(browser: Client, query: str) -> str:
    answer = browser.get(f"{PAGE}?{query}")
    assert answer.status_code == 200, query
    return " ".join(answer.content.decode().split())


def table(browser: Client, query: str) -> list[list[str]]:
    return lines(shown(browser, query))


def hrefs(page: str, words: str) -> list[str]:
    found = (unescape(one) for one in re.findall(r'href="([^"]*)"', page))
    return [one for one in found if words in one and re.search("view=(items|ratings)", one)]


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_has_a_table_and_a_chart(browser: Client, view: str) -> None:
    page = shown(browser, f"view={view}")
    assert lines(page)
    assert '<script id="figures-chart" type="application/json">' in page


def test_correlations_stand_by_run_with_whether_it_sees_the_gold_answer(browser: Client) -> None:
    rows = table(browser, "metric=correctness")
    # Of 12 items, deviations from 2: products 8, squares 10 on either side; ranks are as far apart.
    # tau-b: of both-sided pairs per 12 the values 1, 2, 3 come 5, 2, 5 times.
    assert [row[:2] for row in rows] == [
        ["Correctness", "1 · likert judge · with gold"],
        ["Correctness", "2 · likert-no-gold judge · without gold"],
        ["Correctness", "3 · rouge-l-response overlap · with gold"],
    ]
    assert [row[2:6] for row in rows] == [
        ["60", "0", "0.80", "0.80"], ["59", "1", "1.00", "1.00"], ["60", "0", "1.00", "1.00"],
    ]  # fmt: skip


def test_what_everybody_rates_alike_has_no_correlation_and_says_so(browser: Client) -> None:
    [row] = table(browser, "metric=naturalness&run=1")
    assert row[4:] == ["— one side is constant"] * 3


def test_intervals_are_shown_on_demand(browser: Client) -> None:
    [row] = table(browser, "metric=correctness&run=1&intervals=yes")
    assert re.fullmatch(r"0\.80 0\.\d\d to 0\.\d\d", row[4])


def test_errors_without_study_002_s_accuracy_where_there_is_no_total(browser: Client) -> None:
    rows = table(browser, "view=closeness&metric=correctness")
    # 4 of 12 are 1 apart, as often up as down: RMSE = sqrt(1/3).
    why = "— there is no total, whose range this accuracy is relative to"
    assert rows[0][4:] == ["0.58", "0.33", "0.00", why]
    # The one that is missing could be right, or 2 away from its 3: 2 / sqrt(60) = 0.26.
    assert rows[1][4] == "0.00 0.00 to 0.26 with missing"
    assert rows[2][4:] == ["— people and evaluator have different scales"] * 4


def test_mean_ratings_are_scaled_and_lie_apart_by_group(browser: Client) -> None:
    first, *rows = table(browser, "view=means&metric=correctness&run=1&by=task")
    # t1: people 7/6 and evaluator 7/6, so (7/6 - 1) / 2 = 8.3 % both.
    assert first[-1] == "0.0 of 2 groups"
    assert [row[0] for row in rows] == ["t1", "t2"]
    assert rows[0][-3:] == ["8.3 %", "8.3 %", "0.0"]
    [of_measure] = table(browser, "view=means&metric=correctness&run=3")
    # People 2 of 1..3, the measure 2/4 of 0..1.
    assert of_measure[-3:] == ["50.0 %", "50.0 %", "0.0"]


def test_correlations_stand_above_mean_ratings_by_task(browser: Client) -> None:
    rows = table(browser, "view=tasks&metric=correctness&run=1&by=task")
    assert [row[0] for row in rows] == ["t1", "t2"]
    # Within a task, two pairs are turned round and four are equal: rho = -0.2.
    assert [row[5:] for row in rows] == [["−0.20", "8.3 %", "8.3 %", "0.0"],
                                         ["−0.20", "91.7 %", "91.7 %", "0.0"]]  # fmt: skip
    address = f"{PAGE}?view=tasks&metric=correctness&run=1&by=task"
    found = re.search(
        r'<script id="figures-chart" type="application/json">(.*?)</script>',
        browser.get(address).content.decode(),
    )
    assert found
    values = [
        (one["group"], round(one["correlation"], 2), round(one["people"], 3), one["n"])
        for one in json.loads(found[1])["data"]["values"]
    ]
    assert values == [("t1", -0.2, 0.083, 30), ("t2", -0.2, 0.917, 30)]


def test_a_reversal_within_groups_is_said(browser: Client) -> None:
    rows = table(browser, "view=groups&metric=correctness&by=task")
    # Within t1: products -6/36 of variance 30/36, and in t2 the same: -0.2, where pooled is 0.8.
    assert rows[0][2:] == ["0.80 n 60", "−0.20", "0.00", "2", "0", "the sign"]
    assert rows[1][2:] == ["1.00 n 59", "1.00", "0.00", "2", "0", "no"]


def test_short_answers_stand_beside_long_ones(browser: Client) -> None:
    rows = table(browser, "metric=correctness&run=1&by=answer_length")
    # Gold answers of t1 have one word, those of t2 six.
    assert [(row[0], row[3], row[5]) for row in rows] == [
        ("long", "30", "−0.20"), ("short", "30", "−0.20"),
    ]  # fmt: skip


def test_ties_are_counted_and_lead_to_their_items(browser: Client) -> None:
    page = shown(browser, "view=scatter&metric=correctness&run=1&by=task&task=t1")
    # People, evaluator, items, share of people's number.
    assert [row[3:] for row in lines(page)] == [
        ["1", "1", "20", "80.0 %"], ["1", "2", "5", "20.0 %"], ["2", "1", "5", "100.0 %"],
    ]  # fmt: skip
    [address] = hrefs(page, "people=1.0&evaluator=2.0")
    listed = table(browser, address.removeprefix("?"))
    assert [row[3] for row in listed] == ["i1", "i13", "i25", "i37", "i49"]
    assert listed[0][4:] == ["1", "1.00 of 3", "yes", "2", "+1"]


def test_a_count_of_missing_numbers_leads_to_them(browser: Client) -> None:
    page = shown(browser, "metric=correctness&run=2")
    [address] = hrefs(page, "evaluator=None")
    [row] = table(browser, address.removeprefix("?"))
    assert (row[2], row[-2]) == ("i60", "— unparsable")


def test_items_furthest_apart_come_first_and_lead_to_their_replies(browser: Client) -> None:
    page = shown(browser, "view=items&metric=correctness&run=1")
    apart = [row[-1] for row in lines(page)]
    assert {abs(int(one.replace("−", "-"))) for one in apart[:20]} == {1}
    assert set(apart[20:]) == {"+0"}
    assert 'href="/projects/p/runs/1/items/i1/"' in page


def test_agreement_by_people_s_number(browser: Client) -> None:
    rows = table(browser, "view=by-score&metric=correctness&run=1")
    # Of 25 ones 20 are given 1 by the evaluator, none of ten twos, and 20 of 25 threes.
    assert [row[2:] for row in rows] == [
        ["1", "20", "80.0 % n 25"], ["2", "0", "0.0 % n 10"], ["3", "20", "80.0 % n 25"],
    ]  # fmt: skip


def test_the_n_of_an_agreement_leads_to_the_items_with_both_numbers(browser: Client) -> None:
    page = shown(browser, "view=by-score&metric=correctness&run=2")
    assert lines(page)[-1][-1].endswith("n 24")
    [address] = hrefs(page, "people=3.0&cause=None")
    listed = shown(browser, address.removeprefix("?"))
    assert len(lines(listed)) == 24
    assert "none: usable reply" in listed
    assert len(table(browser, "view=items&metric=correctness&run=2&people=3")) == 25


def test_people_without_a_majority_are_counted(browser: Client) -> None:
    page = shown(browser, "view=majority&metric=correctness&by=task")
    # One of six items of t1 has three different ratings.
    assert lines(page) == [
        ["t1", "Correctness", "30", "25", "5", "83.3 % n 30"],
        ["t2", "Correctness", "30", "30", "0", "100.0 % n 30"],
    ]
    [address] = hrefs(page, "decided=false")
    assert "run=" not in address
    listed = table(browser, address.removeprefix("?"))
    assert [row[0] for row in listed] == ["i2", "i14", "i26", "i38", "i50"]
    assert listed[0][1:] == ["t1", "Correctness", "3", "2.00", "no"]
    every, *_ = (one for one in hrefs(page, "task=t1") if "decided" not in one)
    assert len(table(browser, every.removeprefix("?"))) == 30


@pytest.mark.parametrize("view", ["ceiling", "alt-test"])
def test_of_each_person_the_items_are_those_that_others_and_the_evaluator_have_too(
    browser: Client, view: str
) -> None:
    Label.objects.filter(member__alias="rater-0", item__key__in=["i1", "i3"]).update(counted=False)
    page = shown(browser, f"view={view}&metric=correctness&run=2")
    links = [unescape(one) for one in re.findall(r'href="([^"]*rated=[^"]*)"', page)]
    listed = [behind(one) for one in links]
    # Run 2 could not read the last of sixty.
    assert [len(one) for one in listed] == [57, 59, 59, 59]
    assert [int(row[3].split()[0]) for row in lines(page)][:3] == [57, 59, 59]
    assert not listed[0] & {"i1", "i3", "i60"}


def behind(address: str) -> set[str]:
    """The items of the outcomes of run 2 that an address is narrowed to."""
    asked = QueryDict(urlsplit(address).query)
    found = OutcomeFilter(asked, Outcome.objects.filter(run__number=2)).qs
    return set(found.values_list("item__key", flat=True))


@pytest.mark.parametrize(
    "said", ["x", "[" * 1999, "{}", '{"group": {"no such": 1}}', '{"metric": 3, "group": {}}']
)
def test_what_is_no_row_of_people_is_no_item(browser: Client, said: str) -> None:
    assert behind(f"?{urlencode({'rated': said})}") == set()


def test_people_stand_beside_the_evaluator_against_the_others(browser: Client) -> None:
    rows = table(browser, "view=ceiling&metric=correctness&run=2")
    assert [row[2] for row in rows] == ["rater-0", "rater-1", "rater-2", "Mean over people"]
    # rater-1 gives what all others do, and 2 where they give 1 and 3: the mean of the others.
    assert rows[1][3:6] == ["59", "1.00", "1.00"]
    assert 0.9 < float(rows[1][7]) <= 1
    page = shown(browser, "view=ceiling&metric=correctness&run=2&measure=pearson")
    assert "The line across a row is what a perfect evaluator would reach." in page
    errors = shown(browser, "view=ceiling&metric=correctness&run=2&measure=rmse")
    assert "The line across a row" not in errors
    assert {row[7] for row in lines(errors)} == {"— only for correlations"}


def test_an_evaluator_is_tested_at_the_epsilon_that_is_asked_for(browser: Client) -> None:
    rows = table(browser, "view=alt-test&metric=correctness&run=2&epsilon=0.2")
    # It gives what people's majority is, and so is as near as each of them on every item.
    assert [row[-1] for row in rows] == ["beaten"] * 3 + ["passes"]
    assert rows[-1][-2] == "100.0 %"
    assert rows[0][4] == "100.0 %"


def test_of_a_person_who_cannot_be_tested_there_is_no_verdict(browser: Client) -> None:
    Outcome.objects.update(cluster="one")
    rows = table(browser, "view=alt-test&metric=correctness&run=2&epsilon=0.2")
    assert [row[-1] for row in rows] == [f"— {ONE_CLUSTER}"] * 4


@pytest.mark.parametrize("by", ["", "task"])
def test_the_page_has_the_figures_of_command_and_api(
    browser: Client, program: Client, capsys: pytest.CaptureFixture[str], by: str
) -> None:
    query = f"run=1&run=2&by={by}&metric=correctness"
    rows = program.get(f"/api/v1/projects/p/results/alignment/?{query}").json()["rows"]
    named = {"by": by, "run": [1, 2], "only": ["metric=correctness"], "format": "csv"}
    command("results", "alignment", project="p", **named)
    printed = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == len(printed) == (4 if by else 2)
    of_page = {tuple(row) for row in table(browser, query)}
    for row, line in zip(rows, printed, strict=True):
        assert (row["rho"], row["n"]) == (float(line["rho"]), int(line["n"]))
        rho = f"{row['rho']:.2f}".replace("-", "−")
        assert any({row.get("task", rho), str(row["n"]), rho} <= set(one) for one in of_page)


def test_a_field_is_taken_in_and_out_by_a_link(browser: Client) -> None:
    page = unescape(shown(browser, "by=task&task=t1"))
    # Taken out, what it was narrowed to goes with it.
    assert 'href="?" hx-get="?" aria-current="true">Task</a>' in page
    assert 'href="?task=t1&by=task,answer_length"' in page
