import csv
import zipfile
from collections import Counter

import pytest

from formats.fbi import COLUMNS, FILES
from formats.readers import FORMATS
from formats.rows import BadRow, FormatError

read_fbi = FORMATS["fbi"].read

# Rows a file, as the study's table 1 and the published archive have them.
COUNTS = {
    "long-form": {
        "coherence": 91, "comprehensiveness": 90, "consistency": 84, "grammar": 92,
        "spelling": 100, "chronology": 71, "formatting": 31, "superficial": 61,
    },
    "factual": {
        "contextual": 94, "entity": 87, "incorrect-fact": 68, "number-errors": 74,
        "opposite-fact": 91, "remove-fact": 69,
    },
    "instruction-following": {
        "assumptions": 81, "do-less": 100, "do-more": 50, "ignore-format": 99,
        "sequence-errors": 49,
    },
    "reasoning": {
        "calculations": 149, "copying-numbers": 83, "final-errors": 97, "incorrect-units": 77,
        "wrong-formula": 88,
    },
}  # fmt: skip


def write(folder, name, rows, columns=COLUMNS):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, columns, delimiter="\t", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def row(cdx, gold="gold", perturbed="perturbed", question=" Why? "):
    return {"cdx": cdx, "question": question, "og": gold, "perturbed_gpt4": perturbed}


def test_an_item_has_all_that_the_file_tells(tmp_path):
    write(tmp_path, "data/factual/number-errors.tsv", [row("factual-10_number-errors")])
    (item,) = read_fbi(tmp_path)
    assert (item.file, item.line) == ("data/factual/number-errors.tsv", 2)
    assert item.values == {
        "key": "factual/number-errors:factual-10_number-errors",
        "category": "number-errors",
        "source_ability": "factual",
        "origin": "generated",
        "cluster": "Why?",
        "prompt": " Why? ",
        "gold": "gold",
        "perturbed": "perturbed",
        "repeats": "",
    }


def test_columns_come_in_any_order(tmp_path):
    write(tmp_path, "wrong-formula.tsv", [row("reasoning-1_wrong-formula")], COLUMNS[::-1])
    (item,) = read_fbi(tmp_path)
    assert item.values["key"] == "reasoning/wrong-formula:reasoning-1_wrong-formula"
    assert (item.values["gold"], item.values["perturbed"]) == ("gold", "perturbed")


def test_the_id_tells_ability_and_origin_of_a_score_invariant_item(tmp_path):
    ids = ["lf-60_superficial-errors", "if-98", "reasoning-94_operation-order"]
    write(tmp_path, "score-invariant/score_invariant.tsv", [row(cdx) for cdx in ids])
    found = [(item.values["source_ability"], item.values["origin"]) for item in read_fbi(tmp_path)]
    assert found == [
        ("long-form", "relabelled"),
        ("instruction-following", "paraphrase"),
        ("reasoning", "relabelled"),
    ]


def test_only_word_for_word_repeats_point_at_the_score_invariant_row(tmp_path):
    ids = ["lf-1_formatting-errors", "lf-2_formatting-errors"]
    write(tmp_path, "a-long-form/formatting-errors.tsv", [row(cdx) for cdx in ids])
    write(tmp_path, "z/score_invariant.tsv", [row(ids[0]), row(ids[1], perturbed="other")])
    write(tmp_path, "factual/remove-fact.tsv", [row("factual-1_remove-fact")])
    items = {item.values["key"]: item.values["repeats"] for item in read_fbi(tmp_path)}
    assert items == {
        "score-invariant/score_invariant:lf-1_formatting-errors": "",
        "score-invariant/score_invariant:lf-2_formatting-errors": "",
        "long-form/formatting-errors:lf-1_formatting-errors": (
            "score-invariant/score_invariant:lf-1_formatting-errors"
        ),
        "long-form/formatting-errors:lf-2_formatting-errors": "",
        "factual/remove-fact:factual-1_remove-fact": "",
    }


@pytest.mark.parametrize(
    "faulty, field, reason",
    [
        (row("lf-1", gold=" "), "og", "is empty"),
        (row("lf-1", question=""), "question", "is empty"),
        (row("x-1_y"), "cdx", "'x-1_y' is not an id of the study"),
        (row("lf-1", perturbed="\0"), "perturbed_gpt4", "NUL"),
    ],
)
def test_a_row_that_cannot_be_an_item_is_reported(tmp_path, faulty, field, reason):
    write(tmp_path, "grammar-errors.tsv", [row("lf-1"), faulty, row("lf-2")])
    first, bad, last = read_fbi(tmp_path)
    assert isinstance(bad, BadRow)
    assert (bad.line, bad.field) == (3, field)
    assert reason in bad.reason
    assert (first.line, last.line) == (2, 4)


def test_a_file_that_the_study_does_not_have_is_refused(tmp_path):
    write(tmp_path, "long-form/grammar-errors.tsv", [row("lf-1")])
    write(tmp_path, "long-form/humour-errors.tsv", [row("lf-1")])
    with pytest.raises(FormatError, match=r"humour-errors.tsv is not a file .*grammar-errors\.tsv"):
        read_fbi(tmp_path)


def test_a_category_in_two_files_is_refused(tmp_path):
    write(tmp_path, "a/grammar-errors.tsv", [row("lf-1")])
    write(tmp_path, "b/grammar-errors.tsv", [row("lf-1")])
    with pytest.raises(FormatError, match="Keep only one"):
        read_fbi(tmp_path)


def test_wrong_columns_are_named_with_those_found(tmp_path):
    write(tmp_path, "grammar-errors.tsv", [row("lf-1")], ("cdx", "question", "gold", "og"))
    with pytest.raises(FormatError, match="missing: perturbed_gpt4; found: cdx, question, gold"):
        read_fbi(tmp_path)


def test_a_folder_without_tables_is_refused(tmp_path):
    (tmp_path / "README.md").write_text("nothing")
    with pytest.raises(FormatError, match="contains no TSV files"):
        read_fbi(tmp_path)


def test_the_table_reads_score_invariant_rows_before_those_that_repeat_them():
    assert list(FILES)[:3] == ["score_invariant", "formatting-errors", "superficial-errors"]
    assert len({source.category for source in FILES.values()}) == len(FILES) == 25


def test_the_published_archive_has_the_published_counts(shared_data):
    items = list(FORMATS["fbi"].read(shared_data / "fbi" / "data.zip"))
    found = Counter((item.values["source_ability"], item.values["category"]) for item in items)
    invariant = {key[0]: found.pop(key) for key in list(found) if key[1] == "score-invariant"}
    assert invariant == {
        "long-form": 282, "factual": 108, "reasoning": 72, "instruction-following": 54,
    }  # fmt: skip
    assert found == {
        (ability, category): count
        for ability, counts in COUNTS.items()
        for category, count in counts.items()
    }


def test_published_keys_are_unique_and_the_repeats_are_all_found(shared_data):
    items = [item.values for item in read_fbi(shared_data / "fbi" / "data.zip")]
    repeats = [item for item in items if item["repeats"]]
    assert len({item["key"] for item in items}) == len(items) == 2492
    assert Counter(item["category"] for item in repeats) == {"formatting": 31, "superficial": 61}
    assert len({item["cluster"] for item in items if not item["repeats"]}) == 667


def test_the_unpacked_folder_gives_the_same_items(shared_data, tmp_path):
    path = shared_data / "fbi" / "data.zip"
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path)
    zipped = [item.values for item in read_fbi(path)]
    assert [item.values for item in read_fbi(tmp_path)] == zipped
    assert [item.values for item in read_fbi(tmp_path / "data")] == zipped
