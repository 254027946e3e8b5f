"""People's verdicts on items that they labelled as a baseline for evaluators (study 001).

In section 3.3, experts label again items that are resolved without them, 35 per set.
"""

from collections import defaultdict
from collections.abc import Sequence

from django.db.models import F

from annotation.models import Label, Project, Stage
from annotation.reports.grouping import Grouping

ERROR, NO_ERROR = "error", "no_error"
VERDICT_BY_ANSWER = {ERROR: True, NO_ERROR: False}

# (is an error, was called an error) by item, by member; None if the member was not sure.
ByMember = dict[int, dict[int, tuple[bool, bool | None]]]


def load_people_verdicts(
    project: Project, named: Sequence[Grouping]
) -> dict[tuple[str, ...], ByMember]:
    """By group of items, each person's verdicts and the final label of the same texts. Labels of
    texts that were corrected since are left out. One query."""
    found: dict[tuple[str, ...], ByMember] = defaultdict(lambda: defaultdict(dict))
    labels = Label.objects.in_project(project).at_stage(Stage.BASELINE).counted().of_live_items()
    held = labels.filter(
        item__resolutions__current=True,
        item__resolutions__revision=F("revision"),
        item__resolutions__value__in=VERDICT_BY_ANSWER,
    ).order_by("member", "item__position")
    groups = (one.expression("item__") for one in named)
    columns = ("member", "item", "choice", "item__resolutions__value")
    for member, item, choice, truth, *group in held.values_list(*columns, *groups):
        key = tuple("" if value is None else str(value) for value in group)
        found[key][member][item] = (truth == ERROR, VERDICT_BY_ANSWER.get(choice))
    return found
