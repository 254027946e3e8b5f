"""Explanations of evaluators as items for people to judge (study 001, section 4.2 and figure 6).

Each item of an audit is one evaluator's explanation of one item that it judged, with its verdict
and whether that was right; of an evaluator that was asked several times it is that of one sample.
The same items are drawn for every run, so that evaluators differ by what they say and by nothing
else; and what people see of an item names no evaluator.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, F, OuterRef, QuerySet, Subquery, TextField, Value, When
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce, Concat

from annotation import importing, seals, tasktypes, taxonomy
from annotation.models import Item, Membership, Project, Resolution
from formats.rows import Row
from judging.models import Call, Outcome, Reading, Run
from judging.prompts.frames import CallSpec
from judging.providers import PROVIDERS
from judging.querysets import OutcomeQuerySet
from judging.replies.folding import PARTS
from stats.lots import lot

TASK = "explanation-audit"
KEY_LENGTH = 200
# What people hold an explanation for; "open" is one that they hold for nothing yet.
QUALITIES = ("correct", "insufficient", "wrong", "none")
OPEN = "open"

PARSED = frozenset({Outcome.Result.DETECTED, Outcome.Result.UNDETECTED})
# Of a frame the call whose explanation is judged, and which texts of the item it showed as what.
_SHOWN: dict[str, tuple[CallSpec, dict[str, str]]] = {
    "single": (CallSpec("perturbed"), {"": "perturbed"}),
    "reference": (CallSpec("perturbed"), {"": "perturbed"}),
    "pair": (CallSpec("pair", 1), {"Answer A": "gold", "Answer B": "perturbed"}),
}


class Refused(ValueError):
    """An audit that cannot be made; the message says what to do."""


@dataclass(frozen=True)
class Made:
    """An audit: its project, how many items were drawn of how many that all runs decided, and what
    the import made of the explanations."""

    project: Project
    drawn: int
    available: int
    report: importing.Report


def make(
    runs: Sequence[Run], *, n: int, seed: int, into: str, member: Membership | None = None
) -> Made:
    """Draw `n` items that all runs decided, and make an item of each explanation of each.

    The draw depends on seed and keys alone: the same again is nothing new, and a larger n adds to
    what was drawn. The project is made if it is not there. Raises `Refused` for runs that explain
    nothing or share no item, and for a project of another task type.
    """
    for run in runs:
        _check(run)
    shared = _shared(runs)
    drawn = sorted(shared, key=lambda key: lot(f"audit\0{seed}\0{key}"))[:n]
    if not drawn:
        raise Refused("There is no item that all these runs decided. Choose other runs.")
    project = _project(into)
    task = tasktypes.of_version(project.task_type)
    rows = sorted(_rows(runs, drawn), key=lambda row: lot(f"audit\0{seed}\0{row['key']}"))
    made = (Row("audit", number, row) for number, row in enumerate(rows, start=1))
    if any(run.project.sealed for run in runs):
        seals.seal(project, member.pk if member else None)
    report = importing.store(project, importing.check(made, task), member=member)
    return Made(project, len(drawn), len(shared), report)


def judged() -> QuerySet[Any]:
    """Every explanation in an audit, with whose it is as `of` ("project/run/item", in numbers and
    keys), whether its verdict was "right" or "wrong", and its `quality`."""
    held = Resolution.objects.current().filter(item=OuterRef("pk"), value__in=QUALITIES)
    found = Item.objects.live().filter(project__task_type__slug=TASK).order_by()
    return found.alias(is_right=Cast(KT("fields__verdict_is_right"), TextField())).annotate(
        of=_joined(KT("fields__project"), KT("fields__run"), KT("fields__item")),
        # How databases write what JSON holds as true.
        verdict=Case(When(is_right__in=["true", "1"], then=Value("right")), default=Value("wrong")),
        quality=Coalesce(Subquery(held.values("value")[:1]), Value(OPEN)),
    )


def behind(found: OutcomeQuerySet, verdict: str, quality: str = "") -> OutcomeQuerySet:
    """The outcomes of which an audit has an explanation with such a verdict, "right" or "wrong",
    and of this quality if one is named."""
    such = judged().filter(verdict=verdict)
    such = such.filter(quality=quality) if quality else such
    own = _joined(F("run__project__slug"), F("run__number"), F("item__key"))
    return found.alias(of=own).filter(of__in=such.values("of"))


def _joined(project: Any, run: Any, item: Any) -> Concat:
    one, two, three = (Cast(part, TextField()) for part in (project, run, item))
    slash = Value("/", TextField())
    return Concat(one, slash, two, slash, three)


def _check(run: Run) -> None:
    strategy = run.strategy.strategy()
    explains = strategy.explanation and strategy.frame in _SHOWN
    if PROVIDERS[run.pinned["provider"]].offline or not explains:
        raise Refused(
            f"Run {run.number} ({run.strategy.slug}) asks for no explanation. Choose a run of a"
            " strategy that does."
        )


def _shared(runs: Sequence[Run]) -> set[str]:
    """The keys of the items that every run decided, and that are held true as they were then."""
    counted = (run.outcomes.counted().main().parsed() for run in runs)
    found = [set(decided.values_list("item__key", flat=True)) for decided in counted]
    return set.intersection(*found) if found else set()


def _project(slug: str) -> Project:
    project = Project.objects.filter(slug=slug).select_related("task_type").first()
    if project is None:
        return importing.begin_project(slug, task_type=TASK)
    if project.task_type.slug != TASK:
        raise Refused(
            f"The project {slug!r} has the task type {project.task_type.slug!r}. An audit needs"
            f" one of {TASK!r}: name another project."
        )
    return project


def _rows(runs: Sequence[Run], keys: list[str]) -> Iterator[dict[str, Any]]:
    for run in runs:
        spec, _ = _SHOWN[run.strategy.strategy().frame]
        found = Call.objects.filter(run=run, outcome__main=True, outcome__item__key__in=keys)
        calls = found.filter(role=spec.role, order=spec.order).select_related(
            "outcome__item", "outcome__revision", "request__reply"
        )
        for call in calls.prefetch_related("request__reply__readings"):
            judged = _judged(call)
            if judged["result"] in PARSED:
                yield _row(run, call, judged)


def _judged(call: Call) -> Mapping[str, Any]:
    """The result and the values of a sample; of several that is one part of the item's."""
    outcome = call.outcome
    if PARTS not in outcome.values:
        return {"result": outcome.result, "values": outcome.values}
    part: Mapping[str, Any] = outcome.values[PARTS][call.sample]
    return part


