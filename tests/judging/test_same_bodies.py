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
    "chat": "9096b000aaa3431634577620b46cd416fa7fd92cfb344b82c1247af75f9683ec",
    "chat with parameters": "ca5dd9798df1641cc6deb4afec6550ec1f5af122093794680bd8ccb9e70b1946",
    "chat in JSON": "74e7669c4da73b244b98d82aee821e26fd6b1b5283ddd32cc5b6d0a600f98e22",
    "completions": "82a5db4c00696cff9c8b36f19208fe67196363b728f1d093b3bef27a1b83f548",
    "anthropic": "a7efc33b5c02a6acb712a4e595a533f2a593d079581387a13e34265cea1c8f90",
    "anthropic by schema": "55142123d368b504519e98550c511ff984474414b64bcd2241155b0499011ccb",
    "gemini": "c1c3c2a60d5a8b59e98c5bfee2dc1fed3fcc08891310b44d3fe3af78c06de31a",
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
