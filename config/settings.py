"""Settings, read only from the environment; an invalid value raises an error.

Each variable is declared in `config/environment.py`; docs/settings.md lists them.
"""

import hashlib
import os
import re
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import dj_database_url
from csp.constants import NONCE, NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from config.environment import MAIL_PORTS, VARIABLE_GROUPS
from config.environment import read_address as _address
from config.environment import read_count as _count
from config.environment import read_flag as _flag
from config.environment import read_mail as _mail
from config.environment import read_names as _names
from config.environment import read_openid as _openid
from config.environment import read_text as _text
from config.environment import read_token as _token

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = Path(_text("VAR_DIR", str(BASE_DIR / "var")))
# For the page of the documentation that lists them.
ENVIRONMENT_VARIABLES = VARIABLE_GROUPS


def _database() -> dict[str, Any]:
    default = f"sqlite:///{VAR_DIR / 'blindspot.sqlite3'}"
    try:
        database: dict[str, Any] = {**dj_database_url.parse(_text("DATABASE_URL") or default)}
    except (ValueError, KeyError) as error:
        raise ImproperlyConfigured(
            "DATABASE_URL cannot be read: use postgresql://user:password@host:port/name"
            " or sqlite:///path."
        ) from error
    if database["ENGINE"].endswith("sqlite3"):
        database["NAME"] = str(database["NAME"])
        Path(database["NAME"]).parent.mkdir(parents=True, exist_ok=True)
        # WAL lets readers continue during a write. An immediate transaction takes the write lock at
        # its start; otherwise a transaction that reads and then writes could fail halfway.
        database["OPTIONS"] = {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
            # 16 MB per thread, since each thread keeps its own connection.
            " PRAGMA cache_size=-16000; PRAGMA temp_store=MEMORY;",
        }
        # Opening a connection takes longer than the queries of a request, because of files,
        # pragmas, functions and the cache.
        database["CONN_MAX_AGE"] = 60
    elif database["ENGINE"].endswith("postgresql"):
        if not database["NAME"]:
            raise ImproperlyConfigured("DATABASE_URL has no database name: end it with /name.")
        database["ENGINE"] = "config.postgresql"
        database["CONN_MAX_AGE"] = 60
        database["CONN_HEALTH_CHECKS"] = True
        # `prepare_threshold` affects only statements run through `sql.prepared_cursor`; all others
        # are planned at each call. With the timeouts, the loss of a server is noticed after seconds
        # instead of minutes.
        given = {"prepare_threshold": 5, "connect_timeout": 5, "tcp_user_timeout": 10_000}
        database["OPTIONS"] = given | database.get("OPTIONS", {})
    else:
        raise ImproperlyConfigured("DATABASE_URL is for neither PostgreSQL nor SQLite.")
    return database


# Contains the database and the files of imports and exports. No other user of the machine may read
# what is written, also if somebody else created the folder itself.
os.umask(0o077)
# Uploads and what is unpacked may be large, and /tmp may be memory, as it is in containers.
FILE_UPLOAD_TEMP_DIR = VAR_DIR / "scratch"
try:
    FILE_UPLOAD_TEMP_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
except OSError as error:
    raise ImproperlyConfigured(
        f"VAR_DIR is {VAR_DIR}, where nothing can be written: {error.strerror}. Set it to a folder "
        "of the user who runs this."
    ) from error
tempfile.tempdir = str(FILE_UPLOAD_TEMP_DIR)
DATABASES = {"default": _database()}
REDIS_URL = _address("REDIS_URL", {"redis", "rediss"})
# Several deployments may share a Redis. Each deployment has its own database, so the prefix depends
# on the database.
REDIS_PREFIX = (
    "blindspot:" + hashlib.sha256(str(DATABASES["default"]["NAME"]).encode()).hexdigest()[:12]
)
SITE_URL = _address("SITE_URL", {"https", "http"})
ON_SQLITE = DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3"
EMBEDDED = ON_SQLITE and not REDIS_URL
if ON_SQLITE and SITE_URL:
    raise ImproperlyConfigured("SITE_URL is set: a deployment needs PostgreSQL in DATABASE_URL.")


