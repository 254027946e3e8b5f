"""What commands say of the files that they read and write, and of rows that cannot be used."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management.base import CommandError, OutputWrapper

from annotation.management import files
from formats.rows import BadRow, FormatError, Row


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def reported(number: int, file: StringIO | None = None) -> list[str]:
    said = StringIO()
    rows = [("ignored", BadRow("a.csv", line, "gold", "is empty.")) for line in range(number)]
    files.report_problems(rows, OutputWrapper(said), file)
    return said.getvalue().splitlines()


def progress(number: int, terminal: StringIO) -> str:
    assert [*files.show_progress(range(number), OutputWrapper(terminal))] == [*range(number)]
    return terminal.getvalue()


def refusal(path: Path, form: str = "csv") -> str:
    with pytest.raises(CommandError) as caught:
        files.check_mend_path(path, form)
    assert caught.value.returncode == 2
    return str(caught.value)


def test_twenty_problems_are_shown_and_of_more_the_number() -> None:
    assert reported(1) == ["ignored: a.csv, line 0, gold: is empty."]
    assert len(reported(20)) == 20
    assert reported(21)[20:] == ["... and 1 more; use --errors FILE to list all."]
    assert reported(1021)[20:] == ["... and 1,001 more; use --errors FILE to list all."]


def test_a_file_lists_all_problems(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    with files.open_error_file(path) as file:
        assert file is not None
        said = StringIO()
        rows = [("ignored", BadRow("a.csv", line, "", "is empty.")) for line in range(21)]
        files.report_problems(rows, OutputWrapper(said), file)
    assert said.getvalue().splitlines()[20] == f"... and 1 more; {path} lists all."
    assert said.getvalue().startswith("ignored: a.csv, line 0: is empty.")
    written = path.read_text().splitlines()
    assert (len(written), written[1]) == (22, "ignored,a.csv,0,,is empty.,0,")


def test_a_file_for_problems_must_be_writable(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be written"), files.open_error_file(tmp_path):
        pass
    with files.open_error_file(None) as file:
        assert file is None


def test_every_hundredth_row_shows_on_a_terminal_and_none_elsewhere() -> None:
    assert progress(99, Terminal()) == "\r"
    assert progress(100, Terminal()) == "\r100 rows\r"
    assert progress(1000, Terminal()).endswith("\r900 rows\r1,000 rows\r")
    assert progress(100, StringIO()) == ""


def test_rows_to_mend_go_to_a_new_file_in_a_folder_that_is_there(tmp_path: Path) -> None:
    files.check_mend_path(tmp_path / "new.csv", "csv")
    files.check_mend_path(None, "parquet")
    (tmp_path / "old.csv").touch()
    assert "already exists" in refusal(tmp_path / "old.csv")
    assert "no such folder" in refusal(tmp_path / "none" / "new.csv")
    assert "--mend works with" in refusal(tmp_path / "new.csv", "parquet")


def test_lines_are_written_as_they_are(tmp_path: Path) -> None:
    files.write_lines(tmp_path / "mend.csv", ["a\r\n", "b\n"])
    assert (tmp_path / "mend.csv").read_bytes() == b"a\r\nb\n"
    with pytest.raises(CommandError, match="cannot be written"):
        files.write_lines(tmp_path, [])


def test_a_format_is_named_or_told_by_the_suffix() -> None:
    assert files.detect_format(Path("a.CSV"), None) == "csv"
    assert files.detect_format(Path("a.parquet"), None) == "parquet"
    assert files.detect_format(Path("a.csv"), "jsonl") == "jsonl"
    with pytest.raises(CommandError, match=r"a\.odt: unknown suffix\. Add --format"):
        files.detect_format(Path("a.odt"), None)


def test_the_first_good_row_says_which_columns_are_missing() -> None:
    bad = BadRow("a.csv", 2, "gold", "is empty.")
    good = [Row("a.csv", number, {"key": "a", "gold": "b"}) for number in (3, 4)]
    found = files.require_columns(iter([bad, *good]), lambda found: ("key", "gold"))
    assert [*found] == [bad, *good]
    with pytest.raises(FormatError, match=r"missing columns: text; found: key, gold\. Req.* Why\?"):
        files.require_columns(iter([bad, *good]), lambda _: ("key", "text"), lambda _: " Why?")
    # Where no row is good there is nothing to tell.
    assert [*files.require_columns(iter([bad]), lambda found: ("key",))] == [bad]
