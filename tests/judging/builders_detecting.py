"""Runs that judge whether responses have errors, for tests of study 001's figures."""

from collections.abc import Sequence
from typing import Any

from annotation.models import Item, Label, Membership, Project, Resolution, Stage
from judging.models import Endpoint, Run
from judging.runs.run_config import RunOverrides
from tests.annotation.test_agreement import make_label
from tests.builders import make_slot
from tests.judging.builders_judging import make_endpoint, make_items, make_judged


def make_sets(project: Project, errors: int = 4, others: int = 2, **fields: Any) -> list[Item]:
    """Errors, then items without one, of one task."""
    named = {"task": "sums", **fields}
    made = make_items(project, errors, "error", fields=named, category="", ability="")
    return made + make_items(project, others, "no_error", fields=named, category="", ability="")


def make_unlabelled(project: Project, number: int, **fields: Any) -> list[Item]:
    """Items of one task without a final label."""
    items = make_sets(project, number, 0, **fields)
    Resolution.objects.filter(item__in=items).delete()
    return items


def judge_all(items: Sequence[Item], results: str, strategy: str, **values: Any) -> Run:
    """A run over these items, with and without a final label."""
    return judge(items, results, strategy, own=RunOverrides(unlabelled=True), **values)


def judge(items: Sequence[Item], results: str, strategy: str = "detect-1a", **values: Any) -> Run:
    """A run over these items alone; D, U and - stand for detected, undetected and missing."""
    words = {"D": "detected", "U": "undetected", "-": "missing"}
    said = [(item, words[one]) for item, one in zip(items, results, strict=True)]
    picked = {"items": {item.pk for item in items}}
    return make_judged(items[0].project, said, strategy=strategy, **{**picked, **values})


def say_kinds(items: Sequence[Item], *kinds: list[str]) -> None:
    """What people said each error is."""
    for item, said in zip(items, kinds, strict=True):
        item.resolutions.update(values={"verdict": "error", "error_type": said})


def rate_endpoint(name: str, **ratings: float) -> Endpoint:
    """An evaluator whose model has these outside ratings."""
    given = [
        {"name": one, "value": value, "source": "a paper", "date": "2024-03-16"}
        for one, value in ratings.items()
    ]
    return make_endpoint("https://judge.invalid/v1", name=name, ratings=given)


def say_softly(items: Sequence[Item], people: Sequence[Membership], said: Sequence[str]) -> None:
    """What each person says of each item: e is an error, n none, and ? not sure."""
    words = {"e": "error", "n": "no_error", "?": "not_sure"}
    for item, row in zip(items, said, strict=True):
        for person, one in zip(people, row, strict=False):
            make_label(item, person, {"verdict": words[one]})


def label_blind(member: Membership, items: Sequence[Item], choices: Sequence[str]) -> None:
    """What a person said of items of the human baseline."""
    for item, choice in zip(items, choices, strict=True):
        number = item.slots.count() + 1
        Label.objects.create(
            project=item.project,
            item=item,
            revision=item.revision(),
            slot=make_slot(item, number=number, stage=Stage.BASELINE),
            stage=Stage.BASELINE,
            member=member,
            choice=choice,
            submission=f"{member.pk}-{item.pk}",
            task_type=item.project.task_type,
        )
