"""A strategy is imported from a file of prompts: in the browser, in the API and by a command."""

import html
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from annotation.errors import Refused
from annotation.models import Event, Membership, Project
from judging import strategies
from judging.models import StrategyVersion
from judging.strategies import catalogue, editing, frames, markers, prompt_files
from judging.strategies.replies.outputs import parse_reply
from tests.judging.builders_rated import command

pytestmark = pytest.mark.django_db

PLAIN = (
    "Is this right?\n\nTask: {{question}}\nAnswer: {{response}}\n\nEnd with error or no error.\n"
)
CHAIN = (
    "=== system ===\nBe brief.\n=== step pick ===\nName the animal in {{response}}.\n\n"
    "=== step judge ===\nCompare {{pick}} with {{reference}}: S1: N, S2: N, S3: N\n"
)
HOSTILE = (
    '"""\nslug = "vanilla"\n[[steps]]\n</pre><script>alert(1)</script>{% load x %}{{question}}'
    "{{response}}\u202e \\u0000 '''\n# === prompt ===\n"
)


def imported(
    member: Membership, content: bytes | str, like: str = "detect-1a", **values: Any
) -> StrategyVersion:
    parent = catalogue.find_version(member.project, like)
    assert parent
    values = {"slug": "ours", "title": "Ours", "member": member, **values}
    return prompt_files.import_strategy(member.project, parent, content, **values)


def test_a_file_without_headings_is_the_prompt_word_for_word(member: Membership) -> None:
    version = imported(member, PLAIN.encode(), note=" from the paper ")
    strategy = version.strategy()
    assert (strategy.prompt, strategy.system) == (PLAIN.strip(), "")
    assert (str(version), str(version.parent), version.note) == (
        "ours v1", "detect-1a v1", "from the paper",
    )  # fmt: skip
    assert (strategy.frame, strategy.parser, strategy.worded) == ("detection", "phrases-001", True)
    assert Event.objects.get(kind="strategy").subject == "ours v1"


def test_parts_of_a_file_are_system_and_steps(member: Membership) -> None:
    strategy = imported(member, CHAIN.replace("\n", "\r\n"), like="score-chain").strategy()
    assert [step.name for step in strategy.steps] == ["pick", "judge"]
    assert {step.system for step in strategy.steps} == {"Be brief."}
    assert strategy.steps[1].prompt.startswith("Compare {{pick}}")
    assert parse_reply(strategy, "S1: 1, S2: 0, S3: -1").value == {"s1": 1, "s2": 0, "s3": -1}


def test_json_is_asked_for_only_where_the_prompt_speaks_of_it(member: Membership) -> None:
    text = "{{question}} {{response}} Score from 1 to 10."
    assert imported(member, text, like="vanilla").strategy().schema is None
    text += ' Reply in JSON: {"score": N}'
    assert imported(member, text, like="vanilla", slug="more").strategy().schema is not None
    text = "{{question}} {{reference}} {{guidance}} Change it."
    made = imported(member, text, like="generate-entity", slug="made").strategy()
    assert made.schema is not None


def test_examples_are_shown_only_where_the_file_has_a_place_for_them(member: Membership) -> None:
    text = "{{response}}\n{{metrics}} {{form}}"
    assert imported(member, text, like="score-matrix").strategy().examples == 0
    shown = imported(member, text + "{{examples}}", like="score-matrix", slug="more").strategy()
    assert shown.examples == 3


def test_switches_of_the_other_strategy_do_not_change_the_file(member: Membership) -> None:
    text = "[BEGIN Q]\n{{question}}\n[END Q]\n{{response}}"
    parent = catalogue.find_version(member.project, "vanilla")
    assert parent
    bare = editing.copy_strategy(
        member.project, parent, slug="bare", leave_out="markers", member=member
    )
    assert not markers.has_markers(bare.strategy().prompts)
    assert imported(member, text, like="bare").strategy().prompt == text


def test_a_hostile_file_stays_text(member: Membership, client: Client) -> None:
    assert member.account
    client.force_login(member.account)
    strategy = imported(member, HOSTILE, title='<b>"""').strategy()
    assert (strategy.slug, strategy.prompt, strategy.steps) == ("ours", HOSTILE.strip(), ())
    assert markers.has_guard(strategy.prompts) is False
    user = frames.render_prompt(
        strategy, {"input": "{{response}}", "response": "R"}, frames.list_calls(strategy)[0]
    ).user
    assert "{{response}}R" in user
    for page in ("", "edit/"):
        shown = client.get(f"/projects/fbi/strategies/ours/{page}").content.decode()
        assert "<script>alert(1)" not in shown
        assert "<b>" not in shown.partition("<h1")[2].partition("</h1>")[0]


