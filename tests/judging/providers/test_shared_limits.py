"""Limits that several workers keep together, in a real Redis."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from judging.providers import errors, shared_limits
from judging.providers.limits import LOOK_AGAIN, Limiter, Limits, Turn
from judging.providers.shared_limits import RedisLedger

Two = tuple[RedisLedger, RedisLedger]


@asynccontextmanager
async def two(url: str, **limits: int) -> AsyncIterator[Two]:
    """The ledgers of two workers that call the same endpoint."""
    key = f"test:{secrets.token_hex(6)}"
    async with shared_limits.connect(url) as first, shared_limits.connect(url) as second:
        made = [RedisLedger(one, key, Limits(**limits)) for one in (first, second)]
        try:
            yield made[0], made[1]
        finally:
            await first.delete(f"{key}:state", f"{key}:in-flight")


async def enter(ledger: RedisLedger, tokens: int = 0) -> Turn:
    [turn] = await ledger.enter([tokens])
    return turn


def run(url: str, test: Callable[[Two], Awaitable[None]], **limits: int) -> None:
    async def whole() -> None:
        async with two(url, **limits) as ledgers:
            await test(ledgers)

    asyncio.run(whole())


def test_two_workers_share_the_places_in_flight(redis_url: str) -> None:
    async def test(workers: Two) -> None:
        one, other = workers
        turns = [await enter(one), await enter(other)]
        assert [turn.wait for turn in turns] == [0.0, 0.0]
        assert (await enter(one)).wait == pytest.approx(LOOK_AGAIN)
        other.leave(turns[1], None)
        await other.settle()
        assert (await enter(one)).wait == 0.0

    run(redis_url, test, in_flight=2)


def test_many_at_once_are_one_question(redis_url: str) -> None:
    questions = 0

    async def test(workers: Two) -> None:
        one, _ = workers
        move = one._move

        async def counted(*parts: Any) -> Any:
            nonlocal questions
            questions += 1
            return await move(*parts)

        one._move = counted  # type: ignore[assignment]
        turns = await one.enter([0] * 50)
        assert [turn.wait for turn in turns] == [0.0] * 40 + [pytest.approx(LOOK_AGAIN)]
        for turn in turns[:40]:
            one.leave(turn, None)
        assert (await enter(one)).wait == 0.0
        await one.settle()

    run(redis_url, test, in_flight=40)
    assert questions == 2


def test_two_workers_keep_one_pace(redis_url: str) -> None:
    """600 a minute is one each 100 ms; 2 s from the first call on hold 21 of them."""
    begun: list[float] = []

    async def call(limiter: Limiter) -> None:
        async with limiter.slot():
            begun.append(time.monotonic())

    async def test(workers: Two) -> None:
        limiters = [Limiter(worker) for worker in workers]
        await asyncio.gather(*(call(limiters[number % 2]) for number in range(21)))

    run(redis_url, test, in_flight=64, per_minute=600)
    begun.sort()
    # A call may catch up 50 ms that it woke late, and never more.
    assert begun[-1] - begun[0] >= 20 * 0.1 - 0.06
    for first, later in zip(begun, begun[10:], strict=False):
        assert later - first >= 10 * 0.1 - 0.06


def test_tokens_are_foreseen_and_then_settled(redis_url: str) -> None:
    async def test(workers: Two) -> None:
        one, other = workers
        turn = await enter(one, 1000)  # 6000 a minute: 10 s to pay off, less 50 ms
        assert (await enter(other)).wait == pytest.approx(9.95, abs=0.1)
        one.leave(turn, None, used=100)
        await one.settle()
        assert (await enter(other)).wait == pytest.approx(0.95, abs=0.1)

    run(redis_url, test, in_flight=8, tokens_per_minute=6000)


def test_a_wait_of_the_provider_holds_for_both(redis_url: str) -> None:
    async def test(workers: Two) -> None:
        one, other = workers
        one.leave(await enter(one), errors.ServerTrouble("later", retry_after=7.0))
        # Without another call of its own, too.
        await asyncio.sleep(2 * shared_limits.LEFT)
        assert (await enter(other)).wait == pytest.approx(7.0, abs=0.1)

    run(redis_url, test, in_flight=8)


def test_calls_that_fail_together_halve_the_ceiling_once_for_both(redis_url: str) -> None:
    async def test(workers: Two) -> None:
        one, other = workers
        turns = [await enter(one) for _ in range(4)] + [await enter(other) for _ in range(4)]
        for turn in turns:
            one.leave(turn, errors.RateLimited("slow down"))
        await one.settle()
        assert [(await enter(other)).wait for _ in range(4)] == [0.0] * 4
        assert (await enter(one)).wait > 0.0

    run(redis_url, test, in_flight=8)


def test_the_ceiling_climbs_back_by_successes(redis_url: str) -> None:
    async def test(workers: Two) -> None:
        one, _ = workers
        one.leave(await enter(one), errors.RateLimited("slow down"))  # 2 -> 1
        one.leave(await enter(one), None)  # one success of one: back to 2
        assert [(await enter(one)).wait for _ in range(2)] == [0.0, 0.0]

    run(redis_url, test, in_flight=2)


def test_places_run_out_unless_their_worker_keeps_them(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_limits, "HELD", 0.4)

    async def test(workers: Two) -> None:
        killed, other = workers
        assert (await enter(killed)).wait == 0.0
        await asyncio.sleep(0.3)
        await killed.keep()
        await asyncio.sleep(0.3)
        assert (await enter(other)).wait > 0.0
        await asyncio.sleep(0.3)
        assert (await enter(other)).wait == 0.0

    run(redis_url, test, in_flight=1)


def test_changed_limits_hold_at_once(redis_url: str) -> None:
    async def test(workers: Two) -> None:
        one, other = workers
        assert (await enter(one)).wait == 0.0
        assert (await enter(one)).wait > 0.0
        other.limits = Limits(in_flight=2)
        assert (await enter(other)).wait == 0.0

    run(redis_url, test, in_flight=1)


def test_nobody_enters_while_redis_is_away(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> tuple[Turn, None]:
        async with shared_limits.connect("redis://127.0.0.1:1/0") as client:
            ledger = RedisLedger(client, "test:away", Limits())
            turn = await enter(ledger)
            ledger.leave(turn, None)
            return turn, await ledger.settle()

    turn, _ = asyncio.run(test())
    assert turn.wait == shared_limits.AWAY
    assert "cannot be asked for" in caplog.text


def test_a_redis_that_was_emptied_begins_anew(redis_url: str) -> None:
    async def test() -> None:
        async with two(redis_url, in_flight=1) as (one, _), shared_limits.connect(redis_url) as own:
            turn = await enter(one)
            await own.delete(*one._keys)
            await own.script_flush()
            one.leave(turn, None)
            assert (await enter(one)).wait == 0.0

    asyncio.run(test())
