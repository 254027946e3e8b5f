"""The data card of items that go to the hub, and the export that has it."""

import io
import re
import zipfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from django.core.management import call_command
from django.utils import timezone
from markdown_it import MarkdownIt

from annotation.items.snapshots import create
from annotation.models import Event, Item, Job, Project, Slot
from judging.exporting import jobs as exporting_jobs
from judging.exporting.rows import ExportRequest
from tests.builders import (
    Cast,
    cast,
    make_guidelines,
    make_item,
    make_resolution,
    say,
    take,
)
from tests.hostile import CORPUS, MARK, taken_for_markup
from tests.judging.builders_judging import api_client

pytestmark = pytest.mark.django_db
RENDER = MarkdownIt("gfm-like", {"linkify": False}).enable("table")


@pytest.fixture
def people(settings: Any, tmp_path: Path) -> Cast:
    settings.VAR_DIR = tmp_path
    made = cast()
    for key, category in (("a", "number-errors"), ("b", "spelling"), ("c", "spelling")):
        make_item(made.project, key, category=category)
    make_resolution(Item.objects.get(key="b"))
    return made


def folder(people: Cast, **said: Any) -> dict[str, bytes]:
    job = exporting_jobs.enqueue(people.project, people.lead, ExportRequest("items", "hub", **said))
    # As the program reads it.
    job = Job.objects.select_related("project__task_type").get(pk=job.pk)
    exporting_jobs.write_export(job)
    return unzipped(exporting_jobs.get_path(job))


