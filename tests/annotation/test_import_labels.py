"""Labels that people made elsewhere."""

import csv
import io
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from annotation.importing import labels
from annotation.labelling import slots
from annotation.models import Event, Item, Label, Membership, Project, Resolution, Slot
from annotation.reports import agreement_answers
from tests.builders import make_item, make_member, make_project, make_revision, say, take

pytestmark = pytest.mark.django_db

VALID = {"item": "a", "rater": "one", "time": "2025-03-01T10:00:00Z", "choice": "valid"}
RATINGS = ["item", "rater", "time", "naturalness", "relatedness", "correctness"]


@pytest.fixture
def project() -> Project:
    made = make_project("p")
    make_item(made, "a")
    return made


@pytest.fixture
def rows(tmp_path: Path) -> Any:
    """Write rows as JSON Lines and give the path."""

    def write(*rows: dict[str, Any]) -> Path:
        path = tmp_path / "labels.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


def run(path: Path, **options: Any) -> str:
    said = io.StringIO()
    call_command("import_labels", str(path), project="p", stdout=said, stderr=said, **options)
    return said.getvalue()


def rated(path: Path, *ratings: tuple[Any, ...]) -> Path:
    """A CSV file of ratings in the manner of study 003."""
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([RATINGS, *ratings])
    return path


# ---------------------------------------------------------------------------- three raters


def three_raters(path: Path, *items: str) -> Path:
    # Of item "a" two say 3 of each; of "b" the three differ, so that the middle one holds.
    said = {"a": [(3, 3, 3), (3, 2, 3), (1, 3, 1)], "b": [(1, 3, 1), (2, 3, 2), (3, 3, 3)]}
    return rated(
        path,
        *(
            (item, f"rater-{number}", f"2025-03-0{number}T10:00:00", *numbers)
            for item in items
            for number, numbers in enumerate(said[item], start=1)
        ),
    )


def test_three_raters_fill_three_places_and_resolve_by_their_rule(tmp_path: Path) -> None:
    project = make_project("p", task_type="rating", overlap=3)
    for key in "ab":
        make_item(project, key)
    said = run(three_raters(tmp_path / "ratings.csv", "a", "b"))
    assert "6 rows: 6 labels imported, 0 unchanged, 0 bad; 3 new raters" in said
    assert set(Slot.objects.values_list("state", flat=True)) == {"filled"}
    held = {one.item.key: one.values for one in Resolution.objects.select_related("item")}
    assert held["a"] == {"naturalness": 3, "relatedness": 3, "correctness": 3}
    assert held["b"] == {"naturalness": 2, "relatedness": 3, "correctness": 2}


def test_raters_are_members_without_an_account_whose_labels_are_counted(tmp_path: Path) -> None:
    project = make_project("p", task_type="rating", overlap=3)
    make_item(project, "a")
    run(three_raters(tmp_path / "ratings.csv", "a"))
    members = Membership.objects.filter(project=project)
    assert [(one.alias, one.account, one.labelled) for one in members] == [
        (f"rater-{number}", None, 1) for number in (1, 2, 3)
    ]
    label = Label.objects.get(member__alias="rater-2")
    assert (label.choice, label.created_at.isoformat()) == ("3/2/3", "2025-03-02T10:00:00+00:00")
    assert (label.informed, label.evaluator_seen, label.guidelines) == (False, False, None)


def test_what_finds_no_place_is_extra_and_counts_once_there_is_one(tmp_path: Path) -> None:
    project = make_project("p", task_type="rating", overlap=2)
    item = make_item(project, "a")
    path = three_raters(tmp_path / "ratings.csv", "a")
    assert (
        "1 labels are extra and do not count. To count them, raise annotators per item to 3"
        in run(path)
    )
    assert Label.objects.get(counted=False).slot is None
    assert "raise annotators per item to 3" in run(path)
    slots.add_slots(item, "label", 1)
    said = run(path)
    assert "0 labels imported, 3 unchanged" in said
    assert "1 labels that were extra now count" in said
    assert "raise annotators per item" not in said
    assert Label.objects.filter(counted=True).count() == 3


def test_a_dry_run_says_the_same_and_stores_nothing(tmp_path: Path) -> None:
    project = make_project("p", task_type="rating", overlap=2)
    make_item(project, "a"), make_item(project, "b")
    said = run(three_raters(tmp_path / "ratings.csv", "a", "b"), dry_run=True)
    assert "6 labels would be imported" in said
    assert "3 new raters" in said
    assert (
        "2 labels are extra and do not count. To count them, raise annotators per item to 3" in said
    )
    assert not Label.objects.exists()
    assert not Membership.objects.exists()
    assert not Event.objects.filter(kind="import-labels").exists()


