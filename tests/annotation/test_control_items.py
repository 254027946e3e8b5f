"""Silent checks among the work: who gets them, what they tell leads, and nobody else."""

from collections.abc import Iterator

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from annotation.labelling import answer_key, control_items, queue
from annotation.models import Item, Label, Membership, Project, Resolution, Slot
from tests.builders import correct, make_item, make_known, make_member, make_project, say, take

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    project = make_project(probe_every=4)
    for number in range(1, 7):
        make_item(project, f"item-{number}", cluster=f"w{number}")
    return project


@pytest.fixture
def member(project: Project) -> Membership:
    return make_member(project)


@pytest.fixture
def lead(project: Project) -> Membership:
    return make_member(project, role="lead")


def every_offer(member: Membership, draws: Iterator[float]) -> list[str]:
    """The keys of all that the member gets, labelling each."""
    keys = []
    for draw in draws:
        offer = queue.next_offer(member, draw=draw)
        if isinstance(offer, queue.Waiting):
            return keys
        keys.append(offer.item.key)
        say(member, offer)
    return keys


def test_a_probe_comes_when_the_draw_says_so(member: Membership) -> None:
    make_known(member.project, "probe", purpose="probe")
    assert take(member, draw=0.25).item.key == "item-1"  # one in four: below 0.25
    say(member, take(member))
    assert take(member, draw=0.249).item.key == "probe"


def test_nobody_gets_the_same_probe_twice(member: Membership) -> None:
    make_known(member.project, "probe", purpose="probe")
    keys = every_offer(member, iter([0.0] * 20))
    assert keys.count("probe") == 1
    assert len(keys) == 7


def test_the_item_of_a_probe_was_never_had_at_another_stage(
    member: Membership, lead: Membership
) -> None:
    item = say(member, take(member, draw=1.0)).item
    answer_key.set_answer(member.project, item, "probe", {"choice": "valid"}, "", lead)
    other = make_member(member.project)
    assert take(other, draw=0.0).item == item
    assert item.key not in every_offer(member, iter([0.0] * 20))


def test_who_skips_a_probe_does_not_get_it_again(member: Membership) -> None:
    make_known(member.project, "probe", purpose="probe")
    queue.skip_item(member, take(member, draw=0.0).submission())
    assert "probe" not in every_offer(member, iter([0.0] * 20))


def test_no_probe_comes_once_the_work_is_done(member: Membership) -> None:
    for _ in range(6):
        say(member, take(member, draw=1.0))
    make_known(member.project, "probe", purpose="probe")
    assert isinstance(queue.next_offer(member, draw=0.0), queue.Waiting)


def test_the_work_that_a_probe_came_instead_of_comes_after_it(member: Membership) -> None:
    make_known(member.project, "probe", purpose="probe")
    keys = every_offer(member, iter([0.0] + [1.0] * 20))
    assert keys == ["probe", *(f"item-{number}" for number in range(1, 7))]


@pytest.mark.parametrize("role", ["lead", "adjudicator"])
def test_who_can_look_the_answers_up_gets_no_probe(project: Project, role: str) -> None:
    make_known(project, "probe", purpose="probe")
    assert take(make_member(project, role=role), draw=0.0).item.key == "item-1"


