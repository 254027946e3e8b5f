"""A project's own strategies: copied, read from text, stored version by version."""

import tomllib
from collections import Counter
from functools import partial
from typing import Any

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from annotation.errors import Refused, Stale
from annotation.models import Event, Membership
from annotation.tasktypes import toml_text
from judging import strategies
from judging.models import StrategyVersion
from judging.strategies import catalogue, editing
from judging.strategies.definitions import _KEYS
from tests.annotation.test_queue_threads import at_once
from tests.builders import make_member, make_project
from tests.judging.builders_judging import make_items, make_run

pytestmark = pytest.mark.django_db

VANILLA = strategies.read_source("vanilla")


@pytest.fixture
def member() -> Membership:
    return make_member(make_project("fbi"), role="researcher", alias="rita")


def copied(member: Membership, of: str = "vanilla", **values: Any) -> StrategyVersion:
    parent = catalogue.find_version(member.project, of)
    assert parent is not None
    return editing.copy_strategy(
        member.project, parent, **{"slug": "ours", "member": member, **values}
    )


def saved(member: Membership, source: str, shown: int = 1, note: str = "") -> Any:
    draft = editing.parse_source(source, "ours")
    return editing.save_version(member.project, draft, shown=shown, note=note, member=member)


@pytest.mark.parametrize("slug", strategies.load_all())
def test_every_shipped_strategy_reads_from_its_text_as_it_is(slug: str) -> None:
    draft = editing.parse_source(strategies.read_source(slug), slug)
    assert draft.problems == ()
    assert draft.strategy == strategies.load_all()[slug]


def test_a_page_makes_a_copy_under_a_name_that_nothing_else_has(
    client: Client, member: Membership
) -> None:
    assert member.account
    client.force_login(member.account)
    address = "/projects/fbi/strategies/vanilla/copy/"
    page = client.get(address)
    assert page.status_code == 200
    assert 'value="our-vanilla"' in page.content.decode()
    for slug in ("", "No slug"):
        assert client.post(address, {"slug": slug, "title": "Ours"}).status_code == 422
    assert not StrategyVersion.objects.filter(project=member.project).exists()
    sent = client.post(address, {"slug": "ours", "title": "Ours"})
    assert (sent.status_code, sent["Location"]) == (302, "/projects/fbi/strategies/ours/edit/")
    assert StrategyVersion.objects.get(project=member.project).parent.slug == "vanilla"
    again = client.post(address, {"slug": "ours", "title": "Ours"})
    assert again.status_code == 422
    assert "ours" in again.context["form"].errors["slug"][0]


def test_a_copy_says_the_same_under_its_own_name_and_knows_its_parent(member: Membership) -> None:
    copy = copied(member, title='Vanilla, "ours"', note="  stricter  ")
    assert (copy.slug, copy.number, copy.note, copy.member) == ("ours", 1, "stricter", member)
    assert str(copy.parent) == "vanilla v1"
    assert copy.strategy().title == 'Vanilla, "ours"'
    assert copy.strategy().prompt == strategies.load_all()["vanilla"].prompt
    assert Event.objects.get(kind="strategy").subject == "ours v1"


@pytest.mark.parametrize("slug", ["", "Ours", "a--b", "a_b", "x" * 81, "vanilla"])
def test_a_name_that_cannot_be_taken_is_refused(member: Membership, slug: str) -> None:
    with pytest.raises(Refused, match=r"for the name|Choose another name"):
        copied(member, slug=slug)
    assert not StrategyVersion.objects.own(member.project).exists()


def test_a_name_is_taken_once_in_a_project_and_again_in_another(member: Membership) -> None:
    copied(member)
    with pytest.raises(Refused, match="already has a strategy ours"):
        copied(member)
    other = make_member(make_project("other"), role="researcher")
    assert copied(other).number == 1


def test_a_saved_text_is_the_next_version_and_runs_keep_theirs(member: Membership) -> None:
    first = copied(member, of="rouge-l")
    make_items(member.project, 1)
    endpointed = make_run(member.project)
    endpointed.strategy = first
    endpointed.save()
    text = catalogue.get_source(first).replace("ROUGE-L (ASCII words)", "Renamed")
    second = saved(member, text, note="renamed")
    assert (second.number, second.parent, second.strategy().title) == (2, first, "Renamed")
    endpointed.refresh_from_db()
    assert endpointed.strategy.strategy().title == "ROUGE-L (ASCII words)"


def test_the_same_text_is_no_version(member: Membership) -> None:
    first = copied(member)
    assert saved(member, first.source.replace("\n", "\r\n")) is None
    assert StrategyVersion.objects.own(member.project).count() == 1


def test_the_slug_of_a_text_is_the_strategys_whatever_stands_there(member: Membership) -> None:
    first = copied(member)
    version = saved(member, first.source.replace('slug = "ours"', 'slug = "vanilla"') + "# more\n")
    assert (version.slug, version.definition["slug"]) == ("ours", "ours")


def test_the_second_of_two_who_save_is_told(member: Membership) -> None:
    first = copied(member)
    assert saved(member, first.source + "# one\n").number == 2
    with pytest.raises(Stale, match="ours v2 was saved while you were editing"):
        saved(member, first.source + "# two\n")
    assert saved(member, first.source + "# two\n", shown=2).number == 3


@pytest.mark.django_db(transaction=True)
def test_of_many_who_save_at_once_one_is_first_and_the_others_are_told(member: Membership) -> None:
    first = copied(member)

    def save(number: int) -> str:
        try:
            return str(saved(member, first.source + f"# {number}\n"))
        except Stale:
            return "told"

    came_of_it = at_once(*(partial(save, number) for number in range(5)))
    assert Counter(came_of_it) == {"ours v2": 1, "told": 4}
    assert StrategyVersion.objects.own(member.project).count() == 2


