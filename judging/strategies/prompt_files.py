"""Import a strategy from a file of prompts, as a study prints them: a strategy that asks the same
way gives everything else.

The file is text in UTF-8. Without headings all of it is the prompt. Headings part it:

=== system ===       the system text, if there is one
=== prompt ===       the prompt
=== step NAME ===    in place of a prompt, the steps of a chain; each may show {{NAME}} of an
                     earlier one

A judgement is asked for as JSON only if the last prompt speaks of JSON or has {{form}}.
"""

import re
from typing import Any, NamedTuple

from annotation.errors import Refused
from annotation.items import taxonomy
from annotation.models import Membership, Project
from annotation.tasktypes import toml_text
from judging import strategies
from judging.models import StrategyVersion
from judging.strategies import Strategy, StrategyError, editing, schema

MAX_BYTES = 4 * editing.MAX_SOURCE_LENGTH

_HEADING = re.compile(r"===[ \t]{1,20}(\S[^\n]{0,100}?)[ \t]{1,20}===[ \t]{0,20}")
_STEP = re.compile(r"step ([a-z][a-z0-9_]{0,39})")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_SINGLE = re.compile(r"(?<!\{)\{(\w{1,40})\}(?!\})")
# What the parent says of its own prompts.
_OF_PROMPTS = ("system", "prompt", "steps", "markers", "guard", "worded")


class Part(NamedTuple):
    """A part of the file: "system", "prompt" or "step NAME", the line of its heading, its text."""

    name: str
    line: int
    text: str


def import_strategy(
    project: Project,
    like: StrategyVersion,
    content: bytes | str,
    *,
    slug: str,
    title: str,
    note: str = "",
    member: Membership | None,
) -> StrategyVersion:
    """Create the project's own strategy from a file of prompts, in every other respect like another
    strategy.

    Raises `Refused` with the line and the remedy for a file that cannot be used, and for a slug
    that is invalid or in use.
    """
    editing.check_slug(slug)
    definition = read_file(content, like) | {"slug": slug, "title": title}
    source = toml_text.write_definition(definition)
    draft = editing.parse_source(source, slug, taxonomy.load_taxonomy(project))
    return editing.create(project, draft, like, slug=slug, note=note, member=member)


def read_file(content: bytes | str, like: StrategyVersion) -> dict[str, Any]:
    """The definition of a strategy with the prompts of a file; raises `Refused`."""
    strategy = like.strategy()
    if not strategy.prompts:
        raise Refused(f"{like.slug} has no prompt. Choose a strategy that asks in the same way.")
    text = _decode(content)
    parts = _split(text)
    dropped = set(_OF_PROMPTS) | (set() if "{{examples}}" in text else {"examples"})
    kept = {key: value for key, value in like.definition.items() if key not in dropped}
    if drawn := [one for one in kept.pop("draws", []) if f"{{{{{one['name']}}}}}" in text]:
        kept["draws"] = drawn
    definition = kept | _build_changes(parts, strategy)
    try:
        strategies.from_definition(definition)
    except StrategyError as error:
        raise Refused(_describe(error, parts, text)) from error
    return definition


def _decode(content: bytes | str) -> str:
    too_long = f"The file is too long. Shorten it to {editing.MAX_SOURCE_LENGTH:,} characters."
    # Before it is decoded: of a longer file only a part was read, which may end within a character.
    if len(content) > MAX_BYTES:
        raise Refused(too_long)
    if isinstance(content, bytes):
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise Refused(f"Line {line}: this is not UTF-8. Save the file as UTF-8.") from error
    else:
        text = content
    text = text.replace("\r\n", "\n")
    if len(text) > editing.MAX_SOURCE_LENGTH:
        raise Refused(too_long)
    if found := _CONTROL.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise Refused(f"Line {line}: remove the control character U+{ord(found[0]):04X}.")
    if not text.strip():
        raise Refused("The file is empty. Write the prompt into it.")
    return text


def _split(text: str) -> list[Part]:
    """The parts of the file, each with its text, in order; raises `Refused`."""
    parts: list[Part] = []
    name, at, lines = "", 1, list[str]()
    for number, line in enumerate(text.split("\n"), start=1):
        if heading := _HEADING.fullmatch(line):
            if name or "".join(lines).strip():
                parts.append(_close(name, at, lines))
            name, at, lines = heading[1].lower(), number, []
        else:
            lines.append(line)
    if not name:
        return [Part("prompt", 1, text.strip())]
    parts.append(_close(name, at, lines))
    _check_names(parts)
    return parts


def _close(name: str, at: int, lines: list[str]) -> Part:
    """A part that ends; raises `Refused` for text outside parts, and for unknown or empty parts."""
    if not name:
        raise Refused(f"Line {at}: move the text before the first heading below a heading.")
    if name not in ("system", "prompt") and not _STEP.fullmatch(name):
        raise Refused(
            f"Line {at}: unknown heading. Write === system ===, === prompt === or "
            "=== step NAME ===, with a name of small letters, digits and underscores."
        )
    if not "".join(lines).strip():
        raise Refused(f"Line {at}: nothing follows this heading. Add its text, or remove the line.")
    return Part(name, at, "\n".join(lines).strip())


def _check_names(parts: list[Part]) -> None:
    seen: set[str] = set()
    for part in parts:
        if part.name in seen:
            raise Refused(f"Line {part.line}: there are two parts {part.name}. Rename one.")
        if "prompt" in seen | {part.name} and any(" " in name for name in seen | {part.name}):
            raise Refused(f"Line {part.line}: use either one prompt, or two or more steps.")
        seen.add(part.name)
    if seen == {"system"}:
        raise Refused("The file has no prompt. Add a line === prompt === and the prompt below it.")


def _build_changes(parts: list[Part], like: Strategy) -> dict[str, Any]:
    """The keys of the definition that the file gives."""
    changes: dict[str, Any] = {part.name: part.text for part in parts if " " not in part.name}
    steps = [part for part in parts if " " in part.name]
    if steps:
        changes["steps"] = [
            {
                "name": part.name.removeprefix("step "),
                "output": like.output if part is steps[-1] else "text",
                "prompt": part.text,
            }
            for part in steps
        ]
    last = steps[-1].text if steps else changes["prompt"]
    # Only an object can hold the parts of a generated text.
    if not like.generates and "json" not in last.lower() and "{{form}}" not in last:
        changes["worded"] = True
    return changes


def _describe(error: StrategyError, parts: list[Part], text: str) -> str:
    """The message of an error, with its line in the file and the remedy."""
    lines = list(enumerate(text.split("\n"), start=1))
    if "does not use" in error.remedy:
        wanted = schema.find_names(error.remedy)
        for number, line in lines:
            for name in wanted.intersection(_SINGLE.findall(line)):
                return f"Line {number}: write {{{{{name}}}}} in place of {{{name}}}."
        return f"Line {parts[-1].line}: the text below {error.remedy} where it belongs."
    if "unknown placeholder" in error.remedy:
        named = error.remedy.removeprefix("unknown placeholder ").partition(";")[0]
        wrong = [one for one in named.split(", ") if one != "{{"]
        for number, line in lines:
            if schema.has_malformed(line) or any(one in line for one in wrong):
                return f"Line {number}: {error.remedy}."
    steps = [part for part in parts if " " in part.name]
    key, _, rest = error.key.partition(".")
    step = rest.partition(".")[0]
    at = steps[int(step)].line if key == "steps" and step.isdecimal() else parts[0].line
    return f"Line {at}: {error.key}: {error.remedy}."
