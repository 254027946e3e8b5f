"""Checks of labels, slots, members' counters and final labels."""

import json
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.db import connection

from annotation import tasktypes
from annotation.db import sql
from annotation.labelling import assignment, resolution
from annotation.labelling.resolution import ItemState
from annotation.models import WORK_LIKE_STAGES, Event, Job, Project, TaskTypeVersion
from annotation.reports.generation_board import GENERATED_ORIGINS
from annotation.settings.project_settings import RESIZE_JOB
from annotation.tasktypes import TaskType
from operation.integrity.checks import (
    ITEM_NAMES,
    Breach,
    Check,
    build_sql_check,
    select_text,
    stream_rows,
)

# The settings that decide what becomes of an item's labels.
_DECIDING_SETTINGS = {
    "rules", "verify", "overlap", "share_percent", "share_overlap", "disputed_overlap",
    "claim_check", "expected_effect", "blind_first",
}  # fmt: skip
_COUNTED_STAGES = sql.quote_names(WORK_LIKE_STAGES)


def find_wrong_slot_counts() -> Iterator[Breach]:
    """Yield the items that have more or fewer slots at stage `label` than the project's settings
    require.

    Fewer are fine if the item was excluded, or has a final label and closed slots. None are fine if
    the item has a final label, repeats another, may still wait for a text, or was generated or made
    from another item and may wait to be released. More are fine if the project once required as
    many. While a job still applies new settings, a project is left out.
    """
    most = _largest_overlaps()
    projects = {one.pk: one for one in Project.objects.select_related("task_type")}
    awaiting = {pk for pk, one in projects.items() if tasktypes.load_version(one.task_type).awaits}
    resizing = set(
        Job.objects.filter(kind=RESIZE_JOB, finished_at=None).values_list("project_id", flat=True)
    )
    statement = f"""
        SELECT {ITEM_NAMES}, i.project_id, i.origin, s.used, s.closed, r.rule,
            COALESCE(i.duplicate_of_id, i.parent_id) AS made_from
        FROM annotation_item i
        JOIN annotation_project p ON p.id = i.project_id
        LEFT JOIN (
            SELECT item_id,
                COUNT(CASE WHEN state <> 'closed' OR reason = 'waived' THEN 1 END) AS used,
                COUNT(CASE WHEN state = 'closed' THEN 1 END) AS closed
            FROM annotation_slot WHERE stage = 'label' AND reason IN ('', 'share', 'waived')
            GROUP BY item_id
        ) AS s ON s.item_id = i.id
        LEFT JOIN annotation_resolution r ON r.item_id = i.id AND r.current
        WHERE i.purpose = 'test' AND i.deleted_at IS NULL
            AND (s.used <> p.overlap OR p.share_percent > 0 OR s.used IS NULL)
    """
    for row in stream_rows(statement):
        project = projects[row["project_id"]]
        wanted, used = assignment.labels_wanted(project, row["item"]), row["used"] or 0
        if used == wanted or project.pk in resizing:
            continue
        # An item that was made from one of another project has no parent here.
        is_made = row["made_from"] or row["origin"] in GENERATED_ORIGINS
        if row["used"] is None and (row["rule"] or is_made or project.pk in awaiting):
            continue
        is_decided = row["rule"] == resolution.EXCLUDED or (row["rule"] and row["closed"])
        is_left_over = wanted < used <= most[project.pk]
        if not ((used < wanted and is_decided) or is_left_over):
            yield {
                "project": row["project"], "item": row["item"], "slots": used, "required": wanted
            }  # fmt: skip


def find_wrong_label_choices() -> Iterator[Breach]:
    """Yield the labels whose stored choice is not that of their answers. Labels with the same
    answers are looked at once."""
    tasks = {one.pk: tasktypes.load_version(one) for one in TaskTypeVersion.objects.all()}
    columns = f"l.task_type_id, l.stage, l.choice, {select_text('l.answers')}"
    groups = [
        (group, tasks[group["task_type_id"]].choice_of(json.loads(group["given"]), group["stage"]))
        for group in stream_rows(
            f"SELECT {columns} AS given FROM annotation_label l GROUP BY {columns}"
        )
    ]
    for group, expected in groups:
        if group["choice"] == expected:
            continue
        rows = f"""
            SELECT {ITEM_NAMES}, m.alias AS member, l.stage, l.choice AS stored, l.id AS label
            FROM annotation_label l
            JOIN annotation_item i ON i.id = l.item_id
            JOIN annotation_project p ON p.id = i.project_id
            JOIN annotation_membership m ON m.id = l.member_id
            WHERE l.task_type_id = %s AND l.stage = %s AND l.choice = %s
                AND {select_text("l.answers")} = %s
        """
        for row in stream_rows(rows, list(group.values())):
            yield {**row, "by answers": expected}


