"""What is measured of items as slices, and the items that figures lead to."""

import json
import re
import time
from itertools import cycle

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from annotation.models import Diff, Item, Project, Resolution, Revision
from judging.models import Run
from judging.results import drilldown, item_features
from judging.results.counted import UnknownField
from judging.results.tables import blindspots
from tests.annotation.test_pace import give
from tests.builders import make_item, make_member, make_project, make_revision
from tests.judging import builders_decided
from tests.judging.builders_decided import CUT, make_audit, make_replied, scores
from tests.judging.builders_judging import make_items
from tests.judging.test_result_pages import lines

pytestmark = pytest.mark.django_db

DETECTED, EQUAL = scores(9, 5), scores(9, 9)
RUN, RESULTS = "/projects/fbi/runs/1/", "/projects/fbi/results/"
GOLD = "one two three four five six seven eight nine ten"
BEGINS, ENDS = GOLD.replace("one", "many"), GOLD.replace("ten", "many")


def keys(browser: Client, address: str) -> list[str]:
    page = browser.get(address).content.decode()
    return re.findall(r'/items/(item-\d+)/[?"]', page)


def links(browser: Client, path: str, words: str) -> list[str]:
    page = browser.get(RESULTS + path).content.decode().replace("&amp;", "&")
    return [one for one in re.findall(r'href="([^"]*#outcomes)"', page) if words in one]


def say(items: list[Item], perturbed: str) -> None:
    texts = {"prompt": "Count!", "gold": GOLD, "perturbed": perturbed}
    Revision.objects.filter(item__in=items).update(texts=texts)


@pytest.fixture
def items(project: Project) -> list[Item]:
    """Twenty with a change at the beginning, and twenty with one at the end."""
    found = make_items(project, 40)
    say(found[:20], BEGINS)
    say(found[20:], ENDS)
    return found


@pytest.fixture
def blind(project: Project, items: list[Item]) -> Run:
    """A run that misses every change at the end."""
    said = [*[DETECTED] * 20, *[EQUAL] * 20]
    return make_replied(project, "vanilla", zip(items, said, strict=True))


def test_changes_are_sliced_by_their_place(project: Project, blind: Run) -> None:
    rows = blindspots.tabulate(project, [blind], ["place", "changes"])
    found = {row["slice"]: row for row in rows}
    # All are changed in one place, which is no slice.
    assert list(found) == ["place=last-third", "place=first-third"]
    last = found["place=last-third"]
    assert (last["n"], last["rate"], last["rest"], last["blind"]) == (20, 1, 0, True)
    # Wilson for 20 of 20: 1 / (1 + 1.96^2 / 20).
    assert last["low"] == pytest.approx(0.8389, abs=1e-4)
    assert (last["field"], last["value"], last["second_field"]) == ("place", "last-third", None)


def test_diffs_that_nobody_looked_at_are_made_once(project: Project, blind: Run) -> None:
    for _ in range(2):
        blindspots.tabulate(project, [blind], ["edit_size"])
        assert Diff.objects.count() == 40


def test_each_run_is_measured_by_the_diffs_that_it_pins(
    project: Project, items: list[Item], blind: Run
) -> None:
    later = make_replied(project, "vanilla", zip(items, [DETECTED] * 40, strict=True))
    blindspots.tabulate(project, [blind], ["place"])  # makes the diffs of today
    Run.objects.filter(pk=blind.pk).update(diff_algorithm="words-1")
    for diff in list(Diff.objects.all()):
        Diff.objects.create(
            revision=diff.revision, algorithm="words-1", segments=diff.segments,
            edit_size=0.5, place=0.5,
        )  # fmt: skip
    runs = list(Run.objects.filter(pk__in=[blind.pk, later.pk]).order_by("number"))
    rows = blindspots.tabulate(project, runs, ["place", "edit_size"])
    slices: dict[int, set[str]] = {run.number: set() for run in runs}
    for row in rows:
        slices[row["run"]].add(row["slice"])
    # By its own diffs the first run has one bin of each, which is no slice.
    assert slices[blind.number] == set()
    assert "place=last-third" in slices[later.number]
    found = item_features.filter_by_bin(blind.outcomes.all(), project, "place", "middle-third")
    assert found.count() == 40
    assert not item_features.filter_by_bin(later.outcomes.all(), project, "place", "middle-third")


