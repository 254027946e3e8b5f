"""What a generator draws for each item: quotas, values that scripts find, and shares as text."""

import math
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.strategies import Strategy, draws, load_all
from judging.strategies.definitions import read_draws
from judging.strategies.draws import DrawnSource
from judging.strategies.schema import StrategyError


def drawing(shares: Mapping[str, float], least: int = 1, most: int = 1, **values: str) -> Strategy:
    """A generator with one draw; `values` are scripts by option."""
    options = [
        {"name": name, "share": share}
        | ({"value": values[name], "text": "{{value}}"} if name in values else {})
        for name, share in shares.items()
    ]
    entry = {"name": "kind", "options": options, "at_least": least, "at_most": most}
    return replace(load_all()["generate-entity"], draws=read_draws([entry], "test"))


def sources(number: int, **texts: Any) -> list[DrawnSource]:
    return [DrawnSource(f"item-{place}", texts) for place in range(number)]


def count(found: Mapping[str, draws.Drawn]) -> dict[str, int]:
    return dict(Counter(name for drawn in found.values() for name in drawn["kind"]))


def test_of_equal_shares_each_gets_a_third_and_the_seed_says_of_which_items() -> None:
    strategy = drawing({"a": 1, "b": 1, "c": 1})
    first = draws.draw_for_items(strategy, sources(100), 1, {})
    assert count(first) == {"a": 34, "b": 33, "c": 33}
    assert {len(drawn["kind"]) for drawn in first.values()} == {1}
    assert draws.draw_for_items(strategy, sources(100)[::-1], 1, {}) == first
    second = draws.draw_for_items(strategy, sources(100), 2, {})
    same = sum(first[key] == second[key] for key in first)
    assert count(second) == count(first)
    assert 10 < same < 60


@given(st.data())
def test_quotas_are_exact_and_each_item_gets_as_many_as_it_should(data: Any) -> None:
    number, size = data.draw(st.integers(1, 30)), data.draw(st.integers(2, 6))
    most = data.draw(st.integers(2, size))
    least = data.draw(st.integers(1, most))
    shares = data.draw(st.lists(st.integers(0, 100), min_size=size, max_size=size))
    if not 100 * least <= sum(shares) <= 100 * most:
        return
    strategy = drawing({f"o{place}": share for place, share in enumerate(shares)}, least, most)
    seed = data.draw(st.integers(0, 5))
    found = draws.draw_for_items(strategy, sources(number), seed, {})
    assert all(least <= len(drawn["kind"]) <= most for drawn in found.values())
    quotas = {f"o{n}": math.floor(number * s / 100 + 0.5) for n, s in enumerate(shares)}
    # Rounded quotas may come to less or more than all items together can have.
    if least * number <= sum(quotas.values()) <= most * number:
        assert count(found) == {name: n for name, n in quotas.items() if n}


def test_an_option_takes_its_quota_among_the_items_that_have_what_it_needs() -> None:
    strategy = drawing({"date": 1, "other": 2}, date="date-before-year")
    some = sources(30)
    some[:12] = [DrawnSource(one.key, {"context": "It began in 1914."}) for one in some[:12]]
    found = draws.draw_for_items(strategy, some, 1, {})
    assert count(found) == {"date": 10, "other": 20}
    dated = {key: drawn["kind"]["date"] for key, drawn in found.items() if "date" in drawn["kind"]}
    assert dated.keys() <= {one.key for one in some[:12]}
    assert {value[:5] for value in dated.values()} == {"1913-"}
    assert len({*dated.values()}) > 5
    few = draws.draw_for_items(strategy, some[9:], 1, {})
    assert count(few) == {"date": 3, "other": 18}


def test_items_that_can_get_nothing_are_told() -> None:
    strategy = drawing({"date": 1}, date="date-before-year")
    with pytest.raises(ValueError, match="3 of the items, such as item-0, cannot get 1 of kind"):
        draws.draw_for_items(strategy, sources(3, prompt="Who was it?"), 1, {})


