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
    "chat": "5c3f0ed655ab269c9327898d2c28bc33eef6ee7c0b7e4080363a9c1d3a80619b",
    "chat with parameters": "2195756333fdae2f9b77fe8402407599c4c504090ee95f674444e9114d4d755c",
    "chat in JSON": "5742033e670d9de90719b8969fe955b401b2c7372204366b223a07ccddfd6341",
    "completions": "cf8be4ad0f74d6b1b0df69c1609a98b66636ac60ecc5125918cac8d90377ac4c",
    "anthropic": "02306ab11f893a79a98918906c0f6c300d086a1a85f7ccbf8fc66f0f9d700d5c",
    "anthropic by schema": "64d946e216520551a1235d8bce350e4c4182d43fa5a5a0e3b157935b971c64d1",
    "gemini": "4ec3584c16ba78ff9cd7f54612614e4fc4f6a418d28e3588eb403f94d811e65d",
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
        more |= {draw.name: "\n".join(one.text for one in draw.options) for draw in strategy.draws}
        for spec in frames.list_all_calls(strategy):
            body = rendering.render_body(run, TEXTS, spec, strategy, more)
            found.update(f"{slug} {digest_of(body, 0)}\n".encode())
    return found.hexdigest()


@pytest.mark.parametrize("way", WAYS)
def test_every_shipped_strategy_asks_endpoints_of_before_the_same_to_the_byte(way: str) -> None:
    assert requests(WAYS[way]) == RECORDED[way]
