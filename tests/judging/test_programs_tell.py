"""What a worker has done by a program of its own tells that it gets on, at every step of what may
take long: one that tells nothing for five minutes is ended."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from annotation.generation import generated_items, perturber_jobs, perturbers
from annotation.generation.perturbers import PerturbRequest
from annotation.generation.release import ReleasePolicy
from annotation.items.snapshots import create as snapshot_freezing
from annotation.jobs import subprocesses
from annotation.models import Project
from formats.writers import ZIP_FORMATS, write_file
from judging.archive import create
from judging.archive.create import ArchiveOptions
from judging.exporting import jobs
from judging.exporting import rows as exporting_rows
from judging.exporting.tables import EXPORT_COLUMN_KINDS
from judging.generation import bring_in
from judging.results import progress
from tests.annotation.test_perturbing import FACTS, STORY, row
from tests.annotation.test_perturbing import bring as bring_gold
from tests.builders import make_item, make_member, make_resolution
from tests.judging.archive.builders_archive import make_vetted
from tests.judging.test_generation_tables import answered, make_prompts, perturbed
from tests.judging.test_generation_tables import prompts as prompts

pytestmark = pytest.mark.django_db


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by a word whenever a program tells that it gets on."""
    words: list[str] = []
    monkeypatch.setattr(subprocesses, "send_heartbeat", lambda: words.append("alive"))
    return words


def test_a_snapshot_tells_at_each_part_that_it_reads_stores_and_takes_away(
    project: Project, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_freezing, "BATCH_SIZE", 1)
    for key in "abc":
        make_item(project, key)
    snapshot = snapshot_freezing.enqueue(project, None, "v1")

    def tell(done: int) -> None:
        told.append(str(done))
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        snapshot_freezing.store_contents(snapshot, tell)
    # Three are read; then each is stored.
    assert told == [*["alive"] * 3, "1", "alive", "2", "alive", "3"]
    told.clear()
    snapshot_freezing.delete_contents(snapshot)
    assert told == ["alive"] * 3


def test_items_that_perturbers_make_tell_as_they_are_made_and_as_people_get_them(
    project: Project, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bring_gold(
        project,
        row("facts", "number-errors", FACTS, "What is a spider?"),
        row("story", "spelling", STORY, "Tell a story."),
    )
    monkeypatch.setattr(perturbers, "BATCH_SIZE", 1)
    monkeypatch.setattr(generated_items, "BATCH", 1)
    wish = PerturbRequest(perturbers=("numbers", "spelling"), seed="s", doses=(1, 2))
    perturber_jobs.make_job_items(perturber_jobs.enqueue(project, wish))
    # Of two gold answers none, one and two are done; four items are stored, found, given to people
    # one by one, counted and looked at for flags.
    assert len(told) == 3 + 4 + 1 + 4 + 1 + 1


def test_items_of_a_run_tell_as_they_come_in_and_as_people_get_them(
    project: Project, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in "abc":
        make_item(project, key)
    run = perturbed(project)
    monkeypatch.setattr(generated_items, "BATCH", 1)
    bring_in.bring_in_replies(bring_in.BringInRequest(run, project, ReleasePolicy()), None)
    # Three are stored, found, given to people one by one, and counted.
    assert len(told) == 3 + 1 + 3 + 1


def test_gold_answers_tell_as_they_come_in(
    prompts: Project, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_prompts(prompts, 3)
    run = answered(prompts)
    monkeypatch.setattr(generated_items, "BATCH", 1)
    bring_in.bring_in_replies(bring_in.BringInRequest(run, prompts, ReleasePolicy()), None)
    assert len(told) == 3 + 1 + 3 + 1


def test_what_is_accepted_unseen_tells_as_it_is(
    project: Project, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [make_item(project, key, slots=0) for key in "abc"]
    monkeypatch.setattr(generated_items, "BATCH", 1)
    assert generated_items._accept_unreviewed(project, [one.pk for one in items]) == 3
    assert len(told) == 3


def test_an_archive_tells_at_each_file_and_each_step_of_its_figures_and_charts(
    told: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    project = make_vetted()

    def draw(*_: Any) -> Any:
        progress.report("comparing texts", 1, 2)
        for name in ("chart one", "chart two"):
            told.append(name)
            yield name, {}

    monkeypatch.setattr(create.files, "render_all", lambda charts, form: [b""] * len(charts))
    with (tmp_path / "results.zip").open("w+b") as stream:
        runs = list(project.runs.for_results())
        create.write_archive(
            project,
            runs,
            ArchiveOptions(draw=draw),
            stream,
            lambda name, n: told.append(name * bool(n)),
        )
    steps = [word for word in told if word]
    assert {"diffs made", "data/outcomes.jsonl", "figures/undetected", "chart one"} <= {*steps}
    # Never two steps that are done without a word in between.
    assert [pair for pair in pairwise(steps) if "alive" not in pair] == []


@pytest.mark.parametrize("form", ["jsonl", *ZIP_FORMATS])
def test_an_export_that_is_packed_tells_after_its_last_row_as_well(
    project: Project, told: list[str], settings: Any, tmp_path: Path, form: str
) -> None:
    settings.VAR_DIR = tmp_path
    make_resolution(make_item(project, "a"))
    lead = make_member(project, role="lead")
    job = jobs.enqueue(
        project, lead, exporting_rows.ExportRequest("items", form, encrypt=form == "jsonl")
    )
    packed = jobs._packing_options(job, jobs._read_request(job))
    made = exporting_rows.read_rows(project, jobs._read_request(job))

    def rows() -> Any:
        yield from made.rows
        told.append("last row")

    write_file(form, rows(), made.columns, tmp_path / "file", EXPORT_COLUMN_KINDS, packed)
    # One that is only encrypted has its rows put in as they come.
    assert "alive" in (told if form == "jsonl" else told[told.index("last row") :])
