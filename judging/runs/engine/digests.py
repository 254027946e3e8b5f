"""What makes a request one and the same, what a run pins, and the order in which it asks."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from judging.strategies import compute_digest, dump_canonical
from stats.lots import draw_number


def build_request_hasher(
    *,
    provider: str,
    address: str,
    model: str,
    parameters: Mapping[str, Any],
    occasion: str,
) -> Callable[[bytes, int], str]:
    """From exact body and sample to the SHA-256, in hex, of all that decides what a request asks;
    equal means asked only once.

    `sample` tells wanted repeats apart, `occasion` is "" but for checks that must ask anew.
    Parameters differ as their JSON does: 0 is not 0.0. What the requests of a run have in common
    is spelled once.
    """
    common = {
        "provider": provider,
        "address": address,
        "model": model,
        "parameters": parameters,
        "occasion": occasion,
    }
    # Keys are sorted: only an address, whose quotes are escaped, stands before the first place,
    # and nothing behind the last.
    text = dump_canonical(common | {"body": "", "sample": ""})
    head, rest = text.split('"body":""', 1)
    middle, tail = rest.rsplit('"sample":""', 1)

    def digest_of(body: bytes, sample: int) -> str:
        own = hashlib.sha256(body).hexdigest()
        whole = f'{head}"body":"{own}"{middle}"sample":{sample}{tail}'
        return hashlib.sha256(whole.encode("ascii")).hexdigest()

    return digest_of


def compute_run_digest(
    *,
    strategy: str,
    renderer: str,
    parser: str,
    endpoint: Mapping[str, Any],
    items: Iterable[tuple[str, str]],
    few_shot: Sequence[tuple[str, str]] = (),
    samples: int = 1,
    seed: int = 0,
    sources: Iterable[str] = (),
    occasion: str = "",
) -> str:
    """SHA-256, in hex, of all that a run pins (design section 3, rule 10).

    `strategy` is the digest of its definition; `endpoint` its provider, address, model and
    parameters; `items` are pairs of item key and revision digest, in any order; `few_shot` the
    same, in the order shown; `seed` what the calls are shuffled with; `sources` the digests of
    the runs it rests on, in any order; `occasion` why it asks anew.
    """
    pinned: dict[str, Any] = {
        "strategy": strategy,
        "renderer": renderer,
        "parser": parser,
        "endpoint": endpoint,
        "items": _digest_of_all(sorted(items)),
        "few_shot": few_shot,
        "samples": samples,
        "seed": seed,
    }
    # Most runs have neither, and keep the digest that they had before there were any.
    if runs := sorted(sources):
        pinned["sources"] = runs
    if occasion:
        pinned["occasion"] = occasion
    return compute_digest(pinned)


def shuffle_keys(seed: int, keys: Iterable[str]) -> list[str]:
    """`keys` in an order that only the seed and the keys decide, on every Python alike.

    A key's place against another does not depend on which others are there, so a part of the
    items is asked in the same order as the whole. Equal keys stand together.
    """
    return sorted(keys, key=lambda key: (draw_place(seed, key), key))


def draw_place(seed: int, key: str) -> int:
    """A random place of `key` in the order of asking, 0 to 2^63 - 1: it fits a signed bigint."""
    return draw_number(f"{seed}:{key}", bits=63)


def _digest_of_all(items: Iterable[tuple[str, str]]) -> str:
    """One item at a time: a run may hold a million, and one JSON text of them would be large."""
    total = hashlib.sha256()
    for item in items:
        total.update(compute_digest(item).encode("ascii"))
    return total.hexdigest()
