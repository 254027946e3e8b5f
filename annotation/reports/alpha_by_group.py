"""Krippendorff's alpha by group of items, for the category board.

The same labels as on the page of agreement (`agreeing.load_label_answers`), but without their
answers, so that a hundred thousand of them are read in a moment; and the value alone, without its
interval.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from annotation.models import Label, Project, Stage
from annotation.reports import agreement_answers
from annotation.reports.grouping import Grouping
from annotation.reports.label_times import key_as_text
from annotation.tasktypes import main_field
from stats import agreement, ratings
from stats.agreement import Level
from stats.estimates import Estimate

# What one person said of one item, by the ids of both.
RaterAnswers = dict[tuple[int, int], str]


def compute_alphas(project: Project, by: Grouping) -> dict[str, Estimate]:
    """Alpha of the deciding question at its level, by group; `n` counts items with two labels."""
    decides = main_field.load_main_field(project)
    return {
        group: _alpha(said, decides.level, [value for value, _ in decides.options])
        for group, said in _load_answers(project, by).items()
    }


def _load_answers(project: Project, by: Grouping) -> dict[str, RaterAnswers]:
    """Each person's last counted label of an item given before they could see what others say, if
    a label of theirs is in force."""
    labels = Label.objects.in_project(project).of_tests().at_stage(Stage.LABEL).of_live_items()
    own = labels.filter(counted=True, informed=False, withdrawn_at=None)
    informed = labels.counted().filter(informed=True).values_list("item", "member")
    in_force = set(informed)
    rows = own.order_by("created_at", "pk").values_list(
        by.of("item__"), "item", "member", main_field.load_main_field(project).of_label(), "current"
    )
    last: dict[tuple[int, int], tuple[str, str, bool]] = {}
    for group, item, member, said, current in rows.iterator(chunk_size=5000):
        last[item, member] = key_as_text(group), key_as_text(said), current
    found: dict[str, RaterAnswers] = defaultdict(dict)
    for place, (group, said, current) in last.items():
        if said and (current or place in in_force):
            found[group][place] = said
    return found


def _alpha(said: RaterAnswers, level: str, options: Sequence[str]) -> Estimate:
    names = sorted(set(said.values()))
    values = _as_numbers(names, level, options)
    used: Level = "nominal"
    if values is not None:
        used = "interval" if level == "interval" else "ordinal"
    code = dict(zip(names, values if values is not None else range(len(names)), strict=True))
    items = {item: row for row, item in enumerate(dict.fromkeys(item for item, _ in said))}
    people = {member: column for column, member in enumerate({member for _, member in said})}
    table = np.full((len(items), len(people)), np.nan)
    for (item, member), name in said.items():
        table[items[item], people[member]] = code[name]
    return agreement.krippendorff_alpha(ratings.ratings_from_values(table), used).point()


def _as_numbers(names: Sequence[str], level: str, options: Sequence[str]) -> list[float] | None:
    """The answers as numbers, nan where one has none: their own, or the places of the options of
    an ordinal choice. None if they have no order."""
    if level not in ("ordinal", "interval"):
        return None
    if any(map(agreement_answers.NUMBER_PATTERN.fullmatch, names)):
        return [
            float(one) if agreement_answers.NUMBER_PATTERN.fullmatch(one) else np.nan
            for one in names
        ]
    steps = [option for option in options if option != agreement_answers.NOT_SURE]
    return [float(steps.index(one)) if one in steps else np.nan for one in names]
