"""Differences are made once and read again, with what can be said of the two texts."""

import pytest

from annotation.items.diffing import difference, stored
from annotation.models import Diff, Project
from tests.builders import make_item, make_project

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return make_project()


def test_a_difference_is_made_once_and_then_read(project: Project) -> None:
    revision = make_item(project).revision()
    texts = revision.texts["gold"], revision.texts["perturbed"]
    for _ in range(2):
        found = stored.load_difference(revision)
        assert found is not None
        assert found == difference.compare(*texts)
        assert Diff.objects.filter(revision=revision).count() == 1
    kept = difference.compare("one", "other")
    Diff.objects.update(segments=difference.to_json(kept))
    found = stored.load_difference(revision)
    assert found is not None
    assert found == kept


def test_a_moved_passage_counts_as_one_change(project: Project) -> None:
    first, second = "The first step takes long.\n", "The second one is very quick and easy.\n"
    texts = {"gold": f"{first}{second}Two.", "perturbed": f"{second}{first}Six."}
    stored.load_difference(make_item(project, texts=texts).revision())
    assert stored.stored_diffs(project).get().changes == 2


def test_what_lacks_a_text_has_no_difference(project: Project) -> None:
    item = make_item(project)
    revision = item.revision()
    revision.texts = {"prompt": "Why?", "gold": "So."}
    assert stored.load_difference(revision) is None
    assert stored.load_json(revision) is None


@pytest.mark.parametrize(
    "perturbed, identical, white_space_only",
    [("One two.", True, False), ("One  two.", False, True), ("One three.", False, False)],
)
def test_what_can_be_said_of_two_texts(
    project: Project, perturbed: str, identical: bool, white_space_only: bool
) -> None:
    item = make_item(project, texts={"gold": "One two.", "perturbed": perturbed})
    for _ in range(2):
        found = stored.load_json(item.revision())
        assert found is not None
        assert (found["identical"], found["white_space_only"]) == (identical, white_space_only)
        assert (found["edit_size"] == 0) == identical
    assert Diff.objects.count() == 1
