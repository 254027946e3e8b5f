"""What is in sight on the label screen without scrolling: the whole claim and the first change."""

from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Locator, Page, expect

from annotation import tasktypes
from annotation.labelling import queue
from annotation.models import Label, Membership
from tests.browser.conftest import OpenPage
from tests.browser.screen import choose, label_screen, lose_connection, wait_for
from tests.browser.test_accessibility import checked, scrolls_sideways
from tests.builders import make_item, make_member, make_project, say, take

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SIZES = [(1280, 720), (1440, 900), (390, 844)]

# 400 and 230 characters, as the longest that generators write.
CLAIM = (
    "The boiling point of water at the summit was raised from about 71 to about 84 degrees "
    "Celsius, so that the answer now gives the value for a mountain half as high. The sentence "
    "on how long an egg has to cook was left as it is and no longer fits the temperature before "
    "it, while the last paragraph, which explains why pasta takes longer at a great height, "
    "repeats the wrong number in words once more."
)
RATIONALE = (
    "Somebody who only looks whether the explanation is fluent will pass over the number. It "
    "can be checked by the rule of thumb in the answer itself, one degree for each three "
    "hundred metres, which leads to the true value in a single step."
)
PASSAGE = (
    "Air pressure falls with height because less air lies above to press down. Water boils once "
    "the pressure of its vapour equals that of the air, so it boils earlier on a mountain, and "
    "food that cooks in it stays cooler. Cooks allow for this by more time, or by a pot that "
    "holds pressure."
)
LONG = "\n\n".join([PASSAGE] * 12)
CODE = '''def median(values):
    """The middle of the values, or the mean of the two in the middle."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2
'''
TABLE = """
| Height | Water boils at |
|---|---|
| 0 m | 100 °C |
| 3000 m | 90 °C |
| 8848 m | 71 °C |
"""

# By name: the prompt, the gold answer, what is changed in it, and the claim.
ITEMS: dict[str, tuple[str, str, tuple[str, str], str]] = {
    "short": (
        "At what temperature does water boil on Everest?",
        "At about 71 °C.",
        ("71", "84"),
        "84 for 71.",
    ),
    "long claim": (
        "At what temperature does water boil on Everest?",
        PASSAGE + " At 71 °C.",
        ("71", "84"),
        CLAIM,
    ),
    "long prompt": (
        LONG + "\n\nAt what temperature does water boil there?",
        PASSAGE,
        ("more", "less"),
        "Cooks allow less time instead of more.",
    ),
    "long texts, long claim": (
        LONG,
        LONG + "\n\nOn Everest at 71 °C.\n\n" + LONG,
        ("71", "84"),
        CLAIM,
    ),
    "code": (
        "Write a function for the median.",
        CODE,
        ("middle - 1", "middle - 2"),
        "The wrong neighbour of the middle is taken where the number of values is even.",
    ),
    "table": (
        "Make a table of heights and boiling points.",
        PASSAGE + "\n" + TABLE,
        ("90 °C", "95 °C"),
        "The second row gives 95 instead of 90 degrees.",
    ),
    "formulas": (
        "How does pressure depend on height?",
        PASSAGE + "\n\n$$p = p_0 \\, e^{-h/8.4}$$\n\nHere $h$ is in kilometres.",
        ("kilometres", "metres"),
        "The unit of the height is metres, which the formula does not fit.",
    ),
    "right to left": (
        "באיזו טמפרטורה רותחים מים על האוורסט?",
        "מים רותחים שם ב-71 מעלות, כי הלחץ נמוך.",
        ("71", "84"),
        "84 במקום 71.",
    ),
    "many changes": (
        "Why does pasta take longer in the mountains?",
        LONG,
        ("pressure", "humidity"),
        "Pressure became humidity wherever it stands.",
    ),
}

# The task types of which no item is a changed answer.
OTHER_TYPES = sorted(
    {path.stem for path in tasktypes.FOLDER.glob("*.toml")} - {"perturbation-vetting"}
)

