"""Strategies in the API: read, copied, written in versions, previewed, replies read."""

import html
from typing import Any

import pytest
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from annotation.models import Membership, Project
from judging import strategies
from judging.models import Run, StrategyVersion
from tests.judging.builders_judging import make_endpoint, make_items, make_responses, make_run

pytestmark = pytest.mark.django_db

API = "/api/v1/projects/fbi/strategies/"


def post(program: Client, path: str, **body: Any) -> Any:
    return program.post(API + path, body, content_type="application/json")


def copied(program: Client, **values: Any) -> Any:
    answer = post(program, "", **{"strategy": "vanilla", "slug": "ours", **values})
    assert answer.status_code == 201
    return answer.json()


def test_the_list_has_every_strategy_with_its_runs(program: Client, project: Project) -> None:
    make_items(project, 1)
    make_run(project)
    rows = {row["slug"]: row for row in program.get(API).json()}
    assert rows.keys() == strategies.load_all().keys()
    assert rows["rouge-l"]["runs"] == 1
    assert rows["vanilla"] == {
        "slug": "vanilla",
        "title": "Vanilla",
        "study": "000 section 4.1, Vanilla",
        "frame": "single",
        "output": "score",
        "own": False,
        "version": 1,
        "digest": strategies.compute_digest(strategies.load_all()["vanilla"].definition),
        "runs": 0,
        "offered": True,
    }


def test_one_strategy_says_its_text_and_its_calls(program: Client) -> None:
    told = program.get(f"{API}pairwise/").json()
    assert told["toml"] == strategies.read_source("pairwise")
    assert told["definition"]["frame"] == "pair"
    assert told["decides"] == ["Detected if the gold answer is chosen in both orders."]
    assert [one["name"] for one in told["calls"]] == ["pair.1..0", "pair.2..0"]
    assert (told["created_at"], told["made_from"]) == (None, None)


def test_a_prompt_of_scores_in_its_own_words_is_saved_and_its_pages_warn(
    program: Client, client: Client, member: Membership
) -> None:
    assert member.account
    client.force_login(member.account)
    copied(program, strategy="score-rubric")
    toml = program.get(f"{API}ours/").json()["toml"].replace("{{metrics}}", "3 is best.")
    sent = post(program, "ours/versions/", toml=toml, base=1)
    assert (sent.status_code, program.get(f"{API}score-rubric/").json()["warnings"]) == (201, [])
    (warning,) = sent.json()["warnings"]
    assert "does not use {{metrics}}" in warning
    for page in ("", "edit/"):
        shown = client.get(f"/projects/fbi/strategies/ours/{page}")
        assert html.escape(warning) in shown.content.decode()


def test_a_copy_is_made_and_written_on(program: Client, project: Project) -> None:
    copy = copied(program, title="Ours", note="why")
    assert (copy["version"], copy["made_from"], copy["by"], copy["note"]) == (
        1, "vanilla v1", "rita", "why",
    )  # fmt: skip
    text = copy["toml"].replace("useless", "worthless")
    stored = post(program, "ours/versions/", toml=text, base=1, note="stronger")
    assert stored.status_code == 201
    assert stored.json()["toml"] == text
    rows = program.get(f"{API}ours/versions/").json()
    assert [(row["version"], row["made_from"]) for row in rows] == [
        (2, "ours v1"),
        (1, "vanilla v1"),
    ]
    assert program.get(f"{API}ours/?version=1").json()["toml"] == copy["toml"]
    assert "worthless" in program.get(f"{API}ours/").json()["definition"]["prompt"]


def test_the_same_text_stores_nothing(program: Client, project: Project) -> None:
    text = copied(program)["toml"]
    again = post(program, "ours/versions/", toml=text, base=1)
    assert (again.status_code, again.json()["version"]) == (200, 1)
    assert StrategyVersion.objects.own(project).count() == 1


def test_a_later_version_is_a_conflict(program: Client) -> None:
    text = copied(program)["toml"]
    post(program, "ours/versions/", toml=text + "# one\n", base=1)
    late = post(program, "ours/versions/", toml=text + "# two\n", base=1)
    assert late.status_code == 409
    assert "ours v2 was saved while you were editing" in late.json()["detail"]


def test_an_earlier_version_can_be_copied(program: Client) -> None:
    text = copied(program)["toml"]
    post(program, "ours/versions/", toml=text + "# one\n", base=1)
    copy = copied(program, strategy="ours", version=1, slug="second")
    assert copy["made_from"] == "ours v1"
    assert "# one" not in copy["toml"]