def test_items_without_a_value_stand_on_neither_side(project: Project, blind: Run) -> None:
    Item.objects.filter(key__in=[f"item-{n}" for n in range(1, 11)]).update(fields={})
    for key, size in (("item-1", "short"), ("item-2", "short"), ("item-40", "long")):
        Item.objects.filter(key=key).update(fields={"size": size})
    rows = {r["slice"]: r for r in blindspots.tabulate(project, [blind], ["size"])}
    # Against the two short ones alone, both detected.
    assert (rows["size=long"]["rate"], rows["size=long"]["rest"]) == (1, 0)


def test_what_is_neither_measured_nor_a_field_is_refused(project: Project) -> None:
    with pytest.raises(UnknownField):
        blindspots.check_fields(project, ["place", "colour"])


def test_lengths_are_cut_into_quarters() -> None:
    # Quarters end at 17.5, 25 and 32.5.
    found = item_features.assign_bins("length", [10, 20, 30, 40, None])
    assert list(found) == ["10-to-17", "18-to-25", "26-to-32", "33-to-40", ""]
    assert item_features.bin_title("length", "18-to-25") == "18 to 25 characters"


@pytest.mark.parametrize(
    ("name", "numbers", "slugs"),
    [
        ("edit_size", [0.009, 0.01, 0.2], ["under-1", "1-to-5", "over-20"]),
        ("place", [0, 0.5, 1], ["first-third", "middle-third", "last-third"]),
        ("changes", [1, 2, 5], ["1", "2-to-4", "over-4"]),
        ("detectability", [0, 0.5, 1], ["none", "some", "all"]),
        ("surgicality", [0, 0.5, 1], ["part", "part", "all"]),
    ],
)
def test_bins_begin_with_their_lower_end(
    name: str, numbers: list[float | None], slugs: list[str]
) -> None:
    assert list(item_features.assign_bins(name, numbers)) == slugs


def test_features_from_labels_are_means_over_the_labels_of_an_item(project: Project) -> None:
    ada, ben = make_member(project), make_member(project)
    checked, other = make_items(project, 2)
    for person, said in ((ada, ["explained", "collateral"]), (ben, ["explained"])):
        check = {str(number): one for number, one in enumerate(said)}
        give(person, item=checked, answers={"choice": "valid", "claim_check": check})
        give(person, "yes" if person == ada else "no", item=other, stage="blind", counted=False)
    names = ["surgicality", "detectability"]
    found = item_features.load_features(project, names, Revision.objects.none())
    # 1/2 by ada and 1 by ben; one of two saw the error.
    assert found == {"surgicality": {checked.pk: 3 / 4}, "detectability": {other.pk: 1 / 2}}


@pytest.mark.parametrize(
    ("part", "first", "n"),
    [
        ("place=last-third", "item-21", 20),
        ("changes=1", "item-1", 40),
        ("length=1-to-48", "", 0),
        ("length=49-to-60", "item-1", 40),
        ("size=long", "item-3", 1),
        ("category=number-errors", "item-1", 40),
        ("place=nowhere", "", 0),
        ("length=x-to-9", "", 0),
        ("nonsense", "", 0),
    ],
)
def test_outcomes_of_a_slice(
    project: Project, blind: Run, browser: Client, part: str, first: str, n: int
) -> None:
    Item.objects.filter(key="item-3").update(fields={"size": "long"})
    blindspots.tabulate(project, [blind], ["place"])
    found = keys(browser, f"{RUN}?slice={part}")
    assert (found[0] if found else "", len(found)) == (first, n)


