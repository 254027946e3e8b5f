from django.urls import path

from judging.archive import views as archive_views
from judging.evaluators import views
from judging.exporting import views as exporting_views
from judging.generation.views import ability_suggestions, board, bring_in
from judging.jobs import views as jobs_views
from judging.results.views import charts, downloads, pages, saved
from judging.runs.views import budget, derived_runs, new_run, replies, runs
from judging.strategies.views import editor, strategies

RUN = "projects/<slug:slug>/runs/<int:number>/"
JOB = "projects/<slug:slug>/jobs/<slug:kind>/<int:number>/"
STRATEGY = "projects/<slug:slug>/strategies/<slug:strategy>/"

urlpatterns = [
    path("endpoints/", views.endpoint_list, name="endpoints"),
    path("endpoints/new/", views.new_endpoint, name="endpoint-new"),
    path("endpoints/<str:name>/", views.endpoint, name="endpoint"),
    path("endpoints/<str:name>/edit/", views.edit_endpoint, name="endpoint-edit"),
    path("endpoints/<str:name>/test/", views.try_endpoint, name="endpoint-test"),
    path("projects/<slug:slug>/runs/", runs.run_list, name="runs"),
    path("projects/<slug:slug>/runs/new/", new_run.new_run, name="run-new"),
    path("projects/<slug:slug>/runs/pilots/", new_run.pilots, name="run-pilots"),
    path("projects/<slug:slug>/runs/derive/", derived_runs.derive_run, name="run-derive"),
    path(RUN, runs.run, name="run"),
    path(RUN + "pause/", runs.change_run, {"step": "pause"}, name="run-pause"),
    path(RUN + "resume/", runs.resume_run, name="run-resume"),
    path(RUN + "retry/", runs.change_run, {"step": "retry"}, name="run-retry"),
    path(RUN + "cancel/", runs.cancel_run, name="run-cancel"),
    path(RUN + "archive/", runs.change_run, {"step": "archive"}, name="run-archive"),
    path(RUN + "unarchive/", runs.change_run, {"step": "unarchive"}, name="run-unarchive"),
    path(RUN + "clone/", derived_runs.clone_run, name="run-clone"),
    path(RUN + "move/", derived_runs.move_run, name="run-move"),
    path(RUN + "again/", derived_runs.repeat_canary, name="run-again"),
    path(RUN + "ask-without/", derived_runs.ask_without, name="run-ask-without"),
    path(RUN + "reparse/", derived_runs.reparse_run, name="run-reparse"),
    path(RUN + "anew/", bring_in.retry_generation, name="run-anew"),
    path(RUN + "bring-in/", bring_in.bring_in, name="run-bring-in"),
    path(RUN + "suggestions/", ability_suggestions.take_suggestions, name="run-suggestions"),
    path(RUN + "items/<path:key>/", replies.run_item, name="run-item"),
    path("projects/<slug:slug>/strategies/", strategies.strategy_list, name="strategies"),
    path(STRATEGY, strategies.strategy, name="strategy"),
    path(
        STRATEGY + "retire/", strategies.change_strategy, {"step": "retire"}, name="strategy-retire"
    ),
    path(
        STRATEGY + "delete/", strategies.change_strategy, {"step": "delete"}, name="strategy-delete"
    ),
    path(STRATEGY + "back/", strategies.change_strategy, {"step": "back"}, name="strategy-back"),
    path(STRATEGY + "copy/", editor.copy_strategy, name="strategy-copy"),
    path(STRATEGY + "edit/", editor.edit_strategy, name="strategy-edit"),
    path(STRATEGY + "preview/", editor.preview_strategy, name="strategy-preview"),
    path(STRATEGY + "parse/", editor.parse_reply, name="strategy-parse"),
    path("projects/<slug:slug>/item-keys/", editor.suggest_items, name="item-keys"),
    path("projects/<slug:slug>/making/", board.board, name="making"),
    path("projects/<slug:slug>/making/open/", board.release_items, name="making-open"),
    path(
        "projects/<slug:slug>/making/<slug:category>/", board.regenerate_items, name="making-again"
    ),
    path("projects/<slug:slug>/budget/", budget.budget, name="budget"),
    path("projects/<slug:slug>/results/", pages.index, name="results"),
    path(
        "projects/<slug:slug>/results/methods/", archive_views.methods_page, name="results-methods"
    ),
    path(
        "projects/<slug:slug>/results/methods.<slug:text>",
        archive_views.methods_file,
        name="results-methods-file",
    ),
    path("projects/<slug:slug>/exports/", exporting_views.exports, name="exports"),
    path(
        "projects/<slug:slug>/exports/<int:number>/", exporting_views.download_export, name="export"
    ),
    path(
        "projects/<slug:slug>/exports/<int:number>/cancel/",
        exporting_views.cancel_export,
        name="export-cancel",
    ),
    path("projects/<slug:slug>/jobs/", jobs_views.jobs, name="jobs"),
    path(JOB + "cancel/", jobs_views.change_job, {"step": "cancel"}, name="job-cancel"),
    path(JOB + "again/", jobs_views.change_job, {"step": "again"}, name="job-again"),
    path("projects/<slug:slug>/archives/", archive_views.archives, name="archives"),
    path("projects/<slug:slug>/archives/<int:number>/", archive_views.archive, name="archive"),
    path(
        "projects/<slug:slug>/results/<slug:table>.<slug:form>",
        downloads.download_table,
        name="results-download",
    ),
    path("projects/<slug:slug>/results/views/", saved.saved_views, name="results-views"),
    path("projects/<slug:slug>/results/<slug:page>/", pages.page, name="results-page"),
    path(
        "projects/<slug:slug>/results/<slug:page>/chart.<slug:picture>",
        charts.download_chart,
        name="results-chart",
    ),
]
