"""What is said where a local model cannot be served, and what is set up where it is."""

import socket
import sys
from pathlib import Path

import pytest

from annotation.models import Project
from judging import demo_model
from judging.demo_model import LocalModel, NoServer
from judging.models import Run
from tests.builders import make_project
from tests.judging.builders_judging import make_items


@pytest.fixture
def model(tmp_path: Path) -> LocalModel:
    """A file that is no model, for a Python that has no llama.cpp."""
    gguf = tmp_path / "small.gguf"
    gguf.write_bytes(b"no model")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    return LocalModel(gguf, Path(sys.executable), port, tmp_path / "model.log")


def refused(model: LocalModel) -> str:
    with pytest.raises(NoServer) as caught, demo_model.running_server(model):
        pass
    return str(caught.value)


def test_a_server_that_ends_at_once_is_told_with_its_last_words(model: LocalModel) -> None:
    said = refused(model)
    assert "The server of small.gguf ended before it answered." in said
    assert str(model.log) in said
    assert "No module named 'xllamacpp'" in model.log.read_text()


def test_a_file_that_is_not_there_and_a_port_that_is_taken_are_named(model: LocalModel) -> None:
    with socket.create_server(("127.0.0.1", model.port)):
        assert f"Port {model.port} is taken" in refused(model)
    model.gguf.unlink()
    assert f"There is no file {model.gguf}." in refused(model)


@pytest.mark.django_db
def test_the_same_model_keeps_its_endpoint_and_another_one_gets_its_own(model: LocalModel) -> None:
    address = "http://127.0.0.1:8090/v1"
    first = demo_model.get_endpoint(model, address)
    assert (first.name, first.json_mode, first.in_flight) == ("local", "json_schema", 2)
    assert demo_model.get_endpoint(model, address) == first
    other = demo_model.get_endpoint(model, "http://127.0.0.1:8091/v1")
    assert other.name == f"local-small-{model.port}"


@pytest.fixture
def project() -> Project:
    project = make_project()
    make_items(project, 12)
    return project


@pytest.mark.django_db
def test_three_runs_start_over_the_same_ten_items_and_once(
    model: LocalModel, project: Project
) -> None:
    endpoint = demo_model.get_endpoint(model, "http://127.0.0.1:8090/v1")
    made = demo_model.start_runs(project, endpoint, demo_model.TOY_NOTE)
    assert [run.strategy.slug for run in made] == list(demo_model.STRATEGIES)
    first, *others = (set(run.outcomes.values_list("item", flat=True)) for run in made)
    assert others == [first, first]
    assert (made[0].outcomes.count(), made[0].note) == (10, demo_model.TOY_NOTE)
    assert demo_model.start_runs(project, endpoint, "") == []
    assert Run.objects.in_project(project).count() == 3
