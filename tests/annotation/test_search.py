"""The search for words in the texts of items and in the comments on them."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from annotation import tasktypes
from annotation.items import search, search_index
from annotation.labelling import comments
from annotation.models import Item, Label, Mark, Project, SearchText
from tests.builders import browser_of, make_item, make_member, make_project, say, take

pytestmark = pytest.mark.django_db

TEXTS = {
    "prompt": "How many legs has a spider?",
    "gold": "A spider has eight legs, an insect six.",
    "perturbed": "A spider has ten legs, an insect six.",
}


@pytest.fixture
def project() -> Project:
    return make_project()


def index() -> None:
    while search_index.update_batch():
        pass


def find(project: Project, text: str) -> list[str]:
    index()
    items = Item.objects.in_project(project).order_by("position")
    return [item.key for item in search.find_items(items, project, search.parse_query(text))]


def with_text(project: Project, key: str, text: str) -> Item:
    return make_item(project, key=key, texts={**TEXTS, "perturbed": text})


@pytest.mark.parametrize(
    ("typed", "finds"),
    [
        ("spider", True),
        ("SPIDER", True),
        ("spid", True),  # the beginning of a word
        ("sp", False),  # too short a beginning
        ("sp*", True),
        ("pider", False),
        ("spider insect", True),
        ("insect spider", True),
        ("spider beetle", False),
        ('"spider has ten"', True),
        ('"spider ten"', False),
        ('"spid"', False),  # quoted, a word is whole
        ("spider -beetle", True),
        ("spider -insect", False),
        ('spider -"insect ten"', True),
        ('spider -"has ten"', False),
        ("legs,", True),
        ("how-many", True),  # what is joined by signs stands together
        ("many-how", False),
        ('"spider', True),  # a quotation that is not closed
        ("'); DROP TABLE x; --", False),
        ("a:b & c | !d", False),
        ("NOT spider", False),  # a word like any other
        ("projectnumber", False),
        ("\ue0001", False),
    ],
)
def test_words_find_items(project: Project, typed: str, finds: bool) -> None:
    make_item(project, key="one", texts=TEXTS)
    assert find(project, typed) == (["one"] if finds else [])


@pytest.mark.parametrize(
    ("text", "typed", "finds"),
    [
        ("Die Straße ist Übung.", "strasse", True),
        ("Die Straße ist Übung.", "übung", True),
        ("Die Straße ist Übung.", "ubung", False),  # other letters are other words
        ("蜘蛛有八条腿。", "八条", True),
        ("蜘蛛有八条腿。", "条八", False),
        ("ｆｕｌｌ width", "full", True),
        ("x² + 3.14 = $\\frac{a}{b}$", '"3.14"', True),
        ("x² + 3.14 = $\\frac{a}{b}$", "frac", True),
        ("paid £1,200 in 2019", "1200", False),
        ("paid £1,200 in 2019", "1,200", True),
        ("mail a.b@c.example now", "c.example", True),
        ("see https://c.example/d?e=f", "c.example/d", True),
        ("v1.2-beta 3e5 0x1F", "beta 3e5 0x1f", True),
        ("🕷 and ٣", "٣", True),
    ],
)
def test_words_of_any_script_find_items(
    project: Project, text: str, typed: str, finds: bool
) -> None:
    with_text(project, "one", text)
    assert find(project, typed) == (["one"] if finds else [])


@pytest.mark.parametrize("typed", ["", "  ", "-", "!?", '""', "-spider", "🕷"])
def test_a_search_without_a_word_says_so(typed: str) -> None:
    with pytest.raises(search.SearchError, match="at least one word"):
        search.parse_query(typed)


def test_the_page_shows_whatever_is_typed(project: Project) -> None:
    make_item(project, key="one", texts=TEXTS)
    client = browser_of(make_member(project, role="lead"))
    for typed in ("%20", "%20spider%20", "\ufdfa" * 500):
        answer = client.get(f"/projects/{project.slug}/items/?text={typed}")
        assert answer.status_code == 200
    # What cannot be looked for finds nothing, and not everything.
    page = client.get(f"/projects/{project.slug}/items/?text=-spider").content.decode()
    assert "Type at least one word to look for" in page
    assert "items match" not in page
    assert "/items/one/" not in page


@pytest.mark.parametrize("list_of", ["/projects/{}/items/", "/api/v1/projects/{}/items/"])
def test_who_finds_an_item_by_words_of_a_comment_has_seen_it(
    project: Project, list_of: str
) -> None:
    lead = make_member(project, role="lead")
    item = make_item(project, key="one", texts=TEXTS)
    make_item(project, key="two", texts=TEXTS)
    comments.add_comment(
        make_member(project, alias="Ann", role="lead"), item, "A wasp?", now=timezone.now()
    )
    index()
    for word, seen in (("spider", 0), ("wasp", 1)):
        browser_of(lead).get(f"{list_of.format(project.slug)}?text={word}")
        assert Mark.objects.filter(kind="seen", item=item, member=lead).count() == seen


@pytest.mark.parametrize(
    ("text", "typed", "marked"),
    [
        ("Die Straße.", "strasse", "Straße"),
        ("蜘蛛有八条腿。", "八条", "八条"),
        ("abc蜘蛛def", "蜘蛛", "蜘蛛"),
    ],
)
def test_excerpts_mark_words_of_any_script(
    project: Project, text: str, typed: str, marked: str
) -> None:
    item = with_text(project, "one", text)
    task = tasktypes.load_task_type(project)
    [one] = search.find_excerpts(task, [item], search.parse_query(typed))[item.pk]
    assert [piece for piece, hit in one.pieces if hit] == [marked]


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=40))
def test_whatever_is_typed_the_database_can_read(typed: str) -> None:
    project = Project(pk=1)
    try:
        terms = search.parse_query(typed)
    except search.SearchError:
        return
    assert list(search.find_items(Item.objects.all(), project, terms)[:1]) == []


def test_what_is_corrected_or_said_is_found_and_what_is_gone_is_not(project: Project) -> None:
    ann, lead = make_member(project, alias="Ann"), make_member(project, alias="Li", role="lead")
    item = make_item(project, key="one", texts=TEXTS)
    make_item(project, key="two", texts=TEXTS)
    now = timezone.now()
    assert find(project, "scorpion") == []
    said = comments.add_comment(lead, item, "Or a scorpion?", now=now)
    assert find(project, "scorpion") == ["one"]
    comments.withdraw_comment(lead, item, 1, now=now)
    assert find(project, "scorpion") == []
    offer = take(ann)
    Label.objects.filter(pk=say(ann, offer).pk).update(comment="Rather a tarantula.")
    assert find(project, "tarantula") == [offer.item.key]
    Label.objects.update(current=False)
    assert find(project, "tarantula") == []
    assert said.item == item


def test_only_current_texts_of_the_project_are_found(project: Project) -> None:
    item = make_item(project, key="one", texts=TEXTS)
    other = make_project(slug="other")
    make_item(other, key="other-one", texts=TEXTS)
    assert find(project, "spider") == ["one"]
    assert find(other, "spider") == ["other-one"]
    item.revisions.create(number=2, texts={**TEXTS, "perturbed": "A beetle."}, digest="x")
    Item.objects.filter(pk=item.pk).update(revision_number=2)
    assert find(project, "beetle") == ["one"]
    assert find(project, '"has ten"') == []


def test_an_item_too_long_for_the_index_is_found_by_its_beginning(project: Project) -> None:
    long = "first " + " ".join(f"{number}{'é' * 150}" for number in range(40_000)) + " last"
    with_text(project, "long", long)
    assert find(project, "first") == ["long"]
    assert find(project, "last") == []


def test_a_page_of_what_was_found_takes_as_many_queries_whatever_is_found(project: Project) -> None:
    client = browser_of(make_member(project, role="lead"))
    numbers = []
    for number in (2, 20):
        for _ in range(number):
            make_item(project, texts=TEXTS)
        index()
        with CaptureQueriesContext(connection) as queries:
            client.get(f"/projects/{project.slug}/items/?text=spider")
        numbers.append(len(queries))
    assert numbers[0] == numbers[1]


def test_more_than_the_most_are_shown_up_to_it(project: Project, monkeypatch: Any) -> None:
    monkeypatch.setattr(search, "MOST_FOUND", 3)
    for number in range(5):
        make_item(project, key=f"item-{number}", texts=TEXTS)
    assert find(project, "spider") == [f"item-{number}" for number in range(5)]
    page = browser_of(make_member(project, role="lead")).get(
        f"/projects/{project.slug}/items/?text=spider"
    )
    assert "More than 3 items match." in page.content.decode()


def test_what_is_found_stands_in_the_order_of_items(project: Project) -> None:
    for position in (2, 3, 1):
        make_item(project, key=f"item-{position}", texts=TEXTS)
        Item.objects.filter(key=f"item-{position}").update(position=10 + position)
    assert find(project, "spider") == ["item-1", "item-2", "item-3"]


def test_excerpts_mark_what_was_found(project: Project) -> None:
    item = make_item(project, key="one", texts=TEXTS)
    task = tasktypes.load_task_type(project)
    terms = search.parse_query('spid -beetle "ten legs"')
    found = search.find_excerpts(task, [item], terms)[item.pk]
    marked = [[text for text, hit in one.pieces if hit] for one in found]
    assert marked == [["spider"], ["spider"]]
    assert "".join(text for text, _ in found[0].pieces) == TEXTS["prompt"]


def test_an_excerpt_of_a_long_text_begins_shortly_before_the_match(project: Project) -> None:
    item = with_text(project, "one", "word " * 200 + "needle" + " word" * 200)
    [one] = search.find_excerpts(
        tasktypes.load_task_type(project), [item], search.parse_query("needle")
    )[item.pk]
    text = "".join(text for text, _ in one.pieces)
    assert text.startswith("…word")
    assert text.endswith("…")
    assert ("needle", True) in one.pieces
    assert len(text) < search.BEFORE + search.AFTER + 20


def test_of_very_long_texts_the_first_are_looked_through_for_excerpts_and_all_comments(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MOST_LOOKED_THROUGH", 3_000)
    one, two = (with_text(project, key, "word " * 500 + "needle") for key in ("one", "two"))
    lead = make_member(project, role="lead")
    comments.add_comment(lead, two, "A needle.", now=timezone.now())
    task, terms = tasktypes.load_task_type(project), search.parse_query("needle")
    found = search.find_excerpts(task, [one, two], terms)
    assert [[place.is_comment for place in found[item.pk]] for item in (one, two)] == [
        [False],
        [True],
    ]


def test_one_search_of_a_process_at_a_time_reads_long_texts(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading: list[int] = []
    most: list[int] = []

    def load_texts(ids: list[int]) -> Any:
        reading.append(1)
        most.append(len(reading))
        time.sleep(0.02)
        reading.pop()
        return []

    monkeypatch.setattr(search_index, "load_texts", load_texts)
    task, terms = tasktypes.load_task_type(project), search.parse_query("needle")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: search.find_excerpts(task, [], terms), range(4)))
    assert most == [1] * 4


def test_items_whose_comments_change_are_due_again(project: Project) -> None:
    item = make_item(project, key="one", texts=TEXTS)
    assert search_index.count_due(project, 10) == 1
    index()
    assert search_index.count_due(project, 10) == 0
    assert search_index.find_due(timezone.now()) == []
    comments.add_comment(make_member(project, role="lead"), item, "Well.", now=timezone.now())
    assert search_index.find_due(timezone.now()) == [0]


def test_a_label_without_a_comment_does_not_touch_the_index(project: Project) -> None:
    ann = make_member(project, alias="Ann")
    make_item(project, key="one", texts=TEXTS)
    index()
    say(ann, take(ann))
    assert not SearchText.objects.filter(due=True).exists()


def test_labels_come_between_short_batches_on_sqlite(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(25):
        make_item(project, texts=TEXTS)
    pauses: list[float] = []
    monkeypatch.setattr(search_index.time, "sleep", pauses.append)
    search_index.run_slice()
    assert not SearchText.objects.filter(due=True).exists()
    assert len(pauses) == (2 if connection.vendor == "sqlite" else 0)
    assert all(pause > 0 for pause in pauses)


def test_items_from_before_the_triggers_are_indexed(project: Project) -> None:
    make_item(project, key="one", texts=TEXTS)
    SearchText.objects.all().delete()
    search_index.TRIGGERS.drop()
    search_index.TRIGGERS.install()
    assert find(project, "spider") == ["one"]


def test_a_long_quotation_is_marked_in_time_that_grows_with_the_text() -> None:
    terms = search.parse_query(f'"{"a " * 200}b"')
    started = time.process_time()
    found = search.pattern(terms).search("a " * 300_000)
    assert time.process_time() - started < 1
    assert found
    assert found[0].split() == ["a"] * search.MOST_MARKED
