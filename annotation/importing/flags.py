"""Flags for the two texts that a task type compares; pure.

An item stores only the names of its rules. The reasons are computed from the texts whenever they
are shown.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from perturbers import flags as rules

# The titles of all rules; the first two rules apply to every item, the others only to generated
# items, and the last two only to those that a model generated from another item.
FLAG_TITLES = {
    "identical": "Identical",
    "white-space-only": "White space only",
    "empty": "Empty",
    "claim": "Does not match the category",
    "bound": "Too many changes",
    "language": "Other language",
    "truncated": "Ends abruptly",
    "duplicate": "Duplicate",
    "numbers": "Numbers differ",
    "outdated": "Source corrected",
}
NUMBERS = "numbers"
_NUMBERS_REASON = "A number of the original text is missing."
OUTDATED = "outdated"
_OUTDATED_REASON = "The texts from which it was generated were corrected before it was imported."
DUPLICATE = "duplicate"
_DUPLICATE_REASON = "Another item with the same source question has the same answer."
_UNKNOWN_REASON = "The current rules do not find a reason in the shown texts."


def flag_texts(texts: Mapping[str, Any], compared: tuple[str, str] | None) -> tuple[str, ...]:
    """Return the flag "identical" or "white-space-only" if one of these applies to the two
    texts."""
    if compared is None:
        return ()
    before, after = (texts.get(name, "") for name in compared)
    if before == after:
        return ("identical",)
    if rules.has_same_words(before, after):
        return ("white-space-only",)
    return ()


def flag_generated(
    texts: Mapping[str, Any], compared: tuple[str, str] | None, category: str
) -> tuple[str, ...]:
    """Return the names of all rules that flag these texts, which were generated for a category."""
    return tuple(dict.fromkeys(one.rule for one in _apply_rules(texts, compared, category)))


def explain_flags(
    flags: Iterable[str],
    texts: Mapping[str, Any],
    compared: tuple[str, str] | None,
    category: str,
) -> list[tuple[str, str]]:
    """Return the title and the reason of each flag of an item with these texts."""
    seen = {one.rule: one.reason for one in _apply_rules(texts, compared, category)}
    seen |= {DUPLICATE: _DUPLICATE_REASON, NUMBERS: _NUMBERS_REASON, OUTDATED: _OUTDATED_REASON}
    return [(FLAG_TITLES.get(flag, flag), seen.get(flag, _UNKNOWN_REASON)) for flag in flags]


def _apply_rules(
    texts: Mapping[str, Any], compared: tuple[str, str] | None, category: str
) -> list[rules.Flag]:
    before, after = (texts.get(name, "") for name in compared or ("", ""))
    if compared is None or not isinstance(before, str) or not isinstance(after, str):
        return []
    return rules.find_flags(category, before, after)
