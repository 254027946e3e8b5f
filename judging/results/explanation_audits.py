"""Audits: evaluators' explanations as items for people to judge (study 001, section 4.2, figure 6).

Each item of an audit is one evaluator's explanation for one item that it judged, with the verdict
and whether the verdict was right. If a run has several samples, each sample's explanation is an
item. The same items are drawn for every run, so that evaluators differ only in their explanations.
No item shows the name of the evaluator. The judged item's final label decides whether a verdict was
right: a detection must agree with the label; for a rating or rubric the deciding number (the total
of a score matrix) must equal people's.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, NamedTuple

from django.db.models import (
    Case,
    Exists,
    F,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    Value,
    When,
)
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce, Concat

from annotation import importing, tasktypes
from annotation.db import transactions
from annotation.items import taxonomy
from annotation.labelling import correct_answers
from annotation.models import Account, Item, Label, Membership, Project, Resolution, Role
from annotation.projects import creation, encrypted_archives
from formats.rows import BadRow, Row
from judging.models import Call, Outcome, Reading, Run
from judging.results import metric_scales
from judging.results.metric_scales import ScoredMetric
from judging.runs.models import CallQuerySet, OutcomeQuerySet
from judging.strategies import TOTAL, Strategy, frames, schema
from judging.strategies.frames import CallSpec
from judging.strategies.replies import json_objects, outputs
from judging.strategies.replies.combination import PARTS_KEY
from stats.lots import draw_number

TASK = "explanation-audit"
KEY_LENGTH = 200
# A longer text is more than one word, even in scripts without spaces.
LONGEST_WORD = 20
_FENCES = re.compile(r"\A\s*```[\w-]{0,20}\s|```\s*\Z")
REFERENCE = "Reference answer that the evaluator saw:"
# People's judgements of an explanation; "open" means that it is not judged yet.
QUALITIES = ("correct", "insufficient", "wrong", "none")
UNJUDGED = "open"

PARSED_RESULTS = frozenset({Outcome.Result.DETECTED, Outcome.Result.UNDETECTED})
# For each frame: the call whose explanation is judged, and the titles of the texts in that call.
_CALLS_BY_FRAME: dict[str, tuple[CallSpec, dict[str, str]]] = {
    "single": (CallSpec("perturbed"), {"": "perturbed"}),
    "reference": (CallSpec("perturbed"), {"": "perturbed"}),
    "pair": (CallSpec("pair", 1), {"Answer A": "gold", "Answer B": "perturbed"}),
    "detection": (CallSpec("response"), {"": "response"}),
    "rating": (CallSpec("response"), {"": "response"}),
    "rubric": (CallSpec("response"), {"": "response"}),
}
_SCORED = ("rating", "rubric")
_DETECTION_TITLES = {"error": "An error", "no_error": "No error"}
_NEAR = 1e-9


class AuditRefused(ValueError):
    """An audit that cannot be created; the message says what to do."""


class ExplainedVerdict(NamedTuple):
    """An evaluator's verdict in words, whether the verdict was right, and in what way."""

    words: str
    is_right: bool
    how: str


class ItemTruth(NamedTuple):
    """The final label of an item, its values by field, and people's texts about its errors."""

    value: str
    values: Mapping[str, Any]
    errors: str


@dataclass(frozen=True)
class CreatedAudit:
    """An audit: its project, the number of drawn items, the number of items that all runs decided
    (`available`), and the report of the import of the explanations."""

    project: Project
    drawn: int
    available: int
    report: importing.ItemImportReport


def create_audit(
    runs: Sequence[Run], *, n: int, seed: int, into: str, member: Membership | None = None
) -> CreatedAudit:
    """Draw `n` items that all runs decided, and create an audit item for each explanation of these
    items.

    The draw depends only on the seed and the keys, so repeating it adds nothing, and a larger n
    adds to the earlier draw. A reply with only the JSON of a verdict has no explanation, so it is
    reported as a bad row. The project is created if necessary. Raises `AuditRefused` for runs
    without explanations or without common items, and for a project with another task type or whose
    labels would not count (see `_audits_of`).
    """
    for run in runs:
        _check_run(run)
    shared = _shared_keys(runs)
    drawn = sorted(shared, key=lambda key: draw_number(f"audit\0{seed}\0{key}"))[:n]
    if not drawn:
        raise AuditRefused("These runs have no common item with an outcome. Choose other runs.")
    project = _get_or_create_project(into, runs)
    task = tasktypes.load_version(project.task_type)
    rows = sorted(
        _audit_rows(runs, drawn), key=lambda row: draw_number(f"audit\0{seed}\0{row['key']}")
    )
    made = (_made(number, row) for number, row in enumerate(rows, start=1))
    if any(run.project.sealed for run in runs):
        encrypted_archives.seal_project(project, member.pk if member else None)
    report = importing.store_items(project, importing.parse_items(made, task), member=member)
    return CreatedAudit(project, len(drawn), len(shared), report)


