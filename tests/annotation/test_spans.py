"""Marked passages: what a field takes, and what becomes of them from the form to the figures."""

import json
from dataclasses import replace
from typing import Any

import pytest
from django.http import QueryDict
from django.utils import timezone

from annotation import tasktypes
from annotation.errors import FieldError
from annotation.exporting.tables import TABLES
from annotation.importing.label_rows import parse_labels
from annotation.importing.labels import store_labels
from annotation.items.rendering import differences
from annotation.labelling import drafts, queue
from annotation.models import Item, Label, Membership, Project
from annotation.reports import agreement, agreement_answers, agreement_items
from annotation.tasktypes import validation
from annotation.tasktypes.fields.span import MOST_CHARACTERS, MOST_PASSAGES, Span
from formats.rows import BadRow, Row
from judging.archive import redact
from tests.annotation.spans import passage, with_spans
from tests.annotation.test_agreement import make_label, row
from tests.annotation.test_fields import make
from tests.annotation.test_label_pages import body, browser_of, shown, url
from tests.builders import make_item, make_member, make_project, take

KINDS = {
    "choices": [{"value": "sum", "title": "Sum"}, {"value": "fact", "title": "Fact"}],
    "severities": [{"value": "minor", "title": "Minor"}, {"value": "major", "title": "Major"}],
}
HELLO = {"text": "response", "start": 0, "end": 5, "quote": "Hello"}


def test_a_form_and_a_program_store_the_same_passages() -> None:
    sent = QueryDict(mutable=True)
    later = passage("response", 6, "you")
    sent["said"] = json.dumps([later, HELLO, later])
    field = make("span")
    stored = field.clean(field.from_post(sent))
    assert stored == [HELLO, later]  # in order, and once each
    assert field.clean(stored) == stored
    assert field.answer_values(stored) == frozenset()


def test_places_count_code_points_with_emoji_and_combining_characters() -> None:
    text = "👩‍🔬 naïve cafe\u0301 𝒳 end"
    field = make("span")
    for quote in ("naïve", "cafe\u0301", "𝒳", "👩‍🔬", "end"):
        said = field.clean([passage("response", text.index(quote), quote)])
        assert field.check_texts(said, {"response": text}) == said
    # As a browser counts, which takes two units for most emoji.
    units = len(text[: text.index("naïve")].encode("utf-16-le")) // 2
    with pytest.raises(FieldError, match="not at this place"):
        field.check_texts([passage("response", units, "naïve")], {"response": text})


@pytest.mark.parametrize(
    "change, said",
    [
        ({"end": 4}, "Count Unicode code points"),
        ({"start": -1, "end": 4}, "starts at 0 or later"),
        ({"start": True}, "starts at 0 or later"),
        ({"start": 0.0}, "starts at 0 or later"),
        ({"start": 5, "end": 5, "quote": ""}, "ends after its start"),
        ({"quote": "     "}, "more than white space"),
        ({"quote": "a\0bcd"}, "cannot be saved"),
        ({"quote": "\ud800bcde"}, "cannot be saved"),
        ({"quote": 5}, "are text"),
        ({"text": ["response"]}, "are text"),
        ({"alternative": 0}, "numbered from 1"),
        ({"colour": "red"}, "has no 'colour'"),
        ({"label": "sum"}, "choose the label of “Hello”: leave it out"),
    ],
)
def test_a_passage_that_cannot_be_is_told_what_would_be(change: dict[str, Any], said: str) -> None:
    with pytest.raises(FieldError, match=r"^Said: ") as raised:
        make("span").clean([HELLO | change])
    assert said in str(raised.value)


@pytest.mark.parametrize("answer", ["Hello", {"text": "response"}, 5, [5], [[]], [{}]])
def test_what_is_no_list_of_passages_is_refused(answer: object) -> None:
    with pytest.raises(FieldError):
        make("span").clean(answer)


@pytest.mark.parametrize("sent", ["{", "[" * 100_000, "9" * 5_000, '"Hello"', "5"])
def test_a_form_with_nonsense_is_refused_and_not_an_error_of_the_server(sent: str) -> None:
    post = QueryDict(mutable=True)
    post["said"] = sent
    field = make("span")
    with pytest.raises(FieldError):
        field.clean(field.from_post(post))


def test_so_many_passages_are_enough() -> None:
    many = [passage("response", place, "x") for place in range(MOST_PASSAGES + 1)]
    assert len(make("span").clean(many[:-1])) == MOST_PASSAGES
    with pytest.raises(FieldError, match="at most 200"):
        make("span").clean(many)


