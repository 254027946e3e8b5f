import asyncio
import json
from collections.abc import Mapping

import pytest

from judging.evaluators.providers import PROVIDERS, Target, errors
from tests.judging.providers.conftest import Text

UNASKED = {"recorded", "derived"}
every_provider = pytest.mark.parametrize("name", PROVIDERS)
every_asked = pytest.mark.parametrize("name", sorted(PROVIDERS.keys() - UNASKED))
PARTS = {"metric": "length", "response": "x", "reference": "y"}


def body_of(name, **changed):
    arguments = {"model": "m", "parameters": {}, "prompt": Text(parts=PARTS), **changed}
    return PROVIDERS[name].body(**arguments)


@every_asked
def test_equal_input_gives_equal_bytes_of_canonical_json(name):
    backwards = dict(reversed(PARTS.items()))
    body = body_of(name)
    assert body == body_of(name, prompt=Text(parts=backwards))
    again = json.dumps(json.loads(body), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    assert body == again.encode()


@every_asked
def test_what_is_judged_changes_the_bytes(name):
    other = Text(user="another text", parts={**PARTS, "response": "another text"})
    assert body_of(name) != body_of(name, prompt=other)


@every_provider
def test_a_provider_says_whether_it_is_offline_and_what_it_adds(name):
    assert isinstance(PROVIDERS[name].offline, bool)
    assert isinstance(PROVIDERS[name].default_parameters, Mapping)


@pytest.mark.parametrize("name", sorted(UNASKED))
def test_what_nobody_answers_cannot_be_asked_and_says_why(name):
    with pytest.raises(ValueError, match="called"):
        body_of(name)
    with pytest.raises(errors.Rejected, match="called"):
        asyncio.run(PROVIDERS[name].ask(None, Target(""), b"{}"))
