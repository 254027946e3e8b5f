"""What the page of the API tells people to call is what the API answers."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import Resolver404, resolve

from annotation.models import ApiToken, Job
from judging.exporting import jobs
from tests.builders import make_member, make_project
from tests.judging.builders_decided import make_replied, scores
from tests.judging.builders_judging import make_items

PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"
# What stands for a part of a path, and such a part.
PARTS = {
    "SLUG": "demo",
    "NUMBER": "1",
    "UUID": "7f1f6f0e-6f7a-4f0e-9a36-0d4c7f0d3c55",
    "ID": "1",
    "TABLE": "undetected",
}


def _list_calls() -> list[str]:
    return re.findall(r"^curl .+$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def _list_paths() -> list[str]:
    _, _, text = PAGE.read_text(encoding="utf-8").partition("## Resources")
    resources, _, _ = text.partition("## Lists")
    return sorted(set(re.findall(r"`([\w/-]+/)(?:\?\S*)?`", resources)))


@pytest.fixture
def client(settings: Any, tmp_path: Path, in_this_program: None) -> Client:
    """A program with a token that only reads, of the lead of a project `demo` with a run."""
    settings.VAR_DIR = tmp_path
    lead = make_member(make_project("demo"), role="lead")
    items = make_items(lead.project, 3)
    make_replied(lead.project, "vanilla", [(item, scores(9, 5)) for item in items])
    assert lead.account
    _, key = ApiToken.issue(lead.account, "first calls", ["read"])
    return Client(headers={"Authorization": f"Bearer {key}"})


@pytest.mark.django_db
def test_the_first_calls_are_answered_in_their_order(client: Client) -> None:
    calls = _list_calls()
    assert len(calls) == 6
    for line in calls:
        curl, *words = shlex.split(line.replace("$API", "http://127.0.0.1:8000/api/v1"))
        assert (curl, words[:2]) == ("curl", ["-H", "Authorization: Bearer $TOKEN"])
        address = next(word for word in words if word.startswith("http://"))
        path = address.removeprefix("http://127.0.0.1:8000")
        if "--json" in words:
            body = words[words.index("--json") + 1]
            answer = client.post(path, body, content_type="application/json")
            assert answer.status_code == 201, line
            jobs.run_job(Job.objects.get(kind=jobs.KIND).pk)
        else:
            answer = client.get(path)
            assert answer.status_code == 200, line
        if "--output" not in words:
            told = answer.json()
            assert told.get("results", told.get("rows", told.get("number"))), line
    assert len(answer.getvalue().splitlines()) == 1 + 3  # a head and the items


@pytest.mark.parametrize("path", _list_paths())
def test_each_path_of_the_page_exists(path: str) -> None:
    for word, part in PARTS.items():
        path = path.replace(word, part)
    whole = path.startswith(("projects/", "endpoints/", "endpoint-presets/"))
    tried = (
        [f"/api/v1/{path}"]
        if whole
        else [
            f"/api/v1/projects/demo/{above}{path}"
            for above in ("", "webhooks/1/", "webhooks/1/deliveries/")
        ]
    )
    for address in tried:
        try:
            resolve(address)
            return
        except Resolver404:
            continue
    pytest.fail(f"{path} is no path of the API.")


def test_the_page_names_paths_at_all() -> None:
    assert len(_list_paths()) > 40
