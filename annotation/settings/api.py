"""The API of a project's settings, with the fields and descriptions of the settings page."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation import tasks
from annotation.api.form_bodies import FormSerializer, check_form, form_error
from annotation.api.responses import (
    IF_MATCH_PARAMETER,
    PROBLEM_RESPONSES,
    REFUSED_RESPONSES,
    PreconditionFailed,
    check_if_match,
    validate_body,
)
from annotation.errors import Stale
from annotation.models import Membership, Project
from annotation.projects import access
from annotation.settings import project_settings as settings_project_settings
from annotation.settings.views.project_settings import RULE_PREFIX, SettingsForm


class SettingsSerializer(FormSerializer):
    """The settings of a project. Changes apply from now on: existing labels and resolutions stay
    as they are."""

    form = SettingsForm
    rules = serializers.DictField(
        child=serializers.CharField(max_length=40),
        required=False,
        help_text="For each field of the task type, the rule that aggregates its labels to a "
        "resolution. If you leave out a field, the rule of the task type applies.",
    )


class ReachSerializer(serializers.Serializer[Any]):
    """The effect of a change, in sentences: how many items would change, and why the other items
    would not."""

    reach = serializers.ListField(child=serializers.CharField())


@extend_schema(methods=["GET"], responses={200: SettingsSerializer, **PROBLEM_RESPONSES})
@extend_schema(
    methods=["PATCH"],
    parameters=[IF_MATCH_PARAMETER],
    request=SettingsSerializer,
    responses={200: SettingsSerializer, **REFUSED_RESPONSES},
)
@api_view(["GET", "PATCH"])
def project_settings(request: Request, slug: str) -> Response:
    """The settings of the project; a PATCH changes only the settings in its body."""
    lead = access.member_for(request, slug, right="manage")
    if request.method == "PATCH":
        _apply_change(request, lead)
    return Response(SettingsSerializer(lead.project).data)


@extend_schema(request=SettingsSerializer, responses={200: ReachSerializer, **REFUSED_RESPONSES})
@api_view(["POST"])
def settings_preview(request: Request, slug: str) -> Response:
    """Count the items that a PATCH of the settings with the same body would change. Nothing is
    stored, so no `If-Match` is needed."""
    project = access.member_for(request, slug, right="manage").project
    asked = validate_body(SettingsSerializer(data=request.data, partial=True))
    values = _clean_values(project, asked, settings_project_settings.list_changes(project).count())
    return Response({"reach": settings_project_settings.preview_change(project, values)})


def _apply_change(request: Request, lead: Membership) -> None:
    project = lead.project
    # Counted before the settings are read, so that a change in between is detected.
    seen = settings_project_settings.list_changes(project).count()
    project.refresh_from_db()
    check_if_match(request, SettingsSerializer(project).data)
    asked = validate_body(SettingsSerializer(data=request.data, partial=True))
    values = _clean_values(project, asked, seen)
    try:
        applied = settings_project_settings.apply_change(
            project, access.ensure_membership(lead), values, seen=seen
        )
    except Stale as stale:
        raise PreconditionFailed from stale
    if applied.job:
        tasks.send_resize(applied.job.pk)


def _clean_values(project: Project, asked: dict[str, Any], seen: int) -> dict[str, Any]:
    """Validate the requested settings with the form of the page, and return them by name."""
    rules = asked.pop("rules", project.rules)
    now = {name: getattr(project, name) for name in settings_project_settings.SETTING_NAMES}
    named = {f"{RULE_PREFIX}{name}": rule for name, rule in rules.items()}
    form = SettingsForm(project, {**now, **asked, **named, "seen": str(seen)})
    unknown = [name for name in (*asked, *named) if name not in form.fields]
    if unknown := [name for name in unknown if (asked | named)[name] != now.get(name)]:
        words = "The task type of this project has no such question."
        raise form_error({name: [words] for name in unknown})
    check_form(form)
    values = form.values()
    return {name: values[name] for name in (*asked, "rules") if name in values}


urlpatterns = [
    path("projects/<slug:slug>/settings/", project_settings, name="api-settings"),
    path("projects/<slug:slug>/settings/preview/", settings_preview, name="api-settings-preview"),
]
