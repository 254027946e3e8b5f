"""Outside ratings of endpoints: entered on their page and through the API, and checked."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from annotation.models import Event
from judging.evaluators.ratings import MOST_RATINGS, check_ratings, clean_ratings
from judging.models import Endpoint
from tests.builders import Cast, make_account
from tests.judging.builders_judging import make_endpoint, make_items, make_run
from tests.judging.test_endpoints_api import GOOD, admin, patch, post

__all__ = ["admin"]
pytestmark = pytest.mark.django_db

ELO = {"name": "Elo", "value": 1251.0, "source": "LMSYS", "date": "2024-03-16"}
MMLU = {"name": "MMLU", "value": 86.4, "source": "OpenAI 2023", "date": "2023-03-27"}
COLUMNS = ("name", "value", "source", "date")


def test_ratings_are_stored_as_numbers_dates_and_texts_without_spare_space() -> None:
    typed = {"name": " Elo ", "value": " 1251 ", "source": "LMSYS\n ", "date": "2024-03-16 "}
    assert clean_ratings([typed]) == [ELO]
    assert clean_ratings(None) == clean_ratings("") == []
    check_ratings([ELO, MMLU])
    with pytest.raises(ValidationError):
        check_ratings([typed])


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"value": "high"}, "Rating 1 (Elo): Enter the value as a number"),
        ({"value": "1,251"}, "Enter the value as a number"),
        ({"value": "nan"}, "Enter the value as a number"),
        ({"value": 10**400}, "Enter the value as a number"),
        ({"value": True}, "Enter the value as a number"),
        ({"value": None}, "Enter the value as a number"),
        ({"name": "  "}, "Rating 1: Enter the name"),
        ({"name": "a\0b"}, "Remove the invisible characters from the name"),
        ({"name": 3}, "Rating 1 (3): Enter the name"),
        ({"source": ""}, "Enter the source"),
        ({"source": "s" * 301}, "Shorten the source to 300"),
        ({"date": "16.3.2024"}, "Enter the date of the rating"),
        ({"date": None}, "Enter the date of the rating"),
        ({"unit": "points"}, "There is no 'unit'. There are name, value, source, date."),
    ],
)
def test_a_rating_that_cannot_be_used_is_named_with_what_to_do(
    wrong: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValidationError) as error:
        clean_ratings([ELO | wrong])
    assert words in " ".join(error.value.messages)


@pytest.mark.parametrize(
    "ratings, words",
    [
        ([ELO, MMLU, ELO | {"value": 3}], "Rating 3 (Elo): This name is there twice."),
        ([MMLU] * (MOST_RATINGS + 1), "Enter at most 50 ratings."),
        ({"Elo": 3}, "Enter a list of ratings"),
        (["Elo"], "Enter a list of ratings"),
        ("Elo", "Enter a list of ratings"),
        (3, "Enter a list of ratings"),
    ],
)
def test_ratings_that_do_not_go_together_are_refused(ratings: Any, words: str) -> None:
    with pytest.raises(ValidationError) as error:
        clean_ratings(ratings)
    assert words in " ".join(error.value.messages)


def test_the_api_takes_and_gives_ratings(admin: Client) -> None:
    assert post(admin, **GOOD, ratings=[ELO]).json()["ratings"] == [ELO]
    first = admin.get("/api/v1/endpoints/judge/")
    assert first.json()["ratings"] == [ELO]
    changed = patch(admin, "judge", first.headers["ETag"], ratings=[MMLU, ELO])
    assert changed.json()["ratings"] == [MMLU, ELO]
    assert patch(admin, "judge", first.headers["ETag"], ratings=[]).status_code == 412
    assert patch(admin, "judge", timeout=9).json()["ratings"] == [MMLU, ELO]
    event = Event.objects.filter(kind="endpoint", data__has_key="old").order_by("pk")[1]
    assert event.data == {"old": {"ratings": [ELO]}, "new": {"ratings": [MMLU, ELO]}}
    refused = patch(admin, "judge", ratings=[ELO, ELO])
    assert refused.status_code == 422
    assert "Rating 2 (Elo): This name is there twice." in str(refused.json()["errors"]["ratings"])
    assert patch(admin, "judge", ratings=[ELO | {"value": "high"}]).status_code == 422
    assert patch(admin, "judge", ratings=[{"name": "Elo"}]).status_code == 422
    assert patch(admin, "judge", ratings=[]).json()["ratings"] == []


def test_ratings_change_after_runs_and_of_endpoints_that_make_no_calls(
    admin: Client, people: Cast
) -> None:
    make_items(people.project, 1)
    endpoint = make_endpoint("https://evaluator.example/v1")
    make_run(people.project, endpoint)
    assert patch(admin, endpoint.name, ratings=[ELO]).json()["ratings"] == [ELO]
    Endpoint.objects.create(name="published", provider="recorded", model="gemma-7b-it")
    assert patch(admin, "published", ratings=[ELO]).json()["ratings"] == [ELO]
    refused = patch(admin, "published", timeout=9)
    assert refused.json()["errors"] == {
        "timeout": ["This endpoint makes no calls, so only its ratings can change."]
    }


def filled(*ratings: dict[str, Any]) -> dict[str, list[str]]:
    """What a browser sends for these rows."""
    return {f"ratings-{one}": [str(row.get(one, "")) for row in ratings] for one in COLUMNS}


def test_ratings_are_entered_on_the_page_row_by_row(client: Client) -> None:
    client.force_login(make_account("boss", is_superuser=True))
    Endpoint.objects.create(name="published", provider="recorded", model="gemma", ratings=[ELO])
    page = "/endpoints/published/edit/"
    shown = client.get(page).content.decode()
    assert 'name="ratings-value" value="1251"' in shown
    assert 'name="timeout"' not in shown
    sent = client.post(page, filled(ELO, {}, MMLU | {"value": "86.4 %"}))
    told = sent.content.decode()
    assert sent.status_code == 422
    assert "Rating 2 (MMLU): Enter the value as a number, for example 71.8." in told
    assert 'name="ratings-value" value="86.4 %"' in told
    assert client.post(page, filled(ELO, {}, MMLU, {})).status_code == 302
    assert Endpoint.objects.get(name="published").ratings == [ELO, MMLU]
    told = client.get("/endpoints/published/").content.decode()
    assert ">1251</td>" in told
    assert "27 Mar 2023" in told
    # A form without the rows leaves the ratings; empty rows remove them.
    assert client.post(page, {"other": "x"}).status_code == 302
    assert Endpoint.objects.get(name="published").ratings == [ELO, MMLU]
    assert client.post(page, filled({}, {})).status_code == 302
    assert Endpoint.objects.get(name="published").ratings == []


def test_typed_ratings_stay_when_a_preset_is_chosen(client: Client) -> None:
    client.force_login(make_account("boss", is_superuser=True))
    sent = client.get("/endpoints/new/", {"preset": "ollama", **filled(ELO, {})})
    assert 'name="ratings-source" value="LMSYS"' in sent.content.decode()


def test_names_of_ratings_are_offered_again_and_are_texts(client: Client) -> None:
    client.force_login(make_account("boss", is_superuser=True))
    Endpoint.objects.create(
        name="a", provider="recorded", model="a", ratings=[ELO | {"name": "<b>x</b>"}]
    )
    shown = client.get("/endpoints/new/").content.decode()
    assert '<option value="&lt;b&gt;x&lt;/b&gt;">' in shown
    assert "<b>x</b>" not in shown + client.get("/endpoints/a/").content.decode()
