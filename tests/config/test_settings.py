"""What the environment may say: bad values are refused with a message that names the variable."""

import os
import runpy
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import environment

FILE = Path(__file__).resolve().parents[2] / "config" / "settings.py"
OPENID = {
    "OPENID_ISSUER": "https://id.example",
    "OPENID_CLIENT_ID": "blindspot",
    "OPENID_CLIENT_SECRET": "secret",
    "OPENID_NAME": "Lab account",
}
POSTGRESQL = "postgresql://blindspot@127.0.0.1/blindspot"
KEY = "k" * 50

Settings = Callable[..., dict[str, Any]]


@pytest.fixture
def settings_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Settings:
    """The settings that an environment with these variables and no others gives."""

    monkeypatch.setattr(tempfile, "tempdir", None)

    def read(**variables: str) -> dict[str, Any]:
        for name in environment.VARIABLES:
            monkeypatch.delenv(name, raising=False)
        for name, value in {"VAR_DIR": str(tmp_path), **variables}.items():
            monkeypatch.setenv(name, value)
        return runpy.run_path(str(FILE))

    return read


DEPLOYED = {"SITE_URL": "https://a.example", "DATABASE_URL": POSTGRESQL, "SECRET_KEY": KEY}

BAD = [
    ("VAR_DIR", {"VAR_DIR": "/dev/null"}),
    ("DEBUG", {"DEBUG": "maybe"}),
    ("DEBUG", {"DEBUG": ""}),
    ("ALLOWED_HOSTS", {"ALLOWED_HOSTS": "one.example,,two.example"}),
    ("ALLOWED_HOSTS", {"ALLOWED_HOSTS": "one.example,"}),
    ("EVALUATOR_HOSTS", {"EVALUATOR_HOSTS": ","}),
    ("WEBHOOK_HOSTS", {"WEBHOOK_HOSTS": ","}),
    ("DATABASE_URL", {"DATABASE_URL": "somewhere"}),
    ("DATABASE_URL", {"DATABASE_URL": "mysql://u@h/name"}),
    ("DATABASE_URL", {"DATABASE_URL": "oracle9://u@h/name"}),
    ("DATABASE_URL", {"DATABASE_URL": "postgresql://u@h:port/name", "SECRET_KEY": KEY}),
    ("DATABASE_URL", {"DATABASE_URL": "postgresql://u@h:5432", "SECRET_KEY": KEY}),
    ("REDIS_URL", {"REDIS_URL": "localhost:6379", "SECRET_KEY": KEY}),
    ("REDIS_URL", {"REDIS_URL": "http://localhost", "SECRET_KEY": KEY}),
    ("REDIS_URL", {"REDIS_URL": "redis://", "SECRET_KEY": KEY}),
    ("SITE_URL", {"SITE_URL": "blindspot.example", "DATABASE_URL": POSTGRESQL, "SECRET_KEY": KEY}),
    ("SITE_URL", {"SITE_URL": "https://blindspot.example"}),
    ("DEBUG", {**DEPLOYED, "DEBUG": "1"}),
    ("SECRET_KEY", {"SECRET_KEY": "short"}),
    ("SECRET_KEY", {"DATABASE_URL": POSTGRESQL}),
    ("SECRET_KEY", {"REDIS_URL": "redis://127.0.0.1"}),
    ("EMAIL_URL", {"EMAIL_URL": "mail.example", "EMAIL_FROM": "tool@mail.example"}),
    ("EMAIL_URL", {"EMAIL_URL": "smtps://mail.example:no", "EMAIL_FROM": "tool@mail.example"}),
    ("EMAIL_FROM", {"EMAIL_URL": "smtps://mail.example"}),
    ("EMAIL_FROM", {"EMAIL_URL": "smtps://mail.example", "EMAIL_FROM": "somebody"}),
    *((name, {**OPENID, name: ""}) for name in OPENID),
    ("OPENID_ISSUER", OPENID | {"OPENID_ISSUER": "id.example"}),
    ("OPENID_ISSUER", OPENID | {"OPENID_ISSUER": "http://id.example"}),
    ("CURRENCY", {"CURRENCY": "euro"}),
    ("CURRENCY", {"CURRENCY": "€"}),
    ("OPENID_ISSUER", OPENID | {"OPENID_ISSUER": "ftp://localhost"}),
    ("OPENID_ISSUER", OPENID | {"OPENID_ISSUER": "https://id.example/#part"}),
    ("OPENID_ISSUER", OPENID | {"OPENID_ISSUER": "https://id.example/?tenant=1"}),
    (
        "OPENID_ISSUER",
        OPENID | {"OPENID_ISSUER": "https://id.example/.well-known/openid-configuration"},
    ),
]


