"""How texts are written: in one way for all time, since digests are made of it."""

import json
from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as some

from annotation.items import text_digest

WORDS = some.text(max_size=60) | some.text(
    some.sampled_from('\0\b\t\n\x0b\f\r\x1f "\\/\x7f\x80\u2028\ud7ff\ufeff\U0001f600')
)
TEXTS = some.dictionaries(WORDS, WORDS | some.lists(WORDS, max_size=3), max_size=5)


def plainly(texts: object) -> bytes:
    written = json.dumps(texts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return written.encode("utf-8", "surrogatepass")


@given(TEXTS)
def test_texts_are_written_as_the_standard_library_would(texts: dict[str, str | list[str]]) -> None:
    assert text_digest.texts_as_json(texts) == plainly(texts)
    assert json.loads(text_digest.texts_as_json(texts).decode("utf-8", "surrogatepass")) == texts


def test_every_character_is_written_so_also_half_a_pair() -> None:
    for number in (*range(0x3000), *range(0xD7F0, 0xE010), *range(0xFFF0, 0x10010)):
        texts = {"a": chr(number), chr(number): "a"}
        assert text_digest.texts_as_json(texts) == plainly(texts)


def test_the_order_of_names_does_not_matter_to_the_digest() -> None:
    written = '{"a":"ü","b":["1","2"]}'
    assert (
        text_digest.digest_texts({"b": ["1", "2"], "a": "ü"})
        == sha256(written.encode()).hexdigest()
    )
