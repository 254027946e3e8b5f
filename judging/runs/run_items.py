"""Draw the items and the few-shot examples of a run, and build the columns that its outcomes copy
from the items."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from django.db.models import F

from annotation.items import taxonomy
from annotation.items.taxonomy import Taxonomy
from annotation.labelling.models.labels import SI_ITEM
from annotation.models import Item, Project, Resolution, Revision
from judging import strategies
from judging.errors import Refused
from judging.models import Call, Run
from judging.runs import run_config, selection
from judging.runs.engine import digests
from judging.runs.models import UNLABELLED, OutcomeQuerySet
from judging.strategies import Strategy, draws, frames
from judging.strategies.definitions import OVERLAP_METRICS
from judging.strategies.draws import Drawn, DrawnSource

# The columns that an outcome copies from its item, so that headline tables need no join.
COPIED_COLUMNS = (
    "item_id", "revision_id", "category", "ability", "source_ability", "cluster", "invariant",
    "truth", "axis", "main", "drawn",
)  # fmt: skip
_NO_ITEMS_MESSAGE = (
    "None of the chosen items can be used: they have no final label that the strategy can use, "
    "serve as examples, or are not what the strategy makes its category from. Choose other items."
)
_NO_CHOICE_MESSAGE = (
    "No item matches the chosen abilities, categories, keys or run. Choose others, or sort the "
    "items into abilities first."
)
_NEEDS_LABELS_MESSAGE = (
    "Strategy {} needs the final label of each item. Only error detection and ROUGE-L of responses "
    "can also judge items without one."
)
# A run with more calls is probably a mistake: its estimate would hold each of them in memory, and
# render each of their prompts.
MAX_CALLS = 2_000_000
# An explanation check covers the outcomes of the base run with this detail (study 000, section
# 5.3).
EQUAL_DETAIL = "equal"


@dataclass(frozen=True)
class DrawnItems:
    """The outcomes that a run will have, and its examples.

    `places` have the columns that an outcome copies, with the item's `key` and the digest of its
    `texts`. `examples` are resolved items in the order shown, with their `answer`. `is_part` is
    True if other items could have been included too. `sample` describes a random sample as a run
    pins it, None if the items are not one.
    """

    places: list[dict[str, Any]]
    examples: list[dict[str, Any]] = field(default_factory=list)
    is_part: bool = False
    sample: dict[str, int] | None = None

    @property
    def items(self) -> set[int]:
        """The ids of the items. An item may have several outcomes, one for each axis."""
        return {place["item_id"] for place in self.places}

    @property
    def keys(self) -> set[str]:
        """The keys of the items."""
        return {place["key"] for place in self.places}

    @property
    def drawn(self) -> list[Drawn | None]:
        """What was drawn for each item."""
        return [place["drawn"] for place in self.places]

    def digest(self) -> str:
        """The digest of the items with their texts, axes and what was drawn for each, and of the
        examples."""
        places = sorted(self.places, key=lambda one: str(one["key"]))
        asked = [(one["key"], one["texts"], one["axis"], one["drawn"]) for one in places]
        shown = [(one["key"], one["texts"]) for one in self.examples]
        return strategies.compute_digest([asked, shown])


def draw_items(
    project: Project,
    strategy: Strategy,
    *,
    seed: int,
    limit: int | None = None,
    with_duplicates: bool = False,
    only: Collection[int] | None = None,
    own: run_config.RunOverrides = run_config.NO_OVERRIDES,
    pilot_items: int | None = None,
    like: Run | None = None,
    samples: int | None = None,
    one_axis: bool = False,
) -> DrawnItems:
    """The items that the strategy can judge, limited to the ids in `only`, or a random sample of
    them, along the axes in `own`. With guidance, generated items can be drawn too; with
    `unlabelled`, items without a final label, which are no examples.

    What a generator draws for each item is drawn over the whole sample, also if only the first
    `pilot_items` of it are kept. Items of the run `like`, if it drew the same by the same shares,
    keep what it drew for them, and generated items what their fields say.

    Each call has so many `samples`, by default the strategy's number. With `one_axis`, only the
    first of its axes is drawn for each item, and any number of calls is allowed.

    Examples are drawn first, and the run leaves out the clusters of the examples. With `only`,
    examples are taken from clusters that contain none of the run's items. Raises `Refused` if no
    items or too few examples are left, and for more than MAX_CALLS calls.
    """
    needs = frames.get_item_needs(strategy)
    again = only if own.guidance else None
    labelled = selection.load_rows(project, needs, with_duplicates=with_duplicates, again=again)
    rows = labelled
    if own.unlabelled:
        # No figure uses other values of items without a label.
        has_overlap = needs == "values" and strategy.metric in OVERLAP_METRICS
        if needs != "detection" and not has_overlap:
            raise Refused(_NEEDS_LABELS_MESSAGE.format(strategy.slug))
        rows = labelled + selection.load_unlabelled_rows(project, with_duplicates=with_duplicates)
    if only is not None and not only:
        raise Refused(_NO_CHOICE_MESSAGE)
    asked = rows if only is None else [row for row in rows if row["item_id"] in only]
    known = taxonomy.load_taxonomy(project)
    able = (
        selection.filter_by_category(rows, strategy.category, known) if strategy.category else rows
    )
    if only is None:
        asked = able
    examples = _examples(strategy, labelled, asked if only is not None else (), seed)
    shown = {row["cluster"] for row in examples}
    asked = [row for row in asked if row["cluster"] not in shown]
    whole = {row["key"] for row in able if row["cluster"] not in shown and not row["duplicate_of"]}
    if not asked:
        raise Refused(selection.explain_no_items(needs) if not rows else _NO_ITEMS_MESSAGE)
    asked = [
        row for row in asked if any(True for _ in build_places(strategy, row, known, own.axes))
    ]
    if not asked:
        raise Refused(
            f"No items use these axes: {run_config.describe_axes(strategy, own.axes)}. Choose "
            "other axes, or all. An item has an axis of its own if it has an ability of the "
            "project."
        )
    kept = selection.sample_rows(asked, seed, limit)
    drawn = _draw_for_rows(strategy, kept, seed, like, is_again=again is not None)
    kept = selection.sample_rows(kept, seed, pilot_items)
    if not one_axis:
        _check_calls(strategy, len(kept) * _count_axes(strategy, own.axes), samples)
    places = []
    for row in kept:
        found = build_places(strategy, row, known, own.axes)
        for place in islice(found, 1 if one_axis else None):
            place["drawn"] = drawn.get(row["key"])
            places.append(place)
    is_part = not whole <= {row["key"] for row in kept}
    return DrawnItems(places, examples, is_part, _describe_sample(kept, asked, seed))


def _draw_for_rows(
    strategy: Strategy,
    rows: Sequence[dict[str, Any]],
    seed: int,
    like: Run | None,
    *,
    is_again: bool,
) -> dict[str, Drawn]:
    """What a generator draws for each of these items, by key; {} if it draws nothing."""
    if not strategy.draws:
        return {}
    kept: dict[str, Drawn] = {}
    if is_again:
        made = Item.objects.filter(pk__among=[row["item_id"] for row in rows])
        fields_of = dict(made.values_list("key", "fields"))
        # Fields name the options that were drawn; values that scripts found are in the calls.
        digests_of = {key: fields.get("request", "") for key, fields in fields_of.items()}
        calls = Call.objects.filter(request__digest__among=set(digests_of.values()))
        drawn_by = dict(calls.values_list("request__digest", "outcome__drawn"))
        kept = {
            key: draws.read_fields(strategy, fields, drawn_by.get(digests_of[key]))
            for key, fields in fields_of.items()
        }
    elif like and draws.same_plan(strategy, like.pinned_strategy()):
        earlier = {
            (one["key"], one["texts"]): one["drawn"] for one in load_places(like.outcomes.all())
        }
        found = ((row["key"], earlier.get((row["key"], row["texts"]))) for row in rows)
        kept = {key: drawn for key, drawn in found if drawn}
    texts: dict[int, Any] = {}
    if any(option.value for draw in strategy.draws for option in draw.options):
        ids = [row["revision_id"] for row in rows]
        texts = dict(Revision.objects.filter(pk__among=ids).values_list("pk", "texts"))
    items = [DrawnSource(row["key"], texts.get(row["revision_id"], {})) for row in rows]
    try:
        return draws.draw_for_items(strategy, items, seed, kept)
    except ValueError as problem:
        raise Refused(str(problem)) from problem


def _describe_sample(
    kept: Sequence[object], asked: Sequence[object], seed: int
) -> dict[str, int] | None:
    if len(kept) == len(asked):
        return None
    return {"items": len(kept), "of": len(asked), "seed": seed}


def _check_calls(strategy: Strategy, places: int, samples: int | None = None) -> None:
    """Raise `Refused` if a run with so many places would have more than MAX_CALLS calls. `samples`
    is the number of samples of each call, by default the strategy's number."""
    found = places * frames.count_calls_per_axis(strategy, samples)
    if found > MAX_CALLS:
        axes = ", fewer axes" if strategy.axes else ""
        raise Refused(
            f"Strategy {strategy.slug} would make {found:,} calls, and a run has at most "
            f"{MAX_CALLS:,}. Choose fewer items (a limit){axes} or fewer samples per call."
        )


