"""What endpoints are asked stays the same to the byte, so that stored replies still serve."""

import hashlib
from collections.abc import Mapping
from typing import Any

import pytest

from annotation import tasktypes
from annotation.items import taxonomy
from annotation.models import Project, TaskTypeVersion
from judging.models import Endpoint, Run, StrategyVersion
from judging.runs import canaries, lifecycle, pinning
from judging.runs.engine import rendering
from judging.strategies import frames, load_all
from tests.builders import make_project
from tests.judging.builders_judging import make_endpoint, make_items, make_strategy, take

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
    "chat": "1856118ce3e55e6a35ec98447611aedfebbe618da13730cffb20ddfd9f79419b",
    "chat with parameters": "aa1f7cea911655a296a6eab9f15c5245bf6b5dc21e6ebe3bf1490f5f03acc02c",
    "chat in JSON": "9b8242cb8e14165505a819187e79d4efcd04ac45e43a35354081386cc921d93e",
    "completions": "515c0a9967ce483b29396e7206fe0f86415a31b3e12922f657748578b66ae859",
    "anthropic": "6d6aee407bae92fef8d104f73514877a0656eba3aa72c04ed6a6f1b0bcbe5217",
    "anthropic by schema": "6a7c167e2b489d24767a070808d6c88d35014600989aedce8a1a41c84d2d3d9b",
    "gemini": "7de47d7fac6ecdc8ba774a0f6b4b31b0b19009a0dae5b2d24f384168e325bbbe",
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


@pytest.mark.parametrize(
    ("renderer", "slug", "shown"),
    [
        (frames.RENDERER, "vanilla", True),
        ("render-1", "vanilla", False),
        ("render-1", "pairwise", False),
        ("render-1", "reference", False),
        ("render-1", "detect-1a", True),
    ],
)
def test_a_run_shows_the_context_of_items_as_when_it_was_started(
    renderer: str, slug: str, shown: bool
) -> None:
    task = TaskTypeVersion(definition=tasktypes.load_definitions()["rating"], digest="same bodies")
    run = pinning.draft_run(
        Project(task_type=task, taxonomy_id=taxonomy.shipped_digest()),
        StrategyVersion(slug=slug, definition=load_all()[slug].definition),
        Endpoint(name="judge", provider="openai_compatible", address="https://j.example/v1"),
    )
    run.renderer = renderer
    strategy, texts = run.pinned_strategy(), TEXTS | {"context": "A passage."}
    for spec in frames.list_all_calls(strategy):
        more = {step.name: "said" for step in strategy.steps} | dict.fromkeys(MORE, "more")
        assert (b"A passage." in rendering.render_body(run, texts, spec, strategy, more)) is shown


@pytest.mark.django_db
def test_a_canary_from_before_contexts_were_shown_is_repeated_without_them() -> None:
    project = make_project()
    [item] = make_items(project, 1)
    item.revisions.update(texts=TEXTS | {"context": "A passage."})
    first = canaries.start_canary(
        project, strategy=make_strategy(), endpoint=make_endpoint("http://127.0.0.1:9/v1")
    )
    Run.objects.filter(pk=first.pk).update(renderer="render-1")
    first.refresh_from_db()
    bodies = []
    for run in (first, canaries.repeat_canary(first)):
        lifecycle.plan_calls(run)
        bodies += [leased.body for leased in take(run)]
    assert len(bodies) == 2
    assert bodies[0] == bodies[1]
    assert b"A passage." not in bodies[0]
