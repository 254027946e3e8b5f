import asyncio
from contextlib import suppress

import pytest

from judging.evaluators.limits import RETRY_SECONDS, Limiter, Limits, MemoryLedger, get_ledger
from judging.evaluators.providers import errors


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        self.now += seconds
        await asyncio.sleep(0)


def ledger_of(clock=None, **limits):
    return MemoryLedger(Limits(**limits), clock or Clock())


async def enter(ledger, tokens=0):
    [turn] = await ledger.enter([tokens])
    return turn


async def through(limiter, error=None):
    with suppress(errors.EvaluatorError):
        async with limiter.slot():
            if error:
                raise error


async def fail_together(ledger, count, error):
    turns = [await enter(ledger) for _ in range(count)]
    for turn in turns:
        ledger.leave(turn, error)


def test_no_more_calls_are_in_flight_than_allowed():
    highest = 0

    async def call(limiter, ledger):
        nonlocal highest
        async with limiter.slot():
            highest = max(highest, ledger.in_flight)
            await asyncio.sleep(0.001)

    async def run():
        ledger = MemoryLedger(Limits(in_flight=3))
        limiter = Limiter(ledger)
        await asyncio.gather(*(call(limiter, ledger) for _ in range(30)))
        return ledger.in_flight

    assert asyncio.run(run()) == 0
    assert highest == 3


def test_a_ledger_lets_in_as_many_as_it_can_and_says_how_long_the_next_waits():
    async def run():
        turns = await ledger_of(in_flight=2).enter([0, 0, 0, 0])
        return [turn.wait for turn in turns]

    assert asyncio.run(run()) == [0.0, 0.0, RETRY_SECONDS]


def test_calls_of_a_minute_keep_to_the_pace():
    clock = Clock()

    async def starts():
        limiter, begun = Limiter(ledger_of(clock, per_minute=30), clock.sleep), []
        for _ in range(61):
            async with limiter.slot():
                begun.append(clock.now)
        return begun

    begun = asyncio.run(starts())
    assert begun[60] - begun[0] == pytest.approx(120.0, abs=0.2)
    assert max(sum(start <= at < start + 60 for at in begun) for start in begun) <= 31


def test_tokens_of_a_minute_are_foreseen_and_then_settled():
    clock = Clock()
    ledger = ledger_of(clock, tokens_per_minute=6000)

    async def run():
        turn = await enter(ledger, 1000)  # 100 tokens a second, 50 ms to catch up
        expected = (await enter(ledger)).wait
        ledger.leave(turn, None, used=100)
        settled = (await enter(ledger)).wait
        return expected, settled

    assert asyncio.run(run()) == pytest.approx((9.95, 0.95))


def test_a_call_whose_tokens_are_not_reported_keeps_what_was_foreseen():
    ledger = ledger_of(tokens_per_minute=6000)

    async def run():
        ledger.leave(await enter(ledger, 1000), None)
        return (await enter(ledger)).wait

    assert asyncio.run(run()) == pytest.approx(9.95)


def test_callers_pass_in_the_order_they_came_and_none_jumps_the_queue():
    order = []

    async def call_three_times(limiter, number):
        for _ in range(3):
            async with limiter.slot():
                order.append(number)
                await asyncio.sleep(0)

    async def run():
        limiter = Limiter(MemoryLedger(Limits(in_flight=1)))
        await asyncio.gather(*(call_three_times(limiter, number) for number in range(5)))

    asyncio.run(run())
    assert order == [0, 1, 2, 3, 4] * 3


def test_a_wait_of_the_provider_pauses_everybody():
    clock = Clock()

    async def run():
        limiter = Limiter(ledger_of(clock), clock.sleep)
        await through(limiter, errors.RateLimited("slow", 12.0))
        await through(limiter)

    asyncio.run(run())
    assert clock.now == pytest.approx(1012.0)


def test_a_shorter_wait_does_not_end_a_longer_pause():
    async def run():
        ledger = ledger_of()
        await fail_together(ledger, 1, errors.RateLimited("slow", 30.0))
        first = ledger.paused_until
        ledger.leave(await enter(ledger), errors.ServerError("busy", 1.0))
        return first, ledger.paused_until

    assert asyncio.run(run()) == (1030.0, 1030.0)


def test_calls_that_fail_together_halve_the_ceiling_once():
    async def run():
        ledger = ledger_of(in_flight=16)
        await fail_together(ledger, 16, errors.RateLimited("slow"))
        once = ledger.ceiling
        await fail_together(ledger, 8, errors.RateLimited("slow"))
        return once, ledger.ceiling

    assert asyncio.run(run()) == (8, 4)


