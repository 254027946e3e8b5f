"""Reproducible random numbers: the same on every machine and in every run."""

import hashlib


def draw_number(words: str, *, bits: int = 256) -> int:
    """A number from 0 to 2^bits - 1 that depends only on the words; different words give
    independent numbers.

    It is the first bits of their SHA-256. If a list is sorted by the numbers of its keys, the order
    is random and does not depend on what else is in the list, so a larger sample contains a smaller
    one. Words may contain unpaired surrogates, as keys from outside sometimes do.
    """
    digest = hashlib.sha256(words.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest, "big") >> (256 - bits)