@pytest.mark.parametrize(
    "path, body, status, words",
    [
        ("", {"strategy": "none", "slug": "ours"}, 422, "no strategy 'none'"),
        ("", {"strategy": "vanilla", "version": 9, "slug": "ours"}, 422, "no strategy"),
        ("", {"strategy": "vanilla", "slug": "axis"}, 422, "Choose another name"),
        ("", {}, 422, "required"),
        (
            "vanilla/versions/",
            {"toml": strategies.read_source("vanilla"), "base": 1},
            422,
            "Copy it",
        ),
        ("vanilla/versions/", {"toml": "frame = ", "base": 1}, 422, "Line 2: This is not TOML"),
        ("vanilla/versions/", {"toml": "x"}, 422, "base"),
        ("vanilla/preview/", {"toml": "frame = 1"}, 422, "is missing; add it"),
        ("vanilla/preview/", {"item": "none"}, 422, "no item 'none'"),
        ("vanilla/preview/", {"endpoint": "none"}, 422, "There is no endpoint 'none'"),
        ("vanilla/preview/", {"call": "pair.1..0"}, 422, "has no call"),
        ("vanilla/preview/", {}, 422, "Choose an item"),
        ("majority/preview/", {}, 422, "sends no requests"),
        ("majority/parse/", {"text": "x"}, 422, "sends no requests"),
        ("vanilla/parse/", {}, 422, "required"),
        ("vanilla/parse/", {"text": "x", "finish": "never"}, 422, "not a valid choice"),
        ("none/parse/", {"text": "x"}, 404, ""),
        ("vanilla/parse/", {"text": "\ud800"}, 422, "urrogate"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_says_why(
    program: Client, path: str, body: dict[str, Any], status: int, words: str
) -> None:
    answer = post(program, path, **body)
    assert answer.status_code == status
    assert words in str(answer.json())
    assert not StrategyVersion.objects.exclude(project=None).exists()


@pytest.mark.parametrize("path", ["none/", "none/versions/", "vanilla/?version=7"])
def test_what_is_not_there_is_404(program: Client, path: str) -> None:
    assert program.get(API + path).status_code == 404


def test_a_preview_says_what_would_be_sent(program: Client, project: Project) -> None:
    make_items(project, 2)
    make_endpoint("https://evaluator.example/v1", name="judge", model="judge-1")
    text = strategies.read_source("vanilla").replace("Judge how well", "Say how well")
    told = post(
        program, "vanilla/preview/",
        toml=text, item="item-2", call="perturbed.0..0", endpoint="judge",
    ).json()  # fmt: skip
    assert "Say how well" in told["prompt"]["user"]
    assert "2 spiders have 12 legs." in told["prompt"]["user"]
    assert '"model":"judge-1"' in told["sent"]["body"]
    assert len(told["sent"]["digest"]) == 64
    assert (told["flags"], told["notes"], told["refused"]) == ([], [], "")
    assert not Run.objects.exists()


def test_a_preview_of_a_later_step_takes_what_was_said(program: Client, project: Project) -> None:
    make_responses(project, ["valid"])
    body = {"call": "response.0..1"}
    assert post(program, "score-chain/preview/", **body).json()["stand_ins"] == ["extract"]
    told = post(program, "score-chain/preview/", **body, said={"extract": "ant"}).json()
    assert told["replies"] == {"extract": "ant"}
    assert told["stand_ins"] == []


def test_a_reply_is_read(program: Client) -> None:
    text = '{"explanation": "Two legs less.", "score": 4}'
    assert post(program, "vanilla/parse/", text=text).json() == {
        "value": 4.0,
        "path": "strict",
        "cause": "",
        "explanation": "Two legs less.",
    }
    cut = post(program, "vanilla/parse/", text=text, finish="length").json()
    assert (cut["value"], cut["cause"]) == (None, "truncated")
    many = post(program, "score-chain/parse/", text="<RESULT>s1: 1, s2: 5</RESULT>").json()
    assert many["value"] == {"s1": 1.0, "s2": "off_scale", "s3": "unparsable"}


def test_a_text_that_is_not_stored_reads_by_its_own_scale(program: Client) -> None:
    text = strategies.read_source("vanilla").replace("high = 10", "high = 3")
    assert post(program, "vanilla/parse/", toml=text, text="Score: 4").json()["cause"] == (
        "off_scale"
    )


def test_the_schema_describes_every_way(program: Client) -> None:
    paths = SchemaGenerator().get_schema(public=True)["paths"]
    base = "/api/v1/projects/{slug}/strategies/"
    assert set(paths[base]) == {"get", "post"}
    one = base + "{strategy}/"
    assert set(paths[f"{one}versions/"]) == {"get", "post"}
    assert {"200", "201", "409", "422"} <= paths[f"{one}versions/"]["post"]["responses"].keys()
    for way in ("preview/", "parse/"):
        assert paths[one + way]["post"]["requestBody"]
