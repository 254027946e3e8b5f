"""The API of the evaluator half: runs and their outcomes."""

from typing import Any

from django.db.models import QuerySet
from django.urls import path
from django.utils import timezone
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import api_view
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from annotation import access
from annotation.api.answering import PROBLEMS, checked
from annotation.api.paging import CursorPages
from annotation.api.repeating import KEY, once
from judging import tasks
from judging.api.answering import DONE_ONCE, REFUSED, RUN, done, found, wish_of
from judging.api.serializers import (
    ListedRunSerializer,
    MoveSerializer,
    OutcomeSerializer,
    ResumeSerializer,
    StartSerializer,
    WatchedRunSerializer,
)
from judging.engine import watching
from judging.models import Outcome, Run
from judging.preparing import offering
from judging.results.filters import OutcomeFilter, RunFilter
from judging.running import runs, starting, steering, tallies


class RunList(ListAPIView[Run]):
    """Runs, newest first, and the place to start one at."""

    serializer_class = ListedRunSerializer
    pagination_class = CursorPages
    filter_backends = (DjangoFilterBackend,)
    filterset_class = RunFilter

    def get_queryset(self) -> QuerySet[Run]:
        if getattr(self, "swagger_fake_view", False):
            return Run.objects.none()
        member = access.member_for(self.request, self.kwargs["slug"], right="results")
        return Run.objects.in_project(member.project).for_list()

    def paginate_queryset(self, queryset: Any) -> list[Any] | None:
        page = super().paginate_queryset(queryset)
        return None if page is None else tallies.with_items(page, timezone.now())

    @extend_schema(
        parameters=[KEY],
        request=StartSerializer,
        responses={201: WatchedRunSerializer, **DONE_ONCE},
    )
    @once("run")
    def post(self, request: Request, slug: str) -> Response:
        """Put a strategy to the project's vetted items at an endpoint."""
        member = access.member_for(request, slug, right="run")
        wish = wish_of(member, request.data)
        [started] = done(lambda: starting.start(member.project, wish, access.seated(member)))
        tasks.ring(started.endpoint_id)
        return Response(WatchedRunSerializer(watching.watch(started)).data, status=201)


@extend_schema(responses={200: WatchedRunSerializer, **PROBLEMS})
@api_view(["GET"])
def run(request: Request, slug: str, number: int) -> Response:
    """One run: what it rests on and how far it is."""
    member = access.member_for(request, slug, right="results")
    return Response(WatchedRunSerializer(watching.watch(found(member, number))).data)


@extend_schema(request=None, responses={200: WatchedRunSerializer, **REFUSED})
@api_view(["POST"])
def steer(request: Request, slug: str, number: int, step: str) -> Response:
    """Pause or cancel a run, ask its failed requests again, put it away or take it back."""
    member = access.member_for(request, slug, right="run")
    steered = found(member, number)
    done(lambda: steering.STEPS[step](steered, access.seated(member)))
    tasks.ring(steered.endpoint_id)
    return Response(WatchedRunSerializer(watching.watch(steered)).data)


@extend_schema(request=ResumeSerializer, responses={200: WatchedRunSerializer, **REFUSED})
@api_view(["POST"])
def resume(request: Request, slug: str, number: int) -> Response:
    """Go on with a paused run; one that reached its cap needs a higher one."""
    member = access.member_for(request, slug, right="run")
    paused = found(member, number)
    said = checked(ResumeSerializer(data=request.data))
    done(lambda: runs.resume(paused, access.seated(member), **said))
    tasks.ring(paused.endpoint_id)
    return Response(WatchedRunSerializer(watching.watch(paused)).data)


@extend_schema(request=MoveSerializer, responses={200: WatchedRunSerializer, **REFUSED})
@api_view(["POST"])
def move(request: Request, slug: str, number: int) -> Response:
    """Ask a run of which nothing was answered at another endpoint; it is planned again."""
    member = access.member_for(request, slug, right="run")
    run = found(member, number)
    name = checked(MoveSerializer(data=request.data))["endpoint"]
    done(lambda: runs.move_to(run, offering.endpoint_of(name), access.seated(member)))
    tasks.ring(run.endpoint_id)
    return Response(WatchedRunSerializer(watching.watch(run)).data)


class OutcomeList(ListAPIView[Outcome]):
    """What a run says of each item, in the order of the items."""

    serializer_class = OutcomeSerializer
    pagination_class = CursorPages
    filter_backends = (DjangoFilterBackend,)
    filterset_class = OutcomeFilter

    def get_queryset(self) -> QuerySet[Outcome]:
        if getattr(self, "swagger_fake_view", False):
            return Outcome.objects.none()
        member = access.member_for(self.request, self.kwargs["slug"], right="results")
        return found(member, self.kwargs["number"]).outcomes.for_list()


urlpatterns = [
    path("projects/<slug:slug>/runs/", RunList.as_view(), name="api-runs"),
    path(RUN, run, name="api-run"),
    path(RUN + "pause/", steer, {"step": "pause"}, name="api-run-pause"),
    path(RUN + "resume/", resume, name="api-run-resume"),
    path(RUN + "move/", move, name="api-run-move"),
    path(RUN + "cancel/", steer, {"step": "cancel"}, name="api-run-cancel"),
    path(RUN + "retry/", steer, {"step": "retry"}, name="api-run-retry"),
    path(RUN + "archive/", steer, {"step": "archive"}, name="api-run-archive"),
    path(RUN + "unarchive/", steer, {"step": "unarchive"}, name="api-run-unarchive"),
    path(RUN + "outcomes/", OutcomeList.as_view(), name="api-outcomes"),
]
