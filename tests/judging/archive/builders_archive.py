"""Projects that hold something for every table, and archives of them."""

import json
import zipfile
from collections.abc import Sequence
from decimal import Decimal
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from annotation.models import Item, Project
from judging.archive import create
from judging.archive.create import ArchiveOptions
from judging.models import Reply, Run
from judging.runs import lifecycle as running
from tests.annotation.test_agreement import make_label
from tests.builders import make_guidelines, make_item, make_member, make_project, say, take
from tests.judging import builders_rated
from tests.judging.builders_decided import make_every_frame, make_replied, scores
from tests.judging.builders_judging import (
    TWO_CALLS,
    answer,
    make_endpoint,
    make_items,
    make_judged,
    make_run,
)

METRICS = ("naturalness", "relatedness", "correctness")


def make_vetted() -> Project:
    """Forty items of 21 questions, two people's labels of six more, and runs of four frames, one
    of which was asked."""
    project = make_project("fbi", overlap=2)
    make_guidelines(project)
    items = [
        *make_items(project, 20, fields={"model": "a", "edit": 3}),
        *make_items(project, 12, category="spelling", ability="long-form", fields={"model": "b"}),
        *make_items(project, 8, "score-invariant", origin="paraphrase", fields={"model": "a"}),
    ]
    for item in items:
        item.cluster = f"cluster-{item.position // 2}"
    Item.objects.bulk_update(items, ["cluster"])
    judge(project, items)
    ask(project)
    label(project)
    return project


def judge(project: Project, items: list[Item]) -> None:
    """Runs of replies that nobody was asked for."""
    apart = [scores(9, 5), scores(9, 9), scores(8, 9), scores(9, None), scores(7, 6)]
    make_every_frame(project, items, apart)


def ask(project: Project) -> Run:
    """A run with calls, requests, replies that cost something, and readings."""
    endpoint = make_endpoint("https://judge.invalid/v1", name="asked", model="judge-1")
    run = make_run(project, endpoint, TWO_CALLS, limit=6)
    running.plan_calls(run)
    answer(run, '{"score": 7}', number=9, model="judge-1-0613")
    answer(run, "I would rather not say.", model="judge-1-0613")
    spent = Decimal(0)
    for place, reply in enumerate(Reply.objects.filter(request__calls__run=run).order_by("pk")):
        # Twelve decimals, whose sum in binary fractions has a rest.
        cost = round(Decimal("0.0000305") / (place + 1), 12)
        spent += cost
        Reply.objects.filter(pk=reply.pk).update(cost=cost)
    Run.objects.filter(pk=run.pk).update(spent=spent)
    return run


def label(project: Project) -> None:
    """Two people label six new items, and disagree on two."""
    for number in range(6):
        make_item(project, f"open-{number}", slots=2)
    for alias, wrong in (("ann", 0), ("bob", 2)):
        member = make_member(project, alias=alias)
        for number in range(6):
            said = "invalid" if number < wrong else "valid"
            say(member, take(member), said, comment="Private.", seconds=20 + number)


def make_detected() -> Project:
    """Study 001's frame: errors and others of two tasks, judged by the four prompts."""
    project = make_project("found", task_type="error-detection")
    items = make_items(project, 12, "error", fields={"task": "sums"})
    items += make_items(project, 12, "no_error", fields={"task": "facts"})
    endpoint = make_endpoint("https://judge.invalid/v1")
    for shift, strategy in enumerate(("detect-1a", "detect-1b", "detect-2a", "detect-2b")):
        words = cycle(["detected", "undetected", "detected", "missing", "undetected"][shift:])
        said = zip(items, words, strict=False)
        make_judged(project, said, strategy=strategy, endpoint=endpoint)
    return project


def make_dosed() -> Project:
    """Ladders of one to three errors, by a column and by a field of the items, scored against gold
    and against a reference; people say how much each error should take off."""
    project = make_project("dosed", overlap=2)
    items = [item for dose in (1, 2, 3) for item in make_items(project, 4, dose=dose)]
    units = {"category": "incorrect-units", "ability": "reasoning"}
    items += make_items(project, 4, fields={"dose": 2}, **units)
    items += make_items(project, 4, "score-invariant", origin="paraphrase")
    told = [scores(9, 8), scores(9, 5), scores(9, None), scores(9, 2), scores(9, 9)]
    make_replied(project, "vanilla", zip(items, cycle(told), strict=False))
    make_replied(project, "reference", zip(items, cycle([scores(9), scores(4)]), strict=False))
    ann, bob = (make_member(project, alias=alias) for alias in ("ann", "bob"))
    effects = cycle(["little", "lot", "lot", "some"])
    for item, effect in zip(items[:14], effects, strict=False):
        make_label(item, ann, {"choice": "valid", "effect": effect, "explanation": "Private."})
        if item.position % 3:
            make_label(item, bob, {"choice": "valid", "effect": "lot"})
    return project


def make_rated(folder: Path) -> Project:
    """Study 003's: thirty items in two languages, rated by three people and by an evaluator."""
    rng = np.random.Generator(np.random.PCG64(5))
    golds = {"sv": ["Åsa åt äpplen i går."], "hi": ["हिन्दी भाषा", "वह हिन्दी बोलती है"]}
    texts = [
        {
            "key": f"i{n}",
            "prompt": f"Fråga {n // 2}?",
            "gold": golds[("sv", "hi")[n % 2]],
            "response": ("Åsa åt äpplen", "हिन्दी", "något helt annat")[n % 3],
            "language": ("sv", "hi")[n % 2],
        }
        for n in range(30)
    ]
    project = builders_rated.bring_items(folder, "rated", texts)
    given = [(one["key"], _points(rng)) for one in texts for _ in range(3)]
    raters = cycle(("ada", "björn", "चित्रा"))
    said = [(key, rater, points) for (key, points), rater in zip(given, raters, strict=False)]
    builders_rated.bring_labels(folder, project, said)
    judged = [(one["key"], _points(rng)) for one in texts]
    builders_rated.bring_scores(folder, project, "judge", "likert", judged)
    return project


def _points(rng: np.random.Generator) -> dict[str, int]:
    return {metric: int(rng.integers(1, 4)) for metric in METRICS}


def archive(
    project: Project, path: Path, wanted: ArchiveOptions | None = None, numbers: Sequence[int] = ()
) -> Path:
    """The archive of these runs of a project, of all shown ones without numbers; no charts."""
    shown = Run.objects.in_project(project).for_results().listed()
    runs = list(shown.filter(number__in=numbers) if numbers else shown)
    with path.open("w+b") as stream:
        create.write_archive(
            project, runs, wanted or ArchiveOptions(), stream, lambda name, rows: None
        )
    return path


def lines(path: Path, name: str) -> list[dict[str, Any]]:
    """The rows of a table of an archive."""
    with zipfile.ZipFile(path) as held:
        return [json.loads(line) for line in held.read(f"data/{name}.jsonl").splitlines()]
