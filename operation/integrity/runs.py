"""Checks of runs: requests, replies, outcomes, money, and what runs pin."""

from collections.abc import Iterator
from decimal import Decimal

from annotation import tasktypes
from annotation.items import taxonomy
from annotation.models import Event, TaskTypeVersion, TaxonomyVersion
from judging import strategies
from judging.models import Budget, Run, StrategyVersion, Tally
from judging.runs import counts, pinning
from operation.integrity.checks import Breach, Check, build_sql_check

# SQLite adds amounts as binary fractions.
_TOLERANCE = "0.000001"
_RUN = "p.slug AS project, u.number AS run"
_RUNS = "judging_run u JOIN annotation_project p ON p.id = u.project_id"
# A run that still creates its calls changes to `running` without an event.
_UNRECORDED_CHANGE = (Run.State.PLANNING.value, Run.State.RUNNING.value)


def find_exceeded_budgets() -> Iterator[Breach]:
    """Yield the projects that have spent and reserved more than their cap since it was set.

    A lead may set a cap below what is already counted, to stop all runs. Caps that earlier versions
    set are left out: their events do not say what was counted then.
    """
    for budget in Budget.objects.filter(cap__isnull=False).select_related("project"):
        assert budget.cap is not None
        was_set = Event.objects.filter(project=budget.project, kind="budget").order_by("pk").last()
        if was_set is None or "counted" not in was_set.data:
            continue
        allowed = max(budget.cap, Decimal(was_set.data["counted"]))
        counted = budget.spent + budget.reserved
        if counted > allowed + Decimal(_TOLERANCE):
            yield {"project": budget.project.slug, "cap": budget.cap, "counted": counted}


def find_changed_pins() -> Iterator[Breach]:
    """Yield the runs that do not have the stored digest of everything that they pin.

    A run over another one keeps the digest that this had at its start, before its replies were
    parsed again.
    """
    for run in Run.objects.select_related("project", "strategy").order_by("pk"):
        if pinning.compute_digest(run) != run.digest and not _has_reparsed_source(run):
            yield {"project": run.project.slug, "run": run.number, "stored": run.digest}


def _has_reparsed_source(run: Run) -> bool:
    parsed = Event.objects.filter(kind="run running", data__has_key="parser")
    since = parsed.filter(project=run.project_id, created_at__gt=run.created_at)
    names = [f"run {number}" for number in run.sources.values_list("number", flat=True)]
    return since.filter(subject__in=names).exists()


def find_changed_definitions() -> Iterator[Breach]:
    """Yield the versions of strategies, task types and taxonomies whose definition does not have
    the stored digest."""
    for version in StrategyVersion.objects.order_by("pk").iterator():
        if strategies.compute_digest(version.definition) != version.digest:
            yield {"strategy": str(version), "stored": version.digest}
    for task in TaskTypeVersion.objects.order_by("pk").iterator():
        if tasktypes.digest_definition(task.definition) != task.digest:
            yield {"task type": str(task), "stored": task.digest}
    for categories in TaxonomyVersion.objects.order_by("pk").iterator():
        if taxonomy.digest_definition(categories.definition) != categories.digest:
            yield {"taxonomy": str(categories), "stored": categories.digest}


def find_wrong_counts() -> Iterator[Breach]:
    """Yield the finished runs whose stored counts differ from a new count although nothing has
    changed since."""
    ended = Run.objects.filter(state__in=[Run.State.FINISHED, Run.State.CANCELLED])
    for run in ended.select_related("project").order_by("pk"):
        state = counts.load_states([run])[run.pk]
        for tally in Tally.objects.filter(run=run, kind=Tally.Kind.ITEMS, state=state):
            counted = counts.count_items([run.pk])[run.pk]
            if tally.counts != counted:
                yield {
                    "project": run.project.slug, "run": run.number,
                    "stored": tally.counts, "counted": counted,
                }  # fmt: skip


