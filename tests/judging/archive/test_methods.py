"""The methods paragraph: each sentence where it applies and nowhere else, with the project's own
numbers."""

import string
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.models import Item, Label, Project, Resolution
from judging.models import Outcome, Reply, Run
from judging.results import cache, figure_help, figures
from judging.results.tables import methods
from judging.runs import derived, pinning, supplements
from judging.runs import lifecycle as running
from judging.runs.run_config import RunOverrides
from tests.builders import make_item, make_member, make_project, say, take
from tests.judging import builders_decided
from tests.judging.builders_decided import make_replied, scores
from tests.judging.builders_judging import (
    TWO_CALLS,
    answer,
    make_endpoint,
    make_items,
    make_judged,
    make_responses,
    make_run,
    make_strategy,
)

pytestmark = pytest.mark.django_db


def told(project: Project) -> str:
    """The paragraphs about all runs of a project."""
    return methods.write_methods(project, list(project.runs.for_results())).text


def said(kind: str, name: str, text: str) -> bool:
    """Whether a text has a sentence: all of its words between what is filled in, in order."""
    place = 0
    for words, *_ in string.Formatter().parse(methods._load_sentences()[kind][name]):
        place = text.find(words, place)
        if place < 0:
            return False
    return True


def intervals_of(text: str) -> set[str]:
    """Whose intervals a text explains, with what was measured of them."""
    return {
        name
        for name, one in figure_help.load_intervals().items()
        if f"{one.how} {one.measured}".strip() in text
    }


def vanilla(project: Project, replies: list[builders_decided.Replies], **values: Any) -> Run:
    items = make_items(project, len(replies))
    return make_replied(project, "vanilla", zip(items, replies, strict=True), **values)


def test_the_data_are_counted_without_what_is_no_part_of_them(project: Project) -> None:
    items = make_items(project, 5, cluster="one question")
    make_items(project, 3, "score-invariant")
    make_item(project, "open")
    items[0].duplicate_of = items[1]
    items[0].save()
    Item.objects.filter(pk=items[2].pk).update(deleted_at=timezone.now())
    text = told(project)
    # 5 + 3 + 1 less a repeated and a deleted one; one question, three, and that of the last.
    assert "The data set Fbi has 7 items from 5 source questions" in text
    assert "2 further items are excluded (deleted 1, duplicates 1)." in text
    assert (
        "6 of them have a final label. By source: import 6. Values: score-invariant 3, valid 3."
        in text
    )
    assert "1 item without a final label." in text


def test_duplicates_that_a_run_evaluated_are_told_apart_from_its_items(project: Project) -> None:
    items = make_items(project, 3)
    again = make_items(project, 1, duplicate_of=items[0])
    judged = [*((item, "detected") for item in items), (again[0], "missing")]
    make_judged(project, judged, with_duplicates=True)
    text = told(project)
    assert "It evaluated 3 items from 3 source questions (with an error (valid) 3)." in text
    assert "All of them gave a result." in text
    assert "It also evaluated 1 exact duplicate of these, which no total counts." in text


def test_nothing_is_said_of_what_is_not_there(project: Project) -> None:
    make_items(project, 2)
    text = told(project)
    for kind, name in [
        ("data", "left_out"), ("data", "unresolved"), ("people", "labels"), ("people", "share"),
        ("people", "second"), ("people", "blind"), ("people", "agreement_undefined"),
        ("figures", "rates"), ("figures", "invariant"), ("figures", "verdicts"),
        ("figures", "values"), ("figures", "holm"), ("figures", "exploratory"),
        ("figures", "d_prime"), ("figures", "seed"), ("figures", "prompts"),
    ]:  # fmt: skip
        assert not said(kind, name, text), name
    assert intervals_of(text) == set()
    assert said("people", "none", text)


def test_people_and_their_agreement_are_counted(project: Project) -> None:
    for field, value in (("overlap", 2), ("share_percent", 10), ("verify", True)):
        setattr(project, field, value)
    project.blind_first = False
    project.save()
    for _ in range(3):
        make_item(project, slots=2)
    for alias in ("ann", "bob"):
        member = make_member(project, alias=alias)
        for _ in range(3):
            say(member, take(member), "valid")
    Label.objects.filter(pk=Label.objects.order_by("pk").first().pk).update(evaluator_seen=True)
    text = told(project)
    assert "2 annotators gave 6 counted labels (planned annotators per item: 2)." in text
    assert "A random 10 % of the items" in text
    assert said("people", "second", text)
    assert not said("people", "blind", text)
    # All said the same, so nothing is left to agree on beyond chance.
    assert "the question that decides the final label (“Your choice”) is undefined: " in text
    assert "1 labels were given after an evaluator's reply" in text
    Item.objects.filter(pk=Item.objects.first().pk).update(deleted_at=timezone.now())
    text = told(project)
    assert "2 annotators gave 4 counted labels (planned annotators per item: 2)." in text
    assert not said("people", "seen", text)


