"""The parameters that models accept, and how to find in an error message which parameter was
refused.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from judging.evaluators.prices import DEFAULT_MAX_TOKENS, TOKEN_LIMIT_NAMES

FAMILIES_FILE = Path(__file__).with_name("families.toml")
# The default value of the model, which it accepts although it refuses all other values.
API_DEFAULT = 1
# What `is_storable` refuses, in the words of an error message.
UNSTORABLE = (
    "a character or number that cannot be stored (NUL, half of a surrogate pair, NaN or infinity)"
)


@dataclass(frozen=True)
class Family:
    """Models that accept the same parameters; see `families.toml`."""

    name: str = ""
    models: str = ""
    refuses: tuple[str, ...] = ()
    spelled: Mapping[str, str] = field(default_factory=dict)
    longest_answer: int = DEFAULT_MAX_TOKENS
    source: str = ""


UNKNOWN_FAMILY = Family()


def find_family(model: str) -> Family:
    """Find the family of a model by the model's name. The default is UNKNOWN_FAMILY, which refuses
    no parameter.
    """
    families, _ = _load_families()
    fits = (
        one for one in families if re.fullmatch(rf"(.*[/.:])?({one.models})(:\w+)?", model, re.I)
    )
    return next(fits, UNKNOWN_FAMILY)


def describe_family(model: str) -> str:
    """Say in a sentence or two what is known of a model by its name; "" for no name."""
    if not model.strip():
        return ""
    family = find_family(model.strip())
    if family is UNKNOWN_FAMILY:
        return (
            "Nothing is known of this model, so it gets our defaults. If it refuses one, its run "
            "stops at the first refusal and offers to go on without it."
        )
    said = [f"Known family: {family.name}."]
    if family.refuses:
        names = " and no ".join(family.refuses)
        said.append(f"It takes no {names}, so our default is not sent.")
    if family.longest_answer > DEFAULT_MAX_TOKENS:
        said.append(
            "It may think first, and the limit includes the thinking, so a new endpoint limits an "
            f"answer to {family.longest_answer:,} tokens instead of {DEFAULT_MAX_TOKENS:,}."
        )
    return " ".join(said)


def merge_parameters(
    provider: str, model: str, defaults: Iterable[str], *layers: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the parameters as a run pins them: each layer overrides the earlier layers. The names
    are those that the provider and the model's family use. A parameter of our `defaults` that the
    family refuses becomes None, so that it is not sent, unless one of the layers sets it.
    """
    family, spelled = find_family(model), _load_families()[1].get(provider, {})
    if provider == "openai_compatible":
        spelled = family.spelled
    found: dict[str, Any] = {}
    for layer in layers:
        found |= {spelled.get(name, name): value for name, value in layer.items()}
    if provider == "anthropic" and isinstance(found.get("stop_sequences"), str):
        found["stop_sequences"] = [found["stop_sequences"]]
    return dict.fromkeys((name for name in family.refuses if name in defaults), None) | found


def fit_token_limit(
    model: str, endpoint: Mapping[str, Any], strategy: Mapping[str, Any]
) -> dict[str, Any]:
    """The parameters of a strategy, with its token limit, if it has one, under the name that the
    endpoint uses for its own. A model that thinks keeps the larger of the two limits: its thinking
    counts too, and a strategy says how long an answer may be.
    """
    limit = next((strategy[name] for name in TOKEN_LIMIT_NAMES if name in strategy), None)
    name = next((name for name in TOKEN_LIMIT_NAMES if name in endpoint), "")
    if limit is None or not name:
        return dict(strategy)
    rest = {one: value for one, value in strategy.items() if one not in TOKEN_LIMIT_NAMES}
    own, thinks = endpoint[name], find_family(model).longest_answer > DEFAULT_MAX_TOKENS
    if thinks and isinstance(own, int) and isinstance(limit, int):
        limit = max(limit, own)
    return {**rest, name: limit}


