"""Comments: seen once one's own label is in, with people named in them."""

import pytest
from django.utils import timezone

from annotation.errors import Refused, TooEarly
from annotation.labelling import answer_key, comments, queue
from annotation.models import Comment, Event, Item, Label, Membership, Stage
from tests.builders import make_item, make_known, make_member, make_project, say, take

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> Membership:
    return make_member(make_project(overlap=2), alias="Ann")


@pytest.fixture
def bob(ann: Membership) -> Membership:
    return make_member(ann.project, alias="Bob")


@pytest.fixture
def item(ann: Membership) -> Item:
    """An item that Ann has labelled."""
    item = make_item(ann.project)
    say(ann, take(ann))
    return item


def write(member: Membership, item: Item, text: str) -> Comment:
    return comments.add_comment(member, item, text, now=timezone.now())


def read(member: Membership, item: Item) -> list[str]:
    thread = comments.load_comments(member, item, now=timezone.now())
    return [entry.text if isinstance(entry, Comment) else entry.comment for entry in thread]


def test_comments_are_seen_only_after_ones_own_label(
    ann: Membership, bob: Membership, item: Item
) -> None:
    write(ann, item, "An insect has six.")
    with pytest.raises(TooEarly):
        read(bob, item)
    with pytest.raises(TooEarly):
        write(bob, item, "Me too.")
    say(bob, take(bob))
    assert read(bob, item) == ["An insect has six."]


def test_a_comment_that_is_sent_twice_is_stored_once(ann: Membership, item: Item) -> None:
    first = write(ann, item, "An insect has six.")
    assert write(ann, item, "An insect has six.") == first
    comments.withdraw_comment(ann, item, 1, now=timezone.now())
    assert write(ann, item, "An insect has six.") != first
    assert read(ann, item) == ["An insect has six."]


def test_what_was_said_with_a_label_is_in_the_thread_while_the_label_stands(
    ann: Membership, bob: Membership, item: Item
) -> None:
    Label.objects.filter(member=ann).update(comment="Spiders have eight.")
    write(ann, item, "An insect has six.")
    say(bob, take(bob))
    assert read(bob, item) == ["Spiders have eight.", "An insect has six."]
    assert comments.count_by_others(bob, item) == 2
    assert comments.count_by_others(ann, item) == 0
    queue.undo_label(ann)
    assert read(bob, item) == ["An insect has six."]


@pytest.mark.parametrize("stage", [Stage.CONTROL, Stage.ADJUDICATE, Stage.BLIND])
def test_what_others_said_at_other_stages_is_for_those_who_see_all_items(
    ann: Membership, bob: Membership, item: Item, stage: str
) -> None:
    say(bob, take(bob))
    Label.objects.filter(member=ann).update(comment="Spiders have eight.", stage=stage)
    assert comments.count_by_others(bob, item) == 0
    assert read(bob, item) == []
    assert read(make_member(ann.project, "lead"), item) == ["Spiders have eight."]
    Label.objects.filter(member=bob).update(comment="Mine.", stage=Stage.CONTROL)
    assert read(bob, item) == ["Mine."]


def test_comments_of_other_annotators_do_not_tell_a_control_item() -> None:
    """Where one person labels each item, nobody else could have commented on any other item."""
    project = make_project(probe_every=1)
    ann, bob = make_member(project, alias="Ann"), make_member(project, alias="Bob")
    lead = make_member(project, "lead", alias="Lea")
    for _ in range(4):
        make_item(project)
    probe = make_known(project, purpose="probe")
    for member in (ann, bob):
        assert say(member, take(member)).item == probe
    write(ann, probe, "@Bob, six?")
    assert comments.count_by_others(bob, probe) == 0
    assert read(bob, probe) == []
    assert not comments.project_comments(bob).exists()
    assert comments.load_mentions(bob, now=timezone.now()) == []
    write(lead, probe, "@Bob: eight."), write(bob, probe, "Yes.")
    assert read(bob, probe) == ["@Bob: eight.", "Yes."]
    assert read(lead, probe) == ["@Bob, six?", "@Bob: eight.", "Yes."]
    shown = comments.load_comments(bob, probe, now=timezone.now())
    assert [comment.number for comment in shown] == [1, 2]
    listed = comments.load_readable(bob, comments.project_comments(bob), now=timezone.now())
    assert [comment.number for comment in listed] == [2, 1]
    with pytest.raises(Refused, match="no longer exists"):
        comments.withdraw_comment(bob, probe, 3, now=timezone.now())
    comments.withdraw_comment(bob, probe, 2, now=timezone.now())
    assert read(lead, probe) == ["@Bob, six?", "@Bob: eight."]
    assert Event.objects.get(kind="withdraw comment").data == {"number": 3, "author": "Bob"}
    write(bob, probe, "Yes.")
    answer_key.release_item(probe, lead)
    assert len(read(bob, probe)) == 3


def test_a_label_that_was_taken_back_closes_the_comments_again(ann: Membership, item: Item) -> None:
    queue.undo_label(ann)
    with pytest.raises(TooEarly):
        read(ann, item)


