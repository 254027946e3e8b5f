"""docs/tutorial.md, done word for word in a browser: each numbered step has a function here.

A function takes names of buttons, links and texts only from the words in italics of its step, and
types only what the step gives as code; what it leaves out fails the test as well.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import Locator, Page, ViewportSize, expect

from judging.jobs.worker import WorkLoop
from tests.browser import pictures
from tests.browser.conftest import OpenPage

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

TUTORIAL = settings.BASE_DIR / "docs" / "tutorial.md"
NUMBERED = re.compile(r"^(\d+)\. (.+(?:\n {3,4}\S.*)*)", re.MULTILINE)
ITALICS, CODE = re.compile(r"\*([^*]+)\*"), re.compile(r"`([^`]+)`")
ITEMS = ("n1", "n2", "n3", "s1", "s2", "m1", "m2", "m3", "r1", "r2")
KILOBYTES = 150
SIZE: ViewportSize = {"width": 1280, "height": 800}


@dataclass
class Reader:
    """Somebody who does one step after the other, by what the step says alone."""

    page: Page
    printed: str
    folder: Path
    sentence: str = ""
    used: set[str] = field(default_factory=set)
    pictures_taken: set[str] = field(default_factory=set)

    def take(self, sentence: str) -> None:
        self.sentence, self.used = sentence, set()

    def left_out(self) -> set[str]:
        """The words in italics and code of the step that it was done without."""
        return {*ITALICS.findall(self.sentence), *CODE.findall(self.sentence)} - self.used

    def words(self, words: str) -> str:
        """The words, which the step has to have in italics."""
        return self._noted(words, ITALICS)

    def code(self, text: str) -> str:
        """The text, which the step has to have as code."""
        return self._noted(text, CODE)

    def _noted(self, text: str, pattern: re.Pattern[str]) -> str:
        assert text in pattern.findall(self.sentence), f"{text!r} is not in: {self.sentence}"
        self.used.add(text)
        return text

    def link(self, name: str, within: Locator | None = None) -> None:
        (within or self.page).get_by_role("link", name=self.words(name), exact=True).click()

    def button(self, name: str) -> None:
        self.page.get_by_role("button", name=self.words(name), exact=True).click()

    def type(self, text: str, name: str) -> None:
        self.page.get_by_label(self.words(name), exact=True).fill(self.code(text))

    def check(self, name: str) -> None:
        self.page.get_by_label(self.words(name)).check()

    def sees(self, words: str) -> None:
        expect(self.page.get_by_text(self.words(words), exact=True).first).to_be_visible()

    def sees_heading(self, words: str) -> None:
        expect(self.page.get_by_role("heading", name=self.words(words), exact=True)).to_be_visible()

    def row(self, words: str) -> Locator:
        return self.page.get_by_role("row").filter(
            has=self.page.get_by_role("rowheader", name=self.words(words), exact=True)
        )

    def picture(self, name: str, height: int) -> None:
        """Compare the upper part of the page, the first time it is shown, with the kept picture."""
        if name in self.pictures_taken or not pictures.has_font(self.page):
            return
        self.pictures_taken.add(name)
        self.page.set_viewport_size({"width": 1280, "height": height})
        pictures.compare_picture(self.page, name, KILOBYTES)
        self.page.set_viewport_size(SIZE)


STEPS: list[tuple[str, Callable[[Reader], None]]] = []


def step(sentence: str) -> Callable[[Callable[[Reader], None]], Callable[[Reader], None]]:
    """Mark the function that does the step of these words; steps come in their order."""

    def listed(does: Callable[[Reader], None]) -> Callable[[Reader], None]:
        STEPS.append((" ".join(sentence.split()), does))
        return does

    return listed


@step("Open <http://127.0.0.1:8000>, the address that the demo printed. You see *Sign in*.")
def open_the_site(reader: Reader) -> None:
    reader.page.goto("/")
    reader.sees_heading("Sign in")


@step("""Type `lead` under *User name or e-mail address* and the password that the demo printed
    beside it under *Password*, and press *Sign in*. You see *Projects*, and among them *Demo*.""")
def sign_in(reader: Reader) -> None:
    reader.type("lead", "User name or e-mail address")
    password = re.search(r"^ +lead +(\S+)", reader.printed, re.MULTILINE)
    assert password
    reader.page.get_by_label(reader.words("Password"), exact=True).fill(password[1])
    reader.button("Sign in")
    reader.sees_heading("Projects")
    reader.sees_heading("Demo")


@step("""Press *New project*. The task type *Perturbation vetting: Should this change cost the
    answer points?* is already chosen; keep it.""")
def begin_a_project(reader: Reader) -> None:
    reader.link("New project")
    kind = reader.words("Perturbation vetting: Should this change cost the answer points?")
    expect(reader.page.get_by_label(kind)).to_be_checked()


@step("""Type `My first study` under *Name*, choose *Empty: no category yet*, and press *Create
    the project*. You see *My first study is created, and you are its lead.*""")
def create_it(reader: Reader) -> None:
    reader.type("My first study", "Name")
    reader.check("Empty: no category yet")
    reader.button("Create the project")
    reader.sees("My first study is created, and you are its lead.")


@step("""Press *Add categories*, then *Add a group*. Type `Short answers` under *Name* and press
    *Add*. You see *Added Short answers.*""")
def add_a_group(reader: Reader) -> None:
    reader.link("Add categories")
    reader.link("Add a group")
    reader.type("Short answers", "Name")
    reader.button("Add")
    reader.sees("Added Short answers.")


@step("""Press *Add a category*, type `Wrong number` under *Name* and `A number is wrong.` under
    *Description*, and press *Add, then another*. You see *Added Wrong number.* and an empty
    form.""")
def add_wrong_number(reader: Reader) -> None:
    reader.link("Add a category")
    reader.type("Wrong number", "Name")
    reader.type("A number is wrong.", "Description")
    reader.button("Add, then another")
    reader.sees("Added Wrong number.")
    expect(reader.page.get_by_label("Name", exact=True)).to_have_value("")


@step("""Type `Wrong sign` under *Name* and `Plus and minus, or larger and smaller, are
    confused.` under *Description*, and press *Add, then another*. You see *Added Wrong sign.*""")
def add_wrong_sign(reader: Reader) -> None:
    reader.type("Wrong sign", "Name")
    reader.type("Plus and minus, or larger and smaller, are confused.", "Description")
    reader.button("Add, then another")
    reader.sees("Added Wrong sign.")


@step("""Type `Missing step` under *Name* and `A step that matters is left out.` under
    *Description*, and press *Add, then another*. You see *Added Missing step.*""")
def add_missing_step(reader: Reader) -> None:
    reader.type("Missing step", "Name")
    reader.type("A step that matters is left out.", "Description")
    reader.button("Add, then another")
    reader.sees("Added Missing step.")


@step("""The last category is for changes that do no harm: type `Reworded` under *Name* and
    `Other words, the same meaning.` under *Description*, choose *None: the answer is worth as
    much as before* under *Expected effect on the score*, and press *Add*. You see a table of
    four categories, and above it the way to *import items*.""")
def add_reworded(reader: Reader) -> None:
    reader.type("Reworded", "Name")
    reader.type("Other words, the same meaning.", "Description")
    reader.page.get_by_label(reader.words("Expected effect on the score")).select_option(
        reader.words("None: the answer is worth as much as before")
    )
    reader.button("Add")
    expect(reader.page.locator("main table tbody th[scope=row]")).to_have_count(4)
    reader.sees("import items")


@step("""Copy the lines above into a text editor and save them as `answers.csv`. Then press
    *import items* on the page of the categories. You see *Upload a file*, and what a file
    needs.""")
def write_the_file(reader: Reader) -> None:
    lines = re.findall(r"```csv\n(.+?)```", TUTORIAL.read_text(encoding="utf-8"), re.DOTALL)
    (reader.folder / reader.code("answers.csv")).write_text(lines[0], encoding="utf-8")
    reader.link("import items")
    reader.sees_heading("Upload a file")
    expect(reader.page.get_by_text("Every item needs")).to_be_visible()


@step("""Choose your file under *File* and press *Upload file*. You see *Preview of the import*:
    10 rows, 10 of them new, none bad, and below, the first items as annotators would see them.""")
def upload_it(reader: Reader) -> None:
    reader.page.get_by_label(reader.words("File"), exact=True).set_input_files(
        reader.folder / "answers.csv"
    )
    reader.button("Upload file")
    reader.sees_heading("Preview of the import")
    figures = reader.page.locator("#state .stats div")
    expect(figures.filter(has_text=re.compile("Rows|New|Bad"))).to_have_text(
        [re.compile(r"Rows\s*10"), re.compile(r"New\s*10"), re.compile(r"Bad\s*0")]
    )
    expect(
        reader.page.get_by_role("heading", name="The first items, as annotators would see them")
    ).to_be_visible()
    reader.picture("tutorial-import", 480)


@step("Press *Import 10 items*. You see *Imported*.")
def import_them(reader: Reader) -> None:
    reader.button("Import 10 items")
    reader.sees_heading("Imported")


@step("""Press *label them*. A tour of the screen is offered: take it, or press *No, thanks*. You
    see an item: the prompt, both answers as one text with the change marked, the category, the
    claimed change, and the question *Should this change cost the answer points?*""")
def begin_to_label(reader: Reader) -> None:
    reader.link("label them")
    reader.button("No, thanks")
    panel = reader.page.locator("#panel[data-item][data-ready]")
    for part in (
        "Prompt",
        "Gold vs perturbed answer",
        "1 change",
        "Short answers",
        "Claimed change",
    ):
        expect(panel.get_by_text(part, exact=True).first).to_be_visible()
    reader.sees("Should this change cost the answer points?")


def label(reader: Reader, choice: str) -> str:
    """Label the item that is shown, and return its key."""
    shown = reader.page.get_attribute("#panel[data-ready]", "data-item") or ""
    if shown == "s1":
        reader.picture("tutorial-label", 420)
    reader.page.keyboard.press(choice)
    reader.page.wait_for_selector(f'#panel:not([data-item="{shown}"])[data-ready]')
    return shown


@step("""Read the item and press `1` for *Valid* if a fair grader would take points off, or `3`
    for *Score-invariant* if the answer is worth as much as before. The next item follows; `u`
    takes your last label back.""")
def label_one(reader: Reader) -> None:
    for key, words in (("1", "Valid"), ("3", "Score-invariant")):
        option = reader.page.locator("label, button").filter(has_text=reader.words(words)).first
        expect(option.locator("kbd").first).to_have_text(reader.code(key))
    first = label(reader, "1")
    reader.page.keyboard.press(reader.code("u"))
    reader.page.wait_for_selector(f'#panel[data-item="{first}"][data-ready]')


@step("""Label the other nine: 1 for the eight errors, 3 for the two that are only reworded. You
    see *Every item has its final label*.""")
def label_the_others(reader: Reader) -> None:
    seen = set()
    while shown := reader.page.get_attribute("#panel", "data-item"):
        reader.page.wait_for_selector(f'#panel[data-item="{shown}"][data-ready]')
        seen.add(label(reader, "3" if shown.startswith("r") else "1"))
    assert seen == set(ITEMS)
    reader.sees_heading("Every item has its final label")


@step("""Press *Start a run*. You see *New run*: there is no evaluator LLM yet, so only the
    strategies under *Baselines* can run, and the evaluator *baseline* is ticked.""")
def begin_a_run(reader: Reader) -> None:
    reader.link("Start a run")
    reader.sees_heading("New run")
    expect(reader.page.get_by_text("There is no evaluator LLM yet")).to_be_visible()
    expect(reader.page.get_by_text(reader.words("Baselines")).last).to_be_visible()
    expect(reader.page.get_by_label(reader.words("baseline"))).to_be_checked()


@step("""Tick *Answer length* and *ROUGE-L (ASCII words)*, and press *Start the run*. You see *2
    runs started: 1 to 2.*, and after some seconds both are *finished*.""")
def start_it(reader: Reader) -> None:
    reader.check("Answer length")
    reader.check("ROUGE-L (ASCII words)")
    reader.button("Start the run")
    reader.sees("2 runs started: 1 to 2.")
    state = reader.words("finished")
    expect(reader.page.locator("#run-rows .chip", has_text=state)).to_have_count(2)


@step("""Press *Results*, then *By category*, then *with intervals*. You see *Detection rates by
    group and category*: a row for each category, a column for each run, and under each rate its
    95 % interval.""")
def open_the_results(reader: Reader) -> None:
    reader.link("Results")
    reader.link("By category")
    reader.link("with intervals")
    reader.sees_heading("Detection rates by group and category")
    table = reader.page.locator("main table").first
    for name, rest in {
        "Wrong number": "0.0 % 0.0 % to 56.1 % n 3 100.0 % 43.9 % to 100.0 % n 3",
        "Wrong sign": "0.0 % 0.0 % to 65.8 % n 2 0.0 % 0.0 % to 65.8 % n 2",
        "Missing step": "100.0 % 43.9 % to 100.0 % n 3 100.0 % 43.9 % to 100.0 % n 3",
        "Reworded": "50.0 % 9.5 % to 90.5 % n 2 100.0 % 34.2 % to 100.0 % n 2",
    }.items():
        row = table.get_by_role("row").filter(has_text=name)
        expect(row).to_have_text(f"{name} {rest}", use_inner_text=True)
    table.evaluate("table => window.scrollTo(0, table.getBoundingClientRect().top - 70)")
    reader.picture("tutorial-results", 800)


@step("""Find the row *Wrong sign*. Both runs have *0.0 %*: neither detects the two errors. The
    interval is *0.0 % to 65.8 %*.""")
def read_them(reader: Reader) -> None:
    cells = reader.row("Wrong sign").get_by_role("cell")
    rate, interval = reader.words("0.0 %"), reader.words("0.0 % to 65.8 %")
    expect(cells).to_have_text([re.compile(rf"^\s*{rate}\s*{interval}\s*n 2\s*$")] * 2)


@step("""Press *Undetected* to see the rates the other way round. In the row *Wrong sign*, press
    *100.0 %* in the column *2 · rouge-l*. You see the two missed items, each *undetected*.""")
def open_the_missed(reader: Reader) -> None:
    reader.link("Undetected")
    column = reader.words("2 · rouge-l")
    expect(reader.page.get_by_role("columnheader").nth(2)).to_contain_text(column)
    reader.link("100.0 %", reader.row("Wrong sign").get_by_role("cell").nth(1))
    expect(reader.page.get_by_role("heading", name="Run 2: ROUGE-L")).to_be_visible()
    state = reader.words("undetected")
    expect(reader.page.locator("#outcomes tbody .chip", has_text=state)).to_have_count(2)


@step("""Press *s1*. You see the texts with the change marked, and under *Reply, unchanged* what
    the evaluator said: a score of 1.0, the highest there is.""")
def read_the_reply(reader: Reader) -> None:
    reader.link("s1")
    expect(reader.page.get_by_text("1 change", exact=True)).to_be_visible()
    reader.sees_heading("Reply, unchanged")
    expect(reader.page.get_by_text('{"score": 1.0}')).to_be_visible()
    reader.picture("tutorial-missed", 800)


@step("""Press *Results*, then *Compare*. Both runs have the letter *a*, and *Runs with a letter
    in common were not shown to differ.*""")
def compare(reader: Reader) -> None:
    reader.link("Results")
    reader.link("Compare")
    rows = reader.page.locator("main table").first.locator("tbody tr")
    expect(rows).to_have_count(2)
    for row in rows.all():
        expect(row.get_by_role("cell").first).to_have_text(reader.words("a"))
    words = reader.words("Runs with a letter in common were not shown to differ.")
    expect(reader.page.get_by_text(words).first).to_be_visible()


@step("""Press *Blind spots*. You see *No slice can be tested: no slice is large enough*; a
    slice needs 20 items from ten questions.""")
def look_for_blind_spots(reader: Reader) -> None:
    reader.link("Blind spots")
    reader.sees("No slice can be tested: no slice is large enough")
    expect(reader.page.get_by_text("20 items in 10 questions or more")).to_be_visible()


@step("""Press *Plan*. Under *For ±10 points* you see how many items you would need: 93 errors
    for a detection rate that is known to 10 points.""")
def plan(reader: Reader) -> None:
    reader.link("Plan")
    table = reader.page.locator("main table").first
    titles = table.get_by_role("columnheader").all_inner_texts()
    [place] = [n for n, one in enumerate(titles) if reader.words("For ±10 points") in one]
    row = table.get_by_role("row").filter(has_text="Errors: detection").first
    expect(row.locator("th, td").nth(place)).to_have_text("93")


@step("""Press *By category*. Under *Download these figures*, press *csv* in the line *Table
    undetected by ability,category*. You get the file `my-first-study-undetected.csv`: a row for
    each run and category, with the counts, the rate and `low` and `high`, the ends of its
    interval.""")
def download(reader: Reader) -> None:
    reader.link("By category")
    reader.sees_heading("Download these figures")
    line = f"{reader.words('Table undetected by ability,category')}:"
    with reader.page.expect_download() as coming:
        reader.link("csv", reader.page.get_by_role("listitem").filter(has_text=line))
    assert coming.value.suggested_filename == reader.code("my-first-study-undetected.csv")
    header, *rows = Path(coming.value.path()).read_text(encoding="utf-8").splitlines()
    assert len(rows) == 8
    assert {reader.code("low"), reader.code("high"), "undetected", "rate"} <= {*header.split(",")}


def test_the_tutorial_leads_to_a_first_blind_spot(
    open_page: OpenPage, demo: str, worker: WorkLoop, tmp_path: Path
) -> None:
    """Ten seconds and more: the demo is made, a worker imports a file and asks in two runs, and a
    browser opens some thirty pages, since each step starts where the one before it ended."""
    found = NUMBERED.findall(TUTORIAL.read_text(encoding="utf-8"))
    assert [int(number) for number, _ in found] == list(range(1, len(STEPS) + 1))
    assert [" ".join(sentence.split()) for _, sentence in found] == [one for one, _ in STEPS]
    page = open_page(None, "/", viewport=SIZE)
    reader = Reader(page, demo, tmp_path)
    for sentence, does in STEPS:
        reader.take(sentence)
        does(reader)
        assert reader.left_out() == set(), sentence
