"""Sealed projects. Their texts come from an encrypted archive whose authors do not want models to
be trained on them. Files with these texts are encrypted too, until a site admin removes the seal.

The seal applies to files: every export, and archives of results with texts or replies. Pages and
the API show the texts to members, who have to read them.
"""

from annotation.db import transactions
from annotation.errors import FieldError
from annotation.models import Event, Project

SEALED_MESSAGE = (
    "This project was imported from an encrypted archive, so you can only export its texts "
    "encrypted. {} Or ask a site admin to remove the seal."
)


def seal_project(project: Project, member_id: int | None = None) -> None:
    """Seal a project, so that its files are encrypted from now on; does nothing if it is sealed
    already."""
    with transactions.transact():
        changed = Project.objects.filter(pk=project.pk, sealed=False).update(sealed=True)
        if changed:
            Event.record(
                "settings",
                project.slug,
                project_id=project.pk,
                member_id=member_id,
                old={"sealed": False},
                new={"sealed": True},
            )
    project.sealed = True


def check_not_sealed(project: Project, instead: str, field: str = "") -> None:
    """Refuse to write unencrypted texts of a sealed project: raise `FieldError`; `instead` says
    what to do. The project may have been sealed since it was read."""
    if Project.objects.filter(pk=project.pk, sealed=True).exists():
        raise FieldError(SEALED_MESSAGE.format(instead), field)
