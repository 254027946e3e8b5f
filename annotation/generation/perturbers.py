"""Generates items from the gold answers of a project by perturbers, which need no model.

The items are imported like the rows of a file, so repeating a generation adds nothing.
"""

import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice, product
from typing import Any

from django.db.models import Count, F, Q

from annotation import importing, tasktypes
from annotation.db.batches import id_batches, make_batches
from annotation.errors import FieldError, Refused
from annotation.generation import generated_items
from annotation.generation.generated_items import GenerationResult
from annotation.generation.release import RELEASE_ALL, ReleasePolicy
from annotation.importing.exported_rows import DerivedRow
from annotation.items import taxonomy
from annotation.items.models import ItemQuerySet
from annotation.items.taxonomy import Taxonomy
from annotation.jobs import subprocesses
from annotation.labelling import correct_answers
from annotation.labelling.models.labels import ERROR_ITEM, SI_ITEM
from annotation.models import Event, Item, Membership, Project, Revision
from perturbers.registry import PERTURBERS, Perturber, perturb
from stats.lots import draw_number

ORIGIN = "perturber"
# The number of gold answers in memory at once.
BATCH_SIZE = 100
# The number of gold answers per perturber that are used for examples.
EXAMPLE_GOLDS = 5
TEST_PURPOSE = "test"
REQUIRED_TEXTS = ("prompt", "gold", "perturbed", "claim")
MAX_PER_GOLD, MAX_ERRORS = 20, 32
# The seed is part of the keys of items.
SEED_PATTERN = re.compile(r"[A-Za-z0-9-]{1,20}")


# A function that is called with the number of processed gold answers and the total.
ReportProgress = Callable[[int, int], object]


class UnsuitableProject(Refused):
    """Raised if perturbers cannot generate items for a project; the message gives the reason."""


@dataclass(frozen=True, kw_only=True)
class PerturbRequest:
    """A request to the perturbers with these names. Each perturber generates `number` perturbed
    answers for each number of errors in `doses`, from each of at most `limit` gold answers.

    Qualification and control items get a known answer: the intended answer of their category, with
    the claim as the explanation.
    """

    perturbers: tuple[str, ...]
    seed: str
    number: int = 1
    doses: tuple[int, ...] = (1,)
    limit: int | None = None
    purpose: str = TEST_PURPOSE


@dataclass
class PerturbResult:
    """The result: `made` counts the generated answers by perturber, `lacking` the failures because
    a gold answer lacked suitable spots. `flagged` counts items by rule."""

    made: Counter[str] = field(default_factory=Counter)
    lacking: Counter[str] = field(default_factory=Counter)
    flagged: Counter[str] = field(default_factory=Counter)
    brought: GenerationResult = field(default_factory=GenerationResult)

    @property
    def report(self) -> importing.ItemImportReport:
        return self.brought.report


def _report_nothing(done: int, total: int) -> None:
    return


def new_seed() -> str:
    """Return a new random seed: 8 hexadecimal digits."""
    return secrets.token_hex(4)


def is_suitable(project: Project) -> bool:
    """True if the task type has categories and the texts in `REQUIRED_TEXTS`, and if the project
    has the category of a perturber."""
    task = tasktypes.load_task_type(project)
    fits = task.categories and {*REQUIRED_TEXTS} <= {text.name for text in task.texts}
    known = taxonomy.load_taxonomy(project)
    return fits and any(known.find(one.category) for one in PERTURBERS.values())


