"""Shared code of all routes for runs: parse the body of a new run, turn refusals into 422."""

import secrets
from collections.abc import Callable
from typing import Any, TypeVar

from drf_spectacular.utils import OpenApiResponse

from annotation.api.idempotency import IN_PROGRESS_RESPONSE
from annotation.api.responses import (
    PROBLEM_RESPONSES,
    ProblemSerializer,
    Unprocessable,
    validate_body,
)
from annotation.models import Membership
from judging.errors import Refused
from judging.runs import choices, descriptions
from judging.runs.api.serializers import StartSerializer
from judging.runs.choices import get_run_or_404
from judging.runs.lifecycle import RunConfig
from judging.runs.run_config import RunOverrides
from judging.runs.start import NewRuns

T = TypeVar("T")

REFUSAL_RESPONSES = PROBLEM_RESPONSES | {
    422: OpenApiResponse(ProblemSerializer, "Not possible; the message says why.")
}
IDEMPOTENT_RESPONSES = REFUSAL_RESPONSES | {409: IN_PROGRESS_RESPONSE}
RUN_PATH = "projects/<slug:slug>/runs/<int:number>/"


def parse_run_body(member: Membership, body: Any) -> NewRuns:
    """Build the new run that a body of `StartSerializer` describes; 422 if the run is not
    possible."""
    said = validate_body(StartSerializer(data=body))
    return call_or_422(lambda: _build_run_request(member, said))


def _build_run_request(member: Membership, said: dict[str, Any]) -> NewRuns:
    project = member.project
    filters = {name: said[name] for name in ("categories", "abilities", "keys")}
    plain = ("limit", "with_duplicates", "samples", "cap", "while_labelling")
    return NewRuns(
        strategies=[choices.get_version(project, said["strategy"])],
        endpoints=[choices.get_endpoint(said["endpoint"])],
        config=RunConfig(
            seed=secrets.randbits(48) if said["seed"] is None else said["seed"],
            over=get_run_or_404(member, said["over"]) if said["over"] else None,
            same_as=get_run_or_404(member, said["same_as"]) if said["same_as"] else None,
            items=choices.select_items(project, **filters),
            own=RunOverrides(
                said["parameters"],
                tuple(said["axes"]) or None,
                said["votes"],
                said["examples"],
                unlabelled=said["unlabelled"],
                draws=said["draws"],
                language=said["language"],
            ),
            **{name: said[name] for name in (*plain, *descriptions.FIELDS)},
        ),
        canary=said["canary"],
        drawn=[said["items_digest"]] if said["items_digest"] else [],
    )


def call_or_422(what: Callable[[], T]) -> T:
    """Call a service and return its result; `Refused` becomes a 422."""
    try:
        return what()
    except Refused as problem:
        raise Unprocessable(str(problem)) from problem
