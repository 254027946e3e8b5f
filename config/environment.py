"""Read environment variables; an invalid value raises an error."""

import os
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

# The schemes of mail servers and their default ports: without TLS, with STARTTLS, and with TLS from
# the start.
MAIL_PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465}


@dataclass(frozen=True)
class Mail:
    """The mail server. Without a host, e-mail is printed to the server's output."""

    host: str = ""
    port: int = 0
    user: str = ""
    password: str = ""
    scheme: str = ""
    sender: str = "blindspot@localhost"

    @property
    def backend(self) -> str:
        """The path of Django's e-mail backend: SMTP, or the console if there is no host."""
        return f"django.core.mail.backends.{'smtp' if self.host else 'console'}.EmailBackend"


@dataclass(frozen=True)
class OpenID:
    """The OpenID service for single sign-on, with this site's client id and secret."""

    issuer: str
    client: str
    secret: str
    name: str


def read_flag(name: str, default: str) -> bool:
    """Return True for 1 or true, False for 0 or false. Raises `ImproperlyConfigured` for anything
    else."""
    value = os.environ.get(name, default).strip().lower()
    if value not in {"0", "1", "true", "false"}:
        raise ImproperlyConfigured(f"{name} is {value!r}: set it to 1 or 0.")
    return value in {"1", "true"}


def read_names(name: str, default: str) -> list[str]:
    """Return the names between commas; [] for an empty value. Raises `ImproperlyConfigured` for an
    empty name."""
    found = [part.strip() for part in os.environ.get(name, default).split(",")]
    if not all(found) and found != [""]:
        raise ImproperlyConfigured(
            f"{name} contains an empty name: put exactly one comma between names."
        )
    return [part for part in found if part]


def read_count(name: str, default: int) -> int:
    """Return a whole number from 1 to 1,000,000,000. Raises `ImproperlyConfigured` for anything
    else."""
    value = os.environ.get(name, str(default)).strip()
    if not (value.isascii() and value.isdecimal() and 0 < int(value) <= 1_000_000_000):
        raise ImproperlyConfigured(f"{name} is {value!r}: set it to a number from 1 up.")
    return int(value)


def read_address(name: str, schemes: set[str]) -> str:
    """Return a URL that has a host and one of these schemes; "" if unset. Raises
    `ImproperlyConfigured`."""
    value = os.environ.get(name, "").strip()
    parts = urlsplit(value)
    if value and (parts.scheme not in schemes or not parts.hostname):
        wanted = " or ".join(f"{scheme}://host" for scheme in sorted(schemes))
        raise ImproperlyConfigured(f"{name} is not an address of the form {wanted}.")
    return value


def read_token(name: str) -> str:
    """Return a secret of at least 20 characters; "" if unset. Raises `ImproperlyConfigured` if the
    secret is shorter."""
    value = os.environ.get(name, "").strip()
    if value and len(value) < 20:
        raise ImproperlyConfigured(f"{name} is too short: use 20 random characters or more.")
    return value


def read_mail(url: str, sender: str) -> Mail:
    """Return the mail settings from EMAIL_URL and EMAIL_FROM."""
    if not url:
        return Mail(sender=sender or Mail.sender)
    if "@" not in sender:
        raise ImproperlyConfigured("EMAIL_URL is set, so EMAIL_FROM is required too: name@host.")
    parts = urlsplit(url)
    try:
        port = parts.port or MAIL_PORTS[parts.scheme]
    except ValueError as error:
        raise ImproperlyConfigured("The port in EMAIL_URL is not a number.") from error
    return Mail(
        host=parts.hostname or "",
        port=port,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        scheme=parts.scheme,
        sender=sender,
    )


def read_openid() -> OpenID | None:
    """Return the settings of OpenID Connect; None if none of the variables is set. Either all or
    none of them must be set."""
    issuer = os.environ.get("OPENID_ISSUER", "").strip()
    given = {
        name: os.environ.get(name, "").strip()
        for name in ("OPENID_CLIENT_ID", "OPENID_CLIENT_SECRET", "OPENID_NAME")
    }
    if not issuer:
        for name in (name for name, value in given.items() if value):
            raise ImproperlyConfigured(f"{name} is set, so OPENID_ISSUER is required too.")
        return None
    parts = urlsplit(issuer)
    near = parts.hostname in {"localhost", "127.0.0.1", "::1"}
    if parts.scheme != "https" and not (parts.scheme == "http" and near):
        raise ImproperlyConfigured("OPENID_ISSUER is not an address of the form https://host.")
    if parts.query or parts.fragment or ".well-known" in parts.path:
        raise ImproperlyConfigured("OPENID_ISSUER must not contain `/.well-known/`, ? or #.")
    for name, value in given.items():
        if not value:
            raise ImproperlyConfigured(f"OPENID_ISSUER is set, so {name} is required too.")
    return OpenID(issuer, *given.values())
