import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.runs.engine.digests import (
    build_request_hasher,
    compute_run_digest,
    draw_place,
    shuffle_keys,
)
from judging.strategies import compute_digest

REQUEST = {
    "provider": "openai_compatible",
    "address": "http://127.0.0.1:9/v1",
    "model": "m",
    "parameters": {"temperature": 0},
    "body": b'{"model": "m"}',
    "sample": 0,
    "occasion": "",
}
RUN = {
    "strategy": "s" * 64,
    "renderer": "render-1",
    "parser": "parse-1",
    "endpoint": {"provider": "baseline", "parameters": {}},
    "items": [("a", "1"), ("b", "2")],
    "few_shot": [("x", "1"), ("y", "2")],
    "samples": 1,
    "seed": 7,
}
DIGEST = "38800371c32c3012b0b2ce7cfbf01e99087fdf6cf86505f6c6178cd24a96982a"


def request_digest(*, body, sample, **common):
    return build_request_hasher(**common)(body, sample)


def test_a_body_is_hashed_once_for_all_its_samples(monkeypatch):
    hashed, sha256 = [], hashlib.sha256

    def count(text=b""):
        hashed.append(text)
        return sha256(text)

    monkeypatch.setattr(hashlib, "sha256", count)
    common = {key: value for key, value in REQUEST.items() if key not in ("body", "sample")}
    digest_of = build_request_hasher(**common)
    bodies = [b"a" * 9, b"b" * 9]
    assert len({digest_of(body, sample) for body in bodies for sample in range(5)}) == 10
    assert [hashed.count(body) for body in bodies] == [1, 1]


def test_equal_requests_have_one_digest():
    assert request_digest(**REQUEST) == request_digest(**REQUEST)


@pytest.mark.parametrize(
    "change",
    [
        {"provider": "baseline"},
        {"address": "http://127.0.0.1:9/v1/"},
        {"model": "n"},
        {"parameters": {"temperature": 1}},
        {"parameters": {}},
        {"body": b'{"model":  "m"}'},
        {"sample": 1},
        {"occasion": "canary"},
        # joined without marks these would be the same characters as before
        {"address": "http://127.0.0.1:9/v", "model": "1m"},
    ],
)
def test_whatever_differs_in_a_request_differs_in_its_digest(change):
    assert request_digest(**REQUEST | change) != request_digest(**REQUEST)


HOSTILE = st.sampled_from(['"body":""', '"sample":""', '\\"sample\\":\\"', "\u20ac", ""])


@given(HOSTILE, HOSTILE, HOSTILE, st.integers(0, 9))
def test_what_requests_have_in_common_is_spelled_once_and_says_the_same(address, model, value, n):
    common = {
        "provider": "p",
        "address": address,
        "model": model,
        "parameters": {"body": value, "sample": "", value: {"body": "", "sample": ""}},
        "occasion": value,
    }
    whole = common | {"body": hashlib.sha256(b"asked").hexdigest(), "sample": n}
    assert build_request_hasher(**common)(b"asked", n) == compute_digest(whole)


@pytest.mark.parametrize(
    "change",
    [
        {"strategy": "t" * 64},
        {"renderer": "render-2"},
        {"parser": "parse-3"},
        {"endpoint": {"provider": "baseline", "parameters": {"seed": 1}}},
        {"items": [("a", "1")]},
        {"items": [("a", "1"), ("b", "3")]},
        {"items": [("a", "2"), ("b", "1")]},
        {"few_shot": [("y", "2"), ("x", "1")]},
        {"samples": 2},
        {"seed": 8},
        {"sources": ["r" * 64]},
        {"occasion": "canary"},
    ],
)
def test_whatever_a_run_pins_is_in_its_digest(change):
    assert compute_run_digest(**RUN | change) != compute_run_digest(**RUN)


def test_the_runs_that_a_run_rests_on_count_in_any_order():
    digests = [
        compute_run_digest(**RUN, sources=sources) for sources in (["a", "b"], ["b", "a"], ["a"])
    ]
    assert digests[0] == digests[1] != digests[2]


def test_a_run_that_rests_on_no_other_has_the_digest_that_it_always_had():
    # printed before runs could rest on others
    assert compute_run_digest(**RUN, sources=[], occasion="") == DIGEST


def test_the_order_of_a_seed_is_fixed_for_good():
    # sha256sum of 1:d, 1:a, 1:b, 1:c begins 24, 41, 6f, b8; of 2:c, 2:d, 2:a, 2:b 19, 6a, f2, fa
    assert shuffle_keys(1, "abcd") == ["d", "a", "b", "c"]
    assert shuffle_keys(2, "abcd") == ["c", "d", "a", "b"]


def test_a_place_fits_a_signed_bigint_and_differs_by_seed_and_key():
    # sha256sum of 2:b begins faac0b8643d81553, which is over 2^63 before it is halved
    places = {draw_place(seed, key) for seed in (1, 2) for key in "abcd"}
    assert len(places) == 8
    assert draw_place(2, "b") == 0xFAAC0B8643D81553 // 2
    assert min(places) >= 0
    assert max(places) < 2**63


@given(st.integers(), st.lists(st.text(), unique=True))
def test_shuffling_keeps_every_key_and_does_not_depend_on_their_order(seed, keys):
    order = shuffle_keys(seed, keys)
    assert sorted(order) == sorted(keys)
    assert shuffle_keys(seed, reversed(keys)) == order


@given(st.integers(), st.lists(st.text(), unique=True), st.data())
def test_a_part_of_the_keys_keeps_the_order_of_the_whole(seed, keys, data):
    part = {key for key in keys if data.draw(st.booleans())}
    assert shuffle_keys(seed, part) == [key for key in shuffle_keys(seed, keys) if key in part]
