"""What makes a request one and the same, what a run pins, and the order in which it asks."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from judging.strategies import digest
from stats.lots import lot


def request_digest(
    *,
    provider: str,
    address: str,
    model: str,
    parameters: Mapping[str, Any],
    body: bytes,
    sample: int,
    occasion: str,
) -> str:
    """SHA-256, in hex, of all that decides what a request asks; equal means asked only once.

    `body` is the exact body that is sent, `sample` tells wanted repeats apart, `occasion` is ""
    but for checks that must ask anew. Parameters differ as their JSON does: 0 is not 0.0.
    """
    return digest(
        {
            "provider": provider,
            "address": address,
            "model": model,
            "parameters": parameters,
            "body": hashlib.sha256(body).hexdigest(),
            "sample": sample,
            "occasion": occasion,
        }
    )


def run_digest(
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
    return digest(pinned)


def shuffled(seed: int, keys: Iterable[str]) -> list[str]:
    """`keys` in an order that only the seed and the keys decide, on every Python alike.

    A key's place against another does not depend on which others are there, so a part of the
    items is asked in the same order as the whole. Equal keys stand together.
    """
    return sorted(keys, key=lambda key: (place(seed, key), key))


def place(seed: int, key: str) -> int:
    """A random place of `key` in the order of asking, 0 to 2^63 - 1: it fits a signed bigint."""
    return lot(f"{seed}:{key}", bits=63)


def _digest_of_all(items: Iterable[tuple[str, str]]) -> str:
    """One item at a time: a run may hold a million, and one JSON text of them would be large."""
    total = hashlib.sha256()
    for item in items:
        total.update(digest(item).encode("ascii"))
    return total.hexdigest()
