"""Import a generator run's replies as items; a worker does this for the page, the API and the
command."""

from collections.abc import Callable
from dataclasses import dataclass

from django.db.models import QuerySet

from annotation.errors import FieldError
from annotation.generation import generated_items
from annotation.generation.generated_items import GenerationResult
from annotation.generation.release import ReleasePolicy
from annotation.jobs import job_queue
from annotation.models import Job, Membership, Project
from annotation.projects import encrypted_archives
from judging.errors import Refused
from judging.generation import rows
from judging.models import Run

KIND = "bring-in"


@dataclass(frozen=True)
class BringInRequest:
    """A run whose replies are to become items, the target project, and the release policy."""

    run: Run
    target: Project
    vetting: ReleasePolicy


def check(wish: BringInRequest) -> None:
    """Raise `Refused` if the run's replies cannot be imported into the project or are not complete
    yet, and `FieldError` for an invalid release policy."""
    rows.check(wish.run, wish.target)
    if problem := rows.explain_unfinished(wish.run):
        raise Refused(problem)
    if wish.vetting.accept and not rows.can_skip_review(wish.run):
        raise FieldError("Only score-invariant items can be accepted without review.", "accept")
    wish.vetting.check()


def enqueue(wish: BringInRequest, member: Membership | None) -> Job:
    """Have the next worker import a run's replies. Raises the same errors as `check`."""
    check(wish)
    return job_queue.enqueue(
        wish.run.project,
        member,
        KIND,
        run=wish.run.number,
        into=wish.target.slug,
        **wish.vetting.facts(),
    )


def list_jobs(run: Run) -> QuerySet[Job]:
    """The imports of a run's replies, latest first."""
    return job_queue.list_jobs(run.project, KIND).filter(result__run=run.number)


def run_job(job_id: int, *, stopped: Callable[[], bool] = lambda: False) -> bool:
    """Run a job unless another worker is running it; return True if it was run. If `stopped` ends
    the job early, the next worker runs it again; items already stored stay unchanged."""
    return job_queue.run_job_command(job_id, KIND, "bring_in", "brought", stopped)


def load_request(job: Job) -> BringInRequest:
    """Load the import request that is stored in a job."""
    said = job.result
    run = Run.objects.in_project(job.project).for_page().get(number=said["run"])
    target = Project.objects.select_related("task_type").get(slug=said["into"])
    return BringInRequest(run, target, ReleasePolicy.from_values(said))


def bring_in_replies(wish: BringInRequest, by: Membership | None) -> GenerationResult:
    """Import a run's replies while the caller waits.

    Raises the same errors as `check`, and `Refused` if the person who requested the import has lost
    the right to do so while the job waited. If the run's project is sealed, the target project is
    sealed too.
    """
    check(wish)
    if by and not can_bring_in(by, wish.run.project, wish.target):
        raise Refused(
            f"{by.alias} is no longer lead of both {wish.run.project.slug} and {wish.target.slug}. "
            "Ask a lead of both projects to import the items."
        )
    member = _find_membership(wish.target, by) if by else None
    if wish.run.project.sealed and not wish.target.sealed:
        encrypted_archives.seal_project(wish.target, member.pk if member else None)
    if rows.fills_own_items(wish.run, wish.target):
        return generated_items.store_texts(
            wish.target, rows.build_answers(wish.run), wish.vetting, member=member
        )
    return generated_items.store_items(
        wish.target, rows.build_rows(wish.run, wish.target), wish.vetting, member=member
    )


def can_bring_in(by: Membership, *projects: Project) -> bool:
    """True if the member's account leads all of these projects, and none of the projects is
    archived."""
    if by.account is None:
        return False
    led = Project.objects.led_by(by.account)
    return {one.pk for one in projects} <= set(led.values_list("pk", flat=True))


def can_rerun(job: Job, by: Membership) -> bool:
    """True if the member may rerun a job that somebody else requested."""
    target = Project.objects.filter(slug=job.result["into"]).first()
    return target is not None and can_bring_in(by, target)


def _find_membership(target: Project, by: Membership) -> Membership | None:
    """The membership of the same person in the target project; None if the person is not a
    member."""
    if by.project_id == target.pk:
        return by
    return Membership.objects.in_project(target).filter(account=by.account_id or 0).first()