def test_a_run_says_who_was_asked_how_and_when(project: Project) -> None:
    make_items(project, 3)
    endpoint = make_endpoint(
        "https://judge.invalid/v1", name="judge", model="judge-1", parameters={"temperature": 0}
    )
    run = make_run(project, endpoint, TWO_CALLS)
    running.plan_calls(run)
    answer(run, model="judge-1-0613")
    Reply.objects.update(asked_at=datetime(2026, 3, 1, 23, 30, tzinfo=UTC))
    first = Reply.objects.order_by("pk").first()
    assert first
    Reply.objects.filter(pk=first.pk).update(asked_at=datetime(2026, 2, 27, tzinfo=UTC))
    text = told(project)
    assert "Run 1 used judge (OpenAI-compatible, model judge-1) with strategy" in text
    assert f"{TWO_CALLS}, version 1 (frame single, scale 1 to 10)." in text
    assert "The provider reported the model judge-1-0613." in text
    assert 'Each request was sent with the parameters {"temperature": 0}.' in text
    assert "Replies were collected from 2026-02-27 to 2026-03-01 (UTC)." in text
    assert "Replies were parsed for a score from 1 to 10" in text
    assert "(JSON first, then markers in the text; version parse-4 of the parser)." in text
    assert "It evaluated 3 items from 3 source questions (with an error (valid) 3)." in text


def test_a_model_that_the_provider_did_not_name_is_said(project: Project) -> None:
    make_items(project, 1)
    run = make_run(project, make_endpoint("https://judge.invalid/v1"), TWO_CALLS)
    running.plan_calls(run)
    answer(run, model="")
    text = told(project)
    assert said("run", "no_model", text)
    assert said("run", "day", text)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        # What nobody set is sent all the same: the temperature is ours, a limit the protocol's.
        ({}, ['with the parameters {"temperature": 0}.']),
        (
            {"provider": "anthropic"},
            ['with the parameters {"max_tokens": 1024, "temperature": 0}.'],
        ),
        (
            {"parameters": {"temperature": None}, "json_mode": "json_object"},
            [
                "sent without parameters, so the provider's defaults applied.",
                "Provider defaults were used for temperature.",
                "by the JSON mode of the protocol (JSON object).",
            ],
        ),
        (
            {"api": "completions", "template": "[{{prompt}}]"},
            ['{"max_tokens": 1024, "temperature": 0}.', "sent as text completions"],
        ),
    ],
)
def test_what_was_sent_is_said_whoever_chose_it(
    project: Project, browser: Client, values: dict[str, Any], words: list[str]
) -> None:
    make_items(project, 1)
    run = make_run(project, make_endpoint("https://judge.invalid/v1", **values), TWO_CALLS)
    text = told(project)
    for sentence in words:
        assert sentence in text
    names = ("sent", "sent_without", "left_to_provider", "json", "template", "parameters")
    assert sum(said("run", name, text) for name in names) == len(words)
    # The run's page says the same.
    page = browser.get(f"/projects/fbi/runs/{run.number}/").content.decode()
    for name in ("temperature", "max_tokens"):
        assert (f"{name} = " in page) is (f'"{name}": ' in text)
    assert ("is not sent; the provider's default applies" in page) is said(
        "run", "left_to_provider", text
    )


def test_what_gave_no_result_is_counted_by_cause(project: Project) -> None:
    vanilla(project, [scores(9, 5), scores(9, None), scores(9, 5), scores(9, 5)])
    Resolution.objects.filter(item__key="item-3").update(current=False)
    text = told(project)
    assert "It evaluated 3 items" in text
    assert "Of these, 1 gave no result (truncated 1)." in text
    assert "1 more were evaluated, but their text or final label has changed" in text
    assert not said("run", "none_missing", text)