def find_unknown_orders() -> Iterator[Breach]:
    """Yield the labels that name as first shown what is no text of the pair of their task type."""
    pairs = {one.pk: tasktypes.load_version(one).pair for one in TaskTypeVersion.objects.all()}
    columns = "l.task_type_id, l.first_shown"
    groups = list(
        stream_rows(
            f"SELECT {columns} FROM annotation_label l WHERE l.first_shown <> '' GROUP BY {columns}"
        )
    )
    for group in groups:
        pair = pairs[group["task_type_id"]]
        if pair and group["first_shown"] in pair.texts:
            continue
        rows = f"""
            SELECT {ITEM_NAMES}, m.alias AS member, l.stage, l.first_shown AS stored, l.id AS label
            FROM annotation_label l
            JOIN annotation_item i ON i.id = l.item_id
            JOIN annotation_project p ON p.id = i.project_id
            JOIN annotation_membership m ON m.id = l.member_id
            WHERE l.task_type_id = %s AND l.first_shown = %s
        """
        yield from stream_rows(rows, list(group.values()))


def find_wrong_final_values() -> Iterator[Breach]:
    """Yield the final labels whose value, which figures use, is not that of their values by any
    version of the project's task type. Final labels with the same values are looked at once."""
    versions: dict[str, list[TaskType]] = defaultdict(list)
    for one in TaskTypeVersion.objects.all():
        versions[one.slug].append(tasktypes.load_version(one))
    slugs = dict(Project.objects.values_list("pk", "task_type__slug"))
    current = """
        FROM annotation_resolution r
        JOIN annotation_item i ON i.id = r.item_id
        JOIN annotation_project p ON p.id = i.project_id
        WHERE r.current
    """
    columns = f"""i.project_id, r.value, {select_text('r."values"')}"""
    groups = list(stream_rows(f"SELECT {columns} AS given {current} GROUP BY {columns}"))
    for group in groups:
        values = json.loads(group["given"])
        expected = {task.choice_of(values) for task in versions[slugs[group["project_id"]]]}
        # A final label that was imported alone has no values.
        if not values or group["value"] in expected:
            continue
        rows = f"""
            SELECT {ITEM_NAMES}, r.value AS stored, r.id AS resolution {current}
                AND i.project_id = %s AND r.value = %s AND {select_text('r."values"')} = %s
        """
        for row in stream_rows(rows, list(group.values())):
            yield {**row, "by values": " or ".join(sorted(expected))}


def _largest_overlaps() -> dict[int, int]:
    """The largest number of annotators per item that each project ever had, by the project's id."""
    most: dict[int, int] = defaultdict(int)
    for one in Project.objects.all():
        most[one.pk] = max(one.overlap, one.share_overlap if one.share_percent else 0)
    for event in Event.objects.filter(kind="settings", project__isnull=False):
        assert event.project_id
        for values in (event.old, event.new):
            numbers = [values.get(name, 0) for name in ("overlap", "share_overlap")]
            most[event.project_id] = max(most[event.project_id], *numbers)
    return most


def find_wrong_resolutions() -> Iterator[Breach]:
    """Yield the items whose final label is not what the project's rules make of their labels, and
    the items with all their labels that nobody decides.

    Left out are items whose labels are all older than the last change of the task type or of the
    settings that decide about final labels: such a change leaves final labels as they are. Items
    with the same labels and the same final label are looked at once.
    """
    projects = {one.pk: one for one in Project.objects.select_related("task_type")}
    states, parameters = _build_state_query()
    columns = ", ".join(_STATE_COLUMNS)
    groups = f"SELECT {columns} FROM ({states}) AS each_item GROUP BY {columns}"
    wrong = [
        (group, why)
        for group in stream_rows(groups, parameters)
        if (why := _compare(projects[group["project_id"]], group)) is not None
    ]
    same = " AND ".join(f"{name} = %s" for name in _STATE_COLUMNS)
    for group, why in wrong:
        items = f"SELECT item FROM ({states}) AS each_item WHERE {same}"
        for row in stream_rows(items, [*parameters, *(group[name] for name in _STATE_COLUMNS)]):
            yield {"project": projects[group["project_id"]].slug, "item": row["item"], **why}