def _count_axes(strategy: Strategy, axes: Collection[str] | None) -> int:
    """The number of axes, at most, along which these overrides have an item judged."""
    if not axes or run_config.ALL_AXES in axes:
        return max(1, len(strategy.axes))
    return len({*axes})


def _is_on_axes(axes: Collection[str] | None, axis: str, *, main: bool) -> bool:
    """True if an axis of an item is one of these, as in `RunOverrides`; `main` if it decides the
    item."""
    if not axes or run_config.ALL_AXES in axes:
        return True
    return axis in axes or (main and run_config.MAIN_AXIS in axes)


def draw_for_check(
    base: Run,
    strategy: Strategy,
    *,
    seed: int,
    limit: int | None = None,
    samples: int | None = None,
) -> DrawnItems:
    """Draw the places of an explanation check: the items that a run scored equal to the gold
    answer, each along its own axis alone, since no figure uses the others.

    Raises `Refused` for a run that is not finished, has several samples or no explanations, or
    scored no item equal, and for more than MAX_CALLS calls.
    """
    said = base.pinned_strategy()
    if base.state != Run.State.FINISHED:
        raise Refused(
            f"Run {base.number} is {base.state}. Wait until it has finished, then check its "
            "explanations."
        )
    if not said.explanation or said.frame != "single" or base.samples > 1:
        raise Refused(
            f"Run {base.number} ({said.slug}) has no single explained score per item to check. "
            "Choose a run that scores each answer once, with an explanation."
        )
    places = load_places(base.outcomes.main().filter(detail=EQUAL_DETAIL))
    if not places:
        raise Refused(
            f"In run {base.number}, no perturbed answer got the same score as its gold answer, so "
            "there is nothing to check."
        )
    part = selection.sample_rows(places, seed, limit)
    _check_calls(strategy, len(part), samples)
    sample = _describe_sample(part, places, seed)
    return DrawnItems(part, is_part=sample is not None, sample=sample)