def _made(number: int, row: dict[str, Any]) -> Row | BadRow:
    if row["explanation"]:
        return Row("audit", number, row)
    reason = (
        f"Run {row['run']} has no explanation for {row['item']}, only a verdict. Use a "
        "strategy with explanations, or audit another run."
    )
    return BadRow("audit", number, "explanation", reason)


def audited_explanations(project: Project) -> QuerySet[Any]:
    """The explanations of the project's runs in its audits.

    Outcomes that figures leave out have none: whether their verdicts were right was decided by what
    held when the audit was created.
    """
    # Nearly always there are none. In one query, PostgreSQL would read the fields of all items.
    audits = list(_audits_of(project).values_list("pk", flat=True))
    found = Item.objects.live().of_tests().filter(project__in=audits).order_by()
    found = found.filter(fields__project=project.slug)
    found = found.alias(
        judged_run=Cast(KT("fields__run"), TextField()),
        judged_item=Cast(KT("fields__item"), TextField()),
    )
    left_out = Outcome.objects.not_counted().main().alias(number=Cast("run__number", TextField()))
    left_out = left_out.filter(
        run__project=project, number=OuterRef("judged_run"),
        item__project=project, item__key=OuterRef("judged_item"),
    )  # fmt: skip
    return found.filter(~Exists(left_out))


def judged_explanations(project: Project) -> QuerySet[Any]:
    """The audited explanations, with `of` ("project/run/item", by slug, number and key), the
    verdict "right" or "wrong", and the judged `quality`.

    An explanation of a rating that was right when the audit was created, and is wrong by today's
    numbers of people, is left out, and so is the other way round.
    """
    held = Resolution.objects.current().filter(item=OuterRef("pk"), value__in=QUALITIES)
    found = audited_explanations(project)
    if any(field.is_number for field in tasktypes.load_task_type(project).fields):
        found = found.exclude(pk__among=_list_changed_ratings(project, found))
    return found.alias(is_right=Cast(KT("fields__verdict_is_right"), TextField())).annotate(
        of=_join_key(KT("fields__project"), KT("fields__run"), KT("fields__item")),
        # The forms in which databases return a JSON true.
        verdict=Case(When(is_right__in=["true", "1"], then=Value("right")), default=Value("wrong")),
        quality=Coalesce(Subquery(held.values("value")[:1]), Value(UNJUDGED)),
    )


