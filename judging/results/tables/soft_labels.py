"""How do verdicts go along with the share of people who see an error, where people disagree? The
tables `soft_labels` and `soft_shares`, and the view Soft labels of the page Detector (study 001,
section 5).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import F

from annotation import tasktypes
from annotation.items.models import IN_DATA_SET
from annotation.models import Project
from annotation.reports import agreement_answers
from annotation.reports.grouping import Grouping
from judging.models import Outcome, Run
from judging.results import (
    arrays,
    cells,
    chart_parts,
    columns,
    counted,
    detector_lines,
    detectors,
    group_fields,
    lines,
    progress,
)
from judging.results.arrays import Floats
from judging.results.cells import Row
from judging.results.columns import Table
from judging.results.detectors import VERDICT_BY_ANSWER, GroupKey
from judging.results.page_parts import (
    INTERVAL_WORDS,
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    Switch,
    TableQuery,
    ViewContent,
    study_figures,
)
from judging.strategies.frames import get_item_needs
from stats import bootstrap, closeness, correlation, rates, soft_labels
from stats.estimates import Estimate

FEWEST_PEOPLE = 2
DRAWING_STEP = "drawing clusters"
# What people said of an item, by the share of them who said error.
SHARES = {
    "nobody": "Nobody",
    "minority": "A minority",
    "half": "Half",
    "majority": "A majority",
    "everybody": "Everybody",
}


@dataclass(frozen=True)
class _Votes:
    """How many people judged an item, and how many of them said error."""

    errors: int
    labels: int


@dataclass(frozen=True, eq=False)
class _SoftItems:
    """Items of a run in one group, one array per column: the verdict (nan if missing), the numbers
    of people who said error and of people, and the cluster."""

    verdict: Floats
    errors: Floats
    labels: Floats
    clusters: Sequence[str]

    @property
    def share(self) -> Floats:
        """The share of people who said error."""
        return self.errors / self.labels


def tabulate(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The table `soft_labels`: for each run of error detection and group of items, how its verdicts
    go along with the share of people who said error, over the `n` items with a verdict and labels
    of two people or more.

    People's labels are their own: the last counted one that each gave before they could see those
    of others; those who were not sure do not count. Items need no final label. `labels` is the mean
    number of people of an item, `share` the mean share who said error, `alarms` the share of items
    that the run called an error. `agreement` is the probability that a random person of the item
    says what the run says, `people` that two people say the same, `highest` what one verdict an
    item can reach; `pearson` and `rho` correlate verdicts and shares, and `brier` is their mean
    squared distance. Raises `UnknownField`.
    """
    found = list(_load(project, runs, detectors.check_groupings(project, by)))
    for run, group, items in progress.iterate(found, DRAWING_STEP):
        yield _row(run, dict(zip(by, group, strict=True)), items)