def _compare(project: Project, group: Breach) -> Breach | None:
    """Return the stored final label, what the labels give, and what is wrong; None if nothing is
    wrong."""
    stored, answers = json.loads(group["held"]), json.loads(group["answers"])
    state = ItemState(None, group["waiting"], group["filled"], False, False, False, answers)
    try:
        values, _ = resolution.aggregate(project, state)
    except (TypeError, ValueError) as error:
        return {"stored": stored, "by labels": None, "problem": f"cannot be computed ({error})"}
    # As the database stores it.
    expected = json.loads(json.dumps(values))
    problem = _find_problem(project, group, stored, expected)
    return {"stored": stored, "by labels": expected, "problem": problem} if problem else None


def _find_problem(project: Project, group: Breach, stored: Any, expected: Any) -> str:
    if stored is not None:
        if not group["of_current_texts"]:
            return "belongs to older texts"
        return "" if stored == expected else "differs"
    if project.verify:
        return ""
    if expected is not None:
        return "is missing"
    return "nobody decides" if group["filled"] and not (group["waiting"] or group["asked"]) else ""


def _build_state_query() -> tuple[str, list[Any]]:
    """Build the statement that selects the state of each item to look at, and its parameters."""
    changes = [(pk, sql.to_database_time(at)) for pk, at in _last_rule_changes().items()]
    # At least one row, which belongs to no project.
    rows = [(0, sql.to_database_time(datetime.fromtimestamp(0, UTC))), *changes]
    each = "SELECT CAST(%s AS bigint) AS project_id, CAST(%s AS {time}) AS at"
    time = "timestamptz" if connection.vendor == "postgresql" else "text"
    union = " UNION ALL ".join([each.format(time=time)] * len(rows))
    return _STATE_SQL[connection.vendor].format(changes=union), [v for row in rows for v in row]


def _last_rule_changes() -> dict[int, datetime]:
    """When the task type or a setting of `_DECIDING_SETTINGS` last changed, by the project's id."""
    changes = Event.objects.filter(kind__in=["settings", "task-type"], project__isnull=False)
    return {
        event.project_id: event.created_at
        for event in changes.order_by("created_at")
        if event.project_id and (event.kind == "task-type" or _DECIDING_SETTINGS & {*event.new})
    }


# What a group of items has in common.
_STATE_COLUMNS = (
    "project_id", "held", "of_current_texts", "waiting", "filled", "asked", "answers",
)  # fmt: skip
# Items with counted labels of their current texts, or with a final label from labels.
_ITEM_STATE_SQL = """
    SELECT i.project_id, i.key AS item, COALESCE({held}, 'null') AS held,
        CASE WHEN r.revision_id = v.id THEN 1 ELSE 0 END AS of_current_texts,
        s.waiting, s.filled, s.asked, COALESCE(a.answers, '[]') AS answers
    FROM annotation_item i
    JOIN annotation_revision v ON v.item_id = i.id AND v.number = i.revision_number
    JOIN (
        SELECT item_id,
            COUNT(CASE WHEN stage = 'label' THEN 1 END) AS slots,
            COUNT(CASE WHEN stage = 'label' AND state IN ('open', 'held') THEN 1 END) AS waiting,
            COUNT(CASE WHEN stage = 'label' AND state = 'filled' THEN 1 END) AS filled,
            COUNT(CASE WHEN stage = 'adjudicate' AND state IN ('open', 'held') THEN 1 END) AS asked
        FROM annotation_slot GROUP BY item_id
    ) AS s ON s.item_id = i.id
    LEFT JOIN ({answers}) AS a ON a.item_id = i.id AND a.revision_id = v.id
    LEFT JOIN annotation_resolution r ON r.item_id = i.id AND r.current
    LEFT JOIN ({{changes}}) AS c ON c.project_id = i.project_id
    WHERE i.purpose = 'test' AND i.deleted_at IS NULL AND s.slots > 0
        AND CASE WHEN r.id IS NULL THEN a.item_id IS NOT NULL
            ELSE r.source = 'labels' AND r.rule <> 'excluded' END
        AND (c.at IS NULL OR a.last_label > c.at OR r.created_at > c.at)
"""
_COUNTED_LABELS_SQL = "FROM annotation_label WHERE stage = 'label' AND current AND counted"
_STATE_SQL = {
    "postgresql": _ITEM_STATE_SQL.format(
        held='r."values"::text',
        answers="SELECT item_id, revision_id, MAX(created_at) AS last_label,"
        f" json_agg(answers ORDER BY created_at, id)::text AS answers {_COUNTED_LABELS_SQL}"
        " GROUP BY item_id, revision_id",
    ),
    "sqlite": _ITEM_STATE_SQL.format(
        held='r."values"',
        answers="SELECT item_id, revision_id, MAX(created_at) AS last_label,"
        f" json_group_array(json(answers)) AS answers FROM (SELECT * {_COUNTED_LABELS_SQL}"
        " ORDER BY item_id, created_at, id) GROUP BY item_id, revision_id",
    ),
}

