"""The lists of a person, keys and panels beside the item, as pages and forms."""

from datetime import timedelta

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from annotation.accounts import keymap
from annotation.db import project_counts
from annotation.labelling import my_items, queue
from annotation.models import Account, Draft, Label, Mark, Membership, Slot
from tests.builders import (
    browser_of,
    make_guidelines,
    make_item,
    make_member,
    make_project,
    say,
    take,
)

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


@pytest.fixture
def member() -> Membership:
    return make_member(make_project())


def url(name: str, member: Membership) -> str:
    return reverse(name, args=[member.project.slug])


def body(response: HttpResponse) -> str:
    return response.content.decode()


def shown(offer: queue.Offer) -> dict[str, object]:
    return {"key": offer.key, "item": offer.item.key, "revision": offer.revision.number}


def listed(member: Membership, name: str, **values: str) -> str:
    return body(browser_of(member).get(url("my-items", member), {"list": name, **values}))


def test_what_is_to_do_is_what_the_person_can_still_label() -> None:
    project = make_project(overlap=2)
    ana, ben, cleo = (make_member(project) for _ in range(3))
    for number in range(4):
        make_item(project, f"item-{number}")

    def left(member: Membership) -> tuple[int, int, int]:
        progress = queue.load_progress(member)
        return progress.todo, progress.labels, progress.labels_wanted

    assert left(ana) == left(ben) == (4, 0, 8)
    say(ana, take(ana))
    assert (left(ana), left(ben)) == ((3, 1, 8), (4, 1, 8))
    say(ben, take(ben), "invalid")
    # The first item waits for a decision, and the third person cannot label it any more.
    assert [left(member)[0] for member in (ana, ben, cleo)] == [3, 3, 3]
    assert queue.load_progress(ana).at_work == 4
    queue.skip_item(cleo, take(cleo).submission())
    assert left(cleo)[0] == 2
    assert "To do <b>2</b>" in body(browser_of(cleo).get(url("label", cleo)))
    queue.undo_label(ana)
    assert left(ana)[0] == 4
    reader = make_member(project, "researcher")
    assert left(reader)[0] == (0 if not reader.can("label") else 4)


def test_in_a_large_project_own_labels_count_at_once(
    member: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_counts, "LARGE_PROJECT", 1)
    monkeypatch.setattr(project_counts, "ITEMS_PER_SECOND", 0.01)
    for _ in range(5):
        make_item(member.project)
    assert queue.load_progress(member).todo == 5
    for left in (4, 3):
        say(member, take(member))
        assert queue.load_progress(member).todo == left
    queue.undo_label(member)
    assert queue.load_progress(member).todo == 4
    other = make_member(member.project)
    say(other, take(other))
    assert queue.load_progress(member).todo == 4, "the count of others is kept for some seconds"


def test_each_list_is_counted(member: Membership) -> None:
    for _ in range(5):
        make_item(member.project)
    say(member, take(member))
    queue.skip_item(member, take(member).submission())
    Draft.objects.create(member=member, item=take(member).item, revision=1, data={"comment": "x"})
    take(make_member(member.project))
    counts = my_items.count_my_items(member, queue.load_progress(member))
    assert counts == my_items.MyItemCounts(todo=3, drafts=1, done=1, skipped=1, reserved=1)


def test_the_done_are_found_by_key_choice_and_category(member: Membership) -> None:
    make_item(member.project, "spider-1")
    make_item(member.project, "beetle-1", category="entity")
    say(member, take(member), "valid")
    say(member, take(member), "invalid")
    both = listed(member, "done")
    assert "spider-1" in both
    assert "beetle-1" in both
    for search in ({"key": "SPIDER"}, {"choice": "valid"}, {"category": "number-errors"}):
        found = listed(member, "done", **search)
        assert "spider-1" in found
        assert "beetle-1" not in found
    assert "No labels match your search." in listed(member, "done", key="moth")


def test_a_silent_check_lies_among_the_done_like_any_other(member: Membership) -> None:
    make_item(member.project, "spider-1")
    label = say(member, take(member))
    Label.objects.filter(pk=label.pk).update(stage="control")
    assert "spider-1" in listed(member, "done")


