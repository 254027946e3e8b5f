"""In which form a prompt wants its answer, and what fills it: found in the prompt alone.

Nothing here knows a strategy, so a form that a prompt does not ask for clearly is not found. What
stands between marker lines is somebody's text and is left out of the search.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
# How a generator's reply goes wrong though it comes in good order.
SPOILT = {"no_json", "incomplete", "swapped", "echoed", "only_claim", "other_language"}
GERMAN = "Das ist nicht von der Art, die sie mit dem Auge und auf einen Blick erkennen wird."
# A number in [0, 1) that is always the same for the same words.
Draw = Callable[[str], float]

_TEXTS = re.compile(r"^\[BEGIN ([A-Z0-9 ,]+)\]\n(.*?)\n\[END \1\]", re.MULTILINE | re.DOTALL)
_SENTENCE = re.compile(r'"(Therefore, [^"]+\.)"')
_PERTURBED = re.compile(r'\{"perturbed": "')
_INPUT = re.compile(r'\{"input": "')
_TRANSLATION = re.compile(r'\{"translation": \{')
_INTO = re.compile(r"^Translate every text of this item into (.+)\.$", re.MULTILINE)
_ABILITY = re.compile(r'\{"ability": "one of ([^"]+)"')
_FLAG = re.compile(r'\{"flag": true\}')
_KEYS = re.compile(r'"(\w+)": N\b')
_MARKED = re.compile(r"\[RESULT\] \(a whole number from (\d+) to (\d+)\)")
_TAGGED = re.compile(r"<RESULT>.*?</RESULT>", re.DOTALL)
_METRIC = re.compile(
    r"^(\w+) \([^)\n]+\): .*\n((?:^-?[0-9.]+ = .*\n?)+|^a whole number from -?\d+ to -?\d+$)",
    re.MULTILINE,
)
_POINT = re.compile(r"^(-?[0-9.]+) = ", re.MULTILINE)
_WHOLE = re.compile(r"from (-?\d+) to (-?\d+)")


def filled(prompt: str, draw: Draw, remark: str) -> str | None:
    """The answer in the form that the prompt asks for; None for one score or one verdict alone,
    which the judge gives himself."""
    if not _may_be_asked(prompt):
        return None
    outside = _TEXTS.sub("", prompt)
    if sentences := list(dict.fromkeys(_SENTENCE.findall(outside))):
        return f"{remark} {_one(sentences, draw('sentence'))}"
    if made := _generated(prompt, outside, draw, remark):
        return json.dumps(made)
    if _FLAG.search(outside):
        return json.dumps({"flag": draw("flag") < 0.5})
    metrics = _metrics(outside)
    keys = [key for key in _KEYS.findall(outside) if key in metrics]
    if keys:
        return json.dumps({"explanation": remark} | _scores(keys, metrics, draw))
    if scale := _MARKED.search(outside):
        points = list(range(int(scale[1]), int(scale[2]) + 1))
        return f"Feedback: {remark} [RESULT] {_one(points, draw('score'))}"
    if _TAGGED.search(outside):
        return f"{remark}\n<RESULT>{_tagged(prompt, metrics, draw)}</RESULT>"
    return None


def spoilt(fault: str, prompt: str, text: str) -> str:
    """A generator's reply with one of these faults; what has no parts, or another fault, stays."""
    if fault not in SPOILT or not text.startswith("{"):
        return text
    if fault == "no_json":
        return "I would rather talk about it."
    said = json.loads(text)
    if made := said.get("translation"):
        return json.dumps({"translation": _spoilt_translation(fault, prompt, made)})
    made, *others = said
    wrong = {
        "incomplete": {others[-1]: ""},
        "swapped": {made: said[others[0]], others[0]: said[made]},
        "echoed": {made: _TEXTS.findall(prompt)[-1][1].replace(" ", "  ")},
        "only_claim": {made: said[others[0]]},
        "other_language": {made: GERMAN},
    }
    return json.dumps(said | wrong[fault])


