"""What a data set is of (study 000, table 1; study 001, tables 2 and 3)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.db.models import Count, F

from annotation.leads.grouping import Grouping
from annotation.models import Item, Project, Resolution, Revision
from judging.results import detecting
from judging.results.detecting import Group
from stats.rouge import unicode_words

COLUMNS = ("n", "of", "value", "count", "share", "mean")
LABEL, CATEGORY, WORDS = "label", "category", "words"
AT_A_TIME = 500


def dataset(project: Project, by: Sequence[str]) -> list[dict[str, Any]]:
    """The table `dataset`: of each group of the items, by columns or fields of their own, a row a
    label, a category and a text.

    `count` of the `n` items are held for the label in `value`, None for those that nothing holds
    true of, or have the category; `share` is theirs. Of each text `mean` is the number of words,
    as ROUGE-L takes them apart in any script, over the `count` items that have it. Items that
    repeat another one, and those that people practise on, are no part. Raises `UnknownField`.
    """
    named = detecting.groupings(project, by)
    items = Item.objects.in_project(project).originals().of_tests()
    keys = {f"group_{place}": one.of() for place, one in enumerate(named)}
    sizes = Counter({group: n for group, _, n in _counted(items, keys, {})})
    held = items.filter(resolutions__in=Resolution.objects.current())
    labels = _by_group(_counted(held, keys, {"value": F("resolutions__value")}))
    categories = _by_group(_counted(items, keys, {"value": F("category")}))
    words = _words(items, named)
    return [
        {**dict(zip(by, group, strict=True)), "n": n, **row}
        for group, n in sorted(sizes.items())
        for row in (
            *_shares(LABEL, labels[group] | _open(n, labels[group]), n),
            *_shares(CATEGORY, categories[group], n),
            *_means(words[group]),
        )
    ]


def _counted(
    items: Any, keys: dict[str, Any], value: dict[str, Any]
) -> Iterator[tuple[Group, str | None, int]]:
    found = items.order_by().annotate(**{f"of_{name}": one for name, one in value.items()})
    for row in found.values(*(f"of_{name}" for name in value), **keys).annotate(n=Count("pk")):
        yield detecting.group_of(row[key] for key in keys), row.get("of_value"), row["n"]


def _by_group(
    counted: Iterable[tuple[Group, str | None, int]],
) -> dict[Group, Counter[str | None]]:
    found: dict[Group, Counter[str | None]] = defaultdict(Counter)
    for group, value, n in counted:
        found[group][value] += n
    return found


def _open(n: int, labels: Counter[str | None]) -> Counter[str | None]:
    """Those that nothing is held true of."""
    left: Counter[str | None] = Counter({None: n - labels.total()})
    return +left


def _shares(of: str, counts: Counter[str | None], n: int) -> Iterator[dict[str, Any]]:
    for value, count in sorted(counts.items(), key=lambda one: (one[0] is None, one[0] or "")):
        yield {"of": of, "value": value, "count": count, "share": count / n, "mean": None}


def _words(items: Any, named: Sequence[Grouping]) -> dict[Group, dict[str, list[int]]]:
    """Of each group and text how many items have it, and how many words these are."""
    found: dict[Group, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    current = Revision.objects.filter(item__in=items, number=F("item__revision_number"))
    groups = [one.of("item__") for one in named]
    rows = current.order_by().values_list("texts", *groups).iterator(chunk_size=AT_A_TIME)
    for texts, *group in rows:
        for name, text in texts.items():
            said = found[detecting.group_of(group)][name]
            said[0] += 1
            said[1] += len(unicode_words(_joined(text)))
    return found


def _joined(text: Any) -> str:
    """A text, or several such as references, as one."""
    return "\n".join(map(str, text)) if isinstance(text, list) else str(text)


def _means(words: dict[str, list[int]]) -> Iterator[dict[str, Any]]:
    for name, (count, total) in sorted(words.items()):
        mean = total / count
        yield {"of": WORDS, "value": name, "count": count, "share": None, "mean": mean}
