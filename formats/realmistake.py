"""Readers for study 001 (ReaLMistake): its items and the outputs of its error detectors.

Both are published as archives with a password. They can also be read from the unpacked folder, or
from a single JSONL file. Files are always read in the order of their paths.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from formats import archives, jsonlines
from formats.rows import BadRow, FormatError, Limits, Row, Rows

# The study uses two names for one task: one in the rows, the other for the folder (and in its
# tables).
TASKS = {"math_problem_generation": "math_word_problem_generation"}
FOLDERS = frozenset(
    {*TASKS.values(), "finegrained_fact_verification", "answerability_classification"}
)
ERROR_TYPES = {
    "Reasoning Correctness": "reasoning-correctness",
    "Instruction-Following": "instruction-following",
    "Context-Faithfulness": "context-faithfulness",
    "Parameterized Knowledge": "parameterized-knowledge",
}
# Human labels of an item, under their names in the task type `error-detection`.
LABELS = ("verdict", "error_type", "explanation")
_VERDICTS = ("error", "no_error")
# This file repeats items of the six sets as an example of the format.
_EXAMPLE = "example.jsonl"


class _FaultError(ValueError):
    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field


def read_items(path: Path, limits: Limits, password: str = "") -> Rows:
    """Yield the items of the benchmark.

    Values: key (`metadata.id`), input, response, verdict (error or no_error), error_type (a list
    of slugs), explanation, task (the folder of its task), response_model, and everything else in
    `metadata`. Raises FormatError if there is no JSONL file, and whatever `archives.open_archive`
    and `jsonlines.read_rows` raise.
    """
    with _open_files(path, limits, password) as files:
        for name, row in _rows(files, limits):
            if isinstance(row, BadRow):
                yield row
            elif PurePosixPath(name).name != _EXAMPLE or len(files) == 1:
                yield from _as_rows(row, _item)


def read_outputs(path: Path, limits: Limits, password: str = "") -> Rows:
    """Yield the detectors' outputs, one row per reply.

    Values: item (`metadata.id`), endpoint (the detector's folder), prompt (the kind of detector
    and the file's stem, `simple_prompt_baseline/baseline_errordetection_prompt_1`), and either
    sample (from 0), text and value (error, no_error or None if invalid), or only `decided` if the
    replies were aggregated and not kept. Self-consistency has `decided` in addition to the value of
    every sample. Endpoint and prompt are "" if the folders do not give them.
    """
    with _open_files(path, limits, password) as files:
        places = {name: _place(path, name) for name in files}
        for name, row in _rows(files, limits):
            if isinstance(row, BadRow):
                yield row
            else:
                yield from _as_rows(row, partial(_replies, places[name]))


@contextmanager
def _open_files(path: Path, limits: Limits, password: str) -> Iterator[dict[str, archives.Opener]]:
    if path.is_file() and path.suffix.lower() in {".jsonl", ".ndjson"}:
        yield {path.name: partial(_open, path)}
        return
    with archives.open_archive(path, limits, password) as files:
        found = {name: files[name] for name in sorted(files) if name.endswith(".jsonl")}
        if not found:
            raise FormatError(
                f"{path}: contains no JSONL files. Give the study's archive, its folder or one "
                "file."
            )
        yield found


def _open(path: Path) -> AbstractContextManager[BinaryIO]:
    return path.open("rb")


def _rows(files: dict[str, archives.Opener], limits: Limits) -> Iterator[tuple[str, Row | BadRow]]:
    for name, opener in files.items():
        with opener() as stream:
            for row in jsonlines.read_rows(stream, name, limits):
                yield name, row


def _as_rows(row: Row, made: Any) -> Iterator[Row | BadRow]:
    try:
        yield from [Row(row.file, row.line, values) for values in made(row.values)]
    except _FaultError as fault:
        yield row.bad(fault.field, str(fault))


def _item(values: dict[str, Any]) -> Iterator[dict[str, Any]]:
    metadata = dict(_metadata(values))
    key, task = metadata.pop("id"), metadata.get("task_name")
    response_model = metadata.pop("llm_response_model", None)
    kinds = _require(values, "error_categories")
    if not isinstance(kinds, list) or not all(kind in ERROR_TYPES for kind in kinds):
        known = ", ".join(ERROR_TYPES)
        raise _FaultError("error_categories", f"is not a list of {known}. Correct the row.")
    yield {
        **metadata,
        "key": key,
        "input": values.get("input"),
        "response": values.get("llm_response"),
        "verdict": _verdict(values, "error_label"),
        "error_type": [ERROR_TYPES[kind] for kind in kinds],
        "explanation": values.get("human_explanation") or "",
        "task": TASKS.get(str(task), task),
        "response_model": response_model,
    }


def _replies(place: dict[str, str], values: dict[str, Any]) -> Iterator[dict[str, Any]]:
    said = {"item": _metadata(values)["id"], **place}
    decided = _verdict(values, "prediction", invalid=True)
    samples = values.get("predictions_list")
    if samples is not None:
        yield from _samples(values, said, decided)
    elif "response" in values:
        yield said | {"sample": 0, "text": _text(values["response"]), "value": decided}
    else:
        yield said | {"decided": decided}


def _samples(
    values: dict[str, Any], said: dict[str, Any], decided: str | None
) -> Iterator[dict[str, Any]]:
    replies, verdicts = values.get("response"), values["predictions_list"]
    if not isinstance(replies, list) or not isinstance(verdicts, list):
        raise _FaultError("predictions_list", "or response is not a list. Correct the row.")
    if len(replies) != len(verdicts):
        raise _FaultError(
            "predictions_list", "must have one prediction per response. Correct the row."
        )
    for number, (reply, verdict) in enumerate(zip(replies, verdicts, strict=True)):
        text = reply.get("response") if isinstance(reply, dict) else reply
        value = _verdict({"predictions_list": verdict}, "predictions_list", invalid=True)
        yield said | {"sample": number, "text": _text(text), "value": value, "decided": decided}


def _metadata(values: dict[str, Any]) -> dict[str, Any]:
    metadata = values.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("id"), str):
        raise _FaultError("metadata", "has no id. Give the file as published.")
    return metadata


def _verdict(values: dict[str, Any], name: str, *, invalid: bool = False) -> str | None:
    verdict = _require(values, name)
    if verdict in _VERDICTS or (invalid and verdict is None):
        return None if verdict is None else str(verdict)
    or_null = " or null" if invalid else ""
    raise _FaultError(name, f"is {str(verdict)[:40]!r}; it must be error, no_error{or_null}.")


def _require(values: dict[str, Any], name: str) -> Any:
    """Return the value under a name. If it is missing, the error message helps users who confused
    items and outputs."""
    if name not in values:
        raise _FaultError(
            name,
            "is missing. Import items with import_items, and verdicts of detectors with "
            "import_replies.",
        )
    return values[name]


def _text(text: Any) -> str:
    if not isinstance(text, str):
        raise _FaultError("response", "is not text. Give the file as published.")
    return text


def _place(path: Path, name: str) -> dict[str, str]:
    """Return detector and prompt, read from the path
    KIND/TASK/RESPONSE_MODEL/DETECTOR/PROMPT.jsonl."""
    base = path.resolve() if path.is_dir() else path.resolve().parent
    inside = PurePosixPath(name)
    parts = inside.parts if path.suffix.lower() == ".zip" else (*base.parts, *inside.parts)
    if len(parts) < 5:
        return {"endpoint": "", "prompt": ""}
    return {"endpoint": parts[-2], "prompt": f"{parts[-5]}/{inside.stem}"}
