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
    "chat": "e12d89d45f4043badc4830bc21bf372524842aadd95d2c15d8bfa8711c125f85",
    "chat with parameters": "5752817521209ea4916ab9198481cbb98601c22ab808f40df7155030947cf071",
    "chat in JSON": "77d61c1a3a2fb61ee73b046e19f4e2202de4971e276fc8becc0a96dcf43e8903",
    "completions": "799089772bd420c0f6811c94ac67cd3bdc71ea4357caf89da601689e18a90e3b",
    "anthropic": "28f585a9da23c246fa04a53eb8f3d5080981261b885eb75fff55e1e2e500f4a3",
    "anthropic by schema": "e353eb22b7d686d309e4c4665d85ecfe78ee2b39002b242cbbe3d14066ccc58b",
    "gemini": "3275d305f6ea31905278661bc2d930312c6a8579b6d0d8592843ae3564120fd3",
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
