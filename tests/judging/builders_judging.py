"""Rows of the evaluator half for tests: plain functions with sensible defaults."""

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any

from django.test import Client
from django.utils import timezone

from annotation.models import (
    ApiToken,
    Item,
    Membership,
    Project,
    Resolution,
    Revision,
    digest_texts,
)
from judging import strategies
from judging.evaluators import endpoints
from judging.evaluators.providers import Answer, Finish
from judging.evaluators.providers.errors import EvaluatorError
from judging.models import Endpoint, Outcome, Run, StrategyVersion
from judging.runs import lifecycle, selection
from judging.runs.engine import ask, lease, store
from judging.runs.engine.lease import LeasedRequest
from judging.runs.engine.store import CallResult
from tests.services.scripted_evaluator import ScriptedEvaluator

# One call an item, and two, of which the gold one is shared by items with the same gold answer.
ONE_CALL, TWO_CALLS = "reference", "vanilla-score"

_numbers = count(1)


def api_client(member: Membership) -> Client:
    """A program with a key of the member's."""
    assert member.account
    _, key = ApiToken.issue(member.account, "test")
    return Client(headers={"Authorization": f"Bearer {key}"})


def make_items(project: Project, number: int, value: str = "valid", **values: Any) -> list[Item]:
    """Items of different texts, each a cluster of its own, resolved as `value`."""
    first = project.items.count() + 1
    items = Item.objects.bulk_create(
        Item(
            **{
                "project": project,
                "key": f"item-{position}",
                "position": position,
                "category": "number-errors",
                "ability": "factual",
                "source_ability": "factual",
                "cluster": f"cluster-{position}",
                **values,
            }
        )
        for position in range(first, first + number)
    )
    revisions = Revision.objects.bulk_create(_revision(item) for item in items)
    Resolution.objects.bulk_create(
        Resolution(item=one.item, revision=one, value=value, rule="test", source="imported")
        for one in revisions
    )
    return items


def _revision(item: Item) -> Revision:
    texts = {
        "prompt": f"How many legs have {item.position} spiders?",
        "gold": f"{item.position} spiders have {8 * item.position} legs.",
        "perturbed": f"{item.position} spiders have {6 * item.position} legs.",
    }
    return Revision(item=item, number=1, texts=texts, digest=digest_texts(texts))


def make_endpoint(evaluator: ScriptedEvaluator | str, script: str = "", **values: Any) -> Endpoint:
    """An endpoint of a scripted evaluator (or at an address); `script` as its model's name."""
    address = evaluator if isinstance(evaluator, str) else evaluator.address
    number = next(_numbers)
    defaults: dict[str, Any] = {"name": f"evaluator-{number}", "model": f"m{number}"}
    defaults |= {"in_flight": 8, "timeout": 10}
    if script:
        defaults["model"] = f"m{number}+{script}"
    defaults |= {"provider": "openai_compatible", "address": address}
    return Endpoint.objects.create(**{**defaults, **values})


def make_baseline() -> Endpoint:
    found = endpoints.list_all().named(endpoints.BASELINE)
    assert found is not None
    return found


def make_strategy(slug: str = ONE_CALL) -> StrategyVersion:
    return selection.get_strategy_version(slug)


def make_run(
    project: Project, endpoint: Endpoint | None = None, strategy: str = "", **values: Any
) -> Run:
    """A run that was just started; of a baseline if no endpoint is given."""
    strategy = strategy or ("rouge-l" if endpoint is None else ONE_CALL)
    return lifecycle.start_run(
        project,
        strategy=make_strategy(strategy),
        endpoint=endpoint or make_baseline(),
        member=values.pop("member", None),
        config=lifecycle.RunConfig(**{"seed": 1, **values}),
    )