@pytest.mark.parametrize(("name", "variables"), BAD, ids=lambda case: str(case))
def test_a_bad_value_is_refused_and_the_message_names_the_variable(
    settings_from: Settings, name: str, variables: dict[str, str]
) -> None:
    with pytest.raises(ImproperlyConfigured, match=name):
        settings_from(**variables)


def test_no_message_shows_a_password(settings_from: Settings) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        settings_from(DATABASE_URL="mysql://me:hunter2@h/name")
    assert "hunter2" not in str(refused.value)


def test_nothing_set_means_sqlite_and_an_embedded_worker(
    settings_from: Settings, tmp_path: Path
) -> None:
    settings = settings_from()
    assert settings["EMBEDDED"]
    assert settings["DEBUG"] is False
    assert settings["DATABASES"]["default"]["NAME"] == str(tmp_path / "blindspot.sqlite3")
    assert settings["CELERY_BROKER_URL"].startswith("memory://")


def test_the_embedded_default_makes_a_secret_key_once_and_keeps_it_from_others(
    settings_from: Settings, tmp_path: Path
) -> None:
    key = settings_from()["SECRET_KEY"]
    assert len(key) >= 50
    assert settings_from()["SECRET_KEY"] == key
    assert stat.S_IMODE((tmp_path / "secret_key").stat().st_mode) == 0o600


def test_what_is_kept_is_for_no_other_user_of_the_machine(
    settings_from: Settings, tmp_path: Path
) -> None:
    settings_from(VAR_DIR=str(tmp_path / "new" / "var"))
    assert (tmp_path / "new" / "var").stat().st_mode & 0o077 == 0


