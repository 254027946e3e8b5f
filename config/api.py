"""The API's front door: every route of `/api/v1/`, in one table."""

from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView

urlpatterns = [
    path("schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path("", include("annotation.api")),
    path("", include("annotation.api_decisions")),
    path("", include("annotation.api_comments")),
    path("", include("annotation.api_leads")),
    path("", include("annotation.api_practice")),
    path("", include("judging.api")),
]