def test_a_dry_run_knows_what_earlier_batches_would_have_taken(tmp_path: Path) -> None:
    project = make_project("p", task_type="rating", overlap=1)
    keys = [f"item-{number}" for number in range(30)]
    for key in keys:
        make_item(project, key)
    path = rated(
        tmp_path / "ratings.csv",
        *((key, rater, "2025-03-01", 1, 1, 1) for rater in ("one", "two") for key in keys),
    )
    dry = run(path, dry_run=True)
    wet = run(path)
    assert dry == wet.replace("labels imported", "labels would be imported")
    assert "30 labels are extra" in wet


# ----------------------------------------------------------------------- again, and changes


def test_again_is_nothing_new(project: Project, rows: Any) -> None:
    path = rows(VALID | {"comment": "Six.", "seconds": 4})
    assert "1 labels imported" in run(path)
    assert "0 labels imported, 1 unchanged, 0 bad; 0 new raters" in run(path)
    assert Label.objects.count() == 1
    assert Membership.objects.get().labelled == 1


def test_a_later_label_supersedes_and_an_earlier_one_joins_the_history(
    project: Project, rows: Any
) -> None:
    late = VALID | {"choice": "invalid", "time": "2025-03-03"}
    early = VALID | {"choice": "not-relevant", "time": "2025-03-01"}
    said = run(rows(VALID | {"time": "2025-03-02"}, late, early))
    assert "3 labels imported (1 of them superseded by later ones)" in said
    current = Label.objects.get(current=True)
    assert (current.choice, current.counted, current.supersedes.choice) == (
        "invalid",
        True,
        "valid",
    )
    assert Label.objects.get(choice="not-relevant").supersedes is None
    assert Membership.objects.get().labelled == 1
    assert Resolution.objects.get(current=True).value == "invalid"


@pytest.mark.parametrize(
    "written", ["2025-03-01T12:30:00+02:30", "2025-03-01T10:00:00Z", "2025-03-01T10:00:00"]
)
def test_a_time_is_kept_in_utc_whatever_its_zone(project: Project, rows: Any, written: str) -> None:
    run(rows(VALID | {"time": written}))
    assert Label.objects.get().created_at.isoformat() == "2025-03-01T10:00:00+00:00"


def test_the_same_time_with_another_answer_is_a_contradiction(project: Project, rows: Any) -> None:
    said = run(rows(VALID, VALID | {"choice": "invalid"}))
    assert "line 2, time: is also the time of another label by this rater" in said
    assert Label.objects.get().choice == "valid"


def test_another_comment_under_the_same_label_is_said_and_not_dropped(
    project: Project, rows: Any
) -> None:
    run(rows(VALID))
    with pytest.raises(CommandError):
        run(rows(VALID | {"comment": "Six."}))
    assert Label.objects.get().comment == ""


def test_labels_beside_those_of_the_queue_keep_the_rules(project: Project, rows: Any) -> None:
    person = make_member(project)
    say(person, take(person))
    said = run(rows(VALID | {"choice": "invalid"}))
    assert "raise annotators per item to 2" in said
    assert Label.objects.filter(counted=True).get().member == person
    assert Resolution.objects.get(current=True).value == "valid"


def test_a_place_that_a_person_holds_stays_theirs_until_their_time_is_over(
    project: Project, rows: Any
) -> None:
    person = make_member(project)
    now = timezone.now()
    take(person, now=now)
    run(rows(VALID))
    assert not Label.objects.get().counted
    Slot.objects.update(held_until=now - timedelta(seconds=1))
    assert "1 labels that were extra now count" in run(rows(VALID))
    assert Slot.objects.get().member == Membership.objects.get(alias="one")


def test_a_place_that_is_kept_for_somebody_is_not_taken(project: Project, rows: Any) -> None:
    Slot.objects.update(reserved_for=make_member(project))
    run(rows(VALID))
    assert not Label.objects.get().counted


@pytest.mark.parametrize("newest_first", [False, True])
def test_a_label_that_was_replaced_later_had_counted_in_whatever_order_both_come(
    project: Project, rows: Any, newest_first: bool
) -> None:
    first = VALID | {"informed": "no"}
    later = VALID | {"time": "2025-03-02T10:00:00Z", "choice": "invalid", "informed": "yes"}
    run(rows(*([later, first] if newest_first else [first, later])))
    found = Label.objects.oldest_first().values_list("choice", "current", "counted")
    assert list(found) == [("valid", False, True), ("invalid", True, True)]
    # Agreement is about what people said before they saw the labels of others.
    [said] = agreement_answers.load_label_answers(project)
    assert said.answers["choice"] == "valid"


