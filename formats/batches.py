"""The output and error files of an OpenAI batch: one finished request per line.

`custom_id` says which call a line answers. It is the item's key alone, or `KEY|ROLE|ORDER|SAMPLE`
with order and sample as digits (a key may itself contain bars).
"""

import re
from typing import Any, BinaryIO

from formats import jsonlines
from formats.rows import BadRow, Limits, Row, Rows

_CALL = re.compile(r"(?s)(.+)\|([a-z_]{1,20})\|([0-9]{1,3})\|([0-9]{1,3})")


def read_rows(stream: BinaryIO, file: str, limits: Limits) -> Rows:
    """Yield the answer to each request.

    Values: item, role ("" if the id is the key alone), order, sample, and either body (the
    provider's answer, unchanged) or status (0 if the request was never sent) and error (the text of
    the error).
    """
    for row in jsonlines.read_rows(stream, file, limits):
        yield row if isinstance(row, BadRow) else _row(row)


def _row(row: Row) -> Row | BadRow:
    call = row.values.get("custom_id")
    if not isinstance(call, str) or not call:
        return row.bad("custom_id", "is missing. Give the batch's output file.")
    if not {"response", "error"} & row.values.keys():
        return row.bad("response", "is missing. Give the batch's output and error files.")
    response = row.values.get("response") or {}
    if not isinstance(response, dict):
        return row.bad("response", "is not an object. Give the output file.")
    body, status = response.get("body"), response.get("status_code")
    values = _parse_call_name(call)
    if row.values.get("error") or status != 200 or not isinstance(body, dict):
        code = status if isinstance(status, int) else 0
        values |= {"status": code, "error": _error_message(row.values.get("error") or body)}
    else:
        values["body"] = body
    return Row(row.file, row.line, values)


def _parse_call_name(call: str) -> dict[str, Any]:
    parts = _CALL.fullmatch(call)
    if parts is None:
        return {"item": call, "role": "", "order": 0, "sample": 0}
    key, role, order, sample = parts.groups()
    return {"item": key, "role": role, "order": int(order), "sample": int(sample)}


def _error_message(error: Any) -> str:
    inner = error.get("error", error) if isinstance(error, dict) else error
    if not isinstance(inner, dict):
        return str(inner or "no answer")
    said = [str(inner[name]) for name in ("code", "message") if inner.get(name)]
    return ": ".join(said) or "no answer"
