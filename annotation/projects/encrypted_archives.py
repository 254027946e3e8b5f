"""Projects whose texts came in an encrypted archive, which their authors made so that no model is
trained on them: what leaves them is encrypted as well, unless a site admin says otherwise.

That holds of files: every export, and archives of results with texts or replies. Pages and the
API show texts to members, who have to read them.
"""

from annotation.db import transactions
from annotation.errors import FieldError
from annotation.models import Event, Project

SEALED_MESSAGE = (
    "This project was imported from an encrypted archive, so its texts can only be exported "
    "encrypted. {} Or ask a site admin to remove the seal."
)


def seal_project(project: Project, member_id: int | None = None) -> None:
    """Have files of a project encrypted from now on; nothing new for one that is sealed."""
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
    """Raises FieldError for a file in which texts of a sealed project would lie open; it says what
    to do `instead`."""
    if project.sealed:
        raise FieldError(SEALED_MESSAGE.format(instead), field)