def test_others_labels_and_drafts_are_on_no_list_of_mine(member: Membership) -> None:
    other = make_member(member.project)
    make_item(member.project, "spider-1")
    make_item(member.project, "spider-2")
    say(other, take(other))
    Draft.objects.create(member=other, item=take(other).item, revision=1, data={"comment": "x"})
    for name in ("todo", "drafts", "done", "skipped"):
        assert "spider-" not in listed(member, name)


def test_the_list_of_what_others_hold_says_when_the_next_is_free(member: Membership) -> None:
    make_item(member.project)
    take(make_member(member.project))
    Slot.objects.update(held_until=timezone.now() + timedelta(minutes=4, seconds=30))
    page = listed(member, "reserved")
    assert "The next reservation expires" in page
    assert "4\xa0minutes" in page


def test_what_was_skipped_is_taken_back(member: Membership) -> None:
    make_item(member.project, "spider-1")
    make_item(member.project, "spider-2")
    client = browser_of(member)
    page = body(client.post(url("label-skip", member), shown(take(member)), follow=True))
    assert 'data-item="spider-2"' in page
    assert "spider-1" in listed(member, "skipped")
    page = body(client.post(url("label-reopen", member), {"item": "spider-1"}, follow=True))
    assert 'data-item="spider-1"' in page
    assert not Mark.objects.in_force().exists()


def test_a_done_item_opens_with_what_was_said_and_a_new_label_supersedes(
    member: Membership,
) -> None:
    make_item(member.project, "spider-1")
    say(member, take(member), "invalid", comment="One leg too few.")
    client = browser_of(member)
    page = body(client.post(url("label-reopen", member), {"item": "spider-1"}, follow=True))
    assert "You chose <b>Invalid</b>" in page
    assert "One leg too few." in page
    offer = queue.reopen_item(member, "spider-1")
    say(member, offer, "valid")
    page = body(client.get(url("label", member), {"item": "spider-1"}))
    assert "then <b>Valid</b>" in page
    assert Label.objects.count() == 2


def test_an_item_of_others_cannot_be_opened(member: Membership) -> None:
    make_item(member.project, "spider-1")
    other = make_member(member.project)
    take(other)
    client = browser_of(member)
    page = body(client.post(url("label-reopen", member), {"item": "spider-1"}, follow=True))
    assert "This item cannot be opened." in page
    assert "How many legs" not in page
    data = {"key": "x", "item": "spider-1", "revision": 1, "data": {"comment": "x"}}
    answer = client.post(url("label-draft", member), data, content_type="application/json")
    assert answer.status_code == 422


@pytest.mark.parametrize("sent", ["", "[]", '{"key": 1}', "{" * 100_000, '{"revision": "x"}'])
def test_a_draft_that_cannot_be_read_is_refused(member: Membership, sent: str) -> None:
    client = browser_of(member)
    answer = client.post(url("label-draft", member), sent, content_type="application/json")
    assert answer.status_code == 422


def test_a_draft_is_thrown_away_when_the_person_says_so(member: Membership) -> None:
    item = make_item(member.project, "spider-1")
    take(member)
    Draft.objects.create(member=member, item=item, revision=1, data={"comment": "x"})
    page = browser_of(member).post(url("label-draft-drop", member), {"item": item.key}, follow=True)
    assert "Draft on spider-1 discarded." in body(page)
    assert not Draft.objects.exists()


def test_undo_brings_the_comment_back_as_a_draft(member: Membership) -> None:
    make_item(member.project, "spider-1")
    say(member, take(member), comment="One leg too few.")
    client = browser_of(member)
    client.post(url("label-undo", member))
    assert "One leg too few." in body(client.get(url("label", member)))
    assert Draft.objects.get().data["comment"] == "One leg too few."


def test_a_page_with_the_next_item_is_told_what_was_stored_and_asks_for_the_rest(
    member: Membership,
) -> None:
    make_item(member.project, "spider-1")
    make_item(member.project, "spider-2")
    client, offer = browser_of(member), take(member)
    ahead = body(client.get(url("label-next", member), headers=HTMX))
    assert 'data-item="spider-2"' in ahead
    data = shown(offer) | {"choice": "valid"}
    answer = client.post(url("label-submit", member), data, headers=HTMX | {"Label-Next": "here"})
    assert body(answer) == "spider-1 is labelled: Valid."
    later = body(client.get(url("label-next", member)))
    assert "<b>1</b> by you" in later
    assert 'id="panel"' not in later