# Whether all of an element is in the window, and nothing lies over it or cuts it off.
IS_WHOLE = """(element) => {
  const { top, bottom, left, width } = element.getBoundingClientRect();
  if (bottom - top < 1 || top < 0 || bottom > innerHeight) return false;
  for (let y = top + 2; y < bottom - 1; y += Math.min(8, bottom - 2 - y) || 8) {
    if (!element.contains(document.elementFromPoint(left + width / 2, y))) return false;
  }
  return true;
}"""
# The first change that is drawn, by the first of its lines.
FIRST_CHANGE = """() => {
  const first = document.querySelector("[data-compared]").dataset.changes.match(/\\d+/)[0];
  const shown = '[data-panes="compared"] > [data-serves]:not([hidden])';
  const marks = [...document.querySelectorAll(`${shown} [data-change="${first}"]`)];
  const mark = marks.find((one) => one.getClientRects().length);
  const { left, top, width, height } = mark.getClientRects()[0];
  const found = document.elementFromPoint(left + Math.min(width, 8) / 2, top + height / 2);
  return mark.contains(found) && top >= 0 && top + height <= innerHeight;
}"""


def look(size: tuple[int, int]) -> dict[str, Any]:
    return {"viewport": {"width": size[0], "height": size[1]}}


def make(name: str, **switches: Any) -> Membership:
    """Somebody with two items of this kind to label."""
    project = make_project(**switches)
    prompt, gold, (old, new), claim = ITEMS[name]
    texts = {"prompt": prompt, "gold": gold, "perturbed": gold.replace(old, new)}
    for number in (1, 2):
        make_item(
            project,
            f"boiling-point-{number}",
            texts={**texts, "claim": claim, "rationale": RATIONALE},
        )
    return make_member(project)


def at_work(open_page: OpenPage, member: Membership, size: tuple[int, int]) -> Page:
    return label_screen(open_page, member, "boiling-point-1", **look(size))


def scroll_up(page: Page, size: tuple[int, int]) -> None:
    """Back to the claim on a narrow screen, where what is asked stands further down."""
    if size[0] < 960:
        page.evaluate("scrollTo(0, 0)")


def is_whole(part: Locator) -> bool:
    return all(one.evaluate(IS_WHOLE) for one in part.all()) and part.count() > 0


def height(page: Page, selector: str) -> float:
    box = page.locator(selector).bounding_box()
    assert box
    return box["height"]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ITEMS)
def test_the_claim_and_the_first_change_are_in_sight_when_an_item_is_painted(
    open_page: OpenPage, name: str, size: tuple[int, int]
) -> None:
    page = at_work(open_page, make(name), size)
    for key in ("boiling-point-1", "boiling-point-2"):
        wait_for(page, key)
        assert is_whole(page.locator(".label-claims dd"))
        assert page.evaluate(FIRST_CHANGE)
        page.keyboard.press("1")


@pytest.mark.parametrize("size", SIZES)
def test_the_claim_stays_whole_while_more_is_asked(
    open_page: OpenPage, size: tuple[int, int]
) -> None:
    page = at_work(open_page, make("long claim", claim_check=True, expected_effect=True), size)
    claim = page.locator(".label-claims dd")
    page.keyboard.press("5")  # not sure: the reason is asked
    expect(page.locator('[data-field="reason"]')).to_be_in_viewport()
    scroll_up(page, size)
    assert is_whole(claim)
    page.keyboard.press("Escape")
    page.keyboard.press("1")  # valid: how much it costs, and the changed pieces
    expect(page.locator('[data-field="effect"]')).to_be_in_viewport()
    page.keyboard.press("2")
    expect(page.locator('[data-field="claim_check"]')).to_be_in_viewport()
    scroll_up(page, size)
    assert is_whole(claim)
    checked(page)


@pytest.mark.parametrize("size", SIZES)
def test_the_claim_is_whole_under_what_was_said_at_the_first_look(
    open_page: OpenPage, size: tuple[int, int]
) -> None:
    member = make("long claim", blind_first=True, claim_check=True)
    page = open_page(member.account, reverse("label", args=[member.project.slug]), **look(size))
    page.wait_for_selector("#panel[data-phase=blind][data-ready]")
    page.keyboard.press("1")
    page.keyboard.press("ArrowDown")  # in words, instead of a passage
    page.keyboard.type("where it speaks of the temperature on the summit")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("3")
    page.keyboard.press("Control+Enter")
    wait_for(page, "boiling-point-1")
    assert is_whole(page.locator(".label-claims dd"))
    assert page.evaluate(FIRST_CHANGE)
    checked(page)


@pytest.mark.parametrize("size", SIZES)
def test_the_claim_stays_whole_while_a_label_is_contested(
    open_page: OpenPage, size: tuple[int, int]
) -> None:
    member = make("long claim", verify=True)
    say(member, take(member), comment=PASSAGE)
    other = make_member(member.project)
    path = reverse("verify", args=[member.project.slug])
    page = open_page(other.account, path, **look(size))
    page.wait_for_selector("#panel[data-ready]")
    assert is_whole(page.locator(".label-claims dd"))
    assert page.evaluate(FIRST_CHANGE)
    page.keyboard.press("x")
    expect(page.locator("#contest [data-field]").first).to_be_in_viewport()
    scroll_up(page, size)
    assert is_whole(page.locator(".label-claims dd"))
    checked(page)


