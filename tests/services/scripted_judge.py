"""What the scripted evaluator says: answers that depend on nothing but the prompt."""

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from tests.services.scripted_forms import filled

_SECTION = re.compile(r"^\[BEGIN ([A-Z ]+)\]\n(.*?)\n\[END \1\]$", re.MULTILINE | re.DOTALL)
_OPTION = re.compile(r'^\s*- "([^"]+)":', re.MULTILINE)
_SCALE = re.compile(r"\bfrom (\d+)\b.*? to (\d+)\b", re.DOTALL)


def chance(*parts: str) -> float:
    """A number in [0, 1) that is always the same for the same parts."""
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


@dataclass(frozen=True)
class Judge:
    """Judges by a digest of the prompt or, with `sees` set, as one who notices that share.

    The oracle takes the texts whose digests are in `wrong` for wrong, and in a prompt with a
    reference also every response that differs from it.
    """

    sees: float | None = None
    wrong: frozenset[str] = frozenset()

    def answer(self, prompt: str) -> str:
        """What the prompt asks for: strict JSON with a verdict or a score and an explanation, or
        one of the other forms, which only the digest decides."""
        remark = f"Scripted remark {chance(prompt):.6f}."
        other = filled(prompt, lambda words: chance(prompt, words), remark)
        if other is not None:
            return other
        sections = {name: text.strip() for name, text in _SECTION.findall(prompt)}
        asked = prompt[prompt.rfind("[END ") :]
        if not sections and '"score"' not in prompt:
            return f"A scripted answer, the same for the same question. {remark}"
        said: dict[str, object] = {}
        if '"explanation"' in asked:
            said["explanation"] = remark
        if '"verdict"' in asked:
            said["verdict"] = self._verdict(prompt, sections, _OPTION.findall(asked))
        else:
            said["score"] = self._score(prompt, sections, asked)
        return json.dumps(said)

    def _verdict(self, prompt: str, sections: dict[str, str], options: list[str]) -> str:
        options = options or ["A", "B", "both good", "both unacceptable"]
        if self.sees is None:
            return options[int(chance(prompt, "verdict") * len(options))]
        notices = {name: self._notices(sections.get(f"RESPONSE {name}", "")) for name in "AB"}
        if notices["A"] == notices["B"]:
            return options[3 if notices["A"] else 2]
        return options[1 if notices["A"] else 0]

    def _score(self, prompt: str, sections: dict[str, str], asked: str) -> int:
        scale = _SCALE.search(asked)
        low, high = (int(scale[1]), int(scale[2])) if scale else (1, 10)
        if self.sees is None:
            return low + int(chance(prompt, "score") * (high - low + 1))
        response = sections.get("RESPONSE", "")
        departs = sections.get("REFERENCE ANSWER", response) != response
        noticed = self._notices(response, departs)
        return low + int(chance(response) * (high - low)) if noticed else high

    def _notices(self, text: str, departs: bool = False) -> bool:
        is_wrong = departs or digest_of(text) in self.wrong
        return is_wrong and chance(text, "notices") < (self.sees or 0.0)


def digest_of(text: str) -> str:
    """How the oracle knows a text: by the digest of what is left without space at its ends."""
    return hashlib.sha256(text.strip().encode("utf-8", "replace")).hexdigest()


def judge_from(words: str, wrong: Iterable[str] = ()) -> Judge:
    """A judge from "digest" or "oracle:0.8" and the texts that the oracle takes for wrong."""
    if words == "digest":
        return Judge()
    kind, _, share = words.partition(":")
    if kind != "oracle":
        raise ValueError(f"no judge is called {words!r}")
    return Judge(sees=float(share or 1), wrong=frozenset(digest_of(text) for text in wrong))
