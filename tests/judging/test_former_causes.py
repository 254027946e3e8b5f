"""The cause `rate_limited` was called `rate-limited`: what was stored then is changed, once."""

import json
from importlib import import_module
from io import BytesIO
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from annotation.models import Project
from judging.archive import comparison
from judging.models import Outcome, Reading, Reply, Request, Run, SavedView, StoredFigure, Tally
from judging.runs import lifecycle
from tests.builders import make_member
from tests.judging.builders_judging import answer, make_endpoint, make_items, make_run

BEFORE, NOW = "rate-limited", "rate_limited"
PARTS = {"of": "judge", "parts": [{"cause": BEFORE}, {"detail": f'was "{BEFORE}" then'}]}


def migrate(*, backwards: bool = False) -> None:
    name = "0016_rate_limited"
    made = import_module(f"judging.migrations.{name}").Migration(name, "judging")
    state = MigrationExecutor(connection).loader.project_state()
    with connection.schema_editor() as editor:
        (made.unapply if backwards else made.apply)(state, editor)


def words(project: Project) -> list[Any]:
    """What is stored where a cause may be."""
    return [
        *Request.objects.order_by("pk").values_list("cause", "tried"),
        *Reading.objects.values_list("cause"),
        *Outcome.objects.order_by("pk").values_list("cause", "values"),
        *Tally.objects.values_list("counts"),
        *StoredFigure.objects.values_list("rows"),
        *SavedView.objects.values_list("query"),
    ]


def fill(project: Project) -> Run:
    make_items(project, 2)
    run = make_run(project, make_endpoint("https://judge.invalid/v1"), "vanilla-score")
    lifecycle.plan_calls(run)
    answer(run, "{}", number=1)
    limited, other = Request.objects.order_by("pk")[:2]
    Request.objects.filter(pk=limited.pk).update(
        state="failed", cause=BEFORE, tried={BEFORE: 3, "timed_out": 1}
    )
    Request.objects.filter(pk=other.pk).update(tried={"unavailable": 1})
    Reading.objects.all().delete()
    Reading.objects.create(reply=Reply.objects.all()[0], parser="p", value=None, cause=BEFORE)
    first, second = run.outcomes.order_by("pk")
    run.outcomes.filter(pk=first.pk).update(result="missing", cause=BEFORE, values=PARTS)
    run.outcomes.filter(pk=second.pk).update(values={"missing": {"score": BEFORE, "n": BEFORE}})
    Tally.objects.create(run=run, kind="progress", state="s", counts={"missing": {BEFORE: 1}})
    rows = json.dumps([{"cause": BEFORE, "n": 1}])
    StoredFigure.objects.create(project=project, key="k", table="missing", asked={}, rows=rows)
    query = f"result=missing&cause={BEFORE}&page=2"
    SavedView.objects.create(member=make_member(project), name="v", page="outcomes", query=query)
    return run


@pytest.mark.django_db(transaction=True)
def test_the_update_changes_every_stored_cause_and_back(project: Project) -> None:
    fill(project)
    before = words(project)
    migrate()
    after = words(project)
    kept = f'was "{BEFORE}" then'
    assert json.dumps(after).count(BEFORE) == json.dumps(after).count(json.dumps(kept)[1:-1]) == 1
    assert json.dumps(after).count(NOW) == json.dumps(before).count(BEFORE) - 1 == 10
    migrate(backwards=True)
    assert words(project) == before


def test_figures_of_an_archive_from_then_are_compared_in_the_words_of_today() -> None:
    then = {"columns": ["run", "cause"], "rows": [{"run": 1, "cause": BEFORE}, {"run": 2}]}
    read = comparison._read_table(
        "figures/missing.json", lambda: BytesIO(json.dumps(then).encode())
    )
    assert read["rows"] == [{"run": 1, "cause": NOW}, {"run": 2}]
