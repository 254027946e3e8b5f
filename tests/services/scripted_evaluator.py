"""A scripted evaluator: a real HTTP server on loopback that speaks the protocols of evaluators.

As a process:

    python tests/services/scripted_evaluator.py --port 0 --log requests.jsonl --latency 0.05 \\
        --fault rate_limited=first:2 --fault server_error=0.05 --judge oracle:0.8

It prints {"port": ..., "address": ...} and serves until SIGTERM. In a test: `with running(...)`.
A fault is one of FAULTS, for the first n times that a body is seen (`first:2`), for a share of
all requests (`0.05`), or always (no value); `no_temperature` only where a request has one. A
model's name may carry its own script behind plus signs (`any-name+cut=first:1+latency=0.2`), and
POST /script replaces the script with
{"faults": {...}, "latency": ..., "headers": {...}, "judge": ..., "wrong": [...]}.

The log has one JSON line a request, written at once: digest (sha256 of the body), model,
attempt, fault, status, received, answered and left (seconds since 1970). `answered` is null when
the client went away before it had its answer, and `left` says when the server saw that.
"""

import argparse
import asyncio
import hashlib
import json
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from aiohttp import web

if not __package__:
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.services.scripted_forms import SPOILT, spoilt
from tests.services.scripted_judge import Judge, chance, judge_from
from tests.services.scripted_protocols import REFUSALS, Protocol, Said, spoken_at

BROKEN = {
    "broken_json",
    "wrong_shape",
    "gateway_error",
    "html",
    "huge",
    "cut",
    "cut_stream",
    "hang",
}
ODD = {"truncated", "refused", "filtered", "empty", "no_usage", "plain_text"}
REFUSED = "I will not judge this."
TAIL_SHARE = 0.05
FAULTS = REFUSALS.keys() | BROKEN | ODD | SPOILT


@dataclass(frozen=True)
class Script:
    """How to behave; `faults` maps a name of FAULTS to `first:n`, a share, or "" for always.

    `finish` is the reason in the protocol's words for which each reply ends, "" for the usual one;
    `answers_as` the model that replies name, "" for the asked one with `-0001`; `tokens_in` the
    number of tokens of every prompt, None to count them.

    A reply takes `latency` seconds and up to `spread` seconds more, or `tail` seconds if it is one
    of the TAIL_SHARE that take long. `headers` go with every reply, be it an error.
    """

    latency: float = 0.0
    retry_after: float | None = None
    faults: Mapping[str, str] = field(default_factory=dict)
    judge: Judge = field(default_factory=Judge)
    headers: Mapping[str, str] = field(default_factory=dict)
    spread: float = 0.0
    tail: float = 0.0
    finish: str = ""
    answers_as: str = ""
    tokens_in: int | None = None

    def but(self, words: Sequence[str]) -> "Script":
        """This script with words like `latency=0.2` and `cut=first:1` over it; others mean none."""
        said = dict(word.partition("=")[::2] for word in words)
        faults = {name: value for name, value in said.items() if name in FAULTS}
        retry_after = said.get("retry_after", self.retry_after)
        return replace(
            self,
            latency=float(said.get("latency", self.latency)),
            retry_after=None if retry_after is None else float(retry_after),
            faults=faults | {name: self.faults[name] for name in self.faults.keys() - faults},
        )

    def fault(self, digest: str, attempt: int) -> str:
        """The first fault that is due, "" for none; the same for the same body and attempt."""
        for name, when in self.faults.items():
            first = when.removeprefix("first:")
            if first != when:
                due = attempt <= int(first)
            else:
                due = chance(digest, str(attempt), name) < float(when or 1)
            if due:
                return name
        return ""


class ScriptedEvaluator:
    """Answers after a script, in the protocol that it is asked in.

    `log` has each request from its arrival on; the log file gets its line when it is over.
    """

    def __init__(self, script: Script, log: Path | None = None) -> None:
        self.script = script
        self.log: list[dict[str, Any]] = []
        self.port = 0
        self._seen: Counter[str] = Counter()
        self._file: BinaryIO | None = log.open("ab", buffering=0) if log else None

    @property
    def address(self) -> str:
        """What an endpoint names as its address."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def gemini_address(self) -> str:
        """The same for Gemini's protocol, whose version is another one."""
        return f"{self.address}beta"

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """One request of any kind."""
        if request.path == "/script" and request.method == "POST":
            self.script = script_from(await request.json())
            return web.json_response({})
        spoken = spoken_at(request.path)
        if spoken is None or request.method != "POST":
            return web.json_response({"error": {"message": "there is nothing here"}}, status=404)
        return await self._complete(request, *spoken)

    async def _complete(
        self, request: web.BaseRequest, protocol: Protocol, model: str
    ) -> web.StreamResponse:
        received = time.time()
        body = await request.read()
        asked = json.loads(body)
        model = model or asked["model"]
        digest = hashlib.sha256(body).hexdigest()
        self._seen[digest] += 1
        script = self.script.but(model.split("+")[1:])
        fault = script.fault(digest, self._seen[digest])
        if fault == "no_temperature" and "temperature" not in asked.get("generationConfig", asked):
            fault = ""
        entry = {
            "digest": digest,
            "model": model,
            "attempt": self._seen[digest],
            "fault": fault,
            "status": None,
            "received": received,
            "answered": None,
            "left": None,
        }
        self.log.append(entry)
        prompt = protocol.prompt(asked)
        text = REFUSED if fault == "refused" else spoilt(fault, prompt, script.judge.answer(prompt))
        named = script.answers_as or f"{model.split('+')[0]}-0001"
        said = Said(named, prompt, text, fault, script.finish, script.tokens_in)
        try:
            made = _response(protocol, script, said, request.headers.get(protocol.key, "nothing"))
            return await self._answer(request, script, made, entry)
        except asyncio.CancelledError:
            entry["left"] = time.time()
            raise
        finally:
            self._write(entry)

    async def _answer(
        self,
        request: web.BaseRequest,
        script: Script,
        response: web.Response,
        entry: dict[str, Any],
    ) -> web.StreamResponse:
        if script.latency or script.spread or script.tail:
            more = script.spread * chance(entry["digest"], str(entry["attempt"]), "latency")
            is_long = chance(entry["digest"], "tail") < TAIL_SHARE
            await asyncio.sleep(script.tail if script.tail and is_long else script.latency + more)
        if entry["fault"] == "hang":
            await asyncio.sleep(3600)
        if entry["fault"] in {"cut", "cut_stream"}:
            return await _cut(request, response, whole=entry["fault"] == "cut")
        response.headers.update(script.headers)
        await response.prepare(request)
        entry["status"] = response.status
        await response.write_eof()
        if request.transport is not None and not request.transport.is_closing():
            entry["answered"] = time.time()
        return response

    def _write(self, entry: dict[str, Any]) -> None:
        if self._file:
            self._file.write(json.dumps(entry).encode() + b"\n")

    async def serve(self, port: int, on_start: Callable[[], object], stop: asyncio.Event) -> None:
        """Serve on loopback until `stop` is set; port 0 takes a free one."""
        # Cancelled handlers are how the log learns that a client went away.
        server = web.Server(self.handle, handler_cancellation=True, access_log=None)
        runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port, backlog=1024)
        await site.start()
        self.port = runner.addresses[0][1]
        on_start()
        await stop.wait()
        await runner.cleanup()


