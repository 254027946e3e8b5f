"""What models take of the parameters of a request, and what a refusal says of them."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from judging.providers.prices import LIMITS, LONGEST_ANSWER

FILE = Path(__file__).with_name("families.toml")
# What a model does by itself, and so takes although it refuses all other values.
OWN_VALUE = 1


@dataclass(frozen=True)
class Family:
    """Models that take parameters alike; see `families.toml`."""

    name: str = ""
    models: str = ""
    refuses: tuple[str, ...] = ()
    spelled: Mapping[str, str] = field(default_factory=dict)
    longest_answer: int = LONGEST_ANSWER
    source: str = ""


UNKNOWN = Family()


def family_of(model: str) -> Family:
    """The family of a model by its name; UNKNOWN, which refuses nothing, if it is of none."""
    families, _ = _file()
    fits = (
        one for one in families if re.fullmatch(rf"(.*[/.:])?({one.models})(:\w+)?", model, re.I)
    )
    return next(fits, UNKNOWN)


def laid_over(
    provider: str, model: str, defaults: Iterable[str], *layers: Mapping[str, Any]
) -> dict[str, Any]:
    """Parameters as a run pins them: each layer over those before it, spelled as the provider
    and the model's family spell them. Of our `defaults` those that the family refuses are None,
    so that they are not sent, unless a layer sets them.
    """
    family, spelled = family_of(model), _file()[1].get(provider, {})
    if provider == "openai_compatible":
        spelled = family.spelled
    found: dict[str, Any] = {}
    for layer in layers:
        found |= {spelled.get(name, name): value for name, value in layer.items()}
    if provider == "anthropic" and isinstance(found.get("stop_sequences"), str):
        found["stop_sequences"] = [found["stop_sequences"]]
    return dict.fromkeys((name for name in family.refuses if name in defaults), None) | found


def limited(
    provider: str, model: str, defaults: Mapping[str, Any], parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """The parameters of a new endpoint that is asked in chats: with the family's limit of tokens,
    unless they name one, say by None that there is to be none, or it is among our `defaults`."""
    family = family_of(model)
    usual = [defaults[name] for name in LIMITS if name in defaults]
    if family.longest_answer in usual or any(name in parameters for name in LIMITS):
        return dict(parameters)
    spelled = family.spelled if provider == "openai_compatible" else {}
    return {**parameters, spelled.get("max_tokens", "max_tokens"): family.longest_answer}


def refused(words: str, sent: Iterable[str]) -> str:
    """The parameter of those sent that a provider's refusal names; "" if it names none.

    A plain word must stand in quotes or before a colon, since "stop" or "user" may be meant as
    words. A limit of tokens counts only where it is not supported: one that is too large for a
    prompt says nothing of other prompts.
    """
    return next((name for name in sent if _is_refused(name, words)), "")


def _is_refused(name: str, words: str) -> bool:
    if name in LIMITS and not re.search("unsupported|not support", words, re.I):
        return False
    said = re.escape(name)
    if name == "temperature" or re.search("[_A-Z]", name):
        return bool(re.search(rf"(?<![\w/-]){said}(?![\w/-])", words))
    return bool(re.search(rf"[`'\"]{said}[`'\"]|(?<![\w/-]){said}:", words))


@cache
def _file() -> tuple[tuple[Family, ...], Mapping[str, Mapping[str, str]]]:
    found = tomllib.loads(FILE.read_text(encoding="utf-8"))
    families = (
        Family(**{**one, "refuses": tuple(one.get("refuses", ()))}) for one in found["family"]
    )
    return tuple(families), found["spelled"]