@pytest.mark.parametrize(
    "content, words",
    [
        ("", "The file is empty"),
        (b"Good\n\xff\xfe", "Line 2: this is not UTF-8. Save"),
        ("a\nb\0c", r"Line 2: remove the control character U\+0000"),
        ("x" * 200_001, "too long. Shorten it to 200,000"),
        (("ß" * 400_001).encode()[:800_001], "too long. Shorten it to 200,000"),
        ("Why?\n{question} {{response}}", r"Line 2: write \{\{question\}\} in place of"),
        ("=== prompt ===\n{{question}}", r"Line 1: the text below does not use \{\{response\}\}"),
        ("{{question}}\n{{response}}\n{{a}}", r"Line 3: unknown placeholder \{\{a\}\}; use"),
        ("{{question}}\n{{ response }}", r"Line 2: unknown placeholder"),
        ("Hi\n=== prompt ===\n{{question}}", "Line 1: move the text before the first heading"),
        ("=== user ===\n{{question}}", "Line 1: unknown heading. Write === system ==="),
        ("=== system ===\nBe fair.", "no prompt. Add a line === prompt ==="),
        ("=== system ===\n\n=== prompt ===\nx", "Line 1: nothing follows this heading"),
        ("=== prompt ===\nx\n=== prompt ===\ny", "Line 3: there are two parts prompt"),
        ("=== prompt ===\nx\n=== step a ===\ny", "Line 3: use either one prompt, or two"),
        ("=== step a ===\n{{question}} {{response}}", "Line 1: steps: a chain needs two or more"),
        ("=== step a ===\nx\n=== step question ===\ny", "Line 3: steps.1.name"),
        ("=== system ===\n{{question}}\n=== prompt ===\nx", "Line 1: system: move its"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_names_the_line_and_the_remedy(
    member: Membership, content: bytes | str, words: str
) -> None:
    with pytest.raises(Refused, match=words):
        imported(member, content)
    assert not StrategyVersion.objects.own(member.project).exists()


def test_a_strategy_without_prompts_cannot_be_followed(member: Membership) -> None:
    with pytest.raises(Refused, match="has no prompt"):
        imported(member, PLAIN, like="length")
    with pytest.raises(Refused, match="built-in strategy is named vanilla"):
        imported(member, PLAIN, slug="vanilla")


LINES = st.sampled_from(
    [
        "=== prompt ===",
        "=== step a ===",
        "=== system ===",
        "{{response}}",
        "{{question}}",
        "{{",
        "x",
    ]
)


@given(st.lists(LINES | st.text(max_size=20), max_size=8))
def test_any_file_is_taken_or_refused(lines: list[str]) -> None:
    text = "\n".join(lines)
    parent = StrategyVersion(
        slug="detect-1a", definition=strategies.load_all()["detect-1a"].definition
    )
    with suppress(Refused):
        definition = prompt_files.read_file(text, parent)
        assert strategies.from_definition(definition).prompts


def test_the_page_takes_a_file_in_one_step(client: Client, member: Membership) -> None:
    assert member.account
    client.force_login(member.account)
    address = "/projects/fbi/strategies/detect-1a/import/"
    page = client.get(address).content.decode()
    assert "<code>{{response}}</code>" in page
    assert address in client.get("/projects/fbi/strategies/detect-1a/").content.decode()
    body = {"slug": "ours", "title": "Ours"}
    bad = client.post(
        address, body | {"file": SimpleUploadedFile("p.txt", b"{{question}}\n<b>{{x}}")}
    )
    assert bad.status_code == 422
    shown = bad.content.decode()
    assert "Line 2: unknown placeholder" in html.unescape(shown)
    assert "<b>{{x}}" not in shown
    sent = client.post(address, body | {"file": SimpleUploadedFile("p.txt", PLAIN.encode())})
    assert (sent.status_code, sent["Location"]) == (302, "/projects/fbi/strategies/ours/edit/")
    none = client.get("/projects/fbi/strategies/length/import/").content.decode()
    assert "has no prompt" in none
    assert "<form class" not in none


def test_the_api_takes_a_text(program: Client, project: Project) -> None:
    address = "/api/v1/projects/fbi/strategies/detect-1a/import/"
    body = {"prompts": PLAIN, "slug": "ours", "title": "Ours"}
    sent = program.post(address, body, content_type="application/json")
    assert (sent.status_code, sent.json()["made_from"]) == (201, "detect-1a v1")
    assert sent.json()["protection"] == {"markers": False, "guard": False}
    body |= {"prompts": "{question}\n{{response}}", "slug": "other"}
    bad = program.post(address, body, content_type="application/json")
    assert bad.status_code == 422
    assert "Line 1: write {{question}}" in bad.json()["detail"]


def test_the_command_takes_a_file(project: Project, tmp_path: Path) -> None:
    path = tmp_path / "prompt.txt"
    path.write_text(PLAIN, encoding="utf-8")
    words = (str(path), "--name=ours")
    given = {"project": "fbi", "like": "detect-1a"}
    assert "ours v1 created from prompt.txt" in command("import_strategy", *words, **given)
    assert StrategyVersion.objects.own(project).get().member is None
    with pytest.raises(CommandError, match="already has a strategy ours"):
        command("import_strategy", *words, **given)
    with pytest.raises(CommandError, match="no strategy nothing"):
        command("import_strategy", *words, **given | {"like": "nothing"})
    with pytest.raises(CommandError, match="cannot be read"):
        command("import_strategy", str(tmp_path / "none"), "--name=more", **given)
