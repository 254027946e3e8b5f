"""What all routes of runs share: how a run is found, a wish is read, and a refusal answered."""

import secrets
from collections.abc import Callable
from typing import Any, TypeVar

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiResponse

from annotation.api.answering import PROBLEMS, ProblemSerializer, Unprocessable, checked
from annotation.models import Membership
from judging.api.serializers import StartSerializer
from judging.errors import Refused
from judging.models import Run
from judging.pins import Own
from judging.preparing import offering
from judging.preparing.offering import Chosen
from judging.running.starting import Wish

T = TypeVar("T")

REFUSED = PROBLEMS | {422: OpenApiResponse(ProblemSerializer, "This cannot be done; it says why.")}
DONE_ONCE = REFUSED | {
    409: OpenApiResponse(ProblemSerializer, "The same is being answered at this moment.")
}
RUN = "projects/<slug:slug>/runs/<int:number>/"


def found(member: Membership, number: int) -> Run:
    """A run of the member's project; 404 if there is none."""
    return get_object_or_404(Run.objects.in_project(member.project).for_page(), number=number)


def wish_of(member: Membership, body: Any) -> Wish:
    """What a body of `StartSerializer` wishes for; 422 for what cannot be."""
    said = checked(StartSerializer(data=body))
    return done(lambda: _wish(member, said))


def _wish(member: Membership, said: dict[str, Any]) -> Wish:
    project = member.project
    chosen = Chosen(*(tuple(said[name]) for name in ("categories", "abilities", "keys")))
    own = Own(said["parameters"], tuple(said["axes"]), said["votes"], said["examples"])
    names = ("limit", "with_duplicates", "samples", "canary", "cap", "while_labelling")
    return Wish(
        strategies=[offering.version_of(project, said["strategy"])],
        endpoints=[offering.endpoint_of(said["endpoint"])],
        seed=secrets.randbits(48) if said["seed"] is None else said["seed"],
        over=found(member, said["over"]) if said["over"] else None,
        items=offering.items_of(project, chosen),
        own=own,
        **{name: said[name] for name in names},
    )


def done(what: Callable[[], T]) -> T:
    """What a service made; its refusal as 422."""
    try:
        return what()
    except Refused as problem:
        raise Unprocessable(str(problem)) from problem