def script_from(words: Mapping[str, Any]) -> Script:
    """A script from the JSON of POST /script."""
    judge = judge_from(words.get("judge", "digest"), words.get("wrong", ()))
    faults = {name: str(value) for name, value in words.get("faults", {}).items()}
    if unknown := faults.keys() - set(FAULTS):
        raise ValueError(f"no faults are called {sorted(unknown)}")
    headers = words.get("headers", {})
    return Script(words.get("latency", 0.0), words.get("retry_after"), faults, judge, headers)


@contextmanager
def running(script: Script | None = None, log: Path | None = None) -> Iterator[ScriptedEvaluator]:
    """A scripted evaluator in a thread of its own, for the length of the block."""
    evaluator, started = ScriptedEvaluator(script or Script(), log), threading.Event()
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(
        target=loop.run_until_complete, args=(evaluator.serve(0, started.set, stop),), daemon=True
    )
    thread.start()
    try:
        assert started.wait(10), "the scripted evaluator did not start"
        yield evaluator
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()


def _response(protocol: Protocol, script: Script, said: Said, key: str) -> web.Response:
    fault = said.fault
    refusal = protocol.refuse(fault, key) if fault in REFUSALS else None
    if refusal:
        status, body = refusal
        headers = {"Location": "/v1/elsewhere"} if fault == "redirect" else {}
        if status == 429 and script.retry_after is not None:
            headers["Retry-After"] = f"{script.retry_after:g}"
        return web.json_response(body, status=status, headers=headers)
    if fault == "broken_json":
        return web.Response(text='{"choices": [{"mess', content_type="application/json")
    if fault == "html":
        return web.Response(text="<h1>Welcome</h1>", content_type="text/html")
    if fault == "wrong_shape":
        return web.json_response({"object": "chat.completion", "choices": []})
    if fault == "gateway_error":
        return web.json_response({"error": {"message": "the host is busy", "code": 429}})
    if fault == "huge":
        return web.Response(body=b" " * (9 * 1024 * 1024))
    reply = protocol.reply(said)
    if fault == "no_usage":
        reply = {name: value for name, value in reply.items() if "usage" not in name}
    kind = "text/plain" if fault == "plain_text" else "application/json"
    return web.json_response(reply, content_type=kind)


async def _cut(request: web.BaseRequest, reply: web.Response, *, whole: bool) -> web.StreamResponse:
    """Half a reply before the connection closes: its length was promised, or it came in chunks."""
    body = reply.body if isinstance(reply.body, bytes) else b"{}"
    headers = {"Content-Type": "application/json"}
    response = web.StreamResponse(
        headers=headers | ({"Content-Length": str(len(body))} if whole else {})
    )
    if not whole:
        response.enable_chunked_encoding()
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    if request.transport is not None:
        request.transport.close()
    return response


def main() -> None:
    """Serve as a process until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--spread", type=float, default=0.0)
    parser.add_argument("--tail", type=float, default=0.0)
    parser.add_argument("--retry-after", type=float)
    parser.add_argument("--fault", action="append", default=[], help="NAME[=first:N|=SHARE]")
    parser.add_argument("--judge", default="digest", help="digest, or oracle:SHARE")
    parser.add_argument("--wrong", type=Path, help="one JSON string a line: what the oracle knows")
    asyncio.run(_serve(parser.parse_args()))


async def _serve(options: argparse.Namespace) -> None:
    lines = options.wrong.read_text("utf-8").splitlines() if options.wrong else []
    judge = judge_from(options.judge, map(json.loads, lines))
    script = Script(options.latency, options.retry_after, judge=judge, spread=options.spread)
    script = replace(script, tail=options.tail)
    script = script.but(options.fault)
    evaluator, stop = ScriptedEvaluator(script, options.log), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)

    def announce() -> None:
        sys.stdout.write(json.dumps({"port": evaluator.port, "address": evaluator.address}) + "\n")
        sys.stdout.flush()

    await evaluator.serve(options.port, announce, stop)


if __name__ == "__main__":
    main()