def test_a_run_without_gaps_says_so_and_one_that_is_not_done_too(project: Project) -> None:
    vanilla(project, [scores(9, 5)])
    make_run(project, make_endpoint("https://judge.invalid/v1"), TWO_CALLS)
    first, second = told(project).split("Run 2 ")
    assert said("run", "none_missing", first)
    assert not said("run", "pending", first)
    assert "1 are pending" in second
    assert said("run", "nothing", second)


@pytest.mark.parametrize(("votes", "name"), [(False, "repeats"), (True, "votes")])
def test_repeats_and_votes_say_how_they_count(project: Project, votes: bool, name: str) -> None:
    own = builders_decided.own(votes=votes)
    vanilla(project, [scores(9, 5, 9, 9, 9, 5)], samples=3, own=own)
    text = told(project)
    assert said("run", name, text)
    assert not said("run", {"repeats": "votes", "votes": "repeats"}[name], text)
    assert "sampled 3 times" in text


@pytest.mark.parametrize(
    ("task", "strategy", "votes", "name"),
    [
        ("error-detection", "detect-1a", False, "verdicts"),
        ("error-detection", "detect-1a", True, "votes"),
        ("rating", "likert", False, "means"),
        ("rating", "likert", True, "medians"),
    ],
)
def test_samples_of_verdicts_and_of_numbers_say_how_they_count(
    task: str, strategy: str, votes: bool, name: str
) -> None:
    project = make_project(task_type=task)
    numbers = {"naturalness": 3, "relatedness": 2, "correctness": 1}
    make_responses(project, ["error" if task == "error-detection" else "3/2/1"], **numbers)
    endpoint, own = make_endpoint("https://judge.invalid/v1"), RunOverrides(votes=votes)
    make_run(project, endpoint, strategy, samples=3, own=own)
    text = told(project)
    names = ("repeats", "votes", "verdicts", "means", "medians", "samples")
    assert [one for one in names if said("run", one, text) and one != "samples"] == [name]


def test_examples_canaries_and_runs_during_work_are_said(project: Project) -> None:
    run = vanilla(project, [scores(9, 5)])
    assert not any(
        said("run", name, told(project)) for name in ("few_shot", "canary", "while_labelling")
    )
    run.few_shot, run.occasion, run.while_labelling = [["a", "0"], ["b", "1"]], "weekly", True
    run.save()
    text = told(project)
    assert "Each prompt began with 2 example items." in text
    assert "(weekly)" in text
    assert said("run", "while_labelling", text)


def test_a_baseline_and_a_check_say_what_they_are(project: Project) -> None:
    base = vanilla(project, [scores(9, 9)])
    check = list(zip([one.item for one in base.outcomes.all()], [('{"flag": true}',)], strict=True))
    make_replied(project, "explanation-check", check, sources=[base], base=base)
    make_run(project)
    text = told(project)
    assert "It is based on the runs 1." in text
    assert "Run 3 is the offline baseline rouge-l, version 1." in text
    assert not said("run", "derived", text)


def test_runs_that_asked_nobody_say_where_they_are_from(project: Project) -> None:
    base = vanilla(project, [scores(9, 5), scores(9, 9)])
    again = make_replied(
        project, "vanilla", [(one.item, scores(9, 5)) for one in base.outcomes.all()]
    )
    Run.objects.update(kind=Run.Kind.RECORDED)
    derived.derive_run(project, strategy=make_strategy("mean"), sources=[base, again])
    text = told(project)
    assert "Run 1 uses scores recorded elsewhere (judge, model judge)" in text
    assert "Run 3 combines the runs 1, 2 with strategy mean, version 1, without calls." in text
    assert not said("run", "asked", text)
    assert not said("run", "weights", text)
    weighted, sources = make_strategy("weighted-votes"), [base, again]
    derived.derive_run(project, strategy=weighted, sources=sources, weights={1: 2, 2: 0.5})
    assert "In this vote, the runs 1, 2 had the weights 2, 0.5." in told(project)


def test_several_runs_are_tested_with_their_number_of_pairs(project: Project) -> None:
    make_items(project, 2)
    make_items(project, 1, "score-invariant")
    every = [*Item.objects.order_by("position")]
    for _ in range(3):
        make_replied(project, "vanilla", [(item, scores(9, 5)) for item in every])
    text = told(project)
    assert "Differences between the 3 runs are tested over all 3 pairs" in text
    assert "(BCa) intervals of 2,000 bootstrap samples" in text
    assert "4,194,304 points, 1,000,000 sign patterns are drawn" in text
    assert said("figures", "invariant", text)
    assert intervals_of(text) == {"wilson", "newcombe", "bootstrap", "bonett_price"}
    assert "z((detected + 0.5 w) / (errors + w))" in text
    assert "generator PCG64" in text
    assert said("figures", "prompts", text)
    assert not said("figures", "verdicts", text)


