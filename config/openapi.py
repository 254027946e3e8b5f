"""The OpenAPI document, and its postprocessing, which adds what is the same for all operations."""

import threading
from collections.abc import Iterator
from typing import Any

from drf_spectacular import generators

from annotation.api.pagination import ONLY
from annotation.api.responses import PROBLEM_CONTENT_TYPE
from config import scopes

PROBLEM_REF = {"$ref": "#/components/schemas/Problem"}
COMMON_PROBLEMS = {
    "401": "There is no token or session, or it has expired.",
    "404": "It does not exist, or you may not see it.",
    "503": "The database is not available; `Retry-After` says how many seconds to wait.",
}
PRECONDITION_PROBLEM = {
    "412": "It has changed since you read it (see `If-Match`). Nothing was saved."
}
RATE_LIMIT_PROBLEM = {
    "429": "Too many calls in this minute; `Retry-After` says how many seconds to wait."
}
BAD_REQUEST_PROBLEM = {"400": "The query or the body cannot be read."}
BODY_PROBLEMS = {
    "413": "The body is too large.",
    "415": "The body is not JSON; send Content-Type: application/json.",
}


class SchemaGenerator(generators.SchemaGenerator):
    """Generates the document one request at a time. The library fills its tables during the first
    request, and others that came meanwhile failed."""

    _generating = threading.Lock()

    def get_schema(self, *args: Any, **options: Any) -> Any:
        with self._generating:
            return super().get_schema(*args, **options)


def add_problems(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the error responses of every operation, all in one format (RFC 9457)."""
    for method, operation in _operations(result):
        responses = operation["responses"]
        if method == "get":
            responses.setdefault(
                "304", {"description": "Not changed since the version in your `If-None-Match`."}
            )
        for status, words in _common_problems(operation).items():
            responses.setdefault(status, {"description": words})
        for status, response in responses.items():
            if int(status) >= 400:
                response["content"] = {PROBLEM_CONTENT_TYPE: {"schema": PROBLEM_REF}}
        operation["responses"] = dict(sorted(responses.items()))
    return result


def add_token_scopes(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add to every operation the scope that a token needs."""
    names = scopes.list_routes()
    for path, methods in result["paths"].items():
        for method, operation in methods.items():
            scope = scopes.required_scope(names[path], method.upper())
            words = f"A token needs the scope `{scope}`."
            operation["description"] = f"{operation.get('description', '')}\n\n{words}".strip()
            operation["security"] = [{"token": [scope]}, {"cookieAuth": []}]
            operation["responses"].setdefault(
                "403", {"description": "This token or role does not allow it."}
            )
    return result


def add_field_selection(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Declare that the rows of lists with the parameter `only` may contain only some of the
    fields."""
    schemas = result["components"]["schemas"]
    for operation in (one for _, one in _operations(result)):
        if any(one["name"] == ONLY for one in operation.get("parameters", ())):
            [told] = operation["responses"]["200"]["content"].values()
            rows = _find_schema(schemas, told["schema"])["properties"]["results"]
            names = _fields(schemas, rows["items"])
            rows["items"] = {"type": "object", "properties": names}
            [only] = [one for one in operation["parameters"] if one["name"] == ONLY]
            items = only["schema"]["items"] | {"enum": sorted(names)}
            only["schema"] = only["schema"] | {"items": items}
    return result


def close_bodies(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Declare that a JSON body has no other names than those of its schema: others are refused."""
    schemas = result["components"]["schemas"]
    for operation in (one for _, one in _operations(result)):
        content = operation.get("requestBody", {}).get("content", {})
        if "application/json" in content:
            body = _find_schema(schemas, content["application/json"]["schema"])
            body["additionalProperties"] = False
    return result


def _fields(schemas: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = (_find_schema(schemas, row) if "$ref" in row else row)["properties"]
    return fields


def _find_schema(schemas: dict[str, Any], reference: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = schemas[reference["$ref"].rpartition("/")[2]]
    return found


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for methods in document["paths"].values():
        yield from methods.items()


def _common_problems(operation: dict[str, Any]) -> dict[str, str]:
    asks = any(one["in"] == "query" for one in operation.get("parameters", ()))
    sends = "requestBody" in operation
    matched = any(one["name"] == "If-Match" for one in operation.get("parameters", ()))
    held = PRECONDITION_PROBLEM if matched else {}
    return (
        COMMON_PROBLEMS
        | RATE_LIMIT_PROBLEM
        | held
        | (BAD_REQUEST_PROBLEM if asks or sends else {})
        | (BODY_PROBLEMS if sends else {})
    )