def test_so_many_characters_are_enough() -> None:
    """Reports read the passages of all labels; hundreds of labels of megabytes filled memories."""
    whole = passage("response", 0, "x" * MOST_CHARACTERS)
    assert make("span").clean([whole]) == [whole]
    with pytest.raises(FieldError, match="at most 200,000 characters"):
        make("span").clean([whole, passage("response", 1, "x")])


def test_declared_labels_and_severities_are_needed_and_said_in_words() -> None:
    field = make("span", **KINDS)
    assert isinstance(field, Span)
    assert [one.key for one in field.severities] == ["1", "2"]
    with pytest.raises(FieldError, match="choose the label of “Hello”: use one of sum, fact"):
        field.clean([HELLO | {"severity": "minor"}])
    with pytest.raises(FieldError, match="choose the severity"):
        field.clean([HELLO | {"label": "sum", "severity": "awful"}])
    stored = field.clean([HELLO | {"label": "sum", "severity": "minor"}])
    assert field.describe(stored) == "“Hello” (Sum, Minor)"
    assert field.answer_values(stored) == {"sum"}


def test_an_answer_of_another_kind_of_field_is_still_shown() -> None:
    field = make("span")
    assert field.describe("in line 2") == "in line 2"
    assert field.answer_values("in line 2") == frozenset()


def test_an_alternative_is_named_where_there_are_several() -> None:
    field, texts = make("span"), {"gold": ["red", "blue"], "response": "red"}
    said = [{**passage("gold", 0, "blue"), "alternative": 2}]
    assert field.check_texts(said, texts) == said
    for wrong in (passage("gold", 0, "red"), passage("gold", 0, "red") | {"alternative": 3}):
        with pytest.raises(FieldError):
            field.check_texts([wrong], texts)
    with pytest.raises(FieldError):
        field.check_texts([passage("response", 0, "red") | {"alternative": 1}], texts)
    one = field.check_texts([passage("gold", 0, "red")], {"gold": ["red"]})
    assert one == [passage("gold", 0, "red") | {"alternative": 1}]


def test_a_lone_carriage_return_is_stored_as_the_text_has_it() -> None:
    said = make("span").check_texts([passage("response", 0, "a\nb")], {"response": "a\rb"})
    assert said[0]["quote"] == "a\rb"


def test_a_page_has_as_many_characters_as_the_text() -> None:
    # A browser reads CR LF as one character, but not if the CR is written as a number.
    assert differences.render_plain("a\r\nb\rc") == "a&#13;\nb\rc"


@pytest.mark.parametrize("rule", ["majority", "first", "adjudicated"])
def test_passages_have_no_rule(rule: str) -> None:
    project_task = tasktypes.parse_definition(tasktypes.load_definitions()["rating"])
    field = make("span", rule=rule)
    found = validation.find_problems(replace(project_task, fields=(*project_task.fields, field)))
    assert [one.text for one in found] == [f"the rule {rule!r} cannot be used for a span field."]


# ----------------------------------------------------------------------------- on a project


@pytest.fixture
def project(db: None) -> Project:
    return with_spans(make_project("p", task_type="error-detection", overlap=2))


def errors(**spans: Any) -> dict[str, Any]:
    return {
        "verdict": "error",
        "error_type": ["reasoning-correctness"],
        "explanation": "A sum.",
        **spans,
    }


def response(project: Project, text: str = "2 + 2 = 5, 3 + 3 = 7") -> Item:
    return make_item(project, texts={"input": "Sums?", "response": text})


FIVE = passage("response", 8, "5", label="sum", severity="major")
SEVEN = passage("response", 19, "7", label="sum", severity="minor")


def test_a_form_stores_passages_and_shows_them_again(project: Project) -> None:
    response(project)
    member = make_member(project)
    page = body(browser_of(member).get(url("label", member)))
    assert "data-marks-texts" in page
    sent = shown(take(member), **errors(spans=json.dumps([SEVEN, FIVE])))
    assert browser_of(member).post(url("label-submit", member), sent).status_code == 302
    assert Label.objects.get().answers["spans"] == [FIVE, SEVEN]
    assert browser_of(member).post(url("label-undo", member)).status_code == 302
    entries = drafts.load_entries(member, take(member), tasktypes.load_task_type(project))
    assert entries.answers["spans"] == [FIVE, SEVEN]


