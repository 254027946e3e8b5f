from django.urls import path

from judging.views import (
    authoring,
    budget,
    endpoints,
    paper,
    remaking,
    replies,
    runs,
    starting,
    strategies,
)
from judging.views.results import downloads, pictures, saved, showing

RUN = "projects/<slug:slug>/runs/<int:number>/"
STRATEGY = "projects/<slug:slug>/strategies/<slug:strategy>/"

urlpatterns = [
    path("endpoints/", endpoints.endpoint_list, name="endpoints"),
    path("endpoints/new/", endpoints.new_endpoint, name="endpoint-new"),
    path("endpoints/<str:name>/", endpoints.endpoint, name="endpoint"),
    path("endpoints/<str:name>/edit/", endpoints.edit_endpoint, name="endpoint-edit"),
    path("endpoints/<str:name>/test/", endpoints.try_endpoint, name="endpoint-test"),
    path("projects/<slug:slug>/runs/", runs.run_list, name="runs"),
    path("projects/<slug:slug>/runs/new/", starting.new_run, name="run-new"),
    path("projects/<slug:slug>/runs/pilots/", starting.pilots, name="run-pilots"),
    path("projects/<slug:slug>/runs/derive/", remaking.derive, name="run-derive"),
    path(RUN, runs.run, name="run"),
    path(RUN + "pause/", runs.steer, {"step": "pause"}, name="run-pause"),
    path(RUN + "resume/", runs.steer, {"step": "resume"}, name="run-resume"),
    path(RUN + "retry/", runs.steer, {"step": "retry"}, name="run-retry"),
    path(RUN + "cancel/", runs.cancel, name="run-cancel"),
    path(RUN + "archive/", runs.steer, {"step": "archive"}, name="run-archive"),
    path(RUN + "unarchive/", runs.steer, {"step": "unarchive"}, name="run-unarchive"),
    path(RUN + "clone/", remaking.clone, name="run-clone"),
    path(RUN + "again/", remaking.again, name="run-again"),
    path(RUN + "reparse/", remaking.reparse, name="run-reparse"),
    path(RUN + "items/<path:key>/", replies.run_item, name="run-item"),
    path("projects/<slug:slug>/strategies/", strategies.strategy_list, name="strategies"),
    path(STRATEGY, strategies.strategy, name="strategy"),
    path(STRATEGY + "retire/", strategies.put_away, {"step": "retire"}, name="strategy-retire"),
    path(STRATEGY + "delete/", strategies.put_away, {"step": "delete"}, name="strategy-delete"),
    path(STRATEGY + "back/", strategies.put_away, {"step": "back"}, name="strategy-back"),
    path(STRATEGY + "copy/", authoring.copy, name="strategy-copy"),
    path(STRATEGY + "edit/", authoring.edit, name="strategy-edit"),
    path(STRATEGY + "preview/", authoring.preview, name="strategy-preview"),
    path(STRATEGY + "parse/", authoring.parse, name="strategy-parse"),
    path("projects/<slug:slug>/item-keys/", authoring.keys, name="item-keys"),
    path("projects/<slug:slug>/budget/", budget.budget, name="budget"),
    path("projects/<slug:slug>/results/", showing.index, name="results"),
    path("projects/<slug:slug>/results/methods/", paper.methods_page, name="results-methods"),
    path(
        "projects/<slug:slug>/results/methods.<slug:text>",
        paper.methods_file,
        name="results-methods-file",
    ),
    path("projects/<slug:slug>/archives/", paper.archives, name="archives"),
    path("projects/<slug:slug>/archives/<int:number>/", paper.archive, name="archive"),
    path(
        "projects/<slug:slug>/results/<slug:table>.<slug:form>",
        downloads.table,
        name="results-download",
    ),
    path("projects/<slug:slug>/results/views/", saved.views, name="results-views"),
    path("projects/<slug:slug>/results/<slug:page>/", showing.page, name="results-page"),
    path(
        "projects/<slug:slug>/results/<slug:page>/chart.<slug:picture>",
        pictures.download,
        name="results-chart",
    ),
]
