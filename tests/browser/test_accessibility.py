"""axe finds nothing on any page, wide and narrow, in light and dark."""

from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest
from django.urls import reverse
from playwright.sync_api import Page

from annotation.models import Membership
from tests.browser.conftest import OpenPage
from tests.browser.screen import lose_connection
from tests.builders import make_item, make_member, make_project, say, take

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")
# It works out a colour anew for each element and each text, which is most of what it does; a page
# has some twenty.
REMEMBER_COLOURS = """(() => {
  const known = new Map();
  const { prototype } = axe.commons.color.Color;
  const { parseString } = prototype;
  prototype.parseString = function (text) {
    if (!known.has(text)) {
      const { r, g, b, alpha } = parseString.call(this, text);
      known.set(text, { r, g, b, alpha });
    }
    return Object.assign(this, known.get(text));
  };
})()"""
RUN = "axe.run(options).then((found) => found.violations)"
# How a page is opened. `checked` looks at each in the other colours too.
LOOKS = [(1440, "light"), (390, "dark")]
SCROLLS_SIDEWAYS = "document.documentElement.scrollWidth > innerWidth"
# The same with the page turned round, as for Arabic or Hebrew.
SCROLLS_TURNED = f"""(() => {{
  document.documentElement.dir = "rtl";
  const scrolls = {SCROLLS_SIDEWAYS};
  document.documentElement.removeAttribute("dir");
  return scrolls;
}})()"""
IS_DARK = "matchMedia('(prefers-color-scheme: dark)').matches"
OF_COLOURS = ("color-contrast", "link-in-text-block")


def violations(page: Page, *only: str) -> list[str]:
    """What axe objects to by all rules, or only by these, as rule and place; run by the debugger,
    which no policy binds."""
    page.wait_for_load_state()
    # What it finds in order is on a large page more than all that it looks at. Only rules about
    # sound need it to load anything again.
    options = {"preload": False, "resultTypes": ["violations"]} | (
        {"runOnly": only} if only else {}
    )
    found: list[dict[str, Any]] | None = page.evaluate(f"(options) => window.axe && {RUN}", options)
    if found is None:
        loaded = f"{AXE}; {REMEMBER_COLOURS}"
        found = page.evaluate(f"(options) => {{ {loaded}; return {RUN}; }}", options)
    return [
        f"{rule['id']}: {node['target']} {node.get('failureSummary', '')}"
        for rule in found
        for node in rule["nodes"]
    ]


def scrolls_sideways(page: Page) -> bool:
    return bool(page.evaluate(SCROLLS_SIDEWAYS))


def look(width: int, scheme: str) -> dict[str, Any]:
    return {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}


@pytest.fixture
def member() -> Membership:
    return make_member(make_project())


def checked(page: Page) -> None:
    """Nothing for axe to find, in light and in dark colours, and nothing to scroll sideways, from
    left to right or from right to left."""
    assert violations(page) == []
    scrolls, turned, is_dark = page.evaluate(f"[{SCROLLS_SIDEWAYS}, {SCROLLS_TURNED}, {IS_DARK}]")
    assert (scrolls, turned) == (False, False)
    page.emulate_media(color_scheme="light" if is_dark else "dark")
    assert violations(page, *OF_COLOURS) == []
    page.emulate_media(color_scheme="dark" if is_dark else "light")


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_the_label_screen_in_all_its_states(
    open_page: OpenPage, member: Membership, width: int, scheme: str
) -> None:
    make_item(member.project, texts={"claim": "Six for eight.", "rationale": "A wrong number."})
    page = open_page(
        member.account, reverse("label", args=[member.project.slug]), **look(width, scheme)
    )
    page.wait_for_selector("#panel[data-ready]")
    checked(page)
    page.keyboard.press("d")
    checked(page)
    page.keyboard.press("e")
    checked(page)
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    checked(page)


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_the_label_screen_with_trouble_and_with_nothing_to_do(
    open_page: OpenPage, member: Membership, width: int, scheme: str
) -> None:
    """Some seconds: axe looks at each state in two colour schemes."""
    make_item(member.project)
    page = open_page(
        member.account, reverse("label", args=[member.project.slug]), **look(width, scheme)
    )
    page.wait_for_selector("#panel[data-ready]")
    lose_connection(page)
    page.keyboard.press("1")
    page.wait_for_selector("#outbox .notice")
    checked(page)
    page.context.set_offline(False)
    page.wait_for_selector(".label-waiting")
    checked(page)


@pytest.mark.parametrize("width, scheme", LOOKS)
@pytest.mark.parametrize("name", ["project", "items", "item", "my-items"])
def test_pages_of_a_project(open_page: OpenPage, name: str, width: int, scheme: str) -> None:
    reader = make_member(make_project(), role="adjudicator")
    key = "a/long-key-that-could-push-the-page-wider-than-a-telephone-is-1"
    item = make_item(reader.project, key, texts={"claim": "Six for eight."})
    make_item(reader.project, flags=["identical"])
    say(reader, take(reader), comment="A spider is no insect.")
    args = [reader.project.slug, item.key] if name == "item" else [reader.project.slug]
    checked(open_page(reader.account, reverse(name, args=args), **look(width, scheme)))


@pytest.mark.parametrize("width, scheme", LOOKS)
@pytest.mark.parametrize(
    "path", ["/", "/tokens/", "/keys/", "/sessions/", "/help/", "/docs/", "/docs/?q=label",
             "/docs/overview/", "/docs/tutorial/", "/docs/compared/", "/patterns/", "/nowhere/",
             "/accounts/logout/", "/accounts/password/change/"]
)  # fmt: skip
def test_pages_outside_projects(
    open_page: OpenPage, member: Membership, path: str, width: int, scheme: str
) -> None:
    checked(open_page(member.account, path, **look(width, scheme)))


@pytest.mark.parametrize("width, scheme", LOOKS)
@pytest.mark.parametrize(
    "path", ["login/", "inactive/", "password/reset/", "password/reset/done/",
             "password/reset/key/1-no/", "password/reset/key/done/"]
)  # fmt: skip
def test_pages_before_one_is_signed_in(
    open_page: OpenPage, db: None, path: str, width: int, scheme: str
) -> None:
    checked(open_page(None, f"/accounts/{path}", **look(width, scheme)))