def test_a_slice_leads_to_the_items_that_were_missed(blind: Run, browser: Client) -> None:
    [missed, *_] = links(browser, "blind-spots/?by=place&run=1", "result=undetected")
    assert keys(browser, missed) == [f"item-{n}" for n in range(21, 41)]


def test_slices_too_small_to_be_tested_are_said_to_prove_nothing(
    project: Project, browser: Client
) -> None:
    two = [*make_items(project, 1), *make_items(project, 1, category="spelling")]
    make_replied(project, "vanilla", [(two[0], scores(9, 9)), (two[1], scores(9, 5))])
    page = browser.get(f"{RESULTS}blind-spots/?by=category").content.decode()
    assert "run 1: not tested (no slice is large enough)" in page
    assert "<strong>No slice can be tested: no slice is large enough</strong>" in page
    assert "data-heat=" not in page


def test_the_page_says_how_many_slices_were_tested(blind: Run, browser: Client) -> None:
    page = browser.get(f"{RESULTS}blind-spots/?by=place").content.decode()
    assert "Slices tested: run 1: 2 values of other fields, of which 1 blind." in page
    assert "<strong>1 blind spot in 2 slices</strong>" in page
    assert "come closest" not in page
    assert "changed in the last third" in page
    # Those that are no blind spot are shown on demand.
    assert "changed in the first third" not in page
    page = browser.get(f"{RESULTS}blind-spots/?by=place&show=all").content.decode()
    assert "changed in the first third" in page


def test_that_there_is_no_blind_spot_is_said_first(
    project: Project, items: list[Item], browser: Client
) -> None:
    said = [*[DETECTED, EQUAL] * 20]
    make_replied(project, "vanilla", zip(items, said, strict=True))
    page = browser.get(f"{RESULTS}blind-spots/").content.decode()
    # Of places there are two, and of lengths; all else is of one kind.
    assert "<strong>No blind spot found in" in page
    closest = "of those tested, they come closest to one."
    assert f"None of the slices below was shown to be a blind spot; {closest}" in page
    assert (
        page.index("No blind spot found in")
        < page.index('id="figures-chart"')
        < page.index("<table")
    )


def test_a_run_of_which_no_slice_can_be_tested_is_not_said_to_be_without_blind_spots(
    project: Project, items: list[Item], browser: Client
) -> None:
    make_replied(project, "vanilla", zip(items, [DETECTED, EQUAL] * 20, strict=True))
    make_replied(project, "reference", [(item, DETECTED) for item in items])
    page = browser.get(f"{RESULTS}blind-spots/?by=place").content.decode()
    assert "slices of run 1; no slice of 1 other run can be tested</strong>" in page


def test_a_run_that_misses_nothing_has_no_slice_to_test(
    project: Project, items: list[Item], browser: Client
) -> None:
    make_replied(project, "vanilla", [(item, DETECTED) for item in items])
    page = browser.get(f"{RESULTS}blind-spots/?by=place").content.decode()
    assert "<strong>No slice can be tested: all comparable items are alike</strong>" in page
    assert (
        "run 1: not tested (all comparable items are alike), so these rows are no evidence" in page
    )


def test_all_that_is_known_takes_abilities_and_where_items_are_from(
    project: Project, items: list[Item], browser: Client
) -> None:
    kind = {"ability": "long-form", "category": "spelling", "source_ability": "long-form"}
    others = make_items(project, 20, **kind, origin="machine")
    Item.objects.filter(origin="").update(origin="people")
    every = [*[(item, EQUAL) for item in items], *[(item, DETECTED) for item in others]]
    make_replied(project, "vanilla", every)
    page = browser.get(f"{RESULTS}blind-spots/?show=all").content.decode()
    found = {line[0] for line in lines(page)}
    assert {"Factual", "Long form", "Number errors", "machine"} <= found


