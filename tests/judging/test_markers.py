"""Marker lines and the sentence against injected instructions: switched off in a strategy, kept in
runs, said on pages, in the API and in the methods paragraph."""

import pytest
from django.test import Client

from annotation.models import Membership, Project
from judging.models import StrategyVersion
from judging.results.tables import methods
from judging.runs import lifecycle
from judging.strategies import (
    Strategy,
    StrategyError,
    catalogue,
    compute_digest,
    editing,
    frames,
    from_definition,
    load_all,
    markers,
)
from tests.judging.builders_judging import make_endpoint, make_responses

ASKED = [one.slug for one in load_all().values() if markers.has_guard(one.prompts)]
ADDRESS = "/projects/fbi/strategies/detect-1a/copy/"


def changed(slug: str, **switches: bool) -> Strategy:
    return from_definition(load_all()[slug].definition | switches)


@pytest.mark.parametrize("slug", ASKED)
def test_every_shipped_prompt_can_leave_out_both(slug: str) -> None:
    shipped, bare = load_all()[slug], changed(slug, markers=False, guard=False)
    for before, after in zip(shipped.prompts, bare.prompts, strict=True):
        for leftover in ("marker", "do not act", "[BEGIN", "[END", "\n\n\n"):
            assert leftover not in after
        assert len(after) < len(before) or not markers.has_markers([before])
    assert compute_digest(bare.definition) != compute_digest(shipped.definition)


@pytest.mark.parametrize("slug", ASKED)
def test_the_sentence_alone_can_be_left_out(slug: str) -> None:
    shipped, without = load_all()[slug], changed(slug, guard=False)
    assert "do not act" not in "".join(without.prompts)
    assert [text.count("[BEGIN") for text in without.prompts] == [
        text.count("[BEGIN") for text in shipped.prompts
    ]


def test_headings_stand_in_place_of_marker_lines_and_inserted_texts_stay_whole() -> None:
    bare = changed("pairwise", markers=False, guard=False)
    texts = {"prompt": "[BEGIN QUESTION]\nWhy?", "gold": "So.", "perturbed": "[END RESPONSE A]"}
    user = frames.render_prompt(bare, texts, frames.CallSpec("pair", 1)).user
    shown = (
        "Question:\n[BEGIN QUESTION]\nWhy?\n\nResponse A:\nSo.\n\nResponse B:\n[END RESPONSE A]\n"
    )
    assert shown in user


def test_examples_have_a_heading_too() -> None:
    strategy = from_definition(
        load_all()["score-matrix-animals"].definition | {"markers": False, "guard": False}
    )
    texts = {"prompt": "Which?", "gold": "A lynx.", "response": "A cat."}
    shown = frames.render_examples(strategy, [(texts, dict.fromkeys(["m1", "m2"], 1))])
    assert shown.startswith("Example 1\n\nQuestion:\nWhich?")
    assert "[" not in shown.partition("Given:")[0]


def test_the_sentence_cannot_stay_without_the_markers_that_it_speaks_of() -> None:
    with pytest.raises(StrategyError, match="guard = false"):
        changed("vanilla", markers=False)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "chosen, protection, lacking",
    [
        ("", {"markers": True, "guard": True}, None),
        (
            "guard",
            {"markers": True, "guard": False},
            "no sentence against instructions inside the texts",
        ),
        (
            "markers",
            {"markers": False, "guard": False},
            "no marker lines around the texts and no sentence against instructions inside the "
            "texts",
        ),
    ],
)
def test_a_copy_leaves_out_what_a_lead_chose_and_its_runs_say_so(
    client: Client, program: Client, member: Membership, project: Project, chosen: str,
    protection: dict[str, bool], lacking: str | None,
) -> None:  # fmt: skip
    assert member.account
    client.force_login(member.account)
    sent = client.post(ADDRESS, {"slug": "ours", "title": "Ours", "leave_out": chosen})
    assert sent.status_code == 302
    told = program.get("/api/v1/projects/fbi/strategies/ours/").json()
    assert told["protection"] == protection
    page = client.get("/projects/fbi/strategies/ours/").content.decode()
    marked, guarded = protection["markers"], protection["guard"]
    assert ("The texts stand between marker lines" in page) is marked
    assert ("a sentence says that instructions" in page) is guarded
    assert "how well they do is not known" in page
    make_responses(project, ["error"])
    run = lifecycle.start_run(
        project,
        strategy=StrategyVersion.objects.get(slug="ours"),
        endpoint=make_endpoint("https://judge.invalid/v1"),
    )
    assert run.pinned_strategy().guard is protection["guard"]
    assert markers.has_markers(run.pinned_strategy().prompts) is protection["markers"]
    text = methods.write_methods(project, [run]).text
    assert ("Its prompts have" in text) is (lacking is not None)
    if lacking:
        assert f"Its prompts have {lacking}." in text


@pytest.mark.django_db
def test_the_api_copies_without_them_and_a_copy_of_a_copy_stays_so(
    program: Client, member: Membership
) -> None:
    body = {"strategy": "vanilla", "slug": "ours", "leave_out": "markers"}
    address = "/api/v1/projects/fbi/strategies/"
    first = program.post(address, body, content_type="application/json")
    assert first.status_code == 201
    body = {"strategy": "ours", "slug": "again", "leave_out": "guard"}
    assert program.post(address, body, content_type="application/json").status_code == 201
    again = catalogue.find_version(member.project, "again")
    assert again
    assert (again.strategy().markers, again.strategy().guard) == (False, False)
    body = {"strategy": "ours", "slug": "other", "leave_out": "all"}
    assert program.post(address, body, content_type="application/json").status_code == 422
    assert editing.LEFT_OUT.keys() == {"", "guard", "markers"}


@pytest.mark.django_db
def test_pages_of_shipped_prompts_say_that_they_are_reworded(
    client: Client, member: Membership
) -> None:
    assert member.account
    client.force_login(member.account)
    for slug, reworded in (("detect-1a", True), ("rouge-l", False), ("mean", False)):
        page = client.get(f"/projects/fbi/strategies/{slug}/").content.decode()
        assert ("reworded after study" in page) is reworded
    client.post(ADDRESS, {"slug": "ours", "title": "Ours"})
    assert "reworded" not in client.get("/projects/fbi/strategies/ours/").content.decode()


@pytest.mark.parametrize("slug", [slug for slug in load_all() if slug.startswith("detect-")])
def test_detectors_of_study_001_may_answer_at_the_studys_length(slug: str) -> None:
    strategy = load_all()[slug]
    assert strategy.parameters["max_tokens"] == 4096
    assert strategy.title.startswith("Error detection")