def find_broken_histories() -> Iterator[Breach]:
    """Yield the runs whose state is not the last one in the audit log, and the changes of state in
    the log that do not follow from the one before."""
    runs = Run.objects.select_related("project").order_by("pk")
    for run in runs:
        events = Event.objects.filter(project=run.project_id, subject=f"run {run.number}")
        last = ""
        for event in events.filter(kind__startswith="run ").order_by("pk"):
            old, new = event.old.get("state", ""), event.new.get("state", "")
            if last and old and not _may_follow(last, old):
                yield {
                    "project": run.project.slug, "run": run.number,
                    "event": event.kind, "recorded": old, "before": last,
                }  # fmt: skip
            last = new or last
        if last and not _may_follow(last, run.state):
            yield {
                "project": run.project.slug, "run": run.number,
                "stored": run.state, "recorded": last,
            }  # fmt: skip


def _may_follow(recorded: str, state: str) -> bool:
    return state == recorded or (recorded, state) == _UNRECORDED_CHANGE


CHECKS = (
    build_sql_check(
        "replies",
        "A request is answered if and only if its one reply is stored.",
        "A paid reply was lost, or a request that has a reply would be sent again.",
        """
        SELECT q.id AS request, q.state, q.digest, y.id AS reply
        FROM judging_request q LEFT JOIN judging_reply y ON y.request_id = q.id
        WHERE (q.state = 'answered') <> (y.id IS NOT NULL)
        """,
    ),
    build_sql_check(
        "leases",
        "A leased request has a holder and a run; other requests have neither, and no amount.",
        "The amount reserved for the request would never be freed.",
        """
        SELECT id AS request, state, leased_by, leased_for_id AS leased_for, reserved
        FROM judging_request
        WHERE CASE WHEN state = 'leased' THEN leased_by = '' OR leased_for_id IS NULL
            ELSE reserved <> 0 OR leased_by <> '' OR leased_for_id IS NOT NULL END
        """,
    ),
    build_sql_check(
        "reserved",
        "The amount that a run has reserved is the sum over its leased requests.",
        "The run stops too early or too late at its cap.",
        f"""
        SELECT {_RUN}, u.reserved AS stored, COALESCE(q.sum, 0) AS counted
        FROM {_RUNS} LEFT JOIN (
            SELECT leased_for_id, SUM(reserved) AS sum FROM judging_request
            WHERE state = 'leased' GROUP BY leased_for_id
        ) AS q ON q.leased_for_id = u.id
        WHERE ABS(u.reserved - COALESCE(q.sum, 0)) > {_TOLERANCE}
        """,
    ),
    build_sql_check(
        "spent",
        "A run has spent at least the cost of the replies that it alone uses, and at most the cost "
        "of all replies that it uses and of all tries without a reply.",
        "The cost of a reply was booked twice or not at all, so caps and cost tables are wrong.",
        f"""
        SELECT {_RUN}, u.spent AS stored, COALESCE(c.own, 0) AS at_least,
            COALESCE(c.every, 0) AS at_most
        FROM {_RUNS} LEFT JOIN (
            SELECT w.run_id, SUM(CASE WHEN w.users = 1 THEN y.cost ELSE 0 END) AS own,
                SUM(COALESCE(y.cost, 0) + q.charged) AS every,
                COUNT(y.id) - COUNT(y.cost) AS unknown
            FROM (
                SELECT d.request_id, d.run_id,
                    COUNT(*) OVER (PARTITION BY d.request_id) AS users
                FROM (SELECT DISTINCT request_id, run_id FROM judging_call) AS d
            ) AS w JOIN judging_request q ON q.id = w.request_id
            LEFT JOIN judging_reply y ON y.request_id = q.id
            GROUP BY w.run_id
        ) AS c ON c.run_id = u.id
        WHERE u.kind = 'asked' AND (
            u.spent < COALESCE(c.own, 0) - {_TOLERANCE}
            OR COALESCE(c.unknown, 0) = 0 AND u.spent > COALESCE(c.every, 0) + {_TOLERANCE}
        )
        """,
    ),
    build_sql_check(
        "spent-once",
        "All runs together have spent the cost of all replies, each reply once, and at most that "
        "of all tries without a reply besides.",
        "The cost of a shared reply was booked twice or not at all.",
        f"""
        SELECT u.spent AS stored, y.cost AS counted, q.charged, y.unknown AS unknown_replies FROM (
            SELECT COALESCE(SUM(spent), 0) AS spent FROM judging_run
        ) AS u CROSS JOIN (
            SELECT COALESCE(SUM(charged), 0) AS charged FROM judging_request
        ) AS q CROSS JOIN (
            SELECT COALESCE(SUM(cost), 0) AS cost, COUNT(*) - COUNT(cost) AS unknown
            FROM judging_reply AS r WHERE EXISTS (
                SELECT 1 FROM judging_call c JOIN judging_run a ON a.id = c.run_id
                WHERE c.request_id = r.request_id AND a.kind = 'asked'
            )
        ) AS y
        WHERE u.spent < y.cost - {_TOLERANCE} * (1 + y.cost)
            OR y.unknown = 0 AND u.spent > y.cost + q.charged + {_TOLERANCE} * (1 + y.cost)
        """,
    ),
    build_sql_check(
        "run-caps",
        "A run has not spent and reserved more than its cap.",
        "Replies cost more than the amount reserved for them, a worker that had lost its lease "
        "stored a late answer, or amounts were changed by hand. Compare the tokens of the replies "
        "with the endpoint's token limit.",
        f"""
        SELECT {_RUN}, u.cap, u.spent, u.reserved FROM {_RUNS}
        WHERE u.spent + u.reserved > u.cap + {_TOLERANCE}
        """,
    ),
    Check(
        "project-caps",
        "A project has not spent and reserved more than its cap since the cap was set.",
        "Replies cost more than the amount reserved for them, or amounts were changed by hand.",
        find_exceeded_budgets,
    ),
    build_sql_check(
        "budgets",
        "A project's budget counts what its runs have spent and reserved since it exists.",
        "The project's cap stops its runs too early or too late.",
        f"""
        SELECT p.slug AS project, b.spent AS stored, COALESCE(u.spent, 0) AS counted,
            b.reserved AS stored_reserved, COALESCE(u.reserved, 0) AS counted_reserved
        FROM judging_budget b JOIN annotation_project p ON p.id = b.project_id
        LEFT JOIN (
            SELECT project_id, MIN(created_at) AS since FROM annotation_event
            WHERE kind = 'budget' GROUP BY project_id
        ) AS e ON e.project_id = b.project_id
        LEFT JOIN (
            SELECT project_id, SUM(spent) AS spent, SUM(reserved) AS reserved
            FROM judging_run GROUP BY project_id
        ) AS u ON u.project_id = b.project_id
        WHERE b.spent > COALESCE(u.spent, 0) + {_TOLERANCE}
            OR ABS(b.reserved - COALESCE(u.reserved, 0)) > {_TOLERANCE}
            OR b.spent < {_TOLERANCE} * -1 + (
                SELECT COALESCE(SUM(n.spent), 0) FROM judging_run n
                WHERE n.project_id = b.project_id AND n.created_at > e.since
            )
        """,
    ),
    build_sql_check(
        "finished-runs",
        "A finished run that asked or imported its replies has a result for every item.",
        "Figures would leave out the items without a result. Retry the failed requests of the run, "
        "or clone it.",
        f"""
        SELECT {_RUN}, COUNT(*) AS pending
        FROM {_RUNS} JOIN judging_outcome o ON o.run_id = u.id
        WHERE u.state = 'finished' AND u.kind <> 'derived' AND o.result = 'pending'
        GROUP BY p.slug, u.number
        """,
    ),
    build_sql_check(
        "planned-runs",
        "Once all calls of a run are created, every item without a result has a call.",
        "The run would never end. Cancel it and clone it.",
        f"""
        SELECT {_RUN}, COUNT(*) AS items
        FROM {_RUNS} JOIN judging_outcome o ON o.run_id = u.id
        WHERE u.kind = 'asked' AND u.state IN ('running', 'paused') AND o.result = 'pending'
            AND NOT EXISTS (SELECT 1 FROM judging_call c WHERE c.outcome_id = o.id)
        GROUP BY p.slug, u.number
        """,
    ),
    build_sql_check(
        "outcomes-belong",
        "An outcome belongs to an item of the run's project and to texts of this item.",
        "Rows were changed by hand or restored in part. Figures would count a wrong item.",
        f"""
        SELECT {_RUN}, i.key AS item, o.id AS outcome
        FROM {_RUNS} JOIN judging_outcome o ON o.run_id = u.id
        JOIN annotation_item i ON i.id = o.item_id
        JOIN annotation_revision r ON r.id = o.revision_id
        WHERE i.project_id <> u.project_id OR r.item_id <> o.item_id
        """,
    ),
    build_sql_check(
        "calls-belong",
        "A call belongs to the run of its outcome, and its sample is one that the run asks for.",
        "Rows were changed by hand or restored in part. A reply would count for a wrong run.",
        f"""
        SELECT {_RUN}, c.role, c.step, c.sample, c.id AS call
        FROM {_RUNS} JOIN judging_call c ON c.run_id = u.id
        JOIN judging_outcome o ON o.id = c.outcome_id
        JOIN judging_request q ON q.id = c.request_id
        WHERE o.run_id <> c.run_id
            OR u.kind = 'asked' AND (c.sample >= u.samples OR q.sample <> c.sample)
        """,
    ),
    build_sql_check(
        "fed-calls",
        "A later step of a chain shows the reply to the step before, and a check of explanations "
        "shows a reply about the same item.",
        "The evaluator was shown a text that belongs to another call.",
        f"""
        SELECT {_RUN}, i.key AS item, c.role, c.step, c.sample, c.id AS call
        FROM {_RUNS} JOIN judging_call c ON c.run_id = u.id
        JOIN judging_outcome o ON o.id = c.outcome_id
        JOIN annotation_item i ON i.id = o.item_id
        LEFT JOIN judging_reading g ON g.id = c.fed_by_id
        LEFT JOIN judging_reply y ON y.id = g.reply_id
        WHERE u.kind = 'asked' AND (c.step > 0 OR c.fed_by_id IS NOT NULL) AND NOT EXISTS (
            SELECT 1 FROM judging_call b JOIN judging_outcome d ON d.id = b.outcome_id
            WHERE b.request_id = y.request_id AND d.item_id = o.item_id
                AND (c.step = 0 AND b.run_id <> c.run_id
                    OR b.outcome_id = c.outcome_id AND b.step = c.step - 1 AND b.sample = c.sample)
        )
        """,
    ),
    Check(
        "run-digests",
        "Every run has the stored digest of its items, texts, strategy and endpoint settings.",
        "What the run pins was changed afterwards, so its figures cannot be reproduced.",
        find_changed_pins,
    ),
    Check(
        "definitions",
        "Every version of a strategy, a task type or a taxonomy has the digest of its definition.",
        "A definition was changed after it was used. Labels and runs belong to the earlier one.",
        find_changed_definitions,
    ),
    Check(
        "run-counts",
        "The stored counts of ended runs are those of a new count.",
        "Pages of the run show wrong numbers; figures are computed anew and not affected.",
        find_wrong_counts,
    ),
    Check(
        "run-states",
        "The state of a run follows from the changes in the audit log.",
        "The state was changed by hand, or entries of the log are missing. Before "
        "`verify`, a wrong earlier state could also be recorded.",
        find_broken_histories,
    ),
)