@pytest.mark.parametrize("word", ["main", "all"])
def test_a_new_axis_is_named_for_neither_choice_of_axes_and_one_that_is_stored_stays(
    member: Membership, word: str
) -> None:
    copied(member, "axis")
    source = toml_text.write_definition(strategies.load_all()["axis"].definition)
    renamed = source.replace('slug = "hallucination"', f'slug = "{word}"')
    assert renamed != source
    with pytest.raises(Refused, match=f"Give the axis {word} another slug"):
        saved(member, renamed)
    stored = StrategyVersion.objects.get(slug="ours")
    stored.definition = strategies.from_definition(tomllib.loads(renamed)).definition
    stored.save()
    assert word in [axis.slug for axis in stored.strategy().axes]
    assert saved(member, renamed + "\n# more\n").number == 2
    assert copied(member, "ours", slug="theirs").number == 1


def test_what_is_shipped_is_not_saved_over(member: Membership) -> None:
    draft = editing.parse_source(VANILLA + "# more\n", "vanilla")
    with pytest.raises(Refused, match="Copy it first"):
        editing.save_version(member.project, draft, shown=1, member=member)


def test_a_text_with_problems_is_not_saved(member: Membership) -> None:
    copied(member)
    with pytest.raises(Refused, match=r"Line \d+: prompt: unknown placeholder"):
        saved(member, VANILLA.replace("{{question}}", "{{qestion}}"))


# what is changed in a text -> the line that begins so, and the words of the problem
WRONG = {
    "scale = { low = 1, high = 10, step = 4 }": "scale.step: use a positive step",
    'frame = "singel"': "frame: use one of single",
    "samples = 0": "samples: use a whole number from 1",
    "bogus = 1": "bogus: unknown key",
    'axes = ["content-quality", "none"]': "axes.1: use one of",
}


@pytest.mark.parametrize("line, words", WRONG.items())
def test_a_problem_names_its_line_and_the_remedy(line: str, words: str) -> None:
    key = line.split(" = ")[0]
    source = VANILLA if toml_text.find_line(VANILLA, (key,)) else f"{line}\n{VANILLA}"
    lines = source.split("\n")
    at = toml_text.find_line(source, (key,))
    assert at is not None
    lines[at - 1] = line
    [problem] = editing.parse_source("\n".join(lines), "vanilla").problems
    assert problem.line == at
    assert words in problem.text


def test_a_problem_inside_a_step_a_metric_or_an_axis_has_its_line() -> None:
    chain = strategies.read_source("score-chain")
    broken = chain.replace("{{extract}}", "{{extrakt}}")
    [problem] = editing.parse_source(broken, "x").problems
    assert problem.line == broken.split("\n").index("{{extrakt}}") + 1
    assert problem.text.startswith("steps.1.prompt: unknown placeholder {{extrakt}}")
    [problem] = editing.parse_source(
        chain.replace('0 = "No family is named."', "0 = 5"), "x"
    ).problems
    assert chain.split("\n")[(problem.line or 0) - 1] == '0 = "No family is named."'


@pytest.mark.parametrize(
    "source, words",
    [
        ("a = ", "This is not TOML"),
        ("x" * 200_001, "Shorten it"),
        ("a = " + "[" * 5000, "nested too deep"),
        ("a" + ".a" * 100 + " = 1", "A key has more than 50 parts"),
        ("[a" + " . a" * 100 + "]", "A key has more than 50 parts"),
        ("x = { " + " . ".join([r'"\""', "'.'"] * 60) + " = 1 }", "A key has more than 50 parts"),
        (VANILLA.replace("high = 10", f"high = {'9' * 400}"), "scale.high: write"),
        (VANILLA.replace("high = 10", f"high = {'9' * 5000}"), "too large"),
        ("axes = ['none'" + ", 'none'" * 100 + "]\n" + VANILLA, "axes: list at most 100"),
        (VANILLA + '\n[[steps]]\nname = "a"' * 101, "steps: list at most 100"),
        (
            strategies.read_source("score-rubric") + '\n[[metrics]]\nslug = "a"' * 101,
            "metrics: list at most 100",
        ),
        (VANILLA.replace('"Vanilla"', '"Van\\u0000illa"'), "title: contains the character U+0000"),
    ],
)
def test_what_cannot_be_read_says_why(source: str, words: str) -> None:
    draft = editing.parse_source(source, "x")
    assert draft.strategy is None
    assert words in draft.problems[0].text


VALUES = st.recursive(
    st.one_of(
        st.text(max_size=5), st.integers(), st.floats(), st.booleans(),
        st.sampled_from(["{{question}}", "single", "pair", "scores", "axis", "a-b", "total"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["slug", "title", "text", "points", "scale", "low", "high", "step", "name",
                 "prompt", "output", "1", "0.5", "abilities"]
            ),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=8,
)  # fmt: skip


@given(st.sampled_from(["vanilla", "axis", "pairwise", "score-chain", "likert", "mean"]), st.data())
def test_no_value_of_any_key_makes_reading_fail(slug: str, data: st.DataObject) -> None:
    definition = dict(strategies.load_all()[slug].definition)
    definition[data.draw(st.sampled_from(sorted(_KEYS)))] = data.draw(VALUES)
    try:
        source = toml_text.write_definition(definition)
        tomllib.loads(source)
    except (tomllib.TOMLDecodeError, TypeError):
        return  # what the writer cannot say, such as an infinity
    draft = editing.parse_source(source, "x")
    assert (draft.strategy is None) is bool(draft.problems)
