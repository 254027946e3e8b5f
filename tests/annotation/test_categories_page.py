"""The page where a lead keeps the categories of a project."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from annotation import tasktypes
from annotation.items import taxonomy
from annotation.models import Event, Item, Membership, Role, TaxonomyVersion
from annotation.settings import categories
from tests.annotation.own_categories import TEXT, with_own_categories
from tests.builders import browser_of, make_item, make_member, make_project

pytestmark = pytest.mark.django_db


@pytest.fixture
def lead() -> Membership:
    return make_member(with_own_categories(make_project("reviews")), Role.LEAD)


class Page:
    """A lead at the page."""

    def __init__(self, lead: Membership) -> None:
        self.lead = lead
        self.client: Client = browser_of(lead)

    @property
    def project(self) -> Any:
        self.lead.project.refresh_from_db()
        return self.lead.project

    def url(self, name: str = "categories", *more: str) -> str:
        return reverse(name, args=[self.lead.project.slug, *more])

    def do(self, what: str, status: int = 302, **more: Any) -> str:
        data = {"shown": self.project.taxonomy_id, "do": what, **more}
        response = self.client.post(self.url(), data)
        assert response.status_code == status, response.content.decode()
        return response.content.decode()

    def save(self, where: str, *more: str, status: int = 302, **values: Any) -> str:
        data = {"shown": self.project.taxonomy_id, "expected_effect": "penalty", **values}
        response = self.client.post(self.url(where, *more), data)
        assert response.status_code == status, response.content.decode()
        return response.content.decode()

    def known(self) -> taxonomy.Taxonomy:
        return taxonomy.load_taxonomy(self.project)


@pytest.fixture
def page(lead: Membership) -> Page:
    return Page(lead)


def test_a_lead_begins_with_nothing_and_adds_groups_and_categories() -> None:
    page = Page(make_member(make_project(), Role.LEAD))
    page.do("template", template="empty")
    assert "No categories yet" in page.client.get(page.url()).content.decode()
    page.save("group-new", name="Form", colour="3", axis="content-quality")
    page.save("category-new", name="  Too   short ", ability="form", before="a", after="b")
    page.save("category-new", name="日本語", ability="form", expected_effect="either")
    known = page.known()
    assert known.ability("form") == taxonomy.Ability(
        "form", "Form", axis="content-quality", colour=3
    )
    assert [(one.slug, one.name, one.expected_effect) for one in known] == [
        ("too-short", "Too short", "penalty"),
        ("own-1", "日本語", "either"),
    ]
    assert known.category("too-short").example == taxonomy.Example("a", "b")
    shown = page.client.get(page.url()).content.decode()
    assert "Too short" in shown
    assert 'data-colour="3"' in shown
    assert "Next: <a" in shown
    make_item(page.project, category="too-short")
    assert "Next: <a" not in page.client.get(page.url()).content.decode()
    assert TaxonomyVersion.objects.filter(slug=categories.own_slug(page.project)).count() == 4
    assert Event.objects.filter(kind=categories.EVENT).count() == 4


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"name": "Rude remark"}, "There is another one called Rude remark"),
        ({"name": ""}, "This field is required"),
        ({"name": "New", "before": "only"}, "An example needs both texts"),
        ({"name": "New", "ability": "nowhere"}, "Select a valid choice"),
    ],
)
def test_what_cannot_be_saved_is_said_at_its_field(
    page: Page, values: dict[str, str], said: str
) -> None:
    before = page.project.taxonomy_id
    shown = page.save("category-new", status=422, **{"ability": "tone", **values})
    assert said in shown
    assert page.project.taxonomy_id == before


def test_a_change_keeps_the_slug_and_another_leads_change_is_not_lost(page: Page) -> None:
    stale = page.project.taxonomy_id
    page.save("category", "rude", name="Unkind remark", ability="tone")
    assert page.known().category("rude").name == "Unkind remark"
    data = {"shown": stale, "name": "Harsh", "ability": "tone", "expected_effect": "penalty"}
    response = page.client.post(page.url("category", "rude"), data)
    assert response.status_code == 409
    assert "Somebody else changed the categories" in response.content.decode()
    assert 'value="Harsh"' in response.content.decode()
    assert page.known().category("rude").name == "Unkind remark"


def test_items_follow_a_merge_and_come_back_when_it_is_undone(page: Page) -> None:
    for number, category in enumerate(("rude", "rude", "made-up-citation")):
        ability = "evidence" if category == "made-up-citation" else "tone"
        make_item(
            page.project, f"i{number}", category=category, ability=ability, source_ability=ability
        )
    before = page.project.taxonomy_id
    page.do("merge rude", into="made-up-citation")
    merged = list(Item.objects.order_by("key").values_list("category", "ability", "source_ability"))
    assert merged == [("made-up-citation", "evidence", "evidence")] * 3
    assert Item.objects.filter(fields__former_category="rude").count() == 2
    assert page.known().category("rude").merged_into == "made-up-citation"
    page.do(f"back {before}")
    back = list(Item.objects.order_by("key").values_list("category", "ability", "fields"))
    assert back == [
        ("rude", "tone", {}),
        ("rude", "tone", {}),
        ("made-up-citation", "evidence", {}),
    ]
    assert page.known().category("rude").merged_into == ""


def test_items_come_back_also_if_the_merged_category_was_removed_since(page: Page) -> None:
    for key in ("follows", "given"):
        make_item(page.project, key, category="rude", ability="tone", source_ability="tone")
    before = page.project.taxonomy_id
    page.do("merge rude", into="made-up-citation")
    page.do("remove rude")
    Item.objects.filter(key="given").update(category="flattery")  # by a lead, since
    page.do(f"back {before}")
    item, given = Item.objects.order_by("key")
    assert (item.category, item.ability, item.fields) == ("rude", "tone", {})
    assert given.category == "flattery"


def test_an_item_that_gets_another_category_during_a_merge_keeps_it(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("stays", "goes"):
        make_item(page.project, key, category="rude", ability="tone")
    split = categories.make_batches

    def move_one_then_split(ids: Any, size: int) -> Any:
        Item.objects.filter(key="goes").update(category="flattery")
        return split(ids, size)

    monkeypatch.setattr(categories, "make_batches", move_one_then_split)
    page.do("merge rude", into="made-up-citation")
    assert dict(Item.objects.values_list("key", "category")) == {
        "stays": "made-up-citation",
        "goes": "flattery",
    }


@pytest.mark.parametrize("into", ["", "nowhere", "rude", "flattery"])
def test_a_category_is_merged_only_into_another_one_in_use(page: Page, into: str) -> None:
    page.do("retire flattery")
    before = page.project.taxonomy_id
    assert "Choose another category that is in use" in page.do("merge rude", into=into, status=422)
    assert page.project.taxonomy_id == before


def test_categories_with_slugs_that_are_taken_get_numbers(page: Page) -> None:
    slugs = ["too-short", "too-short-2", "too-short-3"]
    for number, slug in enumerate(slugs):
        page.save("category-new", name="Too short", ability="tone")
        page.save("category", slug, name=f"Brief {number}", ability="tone")
    assert [one.slug for one in page.known()][-3:] == slugs


def test_items_follow_a_category_into_another_group(page: Page) -> None:
    item = make_item(page.project, category="rude", ability="tone", source_ability="tone")
    page.save("category", "rude", name="Rude remark", ability="evidence")
    item.refresh_from_db()
    assert (item.category, item.ability, item.source_ability) == ("rude", "evidence", "evidence")


def test_a_category_that_items_have_is_retired_and_not_removed(page: Page) -> None:
    make_item(page.project, category="rude", ability="tone")
    assert "Retire or merge it instead" in page.do("remove rude", status=422)
    page.do("retire rude")
    assert page.known().category("rude").retired
    assert [one.slug for one in page.known().offered] == ["flattery", "made-up-citation"]
    page.do("restore rude")
    page.do("remove flattery")
    assert [one.slug for one in page.known()] == ["rude", "made-up-citation"]
    assert "still has categories" in page.do("remove tone", status=422, table="ability")


def test_a_template_keeps_what_items_have_as_retired(page: Page) -> None:
    make_item(page.project, category="rude", ability="tone")
    page.do("template", template="mqm")
    known = page.known()
    assert [one.slug for one in known.abilities][:2] == ["accuracy", "fluency"]
    assert known.category("rude").retired
    assert known.ability("tone").name == "Tone of voice"
    assert known.find("flattery") is None


def test_the_file_comes_back_as_the_same_list(page: Page) -> None:
    text = page.client.get(page.url("categories-file")).content
    other = Page(make_member(make_project("other"), Role.LEAD))
    other.do("file", file=SimpleUploadedFile("categories.toml", text))
    assert other.known() == page.known()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[[category", "not valid TOML"),
        (b"\xff\xfe", "not text in UTF-8"),
        (TEXT.replace('"penalty"', '"pain"').encode(), "make it one of penalty, none, either"),
        (TEXT.replace('slug = "rude"', 'slug = "<b>"').encode(), "small letters"),
        (TEXT.replace('"Rude remark"', f'"{"x" * 3000}"').encode(), "at most 2,000 characters"),
    ],
)
def test_a_file_that_cannot_be_used_changes_nothing(page: Page, content: bytes, said: str) -> None:
    before = page.project.taxonomy_id
    shown = page.do("file", status=422, file=SimpleUploadedFile("c.toml", content))
    assert said in shown
    assert page.project.taxonomy_id == before


def test_entries_change_places_within_their_group(page: Page) -> None:
    page.do("down rude")
    assert [one.slug for one in page.known()] == ["flattery", "rude", "made-up-citation"]
    page.do("down rude")  # the last of its group
    assert [one.slug for one in page.known()] == ["flattery", "rude", "made-up-citation"]
    page.do("up evidence", table="ability")
    assert [one.slug for one in page.known().abilities] == ["evidence", "tone"]


def test_templates_can_be_used() -> None:
    for definition in taxonomy.load_templates().values():
        taxonomy.parse_definition(definition)
    assert list(taxonomy.load_templates()) == ["fbi", "mqm", "realmistake", "empty"]


def test_the_template_of_study_001_has_the_error_categories_of_its_task_type() -> None:
    task = tasktypes.parse_definition(tasktypes.load_definitions()["error-detection"])
    field = task.field("error_type")
    known = taxonomy.parse_definition(taxonomy.load_templates()["realmistake"])
    assert field
    assert {one.slug: one.name for one in known} == {
        str(option.value): option.title for option in field.options
    }


def test_an_edit_beside_another_one_is_saved_with_a_second_press(page: Page) -> None:
    early = page.project.taxonomy_id
    page.save("category", "flattery", name="Vague praise", ability="tone")
    sent = {"shown": early, "name": "Unkind", "ability": "tone", "expected_effect": "penalty"}
    answer = page.client.post(page.url("category", "rude"), sent)
    assert answer.status_code == 409
    assert "Save again to keep both" in answer.content.decode()
    sent["shown"] = answer.context["shown"]
    assert page.client.post(page.url("category", "rude"), sent).status_code == 302
    assert [one.name for one in page.known()][:2] == ["Unkind", "Vague praise"]


def test_groups_are_called_what_the_study_calls_them(page: Page) -> None:
    before = page.known().words
    page.do("words", group="area", groups="areas")
    assert page.known().words == {"group": "area", "groups": "areas"}
    shown = page.client.get(page.url()).content.decode()
    assert "by category and by area." in shown
    assert "Add an area" in shown
    said = page.client.get(page.url("group-new")).content.decode()
    assert "New area" in said
    page.do("words", 422, group="", groups="areas")
    page.do("words", 422, group="a" * 31, groups="areas")
    file = page.client.get(page.url("categories-file")).content.decode()
    assert 'group = "area"' in file
    page.do("words", group="skill", groups="skills")
    without = "\n".join(line for line in file.splitlines() if not line.startswith("group"))
    page.do("file", file=SimpleUploadedFile("c.toml", without.encode()))
    assert page.known().group == "skill"
    page.do("file", file=SimpleUploadedFile("c.toml", file.encode()))
    assert page.known().group == "area"
    page.do("template", template="fbi")
    assert page.known().words == before == taxonomy.load_shipped().words
    page.do(f"back {Event.objects.filter(kind='categories').latest('pk').old['digest']}")
    assert page.known().group == "area"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("By ability", "By area"),
        (
            "Abilities: an ability",
            "Areas: an area",
        ),
        ("An ability", "An area"),
        ("No capability or usability of an abilityless one", ...),
    ],
)
def test_only_the_word_for_a_group_is_replaced(text: str, said: Any) -> None:
    known = taxonomy.Taxonomy((), (), "area", "areas")
    assert known.word_groups(text) == (text if said is ... else said)
    assert taxonomy.Taxonomy((), ()).word_groups(text) == text
    assert taxonomy.Taxonomy((), (), "type", "types").word_groups("An ability") == "A type"
