"""The API's front door: every route of `/api/v1/`, in one table."""

from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView

urlpatterns = [
    path("schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path("", include("annotation.api.work")),
    path("", include("annotation.api.items")),
    path("", include("annotation.api.decisions")),
    path("", include("annotation.api.comments")),
    path("", include("annotation.api.leads")),
    path("", include("annotation.api.practice")),
    path("", include("judging.api_making")),
    path("", include("judging.api")),
    path("", include("judging.api_endpoints")),
    path("", include("judging.api_strategies")),
]
