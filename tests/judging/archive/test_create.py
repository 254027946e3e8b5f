"""Archives of results: the same again elsewhere, with nobody in them and nothing that was not asked
for."""

import json
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from itertools import cycle
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connections
from pytest_django import DjangoAssertNumQueries

from annotation.db import batches
from annotation.models import Account, Diff, Item, Project, Role
from annotation.settings import categories
from judging.archive import create, redact, reproduce
from judging.archive.create import ArchiveOptions
from judging.archive.redact import ArchiveScope
from judging.archive.tables import PARTS
from judging.models import Endpoint, Outcome, Reply, Run
from judging.results import tables
from stats.rouge import unicode_words
from tests.annotation.own_categories import with_own_categories
from tests.builders import make_item, make_member, make_project
from tests.judging.archive.builders_archive import (
    archive,
    ask,
    lines,
    make_detected,
    make_dosed,
    make_rated,
    make_vetted,
)
from tests.judging.builders_judging import make_items, make_judged

pytestmark = pytest.mark.django_db

MAKERS: dict[str, Callable[[Path], Project]] = {
    "vetted": lambda folder: make_vetted(),
    "detected": lambda folder: make_detected(),
    "rated": make_rated,
    "dosed": lambda folder: make_dosed(),
}
# Tables that a project of the kind is there for.
MEANT = {"dosed": {"doses", "penalties"}}

MEASURED = ("--by", "edit_size,length,place", "--format", "json")


@pytest.fixture
def vetted() -> Project:
    return make_vetted()


