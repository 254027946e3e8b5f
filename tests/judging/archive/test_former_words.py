"""Archives that were made before a word was renamed."""

from judging.archive import former_words


def test_a_renamed_column_of_an_older_archive_has_today_s_name() -> None:
    said = {"columns": ["run", "top2", "low"], "rows": [{"run": 1, "top2": 3, "low": 9}]}
    assert former_words.update_figures("scores", said) == {
        "columns": ["run", "top2", "below_top2"],
        "rows": [{"run": 1, "top2": 3, "below_top2": 9}],
    }
    assert former_words.update_figures("undetected", said) == said