def _list_changed_ratings(project: Project, found: QuerySet[Any]) -> list[int]:
    """The ids of the explanations of ratings that people's numbers of today make right or wrong,
    unlike those that held when the audit was created."""
    by_run: dict[int, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
    for pk, fields in found.values_list("pk", "fields"):
        # Anybody can import items with such fields, and other values.
        number = str(fields.get("run"))
        if number.isdecimal() and isinstance(fields.get("item"), str):
            by_run[int(number[:10])].append((pk, fields))
    changed = list[int]()
    for run in Run.objects.in_project(project).for_results().numbered(by_run):
        if run.pinned_strategy().frame not in _SCORED:
            continue
        keys = {fields["item"] for _, fields in by_run[run.number]}
        outcomes = run.outcomes.counted().main().filter(item__key__among=keys)
        named = outcomes.select_related("item").only("item__key", "result", "values")
        by_key = {one.item.key: one for one in named}
        truths = _load_truths(run, [one.item_id for one in by_key.values()])
        metrics = _deciding_metrics(run)
        for pk, fields in by_run[run.number]:
            outcome, sample = by_key.get(fields["item"]), fields.get("sample", 1)
            truth = truths.get(outcome.item_id) if outcome else None
            if outcome is None or truth is None or sample not in range(1, run.samples + 1):
                continue
            judged = _sample_result(outcome, int(sample) - 1)
            is_right = _scores_match(metrics, truth.values, judged["values"])
            if is_right is not (fields.get("verdict_is_right") in (True, "true", "1")):
                changed.append(pk)
    return changed


def _audits_of(project: Project) -> QuerySet[Project]:
    """The audits that count for a project. Everybody who creates projects can create an audit and
    import items that name any project, so a lead of the project or a site admin must lead it. A
    command creates one without leads if the project has none."""
    leads = Membership.objects.filter(project=OuterRef("pk"), role=Role.LEAD)
    own = project.members.filter(role=Role.LEAD, active=True).values("account")
    trusted = leads.filter(Q(account__in=own) | Q(account__is_superuser=True), active=True)
    # A lead may have adapted the task type, see `versions.version_slug`.
    audits = Project.objects.filter(
        Q(task_type__slug=TASK) | Q(task_type__slug__startswith=f"{TASK}--")
    )
    return audits.filter(Exists(trusted) | ~Exists(leads))


def filter_outcomes(found: OutcomeQuerySet, verdict: str, quality: str = "") -> OutcomeQuerySet:
    """The outcomes with an audited explanation of this verdict ("right" or "wrong") and, if given,
    of this quality."""
    project = Project.objects.filter(runs__in=found.order_by().values("run")).first()
    if project is None:
        return found.none()
    such = judged_explanations(project).filter(verdict=verdict)
    such = such.filter(quality=quality) if quality else such
    own = _join_key(F("run__project__slug"), F("run__number"), F("item__key"))
    return found.alias(of=own).filter(of__in=such.values("of"))


def _join_key(project: Any, run: Any, item: Any) -> Concat:
    one, two, three = (Cast(part, TextField()) for part in (project, run, item))
    slash = Value("/", TextField())
    return Concat(one, slash, two, slash, three)


def _check_run(run: Run) -> None:
    strategy = run.pinned_strategy()
    if not strategy.explanation or strategy.frame not in _CALLS_BY_FRAME:
        raise AuditRefused(
            f"Run {run.number} ({run.strategy.slug}) asks for no explanation. Choose a run whose "
            "strategy does."
        )
    if run.kind == Run.Kind.RECORDED and not _answered_calls(run).exists():
        raise AuditRefused(
            f"Run {run.number} was recorded without the texts of its replies, so it has no "
            "explanations. Import the replies with their texts."
        )
    if strategy.frame in _SCORED and not all(one.is_comparable for one in _deciding_metrics(run)):
        raise AuditRefused(
            f"Run {run.number} ({run.strategy.slug}) uses criteria or a scale that annotators did "
            "not use, so its verdicts cannot be checked. Choose a run whose strategy uses the "
            "criteria of the project's task."
        )


def _deciding_metrics(run: Run) -> list[ScoredMetric]:
    """The metrics that decide whether a run's numbers for an item are right."""
    strategy, task = run.pinned_strategy(), tasktypes.load_task_type(run.project)
    found = metric_scales.strategy_metrics(strategy, task)
    return [one for one in found if one.value == strategy.decides] or found


def _shared_keys(runs: Sequence[Run]) -> set[str]:
    """The keys of the items that every run decided and whose final label has not changed since."""
    found = [_decided_keys(run) for run in runs]
    return set.intersection(*found) if found else set()


def _decided_keys(run: Run) -> set[str]:
    """The keys of the items with a stored reply of the run and a verdict that is right or wrong."""
    counted = run.outcomes.counted().main().filter(pk__in=_answered_calls(run).values("outcome"))
    if run.pinned_strategy().frame not in _SCORED:
        return set(counted.parsed().values_list("item__key", flat=True))
    scored = list(counted.filter(result=Outcome.Result.SCORED).select_related("item"))
    truths, metrics = _load_truths(run, [one.item_id for one in scored]), _deciding_metrics(run)
    return {
        one.item.key
        for one in scored
        if _scores_match(metrics, truths[one.item_id].values, one.values) is not None
    }


def _answered_calls(run: Run) -> CallQuerySet:
    """The calls of a run with stored replies."""
    return Call.objects.filter(run=run, request__reply__isnull=False)


def _load_truths(run: Run, items: Sequence[int]) -> dict[int, ItemTruth]:
    """Load the final labels of these items by id. `errors` is the comment of the resolution or,
    without a comment, the texts of current labels with the same answer."""
    task = tasktypes.load_task_type(run.project)
    texts = [field.name for field in task.fields if field.in_own_words]
    said: dict[tuple[int, str], list[str]] = defaultdict(list)
    labels = Label.objects.filter(item__in=items, current=True, counted=True).order_by("pk")
    for item, choice, answered in labels.values_list("item", "choice", "answers"):
        words = (str(answered.get(name, "")).strip() for name in texts)
        said[item, choice] += [one for one in words if one and one not in said[item, choice]]
    held = Resolution.objects.current().filter(item__in=items)
    return {
        item: ItemTruth(value, values, comment.strip() or "\n\n".join(said[item, value]))
        for item, value, values, comment in held.values_list("item", "value", "values", "comment")
    }


def _get_or_create_project(slug: str, runs: Sequence[Run]) -> Project:
    """The project of the audit; a new one gets the leads of the runs' projects as its leads."""
    project = Project.objects.filter(slug=slug).select_related("task_type").first()
    if project is None:
        leads = Membership.objects.filter(
            project__in={run.project_id for run in runs}, role=Role.LEAD, active=True
        )
        accounts = Account.objects.filter(memberships__in=leads).distinct().order_by("pk")
        with transactions.transact():
            project = importing.create_audited_project(slug, task_type=TASK)
            for account in accounts:
                creation.add_lead(project, account, by_command=True)
        return project
    if project.task_type.file_slug != TASK:
        raise AuditRefused(
            f"The project {slug!r} has the task type {project.task_type.slug!r}. An audit needs "
            f"the task type {TASK!r}. Choose another project."
        )
    for judged in {run.project for run in runs}:
        if not _audits_of(judged).filter(pk=project.pk).exists():
            raise AuditRefused(
                f"No lead of the project {judged.slug!r} leads the project {slug!r}, so its labels "
                "would not count. Add one as a lead first, or choose another project."
            )
    return project


def _audit_rows(runs: Sequence[Run], keys: list[str]) -> Iterator[dict[str, Any]]:
    for run in runs:
        strategy = run.pinned_strategy()
        spec, _ = _CALLS_BY_FRAME[strategy.frame]
        found = _answered_calls(run).filter(outcome__main=True, outcome__item__key__in=keys)
        # In a chain, the explanation is in the reply of the last step.
        found = found.filter(role=spec.role, order=spec.order, step=strategy.last_step)
        found = found.select_related("outcome__item", "outcome__revision", "request__reply")
        # As when the outcome was decided: by the last supplement that gave a usable reply.
        decided: dict[tuple[int, int], Call] = {}
        for call in found.prefetch_related("request__reply__readings").order_by("supplement", "pk"):
            place = call.outcome_id, call.sample
            if place not in decided or any(not one.cause for one in _readings(run, call)[:1]):
                decided[place] = call
        calls = list(decided.values())
        truths = _load_truths(run, [call.outcome.item_id for call in calls])
        for call in calls:
            truth = truths[call.outcome.item_id]
            if verdict := _verdict(run, call, truth):
                yield _audit_row(run, call, verdict, truth)


def _sample_result(outcome: Outcome, sample: int) -> Mapping[str, Any]:
    """The result and values of a sample. With several samples, they come from the sample's part of
    the outcome."""
    if PARTS_KEY not in outcome.values:
        return {"result": outcome.result, "values": outcome.values}
    part: Mapping[str, Any] = outcome.values[PARTS_KEY][sample]
    return part


def _readings(run: Run, call: Call) -> list[Reading]:
    """The readings of a reply: first by the run's parser, then by the strategy's parser."""
    names = [run.parser, outputs.get_parser_version(run.pinned_strategy())]
    there = {one.parser: one for one in call.request.reply.readings.all()}
    return [there[name] for name in dict.fromkeys(names) if name in there]


def _audit_row(run: Run, call: Call, verdict: ExplainedVerdict, truth: ItemTruth) -> dict[str, Any]:
    outcome = call.outcome
    texts, slug = outcome.revision.texts, run.project.slug
    # A single sample adds nothing to the key, so that earlier audits can be created again.
    sample = f"/{call.sample + 1}" if run.samples > 1 else ""
    return {
        "key": _key(f"{slug}/{run.number}/{outcome.item.key}{sample}"),
        "category": outcome.category,
        "cluster": f"{slug}/{outcome.cluster}",
        "input": _input(run.pinned_strategy(), texts),
        "response": _response(run.pinned_strategy(), texts),
        "explanation": _explanation(run, call),
        "verdict": verdict.words,
        "verdict_right": f"{'Yes' if verdict.is_right else 'No'}: {verdict.how}.",
        "truth": _truth_text(run, outcome, truth),
        "known_errors": _errors_text(run, outcome, truth),
        "project": slug,
        "item": outcome.item.key,
        "run": run.number,
        "endpoint": run.endpoint.name,
        "strategy": run.strategy.slug,
        "verdict_is_right": verdict.is_right,
        **({"sample": call.sample + 1} if sample else {}),
    }


def _explanation(run: Run, call: Call) -> str:
    """The parsed explanation, or the whole reply if there is none; "" if the reply is only the JSON
    of a verdict."""
    read = (reading.explanation.strip() for reading in _readings(run, call))
    text = call.request.reply.text
    return next(filter(None, read), "") or ("" if _is_bare(run.pinned_strategy(), text) else text)


def _is_bare(strategy: Strategy, text: str) -> bool:
    """True if a reply is one JSON object, in a code block or not, that has no words besides the
    answer. Every other field is checked, since models may use another name for the explanation."""
    fields = json_objects.parse_whole(_FENCES.sub("", text))
    output = outputs.OUTPUTS.get(strategy.step(strategy.last_step).output)
    answers_in = output.keys(strategy) if output else frozenset()
    beside = [
        value
        for name, value in fields.items()
        if name not in answers_in or not isinstance(value, str)
    ]
    said = (one.strip() for one in _strings(beside))
    return bool(fields) and not any(" " in one or len(one) > LONGEST_WORD for one in said)


def _strings(value: Any) -> Iterator[str]:
    """The texts in nested lists and objects."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _strings(one)


def _key(key: str) -> str:
    if len(key) <= KEY_LENGTH:
        return key
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{key[: KEY_LENGTH - 17]}~{digest}"


def _input(strategy: Strategy, texts: Mapping[str, Any]) -> str:
    spec, _ = _CALLS_BY_FRAME[strategy.frame]
    sources = frames.FRAMES[strategy.frame][spec]
    asked = _text(texts, sources["question"], spec)
    shown = schema.find_names(strategy.step(strategy.last_step).prompt) & sources.keys()
    gold = _text(texts, sources["reference"], spec) if "reference" in shown else ""
    return f"{asked}\n\n{REFERENCE}\n{gold}" if gold else asked


def _response(strategy: Strategy, texts: Mapping[str, Any]) -> str:
    spec, shown = _CALLS_BY_FRAME[strategy.frame]
    parts = {title: _text(texts, name, spec) for title, name in shown.items()}
    return "\n\n".join(f"{title}:\n{text}" if title else text for title, text in parts.items())


def _text(texts: Mapping[str, Any], name: str, spec: CallSpec) -> str:
    """A text as shown in a prompt; "" if the item does not have the text, as in some recorded
    runs."""
    there = name in texts or (name == "question" and texts.keys() & {"prompt", "input"})
    return frames.format_text(texts, name, spec) if there else ""


def _verdict(run: Run, call: Call, truth: ItemTruth) -> ExplainedVerdict | None:
    """The verdict of a reply, and whether the verdict is right; None if it is neither right nor
    wrong."""
    if run.pinned_strategy().frame == "detection":
        said = next((one.value for one in _readings(run, call)), None)
        return _detection_verdict(str(said), truth.value) if said in _DETECTION_TITLES else None
    judged = _sample_result(call.outcome, call.sample)
    if run.pinned_strategy().frame in _SCORED:
        return _score_verdict(run, judged["values"], truth)
    return _perturbation_verdict(run, call, judged) if judged["result"] in PARSED_RESULTS else None


def _detection_verdict(said: str, truth: str) -> ExplainedVerdict:
    how = {
        ("error", "error"): "it found that there is an error",
        ("no_error", "no_error"): "it found no error, and there is none",
        ("error", "no_error"): "it saw an error where there is none",
        ("no_error", "error"): "it did not see that there is an error",
    }
    return ExplainedVerdict(_DETECTION_TITLES[said], said == truth, how[said, truth])


def _score_verdict(
    run: Run, values: Mapping[str, Any], truth: ItemTruth
) -> ExplainedVerdict | None:
    deciding = _deciding_metrics(run)
    is_right = _scores_match(deciding, truth.values, values)
    if is_right is None:
        return None
    every = metric_scales.strategy_metrics(
        run.pinned_strategy(), tasktypes.load_task_type(run.project)
    )
    given = (_format_number(one, one.of_evaluator(values), with_scale=True) for one in every)
    people = ", ".join(_format_number(one, one.of_people(truth.values)) for one in deciding)
    how = "it gave what people gave" if is_right else "people gave something else"
    return ExplainedVerdict("\n".join(given), is_right, f"{how} ({people})")


def _scores_match(
    metrics: Sequence[ScoredMetric], held: Mapping[str, Any], values: Mapping[str, Any]
) -> bool | None:
    """True if an evaluator's numbers equal people's; None if one of the numbers is missing."""
    apart = [abs(one.of_people(held) - one.of_evaluator(values)) for one in metrics]
    return None if any(map(isnan, apart)) else all(one < _NEAR for one in apart)


def _format_number(metric: ScoredMetric, number: float, *, with_scale: bool = False) -> str:
    title = "Total" if metric.value == TOTAL else metric.titles[0]
    scale = metric.evaluator if with_scale else None
    of = f" on a scale of {scale.low:g} to {scale.high:g}" if scale else ""
    return f"{title} {'–' if isnan(number) else f'{number:g}'}{of}"


def _perturbation_verdict(run: Run, call: Call, judged: Mapping[str, Any]) -> ExplainedVerdict:
    """The verdict on a perturbed answer. It is right if an error is detected, or if a
    score-invariant change is not detected."""
    invariant = call.outcome.invariant
    is_right = (judged["result"] == Outcome.Result.DETECTED) is not invariant
    if invariant:
        how = "it took nothing off" if is_right else "it took a good change for an error"
    else:
        how = "it noticed the error" if is_right else "it did not notice the error"
    value, strategy = _readings(run, call)[0].value, run.pinned_strategy()
    if strategy.scale is None:
        return ExplainedVerdict(str(value), is_right, how)
    said = f"{float(str(value)):g} on a scale of {strategy.scale.low:g} to {strategy.scale.high:g}"
    gold = judged["values"].get("gold")
    words = said if gold is None else f"{said}; it gave the unchanged answer {gold:g}"
    return ExplainedVerdict(words, is_right, how)


def _truth_text(run: Run, outcome: Outcome, truth: ItemTruth) -> str:
    if run.pinned_strategy().frame in ("detection", *_SCORED):
        return _resolution_text(run, truth)
    if outcome.invariant:
        return "The answer was changed, and is worth as much as before."
    category = taxonomy.load_taxonomy(run.project).find(outcome.category)
    name = category.name.lower() if category else outcome.category
    return f"The answer was changed so that it has an error ({name})."


def _resolution_text(run: Run, truth: ItemTruth) -> str:
    """The final answers of all fields, one per line."""
    task = tasktypes.load_task_type(run.project)
    held = dict(truth.values)
    if run.pinned_strategy().frame == "detection":
        held = {task.deciding.name: truth.value, **held}
    told = correct_answers.describe_answers(task, held)
    told += [("Total", f"{total:g}") for total in task.totals(held).values()]
    return "\n".join(f"{title}{'' if title[-1:] == '?' else ':'} {said}" for title, said in told)


def _errors_text(run: Run, outcome: Outcome, truth: ItemTruth) -> str:
    """The known errors: the claim of the change, or what people wrote."""
    if run.pinned_strategy().frame in ("detection", *_SCORED):
        return "" if truth.value == "no_error" else truth.errors
    return "" if outcome.invariant else str(outcome.revision.texts.get("claim", ""))
