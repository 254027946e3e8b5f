"""Which addresses of evaluators and receivers of webhooks may be called.

Whoever can edit an endpoint or a webhook chooses its address, and this process calls it from inside
the network. So an address is checked twice: first as written (`check_address`), then, on every
connection, by the IP addresses that its name resolves to (`http_client.GuardedResolver`), which may
have changed since. Public hosts are allowed. Loopback and private hosts are allowed only if the
deployment lists them; link-local hosts and cloud metadata services are never allowed.
"""

import re
from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from judging.evaluators.providers.errors import ForbiddenAddress

_IP = IPv4Address | IPv6Address
_METADATA_NAMES = frozenset(
    {
        "metadata",
        "metadata.google.internal",
        "metadata.goog",
        "instance-data",
        "instance-data.ec2.internal",
    }
)
_METADATA_NETWORKS = tuple(
    ip_network(network)
    for network in (
        "169.254.0.0/16",
        "fe80::/10",
        "100.100.100.200/32",
        "168.63.129.16/32",
        "192.0.0.192/32",
        "fd00:ec2::254/128",
        "fd20:ce::254/128",
    )
)
# IPv6 addresses that end with the IPv4 address that they represent: translated addresses (with a
# well-known prefix, a prefix of the local network, or none) and the old "compatible" form.
_TRANSLATED = tuple(
    IPv6Network(network)
    for network in ("64:ff9b::/96", "64:ff9b:1::/96", "::ffff:0:0:0/96", "::/96")
)
# All IPv6 addresses that are assigned for routing. Python considers some other addresses public as
# well.
_ROUTED = IPv6Network("2000::/3")


# Underscores are no part of host names, but of names that containers and clusters give.
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")

# The setting that lists the hosts of evaluators that may be called although they are not public.
EVALUATOR_SETTING = "EVALUATOR_HOSTS"


def check_address(
    address: str, allowed_hosts: Collection[str] = (), setting: str = EVALUATOR_SETTING
) -> str:
    """Return the address without a trailing slash, so that a path can be appended. Raises
    ForbiddenAddress.

    No DNS query is made. `allowed_hosts` are exact names or IP addresses, with or without `:port`,
    that may be called although they are not public; messages call their setting `setting`.
    """
    parts = _split_address(address)
    host = (parts.hostname or "").rstrip(".")
    if host in _METADATA_NAMES:
        raise ForbiddenAddress(
            f"{host} is a metadata service and must not be called. Enter another address."
        )
    ip = _literal(host)
    if ip is not None:
        check_ip(ip, host, parts.port, allowed_hosts, setting)
    elif _is_local_name(host) and not _is_listed(host, parts.port, allowed_hosts):
        raise ForbiddenAddress(_explain_unlisted(host, setting))
    return address.strip().rstrip("/")


# What providers add to a base URL.
_CALL_PATHS = re.compile(
    r"/(chat/completions|completions|responses|messages|models(/[^/]*)?)/?$", re.IGNORECASE
)


def check_base_url(address: str, allowed_hosts: Collection[str] = ()) -> str:
    """Return the base URL of an API as `check_address` does. Raises ForbiddenAddress also for the
    address of a call, to which the path would be added a second time."""
    checked = check_address(address, allowed_hosts)
    found = _CALL_PATHS.search(urlsplit(checked).path)
    if found:
        base = checked.removesuffix("/")[: -len(found[0].rstrip("/"))]
        raise ForbiddenAddress(
            f"This is the address of a call. Enter the base URL, {base}: {found[0].rstrip('/')} is "
            "added to it."
        )
    return checked


def _split_address(address: str) -> SplitResult:
    try:
        parts = urlsplit(address.strip())
        port = parts.port
    except ValueError as error:
        raise ForbiddenAddress(f"The address cannot be read: {error}.") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ForbiddenAddress("The address must begin with http:// or https:// and name a host.")
    if port == 0:
        raise ForbiddenAddress("No server has the port 0. Enter another one.")
    if "@" in parts.netloc:
        raise ForbiddenAddress(
            "The address contains a user name or password. Remove it and enter a key variable."
        )
    if parts.query or parts.fragment:
        raise ForbiddenAddress("The address must end before any ? or #.")
    if "\\" in address or any(letter.isspace() for letter in address.strip()):
        raise ForbiddenAddress("The address contains white space or a backslash. Remove it.")
    return parts


def _literal(host: str) -> _IP | None:
    """Return `host` as an IP address, or None if it is a name.

    Other numeric spellings (2130706433, 127.1, 0x7f.1) are refused: the system's own resolver would
    read them as IP addresses. So are names with letters beyond ASCII, which clients may read as
    another name (ⓛocalhost), and names that no host can have.
    """
    try:
        return ip_address(host)
    except ValueError:
        last = host.rpartition(".")[2]
        if last[:1].isdigit() or not last:
            raise ForbiddenAddress(f"{host} is neither a name nor a full IP address.") from None
        if not host.isascii():
            raise ForbiddenAddress(
                f"Write {host} in the ASCII form of such a name, which begins with xn--."
            ) from None
        if len(host) > 253 or not _NAME.fullmatch(host):
            raise ForbiddenAddress(f"{host} cannot be the name of a host. Check it.") from None
        return None


def _is_local_name(host: str) -> bool:
    return host == "localhost" or host.endswith((".localhost", ".local", ".internal"))


def check_ip(
    ip: _IP,
    host: str,
    port: int | None,
    allowed_hosts: Collection[str],
    setting: str = EVALUATOR_SETTING,
) -> None:
    """Raise ForbiddenAddress if the address, to which `host` leads, must not be called."""
    inner = _embedded(ip)
    if any(inner in network for network in _METADATA_NETWORKS) or inner.is_multicast:
        raise ForbiddenAddress(f"{host} leads to {inner}, which must not be called.")
    if not _is_public(inner) and not _is_listed(host, port, allowed_hosts):
        raise ForbiddenAddress(_explain_unlisted(host, setting))


def _is_public(ip: _IP) -> bool:
    return ip.is_global and (isinstance(ip, IPv4Address) or ip in _ROUTED)


def _embedded(ip: _IP) -> _IP:
    """Return the IPv4 address that an IPv6 address represents, or else the address itself."""
    if isinstance(ip, IPv4Address):
        return ip
    bare = IPv6Address(int(ip))  # without its zone id
    if any(bare in network for network in _TRANSLATED):
        return IPv4Address(int(bare) & 0xFFFFFFFF)
    return bare.ipv4_mapped or bare.sixtofour or bare


def _is_listed(host: str, port: int | None, allowed_hosts: Collection[str]) -> bool:
    with_port = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return any(entry.lower().rstrip(".") in {host, with_port} for entry in allowed_hosts)


def _explain_unlisted(host: str, setting: str) -> str:
    return f"{host} is not a public host. If it may be called, add it to {setting}."