def test_definitions_are_folded_in_a_low_window_until_the_person_opens_them(
    open_page: OpenPage,
) -> None:
    page = at_work(open_page, make("long claim"), SIZES[0])
    description, choice = (
        page.locator(".label-meanings > p").first,
        page.locator(".choice small").first,
    )
    expect(description).to_be_hidden()
    expect(choice).to_be_hidden()
    page.focus(".label-meanings > summary")
    page.keyboard.press("Enter")
    expect(description).to_be_visible()
    assert is_whole(page.locator(".label-claims dd"))
    page.focus("[data-focus]")
    choose(page, "1", "boiling-point-2")
    expect(description).to_be_visible()
    page.reload()
    wait_for(page, "boiling-point-2")
    expect(description).to_be_visible()
    page.click(".label-meanings > summary")
    page.reload()
    wait_for(page, "boiling-point-2")
    expect(description).to_be_hidden()
    expect(choice).to_be_hidden()


def test_definitions_are_open_where_there_is_room(open_page: OpenPage) -> None:
    page = at_work(open_page, make("short"), (1440, 900))
    expect(page.locator(".label-meanings > p").first).to_be_visible()
    expect(page.locator(".choice small").first).to_be_visible()
    assert is_whole(page.locator(".label-claims dd"))
    assert page.evaluate(FIRST_CHANGE)


def test_the_compared_texts_end_where_the_window_ends(open_page: OpenPage) -> None:
    page = at_work(open_page, make("long texts, long claim"), SIZES[0])
    assert ends(page) == pytest.approx(720, abs=24)
    lose_connection(page)  # what waits is told above the item
    choose(page, "1", "boiling-point-2")
    page.wait_for_selector("#outbox .notice")
    expect(page.locator(".pane-row > .pane")).to_be_in_viewport(ratio=1)
    page.context.set_offline(False)
    page.set_viewport_size({"width": 1280, "height": 500})
    assert height(page, ".pane-row > .pane") == 240


def ends(page: Page) -> float:
    box = page.locator(".pane-row > .pane").bounding_box()
    assert box
    return box["y"] + box["height"]


def test_the_key_the_format_and_the_view_share_a_row_that_no_step_wraps(
    open_page: OpenPage,
) -> None:
    page = at_work(open_page, make("many changes"), SIZES[0])
    before = height(page, ".texts-bar")
    assert before < 40
    for part in (
        ".label-item",
        ".texts-formats",
        "[data-views]",
        "[data-steps]",
        "[data-at-change]",
    ):
        expect(page.locator(f".texts-bar {part}")).to_be_in_viewport(ratio=1)
    for _ in range(12):
        page.keyboard.press("n")
    expect(page.locator("[data-at-change]")).to_have_text("Change 12 of 36")
    assert height(page, ".texts-bar") == before


def test_progress_and_the_last_labels_share_a_row(open_page: OpenPage) -> None:
    page = at_work(open_page, make("short"), SIZES[0])
    choose(page, "1", "boiling-point-2")
    expect(page.locator(".last-ten button")).to_be_in_viewport(ratio=1)
    expect(page.locator("[data-last]")).to_be_in_viewport(ratio=1)
    assert height(page, ".label-desk") < 40
    assert Label.objects.count() == 1


def test_the_last_labels_can_be_told_apart(open_page: OpenPage) -> None:
    """Ten of them share the row with all that is said there."""
    project = make_project(task_type="error-detection")
    member = make_member(project)
    for number in range(1, 12):
        make_item(project, f"item-{number:02}", texts={"input": "2 + 2?", "response": "5"})
    for _ in range(10):
        offer = take(member)
        queue.store_label(member, offer.submission({"verdict": "no_error"}))
    page = label_screen(open_page, member, "item-11", viewport={"width": 1280, "height": 720})
    chip = page.locator(".last-ten button").first
    assert chip.inner_text().endswith("No error")
    assert chip.evaluate("(one) => one.scrollWidth <= one.clientWidth")
    assert height(page, ".last-ten button:first-of-type") >= 24


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_text_that_goes_on_below_has_a_shadow_there(open_page: OpenPage, scheme: str) -> None:
    """The specific requirements of an input come last, and a scrollbar may hide."""
    project = make_project(task_type="error-detection")
    make_item(project, "item-01", texts={"input": LONG, "response": "5"})
    size = {"width": 1280, "height": 720}
    page = label_screen(open_page, make_member(project), viewport=size, color_scheme=scheme)
    pane = page.locator('[data-text="input"] .pane')
    box = pane.bounding_box()
    assert box
    # Right of the words, which end before it.
    strip = {"x": box["x"] + box["width"] - 24, "width": 8, "height": 4}
    foot: Any = {**strip, "y": box["y"] + box["height"] - 4}
    below = page.screenshot(clip=foot)
    pane.evaluate("(one) => one.scrollTo(0, one.scrollHeight)")
    page.wait_for_timeout(100)
    assert page.screenshot(clip=foot) != below


