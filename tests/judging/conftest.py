import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from annotation.models import Membership, Project
from judging.runs.engine import ask
from tests.builders import make_member, make_project
from tests.judging.builders_judging import api_client
from tests.services.scripted_evaluator import ScriptedEvaluator, running


@pytest.fixture
def evaluator(settings: Any) -> Iterator[ScriptedEvaluator]:
    """A scripted evaluator that endpoints may name; its script can be replaced at any time."""
    settings.EVALUATOR_HOSTS = ["127.0.0.1"]
    ask.STOP.clear()
    with running() as evaluator:
        yield evaluator
    ask.STOP.clear()


@pytest.fixture(autouse=True)
def limits_of_its_own(settings: Any) -> None:
    """What one test's evaluator made Redis learn is not what the next one meets."""
    settings.REDIS_PREFIX = f"test:{secrets.token_hex(6)}"


@pytest.fixture
def project() -> Project:
    return make_project("fbi")


@pytest.fixture
def member(project: Project) -> Membership:
    """Who may run evaluators and read what they said, and is no lead."""
    return make_member(project, role="researcher", alias="rita")


@pytest.fixture
def browser(client: Client, member: Membership) -> Client:
    """The member on pages."""
    assert member.account
    client.force_login(member.account)
    return client


@pytest.fixture
def program(member: Membership) -> Client:
    """The member's program in the API."""
    return api_client(member)