def _secret_key() -> str:
    key = _text("SECRET_KEY")
    if key:
        if len(key) < 50:
            raise ImproperlyConfigured("SECRET_KEY is too short: use 50 random characters or more.")
        return key
    if not EMBEDDED:
        raise ImproperlyConfigured(
            "With PostgreSQL or Redis, SECRET_KEY is required: set it to 50 random characters."
        )
    return _read_or_make_key(VAR_DIR / "secret_key")


def _read_or_make_key(path: Path) -> str:
    """Return the key in this file. It is created on first use, atomically, by only one process."""
    if not path.exists():
        part = path.with_name(f"{path.name}.{os.getpid()}")
        part.touch(mode=0o600)
        part.write_text(secrets.token_urlsafe(64), encoding="ascii")
        with suppress(FileExistsError):
            os.link(part, path)
        part.unlink()
    return path.read_text(encoding="ascii")


SECRET_KEY = _secret_key()
DEBUG = _flag("DEBUG")
if DEBUG and SITE_URL:
    raise ImproperlyConfigured(
        "DEBUG=1 shows program code to everybody who gets an error, and SITE_URL says that this is "
        "a deployment. Set DEBUG=0, or leave SITE_URL out to try something on your own machine."
    )
ALLOWED_HOSTS = _names("ALLOWED_HOSTS")
_OWN_HOSTS = "localhost,127.0.0.1,::1" if EMBEDDED else ""
EVALUATOR_HOSTS = _names("EVALUATOR_HOSTS", _OWN_HOSTS)
WEBHOOK_HOSTS = _names("WEBHOOK_HOSTS", _OWN_HOSTS)

INSTALLED_APPS = [
    "annotation",
    "judging",
    "operation",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "csp",
    "django_filters",
    "django_htmx",
    "template_partials",
    "rest_framework",
    "drf_spectacular",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "annotation.apps.UserSessions",
    # Installed even if no service is configured, so that one can be configured at any time.
    "allauth.socialaccount",
]
MIDDLEWARE = [
    # Outermost middleware, so that requests refused by other middleware are logged too.
    "operation.middleware.request_middleware",
    # Runs before the middleware below, so that responses that refuse a request also have the
    # policy.
    "csp.middleware.CSPMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "config.no_store.no_store_middleware",
    # Before anything that asks who sent the request.
    "config.early_bodies.EarlyBodyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "config.error_pages.SignedOutMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "config.mfa.MFAMiddleware",
    "config.etags.etag_middleware",
]
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
                "annotation.accounts.display.display_context",
                "config.openid.views.openid_context",
                "config.mfa.mfa_context",
                "operation.docs.views.docs_context",
            ],
        },
    }
]

# Sign-in limits are counted in the default cache, shared by all processes if Redis is configured.
# It also remembers which items were sent ahead.
# Expensive results are cached per process (`annotation.db.cache`).
_IN_PROCESS = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
_SHARED = {
    "BACKEND": "config.redis_cache.SharedCache",
    "LOCATION": REDIS_URL,
    "KEY_PREFIX": f"{REDIS_PREFIX}:cache",
    "OPTIONS": {
        "serializer": "config.redis_cache.JSONSerializer",
        "socket_connect_timeout": 1,
        "socket_timeout": 1,
    },
}
CACHES = {"default": _SHARED if REDIS_URL else _IN_PROCESS, "process": _IN_PROCESS}

