"""Cases and verification in Chromium, by keyboard alone."""

import json
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from annotation.accounts.keymap import DEFAULT_KEYS
from annotation.labelling import comments, queue
from annotation.models import Item, Label, Membership, Resolution, Slot, Stage
from annotation.tasktypes import versions
from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import LOOKS, checked, look
from tests.builders import make_item, make_member, make_project, make_resolution, say, take

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

UNDO = DEFAULT_KEYS["undo"]


@pytest.fixture
def judge() -> Membership:
    return make_member(make_project(overlap=2), "adjudicator", "judge")


def disputed(judge: Membership, key: str) -> Item:
    item = make_item(judge.project, key, texts={"claim": "Six for eight."})
    for choice in ("valid", "invalid"):
        member = make_member(judge.project)
        say(member, take(member), choice, comment=f"It is {choice}.", seconds=9.0)
    return item


def opened(open_page: OpenPage, member: Membership, name: str, *args: str) -> Page:
    return ready(open_page(member.account, reverse(name, args=[member.project.slug, *args])))


def ready(page: Page) -> Page:
    page.wait_for_selector("#panel[data-ready]")
    return page


def test_a_case_is_decided_by_keys_alone(open_page: OpenPage, judge: Membership) -> None:
    first, second = disputed(judge, "1"), disputed(judge, "2")
    page = open_page(judge.account, reverse("adjudicate", args=[judge.project.slug]))
    page.get_by_role("link", name="Take the next case").focus()
    page.keyboard.press("Enter")
    ready(page)
    expect(page.locator("h1")).to_have_text("1")
    expect(page.locator(".case-said")).to_contain_text("It is invalid.")
    page.keyboard.press("2")  # invalid
    page.keyboard.press("1")  # the text can be read in several ways
    page.keyboard.press("c")
    page.keyboard.type("2 of 5 readers see six legs.")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector('#panel[data-item="2"][data-ready]')
    expect(page.locator(".messages")).to_contain_text("1 is decided: Invalid.")
    resolution = Resolution.objects.current().get(item=first)
    assert (resolution.value, resolution.reason) == ("invalid", "ambiguous")
    assert resolution.comment == "2 of 5 readers see six legs."
    label = Label.objects.get(item=first, stage=Stage.ADJUDICATE)
    assert label.seconds
    assert not Resolution.objects.filter(item=second).exists()


def test_a_decision_is_taken_back_by_one_key_with_its_words(
    open_page: OpenPage, judge: Membership
) -> None:
    first, _ = disputed(judge, "1"), disputed(judge, "2")
    page = opened(open_page, judge, "case", "1")
    page.keyboard.press("2")
    page.keyboard.press("3")
    page.keyboard.press("c")
    page.keyboard.type("Two read it so.")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector('#panel[data-item="2"][data-ready]')
    page.keyboard.press(UNDO)
    page.wait_for_selector('#panel[data-item="1"][data-ready]')
    expect(page.locator(".messages")).to_contain_text("Decision on 1 undone.")
    assert not Resolution.objects.current().filter(item=first).exists()
    expect(page.locator('input[value="invalid"]')).to_be_checked()
    expect(page.locator('input[value="slip"]')).to_be_checked()
    expect(page.locator("textarea[name=comment]")).to_have_value("Two read it so.")
    checked(page)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector('#panel[data-item="2"][data-ready]')
    decisions = Label.objects.filter(item=first, stage=Stage.ADJUDICATE)
    assert [label.withdrawn_at is None for label in decisions.order_by("pk")] == [False, True]


def test_a_case_is_not_decided_before_all_is_answered(
    open_page: OpenPage, judge: Membership
) -> None:
    disputed(judge, "1")
    page = opened(open_page, judge, "case", "1")
    page.keyboard.press("2")
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-fields-said]")).to_contain_text("Why did annotators disagree?")
    assert not Label.objects.filter(stage=Stage.ADJUDICATE).exists()


def test_what_was_begun_survives_a_reload(open_page: OpenPage, judge: Membership) -> None:
    disputed(judge, "1")
    page = opened(open_page, judge, "case", "1")
    page.keyboard.press("2")
    page.keyboard.press("c")
    page.keyboard.type("Half a thought")
    page.reload()
    ready(page)
    expect(page.locator('input[value="invalid"]')).to_be_checked()
    expect(page.locator("textarea[name=comment]")).to_have_value("Half a thought")


def test_what_was_begun_is_there_after_the_project_was_renamed(
    open_page: OpenPage, judge: Membership
) -> None:
    disputed(judge, "1")
    page = opened(open_page, judge, "case", "1")
    page.fill("textarea[name=comment]", "Half a thought")
    page.fill("#new-comment", "Half a comment")
    judge.alias, judge.project.slug = "somebody", "elsewhere"
    judge.save()
    judge.project.save()
    page.goto(reverse("case", args=["elsewhere", "1"]))
    ready(page)
    expect(page.locator("textarea[name=comment]")).to_have_value("Half a thought")
    expect(page.locator("#new-comment")).to_have_value("Half a comment")


