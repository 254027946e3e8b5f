"""Warnings about a run whose replies arrived, but perhaps not from the model that was asked, or not
about the whole prompts."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import (
    BigIntegerField,
    Count,
    F,
    Max,
    Min,
    Q,
    QuerySet,
    prefetch_related_objects,
)
from django.db.models.functions import Cast

from judging.models import Call, Run, Tally

# English has about 4.3 bytes per token, so the longest of prompts that were cut has SUSPICIOUS or
# more. No prompt in any language has more than IMPOSSIBLE, if it is longer than MIN_BYTES: the
# schema of a short one may count as no tokens.
SUSPICIOUS, IMPOSSIBLE, MIN_BYTES = 4, 12, 4_000
# From this number on, prompts of different lengths with equal token counts are no chance.
MIN_EQUAL = 3
# A server that cuts at its context counts all prompts that are too long as the most tokens of the
# run. So the longest prompts, whatever their script, have one count. Of prompts that were read
# whole, the longest have different counts, unless they are few or about as long.
MIN_LENGTHS, MIN_SPREAD = 5, 1.15
_SHIFT, _MAX_BYTES = 2**32, 2**31
# What a provider adds to the name of a model that it resolves: a date or number of a snapshot, or a
# tag. A single digit is another model, as in opus-4 and opus-4-1. A date is a year and the rest: if
# it had a way of its own, a name of many dates would take very long to refuse.
_SNAPSHOT = re.compile(r"([-@:](\d{3,8}|\d\d-\d{2,4}|latest|preview|exp))+")


# A name on Amazon Bedrock, such as us.anthropic.claude-opus-4-20250514-v1:0: region, owner, model,
# version. Without a digit in front of it, the version belongs to the model: nova-pro-v1:0.
_BEDROCK = re.compile(
    r"(?:(?:us|us-gov|eu|apac|jp|au|ca|global)\.)?"
    r"(?:ai21|amazon|anthropic|cohere|deepseek|google|meta|minimax|mistral|moonshot|moonshotai"
    r"|nvidia|openai|qwen|writer|zai)\."
    r"(?P<model>\D*\d.*?)(?:-v[1-9]\d*(?::\d+k?)*)?"
)


@dataclass(frozen=True)
class ReplyFacts:
    """What the replies of a run say about themselves.

    `models` has the number of replies by the model that they name, most frequent first; "" for
    none. `far` replies counted far fewer tokens than their prompts must have. `equal` replies with
    different prompts, of `shortest` to `longest` bytes, all counted `tokens` tokens, the most of
    the run.
    """

    models: dict[str, int] = field(default_factory=dict)
    far: int = 0
    equal: int = 0
    tokens: int = 0
    shortest: int = 0
    longest: int = 0


@dataclass(frozen=True)
class RunWarning:
    """A warning about `replies` of a run's replies. `kind` is "other_model" or "cut_prompts"."""

    kind: str
    replies: int
    message: str


def count_facts(run: Run) -> ReplyFacts:
    """Count what the replies of a run say about themselves. A run that called no evaluator has no
    such replies."""
    return count_facts_of_runs([run])[run.pk]


