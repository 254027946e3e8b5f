"""Runs have names, tags and notes: who gives them, what is refused, and where they show."""

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.utils.datastructures import MultiValueDict

from annotation.models import Event, Membership, Project
from judging.archive import load
from judging.archive.create import ArchiveOptions
from judging.errors import Refused
from judging.exporting.tables import EXPORT_TABLES
from judging.models import Run
from judging.results import figures, tables
from judging.results.columns import DEFAULT_BY, parse_fields
from judging.results.tables import methods
from judging.runs import archiving, derived, descriptions, pinning, start
from judging.runs.lifecycle import RunConfig
from tests.builders import make_project
from tests.hostile import CORPUS, taken_for_markup
from tests.judging.archive.builders_archive import archive
from tests.judging.builders_judging import (
    make_baseline,
    make_endpoint,
    make_items,
    make_judged,
    make_run,
    make_strategy,
)

pytestmark = pytest.mark.django_db

NOBODY = "http://127.0.0.1:9/v1"


@pytest.fixture
def runs(project: Project) -> list[Run]:
    """A run named Blind and a run without a name, over the same ten items; Blind detects six, the
    other one nine."""
    items = make_items(project, 10)
    found = []
    for name, detected in (("Blind", 6), ("", 9)):
        said = [
            (item, "detected" if i < detected else "undetected") for i, item in enumerate(items)
        ]
        endpoint = make_endpoint(NOBODY, name=f"model-{detected}")
        found.append(make_judged(project, said, endpoint=endpoint, name=name))
    return found