def test_a_slice_of_which_all_is_missing_says_why_it_has_no_rate(
    blind: Run, browser: Client
) -> None:
    ends = [f"item-{n}" for n in range(21, 41)]
    blind.outcomes.filter(item__key__in=ends).update(result="missing", cause="refused")
    page = browser.get(f"{RESULTS}blind-spots/?by=place&show=all").content.decode()
    last = next(line for line in lines(page) if "changed in the last third" in line[0])
    assert last[2:4] == ["— no items in the slice n 0", "0.0 % n 20"]


def test_a_field_of_the_items_may_have_the_name_of_a_measure(blind: Run, browser: Client) -> None:
    Item.objects.filter(key__in=[f"item-{n}" for n in range(21, 41)]).update(
        fields={"length": "<long>"}
    )
    Item.objects.filter(fields={}).update(fields={"length": "short"})
    page = browser.get(f"{RESULTS}blind-spots/?by=length&show=all").content.decode()
    assert "Length of the answer: short" in page
    assert "Length of the answer: &lt;long&gt;" in page


def test_a_field_may_have_an_equals_sign_in_its_name(
    project: Project, items: list[Item], browser: Client
) -> None:
    for number, item in enumerate(items):
        item.fields = {"a=b": "c=d" if number < 5 else "d", "a": "b=d" if number < 8 else "x"}
        item.save(update_fields=["fields"])
    make_replied(project, "vanilla", [(item, DETECTED) for item in items])
    assert len(keys(browser, f"{RUN}?slice=a%3Db%3Dc%3Dd")) == 5
    assert len(keys(browser, f"{RUN}?slice=a%3Dx")) == 32
    assert keys(browser, f"{RUN}?slice=b%3Dx") == []


@pytest.mark.parametrize("name", ["2024", "-5", "9" * 30])
def test_a_field_may_have_a_number_as_its_name(
    project: Project, items: list[Item], browser: Client, name: str
) -> None:
    Item.objects.filter(pk__in=[item.pk for item in items[:5]]).update(fields={name: "x"})
    Resolution.objects.filter(item__in=items[:3]).update(values={name: "x"})
    make_replied(project, "vanilla", [(item, DETECTED) for item in items])
    assert len(keys(browser, f"{RUN}?slice={name}%3Dx")) == 5
    assert len(keys(browser, f"{RUN}?kind={name}%3Ax")) == 3
    assert keys(browser, f"{RUN}?kind={name}%3Ay") == []
    listed = {"fields": 5, "answers": 3}
    for column, number in listed.items():
        found = browser.get("/projects/fbi/items/", {column: json.dumps({name: "x"})})
        assert len(set(re.findall(r"/items/(item-\d+)/", found.content.decode()))) == number


def test_an_address_of_many_equals_signs_asks_no_more_than_one_of_some(
    project: Project, items: list[Item], browser: Client
) -> None:
    make_replied(project, "vanilla", [(item, DETECTED) for item in items])
    asked = []
    for signs in (drilldown.MOST_EQUAL_SIGNS, 290):
        with CaptureQueriesContext(connection) as queries:
            assert keys(browser, f"{RUN}?slice=a{'%3D' * signs}") == []
        asked.append(len(queries))
    assert asked[1] <= asked[0]


# --- links of other pages -----------------------------------------------------------------------


@pytest.mark.parametrize(("counted", "listed"), [("yes", ["item-2"]), ("no", ["item-1"])])
def test_of_several_axes_the_item_s_own_is_listed(
    project: Project, browser: Client, counted: str, listed: list[str]
) -> None:
    run = make_replied(project, "vanilla", zip(make_items(project, 2), [EQUAL] * 2, strict=True))
    for own in run.outcomes.all():
        own.pk, own.main, own.axis = None, False, "coherence"
        own.save()
    Resolution.objects.filter(item__key="item-1").update(value="invalid")
    assert keys(browser, f"{RUN}?counted={counted}") == listed


