from django.urls import path

from operation import views
from operation.docs import views as docs

urlpatterns = [
    path("healthz", views.healthz, name="healthz"),
    path("readyz", views.readyz, name="readyz"),
    path("metrics", views.metrics, name="metrics"),
    path("docs/", docs.contents, name="docs"),
    path("docs/<slug:document>/", docs.page, name="docs-page"),
    path("docs/<slug:document>.md", docs.markdown, name="docs-markdown"),
    path("llms.txt", docs.llms, name="docs-llms"),
]
