"""Limits that several workers keep together, in a real Redis."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from judging.evaluators import shared_limits
from judging.evaluators.limits import RETRY_SECONDS, Limiter, Limits, Turn
from judging.evaluators.providers import errors
from judging.evaluators.shared_limits import RedisLedger

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
        assert (await enter(one)).wait == pytest.approx(RETRY_SECONDS)
        other.leave(turns[1], None)
        await other.settle()
        assert (await enter(one)).wait == 0.0

    run(redis_url, test, in_flight=2)


def counted(ledger: RedisLedger) -> list[Any]:
    """The questions that the ledger asks from now on."""
    move, asked = ledger._move, []

    async def asking(*parts: Any) -> Any:
        asked.append(parts)
        return await move(*parts)

    ledger._move = asking  # type: ignore[assignment]
    return asked


def test_a_place_goes_to_the_next_of_the_worker_without_a_question(redis_url: str) -> None:
    async def test(workers: Two) -> None:
        one, other = workers
        turn = await enter(one)
        questions = counted(one)
        for _ in range(100):
            one.leave(turn, None)
            turn = await enter(one)
        assert (turn.wait, len(questions)) == (0.0, 0)
        assert (await enter(other)).wait > 0.0
        one.leave(turn, None)
        await one.settle()
        assert (await enter(other)).wait == 0.0

    run(redis_url, test, in_flight=1)


def test_a_place_is_handed_on_only_shortly_after_redis_answered(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_limits, "RELEASE_DELAY", 60.0)
    monkeypatch.setattr(shared_limits, "POLL_SECONDS", 60.0)

    async def test(workers: Two) -> None:
        one, _ = workers
        turn = await enter(one)
        questions = counted(one)
        await asyncio.sleep(shared_limits.FRESH_SECONDS)
        one.leave(turn, None)
        assert (await enter(one)).wait == 0.0
        assert len(questions) == 1

    run(redis_url, test, in_flight=1)


def test_places_are_handed_on_by_calls_that_end_together_after_a_while(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_limits, "FRESH_SECONDS", 0.25)  # so long a slow machine may take

    async def test(workers: Two) -> None:
        one, _ = workers
        turns = await one.enter([0] * 20)
        await asyncio.sleep(3 * shared_limits.FRESH_SECONDS)
        if one._soon:  # the worker's own question whether that still holds, by a timer
            one._soon.cancel()
        questions = counted(one)
        for turn in turns:
            one.leave(turn, None)
        again = await one.enter([0] * 20)
        assert ([turn.wait for turn in again], len(questions)) == ([0.0] * 20, 0)

    run(redis_url, test, in_flight=20)


def test_redis_is_not_asked_for_each_call_that_ends_while_places_are_handed_on(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_limits, "FRESH_SECONDS", 60.0)
    monkeypatch.setattr(shared_limits, "POLL_SECONDS", 60.0)
    monkeypatch.setattr(shared_limits, "RELEASE_DELAY", 0.0)

    async def test(workers: Two) -> None:
        one, other = workers
        turn = await enter(one)
        questions = counted(one)
        for _ in range(10):
            one.leave(turn, None)
            await asyncio.sleep(0.005)
            turn = await enter(one)
        assert (turn.wait, len(questions)) == (0.0, 0)
        one.leave(turn, None)
        one._tell()  # what its timer does
        await one.settle()
        assert (await enter(other)).wait == 0.0

    run(redis_url, test, in_flight=1)


def test_a_call_that_ends_while_redis_says_that_another_worker_waits_is_reported_soon(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_limits, "FRESH_SECONDS", 60.0)
    monkeypatch.setattr(shared_limits, "POLL_SECONDS", 60.0)

    async def test(workers: Two) -> None:
        one, other = workers
        turn = await enter(one)
        assert (await enter(other)).wait > 0.0
        move = one._move

        async def ending_meanwhile(*parts: Any) -> Any:
            answer = await move(*parts)
            one._move = move
            one.leave(turn, None)
            return answer

        one._move = ending_meanwhile  # type: ignore[assignment]
        one._tell()
        ends = time.monotonic() + 10
        while (await enter(other)).wait > 0.0:
            assert time.monotonic() < ends
            await asyncio.sleep(0.01)

    run(redis_url, test, in_flight=1)


def test_nobody_takes_a_place_over_once_another_worker_was_told_to_wait(redis_url: str) -> None:
    async def test(workers: Two) -> None:
        one, other = workers
        turns = await one.enter([0, 0])
        other.leave(await enter(other), errors.RateLimited("slow down", retry_after=7.0))
        await other.settle()
        one.leave(turns[0], None)
        await one.settle()  # this is when it hears of it
        one.leave(turns[1], None)
        assert (await enter(one)).wait == pytest.approx(7.0, abs=2)

    run(redis_url, test, in_flight=4)


def test_a_pause_that_somebody_ends_holds_no_worker(redis_url: str) -> None:
    async def test(workers: Two) -> None:
        one, other = workers
        one.leave(await enter(one), errors.ServerError("later", retry_after=3600.0))
        await one.settle()
        assert (await enter(other)).wait == pytest.approx(3600.0, abs=60)
        key = one._keys[0].removesuffix(":state")
        await asyncio.to_thread(shared_limits.end_pause, redis_url, key)
        assert [(await enter(each)).wait for each in workers] == [0.0, 0.0]

    run(redis_url, test, in_flight=2)


def test_after_an_error_or_with_a_pace_no_place_is_taken_over(redis_url: str) -> None:
    async def test(workers: Two) -> None:
        one, other = workers
        turns = await one.enter([0, 0, 0])
        questions = counted(one)
        one.leave(turns[0], None)
        one.leave(turns[1], errors.RateLimited("slow down", retry_after=0.05))
        one.leave(turns[2], None)
        assert (await enter(one)).wait > 0.0
        assert len(questions) == 1
        await asyncio.sleep(0.05)
        other.limits = one.limits = Limits(in_flight=2, per_minute=6000)
        one.leave(await enter(other), None)
        await asyncio.sleep(0.02)
        await enter(one)
        assert len(questions) >= 2

    run(redis_url, test, in_flight=3)


def test_no_place_is_handed_on_while_another_worker_waits_for_one(redis_url: str) -> None:
    async def test(workers: Two) -> None:
        one, other = workers
        turns = await one.enter([0, 0])
        assert (await enter(other)).wait > 0.0
        one.leave(turns[0], None)
        await one.settle()  # this is when it hears of it
        questions = counted(one)
        one.leave(turns[1], None)
        assert (await enter(one)).wait == 0.0
        assert len(questions) == 1
        assert (await enter(other)).wait == 0.0

    run(redis_url, test, in_flight=2)


def test_places_that_another_may_hold_by_now_are_not_handed_on(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(workers: Two) -> None:
        one, other = workers
        monkeypatch.setattr(shared_limits, "HOLD_SECONDS", 0.05)
        late = await enter(one)
        await asyncio.sleep(0.06)
        monkeypatch.setattr(shared_limits, "HOLD_SECONDS", 60.0)  # a slow machine waits too
        assert (await enter(other)).wait == 0.0
        await one.keep()
        one._fresh_until = time.monotonic() + 60.0
        one.leave(late, None)
        assert (await enter(one)).wait > 0.0

    run(redis_url, test, in_flight=1)


def test_many_at_once_are_one_question(redis_url: str) -> None:
    async def test(workers: Two) -> None:
        one, _ = workers
        questions = counted(one)
        turns = await one.enter([0] * 50)
        assert [turn.wait for turn in turns] == [0.0] * 40 + [pytest.approx(RETRY_SECONDS)]
        for turn in turns[:40]:
            one.leave(turn, None)
        assert (await enter(one)).wait == 0.0
        await one.settle()
        assert len(questions) == 2

    run(redis_url, test, in_flight=40)


def test_two_workers_keep_one_pace(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """600 a minute is one each 100 ms; 2 s from the first call on hold 21 of them.

    Redis lets each in at a moment between the question and the call's begin, and both may be late
    on a busy machine."""
    asked, begun = list[float](), list[float]()

    def note_questions(worker: RedisLedger) -> None:
        enter = worker.enter

        async def ask(tokens: Sequence[int]) -> list[Turn]:
            at = time.monotonic()
            turns = await enter(tokens)
            asked.extend(at for turn in turns if not turn.wait)
            return turns

        monkeypatch.setattr(worker, "enter", ask)

    async def call(limiter: Limiter) -> None:
        async with limiter.slot():
            begun.append(time.monotonic())

    async def test(workers: Two) -> None:
        limiters = [Limiter(worker) for worker in workers]
        for worker in workers:
            note_questions(worker)
        await asyncio.gather(*(call(limiters[number % 2]) for number in range(21)))

    run(redis_url, test, in_flight=64, per_minute=600)
    asked.sort(), begun.sort()
    assert len(asked) == len(begun) == 21
    # A call may catch up 50 ms that it woke late, and never more.
    assert begun[-1] - asked[0] >= 20 * 0.1 - 0.06
    for first, later in zip(asked, begun[10:], strict=False):
        assert later - first >= 10 * 0.1 - 0.06


def test_tokens_are_foreseen_and_then_settled(redis_url: str) -> None:
    async def test(workers: Two) -> None:
        one, other = workers
        turn = await enter(one, 1000)  # 600 a minute: 100 s to pay off
        assert (await enter(other)).wait == pytest.approx(100, abs=3)
        one.leave(turn, None, used=100)
        await one.settle()
        assert (await enter(other)).wait == pytest.approx(10, abs=3)

    run(redis_url, test, in_flight=8, tokens_per_minute=600)


def test_a_wait_of_the_provider_holds_for_both(redis_url: str) -> None:
    async def test(workers: Two) -> None:
        one, other = workers
        one.leave(await enter(one), errors.ServerError("later", retry_after=7.0))
        # Without another call of its own, too.
        await asyncio.sleep(2 * shared_limits.RELEASE_DELAY)
        assert (await enter(other)).wait == pytest.approx(7.0, abs=2)

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
    def hold(seconds: float) -> None:
        monkeypatch.setattr(shared_limits, "HOLD_SECONDS", seconds)

    async def test(workers: Two) -> None:
        killed, other = workers
        hold(1.0)
        assert (await enter(killed)).wait == 0.0
        hold(60.0)
        await killed.keep()
        await asyncio.sleep(1.1)
        assert (await enter(other)).wait > 0.0
        hold(0.1)
        await killed.keep()
        await asyncio.sleep(0.2)
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
    assert turn.wait == shared_limits.RECONNECT_SECONDS
    assert "cannot be read" in caplog.text


def test_a_redis_that_was_emptied_begins_anew(redis_url: str) -> None:
    async def test() -> None:
        async with two(redis_url, in_flight=1) as (one, _), shared_limits.connect(redis_url) as own:
            turn = await enter(one)
            await own.delete(*one._keys)
            await own.script_flush()
            one.leave(turn, None)
            assert (await enter(one)).wait == 0.0

    asyncio.run(test())


def test_places_of_a_redis_that_was_emptied_are_not_handed_on(redis_url: str) -> None:
    async def test() -> None:
        async with two(redis_url, in_flight=2) as (one, other):
            turns = await one.enter([0, 0])
            async with shared_limits.connect(redis_url) as own:
                await own.delete(*one._keys)
            assert [(await enter(other)).wait for _ in range(2)] == [0.0, 0.0]
            one.leave(turns[0], None)
            await one.settle()  # this is when it hears of it
            one.leave(turns[1], None)
            assert (await enter(one)).wait > 0.0

    asyncio.run(test())
