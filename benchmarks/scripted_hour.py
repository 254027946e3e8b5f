"""An hour of one annotator at the label screen: is every action on record as it was meant?

    python -m benchmarks.scripted_hour [--items 300] [--minutes 60] [--seed 25]
        [--database sqlite|postgresql]

Headless Chromium works through a project at a person's pace, by keyboard. Each item gets one action
by chance: a choice, "not sure" with its reason, a comment, a correction, a flag, another view, a
skip, a label that is changed later, or a wrong key that is undone at once. At the end, what was
meant is compared with the database, item by item.
"""

import argparse
import json
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.label_screen import PATIENCE, chromium_page, sign_in
from benchmarks.workbench import scratch

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from annotation.models import Project

CHOICES = {"1": "valid", "2": "invalid", "3": "score-invariant", "4": "not-relevant"}
REASONS = {"1": "needs-expert", "2": "gold-wrong", "3": "question-unclear", "4": "tool-trouble"}
# Of a hundred items. One in fifty is a mistake that is undone at once.
ACTIONS = {
    "choose": 62, "not sure": 8, "comment": 8, "correct": 4, "flag": 4, "read": 6, "skip": 3,
    "change": 3, "mistake": 2,
}  # fmt: skip


@dataclass
class Meant:
    """What the person meant, by key of the item."""

    answers: dict[str, dict[str, str]] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    flagged: set[str] = field(default_factory=set)
    skipped: set[str] = field(default_factory=set)
    undone: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)


def main() -> None:
    """Work through the items once, print what was done, and exit with 1 if anything differs."""
    options = _options()
    with scratch.database(options.database):
        from benchmarks.workbench import filling, serving

        project = filling.project(max(options.items + 20, 500), people=1, overlap=1)
        cookie = sign_in(project.members.get().account)
        with serving.server(options.database) as server:
            address = f"http://127.0.0.1:{server.port}"
            with chromium_page(address, cookie) as page:
                page.goto(f"{address}/projects/{project.slug}/label/")
                pause = options.minutes * 60 / options.items
                meant = _work(page, options.items, pause, random.Random(options.seed))
        wrong = _compare(meant, project)
    figures = {"database": options.database, "seed": options.seed, "minutes": options.minutes}
    print(json.dumps(figures | {"actions": dict(meant.done), "differences": len(wrong)}))
    for line in wrong[:20]:
        print(f"  {line}")
    if wrong:
        raise SystemExit(1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=60, help="in which the items are labelled")
    parser.add_argument("--seed", type=int, default=25)
    parser.add_argument("--database", choices=scratch.KINDS, default="sqlite")
    return parser.parse_args()


def _work(page: "Page", items: int, pause: float, dice: random.Random) -> Meant:
    """Give each item an action; `pause` is the mean number of seconds that an item is looked at."""
    meant = Meant()
    names, weights = list(ACTIONS), list(ACTIONS.values())
    for _ in range(items):
        key = _wait_for_item(page)
        page.wait_for_timeout(1000 * min(dice.expovariate(1 / pause), 5 * pause))
        action = dice.choices(names, weights)[0]
        if action == "change" and not meant.answers:
            action = "choose"
        _act(page, action, key, dice, meant)
        meant.done[action] += 1
    page.wait_for_timeout(3000)  # the last label may be on its way
    return meant


def _wait_for_item(page: "Page", but: str = "") -> str:
    panel = f'#panel[data-item][data-ready]:not([data-item="{but}"])'
    page.wait_for_selector(panel, timeout=PATIENCE)
    return str(page.get_attribute("#panel", "data-item"))