def test_the_ceiling_never_falls_below_one():
    async def run():
        ledger = ledger_of(in_flight=2)
        for _ in range(5):
            await fail_together(ledger, 1, errors.RateLimited("slow"))
        return ledger.ceiling

    assert asyncio.run(run()) == 1


def test_the_ceiling_climbs_back_by_one_for_each_full_window_of_successes():
    async def run():
        ledger, seen = ledger_of(in_flight=4), []
        ledger.leave(await enter(ledger), None)
        await fail_together(ledger, 1, errors.RateLimited("slow"))
        for _ in range(9):
            ledger.leave(await enter(ledger), None)
            seen.append(ledger.ceiling)
        return seen

    # Two successes lift 2 to 3, three more lift 3 to 4, and 4 is the limit.
    assert asyncio.run(run()) == [2, 3, 3, 3, 4, 4, 4, 4, 4]


@pytest.mark.parametrize("error", [errors.TimedOut("slow"), errors.Rejected("no"), None])
def test_other_ends_of_a_call_leave_the_ceiling(error):
    async def run():
        ledger = ledger_of(in_flight=4)
        await fail_together(ledger, 4, error)
        return ledger.ceiling, ledger.in_flight

    assert asyncio.run(run()) == (4, 0)


def test_a_cancelled_call_gives_its_place_back():
    async def run():
        ledger = MemoryLedger(Limits(in_flight=1))
        limiter, inside = Limiter(ledger), asyncio.Event()

        async def hang():
            async with limiter.slot():
                inside.set()
                await asyncio.sleep(60)

        hanging = asyncio.create_task(hang())
        await inside.wait()
        waiting = asyncio.create_task(through(limiter))
        await asyncio.sleep(0.01)
        hanging.cancel()
        await asyncio.wait_for(waiting, 2)
        return ledger.in_flight

    assert asyncio.run(run()) == 0


def test_a_caller_who_stops_waiting_does_not_block_the_door():
    async def run():
        ledger = MemoryLedger(Limits(in_flight=1))
        limiter = Limiter(ledger)
        turn = await enter(ledger)
        waiting = asyncio.create_task(through(limiter))
        await asyncio.sleep(0.01)
        waiting.cancel()
        ledger.leave(turn, None)
        await asyncio.wait_for(through(limiter), 2)
        return ledger.in_flight

    assert asyncio.run(run()) == 0


def test_who_is_dismissed_waits_no_more_and_takes_no_place():
    async def run():
        ledger = MemoryLedger(Limits(in_flight=1))
        limiter = Limiter(ledger)
        turn = await enter(ledger)
        waiting = [asyncio.create_task(through(limiter)) for _ in range(4)]
        await asyncio.sleep(0.01)
        left = limiter.dismiss()
        await asyncio.wait(waiting[1:], timeout=2)
        # The first in line asks for all, and goes through once there is room.
        gone = [one.done() for one in waiting]
        ledger.leave(turn, None)
        await asyncio.wait_for(waiting[0], 2)
        return left, gone, ledger.in_flight

    assert asyncio.run(run()) == (1, [False, True, True, True], 0)


class SlowLedger(MemoryLedger):
    """A ledger whose answer takes a while to come."""

    async def enter(self, tokens):
        turns = await super().enter(tokens)
        await asyncio.sleep(0.02)
        return turns


def test_who_stops_waiting_while_the_ledger_is_asked_takes_no_place():
    async def run():
        ledger = SlowLedger(Limits(in_flight=4))
        limiter = Limiter(ledger)
        waiting = [asyncio.create_task(through(limiter)) for _ in range(4)]
        # The first asked for itself alone, and now for the second to the fourth.
        await asyncio.sleep(0.03)
        waiting[2].cancel()
        await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 2)
        return ledger.in_flight

    assert asyncio.run(run()) == 0


def test_a_ledger_outlives_the_event_loop_and_takes_over_new_limits():
    limits = Limits(in_flight=8)
    ledger = get_ledger("outlives", limits)
    asyncio.run(fail_together(ledger, 1, errors.RateLimited("slow")))
    assert get_ledger("outlives", limits) is ledger
    asyncio.run(through(Limiter(ledger)))
    assert ledger.ceiling == 4
    assert get_ledger("outlives", Limits(in_flight=6)).ceiling == 6
    assert get_ledger("another", limits) is not ledger