def check_request(project: Project, wish: PerturbRequest) -> None:
    """Raise `UnsuitableProject` for a project with an unsuitable task type, and `FieldError` for an
    invalid value."""
    if not is_suitable(project):
        title = tasktypes.load_task_type(project).title
        raise UnsuitableProject(
            f"{project.slug} ({title}) has no gold and perturbed answers, or no category that a "
            "perturber makes errors of."
        )
    if not wish.perturbers or set(wish.perturbers) - PERTURBERS.keys():
        raise FieldError(f"must be one or more of {', '.join(PERTURBERS)}.", "perturbers")
    if not 1 <= wish.number <= MAX_PER_GOLD:
        raise FieldError(f"must lie between 1 and {MAX_PER_GOLD}.", "number")
    if not wish.doses or not all(1 <= one <= MAX_ERRORS for one in wish.doses):
        raise FieldError(f"must lie between 1 and {MAX_ERRORS}.", "errors")
    if wish.limit is not None and wish.limit < 1:
        raise FieldError("must be 1 or more.", "limit")
    if wish.purpose not in (TEST_PURPOSE, *correct_answers.PURPOSES):
        raise FieldError(
            f"must be {TEST_PURPOSE}, {' or '.join(correct_answers.PURPOSES)}.", "purpose"
        )
    if not SEED_PATTERN.fullmatch(wish.seed):
        raise FieldError(
            "must be 1 to 20 letters, digits or hyphens, because keys contain it.", "seed"
        )


def count_golds(project: Project) -> dict[str, int]:
    """Count the suitable gold answers for each perturber, by its name."""
    found = _gold_items(project).order_by().values_list("source_ability", "ability")
    by_ability = Counter[str]()
    for source, own, n in found.annotate(n=Count("pk")):
        by_ability[source or own] += n
    every = taxonomy.load_taxonomy(project)
    return {
        slug: sum(n for of, n in by_ability.items() if every.is_made_of(one.category, of))
        for slug, one in PERTURBERS.items()
    }


def make_items(
    project: Project,
    wish: PerturbRequest,
    vetting: ReleasePolicy = RELEASE_ALL,
    *,
    dry_run: bool = False,
    member: Membership | None = None,
    told: ReportProgress = _report_nothing,
) -> PerturbResult:
    """Generate items from the gold answers of a project and release them by the policy. A dry run
    stores nothing.

    A score-invariant category uses gold answers of any ability, every other category only gold
    answers of its own ability. Of several items with the same source question, only the first
    item's gold answer is used. `told` is called with the progress. Raises like `check_request`.
    """
    check_request(project, wish)
    done = PerturbResult()
    task, categories = tasktypes.load_task_type(project), taxonomy.load_taxonomy(project)
    rows = (
        _with_correct_answer(row, task, categories, wish)
        for row in _rows(_gold_items(project)[: wish.limit], wish, done, told)
    )
    if dry_run:
        drafts = importing.parse_items(rows, task, categories)
        done.brought.report = importing.store_items(project, drafts, dry_run=True)
        return done
    keys: list[str] = []

    def noted() -> Iterator[DerivedRow]:
        for row in rows:
            keys.append(row.values["key"])
            yield row

    done.brought = generated_items.store_items(project, noted(), vetting, member=member)
    for part in make_batches(keys, 500):
        subprocesses.send_heartbeat()
        found = Item.objects.in_project(project).with_keys(part)
        done.flagged.update(one for flags in found.values_list("flags", flat=True) for one in flags)
    _record(project, wish, done, member)
    return done


def make_examples(project: Project, wish: PerturbRequest, most: int) -> list[DerivedRow]:
    """Return up to `most` rows that `make_items` would store, from the first suitable gold answers.
    Every perturber contributes one row before any perturber contributes a second. Raises like
    `check_request`."""
    check_request(project, wish)
    found: list[tuple[int, int, DerivedRow]] = []
    for number, slug in enumerate(wish.perturbers):
        golds = _gold_items_for(project, PERTURBERS[slug])[:EXAMPLE_GOLDS]
        rows = _rows(golds, replace(wish, perturbers=(slug,)), PerturbResult())
        found += [(turn, number, row) for turn, row in enumerate(islice(rows, most))]
    return [row for *_, row in sorted(found, key=lambda one: one[:2])[:most]]


def _gold_items(project: Project) -> ItemQuerySet:
    found = Item.objects.in_project(project).sources("gold").first_of_clusters()
    return found.order_by("position")


def _gold_items_for(project: Project, perturber: Perturber) -> ItemQuerySet:
    every = taxonomy.load_taxonomy(project)
    own = [one.slug for one in every.abilities if every.is_made_of(perturber.category, one.slug)]
    told = Q(source_ability="", ability__in=own) | Q(source_ability__in=own)
    return _gold_items(project).filter(told)


