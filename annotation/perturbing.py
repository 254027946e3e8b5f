"""Items made from the gold answers of a project by perturbers that need no model.

They come in as rows of a file do: the same again is nothing new, and people get them to vet.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from django.db.models import F

from annotation import importing, tasktypes, taxonomy
from annotation.importing.returned import Made
from annotation.models import Item, Project, Revision
from annotation.querysets.parts import in_parts
from perturbers.registry import PERTURBERS, Perturber, perturb

ORIGIN = "perturber"
# Gold answers that are in memory at once.
AT_A_TIME = 100
NEEDED = ("prompt", "gold", "perturbed", "claim")


class Unfit(ValueError):
    """A project whose items perturbers cannot make; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Wish:
    """Perturbers by their names, how many perturbed answers each makes of a gold answer, with how
    many errors each, and the seed; of `limit` gold answers at most."""

    perturbers: tuple[str, ...]
    seed: str
    number: int = 1
    doses: tuple[int, ...] = (1,)
    limit: int | None = None


@dataclass
class Tally:
    """What became of it: `made` and `lacking` count perturbed answers by perturber, those that a
    gold answer had too few places for; the report is that of an import."""

    made: Counter[str] = field(default_factory=Counter)
    lacking: Counter[str] = field(default_factory=Counter)
    report: importing.Report = field(default_factory=importing.Report)


def make(project: Project, wish: Wish, *, dry_run: bool = False) -> Tally:
    """Make items of the gold answers of a project. A dry run stores nothing.

    Each category is made of answers of its ability; those that change no score of any. Of several
    items with one source question the first gives its gold answer. Raises `Unfit` for a project of
    another task, and KeyError for a perturber that is none.
    """
    task = tasktypes.of_version(project.task_type)
    if not task.categories or not {*NEEDED} <= {text.name for text in task.texts}:
        raise Unfit(f"{project.slug} has no gold answers with perturbed ones: {task.title}.")
    chosen = [PERTURBERS[slug] for slug in wish.perturbers]
    done = Tally()
    drafts = importing.check(_rows(project, chosen, wish, done), task)
    done.report = importing.store(project, drafts, dry_run=dry_run)
    return done


def _rows(project: Project, chosen: list[Perturber], wish: Wish, done: Tally) -> Iterator[Made]:
    found = Item.objects.in_project(project).sources("gold").first_of_clusters()
    line = 0
    for part in in_parts(found.order_by("position")[: wish.limit], AT_A_TIME):
        items = Item.objects.filter(pk__in=part).order_by("position")
        for item, texts in zip(items, _texts(part), strict=True):
            for perturber in chosen:
                for values, dose in _perturbed(item, texts, perturber, wish, done):
                    line += 1
                    yield Made(ORIGIN, line, values, item.key, dose)


def _texts(part: list[int]) -> list[dict[str, Any]]:
    """The current texts of items, in the order of the items."""
    current = Revision.objects.filter(item__in=part, number=F("item__revision_number"))
    return list(current.order_by("item__position").values_list("texts", flat=True))


def _perturbed(
    item: Item, texts: dict[str, Any], perturber: Perturber, wish: Wish, done: Tally
) -> Iterator[tuple[dict[str, Any], int]]:
    """The values of rows of items, each with its dose, by one perturber of one gold answer."""
    if not taxonomy.load().is_made_of(perturber.category, item.source_ability or item.ability):
        return
    # Of several references each is right by itself.
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
