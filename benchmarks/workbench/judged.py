"""Create runs over any number of items within minutes: the database generates the outcomes.

The items have one to four errors, and two texts of some 100 words, which the figures about the data
set count. A cluster has 3.6 items on average, as in study 000; a twelfth of the items is
score-invariant. One reply in fifty is missing. Each run has its own detection rate, and some
categories are harder than others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection, models
from django.db.models import NOT_PROVIDED

from annotation import importing
from annotation.items.taxonomy import load_shipped
from annotation.models import (
    Account,
    ApiToken,
    Item,
    Membership,
    Project,
    Resolution,
    Revision,
    Role,
)
from benchmarks.workbench import filling
from benchmarks.workbench.filling import numbers, tidy, unchecked
from judging.models import Endpoint, Outcome, Run
from judging.runs import pinning, selection

SLUG = "bench"
SI = "score-invariant"
PERTURBED, DETECTED, RATED = "perturbed", "detected", "rated"
# The strategies that runs use in turn, by kind of item: frames as in study 000, the four prompts of
# study 001, ratings as in study 003.
STRATEGIES = {
    PERTURBED: ("vanilla", "reference", "pairwise"),
    DETECTED: ("detect-1a", "detect-1b", "detect-2a", "detect-2b"),
    RATED: ("likert", "likert-no-gold"),
}
TASK_TYPES = {PERTURBED: "perturbation-vetting", DETECTED: "error-detection", RATED: "rating"}
# The lengths of the texts of an item, in characters.
TEXTS = {"prompt": 150, "gold_answer": 600}
METRICS = ("naturalness", "relatedness", "correctness")
MISSING = "s.n % 50 = 7"
INVARIANT = "s.n % 12 = 0"
CLUSTER = "'cluster-' || (s.n * 10 / 36)"


@dataclass(frozen=True)
class Filled:
    """The project, and an API key of one of its researchers."""

    project: Project
    key: str


def fill(items: int, runs: int, kind: str = PERTURBED) -> Filled:
    """Create a project with this many items, all resolved, and with this many finished runs over
    all items.
    """
    project = importing.create_project(SLUG, task_type=TASK_TYPES[kind])
    account = Account.objects.create(username="researcher")
    Membership.objects.create(
        project=project, account=account, alias="researcher", role=Role.RESEARCHER
    )
    with unchecked(Item, Revision, Resolution, Outcome):
        _fill_items(project, items, kind)
        for number in range(runs):
            strategy = STRATEGIES[kind][number % len(STRATEGIES[kind])]
            _fill_outcomes(_run(project, number, strategy), number, items, kind)
    tidy()
    return Filled(project, ApiToken.issue(account, "bench")[1])


def _fill_items(project: Project, items: int, kind: str) -> None:
    named = {"id": "s.n", "project_id": str(project.pk), "key": "'item-' || s.n"}
    task = _json("'{\"task\": \"task ' || (s.n % 7) || '\"}'")
    dosed = {"position": "s.n", "fields": task, "dose": "1 + s.n % 4"}
    _insert(Item, items, {**named, **_of_item(kind), **dosed})
    revision = {"id": "s.n", "item_id": "s.n", "number": "1", "texts": _json(_texts())}
    _insert(Revision, items, {**revision, "digest": "''"})
    held = {"id": "s.n", "item_id": "s.n", "revision_id": "s.n", "value": _truth(kind)}
    if kind == RATED:
        held["values"] = _json(_ratings("s.n / 3"))
    _insert(Resolution, items, {**held, "rule": "'bench'", "source": "'imported'"})


def _fill_outcomes(run: Run, number: int, items: int, kind: str) -> None:
    # Pseudo-random and the same on every database: 0 to 99.
    chance = f"(s.n % 100 * {7919 + 2 * number} + s.n / 97 + {number} * 31) % 100"
    detects = f"{chance} < CASE WHEN {INVARIANT} THEN 12 ELSE {40 + 3 * number} + s.n % 5 * 4 END"
    result = f"CASE WHEN {detects} THEN 'detected' ELSE 'undetected' END"
    detail, said = "''", "'{}'"
    if kind == PERTURBED:
        detail, said = _said(run.strategy.slug, detects, chance)
    elif kind == RATED:
        result, said = "'scored'", _ratings(f"s.n / 3 + {chance} / 70")
    of_item = {name: sql for name, sql in _of_item(kind).items() if name != "origin"}
    decided = {
        "result": f"CASE WHEN {MISSING} THEN 'missing' ELSE {result} END",
        "detail": f"CASE WHEN {MISSING} THEN '' ELSE {detail} END",
        "cause": f"CASE WHEN {MISSING} THEN 'truncated' ELSE '' END",
        "values": _json(f"CASE WHEN {MISSING} THEN '{{}}' ELSE {said} END"),
    }
    places = {"id": f"{number * items} + s.n", "item_id": "s.n", "revision_id": "s.n"}
    is_invariant = INVARIANT if kind == PERTURBED else "s.n < 0"
    invariant = f"CASE WHEN {is_invariant} THEN {_true('true')} ELSE {_true('false')} END"
    pinned = {"run_id": str(run.pk), "truth": _truth(kind), "invariant": invariant}
    _insert(Outcome, items, {**places, **pinned, **of_item, **decided})


def _texts() -> str:
    """Return SQL for the texts of an item: pieces of the same words, from different places."""
    words = " ".join(filling.WORDS.split() * 3)
    texts = [f"\"{name}\": \"' || substr('{words}', 1 + s.n % 500, {length}) || '\""
             for name, length in TEXTS.items()]  # fmt: skip
    return f"'{{{', '.join(texts)}}}'"


def _ratings(number: str) -> str:
    """Return SQL for the numbers of the metrics, which are 1 to 3 in turn."""
    said = [
        f"\"{metric}\": ' || (({number} + {at}) % 3 + 1) || '" for at, metric in enumerate(METRICS)
    ]
    return f"'{{{', '.join(said)}}}'"


def _said(strategy: str, detects: str, chance: str) -> tuple[str, str]:
    """Return SQL for the detail and the values of a parsed outcome."""
    if strategy == "pairwise":
        effect = '\'{"order_effect": "first_twice"}\''
        mixed = f"CASE {chance} % 3 WHEN 0 THEN 'mixed' WHEN 1 THEN 'P' ELSE 'both_good' END"
        return f"CASE WHEN {detects} THEN 'G' ELSE {mixed} END", effect
    if strategy == "reference":
        detail = f"CASE WHEN {detects} THEN 'top-1' ELSE 'top' END"
        return (
            detail,
            f"CASE WHEN {detects} THEN '{{\"perturbed\": 9}}' ELSE '{{\"perturbed\": 10}}' END",
        )
    lower, equal = '\'{"gold": 9, "perturbed": 6}\'', '\'{"gold": 9, "perturbed": 9}\''
    return (
        f"CASE WHEN {detects} THEN 'lower' ELSE 'equal' END",
        f"CASE WHEN {detects} THEN {lower} ELSE {equal} END",
    )


def _run(project: Project, number: int, strategy: str) -> Run:
    endpoint = Endpoint.objects.create(
        name=f"judge-{number}",
        provider="openai_compatible",
        model=f"judge-{number}",
        address="https://judge.invalid/v1",
    )
    version = selection.get_strategy_version(strategy)
    run = pinning.draft_run(project, version, endpoint, seed=number, state=Run.State.FINISHED)
    return pinning.store_run(run, pinning.DrawnItems([]))


def _of_item(kind: str) -> dict[str, str]:
    """The columns that outcomes copy from items, as SQL of the item's number `s.n`."""
    if kind != PERTURBED:
        return {"cluster": CLUSTER}
    known = [one for one in load_shipped() if one.ability != SI]
    category = _chosen([one.slug for one in known])
    ability = _chosen([one.ability for one in known])
    return {
        "category": f"CASE WHEN {INVARIANT} THEN '{SI}' ELSE {category} END",
        "ability": f"CASE WHEN {INVARIANT} THEN '{SI}' ELSE {ability} END",
        "source_ability": ability,
        "cluster": CLUSTER,
        "origin": f"CASE WHEN {INVARIANT} THEN 'paraphrase' ELSE '' END",
    }


