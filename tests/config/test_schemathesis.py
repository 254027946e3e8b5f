"""Every operation of the API, called as a fuzzer calls it: no error of the server, and no answer
that the document does not describe.

Each gets three random calls, in CI ten and one for each edge of each of its parameters, some fifty.
`API_EXAMPLES=500` looks longer than that.
"""

import os
from collections.abc import Iterator
from random import Random
from typing import Any
from zlib import crc32

import pytest
import schemathesis
from django.conf import settings as django_settings
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from django.test import Client
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, settings
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from annotation.labelling import comments
from annotation.models import ApiToken, Project
from config.wsgi import application
from judging.evaluators import endpoints
from judging.exporting import jobs
from judging.models import Delivery, Webhook
from judging.runs import selection
from judging.strategies import editing
from judging.webhooks import webhooks
from tests.builders import Cast, cast, make_guidelines, make_item, make_known, say, take
from tests.conftest import IN_CI
from tests.judging.builders_judging import make_items, make_judged

pytestmark = pytest.mark.django_db

EXAMPLES = int(os.environ.get("API_EXAMPLES", "10" if IN_CI else "3"))
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
# What a fuzzer does not guess, by the place where it is named.
IN_PATHS: dict[str, tuple[Any, ...]] = {
    "slug": ("fuzzed",),
    "key": ("said", "a/b"),
    "number": (1, 2),
    "strategy": ("vanilla", "ours"),
    "table": ("categories", "runs", "items", "detection"),
    "name": (endpoints.BASELINE,),
    "kind": ("export",),
    "alias": ("annotator", "researcher"),
    "invited": ("newcomer",),
    "webhook": (1234,),
    "delivery": ("5a1f0c9e-5b0e-4f5e-9d55-3c1f6f0f8a11",),
}
IN_QUERIES: dict[str, tuple[Any, ...]] = {
    "item": ("said", "item-1"),
    "run": (1, [1, 2]),
    "annotator": ("annotator",),
    "limit": (2,),
    "by": ("category",),
    "field": ("choice",),
    "only": ("item", "key,category", "number"),
}
IN_BODIES: dict[str, tuple[Any, ...]] = {
    "item": ("said", "held", "item-1"),
    "key": ("",),  # of a submission: put in when it is known
    "revision": (1,),
    "answers": ({"choice": "valid"}, {"choice": "not-sure"}),
    "texts": ({"perturbed": "Seven."},),
    "strategy": ("vanilla", "rouge-l", "ours"),
    "endpoint": (endpoints.BASELINE,),
    "runs": ([1], [1, 2]),
    "over": (None,),
    "parser": (None,),
    "call": ("",),
    "categories": ([],),
    "abilities": ([],),
    "keys": ([], ["item-1"]),
    "axes": ([],),
    "parameters": ({},),
    "base": (1,),
    "topics": (["runs"],),
    "address": ("https://hooks.example.org/",),
    "table": ("items", "calls"),
    "filters": ({}, {"category": "number-errors"}),
}

load_all_checks()
described = SchemaGenerator().get_schema(public=True)
document = schemathesis.openapi.from_dict(described)
document.app = application
document.config.phases.coverage.enabled = EXAMPLES >= 10
OPERATIONS = [
    f"{method.upper()} {path}" for path, methods in described["paths"].items() for method in methods
]


