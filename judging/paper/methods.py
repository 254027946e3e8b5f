"""The methods paragraph: how the figures of some runs came to be, from what was really done.

Every number is counted anew; what is not defined says so. The sentences are in `methods.toml`.
"""

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from django.db.models import Count, Max, Min

from annotation.leads import agreeing, agreement
from annotation.models import Item, Label, Project, Resolution, Stage
from formats.typeset import latex_text
from judging.models import Outcome, Reply, Run
from judging.models.evaluators import JSON_CHOICES, PROVIDER_CHOICES
from judging.paper import versions
from judging.querysets import OutcomeQuerySet
from judging.results import counting, gathering, reports
from stats import bootstrap, paired

SENTENCES = Path(__file__).with_suffix(".toml")
NOBODY = ""
CLASSES = {
    "valid": "with an error (valid)",
    "score-invariant": "score-invariant",
    "error": "with an error",
    "no_error": "without an error",
}
SOURCES = {
    "labels": "labels of people",
    "adjudicated": "adjudication",
    "imported": "import",
    "known": "what was known before",
}
_VERDICTS = frozenset({"error", "no_error"})

Sentences = Iterator[str]


@dataclass(frozen=True)
class Paragraph:
    """The paragraphs: the data, the people, each run, the figures."""

    paragraphs: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n\n".join(self.paragraphs) + "\n"

    @property
    def latex(self) -> str:
        """The same for LaTeX; the preamble needs textcomp and the font encoding T1."""
        return "\n\n".join(map(latex_text, self.paragraphs)) + "\n"


def paragraph(project: Project, runs: Sequence[Run]) -> Paragraph:
    """How the figures of these runs came to be."""
    parts = [_data(project), _people(project), *(_run(run) for run in runs), _figures(runs)]
    return Paragraph(tuple(" ".join(sentences) for sentences in parts))


def say(kind: str, name: str, **values: Any) -> str:
    """A sentence of `methods.toml`, filled in; whole numbers have commas at thousands."""
    return _sentences()[kind][name].format(
        **{key: f"{one:,}" if type(one) is int else one for key, one in values.items()}
    )


@cache
def _sentences() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(SENTENCES.read_text(encoding="utf-8"))


def _data(project: Project) -> Sentences:
    every = Item.objects.filter(project=project)
    items = every.live().originals().of_tests()
    task = project.task_type
    sizes = items.aggregate(items=Count("pk"), clusters=Count("cluster", distinct=True))
    yield say("data", "items", project=project.name, task=task.slug, version=task.number, **sizes)
    out = {
        "deleted": every.filter(deleted_at__isnull=False).count(),
        "repeating another one": every.live().exclude(duplicate_of=None).count(),
        "for practice or checks": every.live().originals().exclude(purpose="test").count(),
    }
    if any(out.values()):
        yield say("data", "left_out", number=sum(out.values()), reasons=_listed(out))
    held = Resolution.objects.current().filter(item__in=items).order_by()
    sources = _tally(held, "source")
    resolved = sum(sources.values())
    if resolved:
        values = _tally(held, "value")
        told = {SOURCES[name]: number for name, number in sources.items()}
        yield say(
            "data", "resolved", number=resolved, sources=_listed(told), values=_listed(values)
        )
    if resolved < sizes["items"]:
        yield say("data", "unresolved", number=sizes["items"] - resolved)


def _people(project: Project) -> Sentences:
    labels = Label.objects.in_project(project).of_tests().at_stage(Stage.WORK).counted()
    sizes = labels.aggregate(labels=Count("pk"), people=Count("member", distinct=True))
    if not sizes["labels"]:
        yield say("people", "none")
        return
    yield say("people", "labels", overlap=project.overlap, **sizes)
    if project.share_percent:
        yield say("people", "share", percent=project.share_percent, overlap=project.share_overlap)
    if project.verify:
        yield say("people", "second")
    if project.blind_first:
        yield say("people", "blind")
    if sizes["people"] > 1:
        yield _agreement(project)
    if seen := labels.filter(evaluator_seen=True).count():
        yield say("people", "seen", number=seen)


def _agreement(project: Project) -> str:
    """Krippendorff's alpha of the deciding question, at its level."""
    question = agreeing.questions(project)[0]
    level = {"ordinal": "alpha-ordinal", "interval": "alpha-interval"}.get(
        question.level, "alpha-nominal"
    )
    rows = agreement.measure(project, question).of(level, "alpha-nominal", people=0)
    found = next((row for row in rows if row.measure == level), rows[-1])
    field, measure = question.title, agreement.MEASURES[found.measure].title
    if found.value is None:
        return say("people", "agreement_undefined", field=field, reason=found.reason)
    told = {"field": field, "measure": measure, "value": _decimal(found.value), "n": found.n_items}
    if found.low is None or found.high is None:
        return say("people", "agreement_point", reason=found.reason, **told)
    low, high = _decimal(found.low), _decimal(found.high)
    return say("people", "agreement", low=low, high=high, **told)


def _run(run: Run) -> Sentences:
    yield _asked(run)
    if run.kind == Run.Kind.ASKED and (sources := _sources(run)):
        yield say("run", "over", sources=sources)
    if run.kind != Run.Kind.DERIVED and not _is_offline(run):
        yield from _replies(run)
    if run.samples > 1:
        yield say("run", "votes" if run.asked().votes else "repeats", samples=run.samples)
    if run.few_shot:
        yield say("run", "few_shot", number=len(run.few_shot))
    if run.occasion:
        yield say("run", "canary", occasion=run.occasion)
    if run.while_labelling:
        yield say("run", "while_labelling")
    yield from _judged(run)


