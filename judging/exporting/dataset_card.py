"""The data card of items exported for the Hugging Face hub, shown on their page there.

Counts cover the exported rows. Statements about annotators describe the project at the time of the
export, with the text of the methods paragraph and the agreement figures.
"""

import io
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from django.template.loader import render_to_string

from annotation import tasktypes
from annotation.importing import flags
from annotation.items import taxonomy
from annotation.models import Project, Resolution, Snapshot
from annotation.projects import guidelines
from annotation.reports import agreement, agreement_answers
from annotation.templatetags import figures as written
from formats.dataset_card import CardBuilder, FolderCounts
from formats.typeset import escape_markdown, escape_markdown_prose, write_markdown
from judging.archive import versions
from judging.exporting.rows import ExportRequest
from judging.results.tables import methods

# The keys are the identifiers of the hub; "unknown" means that no licence is stated.
LICENCES = {
    "unknown": "not stated",
    "cc0-1.0": "CC0 1.0",
    "cc-by-4.0": "CC BY 4.0",
    "cc-by-sa-4.0": "CC BY-SA 4.0",
    "cc-by-nc-4.0": "CC BY-NC 4.0",
    "cc-by-nc-sa-4.0": "CC BY-NC-SA 4.0",
    "odc-by": "ODC-By",
    "apache-2.0": "Apache 2.0",
    "mit": "MIT",
    "other": "another one",
}
UNSTATED = "unknown"
TAGS = ("blindspot", "evaluation", "benchmark", "llm-as-a-judge")
# The tag for an item that was labelled or adjudicated in this project, and the sources of such a
# final label.
HUMAN_ANNOTATED = "human-annotated"
HUMAN_SOURCES = (Resolution.Source.LABELS, Resolution.Source.ADJUDICATED)
_ITEMS, _UNRESOLVED = "items", "not resolved"
_SOURCE = ("origin", "made by", "model", "gold answer by", _ITEMS)
_AGREEMENT = ("question", "measure", "value", "from", "to", "items", "raters", "undefined because")

Row = dict[str, Any]


def make_card_builder(
    project: Project, wish: ExportRequest, canary: str, now: datetime
) -> CardBuilder:
    """Return a function that writes the card from the counts of the exported folder."""

    def made(held: FolderCounts) -> tuple[Mapping[str, Any], str]:
        front = {
            "pretty_name": project.name,
            "license": wish.licence or UNSTATED,
            "tags": [*TAGS, *([HUMAN_ANNOTATED] if _count_human_decided(held) else [])],
        }
        said = _card_context(project, wish, held) | {"canary": canary, "now": now}
        return front, render_to_string("judging/data_card.txt", said)

    return made


def _card_context(project: Project, wish: ExportRequest, held: FolderCounts) -> dict[str, Any]:
    """Build the template context; all texts by users are escaped for Markdown."""
    snapshot = Snapshot.objects.in_project(project).named(wish.snapshot) if wish.snapshot else None
    filters = [tuple(map(escape_markdown, pair)) for pair in sorted(wish.filters.items())]
    _, people, *_ = methods.write_methods(project, []).paragraphs
    return {
        "name": escape_markdown(project.name),
        "task": project.task_type,
        "held": held,
        "tested": held.items - held.others.total(),
        "texts": list(_describe_texts(project)),
        "counts": _markdown_table(list(_category_rows(project, held))),
        "categories": len({category for _, category, _ in held.counts}),
        "sources": _markdown_table(list(_source_rows(held)), _SOURCE)
        if any(map(any, held.sources))
        else "",
        "written": sum(n for source, n in held.sources.items() if source.is_written),
        "others": [(escape_markdown(kind), n) for kind, n in sorted(held.others.items())],
        "flagged": [
            (escape_markdown(flags.FLAG_TITLES.get(flag, flag)), escape_markdown(flag), n)
            for flag, n in sorted(held.flagged.items())
        ],
        "resolved": held.decided.total(),
        "by_people": _count_human_decided(held),
        "share_by_people": written.share(_count_human_decided(held) / (held.decided.total() or 1)),
        "decided": [
            (n, methods.SOURCES.get(name, escape_markdown(name)))
            for name, n in held.decided.most_common()
        ],
        "unresolved": sum(n for (*_, value), n in held.counts.items() if not value),
        "snapshot": snapshot,
        "snapshot_name": escape_markdown(wish.snapshot),
        "filters": filters,
        "people": escape_markdown_prose(people),
        "agreement": _markdown_table(_agreement_rows(project), _AGREEMENT),
        "guidelines": guidelines.current_version(project),
        "licence": LICENCES.get(wish.licence, "") if wish.licence != UNSTATED else "",
        "program": versions.program_version(),
    }


def _count_human_decided(held: FolderCounts) -> int:
    """Count the items that were labelled or adjudicated in this project. All other items had a
    final label before anybody in the project saw them.
    """
    return sum(held.decided[source] for source in HUMAN_SOURCES)


def _describe_texts(project: Project) -> Iterator[tuple[str, str]]:
    """List the text columns with their titles in the task type, followed by the text columns of
    other task types, which every export has.
    """
    every = (text["name"] for one in tasktypes.load_definitions().values() for text in one["texts"])
    titles = {text.name: text.title for text in tasktypes.load_version(project.task_type).texts}
    names = list(dict.fromkeys(every))
    for name in names:
        if name in titles:
            yield f"`{name}`", escape_markdown(titles[name])
    others = ", ".join(f"`{name}`" for name in names if name not in titles)
    yield others, "shown by other task types, null here"


def _category_rows(project: Project, held: FolderCounts) -> Iterator[Row]:
    """Count the items of each category by final label, and the totals."""
    place = taxonomy.load_taxonomy(project).places()
    groups = sorted(
        {(ability, category) for ability, category, _ in held.counts},
        key=lambda group: (place.get(group[1], len(place)), group),
    )
    values = sorted({value for *_, value in held.counts}, key=lambda value: (not value, value))
    total = dict.fromkeys(values, 0)
    for group in groups:
        found = {value: held.counts[*group, value] for value in values}
        total = {value: total[value] + n for value, n in found.items()}
        yield _count_row(*group, found)
    yield _count_row("all", "all", total)


def _count_row(ability: str, category: str, found: dict[str, int]) -> Row:
    named = {value or _UNRESOLVED: n for value, n in found.items()}
    return {"ability": ability, "category": category, _ITEMS: sum(found.values()), **named}


def _source_rows(held: FolderCounts) -> Iterator[Row]:
    """Count the items from each source, the most frequent source first."""
    for source, n in sorted(held.sources.items(), key=lambda one: (-one[1], one[0])):
        yield dict(zip(_SOURCE, (*source, n), strict=True))


def _agreement_rows(project: Project) -> list[Row]:
    """The agreement over all annotators; undefined values have a reason."""
    return [
        dict(
            zip(
                _AGREEMENT,
                (
                    question.title,
                    agreement.MEASURES[row.measure].title,
                    row.value,
                    row.low,
                    row.high,
                    row.n_items,
                    row.n_raters,
                    row.reason if row.value is None else "",
                ),
                strict=True,
            )
        )
        for question in agreement_answers.list_questions(project)
        for row in agreement.measure_agreement(project, question).rows_of(
            *agreement.MEASURES, people=0
        )
    ]


def _markdown_table(rows: list[Row], columns: tuple[str, ...] = ()) -> str:
    written = io.StringIO()
    write_markdown(rows, columns or tuple(rows[0]), written)
    return written.getvalue().replace("| – ", "| — ")
