"""Items of generator runs: asked for in the browser, the API or by command, made by a worker."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

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
    """Which run's replies are to become items, of which project, and who gets these."""

    run: Run
    target: Project
    vetting: ReleasePolicy


def check(wish: BringInRequest) -> None:
    """Raise `Refused` for a run whose replies cannot come in there, or not yet, and `FieldError`
    for who cannot get them so."""
    rows.check(wish.run, wish.target)
    if problem := rows.explain_unfinished(wish.run):
        raise Refused(problem)
    if wish.vetting.accept and not rows.can_skip_review(wish.run):
        raise FieldError("Only score-invariant items can be accepted without review.", "accept")
    wish.vetting.check()


def enqueue(wish: BringInRequest, member: Membership | None) -> Job:
    """Have the replies of a run brought in by the next worker. Raises like `check`."""
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
    """The times that the replies of a run were brought in, the last first."""
    return job_queue.list_jobs(run.project, KIND).filter(result__run=run.number)


def find_due(now: datetime) -> list[int]:
    """The ids of jobs that wait for a worker, or whose worker is gone."""
    return job_queue.due_job_ids(KIND, now)


def run_job(job_id: int, *, stopped: Callable[[], bool] = lambda: False) -> bool:
    """Bring in what a job asks for, unless another worker is at it; whether that was done. One
    that is `stopped` waits for the next worker: what was stored is then found unchanged."""
    return job_queue.run_job_command(job_id, KIND, "bring_in", "brought", stopped)


def load_request(job: Job) -> BringInRequest:
    """What a job asks for."""
    said = job.result
    run = Run.objects.in_project(job.project).for_page().get(number=said["run"])
    target = Project.objects.select_related("task_type").get(slug=said["into"])
    return BringInRequest(run, target, ReleasePolicy.of(said))


def bring_in_replies(wish: BringInRequest, by: Membership | None) -> GenerationResult:
    """Bring in the replies of a run, while one waits. Raises like `check`, and where somebody who
    asked for it may not do so any more: a job may wait for long. The texts of a sealed project stay
    sealed where they come in."""
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
    """Whether somebody's account is lead of all of these projects, none of them archived."""
    if by.account is None:
        return False
    led = Project.objects.led_by(by.account)
    return {one.pk for one in projects} <= set(led.values_list("pk", flat=True))


def can_rerun(job: Job, by: Membership) -> bool:
    """Whether somebody may have a job done again that another one asked for."""
    target = Project.objects.filter(slug=job.result["into"]).first()
    return target is not None and can_bring_in(by, target)


def _find_membership(target: Project, by: Membership) -> Membership | None:
    """The place that somebody has in the project which the items come into."""
    if by.project_id == target.pk:
        return by
    return Membership.objects.in_project(target).filter(account=by.account_id or 0).first()