def test_what_was_begun_before_an_update_is_there(open_page: OpenPage, judge: Membership) -> None:
    disputed(judge, "1")
    page = opened(open_page, judge, "case", "1")
    names = f"{judge.project.slug} {judge.alias}"
    decision = {"answers": {}, "words": {"comment": "Half a thought"}, "sentAt": None}
    former = {
        f"case|{names}|{reverse('case', args=[judge.project.slug, '1'])}|1|1": json.dumps(decision),
        f"comment|{names}|1": "Half a comment",
    }
    page.evaluate("(former) => Object.assign(localStorage, former)", former)
    page.reload()
    ready(page)
    expect(page.locator("textarea[name=comment]")).to_have_value("Half a thought")
    expect(page.locator("#new-comment")).to_have_value("Half a comment")
    assert not page.evaluate("Object.keys(localStorage)").count(f"comment|{names}|1")


def test_a_decision_that_could_not_be_sent_is_there_after_another_case(
    open_page: OpenPage, judge: Membership
) -> None:
    disputed(judge, "1"), disputed(judge, "2")
    page = opened(open_page, judge, "case", "1")
    page.keyboard.press("2")  # invalid
    page.keyboard.press("1")  # the text can be read in several ways
    page.keyboard.press("c")
    page.keyboard.type("Half a thought")
    page.evaluate("document.querySelector('[data-decision]').action = '/nowhere/'")
    page.evaluate("document.querySelector('[data-decision]').requestSubmit()")
    page.wait_for_url("**/nowhere/")
    page.goto(reverse("case", args=[judge.project.slug, "2"]))
    ready(page)
    page.goto(reverse("case", args=[judge.project.slug, "1"]))
    ready(page)
    expect(page.locator('input[value="invalid"]')).to_be_checked()
    expect(page.locator("textarea[name=comment]")).to_have_value("Half a thought")


def test_a_decision_that_could_not_be_sent_is_there_after_a_weekend(
    open_page: OpenPage, judge: Membership
) -> None:
    disputed(judge, "1")
    address = reverse("case", args=[judge.project.slug, "1"])
    page = ready(open_page(judge.account, address, own_context=True))
    page.keyboard.press("2")  # invalid
    page.keyboard.press("1")  # the text can be read in several ways
    page.keyboard.press("c")
    page.keyboard.type("Half a thought")
    later = page.context.new_page()
    page.context.set_offline(True)
    with page.expect_event("requestfailed"):
        page.keyboard.press("Control+Enter")
    page.close()
    later.context.set_offline(False)
    later.clock.set_fixed_time(timezone.now() + timedelta(days=3))
    later.goto(address)
    page = ready(later)
    expect(page.locator('input[value="invalid"]')).to_be_checked()
    expect(page.locator("textarea[name=comment]")).to_have_value("Half a thought")


def test_a_decision_that_was_stored_is_kept_a_day_for_an_undo(
    open_page: OpenPage, judge: Membership
) -> None:
    disputed(judge, "1"), disputed(judge, "2")
    page = ready(open_page(judge.account, reverse("case", args=[judge.project.slug, "1"])))
    page.keyboard.press("2")  # invalid
    page.keyboard.press("1")  # the text can be read in several ways
    page.keyboard.press("Control+Enter")
    page.wait_for_selector('#panel[data-item="2"][data-ready]')
    names = f"Object.keys(localStorage).includes('case|{judge.pk}|adjudicate|1|1')"
    assert page.evaluate(names)
    page.clock.set_fixed_time(timezone.now() + timedelta(days=2))
    page.reload()
    ready(page)
    assert not page.evaluate(names)


def test_what_was_written_on_a_case_is_there_after_its_gold_answer_was_corrected(
    open_page: OpenPage, judge: Membership
) -> None:
    disputed(judge, "1")
    page = opened(open_page, judge, "case", "1")
    page.keyboard.press("2")
    page.keyboard.press("c")
    page.keyboard.type("Half a thought")
    page.keyboard.press("Escape")
    page.keyboard.press("e")
    page.keyboard.press("Control+End")
    page.keyboard.type(" An insect has six.")
    page.get_by_label("Keep the labels").check()
    page.get_by_role("button", name="Preview the correction").click()
    ready(page).get_by_role("button", name="Correct it").click()
    expect(page.locator(".messages")).to_contain_text("is corrected in this item")
    ready(page)
    expect(page.locator("textarea[name=comment]")).to_have_value("Half a thought")
    expect(page.locator('input[value="invalid"]')).not_to_be_checked()
    page.reload()
    expect(ready(page).locator("textarea[name=comment]")).to_have_value("Half a thought")


