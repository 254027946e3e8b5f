from django.urls import include, path

from judging.archive import views as archives
from judging.evaluators import views as endpoints
from judging.exporting import views as exports
from judging.generation.views import ability_suggestions, board, bring_in
from judging.jobs import views as jobs
from judging.results.views import charts, downloads, pages, saved
from judging.runs.views import budget, derived_runs, new_run, replies, runs, supplements
from judging.strategies.views import editor, strategies
from judging.webhooks import views as webhooks

endpoint_urls = [
    path("", endpoints.endpoint_list, name="endpoints"),
    path("new/", endpoints.new_endpoint, name="endpoint-new"),
    path("<path:name>/edit/", endpoints.edit_endpoint, name="endpoint-edit"),
    path("<path:name>/test/", endpoints.try_endpoint, name="endpoint-test"),
    path(
        "<path:name>/archive/", endpoints.change_endpoint, {"step": "archive"}, "endpoint-archive"
    ),
    path(
        "<path:name>/restore/", endpoints.change_endpoint, {"step": "restore"}, "endpoint-restore"
    ),
    path(
        "<path:name>/end-pause/",
        endpoints.change_endpoint,
        {"step": "end-pause"},
        "endpoint-end-pause",
    ),
    path("<path:name>/delete/", endpoints.change_endpoint, {"step": "delete"}, "endpoint-delete"),
    # The last one, since names from before they were checked may have a slash.
    path("<path:name>/", endpoints.endpoint, name="endpoint"),
]

run_list_urls = [
    path("runs/", runs.run_list, name="runs"),
    path("runs/new/", new_run.new_run, name="run-new"),
    path("runs/pilots/", new_run.pilots, name="run-pilots"),
    path("runs/derive/", derived_runs.derive_run, name="run-derive"),
    path("budget/", budget.budget, name="budget"),
]

run_urls = [
    path("", runs.run, name="run"),
    path("pause/", runs.change_run, {"step": "pause"}, name="run-pause"),
    path("resume/", runs.resume_run, name="run-resume"),
    path("retry/", runs.change_run, {"step": "retry"}, name="run-retry"),
    path("supplement/", supplements.supplement_run, name="run-supplement"),
    path("cancel/", runs.cancel_run, name="run-cancel"),
    path("archive/", runs.change_run, {"step": "archive"}, name="run-archive"),
    path("unarchive/", runs.change_run, {"step": "unarchive"}, name="run-unarchive"),
    path("description/", runs.describe_run, name="run-description"),
    path("clone/", derived_runs.clone_run, name="run-clone"),
    path("move/", derived_runs.move_run, name="run-move"),
    path("again/", derived_runs.repeat_canary, name="run-again"),
    path("ask-without/", derived_runs.ask_without, name="run-ask-without"),
    path("reparse/", derived_runs.reparse_run, name="run-reparse"),
    path("anew/", bring_in.retry_generation, name="run-anew"),
    path("bring-in/", bring_in.bring_in, name="run-bring-in"),
    path("suggestions/", ability_suggestions.take_suggestions, name="run-suggestions"),
    path("items/<path:key>/", replies.run_item, name="run-item"),
]

strategy_list_urls = [
    path("strategies/", strategies.strategy_list, name="strategies"),
    path("item-keys/", editor.suggest_items, name="item-keys"),
]

strategy_urls = [
    path("", strategies.strategy, name="strategy"),
    path("retire/", strategies.change_strategy, {"step": "retire"}, name="strategy-retire"),
    path("delete/", strategies.change_strategy, {"step": "delete"}, name="strategy-delete"),
    path("back/", strategies.change_strategy, {"step": "back"}, name="strategy-back"),
    path("copy/", editor.copy_strategy, name="strategy-copy"),
    path("import/", editor.import_strategy, name="strategy-import"),
    path("edit/", editor.edit_strategy, name="strategy-edit"),
    path("preview/", editor.preview_strategy, name="strategy-preview"),
    path("parse/", editor.parse_reply, name="strategy-parse"),
]

generation_urls = [
    path("generation/", board.board, name="generation-board"),
    path("generation/release/", board.release_items, name="generation-release"),
    path("generation/<slug:category>/", board.regenerate_items, name="generation-regenerate"),
]

results_urls = [
    path("results/", pages.index, name="results"),
    path("results/methods/", archives.methods_page, name="results-methods"),
    path("results/methods.<slug:text>", archives.methods_file, name="results-methods-file"),
    path("results/<slug:table>.<slug:form>", downloads.download_table, name="results-download"),
    path("results/views/", saved.saved_views, name="results-views"),
    path("results/<slug:page>/", pages.page, name="results-page"),
    path("results/<slug:page>/table.tex", downloads.download_page_table, name="results-table"),
    path("results/<slug:page>/chart.<slug:picture>", charts.download_chart, name="results-chart"),
]

file_and_job_urls = [
    path("exports/", exports.exports, name="exports"),
    path("exports/<int:number>/", exports.download_export, name="export"),
    path("exports/<int:number>/cancel/", exports.cancel_export, name="export-cancel"),
    path("jobs/", jobs.jobs, name="jobs"),
    path("archives/", archives.archives, name="archives"),
    path("archives/<int:number>/", archives.archive, name="archive"),
]

job_urls = [
    path("cancel/", jobs.change_job, {"step": "cancel"}, name="job-cancel"),
    path("again/", jobs.change_job, {"step": "again"}, name="job-again"),
]

webhook_urls = [
    path("", webhooks.webhook_list, name="webhooks"),
    path("new/", webhooks.edit_webhook, name="webhook-new"),
    path("<int:webhook>/", webhooks.webhook, name="webhook"),
    path("<int:webhook>/edit/", webhooks.edit_webhook, name="webhook-edit"),
    path("<int:webhook>/on/", webhooks.change_webhook, {"step": "on"}, name="webhook-on"),
    path("<int:webhook>/off/", webhooks.change_webhook, {"step": "off"}, name="webhook-off"),
    path("<int:webhook>/secret/", webhooks.change_webhook, {"step": "secret"}, "webhook-secret"),
    path("<int:webhook>/ping/", webhooks.change_webhook, {"step": "ping"}, name="webhook-ping"),
    path("<int:webhook>/again/", webhooks.change_webhook, {"step": "again"}, name="webhook-again"),
    path("<int:webhook>/delete/", webhooks.change_webhook, {"step": "delete"}, "webhook-delete"),
    path(
        "<int:webhook>/deliveries/<uuid:delivery>/again/",
        webhooks.send_again,
        name="webhook-delivery-again",
    ),
]

urlpatterns = [
    path("endpoints/", include(endpoint_urls)),
    path("projects/<slug:slug>/", include(run_list_urls)),
    path("projects/<slug:slug>/runs/<int:number>/", include(run_urls)),
    path("projects/<slug:slug>/", include(strategy_list_urls)),
    path("projects/<slug:slug>/strategies/<slug:strategy>/", include(strategy_urls)),
    path("projects/<slug:slug>/", include(generation_urls)),
    path("projects/<slug:slug>/", include(results_urls)),
    path("projects/<slug:slug>/", include(file_and_job_urls)),
    path("projects/<slug:slug>/jobs/<slug:kind>/<int:number>/", include(job_urls)),
    path("projects/<slug:slug>/webhooks/", include(webhook_urls)),
]
