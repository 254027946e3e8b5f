"""Versions of what annotators are told."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.errors import Refused
from annotation.items.rendering import texts
from annotation.labelling import queue
from annotation.models import Event, Membership
from annotation.projects import guidelines
from tests.builders import make_item, make_member, make_project, say, take

pytestmark = pytest.mark.django_db


@pytest.fixture
def lead() -> Membership:
    return make_member(make_project(guidelines_field="task"), role="lead")


def publish(lead: Membership, text: str, note: str = "", **variants: str) -> int:
    return guidelines.publish(lead.project, text, variants, note, lead).number


def test_each_change_is_a_version_and_the_last_is_current(lead: Membership) -> None:
    assert guidelines.current_version(lead.project) is None
    assert [publish(lead, "Read."), publish(lead, "Read twice.", "twice")] == [1, 2]
    version = guidelines.current_version(lead.project)
    assert version
    assert (version.text, version.note, version.author) == ("Read twice.", "twice", lead)
    assert Event.objects.filter(kind="guidelines").count() == 2


def test_publishing_what_stands_already_is_no_version(lead: Membership) -> None:
    assert publish(lead, "Read.\n\nThink.", maths="Reckon.") == 1
    assert publish(lead, "Read.\r\n\r\nThink.\r\n", maths="Reckon.", empty=" ") == 1


def test_guidelines_are_converted_once_and_not_at_every_visit(
    lead: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(lead, "Read *twice*, and think about 2026-11.")
    converted: list[str] = []

    def convert(text: str, form: texts.Format) -> str:
        converted.append(text)
        return original(text, form)

    original = texts.render_text
    monkeypatch.setattr(texts, "render_text", convert)
    client = Client()
    assert lead.account
    client.force_login(lead.account)
    for _ in range(2):
        page = client.get(reverse("guidelines", args=[lead.project.slug])).content.decode()
        assert "Read <em>twice</em>, and think" in page
    assert converted == ["Read *twice*, and think about 2026-11."]


def test_guidelines_that_say_nothing_are_refused(lead: Membership) -> None:
    with pytest.raises(Refused):
        publish(lead, " \n", maths=" ")
    with pytest.raises(Refused):
        publish(lead, "x" * (guidelines.MAX_LENGTH + 1))


@pytest.mark.parametrize(
    "name, values, kind",
    [
        ("task", {"fields": {"task": "maths"}}, "maths"),
        ("task", {"fields": {"task": "history"}}, "history"),
        ("task", {}, ""),
        ("category", {"category": "maths"}, "maths"),
        ("", {"fields": {"task": "maths"}}, ""),
    ],
)
def test_an_item_has_the_text_for_all_and_that_of_its_kind(
    lead: Membership, name: str, values: dict[str, object], kind: str
) -> None:
    lead.project.guidelines_field = name
    publish(lead, "Read.", maths="Reckon.")
    version = guidelines.current_version(lead.project)
    assert version
    told = guidelines.for_item(version, lead.project, make_item(lead.project, **values))  # type: ignore[arg-type]
    assert (told.text, told.kind) == ("Read.", kind)
    assert told.variant == ("Reckon." if kind == "maths" else "")


def test_the_kinds_are_those_that_items_have(lead: Membership) -> None:
    for task in ("maths", "history", "maths", 7):
        make_item(lead.project, fields={"task": task})
    make_item(lead.project)
    assert guidelines.variant_values(lead.project) == ["7", "history", "maths"]
    lead.project.guidelines_field = "ability"
    assert guidelines.variant_values(lead.project) == ["factual"]
    lead.project.guidelines_field = 'odd"__name'
    assert guidelines.variant_values(lead.project) == []


def test_a_new_version_is_announced_to_those_who_label_until_they_have_seen_it(
    lead: Membership,
) -> None:
    annotator = make_member(lead.project)
    reader = make_member(lead.project, role="researcher")
    assert guidelines.unseen_version(annotator) is None
    publish(lead, "Read.")
    assert guidelines.unseen_version(annotator)
    assert guidelines.unseen_version(reader) is None
    assert guidelines.unseen_version(lead) is None  # who wrote it has read it
    guidelines.acknowledge(annotator, 1)
    assert guidelines.unseen_version(annotator) is None
    publish(lead, "Read twice.")
    assert guidelines.unseen_version(annotator)


def test_seen_never_turns_back_nor_runs_ahead(lead: Membership) -> None:
    publish(lead, "Read.")
    publish(lead, "Read twice.")
    reader = make_member(lead.project)
    for number, seen in [(7, 0), (2, 2), (1, 2)]:
        guidelines.acknowledge(reader, number)
        reader.refresh_from_db()
        assert reader.guidelines_seen == seen


def test_a_label_names_the_version_it_was_made_under(lead: Membership) -> None:
    publish(lead, "Read.")
    for _ in range(2):
        make_item(lead.project)
    first = say(lead, take(lead))
    publish(lead, "Read twice.")
    second = say(lead, take(lead))
    numbers = [one.guidelines.number for one in (first, second) if one.guidelines]
    assert numbers == [1, 2]


def test_a_label_that_waited_names_the_version_of_when_it_was_given(lead: Membership) -> None:
    publish(lead, "Read.")
    make_item(lead.project)
    offer, given_at = take(lead), timezone.now()
    publish(lead, "Read twice.")
    label = queue.store_label(lead, offer.submission({"choice": "valid"}), given_at=given_at)
    assert label.guidelines
    assert label.guidelines.number == 1


def test_what_changed_is_shown_part_by_part(lead: Membership) -> None:
    publish(lead, "Read.", maths="Reckon.", old="Gone.")
    publish(lead, "Read.", maths="Reckon twice.", new="Here.")
    older, newer = lead.project.guidelines.all()
    changes = guidelines.list_changes(older, newer)
    assert [change.kind for change in changes] == ["maths", "new", "old"]
    assert not any(change.difference.identical for change in changes)


# -------------------------------------------------------------------------------------- pages


def client(who: Membership) -> Client:
    client = Client()
    client.force_login(who.account)  # type: ignore[arg-type]
    return client


def page(who: Membership, query: str = "", name: str = "guidelines") -> str:
    answer = client(who).get(reverse(name, args=[who.project.slug]) + query)
    assert answer.status_code == 200
    return answer.content.decode()


def send(lead: Membership, **data: str) -> tuple[int, str]:
    answer = client(lead).post(reverse("guidelines-edit", args=[lead.project.slug]), data)
    return answer.status_code, answer.content.decode()


def test_members_read_them_as_markdown_and_nothing_in_them_is_run(lead: Membership) -> None:
    assert "no guidelines yet" in page(lead)
    publish(lead, "Read **both**. <script>x()</script>", maths="*Reckon*.")
    shown = page(lead)
    assert "<strong>both</strong>" in shown
    assert "<em>Reckon</em>" in shown
    assert "<script>x" not in shown


def test_older_versions_stay_to_be_read_with_what_changed(lead: Membership) -> None:
    publish(lead, "Read both.")
    publish(lead, "Read all.", "All, not both.")
    now, then = page(lead), page(lead, "?version=1")
    assert "What changed from version 1 to 2" in now
    assert "All, not both." in now
    assert "Read both." in then
    assert "This is version 1" in then
    answer = client(lead).get(reverse("guidelines", args=[lead.project.slug]) + "?version=3")
    assert answer.status_code == 404


def test_who_has_read_a_new_version_says_so_once(lead: Membership) -> None:
    annotator = make_member(lead.project)
    publish(lead, "Read.")
    assert "I have read version 1" in page(annotator)
    place = reverse("guidelines", args=[lead.project.slug])
    assert client(annotator).post(place, {"number": "1"}).status_code == 302
    assert client(annotator).post(place, {"number": "²"}).status_code == 302
    assert "I have read" not in page(annotator)


def test_a_lead_previews_and_publishes(lead: Membership) -> None:
    make_item(lead.project, fields={"task": "maths & more"})
    assert 'name="variant.maths &amp; more"' in page(lead, name="guidelines-edit")
    written = {"base": "0", "text": "Read **both**.", "note": "First.", "variant.maths & more": "1"}
    status, shown = send(lead, preview="1", **written)
    assert status == 200
    assert "<strong>both</strong>" in shown
    assert guidelines.current_version(lead.project) is None
    assert send(lead, **written)[0] == 302
    version = guidelines.current_version(lead.project)
    assert version
    assert (version.text, version.variants) == ("Read **both**.", {"maths & more": "1"})


def test_a_preview_can_be_had_alone(lead: Membership) -> None:
    place = reverse("guidelines-edit", args=[lead.project.slug])
    asked = {"preview": "1", "text": "Read **both**.", "base": "0"}
    answer = client(lead).post(place, asked, headers={"HX-Request": "true"})
    assert answer.content.decode().strip().startswith('<section id="preview"')


def test_two_leads_do_not_write_over_each_other_unawares(lead: Membership) -> None:
    publish(lead, "Theirs.")
    status, shown = send(lead, base="0", text="Mine.", note="")
    assert status == 422
    assert "Version 1 was published while you were writing" in shown
    assert "Mine.</textarea>" in shown
    assert send(lead, base="1", text="Mine.", note="")[0] == 302


def test_a_lead_is_told_whether_there_is_a_new_version(lead: Membership) -> None:
    browser, place = client(lead), reverse("guidelines-edit", args=[lead.project.slug])
    for base, text, said in (
        ("0", "Read both.", "Version 1 published."),
        ("1", "Read both.", "Nothing changed, so there is no new version."),
        ("1", "Read all.", "Version 2 published."),
    ):
        answer = browser.post(place, {"base": base, "text": text, "note": ""}, follow=True)
        assert said in answer.content.decode()


def test_nor_if_they_publish_at_the_same_moment(
    lead: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = guidelines.publish

    def publish_second(*given: Any, **values: Any) -> Any:
        """Somebody else publishes after the form was checked."""
        checked(lead.project, "Theirs.", {}, "", None)
        return checked(*given, **values)

    monkeypatch.setattr(guidelines, "publish", publish_second)
    status, shown = send(lead, base="0", text="Mine.", note="")
    assert status == 422
    assert "Somebody published another version" in shown
    assert "Mine." in shown
    assert lead.project.guidelines.get().text == "Theirs."


def test_guidelines_that_are_sent_twice_are_published_once(
    lead: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = guidelines.publish

    def publish_second(*given: Any, **values: Any) -> Any:
        """The same form was sent a moment before."""
        checked(*given, **values)
        return checked(*given, **values)

    monkeypatch.setattr(guidelines, "publish", publish_second)
    assert send(lead, base="0", text="Mine.", note="")[0] == 302
    assert lead.project.guidelines.get().text == "Mine."


def test_empty_guidelines_are_not_published(lead: Membership) -> None:
    status, shown = send(lead, base="0", text=" ", note="")
    assert status == 422
    assert "Write some" in shown
