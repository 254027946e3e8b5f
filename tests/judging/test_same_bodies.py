"""What endpoints are asked stays the same to the byte, so that stored replies still serve."""

import hashlib
from collections.abc import Mapping
from typing import Any

import pytest

from annotation import tasktypes
from annotation.items import taxonomy
from annotation.models import Project, TaskTypeVersion
from judging.models import Endpoint, StrategyVersion
from judging.runs import pinning
from judging.runs.engine import rendering
from judging.strategies import frames, load_all

TEXTS = {
    "prompt": "How many legs?",
    "gold": "Eight legs.",
    "perturbed": "Six legs.",
    "response": "Six.",
    "input": "Legs?",
}
MORE = ("examples", "explanation", "score", "metrics", "form", "guidance")
TEMPLATE = "[INST] {{system}} {{prompt}} [/INST]"

WAYS: dict[str, Mapping[str, Any]] = {
    "chat": {},
    "chat with parameters": {
        "parameters": {"max_tokens": 500, "stop": ["\n\n"], "seed": 7},
        "model": "gpt-4o-mini",
    },
    "chat in JSON": {"json_mode": "json_object", "model": "llama3.1:8b"},
    "completions": {"api": "completions", "template": TEMPLATE},
    "anthropic": {"provider": "anthropic", "model": "claude-opus-4-6"},
    "anthropic by schema": {
        "provider": "anthropic",
        "model": "claude-haiku-4-5",
        "json_mode": "json_schema",
    },
    "gemini": {"provider": "gemini", "parameters": {"max_tokens": 500, "stop": ["x"]}},
}
# SHA-256 of the digests of the requests of all shipped strategies, each of which holds address,
# model, parameters and body. Recorded before models were told apart by what they take. A strategy
# that is added or reworded changes them all; nothing else may.
RECORDED = {
    "chat": "ac3385ccc969c351469a81988ec78ace36f9c364ea6ac3366e6a2564b741db85",
    "chat with parameters": "2339ec0ed912b0385aa8f1f13d2ef067359a5d59072affcb2fb5fb063ced4cf9",
    "chat in JSON": "7e1ceeff0bb4d079c26357403cdb889f5a7c34f4c49e971e3f9447baab6d5c3b",
    "completions": "b092e7ce1cae37cf1461b93fb246c5f1d27c8eede76f0e725f6dbc81386acb10",
    "anthropic": "2f670d4a846da9e5c6ef599f30d7c05bacd078f4bf41a31d9927fac8512c63bf",
    "anthropic by schema": "38299d4e9175a84d218900c5c38c0c64a4fd7e6004450090d7981cb8725e88eb",
    "gemini": "0bf737c692344b97cacf25146dec1a735d652cff7b38be83927f77502540be3d",
}


def requests(values: Mapping[str, Any]) -> str:
    """The digest of every request that shipped strategies make of an endpoint."""
    endpoint = Endpoint(
        **{
            "name": "judge",
            "provider": "openai_compatible",
            "address": "https://judge.example/v1",
            "model": "judge-1",
            **values,
        }
    )
    task = TaskTypeVersion(definition=tasktypes.load_definitions()["rating"], digest="same bodies")
    found = hashlib.sha256()
    for slug, shipped in load_all().items():
        if shipped.frame == "fold" or shipped.metric:
            continue
        version = StrategyVersion(slug=slug, definition=shipped.definition)
        run = pinning.draft_run(
            Project(task_type=task, taxonomy_id=taxonomy.shipped_digest()), version, endpoint
        )
        strategy, digest_of = run.pinned_strategy(), rendering.build_digest_function(run)
        more = {step.name: "said" for step in strategy.steps} | dict.fromkeys(MORE, "more")
        for spec in frames.list_all_calls(strategy):
            body = rendering.render_body(run, TEXTS, spec, strategy, more)
            found.update(f"{slug} {digest_of(body, 0)}\n".encode())
    return found.hexdigest()


@pytest.mark.parametrize("way", WAYS)
def test_every_shipped_strategy_asks_endpoints_of_before_the_same_to_the_byte(way: str) -> None:
    assert requests(WAYS[way]) == RECORDED[way]
