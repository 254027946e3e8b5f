"""Synthetic replies that match the counts of study 000's tables 6 to 24 give back its rates."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

from annotation.items import taxonomy
from annotation.models import Item, Project
from judging import strategies
from judging.models import Run
from judging.results.tables import explanations, verdicts
from judging.results.tables import scores as results_scores
from judging.results.tables import undetected as results_undetected
from tests.judging import builders_decided, published_tables
from tests.judging.builders_decided import Replies, make_endpoint, make_replied, scores
from tests.judging.builders_judging import make_items
from tests.judging.published_tables import FOLDER, Printed

FILES = {path.stem: path for path in sorted(FOLDER.glob("000-*.csv"))}
NAMES = (
    "detected", "undetected", "found", "G", "P", "both_good", "both_bad", "mixed",
    "top", "top1", "top2", "below_top2",
)  # fmt: skip
COUNTED = ("000-scores", "000-verdicts", "000-bins", "000-explanations")
CONTRADICTION = "the counts give"
OVERFULL = "more than all"

Rows = list[Printed]
Saying = Callable[[Printed], Iterator[Replies]]


def counts(row: Printed) -> dict[str, int]:
    return {name: int(row[name]) for name in NAMES if row.get(name)}


def gives(value: Fraction, printed: str) -> bool:
    """Whether a value is printed so: half a unit of the last digit, rounded or cut."""
    unit = Fraction(1, 10 ** len(printed.partition(".")[2]))
    return -unit / 2 <= value - Fraction(printed) < unit


def of_table(path: Path) -> dict[tuple[str, str, str], Rows]:
    """The rows of each strategy and model of each table."""
    found: dict[tuple[str, str, str], Rows] = defaultdict(list)
    for row in published_tables.rows(path):
        found[row["table"], row["strategy"], row["model"]].append(row)
    return found


GROUPS = [
    pytest.param(name, rows, id="-".join(key))
    for name in COUNTED
    for key, rows in of_table(FOLDER / f"{name}.csv").items()
]


def test_the_tables_of_study_000_are_whole() -> None:
    every = [row for name in COUNTED for row in published_tables.rows(FILES[name])]
    # 22 categories and 4 abilities; table 18 is of three models, 17, 19 and 20 of two each.
    assert Counter(row["table"] for row in every) == {
        str(table): 26 * {18: 3, 17: 2, 19: 2, 20: 2}.get(table, 1) for table in range(6, 25)
    }
    known = taxonomy.load_shipped()
    abilities = {one.slug for one in known.abilities}
    for row in every:
        found = known.find(row["category"]) if row["category"] else None
        assert row["ability"] == found.ability if found else row["ability"] in abilities
        assert row["strategy"] in strategies.load_all()
    assert Counter(row["table"] for row in published_tables.rows(FILES["000-overview"])) == {
        "3": 55, "4": 54, "5": 16,
    }  # fmt: skip


def test_printed_rates_follow_from_the_counts_unless_a_row_says_why_not() -> None:
    for row in chain.from_iterable(rows for _, rows in _every()):
        follows = any(gives(rate, row["rate"]) for rate in possible(row))
        assert follows is not (CONTRADICTION in row["reason"]), row
        said = sum(counts(row).values()) - counts(row).get("found", 0)
        assert (said > int(row["total"])) is (OVERFULL in row["reason"]), row
        assert (Fraction(row["rate"]) > 1) is ("above 1" in row["reason"]), row


def test_abilities_are_the_sums_of_their_categories() -> None:
    for _, rows in _every():
        for whole in (row for row in rows if not row["category"]):
            parts = [r for r in rows if r["category"] and r["ability"] == whole["ability"]]
            assert sum(int(row["total"]) for row in parts) == int(whole["total"])
            for name, count in counts(whole).items():
                assert sum(counts(row)[name] for row in parts) == count, whole


def test_tables_3_to_5_are_the_rates_of_the_detailed_tables() -> None:
    """But for score-invariant items and scales from 1 to 5, of which no counts are printed."""
    every = [row for _, rows in _every() for row in rows if not row["category"]]
    rates = {
        (row["strategy"], row["model"], row["ability"]): row["rate"]
        for row in every
        if row["denominator"] != "explanations"
    }
    counted: Counter[str] = Counter()
    for row in published_tables.rows(FILES["000-overview"]):
        of = row["strategy"], row["model"], row["ability"]
        if row["ability"] != "score-invariant" and not row["strategy"].endswith("-5"):
            assert rates[of] == row["rate"]
            counted[row["table"]] += 1
    assert counted == {"3": 44, "4": 44, "5": 8}


def _every() -> Iterator[tuple[str, Rows]]:
    for name in COUNTED:
        yield from ((name, rows) for rows in of_table(FILES[name]).values())


def possible(row: Printed) -> list[Fraction]:
    """What the counts of a row can make of its rate, by the row's denominator."""
    total, said = int(row["total"]), counts(row)
    match row["denominator"]:
        case "total":
            return [Fraction(said.get("undetected", said.get("top", 0)), total)]
        case "parsed":
            return [Fraction(sum(said.values()) - said["G"], sum(said.values()))]
        case "bins":
            return [Fraction(said["top"], sum(said.values()))]
        case "less_failures":
            missing = total - said["detected"] - said["undetected"]
            # Of each missing item one output or both could not be read.
            e = range(missing, 2 * missing + 1)
            return [Fraction(said["undetected"], total - failures) for failures in e]
    if row["table"] == "21":
        return [Fraction(total - said["detected"] - said["found"], total)]
    return [Fraction(said["undetected"] - said["found"], total)]


# --- replies that match a row -------------------------------------------------------------------