def test_what_was_written_for_a_question_that_is_asked_no_more_is_shown(
    open_page: OpenPage,
) -> None:
    project = make_project(task_type="error-detection", overlap=1, verify=True)
    make_item(project, "1", texts={"input": "2 + 2?", "response": "5"})
    member = make_member(project)
    queue.store_label(member, take(member).submission({"verdict": "no_error"}))
    judge = make_member(project, "adjudicator")
    page = opened(open_page, judge, "verify")
    page.keyboard.press("x")
    page.keyboard.press("1")
    page.fill("#contest [name=explanation]", "It is four.")
    project.refresh_from_db()
    source = versions.version_source(project.task_type).replace('"explanation"', '"why"')
    adapted = versions.parse_source(project, source)
    versions.save_version(project, adapted, member=judge, shown=project.task_type_id)
    page.reload()
    ready(page)
    expect(page.locator("#contest [name=why]")).to_have_value("")
    expect(page.locator("#trouble")).to_contain_text("It is four.")
    checked(page)
    page.fill("#contest [name=comment]", "Simple sums.")
    page.reload()
    ready(page)
    expect(page.locator("#contest [name=comment]")).to_have_value("Simple sums.")
    expect(page.locator("#trouble")).to_contain_text("It is four.")


def test_the_keys_are_shown_by_a_button(open_page: OpenPage, judge: Membership) -> None:
    disputed(judge, "1")
    page = opened(open_page, judge, "case", "1")
    page.get_by_role("button", name="Keys").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def test_a_contest_that_was_begun_is_asked_about_before_the_label_is_confirmed(
    open_page: OpenPage, judge: Membership
) -> None:
    judge.project.overlap, judge.project.verify = 1, True
    judge.project.save()
    member = make_member(judge.project)
    make_item(judge.project, "1", slots=1)
    say(member, take(member), comment="Six for eight.")
    page = opened(open_page, judge, "verify")
    page.keyboard.press("x")
    page.fill("#contest textarea[name=comment]", "Nobody would mind.")
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    page.keyboard.press("Escape")
    page.keyboard.press("y")
    assert asked == ["You started to contest this label. Confirm it anyway?"]
    expect(page.locator("#contest textarea[name=comment]")).to_have_value("Nobody would mind.")
    assert not Label.objects.filter(stage=Stage.VERIFY).exists()


def test_a_gold_answer_is_mended_by_keys(open_page: OpenPage, judge: Membership) -> None:
    item = make_item(judge.project, "1")
    page = opened(open_page, judge, "case", "1")
    page.keyboard.press("e")
    page.keyboard.press("Control+End")
    page.keyboard.type(" An insect has six.")
    page.get_by_label("What did you change, and why?").fill("Insects too.")
    page.keyboard.press("Control+Enter")
    preview = page.locator("#correction")
    expect(preview).to_contain_text("Both answers: 1 item.")
    expect(preview).to_be_in_viewport()
    page.keyboard.press("e")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".messages")).to_contain_text("is corrected in this item")
    item.refresh_from_db()
    assert item.revision().texts["gold"] == "A spider has eight legs. An insect has six."
    assert item.revision().note == "Insects too."
    page.reload()
    expect(page.get_by_text("This is your unsaved text.")).to_be_hidden()
    page.wait_for_function("!Object.keys(localStorage).some((one) => one.startsWith('begun|'))")


def test_a_label_is_confirmed_by_one_key_and_another_contested(
    open_page: OpenPage, judge: Membership
) -> None:
    judge.project.overlap, judge.project.verify = 1, True
    judge.project.save()
    member = make_member(judge.project)
    items = [make_item(judge.project, key, slots=1) for key in ("1", "2")]
    for _ in items:
        say(member, take(member), comment="Six for eight.")
    page = opened(open_page, judge, "verify")
    page.keyboard.press("y")
    page.wait_for_selector('#panel[data-item="2"][data-ready]')
    assert Resolution.objects.current().get(item=items[0]).rule == "verified"
    page.keyboard.press("x")
    page.keyboard.press("3")  # leads on to the comment, which a contest needs
    page.keyboard.type("Nobody would mind.")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#panel[data-ready] .empty")
    assert Slot.objects.get(stage=Stage.ADJUDICATE).reason == "contested"
    page.keyboard.press(UNDO)
    page.wait_for_selector('#panel[data-item="2"][data-ready]')
    assert Slot.objects.get(stage=Stage.ADJUDICATE).state == "closed"
    expect(page.locator("#contest textarea[name=comment]")).to_have_value("Nobody would mind.")
    expect(page.locator('#contest input[value="score-invariant"]')).to_be_checked()