def draw_as_pinned(run: Run) -> DrawnItems:
    """Return exactly the revisions and the examples that a run pinned."""
    answers = run.pinned.get("answers", [])
    examples = [
        {"key": key, "texts": texts, "answer": answer}
        for (key, texts), answer in zip(run.few_shot, answers, strict=True)
    ]
    sample = run.pinned.get(run_config.SAMPLE_KEY)
    return DrawnItems(load_places(run.outcomes.all()), examples, run.is_part, sample)


def load_places(outcomes: OutcomeQuerySet) -> list[dict[str, Any]]:
    """Load the places of stored outcomes, in the order of the items."""
    found = outcomes.order_by("item__position", "axis")
    return list(found.values(*COPIED_COLUMNS, key=F("item__key"), texts=F("revision__digest")))


def build_places(
    strategy: Strategy,
    row: Mapping[str, Any],
    categories: Taxonomy,
    axes: Collection[str] | None = None,
) -> Iterator[dict[str, Any]]:
    """Build the places of a row of `selection.load_rows`, one place for each axis of the strategy,
    or for each of these axes, as in `RunOverrides`."""
    has_truth = frames.get_item_needs(strategy) in selection.REQUIRED_RESULTS
    truth = row["truth"] if has_truth or row["truth"] == UNLABELLED else ""
    place = {
        "key": row["key"],
        "texts": row["texts"],
        "item_id": row["item_id"],
        "revision_id": row["revision_id"],
        "source_ability": row["source_ability"],
        "cluster": row["cluster"],
        "invariant": truth == SI_ITEM,
        "truth": truth,
        "drawn": None,
        **_build_table_columns(row, categories),
    }
    own = SI_ITEM if truth == SI_ITEM else row["ability"]
    for axis, main in strategies.list_item_axes(strategy, own, row["source_ability"], categories):
        if _is_on_axes(axes, axis, main=main):
            yield {**place, "axis": axis, "main": main}