def _row(run: Run, call: Call, judged: Mapping[str, Any]) -> dict[str, Any]:
    outcome, reply = call.outcome, call.request.reply
    reading = next(one for one in reply.readings.all() if one.parser == run.parser)
    texts, slug = outcome.revision.texts, run.project.slug
    # Of one sample alone the key is as short as ever, so that an audit can be made again.
    sample = f"/{call.sample + 1}" if run.samples > 1 else ""
    is_right = (judged["result"] == Outcome.Result.DETECTED) is not outcome.invariant
    return {
        "key": _key(f"{slug}/{run.number}/{outcome.item.key}{sample}"),
        "category": outcome.category,
        "cluster": f"{slug}/{outcome.cluster}",
        "input": _input(run, texts),
        "response": _response(run, texts),
        "explanation": reading.explanation.strip() or reply.text,
        "verdict": _verdict(run, reading, judged["values"].get("gold")),
        "verdict_right": _right(is_right, invariant=outcome.invariant),
        "truth": _truth(outcome),
        "known_errors": "" if outcome.invariant else texts.get("claim", ""),
        "project": slug,
        "item": outcome.item.key,
        "run": run.number,
        "endpoint": run.endpoint.name,
        "strategy": run.strategy.slug,
        "verdict_is_right": is_right,
        **({"sample": call.sample + 1} if sample else {}),
    }


def _key(key: str) -> str:
    if len(key) <= KEY_LENGTH:
        return key
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{key[: KEY_LENGTH - 17]}~{digest}"


def _input(run: Run, texts: dict[str, str]) -> str:
    if run.strategy.strategy().frame != "reference":
        return texts["prompt"]
    return f"{texts['prompt']}\n\nReference answer that the evaluator saw:\n{texts['gold']}"


def _response(run: Run, texts: dict[str, str]) -> str:
    _, shown = _SHOWN[run.strategy.strategy().frame]
    parts = [f"{title}:\n{texts[name]}" if title else texts[name] for title, name in shown.items()]
    return "\n\n".join(parts)


def _verdict(run: Run, reading: Reading, gold: float | None) -> str:
    """What the evaluator answered, in words; a score with its scale."""
    strategy = run.strategy.strategy()
    if strategy.scale is None:
        return str(reading.value)
    scale = f"on a scale of {strategy.scale.low:g} to {strategy.scale.high:g}"
    said = f"{float(str(reading.value)):g} {scale}"
    return said if gold is None else f"{said}; it gave the unchanged answer {gold:g}"


def _right(is_right: bool, *, invariant: bool) -> str:
    """Whether the run was right about the item, by what the project holds true of it."""
    if invariant:
        words = "it took nothing off" if is_right else "it took a good change for an error"
    else:
        words = "it noticed the error" if is_right else "it did not notice the error"
    return f"{'Yes' if is_right else 'No'}: {words}."


def _truth(outcome: Outcome) -> str:
    if outcome.invariant:
        return "The answer was changed, and is worth as much as before."
    category = taxonomy.load().find(outcome.category)
    name = category.name.lower() if category else outcome.category
    return f"The answer was changed so that it has an error ({name})."