def words(page: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def shown(browser: Client, place: str) -> str:
    answer = browser.get(f"/projects/fbi/{place}")
    assert answer.status_code == 200
    return str(answer.content.decode())


def table(project: Project, name: str, **query: list[str]) -> figures.FigureTable:
    said = MultiValueDict(query)
    runs, by = figures.select_project_runs(project, said), parse_fields(said.get("by", DEFAULT_BY))
    asked = figures.build_request(project, tables.RESULT_TABLES[name], runs, by)
    return figures.filter_rows(figures.compute_or_fetch(asked), said)


# What is given and what is refused


@pytest.mark.parametrize(
    "given, kept",
    [
        ("  Terse   prompt ", "Terse prompt"),
        ("x" * 60, "x" * 60),
        ("cafe\u0301", "caf\u00e9"),
        ("क्\u200dष", "क्\u200dष"),  # a joiner belongs to the word
        ("", ""),
    ],
)
def test_a_name_is_kept_with_single_spaces(given: str, kept: str) -> None:
    assert descriptions.clean_name(given) == kept


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("x" * 61, "is too long"),
        *((one, "taken for a run's number") for one in ("7", " 12 ", "٣", "Run 2", "#2")),
        *((one, "cannot be seen") for one in ("a\x00b", "a\u202eb", "\ud800", "\u3164", "\u2800")),
        *((one, "cannot be seen") for one in ("\u200d\u200d", "Veto\u200d all")),
    ],
)
def test_a_name_that_is_long_or_a_number_or_cannot_be_seen_is_refused(given: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        descriptions.clean_name(given)


def test_tags_are_small_words_without_spaces_each_once() -> None:
    given = ["Prompt A, #pilot", "prompt  a", " , "]
    assert descriptions.clean_tags(given) == ["prompt-a", "pilot"]
    with pytest.raises(Refused, match="at most 10 tags, not 11"):
        descriptions.clean_tags([str(one) for one in range(11)])
    with pytest.raises(Refused, match="at most 30 characters"):
        descriptions.clean_tags(["x" * 31])


def test_a_name_is_used_once_among_the_runs_that_are_not_archived(
    project: Project, member: Membership, runs: list[Run]
) -> None:
    named, other = runs
    with pytest.raises(Refused, match=r"Run 1 already has the name “Blind”"):
        descriptions.describe_run(other, member, name=" bLIND ")
    with pytest.raises(Refused, match="Run 1 already has"):
        make_run(project, name="Blind")
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.filter(pk=other.pk).update(name="BLIND")
    descriptions.describe_run(named, member, name="blind")  # its own name
    archiving.archive_run(named, member)
    descriptions.describe_run(other, member, name="Blind")
    with pytest.raises(Refused, match="Run 2 already has the name “Blind”"):
        archiving.unarchive_run(named, member)
    named.refresh_from_db()
    assert named.archived_at is not None
    elsewhere = make_project("other")
    make_items(elsewhere, 1)
    assert make_run(elsewhere, name="Blind").name == "Blind"


def test_a_name_is_for_one_run_and_tags_are_for_all_that_start_together(
    project: Project, member: Membership
) -> None:
    make_items(project, 3)
    strategies = [make_strategy(slug) for slug in ("rouge-l", "length")]

    def wish(name: str) -> start.NewRuns:
        config = RunConfig(seed=1, name=name, tags=["A"], note="Why.")
        return start.NewRuns(strategies=strategies, endpoints=[make_baseline()], config=config)

    for refuse in (start.start_runs, lambda *of: start.estimate_runs(*of[:2])):
        with pytest.raises(Refused, match="2 runs would start, and each name is for one run"):
            refuse(project, wish("Short"), member)
    assert not Run.objects.exists()
    begun = start.start_runs(project, wish(""), member)
    assert [(run.tags, run.note) for run in begun] == [(["a"], "Why.")] * 2


def test_a_pilot_takes_no_name(project: Project) -> None:
    make_items(project, 3)
    assert make_run(project, pilot=True, name="Short", tags=["a"]).name == ""


def test_a_change_is_on_record_with_the_old_and_the_new_values(
    member: Membership, runs: list[Run]
) -> None:
    descriptions.describe_run(runs[0], member, name="Seeing", tags=["b", "a"])
    event = Event.objects.get(kind="run described")
    assert (event.subject, event.member) == ("run 1", member)
    assert event.data == {
        "old": {"name": "Blind", "tags": []},
        "new": {"name": "Seeing", "tags": ["b", "a"]},
    }
    descriptions.describe_run(runs[0], member, name="Seeing", tags=["b", "a"], note="")
    assert Event.objects.filter(kind="run described").count() == 1


def test_no_digest_and_no_fingerprint_depends_on_a_name(
    project: Project, member: Membership, runs: list[Run]
) -> None:
    asked = figures.build_request(project, _undetected(), runs, ["category"])
    before = runs[0].digest, pinning.compute_digest(runs[0]), asked.state(), asked.rows()
    descriptions.describe_run(runs[0], member, name="Seeing", tags=["a"], note="Better.")
    [run, _] = Run.objects.for_results()
    again = figures.build_request(project, _undetected(), [run, runs[1]], ["category"])
    assert (run.digest, pinning.compute_digest(run), again.state(), again.rows()) == before


def _undetected() -> Any:
    return figures.RESULT_TABLES["undetected"]


# Pages


def test_a_run_starts_with_a_name_on_the_page_the_api_and_the_command(
    project: Project, browser: Client, program: Client
) -> None:
    make_items(project, 3)
    said = {"strategy": ["rouge-l"], "endpoint": ["baseline"], "seed": 1}
    said |= {"name": "From the page", "tags": "A b, c", "note": "One\r\ntwo"}
    answer = browser.post("/projects/fbi/runs/new/", said)
    assert answer["Location"] == "/projects/fbi/runs/1/"
    body = {"strategy": "rouge-l", "endpoint": "baseline", "name": "From the API", "tags": ["A b"]}
    sent = program.post("/api/v1/projects/fbi/runs/", body, content_type="application/json")
    assert sent.json()["run"]["name"] == "From the API"
    command = ["run_strategy", "--project", "fbi", "--strategy", "length"]
    command += ["--endpoint", "baseline", "--name", "From the command", "--tag", "x", "y"]
    call_command(*command, "--note", "n")
    found = Run.objects.order_by("number").values_list("name", "tags", "note")
    assert list(found) == [
        ("From the page", ["a-b", "c"], "One\ntwo"),
        ("From the API", ["a-b"], ""),
        ("From the command", ["x", "y"], "n"),
    ]
    again = browser.post("/projects/fbi/runs/new/", {**said, "estimate": "1"})
    assert again.status_code == 422
    assert "Run 1 already has the name" in words(again.content.decode())


def test_a_combined_run_takes_a_name(project: Project, runs: list[Run]) -> None:
    for one in runs:
        one.refresh_from_db()
    made = derived.derive_run(
        project, strategy=make_strategy("majority"), sources=runs, name="Both"
    )
    assert Run.objects.get(number=made.number).name == "Both"
    with pytest.raises(Refused, match="already has the name"):
        derived.derive_run(project, strategy=make_strategy("majority"), sources=runs, name="Both")


def test_the_page_of_a_run_changes_name_tags_and_note(browser: Client, runs: list[Run]) -> None:
    place = "/projects/fbi/runs/2/description/"
    answer = browser.post(place, {"name": "Sees", "tags": "b, A", "note": "Look\nhere"})
    assert answer["Location"] == "/projects/fbi/runs/2/"
    page = shown(browser, "runs/2/")
    assert "<h1>Sees · run 2: " in page
    assert 'href="/projects/fbi/runs/?tag=a"' in page
    assert "Look\nhere" in page
    said = {"initial-name": "Sees", "initial-tags": "b, a", "initial-note": "Look\nhere"}
    refused = browser.post(place, {**said, "name": "Blind", "tags": "c", "note": ""})
    assert refused.status_code == 422
    page = refused.content.decode()
    assert "Run 1 already has the name" in page
    assert '<details class="start-more" open>' in page
    assert "<h1>Sees · run 2: " in page
    assert Run.objects.get(number=2).tags == ["b", "a"]


def test_what_somebody_else_changed_meanwhile_is_not_set_back(
    browser: Client, runs: list[Run]
) -> None:
    place = "/projects/fbi/runs/2/description/"
    assert 'name="initial-note"' in shown(browser, "runs/2/")
    shown_first = {"initial-name": "", "initial-tags": "", "initial-note": ""}
    browser.post(place, {**shown_first, "name": "Sees", "tags": "", "note": ""})
    # From a page that was opened before.
    answer = browser.post(place, {**shown_first, "name": "", "tags": "", "note": "Mine"})
    assert answer.status_code == 302
    run = Run.objects.get(number=2)
    assert (run.name, run.note) == ("Sees", "Mine")
    # Browsers send line breaks as CRLF, in what was shown too.
    lines_of = {**shown_first, "initial-name": "Sees", "name": "Sees", "tags": ""}
    browser.post(place, {**lines_of, "initial-note": "Mine", "note": "Two\r\nlines"})
    answer = browser.post(
        place, {**lines_of, "initial-note": "Two\r\nlines", "note": "Two\r\nother lines"}
    )
    assert answer.status_code == 302
    assert Run.objects.get(number=2).note == "Two\nother lines"
    late = browser.post(place, {**shown_first, "name": "Looks", "tags": "", "note": ""})
    assert late.status_code == 422
    assert "Somebody has changed this meanwhile, to “Sees”" in late.content.decode()
    assert Run.objects.get(number=2).name == "Sees"


def test_the_api_changes_what_is_in_the_body_alone(
    project: Project, program: Client, runs: list[Run]
) -> None:
    def patch(**body: Any) -> Any:
        place = "/api/v1/projects/fbi/runs/1/"
        return program.patch(place, body, content_type="application/json")

    assert patch(tags=["Night Shift"]).json()["run"]["tags"] == ["night-shift"]
    assert patch(note=" Keep. ").json()["run"]["note"] == "Keep."
    assert Run.objects.get(number=1).name == "Blind"
    assert patch(name="").json()["run"]["name"] == ""
    assert patch(name="12").status_code == 422
    assert patch(title="Other").status_code == 422
    found = program.get("/api/v1/projects/fbi/runs/?tag=night-shift").json()
    assert [(one["number"], one["tags"]) for one in found["results"]] == [(1, ["night-shift"])]
    assert program.get("/api/v1/projects/fbi/runs/?tag=night").json()["results"] == []


def test_the_list_shows_names_and_filters_by_tag(browser: Client, runs: list[Run]) -> None:
    assert "Tag" not in words(shown(browser, "runs/"))
    descriptions.describe_run(runs[1], None, tags=["prompt-é", "b"])
    page = shown(browser, "runs/")
    assert "Blind · run 1" in page
    assert '<option value="prompt-é">' in page
    found = shown(browser, f"runs/?tag={quote('prompt-é')}")
    assert "Run 2" in found
    assert "Blind · run 1" not in found


def test_result_pages_name_runs_first_and_the_number_can_be_dropped(
    browser: Client, runs: list[Run]
) -> None:
    page = words(shown(browser, "results/choose/"))
    assert "Blind · 1" in page
    assert "rouge-l · model-6" in page or "reference · model-6" in page
    alone = words(shown(browser, "results/choose/?named=name"))
    assert "Blind · 1" not in alone
    assert "Blind" in alone
    assert "2 · reference" in alone  # without a name the number stays
    matrix = shown(browser, "results/compare/")
    assert re.search(r"<th[^>]*>\s*Blind\s*<small>1</small>", matrix)
    assert re.search(r"<th[^>]*>\s*2\s*<small>reference</small>", matrix)
    matrix = shown(browser, "results/compare/?named=name")
    assert re.search(r"<th[^>]*>\s*Blind\s*</th>", matrix)
    assert 'href="/projects/fbi/results/choose/?named=name"' in matrix


def test_without_a_named_run_no_page_offers_to_drop_numbers(
    browser: Client, runs: list[Run]
) -> None:
    assert "Runs named by" in shown(browser, "results/choose/")
    descriptions.describe_run(runs[0], None, name="")
    assert "Runs named by" not in shown(browser, "results/choose/")


def test_charts_call_runs_by_their_names(browser: Client, runs: list[Run]) -> None:
    descriptions.describe_run(runs[0], None, name="Prompt: terse")
    drawn = shown(browser, "results/overview/chart.json")
    assert "Prompt:\\u00a0terse · 1" in drawn.replace("\u00a0", "\\u00a0")
    drawn = shown(browser, "results/overview/chart.json?named=name").replace("\u00a0", "\\u00a0")
    assert "Prompt:\\u00a0terse" in drawn
    assert "Prompt:\\u00a0terse ·" not in drawn


def test_two_runs_of_one_name_keep_their_numbers(browser: Client, runs: list[Run]) -> None:
    Run.objects.filter(number=2).update(state=Run.State.FINISHED)
    runs[0].refresh_from_db()
    archiving.archive_run(runs[0], None)
    descriptions.describe_run(runs[1], None, name="Blind")
    page = words(shown(browser, "results/choose/?run=1&run=2&named=name"))
    assert "Blind · 1" in page
    assert "Blind · 2" in page


def test_runs_are_chosen_by_tag(browser: Client, runs: list[Run]) -> None:
    descriptions.describe_run(runs[1], None, tags=["b"])
    page = shown(browser, "results/choose/?named=name")
    [link] = re.findall(r'All runs with the tag: <a href="([^"]*)"', page)
    assert link == "?named=name&amp;run=2"
    assert "1 of 2 runs" in shown(browser, f"results/choose/{link.replace('&amp;', '&')}")


@pytest.mark.parametrize("text", CORPUS.values(), ids=CORPUS)
def test_names_tags_and_notes_are_text_wherever_they_show(
    browser: Client, runs: list[Run], text: str
) -> None:
    Run.objects.filter(number=2).update(name=text[:60], tags=[text], note=text)
    for place in ("runs/", "runs/2/", "runs/new/", "results/choose/", "results/compare/"):
        assert not taken_for_markup(shown(browser, place))


# Files


def test_files_and_api_have_the_name_beside_the_number(
    project: Project, program: Client, runs: list[Run]
) -> None:
    found = table(project, "undetected")
    assert found.columns[:4] == ("run", "endpoint", "strategy", "run_name")
    assert {(row["run"], row["run_name"]) for row in found.rows} == {(1, "Blind"), (2, None)}
    [pair] = [row for row in table(project, "compare").rows if not row["ability"]]
    assert (pair["run_name_a"], pair["run_name_b"]) == ("Blind", None)
    said = program.get("/api/v1/projects/fbi/results/undetected/?run_name=Blind").json()
    assert {row["run"] for row in said["rows"]} == {1}
    assert "run_name" not in table(project, "categories").columns


def test_a_stored_table_has_the_name_of_today_and_is_not_made_again(
    project: Project, runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures.TableRequest, "is_small", lambda asked: False)
    before = table(project, "undetected")
    assert before.at is not None
    descriptions.describe_run(runs[0], None, name="Seeing", tags=["a"], note="Better.")
    after = table(project, "undetected")
    assert after.at == before.at
    assert {row["run_name"] for row in after.rows} == {"Seeing", None}


def test_numbers_are_dropped_from_a_file_if_every_run_has_a_name(
    project: Project, browser: Client, runs: list[Run], capsys: pytest.CaptureFixture[str]
) -> None:
    place = "results/undetected.latex?by=category&named=name"
    assert "\\midrule\n1 & " in shown(browser, place)
    descriptions.describe_run(runs[1], None, name="Sees")
    sent = shown(browser, place)
    assert "run\\_name" in sent
    assert not re.search(r"^\d+ &", sent, re.M)
    command = ["results", "undetected", "--project", "fbi", "--by", "category", "--names-alone"]
    call_command(*command, "--format", "latex")
    assert capsys.readouterr().out == sent
    page = shown(browser, "results/choose/?named=name")
    assert re.search("<code>manage.py results evaluators [^<]* --names-alone</code>", page)
    pairs = json.loads(shown(browser, "results/compare.json?named=name"))
    assert "run_a" not in pairs["columns"]
    assert {(row["run_name_a"], row["run_name_b"]) for row in pairs["rows"]} == {("Blind", "Sees")}


def test_exports_have_names_and_the_export_of_runs_tags_and_notes(
    project: Project, runs: list[Run]
) -> None:
    descriptions.describe_run(runs[0], None, tags=["a"], note="Why.")
    [first, second] = EXPORT_TABLES["runs"].rows(project)
    assert (first["run_name"], first["tags"], first["note"]) == ("Blind", ["a"], "Why.")
    assert (second["run_name"], second["tags"], second["note"]) == (None, [], None)
    assert tuple(first) == EXPORT_TABLES["runs"].columns
    said = {row["run_name"] for row in EXPORT_TABLES["outcomes"].rows(project)}
    assert said == {"Blind", None}


def test_the_methods_paragraph_names_the_run(project: Project, runs: list[Run]) -> None:
    said = methods.write_methods(project, list(Run.objects.for_results())).text
    assert "Run 1 (Blind) used model-6" in said
    assert "Run 2 used model-9" in said


@pytest.mark.skipif(connection.vendor != "sqlite", reason="archives are loaded into SQLite")
@pytest.mark.parametrize("texts", [True, False])
def test_an_archive_carries_names_and_tags_and_with_the_texts_the_note(
    tmp_path: Path, *, texts: bool
) -> None:
    with transaction.atomic():
        project = make_project("fbi")
        make_items(project, 3)
        make_run(project, name="Blind", tags=["a", "b"], note="Look at item-1.")
        make_run(project)
        path = archive(project, tmp_path / "results.zip", ArchiveOptions(texts=texts))
        transaction.set_rollback(True)
    load.load_archive(path)
    found = Run.objects.order_by("number").values_list("name", "tags", "note")
    note = "Look at item-1." if texts else ""
    assert list(found) == [("Blind", ["a", "b"], note), ("", [], "")]
