"""The API of runs and their outcomes."""

from typing import Any

from django.db.models import QuerySet
from django.urls import path
from django.utils import timezone
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.idempotency import KEY_PARAMETER, make_idempotent
from annotation.api.project_rows import ProjectRowList
from annotation.api.responses import PROBLEM_RESPONSES, Conflict, validate_body
from annotation.projects import access
from judging import tasks
from judging.models import Outcome, Run
from judging.results.filters import OutcomeFilter, RunFilter
from judging.runs import (
    archiving,
    choices,
    counts,
    descriptions,
    lifecycle,
    progress,
    start,
    supplements,
)
from judging.runs.api.responses import (
    IDEMPOTENT_RESPONSES,
    REFUSAL_RESPONSES,
    RUN_PATH,
    call_or_422,
    parse_run_body,
)
from judging.runs.api.serializers import (
    DescriptionSerializer,
    ListedRunSerializer,
    MoveSerializer,
    OutcomeSerializer,
    ResumeSerializer,
    StartSerializer,
    SupplementEstimateSerializer,
    SupplementSerializer,
    WatchedRunSerializer,
)
from judging.runs.choices import get_run_or_404


class RunList(ProjectRowList[Run]):
    """The runs of the project, newest first; a POST starts a new run."""

    model = Run
    right = "results"
    serializer_class = ListedRunSerializer
    filter_backends = (DjangoFilterBackend,)
    filterset_class = RunFilter

    def list_rows(self) -> QuerySet[Run]:
        return Run.objects.in_project(self.member.project).for_list()

    def paginate_queryset(self, queryset: Any) -> list[Any] | None:
        page = super().paginate_queryset(queryset)
        return None if page is None else counts.with_item_counts(page, timezone.now())

    @extend_schema(
        parameters=[KEY_PARAMETER],
        request=StartSerializer,
        responses={201: WatchedRunSerializer, **IDEMPOTENT_RESPONSES},
    )
    @make_idempotent("run")
    def post(self, request: Request, slug: str) -> Response:
        """Run a strategy over the project's items at an endpoint."""
        member = access.member_for(request, slug, right="run")
        wish = parse_run_body(member, request.data)
        if call_or_422(lambda: start.has_other_items(member.project, wish)):
            raise Conflict(
                "Items were added, changed, labelled or removed since the estimate, or the seed is "
                "another one. Nothing was started. Estimate again."
            )
        [started] = call_or_422(
            lambda: start.start_runs(member.project, wish, access.ensure_membership(member))
        )
        tasks.notify_workers(started.endpoint_id)
        return Response(WatchedRunSerializer(progress.load_status(started)).data, status=201)


@extend_schema(methods=["GET"], responses={200: WatchedRunSerializer, **PROBLEM_RESPONSES})
@extend_schema(
    methods=["PATCH"],
    request=DescriptionSerializer,
    responses={200: WatchedRunSerializer, **REFUSAL_RESPONSES},
)
@api_view(["GET", "PATCH"])
def run(request: Request, slug: str, number: int) -> Response:
    """A run: everything that it pins, and its progress. A PATCH changes its name, tags and note,
    those that are in its body."""
    changes = request.method == "PATCH"
    member = access.member_for(request, slug, right="run" if changes else "results")
    found = get_run_or_404(member, number)
    if changes:
        said = validate_body(DescriptionSerializer(data=request.data, partial=True))
        call_or_422(
            lambda: descriptions.describe_run(found, access.ensure_membership(member), **said)
        )
    return Response(WatchedRunSerializer(progress.load_status(found)).data)


@extend_schema(request=None, responses={200: WatchedRunSerializer, **REFUSAL_RESPONSES})
@api_view(["POST"])
def change_run(request: Request, slug: str, number: int, step: str) -> Response:
    """Pause, cancel, retry, archive or unarchive a run."""
    member = access.member_for(request, slug, right="run")
    steered = get_run_or_404(member, number)
    call_or_422(lambda: archiving.STEPS[step](steered, access.ensure_membership(member)))
    tasks.notify_workers(steered.endpoint_id)
    return Response(WatchedRunSerializer(progress.load_status(steered)).data)


