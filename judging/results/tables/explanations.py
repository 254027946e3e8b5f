"""Which errors are named only in explanations? The table `explanations` (study 000, section 5.3,
figure 2 and tables 21 to 24), and the page Explanations."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from judging.models import Outcome, Run
from judging.results import cells, columns, counted, lines
from judging.results.cells import Cell, Row
from judging.results.counted import PARSED_SQL, GroupSums, one_if
from judging.results.frames import EXPLANATION_FRAME
from judging.results.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    StudyFigure,
    TableQuery,
)
from judging.results.tables import audits
from stats import corrected
from stats.estimates import Estimate
from stats.rates import clustered_wilson

EQUAL_SQL = f"{PARSED_SQL} AND o.detail = 'equal'"
# Checks of a run's explanations of perturbed answers and of gold answers, with their SQL names.
SIDES = {"perturbed": "f", "gold": "g"}

# The last check of each run, by run id.
Checks = Mapping[int, Run]


def tabulate(runs: Iterable[Run], by: Sequence[str]) -> list[dict[str, Any]]:
    """The table `explanations`: runs whose explanations were checked, one row per run and group.

    Of the `equal` items, `found` are those whose explanation nevertheless reports an error; an
    unparsed check counts as not found. `rate_after` = (undetected - found) / parsed is the
    undetected rate after that credit, and `unnoticed` is its numerator; both are None if only some
    of the explanations were checked. `false_credit` is the share of the checked explanations of
    gold answers that report an error, and `rate_corrected` is `rate_after` without the credit that
    explanations which name no error get just as often (`corrected.correct_after_credit`).
    """
    runs = list(runs)
    checks, gold = (_find_checks(runs, side) for side in SIDES)
    chosen = [run for run in runs if run.pk in checks]
    found, after = one_if("f.result = 'detected'"), "COALESCE(f.result, '') <> 'detected'"
    rates = {
        "found": (EQUAL_SQL, found),
        "after": (PARSED_SQL, one_if(f"o.result = 'undetected' AND {after}")),
        "false": (
            f"{EQUAL_SQL} AND g.result IN ('detected', 'undetected')",
            one_if("g.result = 'detected'"),
        ),
    }
    counts = {
        "detected": one_if("o.result = 'detected'"),
        "checked": one_if(f"{EQUAL_SQL} AND f.result <> 'pending'"),
        "unparsed": one_if(f"{EQUAL_SQL} AND f.result = 'missing'"),
    }
    joined = _join_check(checks, SIDES["perturbed"]) + _join_check(gold, SIDES["gold"])
    summed = counted.sum_outcomes(chosen, by, rates=rates, counts=counts, joined=joined)
    return [_row(one, checks[one.run.pk], gold.get(one.run.pk)) for one in summed]


def _find_checks(runs: Sequence[Run], side: str) -> dict[int, Run]:
    """The last check of this side's explanations for each run."""
    over = Run.sources.through.objects.filter(
        to_run__in=runs, from_run__state=Run.State.FINISHED, from_run__archived_at=None
    )
    found = {}
    for one in over.select_related("from_run__strategy").order_by("from_run__number"):
        strategy = one.from_run.strategy.strategy()
        if strategy.frame == EXPLANATION_FRAME and (strategy.about or "perturbed") == side:
            found[one.to_run_id] = one.from_run
    return found


def _join_check(checks: Checks, name: str) -> str:
    """SQL that joins the outcomes of each run's check as `name`; the columns are null without a
    check."""
    table = Outcome._meta.db_table
    if not checks:
        return f" LEFT JOIN {table} AS {name} ON 1 = 0"
    cases = " ".join(f"WHEN {run} THEN {check.pk}" for run, check in checks.items())
    listed = ", ".join(str(check.pk) for check in checks.values())
    return f"""
        LEFT JOIN {table} AS {name} ON {name}.run_id = CASE o.run_id {cases} END
            AND {name}.run_id IN ({listed}) AND {name}.item_id = o.item_id
            AND {name}.axis = o.axis AND {name}.revision_id = o.revision_id
    """