AUTH_USER_MODEL = "annotation.Account"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}Validator"}
    for name in ("UserAttributeSimilarity", "MinimumLength", "CommonPassword")
]
PASSWORDS_IN_WORDS = "At least 8 characters, not a common word and not similar to your name."
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
ACCOUNT_ADAPTER = "config.auth_forms.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username", "email"}
# There is no sign-up. Accounts are created through invitations, whose links only invited people
# have.
ACCOUNT_SIGNUP_FIELDS = ["username*", "email", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
# A password reset shows the same page whether or not the account exists. Only accounts get e-mail.
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False
ACCOUNT_EMAIL_SUBJECT_PREFIX = ""
ACCOUNT_SESSION_REMEMBER = True
# Wrong passwords: from an address, for an account from one address, and for an account from
# anywhere. The last is much higher, so that nobody can lock out somebody else with a few attempts.
ACCOUNT_RATE_LIMITS = {
    "login_failed": "10/m/ip,5/5m/key",
    "login_failed_for_account": "100/h/key",
}
ACCOUNT_FORMS = {
    "login": "config.auth_forms.LoginForm",
    "reauthenticate": "config.auth_forms.ReauthenticateForm",
    "change_password": "config.auth_forms.ChangePasswordForm",
    "set_password": "config.auth_forms.SetPasswordForm",
    "reset_password": "config.auth_forms.ResetPasswordForm",
    "reset_password_from_key": "config.auth_forms.ResetPasswordKeyForm",
}
SECOND_STEP_REQUIRED: bool = _flag("SECOND_STEP_REQUIRED")
NEW_PROJECTS = _text("NEW_PROJECTS")
if NEW_PROJECTS not in ("leads", "admins"):
    raise ImproperlyConfigured(f"NEW_PROJECTS is {NEW_PROJECTS!r}; use leads or admins.")
# The currency of all prices, caps and costs. Amounts are shown with it and never converted.
CURRENCY = _text("CURRENCY").strip()
if not re.fullmatch(r"[A-Z]{3}", CURRENCY):
    raise ImproperlyConfigured(f"CURRENCY is {CURRENCY!r}; use a code of three letters, as in EUR.")
MFA_ADAPTER = "config.mfa.MFAAdapter"
# The code before the current one and the next one are accepted too: a code may be typed while it
# ends, and telephones may be half a minute wrong. `config.mfa` accepts each of them once.
MFA_TOTP_TOLERANCE = 1
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
# Without an address of its own, the site is on somebody's machine, without https.
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not SITE_URL
# E-mail addresses come from invitations and are not confirmed.
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_FORMS = {
    "activate_totp": "config.mfa.ActivateForm",
    "authenticate": "config.mfa.AuthenticateForm",
    "reauthenticate": "config.mfa.MFAReauthenticateForm",
    "add_webauthn": "config.mfa.AddPasskeyForm",
    "authenticate_webauthn": "config.mfa.PasskeyForm",
    "reauthenticate_webauthn": "config.mfa.PasskeyReauthenticateForm",
}
OPENID = _openid()
SOCIALACCOUNT_ADAPTER = "config.openid.gate.OpenIDAccountAdapter"
SOCIALACCOUNT_REQUESTS_TIMEOUT = 5
# Somebody who finds an open session must not be able to link an account of their own to it.
SOCIALACCOUNT_REAUTHENTICATION_REQUIRED = True
# Limits are counted per client address. Behind a proxy, the address is taken from a header.
ALLAUTH_TRUSTED_PROXY_COUNT = 1 if SITE_URL else 0

MAIL = _mail(_address("EMAIL_URL", set(MAIL_PORTS)), _text("EMAIL_FROM").strip())
EMAIL_BACKEND, DEFAULT_FROM_EMAIL = MAIL.backend, MAIL.sender
EMAIL_HOST, EMAIL_PORT = MAIL.host, MAIL.port
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = MAIL.user, MAIL.password
EMAIL_USE_TLS, EMAIL_USE_SSL = MAIL.scheme == "smtp+tls", MAIL.scheme == "smtps"
EMAIL_TIMEOUT = 10

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True

# A correction may be as long as an imported field, and URL encoding may triple its size.
DATA_UPLOAD_MAX_MEMORY_SIZE = 4_000_000
IMPORT_BYTES: int = _count("IMPORT_MEGABYTES") * 1_000_000
IMPORT_ROWS: int = _count("IMPORT_ROWS")
FILE_UPLOAD_HANDLERS = [
    "annotation.importing.upload_limits.BoundedUploadHandler",
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "django.core.files.uploadhandler.TemporaryFileUploadHandler",
]

STATIC_URL = "static/"
STATIC_ROOT = Path(_text("STATIC_ROOT", str(VAR_DIR / "static")))
STATICFILES_DIRS = [BASE_DIR / "static", ("docs/pictures", BASE_DIR / "docs" / "pictures")]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if EMBEDDED or DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
# The embedded default serves static files from their source folders, without collectstatic.
WHITENOISE_USE_FINDERS = EMBEDDED or DEBUG
# Scripts import others by names without a digest: a page must not mix those of two releases. Files
# with a digest are kept all the same.
WHITENOISE_MAX_AGE = 0

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF, NONCE],
        "style-src": [SELF, NONCE],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "worker-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "object-src": [NONE],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SESSION_ENGINE = "annotation.accounts.sessions"