def test_two_runs_are_one_pair_that_needs_no_correction(project: Project) -> None:
    every = make_items(project, 2)
    for _ in range(2):
        make_replied(project, "vanilla", [(item, scores(9, 5)) for item in every])
    text = told(project)
    assert "Differences between the 2 runs are tested on the items that both parsed" in text
    assert "Holm" not in text


def test_detectors_say_how_a_missing_verdict_counts() -> None:
    project = make_project("found", task_type="error-detection")
    items = make_items(project, 2, "error")
    make_judged(
        project,
        [(items[0], "detected"), (items[1], "missing")],
        strategy="detect-1a",
        endpoint=make_endpoint("https://judge.invalid/v1"),
    )
    text = told(project)
    assert said("figures", "verdicts", text)
    assert not said("figures", "rates", text)
    # Precision, recall and accuracy are rates, too; J there is none.
    assert intervals_of(text) == {"wilson", "bootstrap"}
    assert not said("figures", "d_prime", text)
    assert "(with an error 2)" in text


def test_every_sentence_is_made_of_names_that_the_program_fills_in() -> None:
    names = {
        name
        for kind in methods._load_sentences().values()
        for sentence in kind.values()
        for _, name, *_ in string.Formatter().parse(sentence)
        if name is not None
    }
    assert all(name.isidentifier() for name in names)


def test_a_run_along_axes_says_which(project: Project) -> None:
    make_items(project, 1)
    chosen = {
        (): "all axes (4)",
        ("main",): "each item's own axis",
        ("task-quality",): "Task quality",
    }
    for number, (axes, words) in enumerate(chosen.items(), 1):
        run = make_run(
            project, make_endpoint("http://127.0.0.1:9"), "axis", own=RunOverrides(axes=axes)
        )
        Run.objects.filter(pk=run.pk).update(state="finished")
        text = told(project)
        assert text.count("It asked along ") == number
        assert f"It asked along {words}." in text
    assert text.count("Only the axis of an item's ability counts in figures.") == 2


def test_what_counts_as_detected_is_said_once_for_runs_with_the_same_rule(
    project: Project,
) -> None:
    items = make_items(project, 1)
    make_replied(project, "vanilla", [(items[0], scores(9, 5))])
    make_replied(project, "rubric", [(items[0], scores(9, 5))])
    make_replied(project, "pairwise", [(items[0], builders_decided.verdicts("G"))])
    make_replied(project, "reference", [(items[0], ('{"score": 10}',))])
    text = told(project)
    lower = "Detected if the perturbed answer gets a lower score than the gold answer."
    assert f"How items count in runs 1, 2 (strategy vanilla, rubric): {lower}" in text
    assert text.count(lower) == 1
    assert "Detected if the gold answer is chosen in both orders." in text
    assert "Detected if the score is below 10, the top of the scale." in text


def test_of_a_run_with_supplements_the_first_parameters_are_not_said_of_each_request(
    project: Project,
) -> None:
    make_items(project, 2)
    endpoint = make_endpoint("https://judge.invalid/v1", parameters={"max_tokens": 40})
    run = make_run(project, endpoint, TWO_CALLS)
    running.plan_calls(run)
    answer(run, "no score", finish="length")
    running.finish_if_done(run)
    assert "Each request was sent with" in told(project)
    supplements.ask_again(run, None, {"max_tokens": 4000})
    text = told(project)
    assert "Each request, except when items were asked again, was sent with the" in text
    assert (
        "The requests of 2 items without a usable reply were sent again with these parameters "
        'changed: {"max' in text
    )
    assert not said("run", "sent_without", text)


def test_a_random_sample_is_said_with_its_size_and_seed_also_of_runs_over_its_items(
    project: Project,
) -> None:
    make_items(project, 5)
    whole = make_run(project)
    assert not said("run", "sample", told(project))
    first = make_run(project, limit=3, seed=123456)
    make_run(project, same_as=first, seed=7)
    running.clone_run(first, None)
    running.clone_run(first, None, as_pinned=True)
    make_run(project, same_as=first, limit=2, seed=9)
    make_run(project, items={one.item_id for one in whole.outcomes.all()[:3]})
    Outcome.objects.update(result="detected")
    runs = told(project).split("\n\n")[2:]
    drawn = "Its items are a random sample: 3 of 5, drawn with the seed 123456."
    assert [drawn in text for text in runs[:7]] == [False, True, True, True, True, False, False]
    assert "a random sample: 2 of 3, drawn with the seed 9." in runs[5]
    assert [said("run", "part", text) for text in runs[:7]] == [False] * 6 + [True]
    # What is only told of a run is no part of its digest.
    assert first.digest == pinning.compute_digest(first)


