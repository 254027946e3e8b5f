"""The methods paragraph: how the figures of some runs were obtained, generated from the data.

The paragraphs are two tables that are stored like those of figures, since their numbers are counted
over all items and outcomes: one of the data and people, one of the runs and figures. If a value is
undefined, the text says so. The sentences are in `methods.toml`.
"""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import isfinite, nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from django.conf import settings
from django.db.models import Count, Max, Min, QuerySet

from annotation import tasktypes
from annotation.items import taxonomy
from annotation.models import Item, Label, Project, Resolution, Stage
from annotation.reports import agreement, agreement_answers
from annotation.tasktypes import main_field
from formats.typeset import define_signs, escape_latex
from judging.archive.versions import program_version
from judging.evaluators import providers
from judging.evaluators.models import JSON_CHOICES
from judging.models import Outcome, Reply, Run
from judging.results import arrays, cells, columns, counted, figure_help, progress
from judging.results.columns import Table
from judging.results.metric_scales import SCORING_FRAMES
from judging.results.tables import compare, cost
from judging.results.tables.left_out import tabulate_left_out
from judging.runs import run_config, supplements, warnings
from judging.runs.amounts import format_estimate
from judging.runs.models import UNLABELLED, OutcomeQuerySet
from judging.runs.recorded.transcripts import STORED
from judging.strategies import Strategy, descriptions, markers
from judging.strategies.replies.causes import name_cause
from stats import bootstrap, paired

SENTENCES = Path(__file__).with_suffix(".toml")
CLASSES = {
    "valid": "with an error (valid)",
    "score-invariant": "score-invariant",
    "error": "with an error",
    "no_error": "without an error",
}
SOURCES = {
    "labels": "labels of annotators",
    "adjudicated": "adjudication",
    "imported": "import",
    "known": "known answers",
}
_VERDICTS = frozenset({"error", "no_error"})
_INVARIANT, _PAIR = "score-invariant", "pair"

Sentences = Iterator[str]


METHODS_PREAMBLE = "% In the preamble: \\usepackage[T1]{fontenc}, \\usepackage{lmodern, textcomp}\n"


@dataclass(frozen=True)
class MethodsText:
    """The paragraphs: data, annotation, each run, figures."""

    paragraphs: tuple[str, ...]

    @classmethod
    def from_tables(cls, tables: Iterable[Iterable[Mapping[str, Any]]]) -> "MethodsText":
        """The text in the rows of the tables `METHODS`."""
        return cls(tuple(row["text"] for rows in tables for row in rows))

    @property
    def text(self) -> str:
        """All paragraphs, separated by blank lines, with a line break at the end."""
        return "\n\n".join(self.paragraphs) + "\n"

    @property
    def latex(self) -> str:
        """The text for LaTeX, after a line that says what the preamble needs."""
        return METHODS_PREAMBLE + define_signs(
            "\n\n".join(map(escape_latex, self.paragraphs)) + "\n"
        )


def write_methods(project: Project, runs: Sequence[Run]) -> MethodsText:
    """Write the methods paragraph for the figures of these runs. Every number is counted again."""
    return MethodsText.from_tables(table.rows(project, runs, ()) for table in METHODS)


def _write_data(project: Project) -> Iterator[dict[str, Any]]:
    for sentences in (_data_sentences(project), _people_sentences(project)):
        yield {"text": " ".join(sentences)}