def _generated(prompt: str, outside: str, draw: Draw, remark: str) -> dict[str, Any] | None:
    """The parts that a generator's prompt asks for; None if it asks for none."""
    texts = _TEXTS.findall(prompt)
    if _PERTURBED.search(outside):
        return dict(_perturbed(dict(texts)["ANSWER"], draw))
    if _INPUT.search(outside):
        return dict(_input(texts[-1][1], remark))
    if _TRANSLATION.search(outside):
        return {"translation": _translation(texts[0][1], _INTO.findall(outside)[0])}
    if offered := _ABILITY.search(outside):
        ability = _one(offered[1].split(", "), draw("ability"))
        return {"ability": ability, "rationale": remark}
    return None


def _spoilt_translation(fault: str, prompt: str, made: dict[str, Any]) -> dict[str, Any]:
    """A translation that lacks its last text, or is none."""
    if fault == "incomplete":
        return dict([*made.items()][:-1])
    return json.loads(_TEXTS.findall(prompt)[0][1]) if fault == "echoed" else made


def _may_be_asked(prompt: str) -> bool:
    """Most prompts ask for none of these, and a benchmark asks for very many answers."""
    signs = (
        '{"perturbed": "',
        '{"input": "',
        '{"ability": "',
        '{"translation": {',
        '"Therefore, ',
        '{"flag": true}',
        "[RESULT]",
        "<RESULT>",
    )
    keys = '": N' in prompt and '"score": N' not in prompt
    return keys or any(sign in prompt for sign in signs)


def _perturbed(answer: str, draw: Draw) -> dict[str, str]:
    """An answer with the letters of one word turned round, told as it is."""
    words = list(re.finditer(r"[^\W\d_]{4,}", answer)) or list(re.finditer(r"\S+", answer))
    word = _one(words, draw("word"))
    turned = word[0][::-1] if word[0][::-1] != word[0] else f"{word[0]}x"
    return {
        "perturbed": answer[: word.start()] + turned + answer[word.end() :],
        "claim": f"“{word[0]}” is changed to “{turned}”.",
        "rationale": "The word is none any more.",
    }


def _input(text: str, remark: str) -> dict[str, str]:
    """A task about a text, which is its context."""
    return {"input": f"Put this in one sentence. {remark}", "context": text, "rationale": remark}


def _translation(shown: str, language: str) -> dict[str, str | list[str]]:
    """Each text of an item with its words turned round, but for numbers, and the language before
    it: the same words always become the same."""

    def one(text: str) -> str:
        return f"{language}: " + re.sub(r"[^\W\d_]{3,}", lambda word: word[0][::-1], text)

    return {
        name: one(text) if isinstance(text, str) else [one(each) for each in text]
        for name, text in json.loads(shown).items()
    }


def _tagged(prompt: str, metrics: dict[str, list[float]], draw: Draw) -> str:
    """A value for each metric; a step without metrics hands on words of what it was shown."""
    if metrics:
        values = _scores(list(metrics), metrics, draw)
        return ", ".join(f"{key}: {value:g}" for key, value in values.items())
    shown = [text for _, text in _TEXTS.findall(prompt)]
    return " ".join(shown[-1].split()[:4])


def _metrics(outside: str) -> dict[str, list[float]]:
    """The values that each metric of a prompt may take, by its key."""
    found = {}
    for key, said in _METRIC.findall(outside):
        ends = _WHOLE.search(said) if " = " not in said else None
        points = range(int(ends[1]), int(ends[2]) + 1) if ends else _POINT.findall(said)
        found[key] = [float(point) for point in points]
    return found


def _scores(keys: list[str], metrics: dict[str, list[float]], draw: Draw) -> dict[str, float]:
    return {key: _one(metrics[key], draw(key)) for key in keys}


def _one(choices: Sequence[T], share: float) -> T:
    return choices[int(share * len(choices))]