def _build_table_columns(row: Mapping[str, Any], categories: Taxonomy) -> dict[str, str]:
    """Return the ability and category in which an item counts. An item is score-invariant if its
    resolution says so, whatever change was intended; it keeps its category if that is one of which
    no change costs points.

    Duplicates have a separate table row and no ability, so that no total counts a text twice.
    """
    if row["duplicate_of"]:
        return {"ability": "", "category": row["category"]}
    if row["truth"] == SI_ITEM:
        category = categories.find(row["category"])
        is_meant = category is not None and category.expected_effect == "none"
        return {"ability": SI_ITEM, "category": row["category"] if is_meant else SI_ITEM}
    return {"ability": row["ability"], "category": row["category"]}


def _examples(
    strategy: Strategy,
    rows: Sequence[dict[str, Any]],
    taken: Iterable[dict[str, Any]],
    seed: int,
) -> list[dict[str, Any]]:
    """Draw as many examples as the strategy shows, from different clusters, and none from a taken
    cluster."""
    if not strategy.examples:
        return []
    clusters = {row["cluster"] for row in taken}
    by_key = {row["key"]: row for row in rows if not row["duplicate_of"]}
    found: list[dict[str, Any]] = []
    for key in digests.shuffle_keys(seed, by_key):
        row = by_key[key]
        if len(found) < strategy.examples and row["cluster"] not in clusters:
            clusters.add(row["cluster"])
            found.append(row)
    if len(found) < strategy.examples:
        raise Refused(
            f"Strategy {strategy.slug} needs {strategy.examples} items with a final label from "
            f"other clusters as examples, but there are only {len(found)}. Label more items, "
            "choose fewer items for the run, or show fewer examples (0: none). Examples written "
            "into the prompt of a copied strategy need no items. Clusters come from the column "
            "cluster at import."
        )
    values = _load_final_values(row["item_id"] for row in found)
    scored = {metric.slug for metric in strategy.metrics}
    answers = [
        {name: value for name, value in values[row["item_id"]].items() if name in scored}
        if scored
        else row["truth"]
        for row in found
    ]
    return [{**row, "answer": answer} for row, answer in zip(found, answers, strict=True)]


def _load_final_values(items: Iterable[int]) -> dict[int, dict[str, Any]]:
    """Load the final labels of all fields, by item id."""
    found = Resolution.objects.current().filter(item__in=list(items))
    return dict(found.values_list("item", "values"))
