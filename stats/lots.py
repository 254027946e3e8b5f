"""Reproducible random numbers: the same on every machine and in every run."""

import hashlib


def draw_number(words: str, *, bits: int = 256) -> int:
    """A number from 0 to 2^bits - 1 that depends only on the words; different words give
    independent numbers.

    The number is the first bits of the SHA-256 of the words. Sorting a list by the numbers of its
    keys gives a random order. The order of two keys does not depend on the other keys, so a larger
    sample contains a smaller one. Words may contain unpaired surrogates, as keys from outside
    sometimes do.
    """
    digest = hashlib.sha256(words.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest, "big") >> (256 - bits)