@pytest.mark.parametrize(
    ("shares", "least", "most"),
    [
        # Half of the items can get only c, and no other item has one to spare.
        ({"a": 100, "b": 100, "c": 1}, 1, 3),
        # Half of the items can get nothing, and the others are full.
        ({"a": 60, "b": 60, "c": 60}, 1, 2),
    ],
)
def test_thousands_of_items_that_can_get_little_take_no_minutes(
    shares: Mapping[str, float], least: int, most: int
) -> None:
    """The time was the square of the number of items: a minute, in which nobody can label."""
    scripts = dict.fromkeys("ab" if shares["c"] == 1 else "abc", "numbers-of-problem")
    strategy = drawing(shares, least, most, **scripts)
    some = [
        DrawnSource(f"item-{place}", {"prompt": "4 spiders" if place % 2 else "Spiders"})
        for place in range(6_000)
    ]
    begin = time.process_time()
    with suppress(ValueError):  # in the second case, half of the items get none
        draws.draw_for_items(strategy, some, 1, {})
    assert time.process_time() - begin < 4


def test_what_is_kept_stays_and_the_quotas_are_for_the_others() -> None:
    strategy = drawing({"a": 50, "b": 50})
    kept = {f"item-{place}": {"kind": {"b": ""}} for place in range(10)}
    found = draws.draw_for_items(strategy, sources(30), 1, kept)
    assert {key: found[key] for key in kept} == kept
    assert count(found) == {"a": 10, "b": 20}


@pytest.mark.parametrize(
    ("text", "sorts"),
    [
        ("A train runs 60 km in 2 hours.", "integers"),
        ("1,200 at 3.50 each", "integers and numbers with 2 decimal places"),
        ("2.5 h, 1/2 of it, 7 left", "integers, numbers with 1 decimal place and fractions"),
        ("No number at all", None),
    ],
)
def test_sorts_of_numbers_are_found(text: str, sorts: str | None) -> None:
    assert draws.find_number_sorts(text) == sorts


@pytest.mark.parametrize(
    ("text", "year"),
    [("In 1066 it began.", 1065), ("It was 1609 was it?", 1608), ("the 1998 World Cup", 1997)],
)
def test_a_year_gives_a_day_of_the_year_before(text: str, year: int) -> None:
    found = draws.VALUES["date-before-year"](DrawnSource("one", {"prompt": text}), 1)
    assert found is not None
    assert found.startswith(f"{year}-")


def test_a_share_that_too_few_items_can_have_is_told() -> None:
    strategy = drawing({"date": 3, "other": 1}, date="date-before-year")
    some = sources(12)
    some[:3] = [DrawnSource(one.key, {"context": "It began in 1914."}) for one in some[:3]]
    found = [*draws.draw_for_items(strategy, some, 1, {}).values()]
    assert list(draws.describe_counts(strategy, found)) == [
        "kind: date (3 items), other (9 items)",
        "kind: date for 3 items in place of 9, since no other item has what it needs",
    ]
    able = [*draws.draw_for_items(strategy, some[:3], 1, {}).values()]
    assert len(list(draws.describe_counts(strategy, able))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "$1,914 in all",
        "It costs 1914.50",
        "19145 people",
        "2914",
        "1300 Earths",
        "1800 ships",
        "1200 people",
        "1900 km",
    ],
)
def test_what_is_no_year_gives_no_date(text: str) -> None:
    assert draws.VALUES["date-before-year"](DrawnSource("one", {"prompt": text}), 1) is None


def test_shares_are_read_as_they_are_written() -> None:
    text = "errors: 3=50, 4=50\n\n final_answer : stays"
    shares = draws.parse_shares(text)
    assert shares == {"errors": {"3": 50, "4": 50}, "final_answer": {"stays": 100}}
    strategy = draws.set_shares(load_all()["generate-spelling"], {"errors": shares["errors"]})
    assert draws.format_shares(strategy.draws[0]) == "errors: 3=50, 4=50"


