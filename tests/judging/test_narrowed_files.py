"""What narrows a page down narrows its files, the API and the command down as well."""

import json
import re

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from annotation.models import Project
from tests.judging.builders_decided import make_replied, scores
from tests.judging.builders_judging import make_items

pytestmark = pytest.mark.django_db

INDEX = "/projects/fbi/results/"
NARROWED = "by=ability,category&category=spelling"


@pytest.fixture
def judged(project: Project) -> Project:
    items = [*make_items(project, 2), *make_items(project, 2, category="spelling")]
    make_replied(project, "vanilla", zip(items, [scores(9, 5), scores(9, 9)] * 2, strict=True))
    return project


def categories(answer: bytes) -> list[str]:
    return [row["category"] for row in json.loads(answer)["rows"]]


def test_the_files_of_a_page_are_narrowed_down_as_it_is(judged: Project, browser: Client) -> None:
    address = f"{INDEX}by-category/?view=counts&{NARROWED}"
    page = browser.get(address).content.decode().replace("&amp;", "&")
    found = re.findall(rf'href="({INDEX}undetected\.json\?[^"]*)"', page)
    assert [categories(browser.get(one).content) for one in found] == [["spelling"]]
    assert "--by ability,category --only category=spelling" in page


def test_api_and_command_give_the_same_rows(
    judged: Project, browser: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = browser.get(f"/api/v1/projects/fbi/results/undetected/?{NARROWED}")
    assert categories(answer.content) == ["spelling"]
    call_command("results", "undetected", project="fbi", only=["category=spelling"])
    assert json.loads(capsys.readouterr().out) == answer.json()


def test_any_column_narrows_and_what_no_row_has_gives_none(
    judged: Project, browser: Client
) -> None:
    def rows(query: str) -> int:
        answer = browser.get(f"/api/v1/projects/fbi/results/undetected/?{query}")
        return len(answer.json()["rows"])

    # `run` names runs and not rows, an empty value is no wish, and what is no column is none.
    assert rows("run=1&by=category&category=&nothing=1") == 2
    assert rows("by=category&score_invariant=false") == 2
    assert rows("by=category&score_invariant=true") == 0


def test_the_command_says_what_it_does_not_understand(judged: Project) -> None:
    with pytest.raises(CommandError, match="'spelling' is not COLUMN=VALUE"):
        call_command("results", "undetected", project="fbi", only=["spelling"])


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        (
            ["abillity=factual"],
            "has no column 'abillity'. Its columns: endpoint, strategy, run_name, ability",
        ),
        (["run=1"], "use --run NUMBER to choose runs"),
        (["=1"], "has no column ''"),
        (["category=spelling", "category=grammar"], "Give one value per column"),
    ],
)
def test_the_command_refuses_what_narrows_nothing(
    judged: Project, said: list[str], remedy: str
) -> None:
    with pytest.raises(CommandError, match=remedy):
        call_command("results", "undetected", project="fbi", only=said)


def test_a_column_may_have_an_equals_sign_in_its_name(
    judged: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    judged.items.update(fields={"a=b": "c=d"})
    judged.items.filter(category="spelling").update(fields={"a=b": "d"})
    for said, items in (("a=b=c=d", 2), ("a=b=d", 2), ("a=b=c", 0)):
        call_command("results", "dataset", project="fbi", by="a=b", only=[said])
        rows = json.loads(capsys.readouterr().out)["rows"]
        assert sum(row["count"] for row in rows if row["of"] == "category") == items


def test_a_number_that_no_run_can_have_is_refused_in_words(judged: Project) -> None:
    with pytest.raises(CommandError, match=f"fbi has no run {10**30}"):
        call_command("results", "undetected", project="fbi", run=[10**30])