def _asked(run: Run) -> str:
    strategy = run.asked()
    told = {"number": run.number, "strategy": run.strategy.slug, "version": run.strategy.number}
    if run.kind == Run.Kind.DERIVED:
        return say("run", "derived", sources=_sources(run), **told)
    if _is_offline(run) and run.kind == Run.Kind.ASKED:
        return say("run", "offline", **told)
    scale = strategy.scale
    return say(
        "run",
        str(run.kind),
        endpoint=run.pinned["name"],
        provider=PROVIDER_CHOICES.get(run.pinned["provider"], run.pinned["provider"]),
        model=run.pinned["model"],
        frame=f"frame {strategy.frame}",
        scale=f", scale {scale.low:g} to {scale.high:g}" if scale else "",
        **told,
    )


def _replies(run: Run) -> Sentences:
    replies = Reply.objects.filter(request__calls__run=run)
    names = sorted({*replies.order_by().values_list("model", flat=True).distinct()} - {NOBODY})
    times = replies.aggregate(first=Min("asked_at"), last=Max("asked_at"))
    if times["first"]:
        yield say("run", "model", models=_joined(names)) if names else say("run", "no_model")
    yield from _sent(run)
    if times["first"]:
        first, last = (times[name].strftime("%Y-%m-%d") for name in ("first", "last"))
        yield say("run", "day" if first == last else "dates", first=first, last=last)
    yield say("run", "parser", parser=run.parser)


def _sent(run: Run) -> Sentences:
    """What was sent beside the prompts, by us or by whoever recorded the replies."""
    sent = run.sends()
    said = json.dumps(sent, sort_keys=True, ensure_ascii=False)
    if run.kind != Run.Kind.ASKED:
        if sent:
            yield say("run", "parameters", parameters=said)
        return
    yield say("run", "sent" if sent else "sent_without", parameters=said)
    if left := [name for name, value in run.pinned["parameters"].items() if value is None]:
        yield say("run", "left_to_provider", names=_joined(sorted(left)))
    if run.pinned.get("json_mode") and run.asked().schema is not None:
        yield say("run", "json", form=JSON_CHOICES[run.pinned["json_mode"]])
    if run.pinned.get("template"):
        yield say("run", "template")


def _judged(run: Run) -> Sentences:
    counted = _counted(run)
    sizes = counted.aggregate(
        items=Count("item", distinct=True), clusters=Count("cluster", distinct=True)
    )
    if sizes["items"]:
        classes = _classes(counted)
        yield say("run", "judged", classes=_listed(classes), **sizes)
        causes = {row["cause"]: row["n"] for row in counted.missing_by_cause()}
        if causes:
            number = sum(causes.values())
            yield say("run", "missing", number=number, causes=_listed(causes))
        else:
            yield say("run", "none_missing")
    else:
        yield say("run", "nothing")
    [left] = reports.left_out([run])
    for reason in ("pending", "other_revision"):
        if left[reason]:
            yield say("run", reason, number=left[reason])


def _figures(runs: Sequence[Run]) -> Sentences:
    asked = counting.asked(runs)
    rated = [run for run in runs if asked[run.pk].frame in gathering.FRAMES]
    truths = _truths(runs)
    if rated:
        yield say("figures", "rates")
    if rated and "score-invariant" in truths:
        yield say("figures", "invariant")
    if truths & _VERDICTS:
        yield say("figures", "verdicts")
    if Outcome.objects.filter(run__in=runs, result=Outcome.Result.SCORED).exists():
        yield say("figures", "values")
    if rated or truths & _VERDICTS:
        yield say("figures", "wilson")
    if rated and "score-invariant" in truths:
        yield say("figures", "j")
    if runs:
        yield say("figures", "bootstrap", draws=bootstrap.DRAWS, fewest=bootstrap.FEWEST_CLUSTERS)
    if len(rated) > 1:
        pairs = len(rated) * (len(rated) - 1) // 2
        limits = {
            "points": paired.MOST_POINTS,
            "draws": paired.DRAWS,
            "many": paired.MANY_CLUSTERS,
        }
        yield say("figures", "holm", runs=len(rated), pairs=pairs, **limits)
    if rated:
        yield say("figures", "exploratory")
    yield say("figures", "program", program=versions.program())


def _counted(run: Run) -> OutcomeQuerySet:
    """What headline figures count of a run."""
    return Outcome.objects.counted().main().filter(run=run)


def _classes(counted: OutcomeQuerySet) -> dict[str, int]:
    rows = counted.order_by().values("truth").annotate(n=Count("item", distinct=True))
    found = {row["truth"]: row["n"] for row in rows.order_by("-n", "truth")}
    return {CLASSES.get(name, name or "of any kind"): number for name, number in found.items()}


def _truths(runs: Sequence[Run]) -> set[str]:
    found = Outcome.objects.filter(run__in=runs).order_by()
    return set(found.values_list("truth", flat=True).distinct())


def _is_offline(run: Run) -> bool:
    return run.pinned["provider"] in {"baseline", "derived"}


def _sources(run: Run) -> str:
    numbers = run.sources.order_by("number").values_list("number", flat=True)
    return _joined(map(str, numbers))


def _tally(rows: Any, column: str) -> dict[str, int]:
    """How many rows have each value, the most frequent first."""
    counted = rows.values(column).annotate(n=Count("pk")).order_by("-n", column)
    return {row[column]: row["n"] for row in counted}


def _listed(counts: Mapping[str, int]) -> str:
    """Names with their counts behind, which reads alike for one and for many."""
    return _joined(f"{name} {number:,}" for name, number in counts.items() if number)


def _joined(parts: Iterable[str]) -> str:
    return ", ".join(parts)


def _decimal(value: float) -> str:
    return f"{value:.3f}"
