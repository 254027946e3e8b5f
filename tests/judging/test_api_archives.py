"""Archives of results in the API: asked for, watched, taken."""

from pathlib import Path
from typing import Any

import pytest

from judging.archive import jobs
from tests.builders import Cast, cast
from tests.judging.builders_judging import api_client, make_items, make_judged

pytestmark = pytest.mark.django_db


@pytest.fixture
def people(settings: Any, tmp_path: Path, in_this_program: None) -> Cast:
    settings.VAR_DIR = tmp_path
    people = cast()
    make_judged(people.project, [(make_items(people.project, 1)[0], "detected")])
    return people


def address(people: Cast, end: str = "") -> str:
    return f"/api/v1/projects/{people.project.slug}/archives/{end}"


def test_an_archive_is_asked_for_once_watched_and_taken(people: Cast) -> None:
    client, headers = api_client(people.lead), {"Idempotency-Key": "k"}
    for _ in range(2):
        asked = client.post(
            address(people), {"texts": True}, content_type="application/json", headers=headers
        )
    told = asked.json()
    assert (told["number"], told["runs"], told["texts"], told["file"]) == (1, [1], True, False)
    assert client.get(address(people, "1/file/")).status_code == 409
    assert jobs.run_job(people.project.jobs.get(kind=jobs.KIND).pk)
    told = client.get(address(people, "1/")).json()
    assert (told["state"], told["file"]) == ("finished", True)
    taken = client.get(address(people, "1/file/")).getvalue()
    assert (taken[:2], len(taken)) == (b"PK", told["bytes"])
    assert client.get(address(people)).json()["results"] == [told]
    assert client.get(address(people, "2/")).status_code == 404


def test_an_archive_of_runs_that_are_not_there_is_refused_by_their_numbers(people: Cast) -> None:
    answer = api_client(people.lead).post(
        address(people), {"runs": [1, 7]}, content_type="application/json"
    )
    assert answer.status_code == 422
    assert answer.json()["errors"] == {"runs": ["There is no run 7 to show."]}
    assert not people.project.jobs.exists()