def make_judged(project: Project, said: Iterable[tuple[Item, str]], **values: Any) -> Run:
    """A finished run that nobody asked: (item, result) pairs, a missing one being truncated."""
    run = make_run(project, **values)
    for item, result in said:
        cause = "truncated" if result == "missing" else ""
        run.outcomes.filter(item=item).update(result=result, cause=cause)
    Run.objects.filter(pk=run.pk).update(state=Run.State.FINISHED)
    run.refresh_from_db()
    return run


def work(run: Run, seconds: float = 20) -> Run:
    """Work on a run as a worker does until it ends or stops; fails the test if it does neither."""
    ends = time.monotonic() + seconds
    while True:
        ask.run_slice(run.endpoint_id, seconds=ends - time.monotonic())
        run.refresh_from_db()
        if run.state not in {Run.State.PLANNING, Run.State.RUNNING}:
            return run
        assert time.monotonic() < ends, f"run {run.number} is still {run.state}"
        time.sleep(0.05)


def results(run: Run) -> dict[str, int]:
    """How many outcomes of a run have each result, a missing one by its cause."""
    found: dict[str, int] = {}
    for outcome in Outcome.objects.filter(run=run):
        name = outcome.cause or outcome.result
        found[name] = found.get(name, 0) + 1
    return found


def take(
    run: Run, number: int = 1000, holder: str = "worker", **values: Any
) -> list[LeasedRequest]:
    """What a worker leases now, without asking it."""
    return lease.lease_requests(
        run.endpoint, holder, number, values.get("now", timezone.now())
    ).leased


def make_answer(text: str = '{"score": 5}', finish: Finish = "stop", **values: Any) -> Answer:
    defaults = {"model": "m", "tokens_in": 100, "tokens_out": 10, "seconds": 0.1}
    return Answer(text=text, finish=finish, started=timezone.now(), **{**defaults, **values})


def answer(run: Run, text: str = '{"score": 5}', number: int = 1000, **values: Any) -> int:
    """Lease requests of a planned run and store this reply to each; how many there were.

    Only the database side of asking, so that it works inside a test's transaction.
    """
    leased = take(run, number)
    results = [CallResult(one, make_answer(text, **values)) for one in leased]
    store.store_results(run.endpoint, "worker", results)
    store.decide_outcomes(results)
    return len(leased)


def fail(run: Run, error: EvaluatorError, number: int = 1000) -> int:
    """Lease requests of a planned run and let each fail like this; how many there were."""
    leased = take(run, number)
    results = [CallResult(one, error=error) for one in leased]
    store.store_results(run.endpoint, "worker", results)
    store.decide_outcomes(results)
    return len(leased)


def make_version(slug: str, **changes: Any) -> StrategyVersion:
    """A strategy that is no file: a shipped one with some keys changed."""
    definition = {**make_strategy(slug).definition, "slug": f"{slug}-{next(_numbers)}", **changes}
    return StrategyVersion.objects.create(
        slug=definition["slug"],
        number=1,
        digest=strategies.compute_digest(definition),
        definition=definition,
    )


def make_responses(project: Project, values: Sequence[str], **said: Any) -> list[Item]:
    """Items with one response each, resolved as these values; `said` are those of the fields."""
    made = make_items(project, len(values))
    for item, value in zip(made, values, strict=True):
        number = item.position
        texts = {
            "input": f"How many legs have {number} ants?",
            "prompt": f"How many legs have {number} ants?",
            "gold": f"{number} ants have {6 * number} legs.",
            "response": f"{number} ants have {8 * number} legs.",
        }
        item.revisions.update(texts=texts, digest=digest_texts(texts))
        item.resolutions.update(value=value, values=said)
    return made


def answer_as(run: Run, say: Callable[[str], str], number: int = 1000) -> int:
    """Answer the requests of a planned run by what each asks, as one text."""
    leased = take(run, number)
    results = [CallResult(one, make_answer(say(one.body.decode()))) for one in leased]
    store.store_results(run.endpoint, "worker", results)
    store.decide_outcomes(results)
    return len(leased)
