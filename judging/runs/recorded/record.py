"""Import replies that were made elsewhere into a project, as recorded runs.

There is one run for each endpoint and strategy. No request is sent, and the prompts are not known.
A value that somebody else read in a reply is stored as a reading of the parser `stored`, next to
the reading of our own parser. The run's parser determines which reading decides the outcomes.
Idempotent: a second import of the same rows adds nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from annotation.items import taxonomy
from annotation.models import Item, Membership, Project
from formats.rows import BadRow
from judging.errors import Refused
from judging.models import Endpoint, Run, StrategyVersion
from judging.runs import pinning, run_items, selection, start_checks
from judging.runs.recorded import storage, verdicts
from judging.runs.recorded.storage import PROVIDER, CheckedPart, RecordedPart
from judging.runs.recorded.transcripts import STORED, Transcript
from judging.runs.recorded.verdicts import JudgedPlace, PlaceKey
from judging.runs.run_items import DrawnItems
from judging.strategies import Strategy, frames

# Recordings may leave out failed replies, so a run over this share of the items still counts as
# complete.
NEARLY_ALL_SHARE = 0.9
# Behind the last slash of an endpoint's address, these open other pages than its own.
PAGE_WORDS = frozenset({"new", "edit", "test", "archive", "restore", "delete", "end-pause"})


@dataclass
class ImportReport:
    """The result of an import. `runs` are the new runs, `known` the runs that already existed. If
    `bad` has any row, nothing is stored. `values` counts rows without the text of a reply.
    `differing` counts items of the new runs whose stored and parsed verdicts differ. `otherwise`
    lists runs that lack the requested kind of verdict (stored or parsed) and use the other kind."""

    runs: list[Run] = field(default_factory=list)
    known: list[Run] = field(default_factory=list)
    replies: int = 0
    values: int = 0
    items: int = 0
    differing: int = 0
    otherwise: list[Run] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)


def record_replies(
    project: Project,
    parts: Iterable[RecordedPart],
    *,
    now: datetime,
    wanted: str = "",
    dry_run: bool = False,
    while_labelling: bool = False,
    member: Membership | None = None,
) -> ImportReport:
    """Create a finished run for each part. If a row of any part is bad, create none.

    `wanted` says which verdicts decide, `stored` or `parsed`; with "", the stored verdicts if a
    part has any. Raises `Refused` for a new endpoint with a name that none can have, and if the
    items are still being labelled, unless `while_labelling` allows it.
    """
    report, prepared = ImportReport(), []
    for part in parts:
        run = _draft_run(project, part, verdicts.choose_verdicts(part.transcripts, wanted))
        if known := storage.find_same_run(run):
            report.known.append(known)
        elif made := _check_part(part, run, report.bad):
            prepared.append(made)
    if report.bad:
        return report
    for one in prepared:
        _check_labelling(one, while_labelling, member)
    for one in prepared:
        if dry_run or storage.store_part(one, now):
            _add_to_report(one, report, wanted)
        else:
            report.known += filter(None, [storage.find_same_run(one.run)])
    return report


def build_project_strategy(project: Project, version: StrategyVersion) -> Strategy:
    """Build a strategy for the project's recorded runs, with the metrics of the task type."""
    return pinning.draft_run(project, version, Endpoint(provider=PROVIDER)).pinned_strategy()


def _check_labelling(one: CheckedPart, while_labelling: bool, member: Membership | None) -> None:
    """Raise `Refused` if the items are still being labelled and nobody allows it."""
    labelling = start_checks.count_being_labelled(one.run, one.drawn.items)
    start_checks.check_labelling(labelling, allowed=while_labelling, member=member)
    one.run.while_labelling, one.run.member = bool(labelling), member


def _add_to_report(one: CheckedPart, report: ImportReport, wanted: str) -> None:
    report.runs.append(one.run)
    kept = sum(told.is_kept for told in one.part.transcripts)
    report.replies += kept
    report.values += len(one.part.transcripts) - kept
    report.items += len(one.drawn.items)
    report.differing += sum(judged.differs for judged in one.judged.values())
    if wanted not in {"", one.run.pinned["recorded"]["verdicts"]}:
        report.otherwise.append(one.run)