def _row(found: GroupSums, check: Run, gold: Run | None) -> dict[str, Any]:
    in_words, after, false = (found.rates[name] for name in ("found", "after", "false"))
    checked, part = found.counts["checked"], found.counts["checked"] < in_words.n
    rate, share, credit = (clustered_wilson(one) for one in (after, in_words, false))
    if part:
        lacking = f"{checked} of {in_words.n} checked"
        rate = share = Estimate(None, None, None, found.parsed, lacking)
    equal = in_words.n / found.parsed if found.parsed else 0.0
    real = corrected.correct_after_credit(rate, equal, share.value, credit)
    return {
        **found.head(),
        "equal": in_words.n,
        "found": in_words.y,
        "rate_after": rate.value,
        "low": rate.low,
        "high": rate.high,
        "reason": rate.reason or None,
        "parsed": found.parsed,
        "detected": found.counts["detected"],
        "unnoticed": None if part else after.y,
        "check": check.number,
        "checked": checked,
        "unparsed": found.counts["unparsed"],
        "found_rate": share.value,
        "found_low": share.low,
        "found_high": share.high,
        "gold_check": gold.number if gold else None,
        "gold_checked": false.n if gold else None,
        "false_credit": credit.value,
        "false_credit_low": credit.low,
        "false_credit_high": credit.high,
        **counted.figure_columns("rate_corrected", real),
        "score_invariant": found.invariant,
    }


def _found_cell(row: Row, of: columns.Leading) -> Cell:
    """A cell with a link to the items in the check that found an error in their explanations."""
    href = cells.items_url(of.runs[row["run"]], row, row["check"], result="detected")
    return cells.share_cell(row["found"], row["parsed"], href)


def _rate(name: str, title: str, n: str, prefix: str, bad: str = "") -> columns.Rate:
    """A rate over the items with equal scores."""
    return columns.Rate(
        name,
        title,
        n=n,
        n_link=columns.items(result="parsed", detail="equal") if n == "equal" else None,
        prefix=prefix,
        reason="reason",
        missing="",
        bad=bad,
    )


EXPLANATIONS = columns.summed_table(
    "explanations",
    tabulate,
    columns.Column("total"),
    columns.MISSING,
    columns.detail_share("equal", "Equal scores"),
    columns.Custom("found", "Only by the explanation", make=_found_cell),
    columns.Rate(
        "rate_after",
        "Undetected rate after credit",
        n_link=columns.items(result="parsed"),
        bad="high",
    ),
    *columns.plain("low", "high", "reason"),
    columns.PARSED,
    columns.Share("detected", "Detected by the score", columns.items(result="detected")),
    columns.Share(
        "unnoticed",
        "Not at all",
        columns.items(result="undetected", not_detected_in="{check}"),
        reason="reason",
    ),
    *columns.plain("check", "checked", "unparsed"),
    _rate("found_rate", "Equal scores whose explanation names an error", "equal", "found_"),
    *columns.plain("found_low", "found_high", "gold_check", "gold_checked"),
    _rate(
        "false_credit",
        "False credit: found in gold answers",
        "gold_checked",
        "false_credit_",
        "high",
    ),
    *columns.plain("false_credit_low", "false_credit_high"),
    columns.Rate(
        "rate_corrected",
        "After credit, without false credit",
        n_link=columns.items(result="parsed"),
        prefix="rate_corrected_",
        missing="",
        bad="high",
    ),
    *columns.plain("rate_corrected_low", "rate_corrected_high", "rate_corrected_reason"),
    columns.Column("score_invariant"),
    about="A row per run whose explanations were checked, and group: the undetected rate "
    "before and after credit for errors that only the explanation names.",
    meanings={
        "equal": "number of parsed items whose gold and perturbed answers have equal scores",
        "found": "number of items with equal scores whose explanation of the perturbed answer "
        "names an error, as the check says",
        "rate_after": "(undetected − found) divided by parsed; empty until all explanations of "
        "equal scores are checked",
        "detected": "number of parsed items whose error was detected by the score",
        "unnoticed": "undetected − found: number of parsed items whose error neither the score "
        "nor the explanation shows",
        "check": "number of the run that checked explanations of perturbed answers",
        "checked": "number of items with equal scores whose explanation was checked",
        "unparsed": "number of items whose check gave no usable reply; they count as not found",
        "found_rate": "found divided by equal",
        "gold_check": "number of the run that checked explanations of gold answers",
        "gold_checked": "number of items with equal scores whose explanation of the gold answer "
        "has a usable check",
        "false_credit": "share of the `gold_checked` explanations in which the check finds an "
        "error, although gold answers have none",
        "rate_corrected": "rate after credit without the credit that explanations which name no "
        "error get just as often",
    },
)
FOUND, FALSE_CREDIT = EXPLANATIONS.rate("found_rate"), EXPLANATIONS.rate("false_credit")