def test_rates_are_counted_as_the_pages_count_them(project: Project) -> None:
    vanilla(project, [scores(9, 5)])
    text = told(project)
    assert "The detection rate is detected / (detected + undetected)" in text
    assert "the undetected rate is 1 minus the detection rate" in text


def test_figures_over_more_or_fewer_questions_than_were_simulated_are_named(
    project: Project,
) -> None:
    errors, calm = make_items(project, 12), make_items(project, 2, "score-invariant")
    calm += make_items(project, 2, "score-invariant", cluster="one question")
    for _ in range(2):
        replies = [scores(9, 5)] * 12 + [scores(9, 9)] * 4
        make_replied(project, "vanilla", zip([*errors, *calm], replies, strict=True))
    text = told(project)
    outside = "the coverage of such intervals was not measured: "
    assert f"{outside}false-alarm rates over 3 questions (runs 1, 2)." in text
    assert f"{outside}J over 3 questions (runs 1, 2)." in text
    assert f"{outside}differences of false alarms over 3 questions (1 pair of runs)." in text
    # Detection and its difference are over 12 questions, d′ over 15.
    assert text.count(outside) == 3


def test_many_questions_are_outside_what_was_simulated_too() -> None:
    bases = [
        methods._Basis("wilson", "detection rates", (1,), 171, 171),
        methods._Basis("wilson", "detection rates", (2,), 1_170, 1_170),
        methods._Basis("wilson", "detection rates", (3,), 170, 170),
        methods._Basis("wilson", "detection rates", (4,), 4, 4),
        # Over one question there is no interval.
        methods._Basis("wilson", "detection rates", (5,), 1, 1),
    ]
    assert methods._find_outside("wilson", bases, 5, 170) == [
        "detection rates over 171 to 1,170 questions (runs 1, 2)",
        "detection rates over 4 questions (run 4)",
    ]


def test_no_name_of_the_program_stands_for_a_word_of_the_field(project: Project) -> None:
    cut = (builders_decided.verdicts("G")[0], builders_decided.CUT)
    make_replied(project, "pairwise", zip(make_items(project, 1), [cut], strict=True))
    text = told(project)
    assert "1 gave no result (no answer in one of the two orders 1)." in text
    for name in ("one_order", "both-good+", "explained", "readiness"):
        assert name not in text, name


def test_the_letters_say_what_they_are_of(project: Project) -> None:
    items = [*make_items(project, 1), *make_items(project, 1, "score-invariant")]
    for _ in range(2):
        make_replied(project, "vanilla", [(items[0], scores(9, 5))])
    assert said("figures", "letters", told(project))
    assert not said("figures", "letters_j", told(project))
    make_replied(project, "vanilla", [(item, scores(9, 5)) for item in items])
    assert said("figures", "letters_j", told(project))