@pytest.mark.parametrize("role", ["lead", "adjudicator", "researcher"])
def test_who_may_see_all_items_reads_along(ann: Membership, item: Item, role: str) -> None:
    write(ann, item, "An insect has six.")
    assert read(make_member(ann.project, role), item) == ["An insect has six."]


def test_a_label_after_reading_is_an_informed_one(
    ann: Membership, bob: Membership, item: Item
) -> None:
    write(ann, item, "An insect has six.")
    assert not say(bob, take(bob)).informed
    read(bob, item)
    assert say(bob, queue.reopen_item(bob, item.key), "invalid").informed


def test_a_comment_that_is_taken_back_is_kept_and_shown_to_nobody(
    ann: Membership, item: Item
) -> None:
    write(ann, item, "one"), write(ann, item, "two")
    comments.withdraw_comment(ann, item, 1, now=timezone.now())
    assert read(ann, item) == ["two"]
    assert Comment.objects.count() == 2
    [left] = comments.load_comments(ann, item, now=timezone.now())
    assert left.number == 2


def test_only_its_author_or_a_lead_takes_a_comment_back(
    ann: Membership, bob: Membership, item: Item
) -> None:
    write(ann, item, "one")
    say(bob, take(bob))
    with pytest.raises(Refused, match="author or a lead"):
        comments.withdraw_comment(bob, item, 1, now=timezone.now())
    comments.withdraw_comment(make_member(ann.project, "lead"), item, 1, now=timezone.now())
    assert read(ann, item) == []


@pytest.mark.parametrize("number", [0, -1, 2])
def test_a_comment_that_is_not_there_cannot_be_taken_back(
    ann: Membership, item: Item, number: int
) -> None:
    write(ann, item, "one")
    with pytest.raises(Refused, match="no longer exists"):
        comments.withdraw_comment(ann, item, number, now=timezone.now())


@pytest.mark.parametrize(
    "text, needed", [("  \n", "is empty"), ("x" * 10_001, "10,001"), ("a\0b", "NUL")]
)
def test_a_comment_that_cannot_be_is_refused(
    ann: Membership, item: Item, text: str, needed: str
) -> None:
    with pytest.raises(Refused, match=needed):
        write(ann, item, text)


@pytest.mark.parametrize(
    "text, aliases",
    [
        ("@Bob: look", ["Bob"]),
        ("@bob, @BOB", ["Bob"]),
        ("@Bob Smith and @Bob", ["Bob Smith", "Bob"]),
        ("@Bobby", []),
        ("bob@Bob", []),
        ("(@Zoë)", ["Zoë"]),
        ("@R.2 says", ["R.2"]),
        ("nobody", []),
    ],
)
def test_people_are_named_by_their_alias(text: str, aliases: list[str]) -> None:
    members = [Membership(alias=alias) for alias in ("Bob", "Bob Smith", "Zoë", "R.2")]
    assert [member.alias for member in comments.find_mentioned(text, members)] == aliases


def test_a_letter_that_only_looks_like_that_of_an_alias_mentions_nobody() -> None:
    bill = make_member(make_project(), alias="bill")
    assert comments.find_mentioned("@b\u0131ll @BILL", [bill]) == [bill]
    assert comments.find_mentioned("@b\u0131ll", [bill]) == []


def test_who_is_named_finds_it_but_not_its_text_before_their_own_label(
    ann: Membership, bob: Membership, item: Item
) -> None:
    write(ann, item, "@Bob, is this right?")
    assert Comment.objects.unread_by(bob).count() == 1
    [mention] = comments.load_mentions(bob, now=timezone.now())
    assert (mention.open, mention.new) == (False, True)
    say(bob, take(bob))
    [mention] = comments.load_mentions(bob, now=timezone.now())
    assert mention.open
    comments.mark_read(bob, now=timezone.now())
    assert Comment.objects.unread_by(bob).count() == 0
    assert not comments.load_mentions(bob, now=timezone.now())[0].new


def test_a_comment_that_was_taken_back_names_nobody(
    ann: Membership, bob: Membership, item: Item
) -> None:
    write(ann, item, "@Bob, is this right?")
    comments.withdraw_comment(ann, item, 1, now=timezone.now())
    assert Comment.objects.unread_by(bob).count() == 0
    assert comments.load_mentions(bob, now=timezone.now()) == []


def test_somebody_without_a_place_in_the_project_has_no_mentions(ann: Membership) -> None:
    admin = Membership(project=ann.project, alias="admin", role="lead")
    assert (
        Comment.objects.unread_by(admin).count(),
        comments.load_mentions(admin, now=timezone.now()),
    ) == (0, [])


def test_who_has_not_labelled_cannot_find_out_how_many_comments_there_are(
    ann: Membership, bob: Membership, item: Item
) -> None:
    write(ann, item, "Look at the units.")
    for number in (1, 2):
        with pytest.raises(TooEarly):
            comments.withdraw_comment(bob, item, number, now=timezone.now())


def test_a_comment_that_is_read_among_mentions_makes_later_labels_informed(
    ann: Membership, item: Item
) -> None:
    adjudicator = make_member(ann.project, "adjudicator", alias="Ada")
    write(ann, item, "@Ada this is surely invalid.")
    comments.load_mentions(adjudicator, now=timezone.now())
    assert say(adjudicator, take(adjudicator)).informed
