"""Pin everything that a run depends on, with one digest, and check its overrides."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import connection
from django.db.models import Max
from django.db.models.functions import Collate

from annotation import tasktypes
from annotation.items import taxonomy
from annotation.models import Project
from judging.errors import Refused
from judging.evaluators.providers.parameters import UNSTORABLE, is_storable
from judging.models import Endpoint, Outcome, Run, StrategyVersion
from judging.runs import run_config
from judging.runs.engine import digests
from judging.runs.run_config import ALL_AXES, MAIN_AXIS, NO_OVERRIDES, RunOverrides
from judging.runs.run_items import COPIED_COLUMNS, DrawnItems
from judging.strategies import Strategy, StrategyError, criteria, draws, frames, schema
from judging.strategies.definitions import MAX_EXAMPLES, SECRET_NAME
from judging.strategies.replies import outputs

MAX_LANGUAGE = 60
# Keys in `pinned` that are only notes; the results of a run do not depend on them.
TRANSIENT_KEYS = ("rereading", "pilot", run_config.TIMEOUT_KEY, run_config.SAMPLE_KEY)


def check_overrides(strategy: Strategy, own: RunOverrides, samples: int) -> None:
    """Raise `Refused` for overrides that do not fit the strategy; the message says what to do
    instead."""
    _check_axes(strategy, own.axes or ())
    if own.votes and samples < 2:
        raise Refused("Votes need at least 2 samples per call.")
    if own.guidance and "guidance" not in _list_placeholders(strategy):
        raise Refused(
            f"The prompt of strategy {strategy.slug} has no slot for guidance. Leave it out."
        )
    if own.examples is not None:
        _check_examples(strategy, own.examples)
    try:
        draws.set_shares(strategy, own.draws)
    except ValueError as problem:
        raise Refused(str(problem)) from problem
    if not is_storable(own.guidance):
        raise Refused("The guidance contains a character that cannot be sent. Remove it.")
    check_parameters(own.parameters)


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Raise `Refused` for parameters that cannot be stored, or that look like a key."""
    if not is_storable(parameters):
        raise Refused(f"The parameters contain {UNSTORABLE}. Remove it.")
    if secret := next(filter(SECRET_NAME.search, parameters), None):
        raise Refused(
            f"{secret!r} looks like a key. Parameters are stored and shown; put the key into the "
            "environment variable named at the endpoint."
        )


def _list_placeholders(strategy: Strategy) -> set[str]:
    return schema.find_names(strategy.step(strategy.last_step).prompt)


def _check_axes(strategy: Strategy, axes: tuple[str, ...]) -> None:
    known = [axis.slug for axis in strategy.axes]
    if axes and not known:
        raise Refused(f"Strategy {strategy.slug} has no axes. Choose none.")
    if unknown := [axis for axis in axes if axis not in {*known, MAIN_AXIS, ALL_AXES}]:
        raise Refused(
            f"Strategy {strategy.slug} has no axis {unknown[0]!r}. Choose from {', '.join(known)}, "
            f"{MAIN_AXIS} for the axis of each item's ability, or {ALL_AXES}."
        )


def check_language(strategy: Strategy, language: str) -> None:
    """Raise `Refused` for a translation without a language or with one that cannot stand in a
    prompt, and for a language in a run that translates nothing."""
    if not strategy.translates:
        if language:
            raise Refused(f"Strategy {strategy.slug} translates nothing. Leave out the language.")
        return
    if not language:
        raise Refused("Choose the language to translate into, for example Swedish.")
    is_name = language[0].isalpha() and language.isprintable() and is_storable(language)
    if len(language) > MAX_LANGUAGE or not is_name:
        raise Refused(
            f"Write the name of one language in at most {MAX_LANGUAGE} characters, for example "
            "Brazilian Portuguese."
        )


def _check_examples(strategy: Strategy, examples: int) -> None:
    if examples and not strategy.examples:
        raise Refused(
            f"The prompt of strategy {strategy.slug} has no slot for examples. Leave their number "
            "empty."
        )
    if not 0 <= examples <= MAX_EXAMPLES:
        raise Refused(f"Choose up to {MAX_EXAMPLES} examples; 0 shows none.")


