"""The environment variables, each declared once, and how they are read; an invalid value raises an
error.

`python manage.py write_docs` writes the declarations to docs/settings.md.
"""

import os
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured


@dataclass(frozen=True)
class Variable:
    """An environment variable. `meaning` and `unset`, which says what holds without it, are
    Markdown; with "" for `unset`, the `default` says that. A default that depends on other
    variables is given where the variable is read.
    """

    name: str
    meaning: str
    unset: str = ""
    default: str = ""


_NO_SENDER = "blindspot@localhost"
_OWN_MACHINE = "this machine with SQLite and without Redis, otherwise none"
VARIABLE_GROUPS: dict[str, tuple[Variable, ...]] = {
    "Database, worker and files": (
        Variable(
            "DATABASE_URL",
            "PostgreSQL: `postgresql://user:password@host:port/name`",
            "SQLite in `var/`",
        ),
        Variable(
            "REDIS_URL",
            "Redis: `redis://host:port/number`",
            "the worker runs in the server process",
        ),
        Variable("VAR_DIR", "folder for all data created at run time", "`var/` in the checkout"),
        Variable(
            "STATIC_ROOT", "folder for collected style sheets and scripts", "`static/` in `VAR_DIR`"
        ),
        Variable(
            "IMPORT_MEGABYTES",
            "largest file that can be imported in the browser, in MB",
            default="1000",
        ),
        Variable("IMPORT_ROWS", "maximum number of rows in such a file", default="200000"),
    ),
    "The site": (
        Variable(
            "SECRET_KEY",
            "50 random characters or more; required with PostgreSQL or Redis",
            "created in `var/`",
        ),
        Variable(
            "SITE_URL",
            "the public `https://...` address; turns on secure cookies and HSTS, and requires"
            " PostgreSQL",
            "no public address",
        ),
        Variable(
            "ALLOWED_HOSTS",
            "host names of the site, separated by commas",
            "this machine",
            default="localhost,127.0.0.1,[::1]",
        ),
        Variable(
            "DEBUG",
            "1: errors show program code; never if others can reach the server",
            default="0",
        ),
        Variable(
            "CURRENCY",
            "the currency of all prices, caps and costs, as three letters; it is shown and exported"
            " with amounts, never converted",
            default="USD",
        ),
        Variable("API_PER_MINUTE", "API calls that one person may make per minute", default="6000"),
    ),
    "Accounts and e-mail": (
        Variable(
            "NEW_PROJECTS",
            "who can create projects in the browser: `leads` (leads of any project, people whom the"
            " administration allows it, and site admins), or `admins` (site admins alone)",
            default="leads",
        ),
        Variable(
            "SECOND_STEP_REQUIRED",
            "1: leads and site admins must set up two-step sign-in before they can do anything"
            " else",
            default="0",
        ),
        Variable(
            "OPENID_ISSUER",
            "issuer address of an OpenID Connect service for single sign-on, exactly as the service"
            " gives it: `https://id.example/realms/lab`; requires the three variables below",
            "passwords only",
        ),
        Variable("OPENID_CLIENT_ID", "client ID of this site at that service", "no such service"),
        Variable("OPENID_CLIENT_SECRET", "secret of this site at that service", "no such service"),
        Variable(
            "OPENID_NAME",
            "name of that service on the button *Sign in with NAME*",
            "no such service",
        ),
        Variable(
            "EMAIL_URL",
            "mail server: `smtp+tls://user:password@host:587` (also `smtps://`, `smtp://`)",
            "e-mail is printed to the server's output",
        ),
        Variable("EMAIL_FROM", "sender address; required with `EMAIL_URL`", f"`{_NO_SENDER}`"),
    ),
    "Connections to other machines": (
        Variable(
            "EVALUATOR_HOSTS",
            "hosts in private networks that endpoints may use, separated by commas",
            _OWN_MACHINE,
        ),
        Variable(
            "WEBHOOK_HOSTS",
            "hosts in private networks that webhooks may call, separated by commas",
            _OWN_MACHINE,
        ),
    ),
    "Monitoring": (
        Variable(
            "METRICS_TOKEN",
            "a token of at least 20 random characters that Prometheus sends to read `/metrics`",
            "`/metrics` is off",
        ),
        Variable(
            "PROMETHEUS_MULTIPROC_DIR",
            "an empty folder where the processes of one web server share their counters",
            "each process counts for itself",
        ),
    ),
}
VARIABLES = {one.name: one for group in VARIABLE_GROUPS.values() for one in group}

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
    sender: str = _NO_SENDER

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


def read_text(name: str, default: str | None = None) -> str:
    """Return the value of a variable; if it is not set, the default, by default the declared one.
    Raises KeyError for a variable that is not declared in `VARIABLES`."""
    declared = VARIABLES[name]
    return os.environ.get(name, declared.default if default is None else default)


def read_flag(name: str) -> bool:
    """Return True for 1 or true, False for 0 or false. Raises `ImproperlyConfigured` for anything
    else."""
    value = read_text(name).strip().lower()
    if value not in {"0", "1", "true", "false"}:
        raise ImproperlyConfigured(f"{name} is {value!r}: set it to 1 or 0.")
    return value in {"1", "true"}


def read_names(name: str, default: str | None = None) -> list[str]:
    """Return the names between commas; [] for an empty value. Raises `ImproperlyConfigured` for an
    empty name."""
    found = [part.strip() for part in read_text(name, default).split(",")]
    if not all(found) and found != [""]:
        raise ImproperlyConfigured(
            f"{name} contains an empty name: put exactly one comma between names."
        )
    return [part for part in found if part]


def read_count(name: str) -> int:
    """Return a whole number from 1 to 1,000,000,000. Raises `ImproperlyConfigured` for anything
    else."""
    value = read_text(name).strip()
    if not (value.isascii() and value.isdecimal() and 0 < int(value) <= 1_000_000_000):
        raise ImproperlyConfigured(f"{name} is {value!r}: set it to a number from 1 up.")
    return int(value)


def read_address(name: str, schemes: set[str]) -> str:
    """Return a URL that has a host and one of these schemes; "" if unset. Raises
    `ImproperlyConfigured`."""
    value = read_text(name).strip()
    parts = urlsplit(value)
    if value and (parts.scheme not in schemes or not parts.hostname):
        wanted = " or ".join(f"{scheme}://host" for scheme in sorted(schemes))
        raise ImproperlyConfigured(f"{name} is not an address of the form {wanted}.")
    return value


def read_token(name: str) -> str:
    """Return a secret of at least 20 characters; "" if unset. Raises `ImproperlyConfigured` if the
    secret is shorter."""
    value = read_text(name).strip()
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
    issuer = read_text("OPENID_ISSUER").strip()
    given = {
        name: read_text(name).strip()
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