@extend_schema(request=ResumeSerializer, responses={200: WatchedRunSerializer, **REFUSAL_RESPONSES})
@api_view(["POST"])
def resume(request: Request, slug: str, number: int) -> Response:
    """Resume a paused run. If the run has reached its cap, give a higher cap."""
    member = access.member_for(request, slug, right="run")
    paused = get_run_or_404(member, number)
    said = validate_body(ResumeSerializer(data=request.data))
    call_or_422(lambda: lifecycle.resume(paused, access.ensure_membership(member), **said))
    tasks.notify_workers(paused.endpoint_id)
    return Response(WatchedRunSerializer(progress.load_status(paused)).data)


@extend_schema(request=MoveSerializer, responses={200: WatchedRunSerializer, **REFUSAL_RESPONSES})
@api_view(["POST"])
def move(request: Request, slug: str, number: int) -> Response:
    """Move a run that has no answer yet to another endpoint; its calls are planned again."""
    member = access.member_for(request, slug, right="run")
    run = get_run_or_404(member, number)
    name = validate_body(MoveSerializer(data=request.data))["endpoint"]
    call_or_422(
        lambda: lifecycle.move_to_endpoint(
            run, choices.get_endpoint(name), access.ensure_membership(member)
        )
    )
    tasks.notify_workers(run.endpoint_id)
    return Response(WatchedRunSerializer(progress.load_status(run)).data)


@extend_schema(
    request=SupplementSerializer,
    responses={200: WatchedRunSerializer, **REFUSAL_RESPONSES},
)
@api_view(["POST"])
def supplement(request: Request, slug: str, number: int) -> Response:
    """Ask the items of a finished run without a usable reply again, with other parameters or
    more time."""
    member = access.member_for(request, slug, right="run")
    asked = get_run_or_404(member, number)
    said = validate_body(SupplementSerializer(data=request.data))
    call_or_422(lambda: supplements.ask_again(asked, access.ensure_membership(member), **said))
    tasks.notify_workers(asked.endpoint_id)
    return Response(WatchedRunSerializer(progress.load_status(asked)).data)


@extend_schema(
    request=SupplementSerializer,
    responses={200: SupplementEstimateSerializer, **REFUSAL_RESPONSES},
)
@api_view(["POST"])
def estimate_supplement(request: Request, slug: str, number: int) -> Response:
    """Estimate what a supplement would ask again and cost. Nothing is asked."""
    member = access.member_for(request, slug, right="run")
    asked = get_run_or_404(member, number)
    said = validate_body(SupplementSerializer(data=request.data))
    estimated = call_or_422(lambda: supplements.estimate_supplement(asked, **said))
    return Response(SupplementEstimateSerializer(estimated).data)


class OutcomeList(ProjectRowList[Outcome]):
    """The outcomes of a run, in the order of the items."""

    model = Outcome
    right = "results"
    serializer_class = OutcomeSerializer
    filter_backends = (DjangoFilterBackend,)
    filterset_class = OutcomeFilter

    def list_rows(self) -> QuerySet[Outcome]:
        return get_run_or_404(self.member, self.kwargs["number"]).outcomes.for_list()


urlpatterns = [
    path("projects/<slug:slug>/runs/", RunList.as_view(), name="api-runs"),
    path(RUN_PATH, run, name="api-run"),
    path(RUN_PATH + "pause/", change_run, {"step": "pause"}, name="api-run-pause"),
    path(RUN_PATH + "resume/", resume, name="api-run-resume"),
    path(RUN_PATH + "move/", move, name="api-run-move"),
    path(RUN_PATH + "cancel/", change_run, {"step": "cancel"}, name="api-run-cancel"),
    path(RUN_PATH + "retry/", change_run, {"step": "retry"}, name="api-run-retry"),
    path(RUN_PATH + "supplement/", supplement, name="api-run-supplement"),
    path(
        RUN_PATH + "supplement/estimate/", estimate_supplement, name="api-run-supplement-estimate"
    ),
    path(RUN_PATH + "archive/", change_run, {"step": "archive"}, name="api-run-archive"),
    path(RUN_PATH + "unarchive/", change_run, {"step": "unarchive"}, name="api-run-unarchive"),
    path(RUN_PATH + "outcomes/", OutcomeList.as_view(), name="api-outcomes"),
]
