"""The commands that make something of runs that there are: clone, archive, reparse, ask again."""

import io
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Event, Project, Resolution
from judging.models import Request, Run
from judging.runs import canaries, lifecycle, reparse
from judging.runs.run_config import RunOverrides
from tests.judging.builders_judging import (
    answer,
    make_endpoint,
    make_items,
    make_judged,
    make_run,
    make_strategy,
    work,
)
from tests.services.scripted_evaluator import Script, ScriptedEvaluator

pytestmark = pytest.mark.django_db

NOBODY = "http://127.0.0.1:9/v1"


def say(command: str, *words: str) -> str:
    out = io.StringIO()
    call_command(command, *words, "--project", "fbi", stdout=out, stderr=io.StringIO())
    return out.getvalue()


def refused(command: str, *words: str) -> str:
    with pytest.raises(CommandError) as caught:
        say(command, *words)
    assert caught.value.returncode == 2
    return str(caught.value)


def ended(project: Project, text: str = '{"score": 5}') -> Run:
    """A finished run over two items, whose replies all say this."""
    make_items(project, 2)
    run = make_run(project, make_endpoint(NOBODY, price_in=Decimal(1), price_out=Decimal(1)))
    lifecycle.plan_calls(run)
    answer(run, text)
    lifecycle.finish_if_done(run)
    run.refresh_from_db()
    assert run.state == Run.State.FINISHED
    return run


def test_a_clone_asks_about_the_same_items_and_pays_for_nothing_twice(project: Project) -> None:
    run = ended(project)
    assert say("clone_run", "1", "--cap", "2.50") == "Run 2 of fbi, a clone of run 1: 2 items\n"
    clone = Run.objects.get(number=2)
    assert str(clone.cap) == "2.500000"
    assert clone.strategy == run.strategy
    assert Request.objects.count() == 2


def test_a_paused_run_goes_on_and_its_cap_may_be_raised(project: Project) -> None:
    make_items(project, 1)
    run = make_run(
        project,
        make_endpoint(NOBODY, price_in=Decimal(1), price_out=Decimal(1)),
        cap=Decimal("0.35"),
    )
    lifecycle.plan_calls(run)
    for words, cap in (((), "0.350000"), (("--cap", "2.50"), "2.500000")):
        lifecycle.pause(run, None)
        assert say("resume_run", "1", *words) == "Run 1 of fbi is resumed.\n"
        run.refresh_from_db()
        assert (run.state, str(run.cap)) == (Run.State.RUNNING, cap)


def test_a_clone_as_pinned_is_over_what_was_pinned(project: Project) -> None:
    ended(project)
    Resolution.objects.filter(item__key="item-1").update(value="invalid")
    assert say("clone_run", "1").endswith(": 1 item\n")
    assert say("clone_run", "1", "--as-pinned").endswith(": 2 items\n")


def test_runs_are_archived_and_taken_back(project: Project) -> None:
    items = make_items(project, 1)
    for _ in range(2):
        make_judged(project, [(items[0], "detected")])
    assert say("archive_run", "1", "2") == "Run 1 of fbi is archived.\nRun 2 of fbi is archived.\n"
    assert not Run.objects.filter(archived_at=None).exists()
    assert say("archive_run", "2", "--back") == "Run 2 of fbi is restored.\n"
    assert Run.objects.get(archived_at=None).number == 2
    assert Event.objects.filter(kind="run archived").count() == 2


def test_what_another_parser_would_change_is_said_and_done_only_when_asked(
    project: Project,
) -> None:
    run = ended(project)
    Run.objects.update(parser="older")
    said = say("reparse_run", "1")
    assert said.startswith("0 of 2 outcomes differ with parser ")
    run.refresh_from_db()
    assert run.parser == "older"
    assert say("reparse_run", "1", "--apply").endswith("Run 1 of fbi now uses this parser.\n")
    run.refresh_from_db()
    assert run.parser != "older"


def test_what_another_parser_would_change_is_listed_by_item_and_axis(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_items(project, 3)
    own = RunOverrides(axes=("hallucination",))
    run = make_run(project, make_endpoint(NOBODY), "axis", own=own)
    lifecycle.plan_calls(run)
    answer(run, '{"score": 2}')
    lifecycle.finish_if_done(run)
    run.outcomes.update(result="detected", detail="lower", cause="", values={})
    monkeypatch.setattr(reparse, "MAX_LISTED", 1)
    said = say("reparse_run", "1").splitlines()
    assert said[0].startswith("3 of 3 outcomes differ with parser ")
    assert said[1:] == [
        "  3 from detected lower to undetected equal",
        "  item-1 (hallucination): detected lower to undetected equal",
        "  and 2 more items",
    ]
    run.outcomes.update(axis="")
    assert "  item-1: detected lower to " in say("reparse_run", "1")


@pytest.mark.django_db(transaction=True)
def test_a_canary_is_asked_again_and_the_drift_said(
    project: Project, evaluator: ScriptedEvaluator
) -> None:
    make_items(project, 3)
    strategy = make_strategy()
    endpoint = make_endpoint(evaluator)
    work(
        canaries.start_canary(
            project, strategy=strategy, endpoint=endpoint, config=lifecycle.RunConfig(seed=1)
        )
    )
    evaluator.script = Script()
    said = say("ask_again", "1", "--wait").splitlines()
    assert said[0] == "Run 2 of fbi repeats run 1: 3 items"
    assert said[1] == "0 of 3 items have a different outcome."
    assert len(evaluator.log) == 6


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("clone_run", "9"), "fbi has no run 9"),
        (("archive_run", "1", "9"), "fbi has no run 9"),
        (("clone_run", "1", "--cap", "much"), "--cap 'much' is not an amount"),
        (("clone_run", "1", "--cap", "999999999"), "no more than 8 digits before the decimal"),
        (("archive_run", "1"), "Cancel it, or wait until it has finished"),
        (("reparse_run", "1"), "Only finished runs can be parsed again"),
        (("ask_again", "1"), "is not a canary"),
        (("resume_run", "1"), "is planning, so it cannot go on now"),
        (("resume_run", "1", "--cap", "2"), "has no cap to raise"),
    ],
)
def test_what_cannot_be_done_is_refused(project: Project, words: tuple[str, ...], why: str) -> None:
    make_items(project, 1)
    make_run(project, make_endpoint(NOBODY))
    assert why in refused(*words)


def test_a_parser_that_does_not_exist_is_refused(project: Project) -> None:
    ended(project)
    said = refused("reparse_run", "1", "--parser", "magic")
    assert "There is no parser 'magic' for these replies. There is only one" in said