@pytest.mark.parametrize(
    "wrong", [FIVE | {"quote": "6"}, FIVE | {"text": "claim"}, FIVE | {"start": 80, "end": 81}]
)
def test_a_passage_that_is_not_in_the_texts_is_refused_and_kept_as_a_draft(
    project: Project, wrong: dict[str, Any]
) -> None:
    response(project)
    member = make_member(project)
    sent = shown(take(member), **errors(spans=json.dumps([wrong])))
    answer = browser_of(member).post(url("label-submit", member), sent)
    assert answer.status_code == 422
    assert "Where are the errors?" in body(answer)
    assert not Label.objects.exists()
    entries = drafts.load_entries(member, take(member), tasktypes.load_task_type(project))
    assert entries.answers["spans"] == [wrong]


def test_a_hostile_quote_is_text_everywhere(project: Project) -> None:
    hostile = "<script>alert(1)</script>\"'"
    response(project, hostile)
    member, lead = make_member(project), make_member(project, role="lead")
    said = passage("response", 0, hostile, label="fact", severity="major")
    queue.store_label(member, take(member).submission(errors(spans=[said])))
    page = body(browser_of(member).get(f"{url('label', member)}?item={Item.objects.get().key}"))
    assert "<script>alert" not in page
    item = body(browser_of(lead).get(f"/projects/p/items/{Item.objects.get().key}/"))
    assert "<script>alert" not in item
    assert "Where are the errors? “&lt;script&gt;alert(1)&lt;/script&gt;" in item


def test_exported_passages_are_imported_again_as_they_were(project: Project) -> None:
    item, member = response(project), make_member(project, alias="ann")
    queue.store_label(member, take(member).submission(errors(spans=[FIVE, SEVEN])))
    [told] = TABLES["labels"].rows(project)
    assert json.loads(told["answers.spans"]) == told["answers"]["spans"] == [FIVE, SEVEN]
    values = {name: told[name] for name in told if name.startswith("answers.") and told[name]}
    values |= {"item": item.key, "rater": "bea", "time": "2026-01-02T03:04:05Z"}
    report = import_rows(project, values)
    assert (report.new, report.bad) == (1, [])
    assert (
        Label.objects.get(member__alias="bea").answers == Label.objects.get(member=member).answers
    )


def test_an_imported_passage_must_be_in_the_revision(project: Project) -> None:
    item = response(project)
    values = {"item": item.key, "rater": "bea", "time": "2026-01-02T03:04:05Z"}
    values |= errors(spans=[FIVE | {"quote": "6"}])
    report = import_rows(project, values)
    assert [(one.field, one.reason) for one in report.bad] == [
        ("spans", "Where are the errors?: “6” is not at this place of the text. Mark it again.")
    ]
    assert not Label.objects.exists()


def import_rows(project: Project, *rows: dict[str, Any]) -> Any:
    task = tasktypes.load_task_type(project)
    read: list[Row | BadRow] = [Row("labels.csv", line, one) for line, one in enumerate(rows, 2)]
    now = timezone.now()
    return store_labels(project, parse_labels(read, task, now=now), now=now)


def test_an_archive_without_texts_keeps_the_places_and_masks_the_quotes(project: Project) -> None:
    scope = redact.ArchiveScope(project, (), ())
    kept = redact.drop_free_text(scope, errors(spans=[FIVE | {"quote": "a secret", "end": 16}]))
    assert kept["spans"] == [FIVE | {"quote": "x xxxxxx", "end": 16}]
    assert "explanation" not in kept


# ------------------------------------------------------------------------------- the first look


@pytest.mark.django_db
def test_a_first_look_takes_a_passage_of_a_text_that_it_shows_or_words() -> None:
    project = make_project("p", blind_first=True)
    make_item(project, texts={"gold": "It has eight.", "perturbed": "It has six."})
    member = make_member(project)
    seen = {"error": "yes", "severity": 1}
    for hidden in ([passage("gold", 7, "eight")], []):
        with pytest.raises(FieldError):
            queue.store_label(member, take(member).submission({**seen, "passage": hidden}))
    six = [passage("perturbed", 7, "six")]
    queue.store_label(member, take(member).submission({**seen, "passage": six}))
    assert Label.objects.get(stage="blind").answers["passage"] == six
    page = body(browser_of(member).get(url("label", member)))
    assert "“six”" in page


