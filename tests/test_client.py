"""The example client and the notebook, against the real application."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from pytest_django.live_server_helper import LiveServer

from annotation.db import clock
from annotation.jobs import subprocesses
from annotation.models import ApiToken, Project
from examples import client as client_module
from examples.client import Client, NotMade, Problem
from judging.exporting import jobs
from judging.models import Run
from judging.results import figures
from tests.builders import make_member, make_project
from tests.judging.builders_decided import make_replied, scores
from tests.judging.builders_judging import make_endpoint, make_items

pytestmark = pytest.mark.django_db(transaction=True)

NOTEBOOK = Path(client_module.__file__).with_name("figures.ipynb")


@pytest.fixture
def project() -> Project:
    """Two runs over three items, one of which is missed."""
    project = make_project("fbi")
    items = make_items(project, 3)
    said = [scores(9, 5), scores(9, 4), scores(9, 9)]
    for slug in ("vanilla", "rubric"):
        make_replied(project, slug, zip(items, said, strict=True))
    return project


@pytest.fixture
def token(project: Project) -> str:
    account = make_member(project, role="researcher").account
    assert account
    return ApiToken.issue(account, "notebook")[1]


@pytest.fixture
def lab(live_server: LiveServer, token: str) -> Client:
    return Client(live_server.url, token)


def test_what_a_person_may_see_is_listed(lab: Client) -> None:
    assert [one["slug"] for one in lab.projects()] == ["fbi"]
    assert [one["key"] for one in lab.items("fbi")] == ["item-1", "item-2", "item-3"]
    assert list(lab.items("fbi", category="spelling")) == []
    assert sorted(one["number"] for one in lab.runs("fbi")) == [1, 2]
    assert len(list(lab.outcomes("fbi", 1))) == 3


def test_lists_go_on_over_pages(lab: Client) -> None:
    paged = lab.each("projects/fbi/items/", {"limit": 2})
    assert [one["key"] for one in paged] == ["item-1", "item-2", "item-3"]


def test_figures_are_those_of_the_command(lab: Client, project: Project) -> None:
    found = lab.figures("fbi", "undetected", runs=[1], by=["category"])
    [row] = found.rows
    assert (row["total"], row["undetected"], row["rate"]) == (3, 1, pytest.approx(1 / 3))
    assert found.columns == list(row)


def test_figures_are_waited_for_while_a_worker_makes_them(
    lab: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures.TableRequest, "is_small", lambda asked: False)
    with pytest.raises(NotMade, match="is not ready yet"):
        lab.figures("fbi", "undetected", patience=0)

    def make(seconds: float) -> None:
        assert 0 < seconds <= client_module.LONGEST_WAIT
        for pk in figures.list_due(clock.now()):
            figures.run_job(pk)

    monkeypatch.setattr("examples.client.time.sleep", make)
    assert lab.figures("fbi", "undetected").rows


@pytest.mark.parametrize(
    ("path", "status"),
    [("projects/other/items/", 404), ("projects/fbi/members/", 403), ("projects/fbi/x/", 404)],
)
def test_what_is_refused_says_why(lab: Client, path: str, status: int) -> None:
    with pytest.raises(Problem) as refused:
        lab.get(path)
    assert refused.value.status == status
    assert refused.value.detail


def test_what_a_body_lacks_is_said_by_field(lab: Client) -> None:
    with pytest.raises(Problem, match="strategy: ") as refused:
        lab.post("projects/fbi/runs/", {"endpoint": "baseline", "limit": "ünf"})
    assert refused.value.status == 422
    assert {"strategy", "limit"} <= set(refused.value.errors)


def test_an_address_without_its_slash_is_told(lab: Client) -> None:
    with pytest.raises(Problem, match="paths end with a slash"):
        lab.get("projects")


def test_a_run_is_started_once_for_its_key(lab: Client, project: Project) -> None:
    body = {"strategy": "rouge-l", "endpoint": "baseline"}
    started = [lab.post("projects/fbi/runs/", body, key="first") for _ in range(2)]
    assert started[0] == started[1]
    again = lab.post("projects/fbi/runs/", body)
    assert again["run"]["number"] == started[0]["run"]["number"] + 1


def test_an_export_is_waited_for_and_read(
    lab: Client, project: Project, monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path
) -> None:
    settings.VAR_DIR = tmp_path

    def make(command: list[str], **_: Any) -> subprocesses.ProgramResult:
        call_command(*command[2:])
        return subprocesses.ProgramResult(0, "")

    def work(seconds: float) -> None:
        jobs.run_job(project.jobs.get(kind=jobs.KIND).pk)

    # A worker and its program would be processes of their own.
    monkeypatch.setattr(subprocesses, "run_program", make)
    monkeypatch.setattr("examples.client.time.sleep", work)
    table = lab.export("fbi", "outcomes", "csv").decode()
    assert table.splitlines()[0].startswith("run,")
    with pytest.raises(ValueError, match="read it with file"):
        lab.get("projects/fbi/exports/1/file/")
    with pytest.raises(Problem, match="Choose one of: items, labels, revisions"):
        lab.export("fbi", "nothing", "csv")


def test_a_wrong_token_is_a_problem(live_server: LiveServer, project: Project) -> None:
    with pytest.raises(Problem, match="401"):
        Client(live_server.url, "nobody's").projects()


def test_the_token_goes_to_no_other_address(lab: Client) -> None:
    with pytest.raises(ValueError, match="no token is sent"):
        lab.get("http://example.invalid/")


@pytest.mark.parametrize("address", ["file:///etc/passwd", "blindspot.example", ""])
def test_only_addresses_of_the_web_are_asked(address: str) -> None:
    with pytest.raises(ValueError, match="must begin with"):
        Client(address, "t")


def test_the_notebook_has_a_column_a_whole_run_and_averages_nothing(
    live_server: LiveServer, project: Project, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pandas")
    missed = [(item, scores(9, 9)) for item in project.items.all()]
    # Another model asked the same way misses all; so do a canary, a run that was stopped, and a
    # finished one over a part of the items.
    endpoint = make_endpoint("https://judge.invalid/v1", name="other")
    make_replied(project, "vanilla", missed, endpoint=endpoint)
    make_replied(project, "vanilla", missed, occasion="canary 1")
    make_replied(project, "vanilla", missed, state=Run.State.CANCELLED)
    part = make_replied(project, "vanilla", missed[:1], endpoint=make_endpoint("https://j.invalid"))
    Run.objects.filter(pk=part.pk).update(is_part=True)
    for name, value in (("URL", live_server.url), ("TOKEN", token), ("PROJECT", "fbi")):
        monkeypatch.setenv(f"BLINDSPOT_{name}", value)
    monkeypatch.syspath_prepend(NOTEBOOK.parent)
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    rates, numbers = (names[name].loc[("factual", False)] for name in ("rates", "numbers"))
    assert [run for run, *_ in rates.index] == [1, 2, 3]
    assert sorted(names["whole"]["number"]) == [1, 2, 3]
    assert rates[1, "vanilla"].item() == pytest.approx(1 / 3)
    assert (rates[3, "vanilla", "other"], numbers[3, "vanilla", "other"]) == (1, 3)
    assert names["run"] == 3


def test_the_notebook_keeps_no_output_and_no_secret() -> None:
    book = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert book["nbformat"] == 4
    for cell in book["cells"]:
        assert not cell.get("outputs")
        assert not cell.get("execution_count")