def tabulate_shares(
    project: Project, runs: Sequence[Run], by: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The table `soft_shares`: how often each run of error detection says error if nobody, a
    minority, half, a majority or everybody (`said`) of the people of an item do, over the items of
    `soft_labels`. `rate` is the share of the `n` items with a verdict. Raises `UnknownField`."""
    for run, group, items in _load(project, runs, detectors.check_groupings(project, by)):
        places = [_place(share) for share in items.share]
        for said in SHARES:
            mask = np.array([one == said for one in places])
            if not mask.any():
                continue
            verdicts = items.verdict[mask]
            found = rates.estimate_rate(verdicts, np.array(items.clusters)[mask])
            yield {
                **counted.run_columns(run),
                "total": int(mask.sum()),
                "missing": int(np.isnan(verdicts).sum()),
                **dict(zip(by, group, strict=True)),
                "said": said,
                "n": found.n,
                **counted.estimate_columns(found),
            }


def _place(share: float) -> str:
    if share in (0, 1):
        return "everybody" if share else "nobody"
    if share == 0.5:
        return "half"
    return "minority" if share < 0.5 else "majority"


def _load(
    project: Project, runs: Sequence[Run], named: Sequence[Grouping]
) -> Iterator[tuple[Run, GroupKey, _SoftItems]]:
    """The items with labels of several people that each run judged, by group."""
    strategies = counted.load_strategies(runs)
    chosen = [run for run in runs if get_item_needs(strategies[run.pk]) == "detection"]
    votes = _load_votes(project) if chosen else {}
    outcomes = Outcome.objects.settled().main().filter(
        IN_DATA_SET, item__duplicate_of=None,
        revision__number=F("item__revision_number"),
    )  # fmt: skip
    names = ("run", "item__position", "result", "share", "cluster")
    groups = [one.expression("item__") for one in named]
    rows: dict[int, dict[GroupKey, list[tuple[float, _Votes, str]]]]
    rows = {run.pk: defaultdict(list) for run in chosen}
    for part in progress.split_if_watched(chosen, detectors.READING) if votes else ():
        found = outcomes.filter(run__in=part).order_by("item").values_list(*names, *groups)
        for run, position, result, share, cluster, *group in found.iterator(chunk_size=5_000):
            if own := votes.get(position):
                verdict = {"detected": 1.0, "undetected": 0.0}.get(result, np.nan)
                verdict = verdict if share is None or np.isnan(verdict) else float(share)
                rows[run][detectors.make_group_key(group)].append((verdict, own, cluster))
    for run in chosen:
        for key, items in sorted(rows[run.pk].items()):
            yield (
                run,
                key,
                _SoftItems(
                    np.array([verdict for verdict, _, _ in items]),
                    np.array([float(own.errors) for _, own, _ in items]),
                    np.array([float(own.labels) for _, own, _ in items]),
                    [cluster for _, _, cluster in items],
                ),
            )


def _load_votes(project: Project) -> dict[int, _Votes]:
    """What people said of the items that several people judged, by position."""
    deciding = tasktypes.load_task_type(project).deciding.name
    said: dict[int, list[bool]] = defaultdict(list)
    for one in agreement_answers.load_label_answers(project, only=deciding):
        verdict = VERDICT_BY_ANSWER.get(str(one.answers.get(deciding)))
        if verdict is not None:
            said[one.position].append(verdict)
    return {
        position: _Votes(sum(given), len(given))
        for position, given in said.items()
        if len(given) >= FEWEST_PEOPLE
    }


def _row(run: Run, group: Mapping[str, str], items: _SoftItems) -> dict[str, Any]:
    there = ~np.isnan(items.verdict)
    n = int(there.sum())
    return {
        **counted.run_columns(run),
        "total": len(items.verdict),
        "missing": len(items.verdict) - n,
        **group,
        "n": n,
        "labels": float(items.labels[there].mean()) if n else None,
        "share": float(items.share[there].mean()) if n else None,
        "alarms": float(items.verdict[there].mean()) if n else None,
        **{
            column: value
            for name, found in _estimate(run, group, items).items()
            for column, value in counted.figure_columns(name, found).items()
        },
    }


def _estimate(run: Run, group: Mapping[str, str], items: _SoftItems) -> dict[str, Estimate]:
    """All figures, over the items with a verdict."""
    there, shares = ~np.isnan(items.verdict), items.share
    of_people = soft_labels.agreement_of_people(items.errors, items.labels)
    hits = {
        "agreement": soft_labels.agreement_with_people(items.verdict, shares),
        "people": np.where(there, of_people, np.nan),
        "highest": np.where(there, soft_labels.highest_agreement(shares), np.nan),
    }
    _, clusters = np.unique(items.clusters, return_inverse=True)
    figures = {
        "pearson": correlation.pearson(shares, items.verdict),
        "rho": correlation.spearman(shares, items.verdict),
        "brier": closeness.mse(shares, items.verdict),
    }
    drawn = bootstrap.estimates(
        list(figures.values()),
        clusters,
        arrays.make_generator("soft_labels", [run], *group.values()),
    )
    of_rates = {name: rates.estimate_rate(one, items.clusters) for name, one in hits.items()}
    return {**of_rates, **dict(zip(figures, drawn, strict=True))}


def _figure(
    name: str, title: str, *, in_percent: bool = False, signed: bool = False
) -> tuple[columns.Column, ...]:
    return (
        columns.Figure(name, title, in_percent=in_percent, signed=signed),
        *columns.plain(*(f"{name}_{end}" for end in ("low", "high", "reason"))),
    )


SOFT_LABELS = Table(
    "soft_labels",
    (
        *columns.RUN,
        columns.Column("total"),
        columns.Count("missing", "No verdict"),
        columns.FIELDS,
        columns.Count("n", "Items"),
        columns.Number("labels", "People", unit="mean of an item"),
        columns.Percent("share", "People who say error"),
        columns.Percent("alarms", "Called an error"),
        *_figure("agreement", "Agreement with a person", in_percent=True),
        *_figure("people", "Two people agree", in_percent=True),
        *_figure("highest", "Highest possible", in_percent=True),
        *_figure("pearson", "Pearson r", signed=True),
        *_figure("rho", "Spearman ρ", signed=True),
        *_figure("brier", "Brier score"),
    ),
    tabulate,
    group_by=detectors.BY_ITEM_FIELDS,
    about="A row per run of error detection and group: how its verdicts go along with the "
    "share of people who said error.",
    meanings={
        "total": "number of items with labels of two annotators or more, those without a verdict "
        "included",
        "missing": "number of items with labels of two annotators or more, but without a verdict",
        "n": "number of items with a verdict and labels of two annotators or more",
        "labels": "mean number of annotators of an item",
        "share": "share of the annotators of an item who say error, mean over items",
        "alarms": "share of the items that the run called an error; an item with several samples "
        "counts by the share of its samples",
        "agreement": "probability that a random annotator of the item says what the run says, "
        "mean over items",
        "people": "probability that two annotators of the item say the same, mean over items",
        "highest": "highest agreement that one verdict per item can reach: the share of its "
        "annotators who say what most say, mean over items",
        "pearson": "Pearson correlation of the verdicts with the shares of annotators who say "
        "error",
        "rho": "Spearman rank correlation of the verdicts with these shares",
        "brier": "mean squared distance of the verdicts from these shares, 0 at best",
    },
)
SOFT_SHARES = Table(
    "soft_shares",
    (
        *columns.RUN,
        *columns.plain("total", "missing"),
        columns.FIELDS,
        columns.Text(
            "said",
            "People who say error",
            write=lambda row: SHARES[row["said"]],
            place=lambda row: list(SHARES).index(row["said"]),
        ),
        columns.Rate("rate", "Called an error", n="n"),
        *columns.plain("n", "low", "high", "reason"),
    ),
    tabulate_shares,
    group_by=detectors.BY_ITEM_FIELDS,
    about="A row per run of error detection, group and share of people who said error "
    "(nobody, a minority, half, a majority, everybody): how often the run says error.",
    meanings={
        "total": "number of items with the share `said`, those without a verdict included",
        "missing": "number of items with this share, but without a verdict",
        "n": "number of items with this share and a verdict",
        "said": "how many of the annotators of an item say error: `nobody`, `minority` (under "
        "half), `half`, `majority` or `everybody`",
        "rate": "share of the `n` items that the run called an error",
    },
)
SHOW_SWITCH = Switch("show", "Show", {"agreement": "Agreement", "shares": "Errors called"})


def _draw_agreement(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    labels = [_label(asked, row) for row in rows]
    room = detector_lines.select_first(labels)
    dots = [
        (SOFT_LABELS[name].title, label, chart_parts.read_estimate(row, name))
        for row, label in zip(rows, labels, strict=True)
        for name in ("agreement", "people")
        if label in room
    ]
    caption = (
        "How often a random person says what the run says, and how often two people say the same, "
        "with 95 % intervals."
    )
    return chart_parts.draw_dots(
        dots,
        title="Agreement",
        caption=caption + detector_lines.caption_cut(labels),
        series="Between",
    )


def _draw_shares(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    names = [_label(asked, row) for row in rows]
    room = detector_lines.select_first(names)
    dots = [
        (name.replace(": ", " · "), SHARES[row["said"]], SOFT_SHARES.rate("rate").estimate(row))
        for row, name in sorted(
            zip(rows, names, strict=True), key=lambda one: list(SHARES).index(one[0]["said"])
        )
        if name in room
    ]
    caption = "The share of items that are called an error, by how many people say error."
    return chart_parts.draw_dots(
        dots,
        title="Called an error",
        caption=caption + detector_lines.caption_cut(names),
    )


def _label(asked: PageQuery, row: Row) -> str:
    groups = [asked.group_title(one, row[one]) for one in asked.fields()]
    return ": ".join((*groups, cells.run_name(asked.runs_by_number[row["run"]], ": ")))


_BY_AGREEMENT = lines.Lines(
    SOFT_LABELS,
    "Verdicts against several people",
    (
        *("n", "missing", "labels", "share", "alarms", "agreement", "people", "highest"),
        *("pearson", "rho", "brier"),
    ),
    "Over items that two people or more labelled independently, with or without a final label. "
    "Agreement with a person: how often a random person of the item says what the run says. Two "
    "people agree: the same between two people; about what one more person would reach. Highest "
    "possible: what no verdict can exceed, as people disagree. The Brier score is the mean squared "
    f"distance of verdict and share, 0 at best. {INTERVAL_WORDS}",
    _draw_agreement,
    leading=lines.RunFields,
)
_BY_SHARE = lines.Lines(
    SOFT_SHARES,
    "Errors called by the share of people who say error",
    ("said", "rate"),
    "How often a run says error if nobody, a minority, half, a majority or everybody of the people "
    f"of an item say error. {INTERVAL_WORDS}",
    _draw_shares,
    lambda asked, tables: tables[1],
    lines.RunFields,
)


def build(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """A line per run and group, or one for each share of people."""
    is_by_share = asked.switch_value(SHOW_SWITCH.name) == "shares"
    return (_BY_SHARE if is_by_share else _BY_AGREEMENT)(asked, tables)


VIEW = ResultView(
    slug="soft",
    title="Soft labels",
    asks=(TableQuery(SOFT_LABELS), TableQuery(SOFT_SHARES)),
    figures=("soft_labels", "soft_correlation", "rate"),
    build=build,
    studies={"001": study_figures("section 5")},
    empty="No item of these runs was labelled error or no error by two people. Set more annotators "
    "per item under Settings, and start error detection over these items; tick “Include items "
    "without a final label” to include those on which people disagree.",
    switches=(SHOW_SWITCH,),
    groups=group_fields.list_fields,
    counts_all=True,
)