@pytest.fixture
def one_transaction(db: None) -> Iterator[None]:
    """A server ends connections between requests, which would end the test's transaction."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture(scope="module")
def fuzzed(module_db: None) -> tuple[str, str]:
    """The token of who may do everything in a project that has some of each, and the key of the
    submission of what they hold."""
    people = cast()
    Project.objects.filter(pk=people.project.pk).update(slug="fuzzed")
    people.project.refresh_from_db()
    _judged(people)
    key = _labelled(people)
    account = people.lead.account
    assert account
    account.is_superuser = True
    account.save()
    return ApiToken.issue(account, "fuzzer")[1], key


@pytest.fixture
def program(
    fuzzed: tuple[str, str], one_transaction: None, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """The headers of who may do everything in a project that has some of each."""
    token, key = fuzzed
    monkeypatch.setattr(django_settings, "API_PER_MINUTE", 10**9)
    monkeypatch.setitem(IN_BODIES, "key", (key,))
    return {"Authorization": f"Bearer {token}"}


def _judged(people: Cast) -> None:
    for _ in range(2):
        items = make_items(people.project, 2)
        make_judged(people.project, zip(items, ("detected", "missing"), strict=True))
    hook = webhooks.create_webhook(
        people.lead, "https://hooks.example.org/", ["runs"], now=timezone.now()
    )
    [hook_id] = IN_PATHS["webhook"]
    Webhook.objects.filter(pk=hook.pk).update(id=hook_id)
    sent = webhooks.send_ping(Webhook.objects.get(), now=timezone.now())
    [uid] = IN_PATHS["delivery"]
    Delivery.objects.filter(source=sent.source).update(uid=uid)
    vanilla = selection.get_strategy_version("vanilla")
    jobs.enqueue(people.project, people.lead, jobs.ExportRequest("calls", "csv"))
    editing.copy_strategy(people.project, vanilla, slug="ours", member=people.lead)


def _labelled(people: Cast) -> str:
    """The key of the submission of what the lead holds."""
    make_guidelines(people.project)
    make_known(people.project, "practice")
    said, _, _ = (make_item(people.project, key) for key in ("said", "a/b", "held"))
    for member, choice in ((people.annotator, "valid"), (people.adjudicator, "invalid")):
        say(member, take(member), choice)
    comments.add_comment(people.annotator, said, "Six? @lead", now=timezone.now())
    return take(people.lead).key


def _named(values: Any, known: dict[str, tuple[Any, ...]], dice: Random) -> Any:
    """The values, most of them replaced by what there is."""
    if not isinstance(values, dict):
        return values
    return {
        name: dice.choice(known[name]) if name in known and dice.random() < 0.8 else value
        for name, value in values.items()
    }


def _call_and_check(case: schemathesis.Case, headers: dict[str, str]) -> None:
    dice = Random(crc32(repr((case.path_parameters, case.query, case.body)).encode()))
    case.path_parameters = _named(case.path_parameters, IN_PATHS, dice)
    case.query = _named(case.query, IN_QUERIES, dice)
    case.body = _named(case.body, IN_BODIES, dice)
    case.call_and_validate(headers=headers, checks=CHECKS)


@pytest.mark.parametrize("label", OPERATIONS)
def test_no_call_breaks_the_api_or_its_document(label: str, program: dict[str, str]) -> None:
    """Up to eight seconds for the address with most parameters: it is called with each of them.

    Its cases are made here: made where tests are collected, they took each process five seconds.
    """
    method, path = label.split(" ")

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    def check(case: schemathesis.Case) -> None:
        _call_and_check(case, program)

    build_operation_test(
        config=document.config,
        operation=document[path][method.lower()],
        test_func=check,
        given_kwargs={},
        feedback=FeedbackSources(),
    )()


WITH_BODIES = [
    (method.upper(), path)
    for path, methods in described["paths"].items()
    for method, operation in methods.items()
    if "application/json" in operation.get("requestBody", {}).get("content", {})
]


def test_a_name_that_no_body_has_is_refused_by_all_that_take_one(program: dict[str, str]) -> None:
    client = Client(headers=program)
    # The project has no import whose columns could be chosen.
    taken: list[tuple[str, str, int]] = []
    for method, path in WITH_BODIES:
        named = {name: values[0] for name, values in IN_PATHS.items()}
        answer = client.generic(
            method, path.format(**named), '{"misspelt": 1}', content_type="application/json"
        )
        if answer.status_code != 422 or "misspelt" not in answer.content.decode():
            taken.append((method, path, answer.status_code))
    assert taken == [("PUT", "/api/v1/projects/{slug}/imports/{number}/columns/", 404)]