def _act(page: "Page", action: str, key: str, dice: random.Random, meant: Meant) -> None:
    press = page.keyboard.press
    if action == "skip":
        press("s")
        meant.skipped.add(key)
    elif action == "not sure":
        press("5")
        page.wait_for_selector('[data-field="reason"][data-active]', timeout=PATIENCE)
        digit = dice.choice(list(REASONS))
        press(digit)
        meant.answers[key] = {"choice": "not-sure", "reason": REASONS[digit]}
    elif action == "change":
        _change_last(page, key, dice, meant)
        return
    else:
        if action == "comment":
            press("c")
            page.keyboard.type(f"A word on {key}.", delay=20)
            press("Escape")
            meant.comments[key] = f"A word on {key}."
        elif action == "correct":
            _correct(page, key, meant)
        elif action == "flag":
            press("f")
            page.wait_for_selector('[data-send="flag"] [aria-pressed="true"]', timeout=PATIENCE)
            meant.flagged.add(key)
        elif action == "read":
            for one in dice.choices("ndpnnw", k=6):
                press(one)
                page.wait_for_timeout(150)
        elif action == "mistake":
            press(dice.choice(list(CHOICES)))
            _wait_for_item(page, but=key)
            page.wait_for_timeout(800)  # so long it takes to notice
            press("u")
            page.wait_for_selector(f'#panel[data-item="{key}"][data-ready]', timeout=PATIENCE)
            page.wait_for_timeout(700)
            meant.undone[key] += 1
        digit = dice.choice(list(CHOICES))
        press(digit)
        meant.answers[key] = {"choice": CHOICES[digit]}
    _wait_for_item(page, but=key)


def _correct(page: "Page", key: str, meant: Meant) -> None:
    page.keyboard.press("e")
    page.wait_for_selector("[data-editor]:not([hidden])", timeout=PATIENCE)
    page.keyboard.press("Control+Home")
    page.keyboard.type("In fact: ", delay=20)
    meant.texts[key] = page.input_value("#correct-text")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector('#panel[data-revision="2"][data-ready]', timeout=PATIENCE)
    page.wait_for_timeout(700)


def _change_last(page: "Page", key: str, dice: random.Random, meant: Meant) -> None:
    """Open the last labelled item again and choose once more; the item shown now comes back."""
    last = page.get_attribute(".last-ten button:first-of-type", "value") or ""
    page.click(".last-ten button:first-of-type")
    page.wait_for_selector(f'#panel[data-item="{last}"][data-ready]', timeout=PATIENCE)
    page.wait_for_timeout(900)
    digit = dice.choice(list(CHOICES))
    page.keyboard.press(digit)
    _wait_for_item(page, but=last)
    meant.answers[last] = {"choice": CHOICES[digit]}


def _compare(meant: Meant, project: "Project") -> list[str]:
    """Return a line for each difference between what was meant and what is stored."""
    from annotation.models import Draft, Mark, Revision

    labels = project.labels.select_related("item").filter(stage="label")
    current = {one.item.key: one for one in labels.filter(current=True, withdrawn_at=None)}
    undone = Counter(one.item.key for one in labels.exclude(withdrawn_at=None))
    marks = Mark.objects.filter(item__project=project, ended_at=None).select_related("item")
    by_kind = {kind: {m.item.key for m in marks if m.kind == kind} for kind in ("flag", "skip")}
    second = Revision.objects.filter(item__project=project, number=2).select_related("item")
    stored: dict[str, tuple[Any, Any]] = {
        "answers": (meant.answers, {key: one.answers for key, one in current.items()}),
        "comments": (meant.comments, {k: one.comment for k, one in current.items() if one.comment}),
        "texts": (meant.texts, {one.item.key: one.texts["perturbed"] for one in second}),
        "flagged": (dict.fromkeys(meant.flagged), dict.fromkeys(by_kind["flag"])),
        "skipped": (dict.fromkeys(meant.skipped), dict.fromkeys(by_kind["skip"])),
        "undone": (dict(meant.undone), dict(undone)),
        "drafts left": ({}, {one.item.key: one.data for one in Draft.objects.all()}),
    }
    return [
        f"{name} of {key}: meant {said.get(key)!r}, stored {found.get(key)!r}"
        for name, (said, found) in stored.items()
        for key in sorted(said.keys() | found.keys())
        if (key in said) != (key in found) or said.get(key) != found.get(key)
    ]


if __name__ == "__main__":
    main()