def _truth(kind: str) -> str:
    """Return SQL for the final label; rated items have no final label."""
    if kind == PERTURBED:
        return f"CASE WHEN {INVARIANT} THEN '{SI}' ELSE 'valid' END"
    return "CASE WHEN s.n % 3 = 0 THEN 'no_error' ELSE 'error' END" if kind == DETECTED else "''"


def _chosen(values: Sequence[str]) -> str:
    cases = " ".join(f"WHEN {at} THEN '{value}'" for at, value in enumerate(values))
    return f"CASE s.n % {len(values)} {cases} END"


def _json(text: str) -> str:
    return f"CAST({text} AS jsonb)" if connection.vendor == "postgresql" else f"({text})"


def _true(word: str) -> str:
    return word if connection.vendor == "postgresql" else str(int(word == "true"))


def _insert(model: type[models.Model], rows: int, given: Mapping[str, str]) -> None:
    """Insert one row for each number `s.n`; other columns get the model's defaults."""
    columns = dict(given)
    others: list[Any] = []
    for field in model._meta.concrete_fields:
        if field.column not in given and (field.default is not NOT_PROVIDED or not field.null):
            columns[field.column] = "%s"
            others.append(field.get_db_prep_save(field.get_default(), connection))
    names = ", ".join(map(connection.ops.quote_name, columns))
    table = connection.ops.quote_name(model._meta.db_table)
    values = ", ".join(sql if sql == "%s" else sql.replace("%", "%%") for sql in columns.values())
    with connection.cursor() as cursor:
        cursor.execute(
            f"{numbers(1, rows)} INSERT INTO {table} ({names}) SELECT {values} FROM s", others
        )