def test_holding_on_says_what_is_still_the_persons(member: Membership) -> None:
    make_item(member.project, "spider-1")
    take(member)
    client = browser_of(member)
    assert client.post(url("label-hold", member)).json() == {"held": ["spider-1"]}
    Slot.objects.update(state="closed", member=None, held_until=None)
    assert client.post(url("label-hold", member)).json() == {"held": []}


def test_siblings_show_ones_own_labels_and_no_texts_of_what_is_still_to_do(
    member: Membership,
) -> None:
    first = make_item(member.project, cluster="spider")
    second = make_item(member.project, cluster="spider")
    make_item(member.project, cluster="beetle")
    other = make_member(member.project)
    say(other, take(other), "valid")
    [one] = my_items.list_siblings(member, first) or []
    assert (one.item, one.said, one.text) == (second, "", "")
    say(member, take(member), "invalid")  # the second, since the first is the other's
    [one] = my_items.list_siblings(member, first) or []
    assert one.said == "Invalid"


def test_siblings_are_not_shown_before_the_first_look() -> None:
    member = make_member(make_project(blind_first=True))
    item = make_item(member.project, "spider-1", cluster="spider")
    make_item(member.project, "spider-2", cluster="spider")
    take(member)
    assert my_items.list_siblings(member, item) is None
    answer = browser_of(member).get(url("label-siblings", member), {"item": "spider-1"})
    assert answer.status_code == 409
    assert "spider-2" not in body(answer)


def test_guidelines_are_shown_for_the_item_and_announced_until_read(member: Membership) -> None:
    make_item(member.project, "spider-1")
    make_guidelines(member.project, "# Read *both*\n\n<script>x</script>")
    client = browser_of(member)
    assert "There are guidelines." in body(client.get(url("label", member)))
    page = body(client.get(url("label-guidelines", member), {"item": "spider-1"}))
    assert "<em>both</em>" in page
    assert "<script>" not in page
    client.post(url("label-guidelines", member), {"number": "1"})
    assert "There are guidelines." not in body(client.get(url("label", member)))


def test_the_screen_asks_for_no_more_when_there_is_more_of_everything(member: Membership) -> None:
    for _ in range(8):
        make_item(member.project)
    client = browser_of(member)
    client.get(url("label", member))  # how large the project is, is asked once a minute
    say(member, take(member))
    few = _queries(client, url("label", member))
    for _ in range(4):
        say(member, take(member))
    assert _queries(client, url("label", member)) == few


def _queries(client: Client, address: str) -> int:
    with CaptureQueriesContext(
        connection,
    ) as asked:
        client.get(address)
    return len(asked)


def test_two_things_on_one_key_are_refused_in_words(member: Membership) -> None:
    client = browser_of(member)
    usual = dict(keymap.DEFAULT_KEYS)
    answer = client.post(reverse("keys"), usual | {"undo": "e"})
    assert answer.status_code == 422
    assert "“e” is already the key of “Correct the text”" in body(answer)
    assert Account.objects.get(pk=member.account_id).keys == {}


def test_keys_change_places_and_go_back(member: Membership) -> None:
    client = browser_of(member)
    usual = dict(keymap.DEFAULT_KEYS)
    client.post(reverse("keys"), usual | {"undo": "E", "correct": "u"})
    assert Account.objects.get(pk=member.account_id).keys == {"undo": "e", "correct": "u"}
    assert 'value="e"' in body(client.get(reverse("keys")))
    # What the other fields say does not count then.
    sent = client.post(reverse("keys"), usual | {"u": "x", "reset": "1"}, follow=True)
    assert "Keys reset to the defaults." in body(sent)
    assert Account.objects.get(pk=member.account_id).keys == {}


@pytest.mark.parametrize("key", ["ab", " ", "\t", "ctrl"])
def test_a_key_is_one_character(key: str) -> None:
    wrong = keymap.find_problems(keymap.extract_changes({"undo": key}))
    assert set(wrong) == ({"undo"} if key.strip() else set())