@pytest.mark.parametrize("blind", [False, True])
def test_the_way_back_from_an_answer_leads_to_the_next_item_without_that_answer(
    open_page: OpenPage, judge: Membership, blind: bool
) -> None:
    """Browsers fill in the forms of an address again as they were left."""
    project = judge.project
    project.overlap, project.verify, project.verify_blind = 1, True, blind
    project.save()
    member = make_member(project)
    for key in ("1", "2"):
        make_item(project, key, slots=1)
        say(member, take(member))
    page = opened(open_page, judge, "verify")
    page.keyboard.press("x")
    page.keyboard.press("3")
    if not blind:
        page.keyboard.type("Nobody would mind.")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector('#panel[data-item="2"][data-ready]')
    page.go_back()
    page.wait_for_selector('#panel[data-item="2"][data-ready]')
    expect(page.locator("#contest [data-field] input:checked")).to_have_count(0)
    if not blind:
        expect(page.locator("#contest textarea")).to_have_value("")


def test_what_was_added_to_a_refused_contest_is_there_later(
    open_page: OpenPage, judge: Membership
) -> None:
    judge.project.overlap, judge.project.verify = 1, True
    judge.project.save()
    make_item(judge.project, "1", slots=1)
    member = make_member(judge.project)
    say(member, take(member))
    page = opened(open_page, judge, "verify")
    page.keyboard.press("x")
    page.keyboard.press("3")
    page.keyboard.type("Nobody would mind.")
    page.evaluate("document.querySelector('#contest [name=verdict-of]').value = 'another'")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".notice")).to_contain_text("The label has changed.")
    ready(page).fill("#contest textarea[name=comment]", "Nobody would mind, not even a child.")
    page.goto(reverse("verify", args=[judge.project.slug]))
    ready(page)
    expect(page.locator("#contest textarea[name=comment]")).to_have_value(
        "Nobody would mind, not even a child."
    )


def test_a_comment_is_sent_without_leaving_the_item(open_page: OpenPage, judge: Membership) -> None:
    item = make_item(judge.project, "1")
    path = reverse("item", args=[judge.project.slug, item.key])
    page = open_page(judge.account, path)
    page.get_by_label("Write a comment").fill("@judge, look.")
    page.get_by_role("button", name="Send").press("Enter")
    expect(page.locator("#comments .entries")).to_contain_text("@judge, look.")
    assert page.url.endswith(path)


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_pages_of_cases_and_verification(
    open_page: OpenPage, judge: Membership, width: int, scheme: str
) -> None:
    item = disputed(judge, "a/long-key-that-could-push-the-page-wider-than-a-telephone-is-1")
    make_item(judge.project, "expert", slots=3)
    member = make_member(judge.project)
    say(member, take(member))
    comments.add_comment(judge, item, "@judge, look.", now=timezone.now())
    slug, account = judge.project.slug, judge.account
    options = look(width, scheme)
    checked(open_page(account, reverse("adjudicate", args=[slug]), **options))
    page = open_page(account, reverse("case", args=[slug, item.key]), **options)
    ready(page)
    checked(page)
    page.keyboard.press("2")
    page.keyboard.press("e")
    checked(page)
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    checked(page)
    checked(open_page(account, reverse("mentions", args=[slug]), **options))


def test_the_title_of_a_case_keeps_its_words_together_on_a_telephone(
    open_page: OpenPage, judge: Membership
) -> None:
    disputed(judge, "decided"), disputed(judge, "incorrect-units-1")
    page = opened(open_page, judge, "case", "decided")
    for key in ("2", "3", "Control+Enter"):
        page.keyboard.press(key)
    page.wait_for_selector('#panel[data-item="incorrect-units-1"][data-ready]')
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.get_by_role("button", name="Undo your last")).to_be_visible()
    title = page.locator("h1").bounding_box()
    assert title
    assert title["width"] > 4 * title["height"]  # one line


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_the_verify_page(open_page: OpenPage, judge: Membership, width: int, scheme: str) -> None:
    judge.project.verify = True
    judge.project.save()
    make_item(judge.project, slots=1, texts={"claim": "Six for eight."})
    say(member := make_member(judge.project), take(member), comment="Six for eight.")
    page = open_page(
        judge.account, reverse("verify", args=[judge.project.slug]), **look(width, scheme)
    )
    ready(page)
    checked(page)
    page.keyboard.press("x")
    checked(page)


@pytest.mark.parametrize("width, scheme", LOOKS)
@pytest.mark.parametrize("name", ["assign", "baseline"])
def test_pages_for_leads(open_page: OpenPage, name: str, width: int, scheme: str) -> None:
    lead = make_member(make_project(), "lead")
    make_resolution(make_item(lead.project, slots=0))
    make_item(lead.project)
    checked(open_page(lead.account, reverse(name, args=[lead.project.slug]), **look(width, scheme)))
