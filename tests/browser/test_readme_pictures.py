"""The pictures of the README are those of today: each is taken of the demo project, and compared.

Another version of the browser draws other pixels, so both pictures are shrunk to some thousand grey
cells, where letters blur and the parts of a page stay. Other fonts break lines elsewhere, so they
are not compared. `make pictures` writes the pictures anew.
"""

import base64
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connections
from playwright.sync_api import Page

from annotation.models import Account
from tests.browser.conftest import OpenPage

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

CELLS = (64, 40)
# A cell differs if its grey does by this much of 255; a picture, if this share of its cells does.
GREY, SHARE = 24, 0.03
KILOBYTES = 220
# The font of the pictures, by the width of a line in it.
FONT, LINE, LINE_WIDTH = "DejaVu Sans", "Evaluators judge the answers of other models.", 373.7
_MEASURE = """line => {
    const drawn = new OffscreenCanvas(1, 1).getContext('2d');
    drawn.font = `16px ${getComputedStyle(document.body).fontFamily}`;
    return drawn.measureText(line).width;
}"""

_SHRINK = """async ([urls, [width, height]]) => Promise.all(urls.map(async url => {
    const picture = new Image();
    picture.src = url;
    await picture.decode();
    let [source, w, h] = [picture, picture.width, picture.height];
    // By halves, since a canvas that shrinks at once leaves most pixels out.
    while (w > width) {
        [w, h] = [Math.max(width, w / 2), Math.max(height, h / 2)].map(Math.ceil);
        const canvas = new OffscreenCanvas(w, h), drawn = canvas.getContext('2d');
        drawn.drawImage(source, 0, 0, w, h);
        source = canvas;
    }
    const data = source.getContext('2d').getImageData(0, 0, width, height).data;
    return Array.from({length: width * height}, (_, n) =>
        (data[4 * n] + data[4 * n + 1] + data[4 * n + 2]) / 3);
}))"""


def show_label_screen(page: Page) -> None:
    page.wait_for_selector("#panel[data-item][data-ready]")
    notice = page.get_by_role("button", name="I have read them")
    while notice.is_visible():  # a press on an item that has just appeared is ignored
        notice.click()
        page.wait_for_timeout(300)
    while page.get_attribute("#panel", "data-item") != "number-errors-2":
        shown = page.get_attribute("#panel", "data-item")
        page.keyboard.press("s")
        page.wait_for_selector(f'#panel[data-ready]:not([data-item="{shown}"])')


def show_results(page: Page) -> None:
    page.wait_for_selector("#chart svg")


@dataclass(frozen=True)
class Picture:
    """Who looks at which page, what they do before the picture is taken, and its size."""

    who: str
    address: str
    show: Callable[[Page], None]
    width: int
    height: int


PICTURES = {
    "label-screen": Picture("annotator", "/projects/demo/label/", show_label_screen, 1280, 800),
    "results": Picture("researcher", "/projects/demo/results/overview/", show_results, 1280, 1080),
}


@pytest.fixture
def demo(settings: object, tmp_path: Path) -> None:
    settings.VAR_DIR = tmp_path  # type: ignore[attr-defined]

    def make() -> None:
        call_command("demo", stdout=StringIO())
        connections.close_all()

    # The demo asks its baselines in an event loop, and the browser's runs in this thread.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(make).result()


def share_of_difference(page: Page, one: bytes, other: bytes) -> float:
    """The share of cells in which two pictures differ."""
    urls = [f"data:image/png;base64,{base64.b64encode(png).decode()}" for png in (one, other)]
    ours, theirs = page.evaluate(_SHRINK, [urls, CELLS])
    differing = sum(abs(a - b) > GREY for a, b in zip(ours, theirs, strict=True))
    return differing / len(ours)


@pytest.mark.usefixtures("demo")
@pytest.mark.parametrize("name", PICTURES)
def test_the_readme_shows_the_page_of_today(name: str, open_page: OpenPage) -> None:
    of = PICTURES[name]
    size = {"width": of.width, "height": of.height}
    page = open_page(Account.objects.get(username=of.who), of.address, viewport=size)
    of.show(page)
    width = page.evaluate(_MEASURE, LINE)
    if abs(width - LINE_WIDTH) > 1:
        pytest.skip(f"The pictures of the README need the font {FONT}.")
    taken = page.screenshot(animations="disabled", caret="hide")
    path = settings.BASE_DIR / "docs" / "pictures" / f"{name}.png"
    if os.environ.get("WRITE_PICTURES"):
        path.write_bytes(taken)
    blank = page.context.new_page()
    kept = path.read_bytes()
    assert len(kept) < 1024 * KILOBYTES
    share = share_of_difference(blank, kept, taken)
    assert share <= SHARE, (
        f"docs/pictures/{name}.png no longer shows {of.address}: {100 * share:.0f} % of it differ. "
        "Run make pictures, and look at the result."
    )