CHECKS = (
    build_sql_check(
        "labels-belong",
        "A label, its texts, its slot and its member belong to the label's item and project.",
        "Rows were changed by hand or restored in part. The label would count for a wrong item.",
        f"""
        SELECT {ITEM_NAMES}, m.alias AS member, l.stage, l.id AS label
        FROM annotation_label l
        JOIN annotation_item i ON i.id = l.item_id
        JOIN annotation_project p ON p.id = i.project_id
        JOIN annotation_revision r ON r.id = l.revision_id
        JOIN annotation_membership m ON m.id = l.member_id
        LEFT JOIN annotation_slot s ON s.id = l.slot_id
        WHERE l.project_id <> i.project_id OR m.project_id <> i.project_id
            OR r.item_id <> i.id OR s.item_id <> i.id OR s.stage <> l.stage
        """,
    ),
    build_sql_check(
        "slots-belong",
        "A slot has the project of its item, and its position where items come in the order of the "
        "file; its member is in the project.",
        "The queue would offer the item in the wrong place or to the wrong people.",
        f"""
        SELECT {ITEM_NAMES}, s.stage, s.number, s.id AS slot
        FROM annotation_slot s
        JOIN annotation_item i ON i.id = s.item_id
        JOIN annotation_project p ON p.id = i.project_id
        LEFT JOIN annotation_membership m ON m.id = s.member_id
        LEFT JOIN annotation_membership f ON f.id = s.reserved_for_id
        WHERE s.project_id <> i.project_id
            OR m.project_id <> i.project_id OR f.project_id <> i.project_id
            OR (s.position <> i.position AND p."order" = 'file' AND NOT EXISTS (
                SELECT 1 FROM annotation_job j WHERE j.project_id = p.id
                    AND j.kind = 'places' AND j.finished_at IS NULL))
        """,
    ),
    build_sql_check(
        "counted-labels",
        "A counted label fills a slot of its member, except if a qualification item is repeated.",
        "The item counts one label too many, or another person can fill the same slot.",
        f"""
        SELECT {ITEM_NAMES}, m.alias AS member, l.stage, s.state AS slot_state, l.id AS label
        FROM annotation_label l
        LEFT JOIN annotation_slot s ON s.id = l.slot_id
        JOIN annotation_item i ON i.id = l.item_id
        JOIN annotation_project p ON p.id = i.project_id
        JOIN annotation_membership m ON m.id = l.member_id
        WHERE l.current AND l.counted AND l.stage <> 'qualification'
            AND (s.id IS NULL OR s.state <> 'filled' OR COALESCE(s.member_id, 0) <> l.member_id)
        """,
    ),
    build_sql_check(
        "filled-slots",
        "A filled slot has the current label of its member.",
        "A label was lost, or the slot is taken without a label, so that the item waits for ever.",
        f"""
        SELECT {ITEM_NAMES}, m.alias AS member, s.stage, s.number, s.id AS slot
        FROM annotation_slot s
        JOIN annotation_item i ON i.id = s.item_id
        JOIN annotation_project p ON p.id = i.project_id
        JOIN annotation_membership m ON m.id = s.member_id
        WHERE s.state = 'filled' AND NOT EXISTS (
            SELECT 1 FROM annotation_label l JOIN annotation_revision r ON r.id = l.revision_id
            WHERE l.slot_id = s.id AND l.member_id = s.member_id AND l.current
                AND (l.counted OR r.number < i.revision_number)
        )
        """,
    ),
    Check(
        "slot-counts",
        "An item has as many slots as the project's settings ask for labels.",
        "The item gets too many or too few labels. Save the number of annotators in the settings "
        "again, with another value first, to correct it.",
        find_wrong_slot_counts,
    ),
    build_sql_check(
        "label-counters",
        "The stored number of a member's labels is the number of current labels.",
        "Progress and limits of this member are wrong; the labels themselves are not affected.",
        f"""
        SELECT p.slug AS project, m.alias AS member, m.labelled AS stored,
            COALESCE(c.n, 0) AS counted
        FROM annotation_membership m
        JOIN annotation_project p ON p.id = m.project_id
        LEFT JOIN (
            SELECT member_id, COUNT(*) AS n FROM annotation_label
            WHERE current AND stage IN ({_COUNTED_STAGES}) GROUP BY member_id
        ) AS c ON c.member_id = m.id
        WHERE m.labelled <> COALESCE(c.n, 0)
        """,
    ),
    Check(
        "label-choices",
        "The choice of a label is what its answers say.",
        "Figures and exports would show a choice that the annotator did not give. Take the label "
        "from a backup.",
        find_wrong_label_choices,
    ),
    Check(
        "label-orders",
        "The text that a label says was shown first is one of the pair of its task type.",
        "The share of labels that prefer the response shown first would be wrong. Take the label "
        "from a backup.",
        find_unknown_orders,
    ),
    build_sql_check(
        "replaced-labels",
        "A label that is no longer current was undone or replaced by a later label.",
        "A label stopped counting although nobody undid or replaced it.",
        f"""
        SELECT {ITEM_NAMES}, m.alias AS member, l.stage, l.id AS label
        FROM annotation_label l
        JOIN annotation_item i ON i.id = l.item_id
        JOIN annotation_project p ON p.id = i.project_id
        JOIN annotation_membership m ON m.id = l.member_id
        WHERE NOT l.current AND l.withdrawn_at IS NULL AND NOT EXISTS (
            SELECT 1 FROM annotation_label n
            WHERE n.item_id = l.item_id AND n.member_id = l.member_id AND n.stage = l.stage
                AND (n.supersedes_id = l.id OR n.created_at > l.created_at)
        )
        """,
    ),
    build_sql_check(
        "recorded-labels",
        "Every label in the audit log is stored.",
        "A label was deleted. Take it from a backup: what people wrote must not be lost.",
        """
        SELECT p.slug AS project, e.subject AS item, m.alias AS member, e.n AS recorded,
            COALESCE(l.n, 0) AS stored
        FROM (
            SELECT project_id, member_id, subject, COUNT(*) AS n FROM annotation_event
            WHERE kind = 'label' GROUP BY project_id, member_id, subject
        ) AS e
        JOIN annotation_project p ON p.id = e.project_id
        JOIN annotation_membership m ON m.id = e.member_id
        LEFT JOIN annotation_item i ON i.project_id = e.project_id AND i.key = e.subject
        LEFT JOIN (
            -- Not the copies for a corrected gold answer, which have the time of their original.
            SELECT a.item_id, a.member_id, COUNT(*) AS n FROM annotation_label a
            LEFT JOIN annotation_label b ON b.id = a.supersedes_id
            WHERE b.id IS NULL OR b.created_at <> a.created_at
            GROUP BY a.item_id, a.member_id
        ) AS l ON l.item_id = i.id AND l.member_id = e.member_id
        WHERE COALESCE(l.n, 0) < e.n
        """,
    ),
    build_sql_check(
        "resolutions-belong",
        "A final label belongs to texts of its item, and has an end if and only if it is over.",
        "Rows were changed by hand or restored in part.",
        f"""
        SELECT {ITEM_NAMES}, r.value, r.source, r.id AS resolution
        FROM annotation_resolution r
        JOIN annotation_item i ON i.id = r.item_id
        JOIN annotation_project p ON p.id = i.project_id
        JOIN annotation_revision v ON v.id = r.revision_id
        WHERE v.item_id <> r.item_id OR r.current = (r.ended_at IS NOT NULL)
        """,
    ),
    Check(
        "resolutions",
        "The final label of an item is what the project's rules make of its labels.",
        "Figures would use a final label that the annotators did not give, or the item waits for "
        "nobody. Send the item to adjudication.",
        find_wrong_resolutions,
    ),
    Check(
        "final-values",
        "The value of a final label, which figures use, is what its values say.",
        "Figures would use a final label that nobody decided. Take it from a backup.",
        find_wrong_final_values,
    ),
    build_sql_check(
        "qualification-rounds",
        "The stored number of answers in a qualification round is at most the number of labels.",
        "A round could have been passed without its answers.",
        """
        SELECT p.slug AS project, m.alias AS member, q.number AS round, q.answered AS stored,
            COUNT(l.id) AS counted
        FROM annotation_practiceround q
        JOIN annotation_membership m ON m.id = q.member_id
        JOIN annotation_project p ON p.id = m.project_id
        LEFT JOIN annotation_label l ON l.member_id = m.id AND l.stage = 'qualification'
            AND l.created_at >= q.started_at
        GROUP BY p.slug, m.alias, q.id, q.number, q.answered
        HAVING q.answered > COUNT(l.id)
        """,
    ),
)
