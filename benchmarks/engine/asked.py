"""Projects with items to evaluate, runs over these items, and the stored results of a run."""

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

from django.conf import settings
from django.test import Client

from annotation import importing, tasktypes
from annotation.items import search_index
from annotation.models import Account, Membership, Project, Role
from benchmarks.workbench.filling import tidy
from formats.rows import Row
from judging.models import Endpoint, Outcome, Reply, Request, Run
from judging.runs import lifecycle, selection

# Both strategies make one call per item, so that calls are easy to count: one judges a perturbed
# answer, the other generates it.
STRATEGY, GENERATOR = "reference", "generate-number-errors"
WORDS = ["light", "water", "heat", "metal", "river", "cloud", "engine", "stone", "glass", "wire"]


@dataclass(frozen=True)
class Kept:
    """The data stored for a run."""

    state: str
    requests: int
    replies: int
    decided: int
    missing: int


def project(items: int, *, words: int) -> Project:
    """Create a project with this many items and imported resolutions; each text has
    `words` words.
    """
    made = importing.create_project("bench")
    task = tasktypes.parse_definition(made.task_type.definition)
    report = importing.store_items(
        made, importing.parse_items(_rows(items, words), task, accept=True), accept=True
    )
    assert report.new == items, report
    # Otherwise workers would index the new texts while the calls are measured.
    search_index.run_slice()
    tidy()
    return made


def researcher(made: Project) -> Account:
    """Create a researcher, who may view the project's runs."""
    account = Account.objects.create(username="researcher")
    Membership.objects.create(
        project=made, account=account, alias="researcher", role=Role.RESEARCHER
    )
    return account


def cookie(account: Account) -> str:
    """Return a session cookie for the account."""
    client = Client()
    client.force_login(account)
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"


def start(
    made: Project,
    address: str,
    model: str,
    *,
    in_flight: int,
    per_minute: int | None = None,
    limit: int | None = None,
    generating: bool = False,
    timeout: int = 30,
) -> Run:
    """Start a run over the items; workers find it themselves. A `model` that no other run uses
    makes the requests of the run unique.
    """
    endpoint = Endpoint.objects.create(
        name=model,
        provider="openai_compatible",
        address=address,
        model=model,
        in_flight=in_flight,
        per_minute=per_minute,
        timeout=timeout,
    )
    version = selection.get_strategy_version(GENERATOR if generating else STRATEGY)
    return lifecycle.start_run(
        made, strategy=version, endpoint=endpoint, config=lifecycle.RunConfig(seed=1, limit=limit)
    )


def wait(run: Run, *, seconds: float) -> None:
    """Wait until the run is finished; raises TimeoutError."""
    ends = time.monotonic() + seconds
    while run.state != Run.State.FINISHED:
        if time.monotonic() > ends:
            raise TimeoutError(f"Run {run.number} is still {run.state} after {seconds:.0f} s.")
        time.sleep(0.25)
        run.refresh_from_db(fields=["state"])


def kept(run: Run) -> Kept:
    """Return the data stored for the run so far."""
    outcomes = Outcome.objects.filter(run=run)
    return Kept(
        state=run.state,
        requests=Request.objects.wanted_by(run).count(),
        replies=Reply.objects.filter(request__in=Request.objects.wanted_by(run)).count(),
        decided=outcomes.exclude(result="pending").count(),
        missing=outcomes.filter(result="missing").count(),
    )


def _rows(items: int, words: int) -> Iterator[Row]:
    chance = random.Random(3)
    for number in range(1, items + 1):
        gold = " ".join(chance.choices(WORDS, k=words))
        values = {
            "key": f"item-{number:07}",
            "category": "number-errors",
            "prompt": f"What is there to say about the {number}. thing?",
            "gold": f"{gold} {number}.",
            "perturbed": f"{gold} {number + 1}.",
            "claim": "The number was changed.",
        }
        yield Row("bench", number, values)