def test_the_command_page_file_and_api_say_the_same(
    project: Project, browser: Client, program: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    project.name = "A & B_1"
    project.save()
    vanilla(project, [scores(9, 5)])
    call_command("results", "methods", project="fbi")
    printed = capsys.readouterr().out
    assert browser.get("/projects/fbi/results/methods.txt").content.decode() == printed
    answered = program.get("/api/v1/projects/fbi/methods/").json()
    assert answered["text"] == printed
    call_command("results", "methods", project="fbi", format="latex")
    latex = capsys.readouterr().out
    assert (
        answered["latex"]
        == latex
        == browser.get("/projects/fbi/results/methods.tex").content.decode()
    )
    assert latex.startswith(r"% In the preamble: \usepackage[T1]{fontenc}")
    assert r"A \& B\_1" in latex
    assert r"95 \%" in latex
    page = browser.get("/projects/fbi/results/methods/?run=1").content.decode()
    assert "A &amp; B_1 has 1 item " in page


@pytest.fixture
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """One outcome is as many as a million."""
    monkeypatch.setattr(figures.TableRequest, "is_small", lambda asked: False)


def made(browser: Client) -> str:
    """The page once workers have counted what it waits for."""
    first = browser.get("/projects/fbi/results/methods/").content.decode()
    for figure in figures.list_due(timezone.now()):
        assert figures.run_job(figure)
    if not figure_waits(first):
        return first
    return browser.get("/projects/fbi/results/methods/").content.decode()


def figure_waits(page: str) -> bool:
    return 'aria-busy="true"' in page


@pytest.mark.usefixtures("nothing_is_small")
def test_a_worker_counts_for_the_page_which_shows_the_progress(
    project: Project, browser: Client
) -> None:
    vanilla(project, [scores(9, 5), scores(9, 9)])
    first = browser.get("/projects/fbi/results/methods/").content.decode()
    assert figure_waits(first)
    assert "Table methods_of_data: waiting for a worker." in first
    assert "Fbi has" not in first
    part = browser.get("/projects/fbi/results/methods/", headers={"HX-Request": "true"})
    assert part.content.decode().lstrip().startswith('<section id="methods-text"')
    page = made(browser)
    assert "The data set Fbi has 2 items" in page
    assert "Run 1 " in page
    assert told(project).splitlines()[0][:60] in page


@pytest.mark.usefixtures("nothing_is_small")
def test_the_api_says_how_far_a_worker_is_until_it_has_counted(
    project: Project, program: Client
) -> None:
    vanilla(project, [scores(9, 5), scores(9, 9)])
    for table in ("methods_of_data", "methods_of_runs"):
        waits = program.get("/api/v1/projects/fbi/methods/")
        assert (waits.status_code, waits["Retry-After"]) == (202, "1")
        assert (waits.json()["table"], waits.json()["failure"]) == (table, "")
        assert figures.run_job(figures.list_due(timezone.now())[0])
    answered = program.get("/api/v1/projects/fbi/methods/")
    assert answered.status_code == 200
    assert answered.json()["text"] == told(project)


@pytest.mark.usefixtures("nothing_is_small")
def test_once_stored_no_item_and_no_outcome_is_counted(project: Project, browser: Client) -> None:
    vanilla(project, [scores(9, 5), scores(9, 9)])
    made(browser)
    with CaptureQueriesContext(connection) as seen:
        page = browser.get("/projects/fbi/results/methods/").content.decode()
    assert "has 2 items" in page
    read = [query["sql"] for query in seen.captured_queries]
    counted = ('FROM "judging_outcome"', 'FROM "annotation_item"')
    assert not [sql for sql in read if any(table in sql for table in counted)]
    assert len(read) <= 14


@pytest.mark.usefixtures("nothing_is_small")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda project: make_items(project, 1), "has 2 items"),
        (lambda project: Project.objects.update(name="Other"), "The data set Other"),
        (lambda project: Outcome.objects.update(result="missing", cause="refused"), "refused 1"),
        (lambda project: vanilla(project, [scores(9, 9)]), "Run 2 "),
    ],
)
def test_the_text_follows_whatever_changes(
    project: Project, browser: Client, change: Any, words: str
) -> None:
    vanilla(project, [scores(9, 5)])
    assert words not in made(browser)
    change(project)
    assert words in made(browser)


def test_another_sentence_is_written_anew() -> None:
    assert methods.SENTENCES in cache.code_files(methods.METHODS_OF_RUNS.module)


def test_what_is_not_there_is_not_found(project: Project, browser: Client, program: Client) -> None:
    assert browser.get("/projects/fbi/results/methods/?run=7").status_code == 404
    assert browser.get("/projects/fbi/results/methods.pdf").status_code == 404
    assert program.get("/api/v1/projects/fbi/methods/?run=x").status_code == 404
    with pytest.raises(CommandError, match="has no format csv"):
        call_command("results", "methods", project="fbi", format="csv")
    with pytest.raises(CommandError, match="has no format text"):
        call_command("results", "undetected", project="fbi", format="text")
    with pytest.raises(CommandError, match="Give a table"):
        call_command("results", "undetected")


def test_one_is_no_plural() -> None:
    said = methods.format_sentence("people", "labels", people=1, labels=1_000, overlap="1")
    assert said == "1 annotator gave 1,000 counted labels (planned annotators per item: 1)."
    said = methods.format_sentence(
        "data", "items", project="P 1", items=2, clusters=1, task="t", version=1
    )
    assert said.startswith("The data set P 1 has 2 items from 1 source question (")