def test_the_choices_of_a_telephone_lie_above_the_claim_check(open_page: OpenPage) -> None:
    words = " and the bridge was as long as everybody had said before they came to it "
    gold, perturbed = (
        words.join(row) for row in (["one", "two", "six"] * 5, ["ten", "two", "nine"] * 5)
    )
    project = make_project(claim_check=True)
    make_item(project, "item-01", texts={"gold": gold, "perturbed": perturbed, "claim": "All."})
    page = label_screen(
        open_page, make_member(project), viewport={"width": 390, "height": 844}, is_mobile=True
    )
    page.keyboard.press("1")
    bar = page.locator(".label-form > .choices").bounding_box()
    assert bar
    taken = f"""() => [60, 195, 330].map((x) =>
      Boolean(document.elementFromPoint(x, {bar["y"] + 20})?.closest(".choices")))"""
    seen = 0
    for y in range(0, 3000, 50):
        page.evaluate(f"scrollTo(0, {y})")
        if page.locator(".label-form > .choices").bounding_box() == bar:
            seen += 1
            assert page.evaluate(taken) == [True, True, True], y
    assert seen > 5  # so often the answers of the claim check were behind the bar


@pytest.mark.parametrize("slug", OTHER_TYPES)
def test_the_texts_and_the_question_of_every_task_type_are_in_sight(
    open_page: OpenPage, slug: str
) -> None:
    """Some seconds: three items at three sizes, in light and in dark. A telephone shows the texts
    first: what is asked stands below them, choices that are a whole label in a bar at the end."""
    project = make_project(task_type=slug)
    task = tasktypes.load_task_type(project)
    lengths = {"short": "A spider has eight legs.", "code": CODE, "long": LONG}
    for key, text in lengths.items():
        texts: dict[str, Any] = {one.name: [text] if one.many else text for one in task.texts}
        make_item(project, key, texts=texts)
    page = label_screen(open_page, make_member(project), "short", **look(SIZES[0]))
    for key in lengths:
        wait_for(page, key)
        for size in SIZES:
            page.set_viewport_size(look(size)["viewport"])
            page.evaluate("scrollTo(0, 0)")
            first = page.locator(".texts .pane").first
            if size[0] < 960 and page.locator(".label-claims").count():
                first = page.locator(".label-claims")
            expect(first).to_be_in_viewport()
            question = page.locator(".label-form [data-field]").first
            if size[0] < 960 and not task.quick:
                question.scroll_into_view_if_needed()
            expect(question.locator("legend")).to_be_in_viewport()
            expect(question.locator("label, button").first).to_be_in_viewport(ratio=1)
            assert not scrolls_sideways(page)
            if key == "code":
                checked(page)
        page.set_viewport_size(look(SIZES[0])["viewport"])
        page.keyboard.press("s")


@pytest.mark.parametrize("slug", ["rating", "rubric-scoring", "rubric-matrix"])
def test_what_is_rated_stands_beside_the_reference_above_the_fold(
    open_page: OpenPage, slug: str
) -> None:
    project = make_project(task_type=slug)
    long = "A sentence that says why the sky is blue, and for whom. " * 40
    gold: Any = [long, long] if slug == "rating" else long
    make_item(project, "item-01", texts={"prompt": long, "gold": gold, "response": long})
    size = {"width": 1280, "height": 720}
    page = label_screen(open_page, make_member(project), viewport=size)
    boxes = [page.locator(f'[data-text="{name}"]').bounding_box() for name in ("gold", "response")]
    reference, rated = (box for box in boxes if box)
    assert reference["y"] == rated["y"] < 400
    assert reference["x"] + reference["width"] <= rated["x"]
    assert max(box["y"] + box["height"] for box in (reference, rated)) <= 720
    checked(page)
