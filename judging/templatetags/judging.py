"""Template filters that format figures, and the outcomes of an item."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from html import escape
from typing import Any

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from annotation.models import Item
from annotation.templatetags.figures import DASH, duration, share
from judging.evaluators.trial_call import TrialResult
from judging.models import Outcome, Reply, Run
from judging.results.cells import Cell, GridLine
from judging.runs import amounts, budget, spending
from judging.runs.counts import PaidReplies
from judging.runs.models import UNLABELLED, OutcomeQuerySet
from judging.runs.progress import RunStatus
from judging.strategies import Strategy, descriptions, schema
from judging.strategies.replies.causes import describe_cause, explain_cut
from judging.strategies.replies.combination import PARTS_KEY
from judging.strategies.replies.item_decisions import DETAIL_WORDS, SIDES
from judging.strategies.replies.phrases import NO_ERROR

register = template.Library()

ROUGH_NOTE = ', <span title="Fewer than 20 questions: the interval may be too narrow.">rough</span>'

register.filter("percent", share)
register.filter("between", descriptions.describe_scale)
register.filter("offers", descriptions.describe_answers)
register.filter("why", describe_cause)
register.filter("why_cut_off", explain_cut)


@register.filter
def count(value: int) -> str:
    """Format a number with separators for thousands."""
    return f"{value:,}"


@register.filter
def price(value: Decimal | None) -> str:
    """Format an amount with its currency, without trailing zeros; None becomes a dash."""
    return DASH if value is None else amounts.format_amount(value)


@register.filter
def tariff(value: Decimal | None) -> str:
    """The price per million tokens."""
    if value is None:
        return "unknown"
    return amounts.format_amount(value) if value else "free"


register.filter("money_range", amounts.format_range)


@register.filter
def estimate(value: Decimal) -> str:
    """An estimated cost."""
    return amounts.format_estimate(value) if value else "free"


@register.filter
def token_counts(reply: Reply | TrialResult) -> str:
    """The tokens in and out, with the parts that came from a cache and went into thinking."""
    counts = (
        (reply.tokens_in, "in", reply.tokens_cached, "cached"),
        (reply.tokens_out, "out", reply.tokens_reasoning, "thinking"),
    )
    said = []
    for tokens, way, part, what in counts:
        of_part = f" ({part:,} {what})" if part else ""
        said.append(f"{DASH if tokens is None else count(tokens)} {way}{of_part}")
    return ", ".join(said)


@register.filter
def charge(reply: Reply | TrialResult) -> str:
    """The cost of one reply."""
    tokens = (reply.tokens_in or 0) + (reply.tokens_out or 0)
    paid = PaidReplies(1, int(reply.cost is None), tokens, int(bool(reply.cost)))
    return budget.format_spent(reply.cost or spending.ZERO, paid)


@register.filter
def spent(run: Run) -> str:
    """Return what a run has spent; the run needs the annotation `counted`."""
    return budget.RunSpending(run, run.counted.paid).words


@register.filter
def parse_time(text: str) -> datetime:
    """Parse an ISO 8601 string into a datetime."""
    return datetime.fromisoformat(text)


@register.filter
def exact(value: float | str | None) -> str:
    """Write a number with all its digits, 1251.0 as 1251; a text as it is, None as nothing."""
    return f"{value:.15g}" if isinstance(value, int | float) else value or ""


@register.simple_tag
def table_cells(line: GridLine, *, intervals: bool) -> SafeString:
    """The cells of a row of a result table, with intervals or without. Tables have thousands of
    cells, which a template would write five times as slowly."""
    written = (
        write_cell(cell, head=not number, intervals=intervals)
        for number, cell in enumerate(line.cells)
    )
    return SafeString("".join(written))


def write_cell(cell: Cell, *, head: bool, intervals: bool) -> str:
    """The HTML of a cell, as the header of its row or not."""
    text = escape(cell.text)
    small: list[str] = []
    if not head:
        if cell.reason and not cell.is_there:
            small.append(escape(cell.reason))
        elif intervals and cell.interval:
            small.append(escape(cell.interval) + (ROUGH_NOTE if cell.is_rough else ""))
        elif intervals and cell.reason:
            small.append(f"no interval: {escape(cell.reason)}")
        if cell.n is not None:
            missing = f"{count(cell.missing)} missing"
            if cell.missing_href:
                missing = f'<a href="{escape(cell.missing_href)}">{missing}</a>'
            link = f", {missing}" if cell.missing else ""
            whole = f"n {count(cell.n)}"
            if cell.n_href:
                whole = f'<a href="{escape(cell.n_href)}">{whole}</a>'
            small.append(whole + link)
    if cell.note:
        small.append(escape(cell.note))
    notes = "".join(f"<small>{one}</small>" for one in small)
    href = f' href="{escape(cell.href)}"' if cell.href else ""
    if head:
        text = f"<a{href}>{text}</a>" if href else text
        return f'<th scope="row">{text}{notes}</th>'
    text = f'<a class="figure"{href}>{text}</a>' if href else f"<span>{text}</span>"
    kind = ' class="number"' if cell.is_number else ""
    heat = f' data-heat="{cell.heat}"' if cell.heat is not None else ""
    return f"<td{kind}{heat}>{text}{notes}</td>"


@register.simple_tag
def outcomes_of(item: Item) -> OutcomeQuerySet:
    """The outcomes of an item in all runs, newest run first."""
    return Outcome.objects.of_item(item)


@register.filter
def describe_result(outcome: Outcome) -> str:
    """Describe the result of an outcome; a detection in an item without an error is a
    false alarm.
    """
    if outcome.invariant:
        words = {"detected": "false alarm", "undetected": "no false alarm"}
    elif outcome.truth == NO_ERROR:
        words = {"detected": "false alarm", "undetected": "no alarm"}
    else:
        words = {}
    return words.get(outcome.result, outcome.result)


@register.filter
def judged_well(outcome: Outcome) -> str:
    """Return the colour of a result, which shows whether the evaluator was right; "plain" where
    nothing tells."""
    if outcome.result in {Outcome.Result.PENDING, Outcome.Result.SCORED, Outcome.Result.MADE}:
        return "plain"
    if outcome.result == Outcome.Result.MISSING:
        return "warn"
    if outcome.truth == UNLABELLED:
        return "plain"
    is_sound = outcome.invariant or outcome.truth == NO_ERROR
    return "good" if (outcome.result == Outcome.Result.DETECTED) != is_sound else "bad"


@register.filter
def pretty(value: Any) -> str:
    """Format a value of an outcome or a reading on one line; None becomes a dash."""
    if value is None:
        return DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value).replace("_", " ")


@register.filter
def detail(outcome: Any) -> str:
    """What an outcome says beyond its result, in words: its detail, or the cause if it is missing.
    A detail that somebody imported is shown as it is."""
    return DETAIL_WORDS.get(outcome.detail) or pretty(outcome.detail or outcome.cause)


@register.filter
def pairs(values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The names and values of a mapping whose names come from people or evaluators. In a template,
    `values.items` is the value of the name "items" if there is one."""
    return list(values.items())


