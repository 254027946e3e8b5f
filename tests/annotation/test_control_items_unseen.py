"""Nobody who labels can tell a silent check from work: not by a page, nor by the API.

The same steps are made in two worlds that differ in one thing: whether the second item is work or
a check. What the server says then must be the same, but for names, keys and times.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from django.test import Client
from django.urls import reverse

from annotation.labelling import my_items
from annotation.models import ApiToken, Item, Membership
from tests.builders import make_account, make_item, make_known, make_member, make_project

pytestmark = pytest.mark.django_db

SIDES = ("api-project", "project", "label", "my-items", "guidelines", "qualification")
NOISE = [
    (r'csrfmiddlewaretoken" value="\w+', "csrf"),
    (r'data-account="\d+"', "account"),
    (r'data-who="\d+"', "member"),
    (r'data-begun="\d+ \d+\|', "comment"),
    (r'hx-headers=.*?"\}', "csrf"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)?", "time"),
    (r"\d{1,2} \w{3} \d{4} \d\d:\d\d", "time"),
    (r"\d\d:\d\d(:\d\d)?", "time"),
    (r'(name="key" value="|"key":"|data-ticket=")[\w:.=-]{30,}"', "ticket"),
    (r'"submission":"\w+"', "digest"),
    (r'name="label" value="\w+"', "digest"),
]


@dataclass
class World:
    """A project of alike items, one of them a check, and a person at work in it."""

    member: Membership
    keys: list[str]
    draw: Callable[[float], None]
    probe: bool

    def __post_init__(self) -> None:
        account = self.member.account
        assert account
        _, key = ApiToken.issue(account, "test")
        self.pages, self.api = Client(), Client(headers={"Authorization": f"Bearer {key}"})
        self.pages.force_login(account)

    def ask(self, name: str, body: object = None, method: str = "get", **values: str) -> str:
        """What the server answers, with its status, without what differs anyway."""
        client = self.api if name.startswith("api-") else self.pages
        place = reverse(name, args=[self.member.project.slug])
        options = {"content_type": "application/json"} if name.startswith("api-") else {}
        answer = getattr(client, method)(place, body or values, **options)
        self.last = answer
        return f"{answer.status_code} {self.plain(answer.content.decode())}"

    def plain(self, text: str) -> str:
        text = re.sub(r"\bitem-[a-dx]\b", self.numbered, text)
        project = self.member.project
        for name in (project.slug, project.name, self.member.alias):
            text = text.replace(name, "NAME")
        account = self.member.account
        assert account
        text = text.replace(account.username, "NAME")
        for pattern, word in NOISE:
            text = re.sub(pattern, word, text)
        return text

    def numbered(self, found: re.Match[str]) -> str:
        """A key by its place among those that were shown."""
        if found[0] not in self.keys:
            self.keys.append(found[0])
        return f"ITEM{self.keys.index(found[0])}"

    def label(self, draw: float, choice: str = "valid") -> Iterator[str]:
        """Label an item through the API, and look at everything after each step.

        `draw` decides what comes after it.
        """
        yield self.ask("api-next", method="post")
        offer = self.last.json()
        yield from self.look()
        self.draw(draw)
        body = {
            "key": offer["key"],
            "item": offer["item"]["key"],
            "revision": offer["revision"],
            "answers": {"choice": choice},
        }
        yield self.ask("api-labels", body, method="post")
        yield from self.look()

    def look(self) -> Iterator[str]:
        for name in SIDES:
            yield self.ask(name)
        yield self.plain(self.pages.get("/").content.decode())

    def lived(self) -> Iterator[str]:
        """All that is said while a person labels, undoes, labels again, skips and looks back."""
        self.draw(1.0)
        yield from self.look()
        yield from self.label(0.0 if self.probe else 1.0)
        yield from self.label(1.0)
        yield self.ask("my-items", list="done")
        yield self.ask("api-undo", method="post")
        yield from self.look()
        yield from self.label(1.0, "invalid")
        key = f"{self.keys[1]}-{self.member.project.slug}"
        yield self.ask("label", item=key)
        yield self.ask("label-siblings", item=key)
        held = self.pages.get(reverse("my-data-file")).json()["projects"]
        yield self.plain(json.dumps(held, indent=1))

    def left(self) -> Iterator[str]:
        """All that is said while a person skips an item, opens it again, leaves it once more, and
        sends its label from the page that was left."""
        self.draw(0.0 if self.probe else 1.0)
        yield self.ask("api-next", method="post")
        offer = self.last.json()
        self.draw(1.0)
        shown = {name: offer[name] for name in ("key", "revision")} | {"item": offer["item"]["key"]}
        yield self.ask("api-skip", shown, method="post")
        yield from self.look()
        yield self.ask("my-items", list="skipped")
        yield self.ask("label", item=offer["item"]["key"])
        yield self.ask("api-skip", shown, method="post")
        sent = {**shown, "answers": {"choice": "valid"}}
        yield self.ask("api-labels", sent, method="post")
        yield self.ask("my-items", list="done")
        yield from self.look()


def world(draw: Callable[[float], None], *, probe: bool) -> World:
    project = make_project(probe_every=2)
    member = make_member(project, account=make_account())
    for letter in "abcd":
        make_item(project, f"item-{letter}-{project.slug}", cluster=f"c-{letter}")
    make_known(project, f"item-x-{project.slug}", purpose="probe", cluster="c-x")
    return World(member, [], draw, probe)


@pytest.fixture
def draw(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    def fixed(value: float) -> None:
        monkeypatch.setattr("annotation.labelling.queue.next_item.random.random", lambda: value)

    return fixed


def test_a_check_looks_like_work_to_who_labels_it(draw: Callable[[float], None]) -> None:
    work = list(world(draw, probe=False).lived())
    check = list(world(draw, probe=True).lived())
    assert len(work) == len(check)
    for ours, theirs in zip(work, check, strict=True):
        assert ours == theirs


def test_the_two_worlds_differ_in_the_check(draw: Callable[[float], None]) -> None:
    for probe in (False, True):
        one = world(draw, probe=probe)
        list(one.lived())
        stages = set(one.member.labels.values_list("stage", flat=True))
        assert stages == ({"label", "control"} if probe else {"label"})


def test_a_check_stands_among_its_siblings_before_it_is_labelled_and_after(
    draw: Callable[[float], None],
) -> None:
    one = world(draw, probe=True)
    one.member.project.items.update(cluster="one")
    draw(1.0)
    first = one.api.post(reverse("api-next", args=[one.member.project.slug])).json()["item"]["key"]
    shown = [
        sibling.item.key
        for sibling in my_items.list_siblings(one.member, item_of(one, first)) or []
    ]
    assert f"item-x-{one.member.project.slug}" in shown
    make_known(one.member.project, "practised", cluster="one")
    again = [
        sibling.item.key
        for sibling in my_items.list_siblings(one.member, item_of(one, first)) or []
    ]
    assert again == shown


def item_of(one: World, key: str) -> Item:
    return Item.objects.get(project=one.member.project, key=key)


def test_a_check_that_was_left_looks_like_work_that_was_left(draw: Callable[[float], None]) -> None:
    work = list(world(draw, probe=False).left())
    check = list(world(draw, probe=True).left())
    assert len(work) == len(check)
    for ours, theirs in zip(work, check, strict=True):
        assert ours == theirs