def draft_run(
    project: Project,
    version: StrategyVersion,
    endpoint: Endpoint,
    *,
    own: RunOverrides = NO_OVERRIDES,
    **values: Any,
) -> Run:
    """Build an unsaved run with everything that is needed to render its prompts, except its items.

    Metrics that the strategy takes from the task type are pinned, and so are the overrides in
    `own`. Raises `Refused` for overrides or metrics that do not fit the strategy.
    """
    asked = version.strategy()
    pinned = endpoint.pinned(asked.parameters, own.parameters) | _pin_task_metrics(project, asked)
    pinned |= _pin_categories(project, asked)
    if held := own.pinned():
        check_overrides(asked, own, values.get("samples", asked.samples))
        pinned[run_config.OVERRIDES_KEY] = held
    try:
        strategy = run_config.build_strategy(asked, pinned)
    except StrategyError as error:
        raise Refused(str(error)) from error
    return Run(
        project=project,
        strategy=version,
        endpoint=endpoint,
        pinned=pinned,
        generates=strategy.generates,
        parser=outputs.get_parser_version(strategy),
        renderer=frames.RENDERER,
        taxonomy_id=project.taxonomy_id,
        **{"samples": strategy.samples, **values},
    )


def repin_endpoint(run: Run, endpoint: Endpoint) -> dict[str, Any]:
    """Return the pins that a stored run would have with another endpoint and no other change.
    Supplements are left out: they asked the former endpoint."""
    asked, own = run.strategy.strategy(), run_config.load_overrides(run.pinned)
    kept = {name: pin for name, pin in run.pinned.items() if name != run_config.SUPPLEMENTS_KEY}
    return kept | endpoint.pinned(asked.parameters, own.parameters)


def _pin_categories(project: Project, strategy: Strategy) -> dict[str, Any]:
    """Return the project's categories, for a strategy that sorts into abilities or generates a
    category. The shipped ones need no pin."""
    uses = strategy.category or strategy.output == "ability"
    if not uses or project.taxonomy_id == taxonomy.shipped_digest():
        return {}
    return {"taxonomy": project.taxonomy.definition}


def _pin_task_metrics(project: Project, strategy: Strategy) -> dict[str, Any]:
    if strategy.metrics_from != "task":
        return {}
    task = tasktypes.load_version(project.task_type)
    return {
        "metrics": run_config.serialize_metrics(criteria.build_task_metrics(task)),
        "decides": task.deciding.name,
    }


def pin_examples(run: Run, examples: Sequence[dict[str, Any]]) -> None:
    """Pin the items that a draft shows as examples, with their current answers."""
    run.few_shot = [[row["key"], row["texts"]] for row in examples]
    if examples:
        run.pinned["answers"] = [row["answer"] for row in examples]


def store_run(run: Run, drawn: DrawnItems, *, sources: Iterable[Run] = ()) -> Run:
    """Save a draft with the next number and a pending outcome for each of its places."""
    last = Run.objects.in_project(run.project).aggregate(last=Max("number"))["last"] or 0
    pin_examples(run, drawn.examples)
    run.is_part = drawn.is_part
    if drawn.sample:
        run.pinned[run_config.SAMPLE_KEY] = drawn.sample
    rests_on = list(sources)
    items = sorted({(place["key"], place["texts"]) for place in drawn.places})
    run.number = last + 1
    said = sorted((place["key"], place["drawn"]) for place in drawn.places if place["drawn"])
    run.digest = _digest(run, items, [source.digest for source in rests_on], said)
    run.save()
    run.sources.set(rests_on)
    rows = (build_outcome(run, place) for place in drawn.places)
    Outcome.objects.bulk_create(rows, batch_size=500)
    return run


def compute_digest(run: Run) -> str:
    """Compute the digest of everything that a stored run pins now."""
    # Sorted by the database, as Python sorts: a million pairs are too many to keep in memory.
    in_code_points = "C" if connection.vendor == "postgresql" else "BINARY"
    keyed = run.outcomes.annotate(key=Collate("item__key", in_code_points))
    pairs = keyed.values_list("key", "revision__digest").order_by("key", "revision__digest")
    items = pairs.distinct().iterator(chunk_size=2_000)
    said = keyed.exclude(drawn__isnull=True).order_by("key").values_list("key", "drawn")
    return _digest(run, items, run.sources.values_list("digest", flat=True), list(said))


def build_outcome(run: Run, place: Mapping[str, Any]) -> Outcome:
    """Build the unsaved, pending outcome of a place."""
    return Outcome(run=run, **{name: place[name] for name in COPIED_COLUMNS})


def _digest(
    run: Run,
    items: Iterable[tuple[str, str]],
    sources: Iterable[str],
    drawn: Sequence[tuple[str, Any]],
) -> str:
    return digests.compute_run_digest(
        strategy=run.strategy.digest,
        renderer=run.renderer,
        parser=run.parser,
        endpoint={name: value for name, value in run.pinned.items() if name not in TRANSIENT_KEYS},
        items=items,
        few_shot=[(key, texts) for key, texts in run.few_shot],
        samples=run.samples,
        seed=run.seed,
        sources=sources,
        occasion=run.occasion,
        drawn=drawn,
    )