def test_a_pair_of_runs_leads_to_the_items_they_disagree_on(
    project: Project, items: list[Item], blind: Run, browser: Client
) -> None:
    # The second run misses the first two, detects the last and did not parse the one before.
    said = [*[EQUAL] * 2, *[DETECTED] * 18, *[EQUAL] * 18, scores(9, None), DETECTED]
    make_replied(project, "vanilla", zip(items, said, strict=True))
    [only_a, *_] = links(browser, "compare/?view=pairs&run=1&run=2", "only_here=2")
    [only_b, *_] = links(browser, "compare/?view=pairs&run=1&run=2", "only_there=2")
    assert keys(browser, only_a) == ["item-1", "item-2"]
    assert keys(browser, only_b) == ["item-40"]
    assert keys(browser, f"{RUN}?differs_from=2") == ["item-1", "item-2", "item-40"]
    assert keys(browser, f"{RUN}?differs_from=7") == []
    [both, *_] = links(browser, "compare/?view=pairs&run=1&run=2", "in_both=2")
    assert keys(browser, both) == [f"item-{n}" for n in range(1, 41) if n != 39]


@pytest.mark.parametrize("number", ["-1e1000000", "1e49", "1.5", "0"])
def test_a_run_of_an_impossible_number_has_no_outcomes_at_once(
    blind: Run, browser: Client, number: str
) -> None:
    browser.get(RUN)
    started = time.process_time()
    assert keys(browser, f"{RUN}?differs_from={number}") == []
    assert time.process_time() - started < 1


def test_golds_at_an_end_of_the_scale_lead_to_their_items(
    project: Project, browser: Client
) -> None:
    said = [scores(1, 1), scores(10, 10), scores(10, 4), scores(5, 5)]
    make_replied(project, "vanilla", zip(make_items(project, 4), said, strict=True))
    page = "by-category/?view=ends"
    [bottom] = links(browser, page, "parsed&gold_to=1&")
    [top] = links(browser, page, "gold_from=10")
    [between] = links(browser, page, "gold_from=1.0009")
    found = [keys(browser, one) for one in (bottom, between, top)]
    assert found == [["item-1"], ["item-4"], ["item-2", "item-3"]]


def test_an_effect_of_the_order_leads_to_its_items(project: Project, browser: Client) -> None:
    effects = cycle(["first_twice", "second_twice", "half_tie", "G"])
    said = [builders_decided.verdicts(one) for one, _ in zip(effects, range(8), strict=False)]
    make_replied(project, "pairwise", zip(make_items(project, 8), said, strict=True))
    [second] = links(browser, "verdicts/?view=order&by=", "order_effect=second_twice")
    assert keys(browser, second) == ["item-2", "item-6"]


def test_samples_of_a_detector_that_disagree_lead_to_their_items(
    project: Project, browser: Client
) -> None:
    items = make_items(project, 3, "error", category="", ability="")
    error, none = (f"the model response contains {one} error." for one in ("an", "no"))
    said = [(error, error), (none, error), (none, CUT)]
    make_replied(project, "detect-1a", zip(items, said, strict=True), samples=2)
    [changed] = links(browser, "verdicts/?view=repeats&by=", "repeats=changing")
    assert keys(browser, changed) == ["item-2"]


@pytest.mark.parametrize("votes", [False, True])
def test_samples_that_disagree_lead_to_their_items(
    project: Project, browser: Client, votes: bool
) -> None:
    # The fourth has one sample that was read, and the fifth one that was not beside two that were.
    low, same, cut = (9, 5), (9, 9), (9, None)
    said = [(*low, *same, *same), same * 3, low * 3, (*cut, *low, *cut), (*cut, *low, *same)]
    replied = zip(make_items(project, 5), (scores(*one) for one in said), strict=True)
    own = builders_decided.own(votes=votes)
    make_replied(project, "vanilla", replied, samples=3, own=own)
    [changed] = links(browser, "verdicts/?view=repeats&by=", "repeats=changing")
    assert keys(browser, changed) == ["item-1", "item-5"]