def _write_runs(project: Project, runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    left_out = {row["run"]: row for row in tabulate_left_out(runs)}
    sums = cost.sum_requests(runs)
    for run in progress.iterate(runs, "describing runs"):
        yield {"text": " ".join(_run_sentences(run, left_out[run.number], sums.get(run.pk)))}
    word_groups = taxonomy.load_taxonomy(project).word_groups
    yield {"text": " ".join(map(word_groups, _figure_sentences(runs)))}


def _data_settings(project: Project, runs: Sequence[Run]) -> list[Any]:
    """What the paragraphs of data and people say of the project's settings."""
    names = ("name", "overlap", "share_percent", "share_overlap", "verify", "blind_first")
    return [getattr(project, name) for name in names]


def _run_settings(project: Project, runs: Sequence[Run]) -> list[Any]:
    """What the paragraphs of runs and figures say of the program and of how figures are made, and
    the names of the runs, which may change."""
    texts = figure_help.TEXTS.read_text(encoding="utf-8")
    return [program_version(), texts, [run.name for run in runs], settings.CURRENCY]


def format_sentence(kind: str, name: str, **values: Any) -> str:
    """Fill in a sentence of `methods.toml`; integers get thousands separators, and words with [s]
    behind a number their plural."""
    said = _load_sentences()[kind][name].format(
        **{key: f"{one:,}" if type(one) is int else one for key, one in values.items()}
    )
    return _PLURAL.sub(lambda found: found[1] + found[2] + "s" * (found[1] != "1"), said)


_PLURAL = re.compile(r"\b(\d[\d,]*)((?: [A-Za-z-]+)+?)\[s\]")


@cache
def _load_sentences() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(SENTENCES.read_text(encoding="utf-8"))


def _data_sentences(project: Project) -> Sentences:
    every = Item.objects.filter(project=project)
    items = every.live().originals().of_tests()
    task = project.task_type
    sizes = items.aggregate(items=Count("pk"), clusters=Count("cluster", distinct=True))
    yield format_sentence(
        "data", "items", project=project.name, task=task.slug, version=task.number, **sizes
    )
    out = {
        "deleted": every.filter(deleted_at__isnull=False).count(),
        "duplicates": every.live().exclude(duplicate_of=None).count(),
        "qualification or control items": every.live().originals().exclude(purpose="test").count(),
    }
    if any(out.values()):
        yield format_sentence(
            "data", "left_out", number=sum(out.values()), reasons=_format_counts(out)
        )
    held = Resolution.objects.current().filter(item__in=items).order_by()
    sources = _tally(held, "source")
    resolved = sum(sources.values())
    if resolved:
        told = {SOURCES[name]: number for name, number in sources.items()}
        yield format_sentence(
            "data",
            "resolved",
            number=resolved,
            sources=_format_counts(told),
            values=_describe_labels(project, held),
        )
    if resolved < sizes["items"]:
        yield format_sentence("data", "unresolved", number=sizes["items"] - resolved)


def _describe_labels(project: Project, held: QuerySet[Resolution]) -> str:
    """How often each final label was given; of numbers, their range and median."""
    deciding = tasktypes.load_task_type(project).deciding
    if not deciding.is_number:
        return _format_counts(_tally(held, "value"))
    rows = held.annotate(number=main_field.load_main_field(project).of_resolution())
    # Numbers off the scale are missing, and earlier versions of the task may have asked for texts.
    found = [(_number_or_nan(value), n) for value, n in _tally(rows, "number").items()]
    counts = {number: n for number, n in found if isfinite(number)}
    if not counts:
        return _format_counts(_tally(held, "value"))
    told = {"low": min(counts), "median": np.median([*Counter(counts).elements()])}
    name = "total" if deciding.is_summed else deciding.title
    ends = {key: f"{number:g}" for key, number in {**told, "high": max(counts)}.items()}
    return format_sentence("data", "numbers", what=name, **ends)


def _people_sentences(project: Project) -> Sentences:
    labels = Label.objects.in_project(project).in_data_set()
    labels = labels.at_stage(Stage.LABEL).counted()
    sizes = labels.aggregate(labels=Count("pk"), people=Count("member", distinct=True))
    if not sizes["labels"]:
        yield format_sentence("people", "none")
        return
    yield format_sentence("people", "labels", overlap=project.overlap, **sizes)
    if project.share_percent:
        yield format_sentence(
            "people", "share", percent=project.share_percent, overlap=project.share_overlap
        )
    if project.verify:
        yield format_sentence("people", "second")
    if project.blind_first:
        yield format_sentence("people", "blind")
    if sizes["people"] > 1:
        yield _agreement_sentence(project)
    if seen := labels.filter(evaluator_seen=True).count():
        yield format_sentence("people", "seen", number=seen)


def _agreement_sentence(project: Project) -> str:
    """Return the sentence about Krippendorff's alpha for the deciding question, at the question's
    level of measurement.
    """
    question = agreement_answers.list_questions(project)[0]
    level = {"ordinal": "alpha-ordinal", "interval": "alpha-interval"}.get(
        question.level, "alpha-nominal"
    )
    rows = agreement.measure_agreement(project, question).rows_of(level, "alpha-nominal", people=0)
    found = next((row for row in rows if row.measure == level), rows[-1])
    field, measure = question.title, agreement.MEASURES[found.measure].title
    if found.value is None:
        return format_sentence("people", "agreement_undefined", field=field, reason=found.reason)
    told = {"field": field, "measure": measure, "value": _decimal(found.value), "n": found.n_items}
    if found.low is None or found.high is None:
        return format_sentence("people", "agreement_point", reason=found.reason, **told)
    low, high = _decimal(found.low), _decimal(found.high)
    return format_sentence("people", "agreement", low=low, high=high, **told)


def _run_sentences(
    run: Run, left_out: Mapping[str, Any], sums: Mapping[str, Any] | None
) -> Sentences:
    yield _prompt_sentence(run)
    yield from _protection_sentences(run.pinned_strategy(), run.kind)
    yield from _axis_sentences(run)
    if run.kind == Run.Kind.DERIVED:
        rule = " ".join(descriptions.describe_decision(run.pinned_strategy()))
        yield format_sentence("run", "rule", rule=rule)
    if weights := run.pinned_strategy().weights:
        named = ", ".join(f"{weight:.15g}" for weight in weights)
        yield format_sentence("run", "weights", sources=_sources(run), weights=named)
    if run.kind == Run.Kind.ASKED and (sources := _sources(run)):
        yield format_sentence("run", "over", sources=sources)
    if run.kind != Run.Kind.DERIVED and not _is_baseline(run):
        yield from _reply_sentences(run)
        if sums:
            yield from _token_sentences(sums)
    if run.samples > 1:
        yield format_sentence("run", _name_sampling(run.pinned_strategy()), samples=run.samples)
    if run.few_shot:
        yield format_sentence("run", "few_shot", number=len(run.few_shot))
    if run.occasion and not run.generates:
        yield format_sentence("run", "canary", occasion=run.occasion)
    if run.while_labelling:
        yield format_sentence("run", "while_labelling")
    yield from _item_sentences(run, left_out)


def _name_sampling(strategy: Strategy) -> str:
    """The name of the sentence that says how the samples of an item count."""
    if strategy.generates:
        return "samples"
    if strategy.frame in SCORING_FRAMES:
        return "medians" if strategy.votes else "means"
    if strategy.votes:
        return "votes"
    return "repeats" if strategy.frame in arrays.JUDGING_FRAMES else "verdicts"


def _prompt_sentence(run: Run) -> str:
    strategy = run.pinned_strategy()
    number = f"{run.number:,} ({run.name})" if run.name else run.number
    told = {"number": number, "strategy": run.strategy.slug, "version": run.strategy.number}
    if run.kind == Run.Kind.DERIVED:
        return format_sentence("run", "derived", sources=_sources(run), **told)
    if _is_baseline(run):
        return format_sentence("run", "offline", **told)
    scale = strategy.scale
    return format_sentence(
        "run",
        str(run.kind),
        what="replies" if run.calls.exists() else descriptions.describe_values(strategy),
        endpoint=run.pinned["name"],
        provider=providers.get_title(run.pinned["provider"]),
        model=run.pinned["model"],
        frame=f"frame {strategy.frame}",
        scale=f", scale {scale.low:g} to {scale.high:g}" if scale else "",
        **told,
    )


def _protection_sentences(strategy: Strategy, kind: str) -> Sentences:
    """What the prompts of an asked run lack against instructions inside the texts."""
    if kind != Run.Kind.ASKED or strategy.generates or not strategy.prompts:
        return
    lacking = []
    if not markers.has_markers(strategy.prompts):
        lacking.append("no marker lines around the texts")
    if not markers.has_guard(strategy.prompts):
        lacking.append("no sentence against instructions inside the texts")
    if lacking:
        yield format_sentence("run", "unprotected", lacking=" and ".join(lacking))


def _axis_sentences(run: Run) -> Sentences:
    axes = run_config.load_overrides(run.pinned).axes
    along = run_config.describe_axes(run.pinned_strategy(), axes)
    if along and run.kind == Run.Kind.ASKED:
        yield format_sentence("run", "axes", axes=along)
        if axes != (run_config.MAIN_AXIS,):
            yield format_sentence("run", "axes_more")


def _reply_sentences(run: Run) -> Sentences:
    replies = Reply.objects.filter(request__calls__run=run)
    named = replies.order_by().exclude(model="").values_list("model", flat=True)
    names = sorted(named.distinct())
    times = replies.aggregate(first=Min("asked_at"), last=Max("asked_at"))
    if times["first"]:
        yield (
            format_sentence("run", "model", models=_join_with_and(names))
            if names
            else format_sentence("run", "no_model")
        )
        facts = warnings.count_facts(run)
        for warning in warnings.list_warnings(run.pinned["model"], facts):
            total = sum(facts.models.values())
            yield format_sentence("run", warning.kind, number=warning.replies, total=total)
    again = [one for one in supplements.list_supplements(run) if one.asked]
    yield from _parameter_sentences(run, has_supplements=bool(again))
    if times["first"]:
        first, last = (times[name].strftime("%Y-%m-%d") for name in ("first", "last"))
        yield format_sentence("run", "day" if first == last else "dates", first=first, last=last)
    strategy = run.pinned_strategy()
    answers, how = descriptions.describe_answers(strategy), descriptions.describe_parsing(strategy)
    # Behind the version stand the settings of the strategy.
    version = run.parser.partition(" ")[0]
    if version == STORED:
        yield format_sentence("run", "stored")
    else:
        yield format_sentence("run", "parser", answers=answers, how=how, version=version)
    for one in again:
        said = json.dumps(dict(one.parameters), sort_keys=True, ensure_ascii=False)
        told = {"asked": one.asked, "usable": one.usable, "parameters": said}
        yield format_sentence("run", "supplement", **told)


def _token_sentences(sums: Mapping[str, Any]) -> Sentences:
    """Return sentences about thinking, tokens and cost, as far as they are known."""
    if sums["thinking"]:
        yield format_sentence("run", "thinking", number=sums["thinking"])
    if sums["answered"] and not sums["without_tokens"]:
        yield format_sentence(
            "run", "tokens", tokens_in=sums["tokens_in"], tokens_out=sums["tokens_out"]
        )
        parts = {
            "came from the provider's cache": sums["tokens_cached"],
            "were spent on thinking": sums["tokens_reasoning"],
        }
        if any(parts.values()):
            said = (f"{number:,} {what}" for what, number in parts.items() if number)
            yield format_sentence("run", "tokens_of", parts=" and ".join(said))
    if spent := sums["cost"]:
        yield format_sentence("run", "cost", cost=format_estimate(spent))


def _parameter_sentences(run: Run, *, has_supplements: bool) -> Sentences:
    """Return sentences about the parameters that were sent with the prompts, by us or by whoever
    recorded the replies, except by supplements.
    """
    sent = run.sends()
    said = json.dumps(sent, sort_keys=True, ensure_ascii=False)
    if run.kind != Run.Kind.ASKED:
        if sent:
            yield format_sentence("run", "parameters", parameters=said)
        return
    scope = format_sentence("run", "scope") if has_supplements else ""
    name = "sent" if sent else "sent_without"
    yield format_sentence("run", name, parameters=said, scope=scope)
    if left := [name for name, value in run.pinned["parameters"].items() if value is None]:
        yield format_sentence("run", "left_to_provider", names=_join_with_and(sorted(left)))
    if run.pinned.get("json_mode") and run.pinned_strategy().schema is not None:
        yield format_sentence("run", "json", form=JSON_CHOICES[run.pinned["json_mode"]])
    if run.pinned.get("template"):
        yield format_sentence("run", "template")


def _item_sentences(run: Run, left_out: Mapping[str, Any]) -> Sentences:
    counted = _counted(run)
    sizes = counted.aggregate(
        items=Count("item", distinct=True), clusters=Count("cluster", distinct=True)
    )
    if sizes["items"]:
        classes = _classes(counted)
        yield format_sentence("run", "judged", classes=_format_counts(classes), **sizes)
        yield from _sample_sentences(run)
        causes = {row["cause"]: row["n"] for row in counted.missing_by_cause()}
        if causes:
            number = sum(causes.values())
            named = {name_cause(cause): n for cause, n in causes.items()}
            yield format_sentence("run", "missing", number=number, causes=_format_counts(named))
        else:
            yield format_sentence("run", "none_missing")
    else:
        yield format_sentence("run", "nothing")
    if again := left_out["items_with_duplicates"] - left_out["items"]:
        yield format_sentence("run", "duplicates", number=again)
    where = "corrected rates and soft labels use"
    if run.pinned_strategy().metric:
        where = "ROUGE-L by task uses"
    for reason in ("pending", "other_revision", "unlabelled", "regrouped"):
        if left_out[reason]:
            yield format_sentence("run", reason, number=left_out[reason], where=where)


def _sample_sentences(run: Run) -> Sentences:
    """How the items were chosen, if they are part of those that could have been."""
    if sample := run.pinned.get(run_config.SAMPLE_KEY):
        # A seed is no count, so it gets no thousands separators.
        yield format_sentence("run", "sample", **{**sample, "seed": str(sample["seed"])})
    elif run.is_part:
        yield format_sentence("run", "part")


def _figure_sentences(runs: Sequence[Run]) -> Sentences:
    asked = counted.load_strategies(runs)
    rated = [run for run in runs if asked[run.pk].frame in arrays.JUDGING_FRAMES]
    truths = _truths(runs)
    bases = [*_list_bases(rated), *_list_other_bases(runs, asked)]
    yield from _outcome_sentences(runs)
    if rated:
        yield format_sentence("figures", "rates")
    if rated and _INVARIANT in truths:
        yield format_sentence("figures", "invariant")
    if truths & _VERDICTS:
        yield format_sentence("figures", "verdicts")
    if Outcome.objects.filter(run__in=runs, result=Outcome.Result.SCORED).exists():
        yield format_sentence("figures", "values")
    yield from _corrected_sentences(truths, asked)
    if rated or truths & _VERDICTS:
        yield from _interval_sentences("wilson", bases)
    if rated and _INVARIANT in truths:
        yield from _sensitivity_sentences(
            bases, of_pairs={asked[run.pk].frame for run in rated} == {_PAIR}
        )
    if runs:
        yield from _interval_sentences("bootstrap", bases)
        yield format_sentence("figures", "seed")
    if rated:
        yield from _test_sentences(len(rated), bases, of_j=_INVARIANT in truths)
    if runs:
        yield format_sentence("figures", "prompts")
    yield format_sentence("figures", "program", program=program_version())


def _outcome_sentences(runs: Sequence[Run]) -> Sentences:
    """What counts as which outcome, once for all runs with the same rule. Derived runs have said
    theirs."""
    alike: dict[str, list[Run]] = {}
    for run in runs:
        if run.kind != Run.Kind.DERIVED:
            decision = " ".join(descriptions.describe_outcome(run.pinned_strategy()))
            alike.setdefault(decision, []).append(run)
    for decision, some in alike.items():
        if decision:
            numbers = _join_with_and(str(run.number) for run in some)
            names = _join_with_and(dict.fromkeys(run.strategy.slug for run in some))
            told = {"runs": numbers, "strategies": names, "decision": decision}
            told["which"] = "runs" if len(some) > 1 else "run"
            yield format_sentence("figures", "outcome", **told)


def _corrected_sentences(truths: set[str], asked: Mapping[int, Strategy]) -> Sentences:
    if UNLABELLED in truths and any(one.frame == "detection" for one in asked.values()):
        yield format_sentence("figures", "corrected")
        yield from _interval_sentences("linearised")


def _sensitivity_sentences(bases: Sequence["_Basis"], *, of_pairs: bool) -> Sentences:
    """How J and, unless all runs judge pairs, d′ are made."""
    yield from _interval_sentences("newcombe", bases)
    if not of_pairs:
        formula = figure_help.load_figures()["d_prime"].formula
        yield format_sentence("figures", "d_prime", formula=formula)


def _test_sentences(runs: int, bases: Sequence["_Basis"], *, of_j: bool) -> Sentences:
    if runs > 1:
        limits = {
            "points": paired.MOST_POINTS,
            "draws": paired.DRAWS,
            "many": paired.MANY_CLUSTERS,
        }
        number = runs * (runs - 1) // 2
        pairs, correction = "", ""
        if number > 1:
            pairs, correction = f"over all {number:,} pairs ", " and Holm's correction"
        yield format_sentence(
            "figures", "holm", runs=runs, pairs=pairs, correction=correction, **limits
        )
        yield format_sentence("figures", "letters")
        if of_j:
            yield format_sentence("figures", "letters_j")
        yield from _interval_sentences("bonett_price", bases)
    yield format_sentence("figures", "exploratory")


def _interval_sentences(name: str, bases: Sequence["_Basis"] = ()) -> Sentences:
    """How these intervals are made, how often they contained the true value, and for which figures
    of the runs that was not measured."""
    said = figure_help.load_intervals()[name]
    yield said.how
    if said.measured:
        yield said.measured
    if said.questions and (outside := _find_outside(name, bases, *said.questions)):
        yield format_sentence("figures", "outside", figures="; ".join(outside))


class _Basis(NamedTuple):
    """How many questions a figure is over. If it is made of two rates, `fewest` and `most` are
    those of each. `runs` are the numbers of its run, or of the two that it compares."""

    interval: str
    figure: str
    runs: tuple[int, ...]
    fewest: int
    most: int


def _list_bases(runs: Sequence[Run]) -> Iterator[_Basis]:
    """The rates, J, d′ and differences of runs that judge errors and score-invariant items."""
    found = arrays.load_arrays(runs)
    for one in found:
        usable = ~np.isnan(one.detected)
        errors, calm = (
            np.unique(one.cluster[usable & side]) for side in (~one.invariant, one.invariant)
        )
        of = (one.run.number,)
        yield _Basis("wilson", "detection rates", of, errors.size, errors.size)
        yield _Basis("wilson", "false-alarm rates", of, calm.size, calm.size)
        if errors.size and calm.size:
            both = np.union1d(errors, calm).size
            sizes = sorted((errors.size, calm.size))
            yield _Basis("newcombe", "J", of, *sizes)
            if one.run.pinned_strategy().frame != _PAIR:
                yield _Basis("bootstrap", "d′", of, both, both)
    for a, b in combinations(found, 2):
        shared = compare.share_items(a, b)
        sides = {"detection": ~shared.invariant, "false alarms": shared.invariant}
        for name, side in sides.items():
            n = np.unique(shared.cluster[side]).size
            pair = (a.run.number, b.run.number)
            yield _Basis("bonett_price", f"differences of {name}", pair, n, n)


def _list_other_bases(runs: Sequence[Run], asked: Mapping[int, Strategy]) -> Iterator[_Basis]:
    """The figures of error detection and ratings, which are over all items."""
    for run in runs:
        frame = asked[run.pk].frame
        if frame in arrays.JUDGING_FRAMES:
            continue
        counted = _counted(run)
        every, errors = (
            some.aggregate(n=Count("cluster", distinct=True))["n"]
            for some in (counted, counted.filter(truth="error"))
        )
        of = (run.number,)
        if frame == "detection":
            yield _Basis("wilson", "recall", of, errors, errors)
            yield _Basis("wilson", "accuracy", of, every, every)
            yield _Basis("bootstrap", "F1 and MCC", of, every, every)
        elif frame in SCORING_FRAMES:
            yield _Basis("bootstrap", "figures of ratings", of, every, every)


def _find_outside(name: str, bases: Sequence[_Basis], low: int, high: int) -> list[str]:
    """The figures with such intervals over fewer questions than `low` or more than `high`, each
    with the numbers of questions and the runs. Over one question there is no interval, and a
    bootstrap has none over few."""
    least = bootstrap.FEWEST_CLUSTERS if name == "bootstrap" else 2
    numbers: dict[tuple[str, bool], list[int]] = {}
    who: dict[tuple[str, bool], list[tuple[int, ...]]] = {}
    for one in bases:
        if one.interval != name or one.fewest < least or low <= one.fewest <= one.most <= high:
            continue
        key = one.figure, one.fewest < low
        numbers.setdefault(key, []).append(one.fewest if one.fewest < low else one.most)
        who.setdefault(key, []).append(one.runs)
    return [
        f"{figure} over {cells.write_range(found)} questions ({_format_who(who[figure, is_few])})"
        for (figure, is_few), found in numbers.items()
    ]


def _format_who(runs: Sequence[tuple[int, ...]]) -> str:
    if len(runs[0]) > 1:
        return f"{len(runs):,} {'pair' if len(runs) == 1 else 'pairs'} of runs"
    numbers = _join_with_and(str(number) for (number,) in runs)
    return f"run{'s' if len(runs) > 1 else ''} {numbers}"


def _counted(run: Run) -> OutcomeQuerySet:
    """The outcomes of a run that count in headline figures, which leave out duplicates."""
    return Outcome.objects.counted().main().originals().filter(run=run)


def _classes(counted: OutcomeQuerySet) -> dict[str, int]:
    rows = counted.order_by().values("truth").annotate(n=Count("item", distinct=True))
    found = {row["truth"]: row["n"] for row in rows.order_by("-n", "truth")}
    return {CLASSES.get(name, name or "of any kind"): number for name, number in found.items()}


def _truths(runs: Sequence[Run]) -> set[str]:
    found = Outcome.objects.filter(run__in=runs).order_by()
    return set(found.values_list("truth", flat=True).distinct())


def _is_baseline(run: Run) -> bool:
    return run.pinned["provider"] == "baseline"


def _sources(run: Run) -> str:
    numbers = run.sources.order_by("number").values_list("number", flat=True)
    return _join_with_and(map(str, numbers))


def _number_or_nan(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return nan


def _tally(rows: Any, column: str) -> dict[str, int]:
    """Count the rows with each value, the most frequent value first."""
    counted = rows.values(column).annotate(n=Count("pk")).order_by("-n", column)
    return {row[column]: row["n"] for row in counted}


def _format_counts(counts: Mapping[str, int]) -> str:
    """Format names followed by their counts, so that no plural is needed."""
    return _join_with_and(f"{name} {number:,}" for name, number in counts.items() if number)


def _join_with_and(parts: Iterable[str]) -> str:
    return ", ".join(parts)


def _decimal(value: float) -> str:
    return f"{value:.3f}"


METHODS_OF_DATA = Table(
    "methods_of_data",
    columns.plain("text"),
    lambda project, runs, by: _write_data(project),
    of_items=True,
    settings=_data_settings,
    about="A row per paragraph of the methods section about the items and the people.",
)
METHODS_OF_RUNS = Table(
    "methods_of_runs",
    columns.plain("text"),
    lambda project, runs, by: _write_runs(project, runs),
    of_people=False,
    settings=_run_settings,
    about="A row per paragraph of the methods section about the runs.",
)
# In the order of the paragraphs.
METHODS = (METHODS_OF_DATA, METHODS_OF_RUNS)
