"""The pictures of the documents are those of today: each is taken anew, and compared with the kept.

Another version of the browser draws other pixels, so both pictures are shrunk to some thousand grey
cells, where letters blur and the parts of a page stay. Other fonts break lines elsewhere, so they
are not compared. `make pictures` writes the pictures anew.
"""

import base64
import os

from django.conf import settings
from playwright.sync_api import Page

FOLDER = settings.BASE_DIR / "docs" / "pictures"
CELLS = (64, 40)
# A cell differs if its grey does by this much of 255; a picture, if this share of its cells does.
GREY, SHARE = 24, 0.03
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


def has_font(page: Page) -> bool:
    """True if the page is in the font of the pictures, without which they cannot be compared."""
    width: float = page.evaluate(_MEASURE, LINE)
    return abs(width - LINE_WIDTH) <= 1


def compare_picture(page: Page, name: str, kilobytes: int) -> None:
    """Fail if docs/pictures/NAME.png is larger than so many kilobytes, or not what the page shows.
    With WRITE_PICTURES=1, write it."""
    taken = page.screenshot(animations="disabled", caret="hide")
    path = FOLDER / f"{name}.png"
    if os.environ.get("WRITE_PICTURES"):
        path.write_bytes(taken)
    kept = path.read_bytes()
    assert len(kept) < 1024 * kilobytes
    blank = page.context.new_page()
    share = _share_of_difference(blank, kept, taken)
    blank.close()
    assert share <= SHARE, (
        f"docs/pictures/{name}.png no longer shows {page.url}: {100 * share:.0f} % of it differ."
        " Run make pictures, and look at the result."
    )


def _share_of_difference(page: Page, one: bytes, other: bytes) -> float:
    """The share of cells in which two pictures differ."""
    urls = [f"data:image/png;base64,{base64.b64encode(png).decode()}" for png in (one, other)]
    ours, theirs = page.evaluate(_SHRINK, [urls, CELLS])
    differing = sum(abs(a - b) > GREY for a, b in zip(ours, theirs, strict=True))
    return differing / len(ours)
