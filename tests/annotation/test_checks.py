from dataclasses import replace

import pytest
from django.core.checks import run_checks

from annotation import checks, tasktypes
from annotation.items import taxonomy

DEFINITION = tasktypes.load_definitions()["perturbation-vetting"]
TASK = tasktypes.parse_definition(DEFINITION)
assert TASK.blind is not None
BLIND = TASK.blind


def test_the_files_of_the_project_pass_and_are_looked_at_by_every_command() -> None:
    assert run_checks() == []
    assert checks.find_problems(TASK) == []


@pytest.mark.parametrize(
    "change, said",
    [
        ({"diff": ("gold", "claim")}, "compares claim"),
        ({"correctable": "answer"}, "corrects 'answer'"),
        ({"fields": ()}, "asks nothing"),
        ({"blind": replace(BLIND, fields=())}, "asks nothing; add [[blind.fields]]"),
        ({"blind": replace(BLIND, shows=("answer",))}, "answer: not a text of the item"),
    ],
)
def test_a_task_type_that_does_not_fit_together_is_named(change: dict, said: str) -> None:
    [problem] = checks.find_problems(replace(TASK, **change))
    assert said in problem


def test_a_broken_taxonomy_is_an_error_of_the_check_and_not_of_the_first_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken() -> None:
        raise taxonomy.TaxonomyError("Two entries have the same slug.")

    monkeypatch.setattr(taxonomy, "load_shipped", broken)
    assert "annotation.E001" in [message.id for message in run_checks()]


def test_a_broken_task_type_is_an_error_of_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = {"odd": {**DEFINITION, "correctable": "nothing"}}
    monkeypatch.setattr(tasktypes, "load_definitions", lambda: odd)
    assert [message.id for message in checks.check_task_types()] == ["annotation.E003"]