def test_a_label_of_older_texts_is_history_that_does_not_count(project: Project, rows: Any) -> None:
    item = Item.objects.get()
    make_revision(item, {"prompt": "?", "gold": "8", "perturbed": "7"})
    run(rows(VALID | {"revision": 1}, VALID | {"rater": "two"}))
    old, new = Label.objects.order_by("member__alias").select_related("revision")
    assert (old.revision.number, old.counted, new.revision.number, new.counted) == (
        1,
        False,
        2,
        True,
    )


def test_seconds_comment_informed_and_what_evaluators_had_said_are_kept(
    project: Project, rows: Any
) -> None:
    Item.objects.update(first_reply_at="2025-01-01T00:00Z")
    run(rows(VALID | {"seconds": 12.5, "comment": " Six.\n", "informed": "yes", "stage": "label"}))
    label = Label.objects.get()
    assert (label.seconds, label.comment, label.informed) == (12.5, " Six.\n", True)
    assert label.evaluator_seen


def test_a_file_from_before_the_stage_had_its_word_is_read(project: Project, rows: Any) -> None:
    run(rows(VALID | {"stage": "work"}))
    run(rows(VALID | {"stage": "label"}))
    assert Label.objects.get().stage == "label"


def test_the_import_is_on_record(project: Project, rows: Any) -> None:
    run(rows(VALID))
    data = Event.objects.get(kind="import-labels").data
    assert (data["new"], data["raters"], data["bad"]) == (1, 1, 0)


# ------------------------------------------------------------------------------- not sure


def unsure(why: str, **values: Any) -> dict[str, Any]:
    return VALID | {"choice": "not-sure", "reason": why} | values


def waiting() -> list[tuple[str, str, str]]:
    """Where items wait for a decision: key, reason and state."""
    slots = Slot.objects.filter(stage="adjudicate").order_by("item__key", "pk")
    return list(slots.values_list("item__key", "reason", "state"))


def test_an_item_goes_to_whom_a_label_that_is_not_sure_sends_it(
    project: Project, rows: Any
) -> None:
    make_item(project, "b")
    path = rows(unsure("needs-expert"), unsure("gold-wrong", item="b"))
    run(path, dry_run=True)
    assert waiting() == []
    run(path), run(path)
    assert waiting() == [("a", "expert", "open"), ("b", "gold-error", "open")]


def test_an_item_that_is_taken_out_still_counts_what_others_said_further_down_the_file(
    project: Project, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labels, "BATCH", 1)
    slots.add_slots(Item.objects.get(), "label", 2)
    run(rows(unsure("question-unclear"), VALID | {"rater": "two"}))
    [held] = Resolution.objects.current()
    assert (held.value, held.rule) == ("not-sure", "excluded")
    assert Label.objects.counted().count() == 2
    assert sorted(Slot.objects.values_list("state", flat=True)) == ["closed", "filled", "filled"]


def test_a_later_label_that_is_sure_takes_the_item_back(project: Project, rows: Any) -> None:
    run(rows(unsure("needs-expert")))
    run(rows(VALID | {"time": "2025-03-02"}))
    assert waiting() == [("a", "expert", "closed")]
    assert Resolution.objects.current().get().value == "valid"


