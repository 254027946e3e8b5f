"""Select stored versions of strategies, and the items that a run may cover."""

from collections.abc import Collection, Iterable, Sequence
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import F, Max, OuterRef, Subquery, Value

from annotation import tasktypes
from annotation.db import transactions
from annotation.items.models import ItemQuerySet
from annotation.items.taxonomy import Taxonomy
from annotation.labelling.models.labels import ERROR_ITEM, SI_ITEM, ResolutionQuerySet
from annotation.models import Item, Project, Resolution, Revision
from annotation.tasktypes import main_field
from judging import strategies
from judging.models import StrategyVersion
from judging.runs.engine import digests
from judging.runs.models import UNLABELLED

PERTURBATION = "perturbation"
# The final labels that an item must have, by need; needs not listed here accept any resolution.
REQUIRED_RESULTS = {PERTURBATION: (ERROR_ITEM, SI_ITEM), "detection": ("error", "no_error")}
# The texts that a generator needs, by need: an item must have a text with one of these names, or
# with any name, and may have any label.
SOURCE_TEXTS = {"prompt": ("prompt", "input"), "gold": ("gold",), "texts": ()}
# The field of a translated item that has the key of the item from which it was translated.
TRANSLATED_FROM = "translated_from"
# The columns of an item that a run pins, besides its revision and final label.
PINNED_COLUMNS = ("key", "category", "ability", "source_ability", "cluster", "duplicate_of")


def get_strategy_version(slug: str) -> StrategyVersion:
    """Return the stored version of the current strategy file. Raises KeyError for an unknown
    slug."""
    definition = strategies.load_all()[slug].definition
    digest = strategies.compute_digest(definition)
    with transactions.transact():
        shipped = StrategyVersion.objects.filter(slug=slug, project=None)
        last = shipped.aggregate(last=Max("number"))["last"] or 0
        version, _ = shipped.get_or_create(
            slug=slug,
            digest=digest,
            project=None,
            defaults={
                "number": last + 1,
                "definition": definition,
                "source": strategies.read_source(slug),
            },
        )
    return version


def select_resolutions(
    project: Project, needs: str = PERTURBATION, *, with_duplicates: bool = False
) -> ResolutionQuerySet:
    """Select the current resolutions, on the current texts, of the items that a run may cover; one
    for each item.

    `needs` says how an item must be resolved for the strategy (see `frames.get_item_needs`). Exact
    duplicates are left out by default.
    """
    found = Resolution.objects.of_current_texts().judgeable(REQUIRED_RESULTS.get(needs))
    found = found.of_project(project).exclude(value__in=_list_excluding_answers(project))
    return found if with_duplicates else found.filter(item__duplicate_of=None)


def _list_excluding_answers(project: Project) -> list[str]:
    """List the answers that exclude an item from the final set."""
    task = tasktypes.load_version(project.task_type)
    return [str(option.value) for option in task.deciding.options if option.drops]


def count_items(project: Project, needs: str) -> int:
    """Count the items that a run of a strategy with these needs may cover."""
    if needs in SOURCE_TEXTS:
        return select_sources(project, needs).count()
    return select_resolutions(project, needs).count()


def explain_no_items(needs: str) -> str:
    """Explain what to do if no item has a final label that a strategy needs."""
    if needs == "texts":
        return (
            "No item of this project can be translated. Import items; those that were rejected, or "
            "are translations, are left out."
        )
    if needs in SOURCE_TEXTS:
        names = " or ".join(map(repr, SOURCE_TEXTS[needs]))
        return f"No item of this project has the source text {names}. Import such items."
    wanted = " or ".join(value.replace("_", " ") for value in REQUIRED_RESULTS.get(needs, ()))
    final = f"the final label {wanted}" if wanted else "a final label"
    return f"No item of this project has {final} yet. Label some, or import items with --accept."