def count_facts_of_runs(runs: Collection[Run]) -> dict[int, ReplyFacts]:
    """Count what the replies of each run say about themselves, by run id, in one query, or in up to
    four if prompts may have been cut."""
    facts = {run.pk: ReplyFacts() for run in runs}
    asked = [r.pk for r in runs if r.kind == Run.Kind.ASKED and not r.endpoint.is_offline]
    # Calls may share a request, so each reply is counted once for each run.
    calls = Call.objects.filter(run__in=asked, request__reply__isnull=False).order_by()
    length, tokens = F("request__reply__bytes_sent"), F("request__reply__tokens_in")
    grouped = calls.values("run", model=F("request__reply__model")).annotate(
        n=Count("request", distinct=True),
        far=Count(
            "request",
            distinct=True,
            filter=Q(request__reply__bytes_sent__gte=MIN_BYTES)
            & Q(request__reply__bytes_sent__gt=tokens * IMPOSSIBLE),
        ),
        most=Max(tokens),
        longest=Max(length),
        # The most tokens and, of the prompts that have as many, the fewest bytes, as one number.
        place=Max(
            Cast(tokens, BigIntegerField()) * _SHIFT + _MAX_BYTES - length,
            filter=Q(request__reply__tokens_in__gt=0),
        ),
    )
    rows: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for row in grouped.order_by("-n", "model"):
        rows[row["run"]].append(row)
    most = {run: max(row["most"] or 0 for row in found) for run, found in rows.items()}
    suspicious, spread = [], []
    for run, found in rows.items():
        models = {row["model"]: row["n"] for row in found}
        facts[run] = ReplyFacts(models, sum(row["far"] for row in found))
        longest = max(row["longest"] or 0 for row in found)
        if longest >= MIN_BYTES and longest > most[run] * SUSPICIOUS:
            suspicious.append(run)
        place = max(row["place"] or 0 for row in found)
        if place and longest >= MIN_SPREAD * (_MAX_BYTES - place % _SHIFT):
            spread.append(run)
    equal = _find_longest_equal(calls, spread, most) | _find_long_equal(calls, suspicious, most)
    return facts | {run: replace(facts[run], **told) for run, told in equal.items()}


def _find_long_equal(
    calls: QuerySet[Call], runs: Sequence[int], most: Mapping[int, int]
) -> dict[int, dict[str, Any]]:
    """Find the runs of which several long prompts of different lengths have the most tokens of the
    run, each with the counts of its facts."""
    if not runs:
        return {}
    length, tokens = F("request__reply__bytes_sent"), F("request__reply__tokens_in")
    long = calls.filter(run__in=runs, request__reply__bytes_sent__gte=MIN_BYTES)
    columns = ("run", "tokens", "equal", "shortest", "longest")
    equal = long.values("run", tokens=tokens).annotate(
        equal=Count("request", distinct=True), shortest=Min(length), longest=Max(length)
    )
    return {
        run: {"tokens": counted, "equal": n, "shortest": shortest, "longest": longest}
        for run, counted, n, shortest, longest in equal.values_list(*columns)
        if counted == most[run] and n >= MIN_EQUAL and shortest * 1.1 <= longest
    }


def _find_longest_equal(
    calls: QuerySet[Call], runs: Sequence[int], most: Mapping[int, int]
) -> dict[int, dict[str, Any]]:
    """Find the runs whose longest prompts all have the most tokens of the run although their
    lengths differ, each with the counts of its facts."""
    if not runs:
        return {}
    length, tokens = F("request__reply__bytes_sent"), F("request__reply__tokens_in")
    counted = calls.filter(run__in=runs, request__reply__tokens_in__isnull=False)
    by_tokens = counted.values("run", tokens=tokens).annotate(longest=Max(length))
    # The longest prompt that has fewer tokens: shorter ones may not have been cut.
    whole = dict.fromkeys(runs, 0)
    for run, number, longest in by_tokens.values_list("run", "tokens", "longest"):
        if number != most[run]:
            whole[run] = max(whole[run], longest or 0)
    longer = Q()
    for run in runs:
        longer |= Q(
            run=run, request__reply__tokens_in=most[run], request__reply__bytes_sent__gt=whole[run]
        )
    equal = (
        counted.filter(longer)
        .values("run")
        .annotate(
            equal=Count("request", distinct=True),
            lengths=Count(length, distinct=True),
            shortest=Min(length),
            longest=Max(length),
        )
    )
    columns = ("run", "equal", "lengths", "shortest", "longest")
    return {
        run: {"tokens": most[run], "equal": n, "shortest": shortest, "longest": longest}
        for run, n, lengths, shortest, longest in equal.values_list(*columns)
        if lengths >= MIN_LENGTHS and longest >= MIN_SPREAD * shortest
    }


