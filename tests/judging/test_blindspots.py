"""Slices against the rest, on outcomes whose blind spots are known."""

import pytest
from django.db.models import F
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from annotation.models import Item, Project, Revision
from judging.models import Run
from judging.results import item_features
from judging.results.counted import UnknownField
from judging.results.figures import TableRequest
from judging.results.tables import blindspots, methods
from tests.judging.builders_decided import make_replied, scores
from tests.judging.builders_judging import make_items
from tests.judging.test_result_pages import keys, lines, links, shown

pytestmark = pytest.mark.django_db

DETECTED, EQUAL = scores(9, 5), scores(9, 9)


def make_blind(project: Project, items: list[Item]) -> Run:
    """A run that misses what is long and nothing else, nor of score-invariant items."""
    said = [EQUAL if one.fields.get("size") == "long" else DETECTED for one in items]
    calm = make_items(project, 3, "score-invariant", fields={"size": "short"})
    said += [EQUAL] * 3
    return make_replied(project, "vanilla", zip([*items, *calm], said, strict=True))


@pytest.fixture
def items(project: Project) -> list[Item]:
    """Twenty long and twenty short ones in each of two categories, and four of a third."""
    units = {"category": "incorrect-units", "ability": "reasoning"}
    return [
        *make_items(project, 20, fields={"size": "long", "page": 1}),
        *make_items(project, 20, fields={"size": "short", "page": 2}),
        *make_items(project, 20, fields={"size": "long", "page": 1}, **units),
        *make_items(project, 20, fields={"size": "short", "page": 2}, **units),
        *make_items(project, 4, category="spelling", ability="long-form", fields={}),
    ]


def test_a_slice_that_is_missed_more_than_the_rest_is_blind(
    project: Project, items: list[Item]
) -> None:
    rows = blindspots.tabulate(project, [make_blind(project, items)], ["size"])
    found = {row["slice"]: row for row in rows}
    assert list(found) == ["size=long", "size=short"]
    long, short = rows
    assert (long["total"], long["missing"], long["n"], long["clusters"]) == (84, 0, 40, 40)
    # The third category has no long ones, so it has no say in the difference.
    assert (long["rate"], long["rest"], long["difference"]) == (1, 0, 1)
    # The four of the third category have no size, and stand on neither side.
    assert (long["n"], long["rest_n"]) == (40, 40)
    assert long["q"] < 0.05
    assert (long["blind"], short["blind"], long["tests"]) == (True, False, 2)
    assert short["p"] == pytest.approx(1)


def test_small_slices_have_no_p_and_count_as_no_test(project: Project, items: list[Item]) -> None:
    rows = blindspots.tabulate(project, [make_blind(project, items)], ["category"])
    (small,) = (row for row in rows if row["slice"] == "category=spelling")
    assert (small["n"], small["p"], small["q"], small["blind"]) == (4, None, None, None)
    assert small["reason"] == "under 20 items"
    # Two categories and their two abilities.
    assert {row["tests"] for row in rows} == {4}
    assert rows[-1] is small