def test_false_alarms_lead_to_what_was_made_from_the_ability(
    project: Project, browser: Client
) -> None:
    calm = {"category": "score-invariant", "ability": "score-invariant"}
    items = [
        *make_items(project, 2),
        *make_items(project, 2, "score-invariant", origin="paraphrase", **calm),
    ]
    make_replied(project, "vanilla", zip(items, cycle([DETECTED]), strict=False))
    # All are detected, so the rate and its n lead to the same items.
    [made_from, _] = links(browser, "sensitivity/", "source_ability=factual&items=invariant")
    [by_origin, _] = links(browser, "sensitivity/", "origin=paraphrase")
    [errors, _] = links(browser, "sensitivity/", "ability=factual&items=errors")
    assert keys(browser, made_from) == keys(browser, by_origin) == ["item-3", "item-4"]
    assert keys(browser, errors) == ["item-1", "item-2"]


def test_false_alarms_lead_to_no_duplicates(project: Project, browser: Client) -> None:
    calm = make_items(project, 2, "score-invariant", origin="paraphrase")
    again = make_items(project, 1, "score-invariant", origin="paraphrase", duplicate_of=calm[0])
    judged = [(item, DETECTED) for item in (*make_items(project, 1), *calm, *again)]
    make_replied(project, "vanilla", judged)
    found = links(browser, "sensitivity/", "items=invariant")
    assert {tuple(keys(browser, one)) for one in found} == {("item-1", "item-2")}


def test_explanations_of_an_audit_lead_to_what_they_explain(
    project: Project, blind: Run, browser: Client
) -> None:
    other = make_replied(project, "vanilla", [(one.item, EQUAL) for one in blind.outcomes.all()])
    make_audit(other, *[(True, "correct")] * 4)
    qualities = ("correct", "correct", "wrong", "")
    make_audit(blind, *((True, one) for one in qualities), (False, "correct"))
    [every, still_open, correct, wrong] = links(browser, "explanations/?view=audits&run=1", "right")
    assert keys(browser, every) == ["item-1", "item-2", "item-3", "item-4"]
    assert (keys(browser, still_open), keys(browser, wrong)) == (["item-4"], ["item-3"])
    assert keys(browser, correct) == ["item-1", "item-2"]
    of_wrong = links(browser, "explanations/?view=audits&run=1", "audited=wrong")
    assert [keys(browser, one) for one in of_wrong] == [["item-5"], ["item-5"]]


def test_an_error_is_as_detectable_as_people_saw_it_without_the_gold_answer() -> None:
    project = make_project("blind")
    seen, unseen = make_item(project, slots=0), make_item(project, slots=0)
    people = [make_member(project) for _ in range(3)]
    for item, said in ((seen, "yes yes no"), (unseen, "no no no")):
        for person, word in zip(people, said.split(), strict=True):
            give(person, word, item=item, stage="blind", counted=False)
    found = item_features.load_features(project, ["detectability"], Revision.objects.none())
    assert found["detectability"] == {seen.pk: pytest.approx(2 / 3), unseen.pk: 0}


def test_who_saw_former_texts_blind_counts_in_no_slice_of_the_current_ones() -> None:
    project = make_project("blind")
    item, [ada, ben] = make_item(project, slots=0), [make_member(project) for _ in range(2)]
    give(ada, "no", item=item, stage="blind", counted=False)
    make_revision(item, {"perturbed": "A spider has seven legs."}, author=ada)
    give(ben, "yes", item=item, stage="blind", counted=False)
    found = item_features.load_features(project, ["detectability"], Revision.objects.none())
    assert found["detectability"] == {item.pk: 1}
