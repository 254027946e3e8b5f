import io
import stat
import struct
import tracemalloc
import zipfile
from collections import deque
from contextlib import suppress
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.archives import open_archive
from formats.rows import FormatError, Limits

LIMITS = Limits()


def packed(tmp_path, members, method=zipfile.ZIP_DEFLATED):
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def contents(path, limits=LIMITS):
    with open_archive(path, limits) as files:
        return {name: open_file().read() for name, open_file in files.items()}


def test_a_zip_and_its_folder_hold_the_same(tmp_path):
    members = [("a/x.tsv", b"x"), ("b/y.tsv", b""), ("z.txt", b"z" * 1_000)]
    for name, content in members:
        path = tmp_path / "folder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    assert contents(packed(tmp_path, members)) == contents(tmp_path / "folder") == dict(members)


@pytest.mark.parametrize("name", [".DS_Store", "a/.DS_Store", "__MACOSX/a/._x.tsv", "a/._x.tsv"])
def test_what_desktops_leave_behind_is_left_out(tmp_path, name):
    assert list(contents(packed(tmp_path, [(name, b"junk"), ("x.tsv", b"x")]))) == ["x.tsv"]


@pytest.mark.parametrize(
    "name", ["../x.tsv", "a/../../x.tsv", "/etc/x.tsv", "C:/x.tsv", "c:x.tsv", "..\\x", "\\\\h\\x"]
)
def test_members_that_climb_out_are_refused(tmp_path, name):
    with pytest.raises(FormatError, match="lies outside the archive's folder"):
        contents(packed(tmp_path, [("x.tsv", b"x"), (name, b"x")]))


def test_two_dots_inside_a_name_do_not_climb(tmp_path):
    assert list(contents(packed(tmp_path, [("a..b/x..tsv", b"x")]))) == ["a..b/x..tsv"]


def test_links_in_a_zip_are_refused(tmp_path):
    link = zipfile.ZipInfo("x.tsv")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(FormatError, match=r"x\.tsv is a link"):
        contents(packed(tmp_path, [(link, b"/etc/passwd")]))


@pytest.mark.parametrize("target", ["/etc", "/etc/hostname"])
def test_links_in_a_folder_are_refused(tmp_path, target):
    (tmp_path / "x.tsv").symlink_to(target)
    with pytest.raises(FormatError, match=r"x\.tsv is a link"):
        contents(tmp_path)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_unpack_in_large_blocks_are_refused(tmp_path, method):
    with pytest.raises(FormatError, match="uses an unusual compression"):
        contents(packed(tmp_path, [("x.tsv", b"x" * 1000)], method))


def test_an_encrypted_member_is_refused(tmp_path):
    path = packed(tmp_path, [("x.tsv", b"x")])
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"PK\1\2") + 8] |= 1
    path.write_bytes(raw)
    with pytest.raises(FormatError, match="is encrypted"):
        contents(path)


def test_a_zip_that_unpacks_to_more_than_the_total_is_refused(tmp_path):
    path = packed(tmp_path, [("x.tsv", bytes(600)), ("y.tsv", bytes(600))], zipfile.ZIP_STORED)
    assert len(contents(path, Limits(total_bytes=1200))) == 2
    with pytest.raises(FormatError, match="unpacks to more than 1,199 bytes"):
        contents(path, Limits(total_bytes=1199))


def test_a_zip_that_unpacks_to_too_many_times_its_size_is_refused(tmp_path):
    path = packed(tmp_path, [("x.tsv", bytes(1_000_000))])
    most = 50 * path.stat().st_size
    with pytest.raises(FormatError, match=f"unpacks to more than {most:,} bytes"):
        contents(path, Limits(ratio=50, small_bytes=0))
    assert contents(path, Limits(ratio=50, small_bytes=1_000_000))


def test_a_bomb_is_given_up_long_before_it_has_unpacked(tmp_path):
    path = packed(tmp_path, [("x.tsv", bytes(20_000_000))])
    tracemalloc.start()
    try:
        with open_archive(path, Limits(total_bytes=1_000_000, ratio=10_000)) as files:
            stream = files["x.tsv"]()
            with pytest.raises(FormatError, match="1,000,000 bytes"):
                deque(iter(partial(stream.read, 4096), b""), maxlen=0)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_a_member_larger_than_its_directory_claims_is_refused(tmp_path):
    path = packed(tmp_path, [("x.tsv", b"x" * 5000)])
    raw = bytearray(path.read_bytes())
    struct.pack_into("<I", raw, raw.index(b"PK\1\2") + 24, 10)
    path.write_bytes(raw)
    with pytest.raises(FormatError, match=r"x\.tsv: is damaged"):
        contents(path)


def test_too_many_files_are_refused(tmp_path):
    path = packed(tmp_path, [(f"{number}.tsv", b"x") for number in range(4)])
    with pytest.raises(FormatError, match="more than 3 files"):
        contents(path, Limits(files=3))


def test_a_name_given_twice_is_refused(tmp_path):
    with pytest.warns(UserWarning, match="Duplicate"):
        path = packed(tmp_path, [("x.tsv", b"1"), ("x.tsv", b"2")])
    with pytest.raises(FormatError, match=r"contains x\.tsv twice"):
        contents(path)


@pytest.mark.parametrize(
    "content, message",
    [(None, "no such file or folder"), (b"", "is empty"), (b"key\tgold\n", "not a zip archive")],
)
def test_what_is_neither_zip_nor_folder_is_refused(tmp_path, content, message):
    path = tmp_path / "data.zip"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(FormatError, match=rf"data\.zip: .*{message}"):
        contents(path)


def whole_zip():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/x.tsv", b"some text " * 20)
        archive.writestr("y.tsv", b"more")
    return stream.getvalue()


@given(st.lists(st.tuples(st.integers(0, len(whole_zip()) - 1), st.integers(0, 255)), max_size=4))
def test_any_damage_is_either_harmless_or_a_format_error(tmp_path_factory, changes):
    raw = bytearray(whole_zip())
    for place, byte in changes:
        raw[place] = byte
    path = tmp_path_factory.mktemp("zip") / "data.zip"
    path.write_bytes(raw)
    with suppress(FormatError):
        contents(path)