def with_token_limit(
    provider: str, model: str, defaults: Mapping[str, Any], parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """Add the token limit of the model's family to the parameters of a new chat endpoint, unless
    they have a limit or set it to None, or our `defaults` have a limit.
    """
    family = find_family(model)
    usual = [defaults[name] for name in TOKEN_LIMIT_NAMES if name in defaults]
    if family.longest_answer in usual or any(name in parameters for name in TOKEN_LIMIT_NAMES):
        return dict(parameters)
    spelled = family.spelled if provider == "openai_compatible" else {}
    return {**parameters, spelled.get("max_tokens", "max_tokens"): family.longest_answer}


def is_storable(values: Any) -> bool:
    """True if every database can store these values as JSON, and every request can contain them."""
    try:
        plain = json.dumps(values, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return False
    return b"\\u0000" not in plain


def find_refused(words: str, sent: Iterable[str]) -> str:
    """Find the sent parameter that a provider refuses according to its message; "" if the message
    names none.

    A name in quotes or in a field path takes precedence over a name inside a sentence, which may be
    an ordinary word. A parameter that the message says to use instead is not refused. A token limit
    counts as refused only if it is not supported at all, not if its value is too large for one
    prompt.
    """
    told, names = _USE.sub(" ", words), [*sent]
    if not _NOT_TAKEN.search(words):
        names = [name for name in names if name not in TOKEN_LIMIT_NAMES]
    ways = (_is_marked, _is_said)
    return next((name for is_named in ways for name in names if is_named(name, told)), "")


def instead_of(words: str, name: str) -> str:
    """Find the token limit that the message says to use instead of the refused limit; "" if there
    is none.
    """
    limits = "|".join(TOKEN_LIMIT_NAMES)
    found = re.search(rf"(?i:\buse)\s+(?i:the\s+)?[`'\"]?({limits})(?!\w)", words)
    return found[1] if found and name in TOKEN_LIMIT_NAMES and found[1] != name else ""


_NOT_TAKEN = re.compile(
    "unsupported|not (be )?support|deprecat|unknown name|unrecogni[sz]ed|not permitted", re.I
)
_USE = re.compile(r"(?<!not )\buse\s+(the\s+)?([`'\"]?)[\w.]+\2(\s+instead)?", re.I)
_REFUSES = (
    "support|deprecat|allow|permi|accept|specif|recogni|remov|unavailable|only|must|should|unknown"
    "|invalid|unexpected|extra"
)


def _is_marked(name: str, words: str) -> bool:
    """True if the name is in quotes, in a field path, or at the start of the message before a
    colon.
    """
    said = _spelled_as(name)
    quoted = rf"[`'\"](?:\w+\.)*(?:{said})[`'\"]"
    path = rf"(?i:generation_?config)\.(?:{said})(?!\w)"
    headed = rf"(?:^|[:;,.(\[>]\s*)(?:\w+\.)*(?:{said}):"
    return bool(re.search(f"{quoted}|{path}|{headed}", words))


def _is_said(name: str, words: str) -> bool:
    """True if a sentence says that the parameter is not accepted."""
    said = rf"(?<![\w/-])(?:{_spelled_as(name)})(?![\w/-])"
    called = rf"(?i:parameter|argument|argument supplied|field|invalid value for):?\s+{said}"
    if re.search(called, words):
        return True
    if re.search("[_A-Z]", name):
        return bool(re.search(said, words) and re.search(_REFUSES, words, re.I))
    invalid = rf"(?i:unsupported|invalid|unknown)\s+{said}\s*(?:[:=,.]|parameter|value|$)"
    verb = r"(?:is|was|must|may|should|has|does|can(?:not)?)\b"
    told = rf"{said}(?:\s+(?:parameter|value|setting))?\s+{verb}[^.;]{{0,60}}?\b(?i:{_REFUSES})"
    never = rf"(?i:not (?:use|set|specify|support|accept|allow|take)(?: the| a)?)\s+{said}"
    # "user" and "stop" are also common words.
    return name == "temperature" and bool(re.search(f"{invalid}|{told}|{never}", words))


def _spelled_as(name: str) -> str:
    """Return the spellings of a parameter in messages: ours and that of Gemini's protocol."""
    camel = re.sub("_(.)", lambda found: found[1].upper(), name)
    return "|".join(map(re.escape, dict.fromkeys((name, camel, *_ALSO.get(name, ())))))


# Further spellings; the camelCase spellings are derived from our names.
_ALSO = {
    "max_tokens": ("maxOutputTokens", "max_output_tokens"),
    "maxOutputTokens": ("max_output_tokens",),
    "stop": ("stopSequences", "stop_sequences"),
}


@cache
def _load_families() -> tuple[tuple[Family, ...], Mapping[str, Mapping[str, str]]]:
    found = tomllib.loads(FAMILIES_FILE.read_text(encoding="utf-8"))
    families = (
        Family(**{**one, "refuses": tuple(one.get("refuses", ()))}) for one in found["family"]
    )
    return tuple(families), found["spelled"]
