"""Digests that identify requests and runs, and the random order in which requests are sent."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
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
    """Build the function that computes the digest of a request from its exact body and its sample.
    The digest is the SHA-256, in hex, of everything that identifies the request. Requests with
    equal digests are sent only once.

    `sample` distinguishes intended repeats. `occasion` is "" except for checks that must send
    answered requests again. Parameters are compared as JSON, where 0 differs from 0.0. The parts
    that all requests of a run share are serialized once.
    """
    common = {
        "provider": provider,
        "address": address,
        "model": model,
        "parameters": parameters,
        "occasion": occasion,
    }
    # The keys are sorted: only the address, whose quotes are escaped, comes before "body", and
    # nothing comes after "sample".
    text = dump_canonical(common | {"body": "", "sample": ""})
    head, rest = text.split('"body":""', 1)
    middle, tail = rest.rsplit('"sample":""', 1)

    # A body may have megabytes, and is followed by itself for each further sample.
    @lru_cache(maxsize=1)
    def hash_body(body: bytes) -> str:
        return hashlib.sha256(body).hexdigest()

    def digest_of(body: bytes, sample: int) -> str:
        whole = f'{head}"body":"{hash_body(body)}"{middle}"sample":{sample}{tail}'
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
    drawn: Sequence[tuple[str, Any]] = (),
) -> str:
    """Compute the SHA-256, in hex, of everything that a run pins.

    `strategy` is the digest of the strategy's definition; `endpoint` has the provider, address,
    model and parameters; `items` are different pairs of item key and revision digest, sorted;
    `few_shot` are such pairs for the examples, in the order shown; `seed` is the seed that shuffles
    the calls; `sources` are the digests of the source runs, in any order; `occasion` says why the
    run sends answered requests again; `drawn` are pairs of item key and what was drawn for the
    item, sorted.
    """
    pinned: dict[str, Any] = {
        "strategy": strategy,
        "renderer": renderer,
        "parser": parser,
        "endpoint": endpoint,
        "items": _digest_of_all(items),
        "few_shot": few_shot,
        "samples": samples,
        "seed": seed,
    }
    # Most runs have none of these, so their digest is the same as before these fields existed.
    if runs := sorted(sources):
        pinned["sources"] = runs
    if occasion:
        pinned["occasion"] = occasion
    if drawn:
        pinned["drawn"] = _digest_of_all(drawn)
    return compute_digest(pinned)


def shuffle_keys(seed: int, keys: Iterable[str]) -> list[str]:
    """Return `keys` in a random order that depends only on the seed and the keys, not on the Python
    version.

    The relative order of two keys does not depend on the other keys, so a part of the items is sent
    in the same order as all items. Equal keys are adjacent.
    """
    return sorted(keys, key=lambda key: (draw_place(seed, key), key))


def draw_place(seed: int, key: str) -> int:
    """Draw a random position for `key` in the order of sending, from 0 to 2^63 - 1, to fit a signed
    bigint."""
    return draw_number(f"{seed}:{key}", bits=63)


def _digest_of_all(items: Iterable[tuple[str, Any]]) -> str:
    """Compute the digest of all items, one at a time, since a million items are too many for one
    JSON text."""
    total = hashlib.sha256()
    for item in items:
        total.update(compute_digest(item).encode("ascii"))
    return total.hexdigest()
