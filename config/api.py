"""All routes of `/api/v1/`, in one table."""

from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView

urlpatterns = [
    path("schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path("", include("annotation.labelling.api.work")),
    path("", include("annotation.items.api.items")),
    path("", include("annotation.labelling.api.decisions")),
    path("", include("annotation.labelling.api.comments")),
    path("", include("annotation.reports.api")),
    path("", include("annotation.importing.api")),
    path("", include("annotation.labelling.api.qualification")),
    path("", include("annotation.settings.api")),
    path("", include("annotation.projects.api.guidelines")),
    path("", include("annotation.projects.api.members")),
    path("", include("annotation.labelling.api.resolutions")),
    path("", include("annotation.labelling.api.assignment")),
    path("", include("annotation.items.api.snapshots")),
    path("", include("annotation.generation.api")),
    path("", include("annotation.items.api.ability_sorting")),
    path("", include("judging.runs.api.estimates")),
    path("", include("judging.runs.api.derived_runs")),
    path("", include("judging.runs.api.calls")),
    path("", include("judging.generation.api.bring_in")),
    path("", include("judging.generation.api.ability_suggestions")),
    path("", include("judging.runs.api.runs")),
    path("", include("judging.results.api")),
    path("", include("judging.archive.api")),
    path("", include("judging.evaluators.api")),
    path("", include("judging.strategies.api")),
    path("", include("judging.runs.api.budget")),
    path("", include("judging.exporting.api")),
    path("", include("judging.jobs.api")),
    path("", include("judging.webhooks.api")),
]