def select_sources(
    project: Project,
    needs: str,
    *,
    with_duplicates: bool = False,
    again: Collection[int] | None = None,
) -> ItemQuerySet:
    """Select the items whose current texts include the text that a generator starts from: "prompt",
    "gold", or for a translation any text.

    Unresolved items are included, but not items whose text was labelled and rejected. A text called
    "input" is a prompt too. Only the first item of a cluster is included, unless duplicates are
    requested. With `again`, select the generated items with these ids instead, to regenerate them.
    A translation starts from every item of a cluster, generated or not, but for duplicates,
    rejected items and translations.
    """
    every = Item.objects.in_project(project)
    if needs == "texts":
        decides = main_field.load_main_field(project)
        rejects = [value for value, _ in decides.options if decides.drops(value)]
        every = reduce(ItemQuerySet.not_resolved_as, rejects, every)
        found = every.of_tests().exclude(fields__has_key=TRANSLATED_FROM)
        return found if with_duplicates else found.originals()
    if tasktypes.load_task_type(project).awaits == needs:
        every = reduce(ItemQuerySet.not_resolved_as, _list_excluding_answers(project), every)
    if again is not None:
        some = every.of_tests().filter(pk__among=list(again))
        return reduce(or_, (some.with_text(name) for name in SOURCE_TEXTS[needs]))
    found = reduce(or_, (every.sources(name) for name in SOURCE_TEXTS[needs]))
    return found if with_duplicates else found.first_of_clusters()


def load_rows(
    project: Project,
    needs: str,
    *,
    with_duplicates: bool = False,
    again: Collection[int] | None = None,
) -> list[dict[str, Any]]:
    """Load the columns that a run pins of each item that it may cover, in the order of the items;
    `again` is for generators (see `select_sources`)."""
    if needs in SOURCE_TEXTS:
        found = select_sources(project, needs, with_duplicates=with_duplicates, again=again)
        return _load_current(found, "")
    # A resolution points at its item and revision, so this is a single flat join.
    resolved = select_resolutions(project, needs, with_duplicates=with_duplicates)
    return list(
        resolved.order_by("item__position").values(
            "item_id",
            "revision_id",
            truth=F("value"),
            texts=F("revision__digest"),
            **{name: F(f"item__{name}") for name in PINNED_COLUMNS},
        )
    )


def load_unlabelled_rows(
    project: Project, *, with_duplicates: bool = False
) -> list[dict[str, Any]]:
    """Load the same columns as `load_rows` of the items without a final label; their truth is
    `UNLABELLED`."""
    found = Item.objects.in_project(project).of_tests().unresolved()
    return _load_current(found if with_duplicates else found.originals(), UNLABELLED)


def _load_current(items: ItemQuerySet, truth: str) -> list[dict[str, Any]]:
    current = Revision.objects.filter(item=OuterRef("pk"), number=OuterRef("revision_number"))
    return list(
        items.order_by("position").values(
            *PINNED_COLUMNS,
            item_id=F("pk"),
            revision_id=Subquery(current.values("pk")[:1]),
            texts=Subquery(current.values("digest")[:1]),
            truth=Value(truth),
        )
    )


def find_first_item(project: Project, needs: str) -> int | None:
    """Find the id of the first item that a run may cover; None if there is none."""
    if needs in SOURCE_TEXTS:
        made = select_sources(project, needs).order_by("position")
        return made.values_list("pk", flat=True).first()
    able = select_resolutions(project, needs).order_by("item__position")
    return able.values_list("item", flat=True).first()


def accepts_item(project: Project, needs: str, item: Item) -> bool:
    """True if a run may cover the item, which may be a duplicate."""
    if needs in SOURCE_TEXTS:
        return select_sources(project, needs, with_duplicates=True).filter(pk=item.pk).exists()
    return select_resolutions(project, needs, with_duplicates=True).filter(item=item).exists()


def filter_by_category(
    rows: Iterable[dict[str, Any]], category: str, known: Taxonomy
) -> list[dict[str, Any]]:
    """Keep the rows with an ability for which this category is generated. The source ability, if
    there is one, takes precedence."""
    return [
        row for row in rows if known.is_made_of(category, row["source_ability"] or row["ability"])
    ]


def sample_rows(
    rows: Sequence[dict[str, Any]], seed: int, limit: int | None
) -> list[dict[str, Any]]:
    """Draw a random sample of `limit` rows with the seed; without a limit, return all rows."""
    if limit is None:
        return list(rows)
    kept = set(digests.shuffle_keys(seed, {row["key"] for row in rows})[:limit])
    return [row for row in rows if row["key"] in kept]
