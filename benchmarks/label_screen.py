"""One annotator at the label screen: how long from a key press until the next item is painted?

    python -m benchmarks.label_screen [--items 100000] [--labels 60] [--look 0.8]
        [--database sqlite|postgresql]

Headless Chromium opens a project of this size on a server as in production, and presses a key on
each item after a short pause. The time from the key press until the next item is painted is
printed, together with the limit. Painted means that the first frame in which the panel names
another item is drawn.
"""

import argparse
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from benchmarks.workbench import pressing, scratch

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from annotation.models import Account

KEY = "1"
LIMIT = 100
PATIENCE = 10_000

# Times are measured in the page: the driver sees changes some milliseconds later. A task queued in
# a frame's callback runs after that frame is drawn.
STOPWATCH = """
(() => {
  const item = () => document.getElementById("panel")?.dataset.item;
  let shown, pressed = null;
  window.bench = [];
  const start = () => { shown = item(); pressed = performance.now(); };
  document.addEventListener("keydown", start, true);
  const look = () => {
    if (pressed === null || !item() || item() === shown) return;
    const since = pressed;
    pressed = null;
    requestAnimationFrame(() => setTimeout(() => window.bench.push(performance.now() - since)));
  };
  const changes = { subtree: true, childList: true, attributeFilter: ["data-item"] };
  new MutationObserver(look).observe(document, changes);
})();
"""


def main() -> None:
    """Label the given number of items once and print the figures."""
    options = _options()
    with scratch.database(options.database):
        from benchmarks.workbench import filling, serving

        project = filling.project(options.items, people=1, overlap=1)
        account = project.members.get().account
        cookie = sign_in(account)
        with serving.server(options.database) as server:
            address = f"http://127.0.0.1:{server.port}"
            with chromium_page(address, cookie) as page:
                page.goto(f"{address}/projects/{project.slug}/label/")
                times = _label(page, options.labels, options.look)
        stored = project.labels.count()
    figures = {"database": options.database, "items": options.items, "keys": options.labels}
    took = pressing.quantiles(times)
    print(json.dumps(figures | {"stored": stored, "ms_from_key_to_paint": took}))
    fine = "ok" if took["p95"] <= LIMIT else "MISSED"
    print(f"  {fine} p95 {took['p95']} ms from key to paint, at most {LIMIT}")
    if stored != options.labels:
        raise SystemExit(f"{options.labels} keys were pressed, {stored} labels are stored")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--labels", type=int, default=60)
    parser.add_argument("--look", type=float, default=0.8, help="seconds before a key")
    parser.add_argument("--database", choices=scratch.KINDS, default="sqlite")
    return parser.parse_args()


def _label(page: "Page", labels: int, look: float) -> list[float]:
    """Return the milliseconds from each key press to the next item."""
    from playwright.sync_api import Error

    page.wait_for_selector("#panel[data-item]", timeout=PATIENCE)
    for _ in range(labels):
        page.wait_for_timeout(look * 1000)
        shown = page.get_attribute("#panel", "data-item")
        page.keyboard.press(KEY)
        try:
            another = f'#panel[data-item]:not([data-item="{shown}"])'
            page.wait_for_selector(another, timeout=PATIENCE)
        except Error as error:
            raise SystemExit(f"No item came after {shown}: {_complaints(page)}") from error
    # The last label may not be stored yet, and the last frame may not be drawn yet.
    page.wait_for_timeout(1000)
    times: list[float] = page.evaluate("window.bench")
    return times


def _complaints(page: "Page") -> str:
    """Collect the error messages of the browser and the page."""
    said = [message.text for message in page.console_messages() if message.type == "error"]
    return "; ".join([*said, *map(str, page.page_errors()), page.inner_text("body")[:300]])


@contextmanager
def chromium_page(address: str, cookie: tuple[str, str]) -> Iterator["Page"]:
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if not path:
        raise SystemExit("Chromium is not here: apt install chromium.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        context.add_cookies([{"name": cookie[0], "value": cookie[1], "url": address}])
        context.add_init_script(STOPWATCH)
        yield context.new_page()
        browser.close()


def sign_in(account: "Account | None") -> tuple[str, str]:
    from django.conf import settings
    from django.test import Client

    client = Client()
    client.force_login(account)
    name = settings.SESSION_COOKIE_NAME
    return name, client.cookies[name].value


if __name__ == "__main__":
    main()