def test_what_is_written_into_the_folder_of_somebody_else_is_for_no_other_user_either(
    settings_from: Settings, tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    before = os.umask(0o022)
    try:
        settings_from(VAR_DIR=str(tmp_path))
        (tmp_path / "imports").mkdir()
        (tmp_path / "blindspot.sqlite3").touch()
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    folders = {"imports": 0o700, "scratch": 0o700}
    assert modes == folders | {"blindspot.sqlite3": 0o600, "secret_key": 0o600}


def test_temporary_files_are_with_the_data_and_not_in_the_memory_that_tmp_may_be(
    settings_from: Settings, tmp_path: Path
) -> None:
    settings = settings_from(VAR_DIR=str(tmp_path))
    with tempfile.NamedTemporaryFile() as made:
        assert Path(made.name).parent == tmp_path / "scratch" == settings["FILE_UPLOAD_TEMP_DIR"]
    assert (tmp_path / "scratch").stat().st_mode & 0o077 == 0


def test_postgresql_and_redis_mean_a_deployment_with_workers_of_its_own(
    settings_from: Settings,
) -> None:
    settings = settings_from(DATABASE_URL=POSTGRESQL, REDIS_URL="redis://r/3", SECRET_KEY=KEY)
    assert not settings["EMBEDDED"]
    assert settings["CELERY_BROKER_URL"] == "redis://r/3"
    assert settings["EVALUATOR_HOSTS"] == settings["WEBHOOK_HOSTS"] == []
    # A connection that broke meanwhile is made anew.
    assert settings["DATABASES"]["default"]["CONN_HEALTH_CHECKS"] is True


def test_a_site_behind_tls_sends_cookies_over_tls_alone(settings_from: Settings) -> None:
    settings = settings_from(
        DATABASE_URL=POSTGRESQL, SECRET_KEY=KEY, SITE_URL="https://blindspot.example"
    )
    assert settings["SESSION_COOKIE_SECURE"]
    assert settings["CSRF_COOKIE_SECURE"]
    assert settings["CSRF_TRUSTED_ORIGINS"] == ["https://blindspot.example"]


def test_no_script_or_style_may_be_inline(settings_from: Settings) -> None:
    policy = settings_from()["CONTENT_SECURITY_POLICY"]["DIRECTIVES"]
    sources = {str(source) for each in policy.values() for source in each}
    assert not any("unsafe" in source for source in sources)


def test_without_a_mail_server_e_mail_is_written_to_the_output(settings_from: Settings) -> None:
    assert settings_from()["EMAIL_BACKEND"] == "django.core.mail.backends.console.EmailBackend"


@pytest.mark.parametrize(
    ("scheme", "port", "tls", "ssl"),
    [("smtp", 25, False, False), ("smtp+tls", 587, True, False), ("smtps", 465, False, True)],
)
def test_a_mail_server_is_named_by_its_address(
    settings_from: Settings, scheme: str, port: int, tls: bool, ssl: bool
) -> None:
    url = f"{scheme}://me%40mail.example:a%2Fb@mail.example"
    settings = settings_from(EMAIL_URL=url, EMAIL_FROM="tool@mail.example")
    assert settings["EMAIL_BACKEND"] == "django.core.mail.backends.smtp.EmailBackend"
    assert (settings["EMAIL_HOST"], settings["EMAIL_PORT"]) == ("mail.example", port)
    assert (settings["EMAIL_HOST_USER"], settings["EMAIL_HOST_PASSWORD"]) == (
        "me@mail.example", "a/b",
    )  # fmt: skip
    assert (settings["EMAIL_USE_TLS"], settings["EMAIL_USE_SSL"]) == (tls, ssl)
    assert settings["DEFAULT_FROM_EMAIL"] == "tool@mail.example"


def test_a_mail_server_may_ask_for_no_password_and_listen_elsewhere(
    settings_from: Settings,
) -> None:
    url = "smtp://mail.example:2525"
    settings = settings_from(EMAIL_URL=url, EMAIL_FROM="tool@mail.example")
    assert (settings["EMAIL_HOST"], settings["EMAIL_PORT"]) == ("mail.example", 2525)
    assert (settings["EMAIL_HOST_USER"], settings["EMAIL_HOST_PASSWORD"]) == ("", "")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8080", "[::1]"])
def test_a_service_to_sign_in_by_may_be_on_this_machine_without_tls(
    settings_from: Settings, host: str
) -> None:
    settings = settings_from(**OPENID | {"OPENID_ISSUER": f"http://{host}"})
    assert settings["OPENID"].issuer == f"http://{host}"


def test_only_behind_a_proxy_is_its_word_on_the_address_taken(settings_from: Settings) -> None:
    assert settings_from()["ALLAUTH_TRUSTED_PROXY_COUNT"] == 0
    site = {"DATABASE_URL": POSTGRESQL, "SECRET_KEY": KEY, "SITE_URL": "https://blindspot.example"}
    assert settings_from(**site)["ALLAUTH_TRUSTED_PROXY_COUNT"] == 1


def test_people_sign_in_by_another_service_only_where_one_is_named(settings_from: Settings) -> None:
    assert settings_from()["OPENID"] is None
    found = settings_from(**OPENID)["OPENID"]
    assert (found.issuer, found.client, found.name) == (
        "https://id.example",
        "blindspot",
        "Lab account",
    )


def declare(monkeypatch: pytest.MonkeyPatch, name: str, default: str = "") -> None:
    """Declare one more variable: no other one can be read."""
    made = environment.Variable(name, "", default=default)
    monkeypatch.setitem(environment.VARIABLES, name, made)


def test_a_variable_that_is_not_declared_cannot_be_read() -> None:
    with pytest.raises(KeyError, match="SOME_COUNT"):
        environment.read_count("SOME_COUNT")


def test_variables_are_read_by_their_declarations_alone() -> None:
    for module in ("settings", "environment"):
        code = FILE.with_stem(module).read_text(encoding="utf-8")
        assert code.count("os.environ") == (module == "environment")
        assert "getenv" not in code


def test_every_declared_variable_is_read(
    settings_from: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = set()

    class Noted(dict[str, environment.Variable]):
        def __getitem__(self, name: str) -> environment.Variable:
            asked.add(name)
            return super().__getitem__(name)

    monkeypatch.setattr(environment, "VARIABLES", Noted(environment.VARIABLES))
    settings_from()
    assert asked == set(environment.VARIABLES)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1", 1),
        (" 7 ", 7),
        ("1000000000", 10**9),
        ("", None),
        ("0", None),
        ("-1", None),
        ("1.5", None),
        ("1000000001", None),
        ("٣", None),
    ],
)
def test_a_count_is_a_whole_number_from_one_up(
    monkeypatch: pytest.MonkeyPatch, text: str, count: int | None
) -> None:
    declare(monkeypatch, "SOME_COUNT", default="5")
    monkeypatch.setenv("SOME_COUNT", text)
    if count is None:
        with pytest.raises(ImproperlyConfigured, match="SOME_COUNT is"):
            environment.read_count("SOME_COUNT")
    else:
        assert environment.read_count("SOME_COUNT") == count
    monkeypatch.delenv("SOME_COUNT")
    assert environment.read_count("SOME_COUNT") == 5


