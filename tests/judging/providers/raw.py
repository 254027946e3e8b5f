"""A server that answers with the very bytes it is told, for what no HTTP library would send."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from judging.evaluators.providers import PROVIDERS, Answer, Target, connect
from tests.judging.providers.conftest import KEY, Text
from tests.judging.providers.ways import WAYS

# Or the next request might be sent on a connection that is going.
_CLOSE = "Connection: close\r\n"


def response(body: bytes, *, status: int = 200, length: bool = True, headers: str = "") -> bytes:
    """A whole HTTP response; without a length its end is that of the connection."""
    known = f"Content-Length: {len(body)}\r\n" if length else ""
    kind = "" if "content-type" in headers.lower() else "Content-Type: application/json\r\n"
    return f"HTTP/1.1 {status} Said\r\n{_CLOSE}{kind}{known}{headers}\r\n".encode() + body


def chunked(body: bytes, size: int = 40) -> bytes:
    """A whole response in chunks."""
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    sent = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    return head + sent + b"0\r\n\r\n"


@asynccontextmanager
async def answering(raw: list[bytes]) -> AsyncIterator[str]:
    """The address of a server that gives one of these after the other and hangs up each time."""
    left = iter(raw)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        await reader.readexactly(int(head.split("content-length: ")[1].split("\r\n")[0]))
        writer.write(next(left))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


def ask_all(way: str, raw: list[bytes]) -> list[Answer | Exception]:
    """What a provider makes of each of these responses to a request of its own."""
    provider = PROVIDERS[WAYS[way].provider]
    body = provider.body(model="m", parameters={}, prompt=Text(), **WAYS[way].more)

    async def ask() -> list[Answer | Exception]:
        made: list[Answer | Exception] = []
        async with answering(raw) as address, connect(["127.0.0.1"]) as session:
            for _ in raw:
                try:
                    made.append(await provider.ask(session, Target(address, KEY, 5.0), body))
                except Exception as error:
                    made.append(error)
        return made

    return asyncio.run(ask())


def ask(way: str, raw: bytes) -> Answer:
    """As `ask_all`, of one response; raises what came of it."""
    [made] = ask_all(way, [raw])
    if isinstance(made, Exception):
        raise made
    return made


def said(body: Any, **values: Any) -> bytes:
    """A response whose body is JSON."""
    return response(json.dumps(body).encode(), **values)
