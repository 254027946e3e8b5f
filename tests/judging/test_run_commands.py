"""What all commands of runs share: caps, refusals, and how far a run is."""

from decimal import Decimal
from io import StringIO

import pytest
from django.core.management.base import CommandError, OutputWrapper

from annotation import errors
from annotation.models import Project
from judging import tasks
from judging.errors import Refused
from judging.management import run_commands
from judging.models import Run
from judging.runs import lifecycle
from tests.judging.builders_judging import answer, make_items, make_run


def refuse(error: Exception) -> None:
    raise error


@pytest.mark.parametrize("text, cap", [(None, None), ("0.000001", "0.000001"), ("12", "12")])
def test_a_cap_is_any_amount_above_0(text: str | None, cap: str | None) -> None:
    assert run_commands.parse_cap(text) == (Decimal(cap) if cap else None)


@pytest.mark.parametrize(
    "text, words",
    [
        ("0", "must be more than 0"),
        ("-0.5", "must be more than 0"),
        ("inf", "must be more than 0"),
        ("nan", "must be more than 0"),
        ("much", "'much' is not an amount"),
        ("1e20", "--cap 1e20: "),
        ("0.0000001", "--cap 0.0000001: "),
    ],
)
def test_what_is_no_cap_is_refused(text: str, words: str) -> None:
    with pytest.raises(CommandError) as caught:
        run_commands.parse_cap(text)
    assert words in str(caught.value)
    assert caught.value.returncode == 2


@pytest.mark.parametrize(
    "error, words",
    [
        (errors.FieldError("is too much.", "share"), "--share: "),
        (errors.Refused("There are no items."), "There are no items."),
        (Refused("There is no endpoint."), "There is no endpoint."),
    ],
)
def test_what_a_service_refuses_ends_the_command(error: Exception, words: str) -> None:
    assert run_commands.call_service(lambda: 7) == 7
    with pytest.raises(CommandError) as caught:
        run_commands.call_service(lambda: refuse(error))
    assert str(caught.value).startswith(words)
    assert caught.value.returncode == 2


@pytest.mark.django_db
def test_runs_are_found_by_their_numbers(project: Project) -> None:
    make_items(project, 1)
    first, second = make_run(project), make_run(project)
    assert run_commands.get_runs(project, [second.number]) == [second]
    assert run_commands.get_run("fbi", first.number) == first
    with pytest.raises(CommandError, match="fbi has no run 3, 7"):
        run_commands.get_runs(project, [1, 3, 7])
    with pytest.raises(CommandError, match="no project 'other'"):
        run_commands.get_run("other", 1)


@pytest.mark.django_db
def test_progress_is_printed_whenever_it_has_changed(project: Project) -> None:
    make_items(project, 2)
    run = make_run(project)
    lifecycle.plan_calls(run)
    run.refresh_from_db()
    out = StringIO()

    def look(said: str) -> str:
        return run_commands._print_progress(run, said, OutputWrapper(out))

    said = look("")
    assert look(said) == said == "running: 0 of 2 requests answered, 0 of 2 items done"
    answer(run, number=1)
    look(said)
    assert out.getvalue().splitlines() == [
        said,
        "running: 1 of 2 requests answered, 1 of 2 items done; 1 off_scale",
    ]


@pytest.mark.django_db
def test_a_run_that_pauses_ends_the_command_with_the_reason(project: Project) -> None:
    make_items(project, 1)
    run = make_run(project)
    Run.objects.filter(pk=run.pk).update(state=Run.State.PAUSED, reason="a cap")
    run.refresh_from_db()
    with pytest.raises(CommandError, match="Run 1 is paused: a cap"):
        run_commands.continue_run(run, OutputWrapper(StringIO()), wait=True)
    run_commands.continue_run(run, OutputWrapper(StringIO()), wait=False)


@pytest.mark.django_db
@pytest.mark.parametrize("kind, told", [(Run.Kind.ASKED, True), (Run.Kind.RECORDED, False)])
def test_a_command_that_does_not_wait_tells_the_workers_of_a_run_that_asks(
    project: Project, monkeypatch: pytest.MonkeyPatch, kind: str, told: bool
) -> None:
    notified: list[int] = []
    monkeypatch.setattr(tasks, "notify_workers", notified.append)
    make_items(project, 1)
    run = make_run(project)
    run.kind = kind
    run_commands.continue_run(run, OutputWrapper(StringIO()), wait=False)
    assert notified == [run.endpoint_id] * told