def test_shares_that_are_mere_proportions_are_shown_in_percent() -> None:
    [draw] = drawing({"3": 1, "4": 3, "5": 0}).draws
    assert draws.describe(draw) == (
        "Drawn for each item: one of kind: 3 (25 %), 4 (75 %) (a run can also draw 5)."
    )
    [several] = drawing({"a": 100, "b": 60.5, "c": 50}, 2, 3).draws
    assert [share for _, share in several.percentages] == [100, 60.5, 50]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("errors 3=50", "is not a line of shares"),
        ("errors: 3=fifty", "is not a line of shares"),
        ("errors: 3\nerrors: 4", "two lines for errors"),
        ("errors: 3=50, 3=20", "errors has 3 twice"),
    ],
)
def test_lines_that_cannot_be_read_are_named(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        draws.parse_shares(text)


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ({"words": {"3": 50}}, "does not draw 'words'. It draws errors."),
        ({"errors": {"70": 50}}, "no option '70' of errors. Choose from 1, 2, "),
        ({"errors": {"3": 0}}, "Give an option of errors a share above 0."),
        ({"errors": {"3": float("nan")}}, "Give 3 of errors a share of 0 to 1,000,000."),
        ({"errors": {"3": 1e308, "4": 1e308}}, "Give 3 of errors a share of 0 to 1,000,000."),
    ],
)
def test_shares_that_fit_no_draw_are_refused(shares: draws.Shares, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        draws.set_shares(load_all()["generate-spelling"], shares)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"name": "question"}, "not the name of a placeholder"),
        ({"at_least": 2, "at_most": 4}, "at_most"),
        ({"options": [{"name": "a", "share": 1}, {"name": "a"}]}, "its own name"),
        ({"options": [{"name": "a", "share": 1, "text": "{{value}}"}]}, "goes with the key value"),
        ({"options": [{"name": "a", "share": 1, "value": "moon", "text": "{{value}}"}]}, "use one"),
        ({"options": [{"name": "a"}]}, "a share above 0"),
        ({"options": [{"name": "a", "share": 10**400}]}, "write a percentage"),
        ({"options": [{"name": "a", "share": math.nan}]}, "write a percentage"),
        ({"options": [{"name": "a", "share": 101}, {"name": "b", "share": 50}], "at_most": 2},
         "at most 100"),
        ({"options": [{"name": "a", "share": 40}, {"name": "b", "share": 50}], "at_most": 2},
         "add up to 100 to 200; they add up to 90"),
    ],
)  # fmt: skip
def test_draws_from_which_no_quotas_follow_are_refused(entry: dict[str, Any], said: str) -> None:
    usual = {"name": "kind", "options": [{"name": "a", "share": 1}]}
    with pytest.raises(StrategyError, match=said):
        read_draws([usual | entry], "test")


def test_what_was_drawn_is_read_from_fields_with_the_values_that_are_known() -> None:
    strategy = drawing({"date": 50, "other": 50}, date="date-before-year")
    drawn = {"kind": {"date": "1870-05-01"}}
    assert draws.read_fields(strategy, {"drawn_kind": "date"}, drawn) == drawn
    assert draws.read_fields(strategy, {"drawn_kind": "date"}) == {}
    assert draws.read_fields(strategy, {"drawn_kind": "other"}) == {"kind": {"other": ""}}
    # An option that the strategy no longer has cannot be kept.
    assert draws.read_fields(strategy, {"drawn_kind": "x"}, {"kind": {"x": ""}}) == {}
    assert draws.read_fields(strategy, {}, drawn) == {}


def test_names_are_in_the_order_of_the_options_whatever_order_a_database_keeps() -> None:
    strategy = drawing({"number-sorts": 70, "phrase": 70, "mention": 60}, 2, 2)
    drawn = {"kind": {"phrase": "", "number-sorts": "integers"}}
    assert draws.build_fields(strategy, drawn) == {"drawn_kind": ["number-sorts", "phrase"]}
    assert draws.describe_drawn(strategy, drawn) == "kind: number-sorts (integers), phrase"
    assert draws.describe_drawn(strategy, None) == ""
