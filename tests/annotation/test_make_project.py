"""A project without items, for what is made from elsewhere."""

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Membership, Project, Role
from tests.builders import make_member, make_project

pytestmark = pytest.mark.django_db


def test_a_project_is_made_before_there_are_items(capsys: pytest.CaptureFixture[str]) -> None:
    person = make_member(make_project("other"), alias="ada").account
    call_command("make_project", "study", task_type="error-detection", lead=person.username)
    project = Project.objects.get(slug="study")
    assert project.task_type.slug == "error-detection"
    assert not project.items.exists()
    (lead,) = Membership.objects.in_project(project)
    assert (lead.account, lead.role) == (person, Role.LEAD)
    assert {event.kind for event in project.events.all()} == {"project", "member"}
    assert "Created Study at /projects/study/." in capsys.readouterr().out


def test_a_project_without_a_lead_says_who_lets_people_in(
    capsys: pytest.CaptureFixture[str],
) -> None:
    call_command("make_project", "study", name="The study")
    assert Project.objects.get().name == "The study"
    assert "has no lead yet" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("slug", "lead", "says"),
    [
        ("two words", None, "Use letters, digits"),
        ("other", None, "'other' already exists"),
        ("study", "nobody", "There is no user 'nobody'"),
    ],
)
def test_what_cannot_be_a_project_makes_none(slug: str, lead: str | None, says: str) -> None:
    make_project("other")
    with pytest.raises(CommandError, match=says):
        call_command("make_project", slug, lead=lead)
    assert Project.objects.count() == 1
