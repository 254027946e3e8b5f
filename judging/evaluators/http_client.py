"""The HTTP client for evaluators and webhooks: a session that refuses forbidden addresses, one
exchange, and its errors in plain words.

Only this module imports aiohttp. It is imported for the first session, since that takes as long as
a fifth of the start of a command, and most commands and pages call no evaluator.
"""

import asyncio
import os
import socket
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from ipaddress import ip_address
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import DefaultResolver

from judging.evaluators.providers import addresses
from judging.evaluators.providers.answers import Target
from judging.evaluators.providers.errors import (
    BrokenReply,
    EvaluatorError,
    ForbiddenAddress,
    ServerError,
    TimedOut,
    redact_message,
)
from judging.evaluators.providers.transport import MAX_REPLY_BYTES

# Names that are looked up at a time. Whoever has a domain decides how long that takes.
MAX_LOOKUPS = 64


class _Lookups(ThreadPoolExecutor):
    """Threads that look names up. The event loop does not wait for them when it ends: a look-up
    cannot be cancelled, and the next one needs no thread of this one."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait=False, cancel_futures=True)


def connect(
    allowed_hosts: Collection[str] = (),
    setting: str = addresses.EVALUATOR_SETTING,
    *,
    keep_open: bool = True,
) -> aiohttp.ClientSession:
    """Create a session, inside the running event loop and as a context manager.

    The module `addresses` checks every request and every connection; its messages call the setting
    of the allowed hosts `setting`. The session uses no cookies,
    no proxy from the environment, and no connection limit, since the limiter limits the calls.
    Connections are used again if they are kept open; a server may close one at the same moment.
    """

    # The result depends only on the URL, and most requests of a session go to the same URL.
    check = lru_cache(maxsize=64)(
        partial(addresses.check_address, allowed_hosts=allowed_hosts, setting=setting)
    )

    # Its own few threads would all wait for names that nobody answers for.
    asyncio.get_running_loop().set_default_executor(_Lookups(MAX_LOOKUPS, "look-up"))

    async def guard(
        request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        check(str(request.url))
        return await handler(request)

    connector = aiohttp.TCPConnector(
        limit=0,
        resolver=GuardedResolver(allowed_hosts, setting=setting),
        ttl_dns_cache=60,
        force_close=not keep_open,
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        middlewares=(guard,),
    )


async def send(
    session: aiohttp.ClientSession,
    target: Target,
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    keep: int | None = None,
) -> tuple[int, Mapping[str, str], bytes]:
    """Post JSON, and return status, headers and content of the reply; see `transport.post`. With
    `keep`, only so many bytes of the content are read, and a longer reply is no error."""
    try:
        async with session.post(
            url,
            data=body,
            headers={"Content-Type": "application/json", **headers},
            timeout=_timeout(target.timeout),
            allow_redirects=False,
        ) as response:
            read = _bounded(response) if keep is None else _read_start(response, keep)
            return response.status, response.headers, await read
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        # Do not chain the original error: aiohttp's errors contain the request, and therefore the
        # key.
        raise _build_connection_error(error, target) from None


class GuardedResolver(AbstractResolver):
    """Resolve names as aiohttp does, but refuse names that resolve to a forbidden address."""

    def __init__(
        self,
        allowed_hosts: Collection[str] = (),
        inner: AbstractResolver | None = None,
        setting: str = addresses.EVALUATOR_SETTING,
    ) -> None:
        self._allowed_hosts, self._setting = allowed_hosts, setting
        self._inner = DefaultResolver() if inner is None else inner

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of `host`. Raises ForbiddenAddress if any of them must not be
        called.
        """
        found = await self._inner.resolve(host, port, family)
        for result in found:
            addresses.check_ip(
                ip_address(result["host"]),
                host.rstrip("."),
                port,
                self._allowed_hosts,
                self._setting,
            )
        return found

    async def close(self) -> None:
        """Close the inner resolver."""
        await self._inner.close()


@lru_cache(maxsize=64)
def _timeout(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=seconds)


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    length = response.content_length
    if length is not None and length <= MAX_REPLY_BYTES and not _is_compressed(response):
        return await response.read()
    content = bytearray()
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) > MAX_REPLY_BYTES:
            raise BrokenReply(f"The reply is longer than {MAX_REPLY_BYTES:,} bytes.")
    return bytes(content)


async def _read_start(response: aiohttp.ClientResponse, keep: int) -> bytes:
    content = bytearray()
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) >= keep:
            break
    return bytes(content[:keep])


def _is_compressed(response: aiohttp.ClientResponse) -> bool:
    """True if the reply is compressed, so that its content may be longer than its headers say."""
    return aiohttp.hdrs.CONTENT_ENCODING in response.headers


def _build_connection_error(error: Exception, target: Target) -> EvaluatorError:
    if isinstance(error, asyncio.TimeoutError):
        return TimedOut(f"No full reply within {target.timeout:g} s.")
    words = redact_message(str(error) or type(error).__name__, (target.key,))
    if isinstance(error, aiohttp.InvalidURL):
        return ForbiddenAddress(f"The address cannot be called: {words}")
    if isinstance(error, aiohttp.ClientConnectorError):
        return ServerError(_explain_no_connection(error, urlsplit(target.address).netloc))
    return BrokenReply(_explain_broken_connection(error))


def _explain_no_connection(error: aiohttp.ClientConnectorError, host: str) -> str:
    """Say in plain words why there is no connection to a host, and what to do."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return (
            f"The certificate of {host} is not accepted: {error.certificate_error}. Check the host "
            "in the address, and the server's certificate."
        )
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return (
            f"{host} does not answer with TLS. If its server has no TLS, begin the address with "
            "http:// instead of https://."
        )
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"The host {host} is not known. Check its spelling in the address."
    why = _error_text(error.os_error)
    return f"No server answers at {host} ({why}). Check that it runs, and the port in the address."


def _explain_broken_connection(error: Exception) -> str:
    """Say in plain words how a connection broke."""
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "The connection broke: the server closed it before it answered."
    if isinstance(error, aiohttp.ClientPayloadError):
        return "The connection broke: the reply ended in the middle."
    if isinstance(error, aiohttp.ClientResponseError):
        return (
            "The answer is not HTTP. Check whether the address begins with https:// or http://, "
            "and its port."
        )
    if isinstance(error, OSError):
        return f"The connection broke: {_error_text(error)}."
    return "The connection broke."


def _error_text(error: BaseException) -> str:
    """The system's words for an error, such as "connection reset by peer"."""
    number = getattr(error, "errno", None)
    return os.strerror(number).lower() if isinstance(number, int) and number > 0 else "no answer"