SESSION_COOKIE_HTTPONLY = True
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "config.error_pages.csrf_failure"
if SITE_URL.startswith("https://"):
    SECURE_SSL_REDIRECT = True
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)$"]
    SECURE_HSTS_SECONDS = 31_536_000
    SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    SECURE_HSTS_PRELOAD = True
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True
    CSRF_TRUSTED_ORIGINS = [SITE_URL.rstrip("/")]

API_PER_MINUTE: int = _count("API_PER_MINUTE")
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "annotation.accounts.tokens.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": [
        "rest_framework.permissions.IsAuthenticated",
        "config.scopes.TokenHasScope",
    ],
    "DEFAULT_THROTTLE_CLASSES": ["config.limits.PerMinute"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["config.parsers.BoundedJSONParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "config.negotiation.SingleFormatNegotiation",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "annotation.api.responses.handle_exception",
    "DEFAULT_PAGINATION_CLASS": "rest_framework.pagination.LimitOffsetPagination",
    "PAGE_SIZE": 100,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Blindspot",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "DEFAULT_GENERATOR_CLASS": "config.openapi.SchemaGenerator",
    # Bodies have schemas of their own: there, a text that may not be empty has a smallest length.
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "StateEnum": "annotation.jobs.models.Job.State",
        "DeliveryStateEnum": "judging.webhooks.models.Delivery.State",
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "config.openapi.add_token_scopes",
        "config.openapi.add_field_selection",
        "config.openapi.close_bodies",
        "config.openapi.add_problems",
    ],
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAuthenticated"],
}

CELERY_BROKER_URL = REDIS_URL or "memory://localhost/"
CELERY_BROKER_TRANSPORT_OPTIONS = (
    # Without timeouts, a page that sends a message would wait as long as Redis hangs.
    {"visibility_timeout": 3600, "socket_connect_timeout": 1, "socket_timeout": 2}
    if REDIS_URL
    else {"polling_interval": 0.1}
)
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A Redis whose disk is full, or that has just become a replica, answers but refuses messages.
# Without this, the worker would end, and with it all work that it finds itself.
CELERY_BROKER_CHANNEL_ERROR_RETRY = True
# A message only wakes a worker up. If it cannot be sent at once, it is dropped: every worker polls
# for due work itself, and a page must never wait for a broker that is down.
CELERY_TASK_PUBLISH_RETRY = False

METRICS_TOKEN = _token("METRICS_TOKEN")
# The folder where the processes of a web server share their counters.
if _counts := _text("PROMETHEUS_MULTIPROC_DIR"):
    Path(_counts).mkdir(parents=True, exist_ok=True)

# JSON lines for programs, readable lines for people who run the embedded default.
FOR_PEOPLE = EMBEDDED or DEBUG
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "operation.logs.PlainFormatter" if FOR_PEOPLE else "operation.logs.JSONFormatter"
        }
    },
    "filters": {"unsaid": {"()": "operation.logs.DuplicateFilter"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": "INFO"},
    "loggers": {
        "django.request": {"filters": [] if FOR_PEOPLE else ["unsaid"]},
        # Django's own handlers would print lines twice, and e-mail texts.
        "django": {"handlers": [], "level": "INFO"},
        "django.server": {"handlers": [], "level": "INFO", "propagate": True},
        # Waitress warns about every request that waits for a thread, which is normal with eight
        # users.
        "waitress.queue": {"level": "ERROR"},
        "request": {"level": "WARNING" if FOR_PEOPLE else "INFO"},
    },
}
