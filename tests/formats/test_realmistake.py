import json

import pytest

from formats import realmistake
from formats.rows import BadRow, FormatError, Limits

LIMITS = Limits()
METADATA = {
    "id": "math_problem_generation_1_m",
    "task_name": "math_problem_generation",
    "task_source": "made-up",
    "llm_response_model": "org/m",
}
ITEM = {
    "input": "Write a sum.",
    "llm_response": "1 + 1 = 3",
    "error_label": "error",
    "human_explanation": "It is 2.",
    "error_categories": ["Reasoning Correctness"],
    "metadata": METADATA,
}
SAID = {"response": "It contains an error.", "prediction": "error", "metadata": METADATA}
PLACE = "kind/math_word_problem_generation/m/detector-1.5"


def written(folder, name, *lines):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def values(rows):
    return [row.values for row in rows]


def test_an_item_has_its_labels_by_our_names_and_the_rest_of_its_metadata(tmp_path):
    path = written(tmp_path, "m.jsonl", ITEM)
    assert values(realmistake.read_items(path, LIMITS)) == [
        {
            "key": "math_problem_generation_1_m",
            "input": "Write a sum.",
            "response": "1 + 1 = 3",
            "verdict": "error",
            "error_type": ["reasoning-correctness"],
            "explanation": "It is 2.",
            "task": "math_word_problem_generation",
            "response_model": "org/m",
            "task_name": "math_problem_generation",
            "task_source": "made-up",
        }
    ]


def test_examples_that_repeat_items_of_the_sets_are_left_out(tmp_path):
    written(tmp_path, "data/example.jsonl", ITEM)
    written(tmp_path, "data/math_word_problem_generation/m.jsonl", ITEM)
    assert len(list(realmistake.read_items(tmp_path / "data", LIMITS))) == 1


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"error_label": "maybe"}, "error_label"),
        ({"error_label": None}, "error_label"),
        ({"error_categories": ["Typos"]}, "error_categories"),
        ({"error_categories": "Typos"}, "error_categories"),
        ({"metadata": {}}, "metadata"),
    ],
)
def test_an_item_that_is_not_as_published_is_a_bad_row(tmp_path, wrong, field):
    path = written(tmp_path, "m.jsonl", ITEM, ITEM | wrong)
    good, bad = realmistake.read_items(path, LIMITS)
    assert isinstance(bad, BadRow)
    assert (good.line, bad.line, bad.field) == (1, 2, field)


def test_a_reply_says_who_gave_it_and_how_it_was_asked(tmp_path):
    written(tmp_path, f"{PLACE}/prompt_1.jsonl", SAID, SAID | {"prediction": None})
    first, second = values(realmistake.read_outputs(tmp_path, LIMITS))
    assert first == {
        "item": "math_problem_generation_1_m",
        "endpoint": "detector-1.5",
        "prompt": "kind/prompt_1",
        "sample": 0,
        "text": "It contains an error.",
        "value": "error",
    }
    assert second["value"] is None


def test_one_file_and_a_folder_inside_say_the_same_as_the_whole(tmp_path):
    path = written(tmp_path, f"{PLACE}/prompt_1.jsonl", SAID)
    whole = values(realmistake.read_outputs(tmp_path, LIMITS))
    assert values(realmistake.read_outputs(path, LIMITS)) == whole
    assert values(realmistake.read_outputs(path.parent, LIMITS)) == whole


def test_samples_have_a_row_each_and_keep_what_was_decided_of_them(tmp_path):
    samples = {
        "response": [{"prompt": "...", "response": "one"}, {"prompt": "...", "response": "two"}],
        "predictions_list": ["error", None],
        "prediction": "error",
        "metadata": METADATA,
    }
    path = written(tmp_path, "s.jsonl", samples)
    found = values(realmistake.read_outputs(path, LIMITS))
    kept = [(row["sample"], row["text"], row["value"], row["decided"]) for row in found]
    assert kept == [(0, "one", "error", "error"), (1, "two", None, "error")]


def test_folded_replies_have_only_what_was_decided(tmp_path):
    folded = {"prediction": "no_error", "votes_count": {"error": 6}, "metadata": METADATA}
    path = written(tmp_path, f"{PLACE}/majority_vote.jsonl", folded)
    (row,) = values(realmistake.read_outputs(path, LIMITS))
    assert row["decided"] == "no_error"
    assert "text" not in row


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"prediction": "perhaps"}, "prediction"),
        ({"response": 3}, "response"),
        ({"predictions_list": ["error"]}, "predictions_list"),
        ({"response": ["a"], "predictions_list": ["x"]}, "predictions_list"),
        ({"metadata": {"id": 3}}, "metadata"),
    ],
)
def test_a_reply_that_is_not_as_published_is_a_bad_row(tmp_path, wrong, field):
    path = written(tmp_path, "m.jsonl", SAID | wrong)
    (bad,) = realmistake.read_outputs(path, LIMITS)
    assert isinstance(bad, BadRow)
    assert bad.field == field


def test_a_folder_without_jsonl_files_is_refused(tmp_path):
    (tmp_path / "readme.txt").write_text("x")
    with pytest.raises(FormatError, match="contains no JSONL files"):
        list(realmistake.read_items(tmp_path, LIMITS))


def test_the_published_archive_holds_900_items_in_six_sets(shared_data):
    archive = shared_data / "realmistake" / "data.zip"
    rows = values(realmistake.read_items(archive, LIMITS, "open-realmistake"))
    sets = {(row["task"], row["response_model"]) for row in rows}
    assert (len(rows), len({row["key"] for row in rows}), len(sets)) == (900, 900, 6)


@pytest.mark.parametrize(
    ("password", "said"), [("", "--password"), ("no", "the password is wrong")]
)
def test_the_published_archive_wants_its_password(shared_data, password, said):
    archive = shared_data / "realmistake" / "data.zip"
    with pytest.raises(FormatError, match=said):
        list(realmistake.read_items(archive, LIMITS, password))


def test_items_and_outputs_that_are_taken_for_each_other_are_told_apart(tmp_path):
    (fault,) = realmistake.read_outputs(written(tmp_path, "items.jsonl", ITEM), LIMITS)
    assert fault.field == "prediction"
    assert "Import items with import_items" in fault.reason
    (fault,) = realmistake.read_items(written(tmp_path, "outputs.jsonl", SAID), LIMITS)
    assert "verdicts of detectors with import_replies" in fault.reason
