import csv
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotation import importing, tasktypes
from annotation.importing import items
from annotation.models import Event, Item, Project, Resolution, Revision, Slot, digest_texts
from formats.rows import Row
from tests import builders

pytestmark = pytest.mark.django_db

COLUMNS = ["key", "category", "prompt", "gold", "perturbed"]
GOOD = {"category": "number-errors", **builders.TEXTS}


@pytest.fixture
def rows(tmp_path: Path) -> Any:
    """Write rows as JSON Lines and give the path."""

    def write(*rows: dict[str, Any], name: str = "items.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


def run(path: Path, **options: Any) -> str:
    said = io.StringIO()
    call_command(
        "import_items",
        str(path),
        stdout=said,
        stderr=said,
        **{"project": "p", "create": True, **options},
    )
    return said.getvalue()


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(CommandError) as caught:
        run(path, **options)
    assert caught.value.returncode == 2
    assert not Item.objects.exists()
    assert not Project.objects.exists()
    return str(caught.value)


def test_items_come_with_texts_a_slot_and_their_own_ability(rows: Any) -> None:
    run(rows(GOOD | {"key": "a", "claim": "six", "weight": 3}))
    item = Item.objects.get()
    assert (item.key, item.ability, item.source_ability) == ("a", "factual", "factual")
    assert item.fields == {"weight": 3}
    assert item.revision().texts == builders.TEXTS | {"claim": "six"}
    assert Slot.objects.get().state == "open"
    assert not Resolution.objects.exists()


def test_items_with_one_prompt_share_a_cluster_whatever_stands_round_it(rows: Any) -> None:
    run(rows(GOOD | {"key": "a"}, GOOD | {"key": "b", "prompt": f" {GOOD['prompt']}\n"}))
    assert Item.objects.values("cluster").distinct().count() == 1


def test_again_is_nothing_new(rows: Any) -> None:
    path = rows(GOOD | {"key": "a"})
    run(path)
    assert "0 imported, 1 unchanged" in run(path)
    assert Revision.objects.count() == 1


def test_a_changed_text_is_a_conflict_and_never_an_overwrite(rows: Any) -> None:
    run(rows(GOOD | {"key": "a"}))
    said = run(rows(GOOD | {"key": "a", "gold": "Ten."}, GOOD | {"key": "b"}))
    assert "conflict: items.jsonl, line 1, key: already exists with other texts" in said
    assert Revision.objects.get(item__key="a").texts == builders.TEXTS
    assert Item.objects.count() == 2


@pytest.mark.parametrize(
    "change, field",
    [
        ({"category": "entity"}, "category"),
        ({"cluster": "another"}, "cluster"),
        ({"repeats": "b"}, "repeats"),
        ({"weight": 4}, "fields"),
    ],
)
def test_a_row_that_says_something_else_of_the_same_texts_is_a_conflict(
    rows: Any, change: dict[str, Any], field: str
) -> None:
    first = [GOOD | {"key": "b"}, GOOD | {"key": "a", "weight": 3}]
    run(rows(*first))
    for options in ({}, {"dry_run": True}):
        said = run(rows(*first, GOOD | {"key": "a", "weight": 3} | change), **options)
        assert f"key: exists with other {field}. Nothing" in said
    assert Item.objects.get(key="a").fields == {"weight": 3}


def test_a_deleted_item_keeps_its_key(rows: Any) -> None:
    run(rows(GOOD | {"key": "a"}))
    Item.objects.update(deleted_at="2026-01-01T00:00Z")
    assert "Restore the item" in run(rows(GOOD | {"key": "a"}))


def test_the_same_key_twice_in_one_file_is_one_item(rows: Any) -> None:
    said = run(rows(GOOD | {"key": "a"}, GOOD | {"key": "a"}, GOOD | {"key": "a", "gold": "No."}))
    assert "1 imported, 1 unchanged, 1 in conflict" in said


def test_equal_texts_are_flagged_only_where_the_task_compares_them(rows: Any) -> None:
    same = GOOD | {"gold": "Six.", "perturbed": "Six."}
    run(rows(same | {"key": "a"}))
    version = Project.objects.get().task_type
    version.definition = {k: v for k, v in version.definition.items() if k != "diff"}
    version.digest = tasktypes.digest_definition(version.definition)
    version.save()
    run(rows(same | {"key": "b"}))
    assert [item.flags for item in Item.objects.all()] == [["identical"], []]


def test_accepted_items_are_resolved_and_have_no_slots(rows: Any) -> None:
    invariant = {"category": "score-invariant", "source_ability": "reasoning"}
    run(rows(GOOD | {"key": "a"}, GOOD | invariant | {"key": "b"}), accept=True)
    values = dict(Resolution.objects.values_list("item__key", "value"))
    assert values == {"a": "valid", "b": "score-invariant"}
    assert not Slot.objects.exists()


def test_a_repeat_points_at_its_original_and_gets_no_slot(rows: Any) -> None:
    run(rows(GOOD | {"key": "a"}, GOOD | {"key": "b", "repeats": "a"}))
    assert Item.objects.get(key="b").duplicate_of == Item.objects.get(key="a")
    assert Slot.objects.get().item.key == "a"


@pytest.mark.parametrize("original", ["nobody", "b"])
def test_a_repeat_of_nothing_or_of_a_repeat_is_bad(rows: Any, original: str) -> None:
    first = [GOOD | {"key": "a"}, GOOD | {"key": "b", "repeats": "a"}]
    assert "1 bad" in run(rows(*first, GOOD | {"key": "c", "repeats": original}))
    assert not Item.objects.filter(key="c").exists()


@pytest.mark.parametrize(
    "change, field",
    [
        ({"key": ""}, "key"),
        ({"key": "a\tb"}, "key"),
        ({"key": "../runs"}, "key"),
        ({"key": "a/."}, "key"),
        ({"key": "x" * 201}, "key"),
        ({"key": 7}, "key"),
        ({"category": "nonsense"}, "category"),
        ({"category": "score-invariant"}, "source_ability"),
        ({"source_ability": "cooking"}, "source_ability"),
        ({"perturbed": "  "}, "perturbed"),
        ({"gold": None}, "gold"),
        ({"origin": "o" * 41}, "origin"),
    ],
)
def test_a_bad_row_is_named_and_the_good_ones_imported(
    rows: Any, tmp_path: Path, change: dict[str, Any], field: str
) -> None:
    errors = tmp_path / "errors.csv"
    said = run(rows(GOOD | {"key": "a"} | change, GOOD | {"key": "good"}), errors=errors)
    assert f"bad: items.jsonl, line 1, {field}: " in said
    assert Item.objects.get().key == "good"
    [found] = csv.DictReader(errors.open(encoding="utf-8"))
    assert (found["problem"], found["line"], found["field"]) == ("bad", "1", field)


def test_twenty_problems_are_shown_and_all_are_in_the_file(rows: Any, tmp_path: Path) -> None:
    errors = tmp_path / "errors.csv"
    said = run(rows(GOOD | {"key": "a"}, *[{"key": "b"}] * 30), errors=errors)
    assert said.count("bad: ") == 20
    assert "and 10 more" in said
    assert len(errors.read_text(encoding="utf-8").splitlines()) == 31


def test_without_a_good_row_no_project_is_made(rows: Any) -> None:
    assert "No valid rows" in refusal(rows({"key": "a"}))


def test_of_words_that_are_no_category_the_command_says_how_they_become_one(rows: Any) -> None:
    ours = GOOD | {"key": "b", "category": "Rude remark"}
    assert "each of its words can become a category" in refusal(rows(ours))
    assert "each of its words" in run(rows(GOOD | {"key": "a"}, ours))
    assert "each of its words" not in run(rows(GOOD | {"key": "c"}))


def test_an_unknown_project_is_refused_with_the_remedy(rows: Any) -> None:
    assert "--create" in refusal(rows(GOOD | {"key": "a"}), create=False)


def test_an_unknown_task_type_is_refused(rows: Any) -> None:
    assert "perturbation-vetting" in refusal(rows(GOOD | {"key": "a"}), task_type="none")


def test_a_format_that_the_suffix_does_not_tell_is_asked_for(rows: Any) -> None:
    assert "--format" in refusal(rows(GOOD | {"key": "a"}, name="items.dat"))


def test_a_name_that_cannot_be_a_slug_is_refused(rows: Any) -> None:
    assert "letters, digits" in refusal(rows(GOOD | {"key": "a"}), project="a b")


def test_wrong_columns_are_a_fault_of_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text("key,category,question\na,grammar,b\n")
    assert "missing columns: prompt, gold, perturbed" in refusal(path)


@pytest.mark.parametrize(
    "name, content",
    [
        ("items.csv", b""),
        ("items.jsonl", b""),
        ("items.zip", b"not a zip"),
        ("items.csv", b"key,category,prompt,gold,perturbed\na,grammar,\xff,b,c\n"),
        ("items.csv", b"key,category,prompt,gold,perturbed\na,grammar,x,b," + b"y" * 10_000_000),
        ("items.jsonl", b'{"key": "a"}\n\xff\n'),
        ("missing.csv", None),
    ],
)
def test_a_fault_of_the_whole_file_imports_nothing(
    tmp_path: Path, name: str, content: bytes | None
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    assert name in refusal(path)


def test_a_fault_at_the_end_of_a_file_leaves_nothing_half_imported(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    good = "".join(json.dumps(GOOD | {"key": str(n)}) + "\n" for n in range(200))
    path.write_bytes(good.encode() + b"\xff\n")
    assert "line 201" in refusal(path)


def test_a_dry_run_counts_and_stores_nothing(rows: Any) -> None:
    path = rows(GOOD | {"key": "a"}, GOOD | {"key": "a"}, GOOD | {"key": "a", "gold": "No."})
    said = run(path, dry_run=True)
    assert "1 would be imported, 1 unchanged, 1 in conflict" in said
    assert not Project.objects.exists()


def test_an_import_is_on_record(rows: Any) -> None:
    run(rows(GOOD | {"key": "a"}, {"key": "b"}), name="My data")
    event = Event.objects.get(kind="import")
    assert (event.data["new"], event.data["bad"]) == (1, 1)
    assert Project.objects.get().name == "My data"


def test_a_batch_costs_a_fixed_number_of_queries(
    rows: Any, django_assert_max_num_queries: Any
) -> None:
    path = rows(*(GOOD | {"key": str(number)} for number in range(100)))
    with django_assert_max_num_queries(32):
        run(path)


@pytest.mark.parametrize(
    "before, after, flags",
    [
        ("Six of\n ten.", "Six  of ten. ", ["white-space-only"]),
        ("Six of ten.", " Six of ten.", ["white-space-only"]),
        ("Six", "Sixty", []),
        ("Six of", "Six", []),
        ("a bc", "ab c", []),
        ("Six", "Ten", []),
        ("Six", "Six", ["identical"]),
    ],
)
def test_texts_that_differ_in_spaces_only_are_flagged(
    rows: Any, before: str, after: str, flags: list[str]
) -> None:
    run(rows(GOOD | {"key": "a", "gold": before, "perturbed": after}))
    assert Item.objects.get().flags == flags


def test_of_a_slow_database_fewer_rows_are_stored_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project = importing.create_project("slow")
    took = iter([0.0, 0.5, 1.0, 1.125, 2.0, 2.001, 3.0, 13.0])
    monkeypatch.setattr(items, "perf_counter", lambda: next(took, 99.0))
    monkeypatch.setattr(items, "FIRST_BATCH", 40)
    monkeypatch.setattr(items, "BATCH", 50)
    monkeypatch.setattr(items, "MIN_BATCH", 2)
    stored: list[int] = []
    monkeypatch.setattr(items, "_insert", lambda _, fresh, **more: stored.append(len(fresh)))
    rows = (Row("f", n, GOOD | {"key": f"k{n}"}) for n in range(110))
    items.store_items(project, importing.parse_items(rows, tasktypes.load_task_type(project)))
    # 40 rows took half a second, eight an eighth, six hardly any time, 50 ten seconds.
    assert stored == [40, 8, 6, 50, 2, 2, 2]
    assert Event.objects.get(kind="import").data["new"] == 110


def test_a_file_of_several_batches_comes_in_whole_and_in_order(
    rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(items, "BATCH", 7)
    monkeypatch.setattr(items, "BATCH_BYTES", 900)
    told = [GOOD | {"key": f"k{number}", "cluster": "é\\n\t"} for number in range(40)]
    told += [GOOD | {"key": "again", "repeats": "k3"}, GOOD | {"key": "last", "weight": [1, "ü"]}]
    path = rows(*told)
    assert "42 imported" in run(path)
    stored = Item.objects.order_by("position")
    assert [item.key for item in stored] == [row["key"] for row in told]
    assert [item.position for item in stored] == list(range(1, 43))
    assert Item.objects.get(key="last").fields == {"weight": [1, "ü"]}
    assert Item.objects.get(key="again").duplicate_of == Item.objects.get(key="k3")
    assert Slot.objects.count() == 41
    assert {each.digest for each in Revision.objects.all()} == {digest_texts(builders.TEXTS)}
    assert "42 unchanged" in run(path)


# ------------------------------------------------------------------ clusters where people rate

ANIMAL = {"prompt": "Which animal?", "gold": "A heron", "response": "A bird"}


def clusters() -> dict[str, str]:
    return dict(Item.objects.values_list("key", "cluster"))


@pytest.mark.parametrize("task_type", ["rating", "rubric-scoring", "rubric-matrix"])
def test_where_people_rate_each_item_is_a_cluster_unless_a_column_names_one(
    rows: Any, task_type: str
) -> None:
    named = [ANIMAL | {"key": key, "cluster": "picture 3"} for key in ("c", "d")]
    path = rows(ANIMAL | {"key": "a"}, ANIMAL | {"key": "b"}, *named)
    said = run(path, task_type=task_type)
    assert "Each of the 2 new items counts as its own source question" in said
    assert "--column cluster=NAME" in said
    found = clusters()
    assert len({found["a"], found["b"], found["c"]}) == 3
    assert found["c"] == found["d"]
    assert "0 imported, 4 unchanged" in run(path)


def test_a_project_whose_first_items_were_grouped_by_their_prompt_goes_on_so(rows: Any) -> None:
    run(rows(ANIMAL | {"key": "a"}), task_type="rating")
    Item.objects.update(cluster=hashlib.sha256(b"Which animal?").hexdigest())
    before = clusters()
    said = run(rows(ANIMAL | {"key": "a"}, ANIMAL | {"key": "b"}))
    assert "1 imported, 1 unchanged" in said
    assert "source question" not in said
    assert clusters() == {"a": before["a"], "b": before["a"]}


def test_a_column_that_names_another_cluster_than_before_is_a_conflict(rows: Any) -> None:
    run(rows(ANIMAL | {"key": "a"}), task_type="rating")
    before = clusters()
    said = run(rows(ANIMAL | {"key": "a", "cluster": "picture 3"}))
    assert "exists with other cluster" in said
    assert clusters() == before


@pytest.mark.django_db
def test_items_get_the_labels_that_a_lead_asks_for_while_the_import_runs() -> None:
    project = builders.make_project()
    Project.objects.filter(pk=project.pk).update(overlap=3)
    assert project.overlap == 1
    texts = {"prompt": "Why?", "gold": "So.", "perturbed": "Sso."}
    said = Row("f", 1, {"key": "a", "category": "spelling", "source_ability": "factual", **texts})
    task = tasktypes.load_task_type(project)
    items.store_items(project, importing.parse_items([said], task))
    assert Slot.objects.filter(item__key="a").count() == 3