def _check_part(part: RecordedPart, run: Run, bad: list[BadRow]) -> CheckedPart | None:
    """Return the part with its verdicts for each place. If the part cannot be used, return None and
    add the reasons to `bad`."""
    strategy = build_project_strategy(run.project, part.version)
    judged: dict[PlaceKey, JudgedPlace] = {}
    choice = run.pinned["recorded"]["verdicts"]
    for place, found in verdicts.judge_places(strategy, part.transcripts, choice).items():
        if isinstance(found, BadRow):
            bad.append(found)
        else:
            judged[place] = found
    drawn = _draw_items(run.project, strategy, judged)
    there = {(place["key"], place["axis"]) for place in drawn.places}
    lost = [one.transcripts[0] for place, one in judged.items() if place not in there]
    outdated = _find_outdated(run.project, part.transcripts)
    bad += [*_explain_lost(run.project, lost), *outdated]
    return (
        None if lost or outdated or not judged else CheckedPart(part, strategy, run, drawn, judged)
    )


def _find_outdated(project: Project, transcripts: Sequence[Transcript]) -> list[BadRow]:
    """Return the rows that name another revision than that of the item's texts now."""
    told = [one for one in transcripts if one.revision is not None]
    items = Item.objects.in_project(project).filter(key__among={one.item for one in told})
    now = dict(items.values_list("key", "revision_number"))
    return [
        one.bad(
            "revision",
            f"is {one.revision}, but the texts are at revision {now[one.item]}. Judge these texts, "
            "or leave the row out.",
        )
        for one in told
        if one.item in now and now[one.item] != one.revision
    ]


def _draw_items(
    project: Project, strategy: Strategy, judged: Mapping[PlaceKey, JudgedPlace]
) -> DrawnItems:
    """Find the places of the replies whose items are resolved in the project."""
    # A run with a "fold" strategy decides between error and no error, like detection.
    asked = replace(strategy, frame="detection") if strategy.frame == "fold" else strategy
    keys = {key for key, _ in judged}
    found = selection.load_rows(project, frames.get_item_needs(asked), with_duplicates=True)
    rows = [row for row in found if row["key"] in keys]
    known = taxonomy.load_taxonomy(project)
    places = [place for row in rows for place in run_items.build_places(asked, row, known)]
    whole = {row["key"] for row in found if not row["duplicate_of"]}
    is_part = len(whole & keys) < NEARLY_ALL_SHARE * len(whole)
    return DrawnItems(
        [place for place in places if (place["key"], place["axis"]) in judged], is_part=is_part
    )


def _explain_lost(project: Project, lost: Sequence[Transcript]) -> Iterator[BadRow]:
    """Explain why there is no place for these replies."""
    items = Item.objects.in_project(project).filter(key__in={told.item for told in lost})
    there = set(items.values_list("key", flat=True))
    for told in lost:
        why = "is not an item of the project. Import the items first."
        if told.item in there:
            why = (
                "has no final label that the strategy can use. Label it, or import it with "
                "--accept."
            )
        yield told.bad("item", f"{told.item} {why}")


def _check_new_name(name: str) -> None:
    """Names of others' evaluators and raters may have spaces and slashes, but each needs a page.
    Raises `Refused`."""
    parts = name.split("/")
    if not name.isprintable() or {"", ".", ".."} & {*parts} or parts[-1] in PAGE_WORDS:
        raise Refused(
            f"{name!r} cannot name an endpoint, since its page could not be opened. Leave out "
            "signs that cannot be seen, and give it another part behind the last slash."
        )


def _draft_run(project: Project, part: RecordedPart, choice: str) -> Run:
    """Build the unsaved run with its endpoint. The endpoint is created when the run is stored.
    Raises `Refused` for a new endpoint with a name that none can have."""
    endpoint = Endpoint.objects.named(part.endpoint)
    if endpoint is None:
        _check_new_name(part.endpoint)
        endpoint = Endpoint(name=part.endpoint, provider=PROVIDER, model=part.endpoint)
    samples = 1 + max(told.sample for told in part.transcripts)
    values: dict[str, Any] = {"kind": Run.Kind.RECORDED, "state": Run.State.FINISHED, "seed": 0}
    run = pinning.draft_run(project, part.version, endpoint, samples=samples, **values)
    run.pinned["recorded"] = {
        "files": sorted({told.row.file for told in part.transcripts}),
        "verdicts": choice,
        "digest": part.digest(choice),
    }
    if choice == STORED:
        run.parser = STORED
    return run
