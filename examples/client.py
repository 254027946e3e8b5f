"""A small client of the API: one file, only the standard library. Copy it next to your notebook.

    lab = Client("https://blindspot.example", token="bs_...")
    table = lab.figures("my-project", "undetected", by=["category"])
    frame = pandas.DataFrame(table.rows, columns=table.columns)

Create a token under *API tokens*. Keep it in an environment variable, not in a notebook.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPSConnection
from typing import Any
from urllib.parse import quote, urlencode, urljoin, urlsplit

Row = dict[str, Any]
# The longest wait before a request is sent again, in seconds, whatever the server asks for.
LONGEST_WAIT = 60.0
CONNECTIONS = {"https": HTTPSConnection, "http": HTTPConnection}


class Problem(Exception):
    """A request that the server refused, and why: `errors` has the problems by field, if any."""

    def __init__(self, status: int, detail: str, errors: Mapping[str, Any]) -> None:
        super().__init__(f"{status}: {detail}" + "".join(f"\n  {e}: {errors[e]}" for e in errors))
        self.status, self.detail, self.errors = status, detail, errors


class NotMade(Exception):
    """Figures or an export that failed, or were not ready in time."""


@dataclass(frozen=True)
class Figures:
    """A table: rates are fractions of 1, and None means that there is no figure."""

    table: str
    columns: list[str]
    rows: list[Row]


@dataclass(frozen=True)
class _Answer:
    status: int
    wait: float
    body: Any
    content: bytes


class Client:
    """One installation, used with the rights of the token's owner."""

    def __init__(self, address: str, token: str, *, timeout: float = 30) -> None:
        self._address = urljoin(address.rstrip("/") + "/", "api/v1/")
        if urlsplit(self._address).scheme not in CONNECTIONS:
            raise ValueError(f"{address!r} must begin with https:// or http://.")
        self._token, self._timeout = token, timeout

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        """The answer of a path below /api/v1/. Raises `Problem`, and ValueError for a file."""
        answer = self._ask("GET", path, query or {})
        if answer.content and answer.body is None:
            raise ValueError(f"{path} is a file: read it with file().")
        return answer.body

    def post(self, path: str, body: Mapping[str, Any], *, key: str = "") -> Any:
        """Create or do something. Sent again with the same `key`, which you choose, it is done only
        once. Raises `Problem`."""
        return self._ask("POST", path, {}, body, {"Idempotency-Key": key}).body

    def file(self, path: str) -> bytes:
        """The content of a file on the server. Raises `Problem`."""
        return self._ask("GET", path, {}).content

    def each(self, path: str, query: Mapping[str, Any] | None = None) -> Iterator[Row]:
        """Every row of a list, page after page. Raises `Problem`."""
        page = self.get(path, query)
        yield from page["results"]
        while page["next"]:
            page = self.get(page["next"])
            yield from page["results"]

    def projects(self) -> list[Row]:
        return list(self.each("projects/"))

    def items(self, project: str, **filters: Any) -> Iterator[Row]:
        """Items of a project, with the filters of their page: `category="spelling"`."""
        return self.each(f"projects/{_part(project)}/items/", filters)

    def runs(self, project: str) -> Iterator[Row]:
        return self.each(f"projects/{_part(project)}/runs/")

    def outcomes(self, project: str, run: int) -> Iterator[Row]:
        """The outcome of each item of a run."""
        return self.each(f"projects/{_part(project)}/runs/{run}/outcomes/")

    def figures(
        self,
        project: str,
        table: str,
        *,
        runs: Sequence[int] = (),
        by: Sequence[str] = (),
        patience: float = 600,
        **only: str,
    ) -> Figures:
        """A table of figures, by default of the result pages' runs; `only` filters rows by value.

        Waits up to `patience` seconds while a worker makes it. Raises `Problem` and `NotMade`.
        """
        query = {"run": list(runs), **({"by": ",".join(by)} if by else {}), **only}
        path = f"projects/{_part(project)}/results/{_part(table)}/"
        made = self._await(path, query, patience)
        return Figures(**{name: made[name] for name in Figures.__annotations__})

    def export(
        self, project: str, table: str, form: str, *, patience: float = 600, **said: Any
    ) -> bytes:
        """A table as a file, such as "labels" as "csv"; `said`: other fields of the API's request.

        Waits up to `patience` seconds while a worker makes it. Raises `Problem` and `NotMade`.
        """
        exports, ends = f"projects/{_part(project)}/exports/", time.monotonic() + patience
        asked = self.post(exports, {"table": table, "format": form, **said})
        while not asked["file"]:
            if asked["state"] == "failed" or time.monotonic() > ends:
                raise NotMade(asked["message"] or f"Export {asked['number']} is {asked['state']}.")
            time.sleep(0.5)
            asked = self.get(f"{exports}{asked['number']}/")
        return self.file(f"{exports}{asked['number']}/file/")

    def methods(self, project: str, *, runs: Sequence[int] = (), patience: float = 600) -> Any:
        """The methods paragraph for a paper.

        Waits up to `patience` seconds while a worker counts. Raises `Problem` and `NotMade`.
        """
        path = f"projects/{_part(project)}/methods/"
        return self._await(path, {"run": list(runs)}, patience)

    def _await(self, path: str, query: Mapping[str, Any], patience: float) -> Any:
        """The answer of a path, once a worker has computed it."""
        ends = time.monotonic() + patience
        while True:
            answer = self._ask("GET", path, query)
            if answer.status != 202:
                return answer.body
            table, failure, step = (answer.body[name] for name in ("table", "failure", "step"))
            if failure:
                raise NotMade(failure)
            if time.monotonic() + answer.wait > ends:
                raise NotMade(f"{table} is not ready yet: {step or 'waiting'}.")
            time.sleep(answer.wait)

    def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> _Answer:
        while (answer := self._answer(method, path, query, body, headers or {})).status == 429:
            # A request over the limit was not executed, so it can be sent again.
            time.sleep(answer.wait)
        if answer.status >= 300:
            said = answer.body if isinstance(answer.body, dict) else {}
            detail = said.get("detail") or f"{self._address} does not answer as expected."
            if answer.status == 301 and not path.endswith("/"):
                detail = f"There is nothing at {path}: paths end with a slash."
            raise Problem(answer.status, detail, said.get("errors") or {})
        return answer

    def _answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        body: Any,
        more: Mapping[str, str],
    ) -> _Answer:
        address = urlsplit(urljoin(self._address, path))
        if address[:2] != urlsplit(self._address)[:2]:
            raise ValueError(f"{path} is not below {self._address}, so no token is sent.")
        given = {name: value for name, value in query.items() if value is not None}
        asked = "&".join(filter(None, (address.query, urlencode(given, doseq=True))))
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        headers |= {"Content-Type": "application/json"} if body is not None else {}
        headers |= {name: value for name, value in more.items() if value}
        connection = CONNECTIONS[address.scheme](address.netloc, timeout=self._timeout)
        try:
            # Redirects are not followed: they could send the token to another server.
            data = None if body is None else json.dumps(body)
            connection.request(method, f"{address.path}?{asked}", data, headers)
            found = connection.getresponse()
            content = found.read()
            wait = _wait(found.headers["Retry-After"])
            return _Answer(found.status, wait, _read(content), content)
        finally:
            connection.close()


def _part(name: str) -> str:
    return quote(str(name), safe="")


def _wait(seconds: str | None) -> float:
    return min(float(seconds), LONGEST_WAIT) if seconds and seconds.isdigit() else 1.0


def _read(said: bytes) -> Any:
    """The parsed JSON, or None if it is not JSON, such as a page of a proxy."""
    try:
        return json.loads(said)
    except ValueError:
        return None