def test_a_token_has_twenty_characters_or_more(monkeypatch: pytest.MonkeyPatch) -> None:
    declare(monkeypatch, "SOME_TOKEN")
    monkeypatch.setenv("SOME_TOKEN", "x" * 20)
    assert environment.read_token("SOME_TOKEN") == "x" * 20
    monkeypatch.setenv("SOME_TOKEN", f" {'x' * 19} ")
    with pytest.raises(ImproperlyConfigured, match="SOME_TOKEN is too short"):
        environment.read_token("SOME_TOKEN")
    monkeypatch.delenv("SOME_TOKEN")
    assert environment.read_token("SOME_TOKEN") == ""


@pytest.mark.parametrize(
    ("text", "names"), [("a, b", ["a", "b"]), ("", []), ("a,,b", None), (",", None), ("a,", None)]
)
def test_names_stand_with_one_comma_between_them(
    monkeypatch: pytest.MonkeyPatch, text: str, names: list[str] | None
) -> None:
    declare(monkeypatch, "SOME_NAMES")
    monkeypatch.setenv("SOME_NAMES", text)
    if names is None:
        with pytest.raises(ImproperlyConfigured, match="empty name"):
            environment.read_names("SOME_NAMES")
    else:
        assert environment.read_names("SOME_NAMES") == names


@pytest.mark.parametrize(
    ("text", "flag"), [("1", True), ("TRUE", True), ("0", False), ("false", False), ("yes", None)]
)
def test_a_switch_is_1_or_0(monkeypatch: pytest.MonkeyPatch, text: str, flag: bool | None) -> None:
    declare(monkeypatch, "SOME_SWITCH", default="0")
    monkeypatch.setenv("SOME_SWITCH", text)
    if flag is None:
        with pytest.raises(ImproperlyConfigured, match="set it to 1 or 0"):
            environment.read_flag("SOME_SWITCH")
    else:
        assert environment.read_flag("SOME_SWITCH") is flag