def _rows(
    golds: ItemQuerySet,
    wish: PerturbRequest,
    done: PerturbResult,
    told: ReportProgress = _report_nothing,
) -> Iterator[DerivedRow]:
    chosen = [PERTURBERS[slug] for slug in wish.perturbers]
    line, total = 0, golds.count()
    for number, part in enumerate(id_batches(golds, BATCH_SIZE)):
        told(number * BATCH_SIZE, total)
        items = Item.objects.filter(pk__in=part).select_related("project").order_by("position")
        for item, texts in zip(items, _texts(part), strict=True):
            for perturber in chosen:
                for values, dose in _perturb_gold(item, texts, perturber, wish, done):
                    line += 1
                    yield DerivedRow(ORIGIN, line, values, parent=item.key, dose=dose)
    told(total, total)


def _texts(part: list[int]) -> list[dict[str, Any]]:
    """Return the current texts of these items, in the order of the items."""
    current = Revision.objects.filter(item__in=part, number=F("item__revision_number"))
    return list(current.order_by("item__position").values_list("texts", flat=True))


def _perturb_gold(
    item: Item,
    texts: dict[str, Any],
    perturber: Perturber,
    wish: PerturbRequest,
    done: PerturbResult,
) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield the rows that one perturber generates from one gold answer, as (values, dose)."""
    of = item.source_ability or item.ability
    if not taxonomy.load_taxonomy(item.project).is_made_of(perturber.category, of):
        return
    # If an item has several gold answers, each of them is correct on its own.
    gold = texts["gold"] if isinstance(texts["gold"], str) else texts["gold"][0]
    seen = set[str]()
    for number, dose in product(range(1, wish.number + 1), wish.doses):
        seed = f"{wish.seed}:{item.cluster}:{number}"
        made = perturb(perturber, gold, prompt=texts["prompt"], seed=seed, dose=dose)
        if made is None or made.response in seen:
            done.lacking[perturber.slug] += 1
            continue
        seen.add(made.response)
        done.made[perturber.slug] += 1
        yield (
            {
                "key": f"{item.key}+{perturber.slug}.{wish.seed}.{number}x{dose}",
                "category": perturber.category,
                "source_ability": item.source_ability or item.ability,
                "origin": ORIGIN,
                "cluster": item.cluster,
                "prompt": texts["prompt"],
                "gold": gold,
                "perturbed": made.response,
                "claim": made.claim,
                "perturber": perturber.slug,
                "seed": wish.seed,
            },
            dose,
        )


def _with_correct_answer(
    row: DerivedRow, task: tasktypes.TaskType, categories: Taxonomy, wish: PerturbRequest
) -> DerivedRow:
    """Add the correct answer to a row if its purpose needs one; otherwise return it unchanged.

    Annotators see the key, so the new key does not reveal the perturber: it looks like the key of
    an item from a generator run with samples. If an item from another seed already has this key,
    the row is a conflict; choose another seed then.
    """
    if wish.purpose == TEST_PURPOSE:
        return row
    category = categories.category(row.values["category"])
    known, explanation = correct_answers.answer_columns(task)
    like_a_run = 10 + draw_number(wish.seed) % 90
    number, _, dose = row.values["key"].rpartition(".")[2].partition("x")
    like_a_sample = (int(number) - 1) * MAX_ERRORS + int(dose)
    values = {
        "key": f"{row.parent}+{category.slug}.{like_a_run}.{like_a_sample}",
        "purpose": wish.purpose,
        known: SI_ITEM if category.expected_effect == "none" else ERROR_ITEM,
        explanation: row.values["claim"],
    }
    return replace(row, values={**row.values, **values})


def _record(
    project: Project, wish: PerturbRequest, done: PerturbResult, member: Membership | None
) -> None:
    Event.record(
        "generation",
        project.slug,
        project_id=project.pk,
        member_id=member.pk if member else None,
        by="perturbers",
        perturbers=[*wish.perturbers],
        seed=wish.seed,
        made=done.made.total(),
        new=done.report.new,
    )