def test_an_import_that_was_cut_short_is_made_up_for_by_the_next(
    project: Project, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(labels, "_apply_effects", lambda *sent: None)
        run(rows(unsure("needs-expert")))
    assert waiting() == []
    run(rows(unsure("needs-expert")))
    assert waiting() == [("a", "expert", "open")]


# ------------------------------------------------------------------------------ bad rows


@pytest.mark.parametrize("bad", [20, 21])
def test_of_many_bad_rows_the_first_twenty_are_named(project: Project, rows: Any, bad: int) -> None:
    path = rows(*({**VALID, "rater": f"r{number}", "time": "soon"} for number in range(bad)))
    said = io.StringIO()
    with pytest.raises(CommandError):
        call_command("import_labels", str(path), project="p", stdout=said, stderr=said)
    assert said.getvalue().count("time: is 'soon'") == 20
    assert ("and 1 more;" in said.getvalue()) == (bad == 21)
    assert "and 0 more" not in said.getvalue()


BAD = [
    ({"item": "b"}, "item: is not an item of this project"),
    ({"item": ""}, "item: is empty or missing"),
    ({"rater": " "}, "rater: is empty or missing"),
    ({"rater": "x" * 81}, "rater: is longer than 80 characters"),
    ({"rater": "a\u200bb"}, "rater: contains control characters"),
    ({"time": "soon"}, "time: is 'soon'; write it as"),
    ({"time": "2999-01-01"}, "time: is '2999-01-01', which is in the future"),
    ({"choice": "maybe"}, "choice: Your choice: choose one of valid, invalid"),
    ({"choice": "not-sure"}, "reason: Why are you not sure?: choose one of"),
    ({"choice": None}, "choice: Your choice: choose one of"),
    ({"stage": "verify"}, "stage: is 'verify'; only labels of stage label"),
    ({"seconds": -1}, "seconds: is -1; write a number"),
    ({"seconds": "nan"}, "seconds: is 'nan'; write a number"),
    ({"revision": 0}, "revision: is 0; revisions are numbered from 1"),
    ({"revision": 7}, "revision: 7 is not a revision of the item"),
    ({"revision": "two"}, "revision: is 'two'; write the number"),
    ({"informed": "perhaps"}, "informed: is 'perhaps'; write yes or no"),
    ({"comment": 7}, "comment: is not text"),
    ({"chioce": "valid"}, "chioce: is not a known column; use item, rater"),
]


@pytest.mark.parametrize("change, reason", BAD, ids=[reason for _, reason in BAD])
def test_a_bad_row_is_named_with_its_field_and_its_neighbours_are_imported(
    project: Project, rows: Any, tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    make_item(project, "good")
    errors = tmp_path / "errors.csv"
    said = run(rows(VALID | {"item": "good"}, VALID | change), errors=errors)
    assert f"bad: labels.jsonl, line 2, {reason}" in said
    assert Label.objects.get().item.key == "good"
    [row] = csv.DictReader(errors.open())
    assert (row["line"], row["field"]) == ("2", reason.partition(":")[0])


@pytest.mark.parametrize(
    "values, reason",
    [
        ({"deleted_at": "2025-01-01T00:00Z"}, "was removed"),
        ({"purpose": "probe"}, "labels for it cannot be imported"),
    ],
)
def test_items_that_get_no_work_get_no_labels(
    project: Project, rows: Any, values: dict[str, Any], reason: str
) -> None:
    make_item(project, "b", slots=0, **values)
    assert reason in run(rows(VALID, VALID | {"item": "b"}))


def test_an_item_that_repeats_another_sends_its_labels_there(project: Project, rows: Any) -> None:
    make_item(project, "b", slots=0, duplicate_of=Item.objects.get(key="a"))
    assert "is a duplicate" in run(rows(VALID, VALID | {"item": "b"}))


def test_nobody_with_an_account_is_given_labels_unless_asked_for(
    project: Project, rows: Any
) -> None:
    person = make_member(project, alias="one")
    with pytest.raises(CommandError, match="No valid rows"):
        run(rows(VALID))
    run(rows(VALID), as_members=True)
    assert Label.objects.get().member == person
    person.refresh_from_db()
    assert person.labelled == 1


def test_columns_of_no_concern_are_left_out_by_name(project: Project, rows: Any) -> None:
    assert "1 labels imported" in run(rows(VALID | {"shift": "early"}), ignore="shift")


def test_a_cell_may_hold_several_values_and_a_column_the_name_of_an_export(
    tmp_path: Path,
) -> None:
    make_item(make_project("p", task_type="error-detection"), "a")
    path = tmp_path / "labels.csv"
    path.write_text(
        "item,rater,time,verdict,answers.error_type,explanation\n"
        "a,one,2025-03-01,error,reasoning-correctness; instruction-following,2.5 is no whole\n"
    )
    run(path)
    assert Label.objects.get().answers == {
        "verdict": "error",
        "error_type": ["reasoning-correctness", "instruction-following"],
        "explanation": "2.5 is no whole",
    }


def test_an_error_without_a_kind_says_which_line_lacks_it_and_what_may_stand_in_for_it(
    rows: Any,
) -> None:
    make_item(make_project("p", task_type="error-detection"), "a")
    said = {"item": "a", "time": "2025-03-01", "verdict": "error", "explanation": "2.5 is no whole"}
    words = run(rows(said | {"rater": "one", "other_type": "cut off"}, said | {"rater": "two"}))
    assert "line 2, error_type: Which error categories?: choose one or more of" in words
    assert "Or write it in “Another error category” (column other_type)." in words
    wrong = {"rater": "three", "error_type": ["typo"]}
    words = run(rows(said | {"rater": "one", "other_type": "cut off"}, said | wrong))
    assert "error_type" in words
    assert "other_type" not in words


@pytest.mark.parametrize(
    "text, reason",
    [
        ("item,rater,choice\na,one,valid\n", "missing columns: time"),
        ("", "empty"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_whole(
    project: Project, tmp_path: Path, text: str, reason: str
) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(text)
    with pytest.raises(CommandError, match=reason) as caught:
        run(path)
    assert caught.value.returncode == 2


def test_a_project_that_is_not_there_is_named(rows: Any) -> None:
    with pytest.raises(CommandError, match="no project 'p'"):
        run(rows(VALID))


# ------------------------------------------------------------------------------ off the scale


def off(number: Any) -> dict[str, Any]:
    return {"cause": "off_scale", "said": number}


def test_a_number_off_its_scale_is_missing_and_the_rest_of_the_row_is_a_label(
    tmp_path: Path,
) -> None:
    make_item(make_project("p", task_type="rating", overlap=1), "a")
    path = rated(tmp_path / "ratings.csv", ("a", "one", "2025-03-01", 3, 9, 2))
    said = run(path)
    assert "missing: ratings.csv, row 2, relatedness: 9 is outside the scale" in said
    assert "1 rows: 1 labels imported, 0 unchanged, 0 bad" in said
    assert "1 numbers are outside their scale and count as missing." in said
    label = Label.objects.get()
    assert (label.answers, label.choice) == ({"naturalness": 3, "correctness": 2}, "3/-/2")
    assert label.missing == {"relatedness": off(9)}
    held = Resolution.objects.get()
    assert (held.values, held.value) == (label.answers, "3/-/2")
    assert "0 labels imported, 1 unchanged" in run(path)
    rated(path, ("a", "one", "2025-03-01", 3, 9, 2), ("a", "one", "2025-03-01", 3, 8, 2))
    assert "row 3, time: is also the time of another label" in run(path)


@pytest.mark.parametrize("number", ["0", "2.5", "-1", "1e3"])
def test_what_is_on_no_step_of_the_scale_is_off_it(tmp_path: Path, number: str) -> None:
    make_item(make_project("p", task_type="rating", overlap=1), "a")
    run(rated(tmp_path / "ratings.csv", ("a", "one", "2025-03-01", number, 3, 2)))
    assert Label.objects.get().missing == {"naturalness": off(float(number))}


@pytest.mark.parametrize(
    "numbers, field", [((9, 9, 9), "naturalness"), ((3, "four", 2), "relatedness")]
)
def test_a_row_without_any_number_or_with_words_for_one_is_bad(
    tmp_path: Path, numbers: tuple[Any, ...], field: str
) -> None:
    make_item(make_project("p", task_type="rating", overlap=1), "a")
    path = rated(tmp_path / "ratings.csv", ("a", "one", "2025-03-01", *numbers))
    with pytest.raises(CommandError, match="No valid rows"):
        run(path)
    assert not Label.objects.exists()


def test_points_without_one_of_them_have_no_total_and_the_others_are_held_true(rows: Any) -> None:
    make_item(make_project("p", task_type="rubric-scoring"), "a")
    said = {"m1": 2, "m2": 0, "m3": 0, "m4": 0, "m5": 7}
    run(rows({"item": "a", "rater": "one", "time": "2025-03-01", **said}))
    label, held = Label.objects.get(), Resolution.objects.get()
    assert (label.choice, label.missing) == ("-", {"m5": off(7)})
    assert (held.value, held.values) == ("-", {"m1": 2, "m2": 0, "m3": 0, "m4": 0})


def test_where_what_decides_is_missing_an_adjudicator_decides(tmp_path: Path) -> None:
    make_item(make_project("p", task_type="rating", overlap=1), "a")
    run(rated(tmp_path / "ratings.csv", ("a", "one", "2025-03-01", 3, 3, 4)))
    assert not Resolution.objects.exists()
    assert waiting() == [("a", "disputed", "open")]


def test_of_three_raters_the_others_are_the_majority_of_all(tmp_path: Path) -> None:
    make_item(make_project("p", task_type="rating", overlap=3), "a")
    numbers = [(3, 3, 3), (3, 3, 3), (3, 4, 3)]
    path = rated(
        tmp_path / "ratings.csv",
        *(("a", f"rater-{n}", "2025-03-01", *said) for n, said in enumerate(numbers)),
    )
    run(path)
    assert Resolution.objects.get().values == dict.fromkeys(RATINGS[3:], 3)
    assert Label.objects.filter(counted=True).count() == 3
