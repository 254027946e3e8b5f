"""The penalty that people say a good evaluator should give for an error, item by item.

If the project has switched on `expected_effect`, annotators answer this in the field of its task
type that the option enables.
"""

from collections import defaultdict

from django.db.models.fields.json import KeyTextTransform

from annotation import tasktypes
from annotation.models import Label, Project, Stage
from annotation.tasktypes import outcome_rules
from annotation.tasktypes.fields import Field

EFFECT_OPTION = "expected_effect"
# Values of fields have no spaces, so they cannot equal these words.
DISAGREE, UNANSWERED = "people disagree", "nobody said"
AT_A_TIME = 5_000


def find_field(project: Project) -> Field | None:
    """Find the field with people's answers; None if the task type has no such field."""
    task = tasktypes.load_version(project.task_type)
    return next((one for one in task.fields if one.option == EFFECT_OPTION), None)


def effect_order(project: Project) -> list[str]:
    """The possible answers, the smallest first, followed by the words for unknown ones."""
    asked = find_field(project)
    return [*(str(one.value) for one in (asked.options if asked else ())), DISAGREE, UNANSWERED]


def load_expected_effects(project: Project) -> dict[int, str]:
    """Load, by item id, the answer that more than half of the respondents gave, else `DISAGREE`.

    Only counted labels of the stage `label` are used. Items without an answer are left out. Makes
    one query.
    """
    asked = find_field(project)
    if asked is None:
        return {}
    labels = Label.objects.counted().in_project(project).at_stage(Stage.LABEL).answering(asked.name)
    rows = labels.order_by().values_list("item", KeyTextTransform(asked.name, "answers"))
    said: dict[int, list[str]] = defaultdict(list)
    for item, answer in rows.iterator(AT_A_TIME):
        if answer is not None:
            said[item].append(str(answer))
    return {item: outcome_rules.majority(own, len(own)) or DISAGREE for item, own in said.items()}