@register.filter
def reply_parts(value: Any) -> list[tuple[str, str]]:
    """The texts in a generator's reply, by name; [] if it is a single text. Several references have
    numbers."""
    said = value if isinstance(value, dict) else {}
    each = {name: part if isinstance(part, list) else [part] for name, part in said.items()}
    return [
        (f"{name} {number}" if len(parts) > 1 else name, text)
        for name, parts in each.items()
        for number, text in enumerate(parts, 1)
        if isinstance(text, str)
    ]


@register.filter
def can_start(strategy: Strategy) -> bool:
    """True if a run can be started with this strategy. Votes and panels cannot, since they are
    derived from other runs.
    """
    return strategy.frame != "fold"


@register.filter
def slots(prompt: str) -> SafeString:
    """A prompt with its placeholders marked; all of its text is escaped."""
    return format_html_join(
        "",
        "{}",
        (
            (format_html('<mark class="strategy-slot">{}</mark>', text) if is_name else text,)
            for text, is_name in schema.split_template(prompt)
        ),
    )


@register.filter
def any_open(watched: Iterable[RunStatus]) -> bool:
    """True if any of the runs is still being planned or running."""
    return any(one.run.state in {Run.State.PLANNING, Run.State.RUNNING} for one in watched)


@register.filter
def span(seconds: float) -> str:
    """Format an expected duration for readers: 3 ms, 40 s, 12 min, 3 h 5 min."""
    if 0 < seconds < 0.0995:
        return f"{max(1, round(1000 * seconds))} ms"
    if seconds < 60:
        return duration(seconds)
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


@register.filter
def pace(per_second: float | None) -> str:
    """Format answers per second for readers: 2.4 per second, 3.1 per minute, 5.0 per hour; None
    becomes a dash."""
    if per_second is None:
        return DASH
    units = {"second": 1, "minute": 60, "hour": 3600}
    large = (unit for unit in units if round(per_second * units[unit], 1) >= 1)
    unit = next(large, "hour")
    return f"{per_second * units[unit]:.1f} per {unit}"


@register.filter
def plain(values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Format the values of an outcome as lines; nested values are summarised."""
    found: list[tuple[str, Any]] = []
    for name, value in values.items():
        if name == PARTS_KEY:
            counted = Counter(part["result"] for part in value)
            found.append(("of each", ", ".join(f"{n} {said}" for said, n in counted.items())))
        elif isinstance(value, Mapping) and not value:
            continue
        elif isinstance(value, Mapping):
            found.append((name, ", ".join(f"{key} {pretty(one)}" for key, one in value.items())))
        elif name in SIDES and not isinstance(value, str):
            found.append((f"score of {name}", value))
        else:
            found.append((name, value))
    return found
