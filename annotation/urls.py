from django.urls import path

from annotation.views import (
    agreement,
    guidelines,
    items,
    known,
    practice,
    projects,
    settings,
    tokens,
    vetting,
)

urlpatterns = [
    path("", projects.home, name="home"),
    path("help/", projects.manual, name="help"),
    path("patterns/", projects.patterns, name="patterns"),
    path("tokens/", tokens.tokens, name="tokens"),
    path("projects/<slug:slug>/", projects.project, name="project"),
    path("projects/<slug:slug>/vet/", vetting.vet, name="vet"),
    path("projects/<slug:slug>/vet/label/", vetting.label, name="vet-label"),
    path("projects/<slug:slug>/vet/correct/", vetting.correct, name="vet-correct"),
    path("projects/<slug:slug>/vet/undo/", vetting.undo, name="vet-undo"),
    path("projects/<slug:slug>/agreement/", agreement.agreement_page, name="agreement"),
    path("projects/<slug:slug>/items/", items.items, name="items"),
    path("projects/<slug:slug>/items/<path:key>/", items.item, name="item"),
    path("projects/<slug:slug>/practice/", practice.practice, name="practice"),
    path("projects/<slug:slug>/practice/people/", practice.people, name="practice-people"),
    path("projects/<slug:slug>/known/", known.items, name="known"),
    path("projects/<slug:slug>/probes/", known.probes, name="probes"),
    path("projects/<slug:slug>/guidelines/", guidelines.read, name="guidelines"),
    path("projects/<slug:slug>/guidelines/edit/", guidelines.edit, name="guidelines-edit"),
    path("projects/<slug:slug>/settings/", settings.edit, name="settings"),
]
