"""How many words of one text occur in another (study 002, section 7.4)."""

from collections.abc import Sequence

from stats.rouge import unicode_words


def string_match(references: Sequence[str], candidate: str) -> float:
    """1 if all words of a reference occur in the candidate, 0.5 if some do, 0 if none does.

    Each word counts once, wherever it occurs; with several references the best one counts. A
    reference without words matches nothing. Raises ValueError without references.
    """
    if not references:
        raise ValueError("a score needs at least one reference")
    said = set(unicode_words(candidate))
    return max(_match(set(unicode_words(reference)), said) for reference in references)


def _match(wanted: set[str], said: set[str]) -> float:
    found = len(wanted & said)
    return 0.0 if not found else 1.0 if found == len(wanted) else 0.5
