"""The API to import a generator run's replies as items, and to follow the progress."""

from typing import Any

from django.db.models import QuerySet
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.idempotency import KEY_PARAMETER, make_idempotent
from annotation.api.project_rows import ProjectRowList
from annotation.api.responses import (
    BroughtSerializer,
    SharedOutFields,
    Unprocessable,
    validate_body,
)
from annotation.errors import FieldError
from annotation.generation.release import ReleasePolicy
from annotation.models import Job, Membership
from annotation.projects import access
from judging.generation import bring_in, choices
from judging.models import Run
from judging.runs.api.responses import IDEMPOTENT_RESPONSES, RUN_PATH, call_or_422
from judging.runs.choices import get_run_or_404


class BringAskedSerializer(serializers.Serializer[Any]):
    """The target project of the replies, "" for the default project. `share` is the percentage of
    each category that is released to annotators at once; null means 25 for gold answers and 100 for
    other items. The remaining items are held until a lead releases them. With `accept`,
    score-invariant items are accepted without review instead. Items with a flag in `aside` are also
    held."""

    into = serializers.SlugField(default="", allow_blank=True, max_length=80)
    share = serializers.IntegerField(default=None, allow_null=True, min_value=0, max_value=100)
    accept = serializers.BooleanField(default=False)
    aside = serializers.ListField(
        child=serializers.ChoiceField(choices=[*choices.FLAGS.items()]),
        default=[*choices.DEFAULT_FLAGS],
        max_length=len(choices.FLAGS),
    )


class BringSerializer(SharedOutFields):
    """An import of a run's replies; `brought` is null until the import has ended. The import
    appears in the list of jobs, where you can cancel it or run it again."""

    run = serializers.IntegerField(source="result.run")
    into = serializers.CharField(source="result.into")
    brought = BroughtSerializer(source="result.brought", default=None, allow_null=True)


class BringList(ProjectRowList[Job]):
    """The imports of a run's replies, latest first."""

    model = Job
    right = "manage"
    serializer_class = BringSerializer

    def list_rows(self) -> QuerySet[Job]:
        run = get_run_or_404(self.member, self.kwargs["number"])
        return bring_in.list_jobs(run).order_by("-pk")

    @extend_schema(
        operation_id="projects_runs_items_create",
        parameters=[KEY_PARAMETER],
        request=BringAskedSerializer,
        responses={201: BringSerializer, **IDEMPOTENT_RESPONSES},
    )
    @make_idempotent("manage")
    def post(self, request: Request, slug: str, number: int) -> Response:
        """Have a worker import the replies of a generator run as items."""
        lead = access.member_for(request, slug, right="manage")
        run = get_run_or_404(lead, number)
        said = validate_body(BringAskedSerializer(data=request.data))
        try:
            job = call_or_422(lambda: _enqueue_bring_in(lead, run, said))
        except FieldError as problem:
            errors = {problem.field: [str(problem)]}
            raise Unprocessable("The body cannot be used.", errors) from problem
        return Response(BringSerializer(job).data, status=201)


def _enqueue_bring_in(lead: Membership, run: Run, said: dict[str, Any]) -> Job:
    offered = choices.list_targets(run, lead.account)
    into = said["into"] or choices.default_target(run, offered) or run.project.slug
    share = choices.default_share(run) if said["share"] is None else said["share"]
    wish = choices.build_request(
        run, lead.account, into, ReleasePolicy.from_values({**said, "share": share})
    )
    return bring_in.enqueue(wish, access.ensure_membership(lead))


urlpatterns = [path(RUN_PATH + "items/", BringList.as_view(), name="api-run-items")]