def unzipped(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def card(people: Cast, **said: Any) -> str:
    return folder(people, **said)["README.md"].decode()


def front(written: str) -> dict[str, Any]:
    _, head, _ = re.split("^---$", written, maxsplit=2, flags=re.MULTILINE)
    found: dict[str, Any] = yaml.safe_load(head)
    return found


def test_the_card_says_of_every_column_what_it_holds(people: Cast) -> None:
    made = folder(people, canary=True)
    _, section = made["README.md"].decode().split("## The columns")
    told = [line.split("|")[1] for line in section.split("## ")[0].splitlines() if "|" in line]
    named = set(re.findall(r"`(\w+)`", " ".join(told)))
    assert named == {*pq.read_table(io.BytesIO(made["data/spelling.parquet"])).column_names}
    assert "| `perturbed` | Perturbed answer |" in section


def test_the_card_counts_items_by_category_and_label(people: Cast) -> None:
    written = card(people)
    assert "3 items" in written
    for line in (
        "| ability | category | items | valid | not resolved |",
        "| factual | number-errors | 1 | 0 | 1 |",
        "| all | all | 3 | 1 | 2 |",
    ):
        assert line in written
    assert "2 items have no final label" in written


def test_the_card_says_human_annotated_only_where_people_decided_and_of_how_many(
    people: Cast,
) -> None:
    written = card(people)
    assert "human-annotated" not in front(written)["tags"]
    assert "People decided none of the 1 final labels" in written
    assert "By source: 1 by import." in written
    assert "are as reliable as their source" in written
    assert "decided by people who followed the guidelines" not in written
    make_resolution(Item.objects.get(key="a"), rule="majority", source="labels")
    make_resolution(Item.objects.get(key="c"), rule="decided", source="adjudicated")
    written = card(people)
    assert "human-annotated" in front(written)["tags"]
    assert "People decided 2 of the 3 final labels (66.7 %)." in written
    assert "decided by people who followed the guidelines" in written


def test_the_card_of_items_that_nobody_resolved_says_nothing_of_who_decided(people: Cast) -> None:
    written = card(people, filters={"category": "number-errors"})
    assert "human-annotated" not in front(written)["tags"]
    assert "By source" not in written
    assert "are as reliable as their source" not in written


def made(people: Cast, key: str, **fields: str) -> None:
    origin = "generated" if "generator" in fields else "perturber"
    make_item(people.project, key, origin=origin, fields=fields)


def test_the_card_says_which_texts_which_model_wrote(people: Cast) -> None:
    told = {"generator": "generate-entity v2", "model": "writer-7b"}
    made(people, "d", **told, gold_generator="generate-gold v1", gold_model="sage-1")
    made(people, "e", **told)
    made(people, "f", perturber="spelling")
    written = card(people)
    for line in (
        "| origin | made by | model | gold answer by | items |",
        "|  |  |  |  | 3 |",
        "| generated | generate-entity v2 | writer-7b |  | 1 |",
        "| generated | generate-entity v2 | writer-7b | generate-gold v1, sage-1 | 1 |",
        "| perturber | spelling |  |  | 1 |",
    ):
        assert line in written
    assert "A model wrote at least part of the texts of 2 items." in written
    assert "the terms of those who offer these models" in written
    assert "An evaluator that is the same or a related model" in written


def test_where_no_model_wrote_the_card_says_nothing_of_models(people: Cast) -> None:
    assert "Where the texts come from" not in card(people)
    made(people, "f", perturber="spelling")
    written = card(people)
    assert "| perturber | spelling |  |  | 1 |" in written
    assert "offer these models" not in written


def test_the_front_says_licence_size_and_files(people: Cast) -> None:
    said = front(card(people, licence="cc-by-4.0"))
    assert (said["license"], said["size_categories"]) == ("cc-by-4.0", ["n<1K"])
    names = [one["config_name"] for one in said["configs"]]
    assert names == ["default", "number-errors", "spelling"]
    assert front(card(people))["license"] == "unknown"


def test_without_a_licence_the_card_says_whom_to_ask(people: Cast) -> None:
    assert "None is stated. Ask those who publish this" in card(people)
    assert "CC BY 4.0." in card(people, licence="cc-by-4.0")


def test_agreement_that_is_not_defined_is_a_dash_with_its_reason(people: Cast) -> None:
    rows = [line for line in card(people).splitlines() if "Krippendorff" in line]
    assert rows
    assert "| — | — | — | 0 | 0 | no item with two labels |" in rows[0]


def test_agreement_is_told_as_its_table_has_it(people: Cast) -> None:
    Slot.objects.update(state=Slot.State.CLOSED)
    make_item(people.project, "d", slots=2), make_guidelines(people.project)
    for member in (people.annotator, people.lead):
        say(member, take(member))
    written = card(people)
    [row] = [line for line in written.splitlines() if "Percent agreement" in line][:1]
    assert "| 1.000 |" in row
    assert "Their guidelines were in version 1" in written
    assert "2 annotators gave" in written


def test_a_canary_is_in_the_card_and_in_every_row(people: Cast) -> None:
    files = folder(people, canary=True)
    canary = Job.objects.get(kind=exporting_jobs.KIND).result["canary"]
    assert f"**Do not train on this.** {canary}." in files["README.md"].decode()
    for name in ("number-errors", "spelling"):
        table = pq.read_table(io.BytesIO(files[f"data/{name}.parquet"]))
        assert set(table["canary"].to_pylist()) == {canary}
    assert "train on this" not in card(people)


def test_a_snapshot_is_named_with_its_digest(people: Cast) -> None:
    frozen = create.enqueue(people.project, people.lead, "v1")
    create.store_contents(frozen)
    frozen.refresh_from_db()
    Item.objects.update(deleted_at=timezone.now())
    written = card(people, snapshot="v1")
    assert "| all | all | 3 | 1 | 2 |" in written
    assert "The items come from the snapshot v1, created on" in written
    assert frozen.digest in written
    assert "not only the items in this data set" in written


def test_what_was_narrowed_is_said(people: Cast) -> None:
    written = card(people, filters={"category": "spelling"})
    assert "| all | all | 2 | 1 | 1 |" in written
    assert "all items of the project that match category: spelling" in written


@pytest.mark.parametrize("name", CORPUS)
def test_hostile_names_stay_texts_in_the_card(people: Cast, name: str) -> None:
    Project.objects.filter(pk=people.project.pk).update(name=f"{MARK} {CORPUS[name]}"[:200])
    Item.objects.filter(key="a").update(ability=f"{CORPUS[name]}"[:80])
    # A NUL is in nothing that is stored.
    model = CORPUS[name].replace("\0", "").encode(errors="replace").decode()
    Item.objects.filter(key="b").update(fields={"generator": "g v1", "model": model})
    written = card(people, filters={"search": ""}, licence="mit")
    said = front(written)
    assert (said["license"], len(said["configs"])) == ("mit", 3)
    *_, body = re.split("^---$", written, maxsplit=2, flags=re.MULTILINE)
    rendered = RENDER.render(body).replace(' style="text-align:right"', "")
    assert rendered.count("<h1>") == 1
    assert taken_for_markup(rendered) == []
    assert "<a " not in rendered
    assert "<img" not in rendered


def test_the_command_makes_the_same_folder(people: Cast, tmp_path: Path) -> None:
    path = tmp_path / "folder.zip"
    said = {"project": people.project.slug, "format": "hub", "licence": "cc0-1.0"}
    call_command("export", "items", **said, canary=True, output=path, stderr=io.StringIO())
    written = unzipped(path)["README.md"].decode()
    event = Event.objects.get(kind="export")
    assert front(written)["license"] == event.data["licence"] == "cc0-1.0"
    assert event.data["canary"] in written


def test_the_api_takes_a_licence_of_the_hub_and_no_other(people: Cast) -> None:
    client, slug = api_client(people.lead), people.project.slug

    def ask(**said: str) -> Any:
        body = {"table": "items", "format": "hub", **said}
        address = f"/api/v1/projects/{slug}/exports/"
        return client.post(address, body, content_type="application/json")

    assert ask(licence="odc-by").json()["licence"] == "odc-by"
    assert list(ask(licence="mine").json()["errors"]) == ["licence"]
    assert list(ask(table="labels").json()["errors"]) == ["format"]


def test_items_that_a_machine_found_odd_are_counted_by_flag(people: Cast) -> None:
    Item.objects.filter(key__in=["a", "b"]).update(flags=["claim"])
    Item.objects.filter(key="c").update(flags=["claim", "of-yesterday"])
    said = card(people)
    assert "- 3 items have the flag `claim`: Does not match the category.\n" in said
    assert "- 1 item has the flag `of-yesterday`: of-yesterday.\n" in said
