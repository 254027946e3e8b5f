"""Composition of a data set (study 000, table 1; study 001, tables 2 and 3)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.db.models import Count, F

from annotation import tasktypes
from annotation.models import Item, Project, Resolution, Revision
from annotation.reports.grouping import MAX_GROUPS, Grouping
from judging.results import detectors
from judging.results.detectors import GroupKey
from stats.rouge import unicode_words

COLUMNS = ("n", "of", "value", "count", "share", "mean")
LABEL, CATEGORY, WORDS = "label", "category", "words"
# Prefixes of the names of other answers, and of the items' own fields.
ANSWERS, FIELDS = "answers.", "fields."
AT_A_TIME = 500
LONGEST_VALUE = 80

# The number of items with each value, by group and field.
ValueCounts = dict[GroupKey, dict[str, Counter[str]]]


def tabulate(project: Project, by: Sequence[str]) -> list[dict[str, Any]]:
    """The table `dataset`: items are grouped by columns or own fields. Each group has a row for
    each label, each category, each value of other answers and fields, and each text.

    Of the `n` items, `count` have the label (None: no final label) or category in `value`; `share`
    is count / n. The same applies to fields such as `answers.error_type` and `fields.topic`; an
    item may have several of their values, so the shares can add up to more than 1. Texts, and
    fields with more than 50 values, have no such rows. For each text, `mean` is the mean number of
    words over the `count` items that have the text. Texts are split into words as in ROUGE-L for
    any script. Duplicates and items for qualification and control are left out. Raises
    `UnknownField`.
    """
    named = detectors.check_groupings(project, by)
    items = Item.objects.in_project(project).originals().of_tests()
    keys = {f"group_{place}": one.expression() for place, one in enumerate(named)}
    sizes = Counter({group: n for group, _, n in _count_items(items, keys, {})})
    held = items.filter(resolutions__in=Resolution.objects.current())
    labels = _group_counts(_count_items(held, keys, {"value": F("resolutions__value")}))
    categories = _group_counts(_count_items(items, keys, {"value": F("category")}))
    others = _merge_kinds(_count_answers(project, held, named), _count_fields(items, named))
    words = _count_words(items, named)
    return [
        {**dict(zip(by, group, strict=True)), "n": n, **row}
        for group, n in sorted(sizes.items())
        for row in (
            *_share_rows(LABEL, labels[group] | _with_open(n, labels[group]), n),
            *_share_rows(CATEGORY, categories[group], n),
            *(row for of, counts in others[group] for row in _share_rows(of, counts, n)),
            *_mean_rows(words[group]),
        )
    ]


def _count_items(
    items: Any, keys: dict[str, Any], value: dict[str, Any]
) -> Iterator[tuple[GroupKey, str | None, int]]:
    """Count the items by group and value; without groups and values, count all items."""
    if not keys and not value:
        yield (), None, items.count()
        return
    found = items.order_by().annotate(**{f"of_{name}": one for name, one in value.items()})
    for row in found.values(*(f"of_{name}" for name in value), **keys).annotate(n=Count("pk")):
        yield detectors.make_group_key(row[key] for key in keys), row.get("of_value"), row["n"]


def _group_counts(
    counted: Iterable[tuple[GroupKey, str | None, int]],
) -> dict[GroupKey, Counter[str | None]]:
    found: dict[GroupKey, Counter[str | None]] = defaultdict(Counter)
    for group, value, n in counted:
        found[group][value] += n
    return found


def _with_open(n: int, labels: Counter[str | None]) -> Counter[str | None]:
    """Return the number of items without a final label as a count under None."""
    left: Counter[str | None] = Counter({None: n - labels.total()})
    return +left


def _share_rows(of: str, counts: Counter[str | None], n: int) -> Iterator[dict[str, Any]]:
    for value, count in sorted(counts.items(), key=lambda one: (one[0] is None, one[0] or "")):
        yield {"of": of, "value": value, "count": count, "share": count / n, "mean": None}


def _count_answers(project: Project, held: Any, named: Sequence[Grouping]) -> ValueCounts:
    """Count the items' final answers in the other fields with options."""
    task = tasktypes.load_task_type(project)
    names = [field.name for field in task.fields if field.level and field is not task.deciding]
    groups = [one.expression() for one in named]
    rows = held.order_by().values_list("resolutions__values", *groups).iterator(AT_A_TIME)
    return _count_values(
        ANSWERS, (({name: said.get(name) for name in names}, g) for said, *g in rows)
    )


def _count_fields(items: Any, named: Sequence[Grouping]) -> ValueCounts:
    groups = [one.expression() for one in named]
    rows = items.order_by().values_list("fields", *groups).iterator(AT_A_TIME)
    return _count_values(FIELDS, ((fields, group) for fields, *group in rows))


def _count_values(kind: str, rows: Iterable[tuple[dict[str, Any], Sequence[Any]]]) -> ValueCounts:
    """Count the items with each value; an item may count for several values. Fields with too many
    values are left out."""
    found: ValueCounts = defaultdict(lambda: defaultdict(Counter))
    seen: dict[str, set[str]] = defaultdict(set)
    for fields, group in rows:
        for name, value in fields.items():
            if _names_groups(seen[name]):
                words = _value_texts(value)
                seen[name].update(words)
                found[detectors.make_group_key(group)][name].update(words)
    fit = sorted(name for name, values in seen.items() if _names_groups(values))
    return {
        group: {kind + name: fields[name] for name in fit if fields[name]}
        for group, fields in found.items()
    }


def _names_groups(values: set[str]) -> bool:
    """True if these values can name groups of items: there are few values, and none is a long
    text."""
    return len(values) <= MAX_GROUPS and all(len(one) <= LONGEST_VALUE for one in values)


def _value_texts(value: Any) -> set[str]:
    """The value of a field as texts; a list has several."""
    several = value if isinstance(value, list) else [value]
    return {str(one) for one in several if one not in (None, "")}


def _merge_kinds(*kinds: ValueCounts) -> dict[GroupKey, list[tuple[str, Counter[str | None]]]]:
    """Merge the counts of all fields, by group."""
    found: dict[GroupKey, list[tuple[str, Counter[str | None]]]] = defaultdict(list)
    for values in kinds:
        for group, fields in values.items():
            found[group] += [(of, Counter[str | None](n)) for of, n in fields.items()]
    return found


def _count_words(items: Any, named: Sequence[Grouping]) -> dict[GroupKey, dict[str, list[int]]]:
    """Count, for each group and text, the items that have the text and the words in these texts."""
    found: dict[GroupKey, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    current = Revision.objects.filter(item__in=items, number=F("item__revision_number"))
    groups = [one.expression("item__") for one in named]
    rows = current.order_by().values_list("texts", *groups).iterator(chunk_size=AT_A_TIME)
    for texts, *group in rows:
        for name, text in texts.items():
            said = found[detectors.make_group_key(group)][name]
            said[0] += 1
            said[1] += len(unicode_words(_join_text(text)))
    return found


def _join_text(text: Any) -> str:
    """Return a text unchanged; join several texts, such as references, into one."""
    return "\n".join(map(str, text)) if isinstance(text, list) else str(text)


def _mean_rows(words: dict[str, list[int]]) -> Iterator[dict[str, Any]]:
    for name, (count, total) in sorted(words.items()):
        mean = total / count
        yield {"of": WORDS, "value": name, "count": count, "share": None, "mean": mean}
