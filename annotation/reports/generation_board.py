"""The generation board for leads: review results of generated items, by category and maker.

It counts generated items that are waiting, are with annotators, or were resolved as intended. Only
items of purpose test that are neither deleted nor duplicates count. The number of queries is fixed,
and no texts are read.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Q
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce

from annotation import tasktypes
from annotation.generation import generated_items as generation_generated_items
from annotation.importing import flags as importing_flags
from annotation.items import taxonomy
from annotation.items.models import ItemQuerySet
from annotation.models import Item, Project, Resolution, Slot
from annotation.reports import category_board
from annotation.reports.grouping import CATEGORY, Grouping
from annotation.reports.label_times import key_as_text
from annotation.tasktypes import main_field
from stats.estimates import Estimate
from stats.rates import clustered_wilson, sum_clusters

GENERATED_ORIGINS = ("generated", "perturber")
_COUNTS = ("items", "waiting", "aside", "with_people", "held", "turned_down", "unseen")
COLUMNS = ("category", "made_by", *_COUNTS, "share_of", "share", "share_low", "share_high")


@dataclass(frozen=True)
class GenerationCounts:
    """Counts of generated items. `maker` is "" for the sum over all makers of a category.

    `held` counts the reviewed items whose final label is the intended answer, `turned_down` the
    other reviewed items. `share` is `held` as a fraction of both. Items accepted without review
    (`unseen`) are in neither count. `aside` counts the waiting items with a flag.
    """

    maker: str
    items: int
    waiting: int
    aside: int
    with_people: int
    held: int
    turned_down: int
    unseen: int
    share: Estimate


@dataclass(frozen=True)
class GenerationRow:
    """A category, "" if the task type has none. Each entry of `parts` is about one maker: a version
    of a generator, or a perturber. `flags` are (rule, title, number of items)."""

    category: str
    title: str
    meant: str
    whole: GenerationCounts
    parts: tuple[GenerationCounts, ...]
    flags: tuple[tuple[str, str, int], ...]
    reasons: tuple[tuple[str, int], ...]


@dataclass
class _GenerationSums:
    """The data for the counts of a group. `clusters` counts the reviewed items by cluster and by
    whether their final label is the intended answer."""

    items: int = 0
    waiting: int = 0
    aside: int = 0
    with_people: int = 0
    unseen: int = 0
    clusters: dict[str, Counter[bool]] = field(default_factory=lambda: defaultdict(Counter))


def measure_generation(project: Project) -> list[GenerationRow]:
    """Compute the rows of the board, in the order of the taxonomy; [] if nothing was generated."""
    groups = _groups(project)
    by = Grouping(CATEGORY, "", taxonomy.load_taxonomy(project))
    flags, decides = _flags(project), main_field.load_main_field(project)
    against = category_board.count_reasons(
        project, decides, by, _generated_filter(project, "item__")
    )
    answers = dict(category_board.answer_choices(project))

    def row(category: str) -> GenerationRow:
        parts = {maker: sums for (of, maker), sums in groups.items() if of == category}
        wanted = _intended_answer(project, category)
        return GenerationRow(
            category=category,
            title=by.title_of(category) if category else "All",
            meant=answers.get(wanted, wanted),
            whole=_combine_sums("", parts.values()),
            parts=tuple(_combine_sums(maker, [parts[maker]]) for maker in sorted(parts)),
            flags=tuple(_titled_flags(flags[category])),
            reasons=tuple(against.get(category, {}).items()),
        )

    return [row(one) for one in sorted({of for of, _ in groups}, key=by.place_of)]


def table_rows(project: Project) -> Iterator[dict[str, Any]]:
    """Return the table `making`. Each category has one row for all makers, with an empty `made_by`,
    followed by a row for each maker."""
    for row in measure_generation(project):
        for one in (row.whole, *row.parts):
            told = (row.category, one.maker, *(getattr(one, name) for name in _COUNTS), row.meant)
            share = (one.share.value, one.share.low, one.share.high)
            yield dict(zip(COLUMNS, (*told, *share), strict=True))


def generated_items(project: Project) -> ItemQuerySet:
    """Find the items that were generated in this project, or for which a missing text was
    generated."""
    found = Item.objects.in_project(project).originals().of_tests()
    return found.filter(_generated_filter(project, ""))


def _groups(project: Project) -> dict[tuple[str, str], _GenerationSums]:
    """Sum up the counts by category and maker."""
    slots = Exists(Slot.objects.filter(item=OuterRef("pk"), stage="label"))
    current = Resolution.objects.current().filter(item=OuterRef("pk"))
    open_ones = Q(~Exists(current))
    counts = {
        "n": Count("pk"),
        "waiting": Count("pk", filter=open_ones & Q(~slots)),
        "aside": Count("pk", filter=open_ones & Q(~slots) & ~Q(flags=[])),
        "placed": Count("pk", filter=open_ones & Q(slots)),
    }
    groups: dict[tuple[str, str], _GenerationSums] = {}
    found: Any = generated_items(project).order_by().values("category", maker=_maker())
    for row in found.annotate(**counts):
        told = (row["n"], row["waiting"], row["aside"], row["placed"])
        groups[row["category"], key_as_text(row["maker"])] = _GenerationSums(*told)
    _add_resolved(project, groups)
    return groups


def _add_resolved(project: Project, groups: dict[tuple[str, str], _GenerationSums]) -> None:
    held = main_field.load_main_field(project).of_resolution()
    found = Resolution.objects.in_data_set().of_project(project)
    rows = (
        found.filter(_generated_filter(project, "item__"))
        .order_by()
        .values("rule", category=F("item__category"), cluster=F("item__cluster"), held=held,
                maker=_maker("item__"))
        .annotate(n=Count("pk"))
    )  # fmt: skip
    wanted = {category: _intended_answer(project, category) for category, _ in groups}
    for row in rows:
        # An item may have been added between the two queries.
        sums = groups.setdefault((row["category"], key_as_text(row["maker"])), _GenerationSums())
        if row["rule"] == generation_generated_items.ACCEPTED_UNREVIEWED:
            sums.unseen += row["n"]
        else:
            is_meant = category_board.is_as_wanted(
                key_as_text(row["held"]), wanted.get(row["category"], "")
            )
            sums.clusters[row["cluster"]][is_meant] += row["n"]


def _combine_sums(maker: str, sums: Iterable[_GenerationSums]) -> GenerationCounts:
    """Combine the counts of several groups; a cluster may have items in more than one of them."""
    every = list(sums)
    clusters: dict[str, Counter[bool]] = defaultdict(Counter)
    for one in every:
        for cluster, counted in one.clusters.items():
            clusters[cluster] += counted
    found = [(n.total(), float(n[True])) for n in clusters.values()]
    return GenerationCounts(
        maker=maker,
        items=sum(one.items for one in every),
        waiting=sum(one.waiting for one in every),
        aside=sum(one.aside for one in every),
        with_people=sum(one.with_people for one in every),
        held=sum(n[True] for n in clusters.values()),
        turned_down=sum(n[False] for n in clusters.values()),
        unseen=sum(one.unseen for one in every),
        share=clustered_wilson(sum_clusters(found)),
    )


def _flags(project: Project) -> dict[str, Counter[str]]:
    """Count the items with each flag, by category."""
    flags: dict[str, Counter[str]] = defaultdict(Counter)
    flagged = generated_items(project).exclude(flags=[]).order_by()
    for category, found in flagged.values_list("category", "flags").iterator(chunk_size=2000):
        flags[category].update(found)
    return flags


def _titled_flags(flags: Counter[str]) -> Iterator[tuple[str, str, int]]:
    for flag, n in flags.most_common():
        yield flag, importing_flags.FLAG_TITLES.get(flag, flag), n


def _intended_answer(project: Project, category: str) -> str:
    """Return the answer that is intended for the items of a category."""
    usual = category_board.default_answer(project)
    if usual != category_board.AS_INTENDED:
        return usual
    return category_board.intended_answer(project, category)


def _generated_filter(project: Project, prefix: str) -> Q:
    """Return a filter for generated items; `prefix` leads from the filtered rows to the item."""
    awaits = tasktypes.load_task_type(project).awaits
    of_texts = Q((f"{prefix}fields__has_key", f"{awaits}_generator")) if awaits else Q()
    return Q((f"{prefix}origin__in", GENERATED_ORIGINS)) | of_texts


def _maker(prefix: str = "") -> Any:
    """Return, as SQL, what made an item. The maker of the gold answer is returned only if no other
    maker is named."""
    named = ("generator", "perturber", "gold_generator")
    return Coalesce(*(KeyTextTransform(name, f"{prefix}fields") for name in named))