def apart(row: Printed) -> Iterator[Replies]:
    """Scores of both answers: lower, equal, and unread ones, of which one or both are missing."""
    said, total = counts(row), int(row["total"])
    detected = min(said["detected"], total - said["undetected"])
    missing = total - detected - said["undetected"]
    both = _failures(row, missing) - missing
    yield from repeat(scores(3, 2), detected)
    yield from repeat(scores(3, 3), said["undetected"])
    yield from repeat(scores(None, None), both)
    yield from repeat(scores(3, None), missing - both)


def _failures(row: Printed, missing: int) -> int:
    if row["denominator"] != "less_failures":
        return missing
    every = range(missing, 2 * missing + 1)
    fits = (e for e, rate in zip(every, possible(row), strict=True) if gives(rate, row["rate"]))
    return next(fits, missing)


def pairs(row: Printed) -> Iterator[Replies]:
    said = counts(row)
    for name, number in said.items():
        meaning = "first_twice" if name == "mixed" else name
        yield from repeat(builders_decided.verdicts(meaning), number)
    yield from repeat(("", ""), int(row["total"]) - sum(said.values()))


def bins(row: Printed) -> Iterator[Replies]:
    said, top = counts(row), int(strategies.load_all()[row["strategy"]].top or 0)
    # Where the study has three bins, the last is all below the second.
    steps = {"top": 0, "top1": 1, "top2": 2, "below_top2": 3}
    for name, number in said.items():
        yield from repeat(scores(top - steps[name]), number)
    yield from repeat(scores(None), int(row["total"]) - sum(said.values()))


def flags(row: Printed) -> Iterator[Replies]:
    """Of the equal ones so many explanations that report an error."""
    said = counts(row)
    yield from repeat(('{"flag": true}',), said["found"])
    yield from repeat(('{"flag": false}',), said["undetected"] - said["found"])


SAYING: dict[str, Saying] = {
    "000-scores": apart, "000-verdicts": pairs, "000-bins": bins, "000-explanations": apart,
}  # fmt: skip


def answered(
    project: Project, rows: Sequence[Printed], say: Saying
) -> Iterator[tuple[Item, Replies]]:
    held: dict[str, list[Item]] = defaultdict(list)
    for item in project.items.order_by("position"):
        held[item.category].append(item)
    for row in rows:
        if row["category"]:
            yield from zip(held[row["category"]], say(row), strict=True)


def items(project: Project, rows: Sequence[Printed]) -> None:
    for row in rows:
        if row["category"]:
            where = {"category": row["category"], "ability": row["ability"]}
            make_items(project, int(row["total"]), **where)


def checked(base: Run, rows: Sequence[Printed]) -> Run:
    """A check of the explanations of the items that scored equal."""
    equal = set(base.outcomes.filter(detail="equal").values_list("item", flat=True))
    held: dict[str, list[Item]] = defaultdict(list)
    for item in base.project.items.filter(pk__in=equal).order_by("position"):
        held[item.category].append(item)
    said = [
        pair
        for row in rows
        if row["category"]
        for pair in zip(held[row["category"]], flags(row), strict=True)
    ]
    return make_replied(base.project, "explanation-check", said, sources=[base], base=base)


def by_group(made: Sequence[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["ability"], row.get("category", "")): row for row in made}


def found(run: Run, table: Callable[..., Any]) -> dict[tuple[str, str], dict[str, Any]]:
    by_ability = by_group(table([run], ("ability",)))
    return by_ability | by_group(table([run], ("ability", "category")))


def undetected(runs: Sequence[Run], by: Sequence[str]) -> list[dict[str, Any]]:
    return results_undetected.tabulate_undetected(runs, by)


TABLES: dict[str, Callable[..., Any]] = {
    "000-scores": undetected,
    "000-verdicts": verdicts.tabulate_verdicts,
    "000-bins": results_scores.tabulate_scores,
    "000-explanations": explanations.tabulate,
}


def ours(made: dict[str, Any], row: Printed, failures: int) -> Fraction:
    """Our counts over the row's denominator."""
    total, parsed = made["total"], made["parsed"]
    match row["denominator"]:
        case "total":
            return Fraction(made["undetected"] if "undetected" in made else made["top"], total)
        case "parsed":
            return Fraction(parsed - made["G"], parsed)
        case "bins":
            return Fraction(made["top"], parsed)
        case "less_failures":
            return Fraction(made["undetected"], total - failures)
    # Table 21 counts the missing as not noticed, as the highest bound does.
    missing = made["missing"] if row["table"] == "21" else 0
    return Fraction(made["unnoticed"] + missing, total)


def failures(run: Run, row: Printed) -> int:
    """Outputs over both answers that could not be read."""
    group = {name: row[name] for name in ("ability", "category") if row[name]}
    values = run.outcomes.filter(result="missing", **group).values_list("values", flat=True)
    return sum(list(one.values()).count(None) for one in values)


@pytest.mark.django_db
@pytest.mark.parametrize(("name", "rows"), GROUPS)
def test_replies_that_match_the_counts_give_back_the_printed_rates(
    project: Project, name: str, rows: Rows
) -> None:
    items(project, rows)
    said = answered(project, rows, SAYING[name])
    run = make_replied(project, rows[0]["strategy"], said, endpoint=make_endpoint(rows[0]["model"]))
    if name == "000-explanations":
        checked(run, rows)
    made = found(run, TABLES[name])
    for row in rows:
        mine = made[row["ability"], row["category"]]
        assert mine["total"] == int(row["total"])
        # Where one category has more than all of its items, it and its ability lose one.
        if OVERFULL not in row["reason"]:
            known = {count: mine[count] for count in counts(row) if count in mine}
            assert known.items() <= counts(row).items(), row
        if CONTRADICTION not in row["reason"]:
            assert gives(ours(mine, row, failures(run, row)), row["rate"]), row