def test_no_probe_costs_no_query(
    member: Membership, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(0):
        assert control_items.take_slot(member, 0.25, None) is None  # type: ignore[arg-type]


def test_a_label_of_a_probe_leads_to_no_resolution_of_labels(member: Membership) -> None:
    item = make_known(member.project, "probe", purpose="probe")
    say(member, take(member, draw=0.0), "invalid")
    [held] = item.resolutions.all()
    assert (held.value, held.source) == ("valid", "known")


def test_leads_see_how_each_person_did(member: Membership) -> None:
    for number in range(1, 5):
        make_known(member.project, f"probe-{number}", purpose="probe", cluster=f"c{number}")
    for choice in ("valid", "valid", "valid", "invalid"):
        say(member, take(member, draw=0.0), choice)
    [result] = control_items.load_results(member.project)
    # 3 of 4, each of a cluster of its own: Wilson's interval, z = 1.95996, z^2 = 3.84146:
    # centre (0.75 + 3.84146/8) / (1 + 3.84146/4) = 1.23018/1.96036 = 0.62753
    # half 1.95996/1.96036 * sqrt(0.1875/4 + 3.84146/64) = 0.99980 * 0.32697 = 0.32690
    assert (result.member, result.right, result.share.n) == (member, 3, 4)
    assert result.share.low == pytest.approx(0.3006, abs=1e-4)
    assert result.share.high == pytest.approx(0.9544, abs=1e-4)
    [wrong] = result.wrong
    assert (wrong.said, wrong.known) == ({"choice": "invalid"}, {"choice": "valid"})


def test_a_probe_taken_back_and_labelled_anew_counts_as_it_was_said_last(
    member: Membership,
) -> None:
    make_known(member.project, "probe", purpose="probe")
    say(member, take(member, draw=0.0), "invalid")
    offer = queue.undo_label(member)
    assert offer
    assert offer.item.key == "probe"
    assert control_items.load_results(member.project) == []
    say(member, offer, "valid")
    assert control_items.load_results(member.project)[0].right == 1


def test_a_probe_that_the_member_corrected_is_told_apart(member: Membership) -> None:
    make_known(member.project, "probe", purpose="probe")
    other = make_member(member.project)
    say(other, take(other, draw=0.0), "valid")
    say(member, correct(member, take(member, draw=0.0)))
    results = {result.member: result for result in control_items.load_results(member.project)}
    assert (results[member].share.n, results[member].corrected) == (0, 1)
    assert (results[other].right, results[other].corrected) == (1, 0)


def test_a_known_answer_that_was_mended_is_what_results_are_held_against(
    member: Membership, lead: Membership
) -> None:
    item = make_known(member.project, "probe", purpose="probe")
    say(member, take(member, draw=0.0), "invalid")
    answer_key.set_answer(member.project, item, "probe", {"choice": "invalid"}, "", lead)
    assert control_items.load_results(member.project)[0].right == 1
    # A lead made it a normal item again, and excluded it.
    Item.objects.filter(pk=item.pk).update(purpose="test", deleted_at=timezone.now())
    assert control_items.load_results(member.project) == []


def test_a_probe_is_held_against_what_its_page_asked(member: Membership, lead: Membership) -> None:
    project = member.project
    item = make_known(project, "probe", purpose="probe", texts={"claim": "Six for eight."})
    say(member, take(member, draw=0.0), "valid")
    Resolution.objects.filter(item=item).update(values={"choice": "valid", "effect": "lower"})
    assert control_items.load_results(project)[0].right == 1
    project.expected_effect = True
    assert control_items.load_results(project)[0].right == 0


def test_probes_are_done_like_work_and_can_be_changed_like_work(member: Membership) -> None:
    make_known(member.project, "probe", purpose="probe")
    say(member, take(member, draw=0.0))
    say(member, take(member, draw=1.0))
    member.refresh_from_db()
    assert member.labelled == 2
    assert [label.item.key for label in queue.recent_labels(member)] == ["item-1", "probe"]
    changed = queue.reopen_item(member, "probe")
    say(member, changed, "invalid")
    assert Label.objects.current().filter(item__key="probe").get().choice == "invalid"
    assert Slot.objects.get(stage="control").state == "filled"


def test_who_skips_a_probe_and_opens_it_again_adds_no_slots(member: Membership) -> None:
    make_known(member.project, "probe", purpose="probe")
    probe = take(member, draw=0.0)
    for _ in range(3):
        queue.skip_item(member, probe.submission())
        probe = queue.reopen_item(member, probe.item.key)
    assert probe.item.slots.filter(stage="control").count() == 1
    assert say(member, probe).counted
