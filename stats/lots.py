"""Lots: what is drawn at random, and comes out the same on every machine and however often."""

import hashlib


def draw_number(words: str, *, bits: int = 256) -> int:
    """A number of 0 to 2^bits - 1 that only the words decide; different words are independent.

    The first bits of their SHA-256. Sorted by the lots of their keys, things stand in a random
    order in which none depends on what else is there, so that a larger sample holds a smaller
    one. Words may hold halves of surrogate pairs, as keys from elsewhere do.
    """
    digest = hashlib.sha256(words.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest, "big") >> (256 - bits)
