"""A lead's options for importing a run's replies: target, release policy, and a preview of the
first items."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from annotation import tasktypes
from annotation.errors import FieldError
from annotation.generation.generated_items import GeneratedText
from annotation.generation.release import ReleasePolicy
from annotation.importing import flags
from annotation.items.diffing import difference
from annotation.items.diffing.difference import Difference
from annotation.models import Account, Item, Job, Project
from judging.errors import Refused
from judging.generation import bring_in, rows
from judging.generation.bring_in import BringInRequest
from judging.models import Outcome, Run
from judging.runs import run_config

# The default share released at once, in percent. Of gold answers only a sample, as in study 000.
GOLD_SHARE, DEFAULT_SHARE = 25, 100
FLAGS = flags.FLAG_TITLES
# Items with one of the first three flags have nothing to label. A lead should first check items
# with one of the other flags.
DEFAULT_FLAGS = (
    *("identical", "white-space-only", "empty", "claim", "bound"),
    *(flags.NUMBERS, flags.OUTDATED),
)
PREVIEW_ROWS = 3
# Longer texts are cut after this number of characters.
MAX_TEXT_LENGTH = 6_000


@dataclass(frozen=True)
class PreviewRow:
    """A row to import: its key, its difference to the original text if the task type shows
    differences, and its other texts by title."""

    key: str
    difference: Difference | None
    texts: Mapping[str, str]


def explain_unavailable(run: Run) -> str:
    """The reason why none of a run's replies can be imported now; "" if some of them can."""
    if not run.generates or run.pinned_strategy().frame not in rows.REPLY_TEXTS:
        return f"Run {run.number} does not generate items."
    if problem := rows.explain_unfinished(run):
        return problem
    made = run.outcomes.filter(result=Outcome.Result.MADE).exists()
    return "" if made else f"Run {run.number} generated nothing. Its page shows the causes."


def list_targets(run: Run, account: Account | None) -> list[Project]:
    """The projects that the account leads and that can take a run's items, the run's own project
    first.

    An answer to a prompt may also be imported into another project, as a response in which
    annotators look for errors.
    """
    if account is None:
        return []
    led = Project.objects.led_by(account).select_related("task_type")
    found = sorted(led, key=lambda one: (one.pk != run.project_id, one.name))
    return [one for one in found if _fits(run, one)]


def default_target(run: Run, offered: list[Project]) -> str:
    """The slug of the default target: the run's own project for items that were rejected there,
    otherwise the target of the latest import from that project, the project itself if its items
    wait for these texts, or the only project offered; "" if a lead has to choose."""
    slugs = [one.slug for one in offered]
    if run_config.load_overrides(run.pinned).guidance and run.project.slug in slugs:
        return run.project.slug
    before = Job.objects.filter(project=run.project_id, kind=bring_in.KIND).order_by("-pk").first()
    if before and before.result["into"] in slugs:
        return str(before.result["into"])
    if rows.fills_own_items(run, run.project) and run.project.slug in slugs:
        return run.project.slug
    return slugs[0] if len(slugs) == 1 else ""


def default_share(run: Run) -> int:
    """The percentage of items to release at once by default: `GOLD_SHARE` if the replies are texts
    that the run's own items wait for, otherwise `DEFAULT_SHARE`."""
    return GOLD_SHARE if rows.fills_own_items(run, run.project) else DEFAULT_SHARE


def build_request(
    run: Run, account: Account | None, into: str, vetting: ReleasePolicy
) -> BringInRequest:
    """Build the import request from a lead's choices. Raises `Refused`, or `FieldError` for an
    invalid choice."""
    if problem := explain_unavailable(run):
        raise Refused(problem)
    offered = {one.slug: one for one in list_targets(run, account)}
    if into not in offered:
        named = ", ".join(offered) or "you lead no such project"
        raise FieldError(f"Choose a project that can take these items: {named}.", "into")
    return BringInRequest(run, offered[into], vetting)


def build_preview(run: Run, target: Project) -> list[PreviewRow]:
    """The first rows, as they would be imported."""
    if rows.fills_own_items(run, target):
        return list(_preview_answers(target, list(islice(rows.build_answers(run), PREVIEW_ROWS))))
    return [
        _preview_row(target, one.values)
        for one in islice(rows.build_rows(run, target), PREVIEW_ROWS)
    ]


def _preview_answers(target: Project, answers: list[GeneratedText]) -> Iterator[PreviewRow]:
    """Preview rows of answers, each together with the texts of its item."""
    task = tasktypes.load_task_type(target)
    items = Item.objects.filter(pk__in=[one.item for one in answers]).with_current_texts()
    asked = {item.pk: item.current_revisions[0].texts for item in items}
    for one in answers:
        values = asked.get(one.item, {}) | {task.awaits: one.text}
        yield PreviewRow(one.key, None, dict(_texts(task.texts, values)))


def _fits(run: Run, target: Project) -> bool:
    try:
        rows.check(run, target)
    except Refused:
        return False
    return True


def _preview_row(target: Project, values: Mapping[str, Any]) -> PreviewRow:
    task = tasktypes.load_task_type(target)
    compared = task.diff or ()
    pair = [str(values.get(name) or "") for name in compared]
    if pair and max(map(len, pair)) <= MAX_TEXT_LENGTH:
        rest = [text for text in task.texts if text.name not in compared]
        return PreviewRow(values["key"], difference.compare(*pair), dict(_texts(rest, values)))
    return PreviewRow(values["key"], None, dict(_texts(task.texts, values)))


def _texts(texts: Any, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for text in texts:
        value = values.get(text.name)
        parts = value if isinstance(value, list) else [value]
        if said := "\n\n".join(str(part) for part in parts if part):
            yield text.title, _cut(said)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT_LENGTH else f"{text[:MAX_TEXT_LENGTH]}…"
