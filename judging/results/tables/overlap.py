"""How does the overlap with the reference differ by task? The table `overlap`, a view of the page
Against people (study 003, section 3.1)."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import nan
from typing import Any

import numpy as np

from annotation.models import Project, Revision
from judging.models import Outcome, Run
from judging.results import (
    arrays,
    cells,
    chart_parts,
    columns,
    counted,
    detectors,
    group_fields,
    lines,
)
from judging.results.arrays import TEXTS_AT_A_TIME
from judging.results.columns import Table
from judging.results.detectors import GroupKey
from judging.results.metric_lines import metric_view
from judging.results.page_parts import ChartSpec, PageQuery, Rows, TableQuery, study_figures
from judging.results.paired_scores import mean_words
from judging.strategies.definitions import OVERLAP_METRICS
from stats import bootstrap, means

# Where the score is: of a rated response, or of a perturbed answer.
_SCORES = ("score", "perturbed")


def tabulate_overlap(
    project: Project, runs: Sequence[Run], by: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The table `overlap`: the mean and the standard deviation of ROUGE-L in each group of items,
    and the mean number of words of the reference. Raises `UnknownField`.

    Items without a final label count too, since tasks are chosen before people rate.
    """
    named = detectors.check_groupings(project, by)
    fields = ("item__cluster", "revision", "values", *(one.expression("item__") for one in named))
    found = Outcome.objects.counted_or_unlabelled().main().originals()
    for run in runs:
        if run.strategy.strategy().metric not in OVERLAP_METRICS:
            continue
        mine = found.filter(run=run)
        outcomes = list(mine.order_by("item__position").values_list(*fields))
        texts = Revision.objects.filter(pk__in=mine.order_by().values("revision"))
        read = texts.values_list("pk", "texts").iterator(TEXTS_AT_A_TIME)
        words = {pk: mean_words(one) for pk, one in read}
        groups: dict[GroupKey, list[tuple[str, float, float]]] = defaultdict(list)
        for cluster, revision, values, *group in outcomes:
            key = detectors.make_group_key(group)
            groups[key].append((cluster, _score(values), words[revision]))
        for key, rows in sorted(groups.items()):
            yield {
                "run": run.number,
                "endpoint": run.endpoint.name,
                "strategy": run.strategy.slug,
                **dict(zip(by, key, strict=True)),
                **_row(run, key, rows),
            }


def _score(values: Mapping[str, Any]) -> float:
    return next((float(values[one]) for one in _SCORES if values.get(one) is not None), nan)


def _row(run: Run, key: GroupKey, rows: Sequence[tuple[str, float, float]]) -> dict[str, Any]:
    clusters, scores, words = zip(*rows, strict=True)
    figures = [means.clustered_mean(scores), means.clustered_sd(scores)]
    which = np.unique(np.array(clusters, dtype=object).astype(str), return_inverse=True)[1]
    mean, sd = bootstrap.estimates(figures, which, arrays.make_generator("overlap", [run], *key))
    return {
        "n": mean.n,
        **counted.figure_columns("mean", mean),
        **counted.figure_columns("sd", sd),
        "words": float(np.mean(words)),
    }


def _draw(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    """The mean of each group with its interval, for each run."""
    fields = asked.fields()
    dots = [
        (
            cells.run_name(asked.runs_by_number[row["run"]]),
            ", ".join(asked.group_title(one, row[one]) for one in fields) or "All items",
            chart_parts.read_estimate(row, "mean"),
        )
        for row in rows
    ]
    caption = "Mean ROUGE-L of each group, with 95 % intervals."
    kept = dots[: chart_parts.MOST_BARS]
    return chart_parts.draw_dots(
        kept, title="Mean ROUGE-L", caption=caption + chart_parts.cut_note(len(dots))
    )


OVERLAP = Table(
    "overlap",
    (
        *columns.RUN,
        columns.FIELDS,
        columns.Count("n", "Items"),
        columns.Figure("mean", "Mean"),
        columns.Figure("sd", "SD"),
        columns.Number("words", "Words of the reference"),
        *columns.plain(
            *(f"{name}_{end}" for name in ("mean", "sd") for end in ("low", "high", "reason"))
        ),
    ),
    tabulate_overlap,
    group_by=detectors.BY_ITEM_FIELDS,
    about="A row per run of ROUGE-L and group: mean and standard deviation of ROUGE-L, and "
    "the mean number of words of the reference.",
    meanings={
        "n": "number of items, with or without a final label",
        "mean": "mean of ROUGE-L between response and reference, 0 to 1",
        "sd": "sample standard deviation of ROUGE-L over items",
        "words": "mean number of words of the reference",
    },
)
VIEWS = (
    metric_view(
        slug="overlap",
        title="ROUGE-L by task",
        asks=(TableQuery(OVERLAP),),
        figures=("overlap",),
        build=lines.Lines(
            OVERLAP,
            "ROUGE-L by group",
            ("n", "mean", "sd", "words"),
            "Mean and standard deviation of ROUGE-L, and mean number of words of the reference. "
            "The command draw_tasks draws tasks evenly over low and high values of the three "
            "(study 003, section 3.1).",
            _draw,
            leading=lines.RunFields,
        ),
        studies={"003": study_figures("section 3.1, choice of tasks", by=("task",))},
        empty="None of the chosen runs measures ROUGE-L. Start a run of ROUGE-L; tick “Include "
        "items without a final label” if people have not rated them yet.",
        groups=group_fields.list_fields,
        columns=(),
        counts_all=True,
    ),
)
