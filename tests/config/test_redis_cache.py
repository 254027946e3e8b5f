"""Limits that processes share, and what becomes of them without Redis."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from django.core.cache import caches
from django.core.cache.backends.redis import RedisCache
from redis.exceptions import OutOfMemoryError

from config import redis_cache
from config.redis_cache import JSONSerializer, SharedCache

ROOT = Path(__file__).resolve().parents[2]
# Port 1 answers nobody.
NOWHERE = "redis://127.0.0.1:1/0"


def cache_at(url: str, prefix: str = "") -> SharedCache:
    options = {"serializer": JSONSerializer, "socket_connect_timeout": 1}
    prefix = prefix or f"test-{uuid4()}"
    return SharedCache(url, {"KEY_PREFIX": prefix, "OPTIONS": options})


@pytest.fixture
def shared(redis_url: str) -> Iterator[SharedCache]:
    cache = cache_at(redis_url)
    yield cache
    cache.clear()


def test_plain_values_come_back_as_they_were(shared: SharedCache) -> None:
    shared.set("history", [1.5, 2.25], 60)
    shared.set("number", 3, 60)
    assert shared.get("history") == [1.5, 2.25]
    assert shared.incr("number") == 4
    assert shared.add("number", 1) is False
    assert shared.has_key("number")


def test_what_is_no_plain_value_is_never_run(shared: SharedCache) -> None:
    with pytest.raises(TypeError):
        shared.set("code", print, 60)


def test_forgetting_leaves_what_others_keep_in_redis(shared: SharedCache, redis_url: str) -> None:
    other = cache_at(redis_url)
    other.set("mine", 1, 60)
    shared.set("mine", 2, 60)
    shared.clear()
    assert (shared.get("mine"), other.get("mine")) == (None, 1)
    other.clear()


def test_without_redis_this_process_counts_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    cache = cache_at(NOWHERE)
    name = f"wrong-{uuid4()}"
    assert cache.add(name, [1.0], 60)
    assert not cache.add(name, [2.0], 60)
    assert cache.get(name) == [1.0]
    assert caches["process"].get(name) == [1.0]
    assert "counted in this process only" in caplog.text


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> SharedCache:
    """A Redis without room: it reads and deletes, and stores nothing."""

    def refuse(*args: object, **options: object) -> None:
        raise OutOfMemoryError("OOM command not allowed")

    for name in ("add", "set", "incr"):
        monkeypatch.setattr(RedisCache, name, refuse)
    monkeypatch.setattr(RedisCache, "get", lambda self, name, default=None, **options: default)
    monkeypatch.setattr(RedisCache, "delete", lambda self, name, **options: False)
    return cache_at("redis://full/0")


def test_a_full_redis_does_not_switch_limits_off(
    full: SharedCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"wrong-{uuid4()}"
    for wait in (redis_cache.RETRY_SECONDS, 0.0):  # Redis may be asked again
        monkeypatch.setattr(redis_cache, "RETRY_SECONDS", wait)
        full.set(name, [*full.get(name, []), wait], 60)
    assert len(full.get(name)) == 2


def test_a_read_that_began_before_redis_was_full_does_not_count_as_storing(
    full: SharedCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"wrong-{uuid4()}"
    with monkeypatch.context() as patch:
        patch.setattr(RedisCache, "get", lambda self, *args: full.set(name, 1, 60))
        full.get("slow")  # another thread stores meanwhile
    assert full.get(name) == 1


def test_a_full_redis_locks_nobody_out(full: SharedCache) -> None:
    name = f"lock-{uuid4()}"
    for _ in range(3):
        assert full.add(name, True, 60)
        full.delete(name)


def test_a_redis_that_failed_is_asked_again_later_and_then_used(
    shared: SharedCache, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(redis_cache, "RETRY_SECONDS", 0.0)
        patch.setattr(RedisCache, "set", lambda *args: 1 / 0)
        patch.setattr(redis_cache, "RedisError", ZeroDivisionError)
        shared.set("number", 1, 60)
        assert shared.get("number") == 1
    shared.set("number", 2, 60)
    assert shared.get("number") == 2
    assert cache_at(redis_url, shared.key_prefix).get("number") == 2


FAIL_THREE_TIMES = """
import django
django.setup()
from allauth.core.internal import ratelimit
from django.test import RequestFactory
wrong = dict(app="allauth.account", action="login_failed", key="ada")
request = RequestFactory().post("/")
print(sum(bool(ratelimit.consume(request, **wrong)) for _ in range(3)))
"""


@pytest.mark.processes
def test_wrong_passwords_are_counted_for_all_processes_together(
    redis_url: str, tmp_path: Path
) -> None:
    """Five may be wrong in some minutes: three here and two there, not three and three."""
    name = f"sqlite:///{tmp_path / 'shared.sqlite3'}"
    environment = {**os.environ, "REDIS_URL": redis_url, "DATABASE_URL": name}
    environment |= {"VAR_DIR": str(tmp_path), "SECRET_KEY": "k" * 50}
    environment |= {"DJANGO_SETTINGS_MODULE": "config.settings"}
    environment.pop("SITE_URL", None)
    allowed = [
        subprocess.run(
            [sys.executable, "-c", FAIL_THREE_TIMES],
            cwd=ROOT, env=environment, capture_output=True, text=True, check=True,
        ).stdout.strip()
        for _ in range(2)
    ]  # fmt: skip
    assert allowed == ["3", "2"]