def test_the_q_of_a_category_is_the_same_whatever_else_is_asked_for(
    project: Project, items: list[Item]
) -> None:
    said = [EQUAL if n % 40 < (20, 11)[n // 40 % 2] else DETECTED for n in range(len(items))]
    run = make_replied(project, "vanilla", zip(items, said, strict=True))
    found = []
    for by in (["category"], ["category", "size", "page"], ["ability", "category"]):
        rows = blindspots.tabulate(project, [run], by)
        [row] = [row for row in rows if row["slice"] == "category=number-errors"]
        found.append((row["p"], row["q"], row["family"], row["tests"]))
    assert len(set(found)) == 1
    assert found[0][2:] == ("groups", 4)


def test_the_p_of_a_slice_is_the_same_whatever_else_is_asked_for(
    project: Project, items: list[Item]
) -> None:
    said = [EQUAL if n % 40 in (1, 2, 3, 22, 25, 28, 31) else DETECTED for n in range(len(items))]
    run = make_replied(project, "vanilla", zip(items, said, strict=True))
    found = []
    # With `page`, which has the same values, and in other orders.
    for by in (["size"], ["category", "size"], ["size", "category"], ["size", "page", "category"]):
        rows = blindspots.tabulate(project, [run], by)
        found.append({row["slice"]: row["p"] for row in rows if row["field"] == "size"})
    for name in ("size=long", "size=short"):
        assert len({one[name] for one in found}) == 1
        assert 0.05 < found[0][name] < 0.98


def test_pairs_are_a_family_of_their_own_and_so_are_single_values(
    project: Project, items: list[Item]
) -> None:
    run = make_blind(project, items)
    rows = blindspots.tabulate(project, [run], ["category", "size"])
    told = {(row["family"], row["tests"]): 0 for row in rows}
    for row in rows:
        told[row["family"], row["tests"]] += row["p"] is not None
    assert told == {("groups", 4): 2, ("values", 2): 2, ("pairs", 4): 4}


def test_a_field_that_says_what_another_one_does_has_no_slices(
    project: Project, items: list[Item]
) -> None:
    run = make_blind(project, items)
    run.outcomes.update(source_ability=F("ability"))
    rows = blindspots.tabulate(project, [run], ["ability", "source_ability", "size"])
    assert {row["field"] for row in rows} == {"ability", "size"}
    for by in (["source_ability"], ["source_ability", "category"]):
        rows = blindspots.tabulate(project, [run], by)
        assert "source_ability" in {row["field"] for row in rows}
        assert {row["tests"] for row in rows if row["field"] == "category"} <= {4}


def test_a_small_difference_is_no_blind_spot_however_sure(project: Project) -> None:
    items = [
        *make_items(project, 200, fields={"size": "long"}),
        *make_items(project, 200, fields={"size": "short"}),
    ]
    said = [*[EQUAL] * 14, *[DETECTED] * 386]
    run = make_replied(project, "vanilla", zip(items, said, strict=True))
    long, _ = blindspots.tabulate(project, [run], ["size"])
    assert (long["difference"], long["blind"]) == (pytest.approx(0.07), False)
    assert long["q"] < 0.05


def test_pairs_of_fields_are_slices_too(project: Project, items: list[Item]) -> None:
    run = make_blind(project, items)
    names = {row["slice"] for row in blindspots.tabulate(project, [run], ["category", "size"])}
    assert "category=incorrect-units, size=long" in names
    assert "category=spelling, size=long" not in names
    assert len(names) == 3 + 2 + 4


def test_an_ability_and_its_categories_make_no_pairs(project: Project, items: list[Item]) -> None:
    run = make_blind(project, items)
    rows = blindspots.tabulate(project, [run], ["ability", "category"])
    assert not [row for row in rows if "," in row["slice"]]


def test_the_same_figures_come_again(project: Project, items: list[Item]) -> None:
    run = make_blind(project, items)
    made = [blindspots.tabulate(project, [run], ["page", "category"]) for _ in range(2)]
    assert made[0] == made[1]


def test_a_field_that_no_item_has_is_refused(project: Project, items: list[Item]) -> None:
    with pytest.raises(UnknownField, match="grouped by colour"):
        blindspots.tabulate(project, [], ["colour"])


def test_more_pairs_of_values_than_a_worker_compares_in_minutes_are_refused(
    project: Project, items: list[Item], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_blind(project, items)
    monkeypatch.setattr(blindspots, "PAIR_LIMIT", 3)
    with pytest.raises(UnknownField, match=r"have 4 pairs of values.*choose fewer fields"):
        blindspots.tabulate(project, [run], ["size", "page"])


def make_identical(items: list[Item]) -> None:
    for revision in Revision.objects.filter(item__in=items):
        texts = {**revision.texts, "perturbed": revision.texts["gold"]}
        Revision.objects.filter(pk=revision.pk).update(texts=texts)


def test_identical_pairs_are_left_out_of_slices_and_rest_and_told(
    project: Project, items: list[Item]
) -> None:
    run = make_blind(project, items)
    # Of the first category two long ones and three short ones; a score-invariant one is none.
    make_identical([*items[:2], *items[20:23], *Item.objects.filter(cluster="cluster-85")])
    long, short = blindspots.tabulate(project, [run], ["size"])
    assert (long["slice"], long["n"], long["rest_n"]) == ("size=long", 38, 37)
    assert (short["n"], short["rest_n"]) == (37, 38)
    assert (long["total"], long["identical"]) == (79, 5)


def test_the_page_says_how_many_pairs_are_identical_and_its_links_leave_them_out(
    project: Project, items: list[Item], browser: Client
) -> None:
    make_blind(project, items)
    address = "blind-spots/?by=size&show=all"
    assert "identical" not in shown(browser, address)
    make_identical(items[:2])
    page = shown(browser, address)
    assert "are identical are left out of the slices and of the other items (run 1: 2)." in page
    [missed] = links(page, "slice=size%3Dlong&identical=no&result=undetected")
    assert set(keys(browser, missed)) == {f"item-{n}" for n in (*range(3, 21), *range(41, 61))}
    assert keys(browser, "/projects/fbi/runs/1/?identical=yes") == ["item-1", "item-2"]


def test_the_page_offers_the_fields_of_the_items_for_slices(
    project: Project, items: list[Item], browser: Client
) -> None:
    make_blind(project, items)
    Item.objects.filter(fields__size="long").update(fields={"drawn_errors": "1", "a,b": "x"})
    Item.objects.filter(fields__size="short").update(fields={"drawn_errors": "4", "a,b": "y"})
    page = shown(browser, "blind-spots/")
    assert "Drawn errors" in page
    # A comma separates the names in an address.
    assert "A,b" not in page
    assert '?by=drawn_errors"' in page
    page = shown(browser, "blind-spots/?by=drawn_errors&show=all")
    assert {line[0] for line in lines(page)} == {"Drawn errors: 1", "Drawn errors: 4"}
    [missed] = links(page, "slice=drawn_errors%3D1&result=undetected")
    assert len(keys(browser, missed)) == 40


def test_the_page_says_how_many_items_a_difference_compares_if_not_all(
    project: Project, browser: Client
) -> None:
    both = [*make_items(project, 12, fields={"size": "long"})]
    both += make_items(project, 12, fields={"size": "short"})
    # Of these categories all are long, or all are short.
    alone = make_items(
        project, 8, category="spelling", ability="long-form", fields={"size": "long"}
    )
    alone += make_items(project, 3, category="incorrect-units", fields={"size": "short"})
    said = [DETECTED, EQUAL] * 12 + [DETECTED] * 11
    run = make_replied(project, "vanilla", zip([*both, *alone], said, strict=True))
    [long, _] = blindspots.tabulate(project, [run], ["size"])
    assert (long["n"], long["compared"], long["rest_n"], long["rest_compared"]) == (20, 12, 15, 12)
    assert "12 of 20 items with 12 of 15 others" in shown(browser, "blind-spots/?by=size&show=all")
    assert " others" not in shown(browser, "blind-spots/?by=category&show=all")


def test_any_number_of_runs_are_two_queries(
    project: Project, items: list[Item], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(2):
        make_blind(project, items)
    runs = list(Run.objects.for_results())
    with django_assert_num_queries(2):
        blindspots.tabulate(project, runs, ["category", "ability"])


def test_categories_that_are_too_small_to_test_are_named(project: Project, browser: Client) -> None:
    easy = make_items(project, 40, category="spelling", ability="long-form")
    hard = make_items(project, 6, category="number-errors")
    said = [scores(9, 5)] * 40 + [scores(9, 9)] * 6
    make_replied(project, "vanilla", zip([*easy, *hard], said, strict=True))
    page = shown(browser, "blind-spots/?by=category")
    assert "Too few items to test, but missed more often" in page
    assert "than the rest: Number errors (100.0 % of 6)." in page


def test_a_slice_of_few_items_does_not_come_closest_to_a_blind_spot(
    project: Project, browser: Client
) -> None:
    sizes = ["long"] * 20 + ["short"] * 20 + ["odd"]
    items = [make_items(project, 1, fields={"size": size})[0] for size in sizes]
    said = [*[EQUAL] * 11, *[DETECTED] * 9, *[EQUAL] * 9, *[DETECTED] * 11, EQUAL]
    make_replied(project, "vanilla", zip(items, said, strict=True))
    page = shown(browser, "blind-spots/?by=size")
    # The odd one is missed in 1 of 1 items, the long ones in 11 of 20.
    assert [line[0] for line in lines(page)] == ["Size: long"]
    assert "of those tested, they come closest to one." in page
    assert "not tested" not in page[page.index("<tbody") :]
    assert "Size: odd" in shown(browser, "blind-spots/?by=size&show=all")


def test_of_a_run_with_untested_slices_alone_these_are_said_to_prove_nothing(
    project: Project, items: list[Item], browser: Client
) -> None:
    make_replied(project, "vanilla", [(one, EQUAL) for one in items[:19] + items[20:22]])
    make_replied(project, "vanilla", zip(items, [EQUAL, DETECTED] * 42, strict=True))
    page = shown(browser, "blind-spots/?by=size")
    assert "Rows marked “not tested” are not evidence for or against a blind spot." in page


def test_the_correction_is_promised_within_a_family_of_a_run(
    project: Project, items: list[Item], browser: Client
) -> None:
    make_blind(project, items)
    page = shown(browser, "blind-spots/?by=size")
    assert "within one family of one run, not over all of them together." in page
    assert "Of several families or runs together it promises nothing." in page
    assert "one in twenty of the blind spots" not in page
    assert (
        "within one family of one run, not over"
        in methods.write_methods(project, list(project.runs.for_results())).text
    )


def test_the_fields_of_all_items_are_read_once_to_find_that_they_shadow_nothing(
    project: Project, items: list[Item], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        assert item_features.shadowed_features(project, [*item_features.FEATURES]) == set()
    asked = TableRequest(project, blindspots.BLINDSPOTS, [], [*item_features.FEATURES])
    with django_assert_num_queries(1):
        asked.check_length_of_groups()
    Item.objects.filter(pk=items[0].pk).update(fields={"length": "long"})
    found = item_features.shadowed_features(project, [*item_features.FEATURES])
    assert found == {"length"}