@pytest.mark.django_db
def test_words_of_an_earlier_first_look_are_shown_and_exported() -> None:
    project = make_project("p", blind_first=True)
    make_item(project)
    member = make_member(project)
    seen = {"error": "yes", "severity": 1, "place": "in line 2"}
    queue.store_label(member, take(member).submission(seen))
    assert "in line 2" in body(browser_of(member).get(url("label", member)))
    [told] = TABLES["labels"].rows(project)
    assert (told["answers.place"], told["answers.passage"]) == ("in line 2", None)


# --------------------------------------------------------------------------------- agreement


def mark(project: Project, people: list[Membership], *items: tuple[Any, Any]) -> None:
    """Labels of two people: lists of passages, or None for a response without an error."""
    for said in items:
        item = response(project)
        for member, spans in zip(people, said, strict=True):
            no_error = {"verdict": "no_error"}
            make_label(item, member, no_error if spans is None else errors(spans=spans))


def spans_question(project: Project) -> agreement_answers.Question:
    return agreement_answers.list_questions(project)[-1]


def test_agreement_is_the_overlap_of_characters_with_the_same_label(project: Project) -> None:
    people = [make_member(project, alias=alias) for alias in ("ann", "ben")]
    sum_ = passage("response", 0, "2 + 2 = 5", label="sum", severity="major")
    fact = FIVE | {"label": "fact"}
    # Shared 1 of 9 + 1; 0 of 1 + 1 (labels differ); 0 of 1 + 0 (no error); nothing marked.
    mark(project, people, ([sum_], [FIVE]), ([FIVE], [fact]), ([SEVEN], None), (None, None))
    found = agreement.measure_agreement(project, spans_question(project))
    pooled, mean = (row(found, name) for name in agreement.PASSAGE_MEASURES)
    assert (pooled.value, pooled.n_items) == (pytest.approx(2 / 13), 3)
    assert (mean.value, mean.n_items) == (pytest.approx((2 / 10 + 0 + 0) / 3), 3)
    assert (found.items, found.labels, found.cells) == (4, 8, ())
    assert pooled.reason == "under 10 clusters"
    [pair] = found.rows_of("overlap-f1", people=2)
    assert (pair.people, pair.value) == (("ann", "ben"), pooled.value)
    behind = {"field": "spans", "measure": "overlap-f1", "people": "ann / ben"}
    assert len(agreement_items.item_positions(project, behind)) == 3


def test_a_severity_does_not_matter_for_agreement(project: Project) -> None:
    people = [make_member(project, alias=alias) for alias in ("ann", "ben")]
    mark(project, people, ([FIVE], [FIVE | {"severity": "minor"}]))
    found = agreement.measure_agreement(project, spans_question(project))
    assert row(found, "overlap-f1").value == 1


def test_agreement_without_passages_is_undefined_and_says_why(project: Project) -> None:
    question = spans_question(project)
    found = agreement.measure_agreement(project, question)
    assert [(one.value, one.reason) for one in found.rows] == [
        (None, "no item with two labels")
    ] * 2
    people = [make_member(project, alias=alias) for alias in ("ann", "ben")]
    mark(project, people, (None, None))
    found = agreement.measure_agreement(project, question)
    assert {(one.value, one.reason) for one in found.rows} == {(None, "nobody marked a passage")}


@pytest.mark.django_db
def test_labels_of_a_version_without_the_question_are_missing_not_empty() -> None:
    project = make_project("p", task_type="error-detection", overlap=2)
    people = [make_member(project, alias=alias) for alias in ("ann", "ben")]
    item = response(project)
    make_label(item, people[0], {"verdict": "no_error"})
    with_spans(project)
    item.project = project
    make_label(item, people[1], errors(spans=[FIVE]))
    found = agreement.measure_agreement(project, spans_question(project))
    assert (found.labels, found.items) == (1, 0)


def test_the_page_and_the_api_report_the_overlap(project: Project) -> None:
    people = [make_member(project, alias=alias) for alias in ("ann", "ben")]
    lead = make_member(project, role="lead")
    mark(project, people, ([FIVE], [FIVE]), ([FIVE], [SEVEN]))
    page = body(browser_of(lead).get("/projects/p/agreement/?field=spans"))
    assert "Overlap F1, mean of items" in page
    assert "0.50" in page
    assert "Confusion matrix" not in page
    told = browser_of(lead).get("/api/v1/projects/p/agreement/?field=spans").json()
    assert [one["measure"] for one in told["figures"]] == ["overlap-f1", "overlap-f1-mean"] * 2
    assert told["figures"][0]["value"] == pytest.approx(0.5)
    assert told["confusion"] == []
