"""The second project of the demo: everything in it is made by rule, so that every page of results
has something to show.

The questions are the same few with other names and numbers, the errors come from the perturbers,
the labels from two raters who nearly always agree, and the replies from planted evaluators, one of
which is blind in a category. No language model is asked, and the project says so.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import product

from annotation import importing, tasktypes
from annotation.db import transactions
from annotation.generation import perturbers
from annotation.generation.perturbers import PerturbRequest
from annotation.generation.release import ReleasePolicy
from annotation.importing import label_rows, labels
from annotation.models import Item, Project
from formats.rows import Row
from judging import demo
from judging.models import Run
from judging.runs.recorded import planted
from perturbers.registry import PERTURBERS

SLUG, NAME = "planted", "Planted example"
DESCRIPTION = (
    "Everything here is made by rule: questions, errors, labels, and the replies of the evaluators "
    "named “planted”, which are drawn at random with known rates. One of them is blind in a "
    "category. No language model was asked, so the figures say nothing about any."
)
RUN_NOTE = "Planted: replies drawn at random with known rates. No language model was asked."
NAMES = ("Amina", "Bela", "Chloe", "Dmitri", "Esra", "Farid", "Greta", "Hugo", "Ines", "Jonas")
# The ability that a prompt asks for, the prompt, and its answer, about two people and three
# numbers; `{ab}` and `{abc}` are products.
SETTINGS = (
    (
        "reasoning",
        "{one} sells {a} crates of pears. Each crate holds {b} kg, and one kilogram costs {c} "
        "euros. How much money is that? Show your steps.",
        "**Steps**\n\n1. Each crate holds {b} kg, so {a} crates hold {a} × {b} = {ab} kg.\n2. One "
        "kilogram costs {c} euros, so all of it costs {ab} × {c} = {abc} euros.\n\n{two} checks "
        "the scales first. So {one} takes in {abc} euros.",
    ),
    (
        "reasoning",
        "{one} rides {a} km every day, {b} days a week, for {c} weeks. How far is that in all? "
        "Show your steps.",
        "**Steps**\n\n1. In one week, {one} rides {a} × {b} = {ab} km.\n2. In {c} weeks that makes "
        "{ab} × {c} = {abc} km.\n\n{two} rides along on the first day. So {one} rides {abc} km in "
        "all.",
    ),
    (
        "long-form",
        "Write a short report about a day at the pump of {one}, where {two} helps. The pump moves "
        "{a} litres a minute.",
        "{one} opened the valve before sunrise, while the village was still asleep. The old pump "
        "moved {a} litres every minute and hardly made a sound. {two} brought bread and watched "
        "the needle of the gauge. Around noon the pressure dropped, because a leaf was stuck in "
        "the filter. Together they cleaned it within {b} minutes. So the gardens had water again "
        "long before the evening.",
    ),
    (
        "factual",
        "A note says: “{one} keeps {a} hives on the hill and {b} in the valley. {two} is the "
        "beekeeper of the next village.” Where does {one} keep bees, and who is {two}?",
        "{one} keeps {a} hives on the hill. Another {b} hives stand in the valley. {two} is the "
        "beekeeper of the next village. So the bees of {one} live in both places.",
    ),
    (
        "instruction-following",
        "Tell {one} in a numbered list of four steps how {two} lays {a} rows of tiles. End with "
        "one sentence on how long it takes.",
        "1. Clean the floor and let it dry.\n2. Mark the middle of the room with a line.\n3. Lay "
        "{a} rows of tiles from the middle outwards.\n4. Fill the joints on the next day.\n\n"
        "So {two} needs {b} hours for it.",
    ),
)
# Without these two, most items are calculations, and an evaluator is blind in the category with the
# most items.
PERTURB = PerturbRequest(
    perturbers=tuple(sorted(PERTURBERS.keys() - {"copying", "units"})), seed="planted", doses=(1, 2)
)
# With this seed, no category but the one that was planted looks like a blind spot by chance.
PLANTED_SEED = 2
# Of each category, this many percent get labels of two raters; the rest is accepted.
LABELLED_PERCENT = 15
RATERS = ("ada", "ben")
# The second rater says otherwise of one item in so many.
DISAGREES_EVERY = 12


def make_project(now: datetime) -> Project:
    """Return the project; what is missing of it is made first."""
    project = Project.objects.filter(slug=SLUG).first()
    if project and demo.is_made(project):
        return project
    with transactions.transact():
        project = project or importing.create_audited_project(
            SLUG, name=NAME, description=DESCRIPTION, overlap=len(RATERS)
        )
    task = tasktypes.load_task_type(project)
    questions = importing.parse_items(_questions(), task)
    imported = importing.store_items(project, questions, accept=True)
    assert not imported.bad, imported.bad
    perturbers.make_items(project, PERTURB, ReleasePolicy(share=LABELLED_PERCENT, accept=True))
    said = label_rows.parse_labels(_labels(project), task, now=now)
    labelled = labels.store_labels(project, said, now=now)
    assert not labelled.bad, labelled.bad
    demo.run_baselines(project)
    for one in planted.plant(project, seed=PLANTED_SEED, now=now, while_labelling=True):
        Run.objects.filter(pk=one.run.pk, note="").update(note=RUN_NOTE)
    demo.record_made(project)
    return project


def _questions() -> Iterator[Row]:
    """A score-invariant item of each question: “So” at the end becomes “Therefore”."""
    for number, (person, (ability, prompt, gold)) in enumerate(
        product(range(len(NAMES)), SETTINGS)
    ):
        a, b, c = 6 + number % 7, 3 + number % 5, 2 + number % 4
        said = {
            "one": NAMES[person],
            "two": NAMES[person - 1],
            "a": a,
            "b": b,
            "c": c,
            "ab": a * b,
            "abc": a * b * c,
        }
        answer = gold.format(**said)
        yield Row(
            SLUG,
            number + 1,
            {
                "key": f"reworded-{number + 1}",
                "category": "score-invariant",
                "source_ability": ability,
                "cluster": f"question-{number + 1}",
                "prompt": prompt.format(**said),
                "gold": answer,
                "perturbed": answer.replace(" So ", " Therefore, "),
                "claim": "Another word with the same meaning.",
            },
        )


def _labels(project: Project) -> Iterator[Row]:
    waiting = Item.objects.in_project(project).filter(slots__isnull=False).order_by("position")
    line, day_before = 0, project.created_at - timedelta(days=1)
    for number, key in enumerate(waiting.values_list("key", flat=True).distinct()):
        for rater in RATERS:
            line += 1
            differs = rater == RATERS[-1] and number % DISAGREES_EVERY == 0
            said = {
                "item": key,
                "rater": rater,
                "time": (day_before + timedelta(seconds=line)).isoformat(),
                "choice": "invalid" if differs else "valid",
            }
            yield Row(SLUG, line, said)