# On PostgreSQL too, whose archive is thawed in SQLite.
@pytest.mark.parametrize("kind", MAKERS)
def test_every_table_comes_out_the_same_elsewhere(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Some seconds: the archive is loaded and compared by a command, a process of its own."""
    project = MAKERS[kind](tmp_path)
    path = archive(project, tmp_path / "results.zip")
    call_command("results", archive=path)
    said = dict(line.split(": ") for line in capsys.readouterr().out.splitlines())
    runs = list(Run.objects.in_project(project).for_results())
    made = {name for name in tables.RESULT_TABLES if create.compute_rows(name, project, runs)}
    assert said.keys() == made - create.DATE_DEPENDENT_TABLES
    assert said.keys() >= MEANT.get(kind, set())
    assert all(one.startswith("the same") for one in said.values()), said


def test_few_items_with_long_fields_are_read_at_once(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    project = make_project()
    items = [make_item(project, key, fields={"a": key * 400}) for key in "abc"]
    [part] = [one for one in PARTS if one.model is Item]
    monkeypatch.setattr(batches, "MAX_LENGTH", 300)
    with django_assert_num_queries(1 + 3):  # the lengths, and then an item at a time
        written = [*create._part_lines(part, ArchiveScope(project, (), ()))]
    assert [json.loads(line)["key"] for line in written] == [item.key for item in items]


def test_a_table_of_an_archive_is_printed_as_the_project_prints_it(
    vetted: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Some seconds: the archive is loaded and printed by two commands."""
    path = archive(vetted, tmp_path / "results.zip")
    options = {"run": [1, 3], "by": "category", "format": "csv"}
    call_command("results", "undetected", project="fbi", **options)
    printed = capsys.readouterr().out
    call_command("results", "undetected", archive=path, **options)
    assert capsys.readouterr().out == printed


def test_an_archive_of_what_was_thawed_is_the_same_bytes(
    vetted: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fifteen seconds: two archives with 23 charts each, and three commands."""
    path, again, terms = (tmp_path / name for name in ("one.zip", "again.zip", "terms.txt"))
    terms.write_text("CC0")
    call_command("freeze_results", project="fbi", output=path, license=terms)
    with reproduce.load_archive(path) as there:
        command = ("freeze_results", "--project", "fbi", "-o", str(again))
        there.run(*command, "--license", str(terms))
        measured = there.run("results", "blindspots", "--project", "fbi", *MEASURED)
    assert again.read_bytes() == path.read_bytes()
    with zipfile.ZipFile(path) as held:
        assert held.read("LICENSE") == b"CC0"
        assert "LICENSE" in held.read("README.txt").decode()
        assert b"<svg" in held.read("charts/overview-abilities.svg")
    # What is measured of texts is known of an archive without them.
    capsys.readouterr()
    call_command("results", "blindspots", "--project", "fbi", *MEASURED)
    assert capsys.readouterr().out == measured
    assert {"edit_size", "length"} <= {one["field"] for one in json.loads(measured)["rows"]}


def test_the_same_state_is_the_same_bytes_and_a_change_is_not(
    vetted: Project, tmp_path: Path
) -> None:
    first, second = (archive(vetted, tmp_path / name).read_bytes() for name in ("1.zip", "2.zip"))
    Outcome.objects.filter(result="detected").first().delete()
    assert first == second
    assert archive(vetted, tmp_path / "3.zip").read_bytes() != first


def test_nobody_s_account_and_no_text_is_in_an_archive(vetted: Project, tmp_path: Path) -> None:
    for account in Account.objects.all():
        account.username, account.first_name = f"user-{account.pk}-secret", "Ada-secret"
        account.email = f"{account.pk}@secret.invalid"
        account.save()
    path = archive(vetted, tmp_path / "results.zip")
    with zipfile.ZipFile(path) as held:
        every = {name: held.read(name).decode() for name in held.namelist()}
    for name, text in every.items():
        assert "secret" not in text, name
        assert "Private." not in text, name
        assert "spiders" not in text, name
        assert "rather not say" not in text, name
    assert {one["member"] for one in lines(path, "labels")} == {"ann", "bob"}


def test_doses_and_penalties_are_the_same_elsewhere_however_they_are_grouped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Some seconds: an archive is loaded and asked by three commands."""
    path = archive(make_dosed(), tmp_path / "results.zip")
    with reproduce.load_archive(path) as there:
        for table, column in (("doses", "dose"), ("penalties", "expected")):
            command = ("results", table, "--project", "dosed", "--by", "", "--format", "json")
            capsys.readouterr()
            call_command(*command)
            printed = capsys.readouterr().out
            assert there.run(*command) == printed
            assert len({row[column] for row in json.loads(printed)["rows"]}) > 2
    assert {one["dose"] for one in lines(path, "items")} == {1, 2, 3, None}
    assert {one["answers"]["effect"] for one in lines(path, "labels")} == {"little", "lot", "some"}


def test_of_addresses_nothing_that_lets_one_in_is_in_an_archive(tmp_path: Path) -> None:
    project = make_project("fbi")
    make_items(project, 6)
    run = ask(project)
    # No form takes such an address; what else wrote it may have.
    address = "https://ada:secret@judge.invalid:8443/v1?key=secret#secret"
    Endpoint.objects.filter(pk=run.endpoint.pk).update(address=address)
    run.pinned |= {"address": address}
    run.save()
    path = archive(project, tmp_path / "results.zip", ArchiveOptions(texts=True, replies=True))
    with zipfile.ZipFile(path) as held:
        assert not [name for name in held.namelist() if b"secret" in held.read(name)]
    [endpoint], [frozen] = lines(path, "endpoints"), lines(path, "runs")
    assert endpoint["address"] == frozen["pinned"]["address"] == "https://judge.invalid:8443/v1"


def test_lengths_stay_where_texts_do_not(vetted: Project, tmp_path: Path) -> None:
    path = archive(vetted, tmp_path / "results.zip")
    # "How many legs have 1 spiders?" are six words of 29 characters.
    assert lines(path, "revisions")[0]["texts"]["prompt"] == "x x x x x " + 19 * "x"


def test_an_archive_holds_the_diffs_that_its_runs_pin_and_those_of_answers_to_changes(
    vetted: Project, tmp_path: Path
) -> None:
    archive(vetted, tmp_path / "made.zip")  # makes the diffs of today
    Run.objects.update(diff_algorithm="words-1")
    today = list(Diff.objects.order_by("pk"))
    for diff in today:
        Diff.objects.create(
            revision=diff.revision, algorithm="words-1", segments=diff.segments,
            edit_size=0.5, place=0.5,
        )  # fmt: skip
    Diff.objects.filter(pk=today[0].pk).update(pinned=True)
    found = lines(archive(vetted, tmp_path / "results.zip"), "diffs")
    assert [one["edit_size"] for one in found if one["algorithm"] == "words-1"] == [0.5] * len(
        today
    )
    assert [one["pinned"] for one in found if one["algorithm"] != "words-1"] == [True]


def test_a_move_keeps_its_number_where_texts_do_not_stay(vetted: Project) -> None:
    scope = ArchiveScope(vetted, (), ())
    packed = {"algorithm": "words-2", "segments": [[["abc"], [], 1], "de", [[], ["abc"], 1]]}
    masked = redact.mask_diff(scope, packed)
    assert masked["segments"] == [[["xxx"], [], 1], "xx", [[], ["xxx"], 1]]


def test_of_a_text_its_words_and_its_length_can_be_told(vetted: Project) -> None:
    scope = ArchiveScope(vetted, (), ())
    said = {"one": "Two words.", "none": "…!", "empty": "", "several": ["a", "bc d"]}
    masked = redact.mask_text(scope, said)
    assert masked == {"one": "x xxxxxxxx", "none": "..", "empty": "", "several": ["x", "x xx"]}


@pytest.mark.parametrize(
    "said", ["4 * 12 = 48 rolls.", "a well-known thing", "= =", "Two  words", "  ", "كلمة - نص"]
)
def test_a_hidden_text_has_as_many_words_tokens_and_characters(vetted: Project, said: str) -> None:
    masked = redact.mask_text(ArchiveScope(vetted, (), ()), said)
    assert set(masked) <= set("x. ")
    counts = [(len(unicode_words(one)), len(one.split()), len(one)) for one in (said, masked)]
    assert counts[0] == counts[1]


def test_texts_and_replies_are_there_where_they_are_asked_for(
    vetted: Project, tmp_path: Path
) -> None:
    path = archive(vetted, tmp_path / "results.zip", ArchiveOptions(texts=True, replies=True))
    assert "1 spiders" in lines(path, "revisions")[0]["texts"]["prompt"]
    assert {one["comment"] for one in lines(path, "labels")} == {"Private."}
    assert {one["text"] for one in lines(path, "replies")} == {
        '{"score": 7}', "I would rather not say.",
    }  # fmt: skip


def test_rows_name_each_other_without_ids(vetted: Project, tmp_path: Path) -> None:
    path = archive(vetted, tmp_path / "results.zip")
    for name in ("outcomes", "labels", "calls", "readings"):
        assert all("id" not in one and "pk" not in one for one in lines(path, name))
    assert lines(path, "outcomes")[0]["revision"] == ["item-1", 1]
    digest = lines(path, "requests")[0]["digest"]
    assert digest in {one["request"] for one in lines(path, "replies")}


def test_some_runs_bring_those_that_their_figures_rest_on(
    vetted: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Some seconds: an archive is loaded and asked by two commands."""
    path = archive(vetted, tmp_path / "results.zip", numbers=[1])
    with zipfile.ZipFile(path) as held:
        facts = json.loads(held.read("MANIFEST.json"))
    # Run 2 checks the explanations of run 1.
    assert (facts["runs"], facts["rest_on"]) == ([1], [2])
    capsys.readouterr()
    call_command("results", "explanations", project="fbi", run=[1])
    printed = capsys.readouterr().out
    call_command("results", "explanations", archive=path)
    assert capsys.readouterr().out == printed


def test_a_broken_archive_leaves_no_file(vetted: Project, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("freeze_results", project="fbi", output=tmp_path / "no" / "results.zip")
    assert not list(tmp_path.iterdir())


@pytest.mark.django_db(transaction=True)
def test_what_is_frozen_is_of_one_moment(tmp_path: Path) -> None:
    project = make_vetted()

    def forget() -> None:
        Outcome.objects.filter(run__project=project, calls=None).delete()
        connections.close_all()

    seen: list[str] = []

    def tell(name: str, rows: int) -> None:
        if name == "data/items.jsonl":
            with ThreadPoolExecutor(1) as pool:
                pool.submit(forget).result()
        seen.append(f"{name} {rows}")

    held = Outcome.objects.count()
    with (tmp_path / "results.zip").open("w+b") as stream:
        create.write_archive(
            project, list(project.runs.for_results()), ArchiveOptions(), stream, tell
        )
    assert f"data/outcomes.jsonl {held}" in seen
    assert Outcome.objects.count() < held


def test_replies_are_frozen_once_however_many_calls_share_them(
    vetted: Project, tmp_path: Path
) -> None:
    path = archive(vetted, tmp_path / "results.zip")
    assert len(lines(path, "replies")) == Reply.objects.count()
    assert len(lines(path, "calls")) == 12


def test_an_archive_comes_out_the_same_after_the_categories_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Some seconds: the archive is loaded and compared by a command. The figures of the runs are
    those of the categories that they had, in an archive of before and in one of after."""
    project = with_own_categories(make_project("reviews"))
    lead = make_member(project, Role.LEAD)
    items = make_items(project, 6, category="rude", ability="tone", source_ability="tone")
    items += make_items(
        project, 3, "score-invariant", category="flattery", ability="tone", source_ability="tone"
    )
    make_judged(project, zip(items, cycle(("detected", "undetected")), strict=False))
    before = archive(project, tmp_path / "before.zip")
    changed = deepcopy(project.taxonomy.definition)
    for slug, values in (
        ("rude", {"name": "Unkind", "ability": "evidence"}),
        ("flattery", {"name": "Praise", "retired": True, "merged_into": "made-up-citation"}),
    ):
        changed, _ = categories.put(changed, "category", slug, values)
    shown = project.taxonomy_id
    assert categories.save(project, changed, member=lead, shown=shown, note="Changed")
    after = archive(project, tmp_path / "after.zip")
    for path in (before, after):
        call_command("results", archive=path)
        said = dict(line.split(": ") for line in capsys.readouterr().out.splitlines())
        assert said["undetected"].startswith("the same")
    assert figures_of(before) == figures_of(after)
    versions = [lines(path, "taxonomies") for path in (before, after)]
    assert [len(one) for one in versions] == [1, 2]


def figures_of(path: Path) -> dict[str, bytes]:
    """The files of figures about runs, of which each line is of their pinned categories."""
    with zipfile.ZipFile(path) as held:
        names = [name for name in held.namelist() if name.startswith("figures/undetected")]
        assert names
        return {name: held.read(name) for name in names}