def _with_gold_check(asked: PageQuery, tables: Sequence[Rows]) -> Rows:
    return [row for row in tables[0] if row["gold_check"] is not None]


def _draw_kinds(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    whole = [row for row in rows if row["unnoticed"] is not None]
    return lines.draw_stacked(asked, whole, EXPLANATIONS, _KINDS)


def _draw_credit(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    rates = {"perturbed answers": FOUND, "gold answers": FALSE_CREDIT}
    caption = (
        "Share of explanations that name an error, for perturbed and for gold answers, with "
        "95 % intervals."
    )
    return lines.draw_rates(asked, rows, rates, "Explanation names an error", caption)


_KINDS = lines.Stacked(
    ("detected", "found", "unnoticed"),
    "Share of items",
    "Detected by the score, only by the explanation, and not at all",
)
_BY = ("ability", "category")
VIEWS = (
    ResultView(
        slug="credit-of-words",
        title="By score and by explanation",
        asks=(TableQuery(EXPLANATIONS),),
        figures=("rate", "after_credit"),
        build=lines.Lines(
            EXPLANATIONS,
            "Errors named in explanations",
            (
                *("parsed", "missing", "detected", "equal", "found", "unnoticed"),
                *("found_rate", "rate_after", "rate_corrected"),
            ),
            "If both answers got the same score, the check looks for an error named in the "
            "explanation of the perturbed answer. Checks that could not be parsed count as not "
            "found. Without false credit: less what the same check finds in explanations of gold "
            "answers, which name no error (Rogan and Gladen).",
            _draw_kinds,
        ),
        studies={
            "000": (
                StudyFigure("figure 2", ("vanilla", "axis", "rubric", "axis-rubric")),
                StudyFigure("table 21", ("vanilla",), _BY),
                StudyFigure("table 22", ("axis",), _BY),
                StudyFigure("table 23", ("rubric",), _BY),
                StudyFigure("table 24", ("axis-rubric",), _BY),
            )
        },
        empty=(
            "No explanations of the chosen runs have been checked. Open a run that asks for "
            "explanations and choose “Check explanations…”."
        ),
        switches=(lines.group_switch(),),
    ),
    ResultView(
        slug="false-credit",
        title="False credit",
        asks=(TableQuery(EXPLANATIONS),),
        figures=("rate",),
        build=lines.Lines(
            EXPLANATIONS,
            "False credit",
            (replace(FOUND, title="Found in perturbed answers"), FALSE_CREDIT),
            "The same check on explanations of gold answers, which contain no error. What it "
            "finds there is false credit. The closer the two rates, the less the explanations "
            "tell.",
            _draw_credit,
            _with_gold_check,
        ),
        studies={},
        empty=(
            "No explanations of gold answers have been checked for the chosen runs. Start "
            "explanation-check-gold over one of these runs."
        ),
        switches=(lines.group_switch(),),
    ),
    audits.VIEW,
)