def is_same_model(asked: str, answered: str) -> bool:
    """True if both are names of one model: alike but for the case, a path or a provider before the
    name, what Amazon Bedrock adds to it, and the date or number of a snapshot after it."""
    one, other = (_shorten(name) for name in (asked, answered))
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    if long.startswith(short) and _SNAPSHOT.fullmatch(long[len(short) :]):
        return True
    # An alias and what it stands for: gpt-x-latest and gpt-x-2026-01-01.
    return any("latest" in name for name in (one, other)) and (_base(one) == _base(other))


def _shorten(name: str) -> str:
    last = re.split(r"[/\\]", name.strip().lower())[-1]
    last = re.sub(r"(\.gguf|:free)\Z", "", last)
    on_bedrock = _BEDROCK.fullmatch(last)
    return on_bedrock["model"] if on_bedrock else last


def _base(name: str) -> str:
    return re.sub(_SNAPSHOT.pattern + r"\Z", "", name)


def list_warnings(asked: str, facts: ReplyFacts) -> list[RunWarning]:
    """The warnings about a run that asked for the model `asked`: what was seen, why it matters, and
    what to do."""
    total = sum(facts.models.values())
    found: list[RunWarning] = []
    named = {name: n for name, n in facts.models.items() if name}
    others = {name: n for name, n in named.items() if not is_same_model(asked, name)}
    if others:
        names = ", ".join(f"“{name}” ({n:,})" for name, n in [*others.items()][:5])
        n = sum(others.values())
        described = "that model" if n == total else "a mixture of models"
        found.append(
            RunWarning(
                "other_model",
                n,
                f"{n:,} of {total:,} replies name another model than “{asked}”, which was asked: "
                f"{names}. If “{asked}” is an alias of your gateway for that model, this is as it "
                f"should be. Otherwise the figures of this run describe {described}: check the "
                "model of the endpoint and the routes of the gateway or server, then clone this "
                "run with a corrected endpoint.",
            )
        )
    if facts.equal:
        seen = (
            f"{facts.equal:,} prompts of {facts.shortest:,} to {facts.longest:,} bytes were all "
            f"counted as {facts.tokens:,} tokens"
        )
    elif facts.far:
        seen = (
            f"For {facts.far:,} of {total:,} replies, the evaluator counted far fewer tokens than "
            f"the prompts that were sent must have (over {IMPOSSIBLE} bytes per token)"
        )
    else:
        return found
    found.append(
        RunWarning(
            "cut_prompts",
            max(facts.equal, facts.far),
            f"{seen}. The server probably cut them without an error, so the evaluator did not see "
            "the whole texts. Raise the context length of the server (for Ollama "
            "OLLAMA_CONTEXT_LENGTH or num_ctx), then clone this run with a new endpoint.",
        )
    )
    return found


def load_summaries(runs: Sequence[Run]) -> list[tuple[Run, str]]:
    """The runs with warnings, each with its warnings in few words, in one query; for combined runs
    also the source runs with warnings, in two more. The warnings come from the stored counts, so a
    run without any has none."""
    combined = [run for run in runs if run.kind == Run.Kind.DERIVED]
    prefetch_related_objects(combined, "sources")
    sources = {source.pk: source for run in combined for source in run.sources.all()}
    every = {run.pk: run for run in runs} | sources
    rows = Tally.objects.filter(kind=Tally.Kind.PROGRESS, run__in=every)
    stored = dict(rows.values_list("run", "counts__facts"))
    facts = {pk: ReplyFacts(**counted) for pk, counted in stored.items() if counted}
    said = [
        (run, "; ".join(_summarize(run, facts[pk]))) for pk, run in every.items() if pk in facts
    ]
    return [(run, words) for run, words in said if words]


def _summarize(run: Run, facts: ReplyFacts) -> Iterator[str]:
    total = sum(facts.models.values())
    for one in list_warnings(run.pinned["model"], facts):
        if one.kind == "cut_prompts":
            yield "prompts were probably cut"
        elif one.replies == total:
            yield "all replies name another model, so the figures may describe that one"
        else:
            yield (
                f"{one.replies:,} of {total:,} replies name another model, so the figures may "
                "describe a mixture of models"
            )
