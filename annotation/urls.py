from django.urls import include, path

from annotation import former_paths
from annotation.accounts.views import display, keys, sessions, tokens
from annotation.generation import views as generation
from annotation.importing import row_correction
from annotation.importing import views as imports
from annotation.items.views import ability_sorting, items, snapshots
from annotation.labelling.views import (
    assignment,
    bulk_changes,
    cases,
    comments,
    control_items,
    human_baseline,
    label_screen,
    my_items,
    pilot,
    qualification,
    side_panel,
    verification,
)
from annotation.projects.views import (
    audit,
    guidelines,
    home,
    invitations,
    members,
    new_project,
    sign_in_links,
)
from annotation.reports.views import agreement, boards, personal_data
from annotation.settings.views import categories, project_settings, task_type

account_urls = [
    path("", home.home, name="home"),
    path("help/", home.manual, name="help"),
    path("new-project/", new_project.new_project, name="new-project"),
    path("archived/", new_project.archived, name="archived"),
    path("projects/<slug:slug>/archive/", new_project.archive, name="archive-project"),
    path("projects/<slug:slug>/restore/", new_project.restore, name="restore-project"),
    path("patterns/", home.patterns, name="patterns"),
    path("tokens/", tokens.tokens, name="tokens"),
    path("keys/", keys.keys, name="keys"),
    path("display/", display.display, name="display"),
    path("sessions/", sessions.sessions, name="sessions"),
    path("my-data/", personal_data.my_data, name="my-data"),
    path("my-data/file/", personal_data.my_data_file, name="my-data-file"),
    path("audit/", audit.audit_of_site, name="audit-site"),
    path("sign-in-links/<str:link>/", sign_in_links.sign_in_link, name="sign-in-link"),
    path("invitations/<str:invitation>/", invitations.invitation, name="invitation"),
]

project_urls = [
    path("", home.project, name="project"),
    path("guidelines/", guidelines.read_guidelines, name="guidelines"),
    path("guidelines/edit/", guidelines.edit_guidelines, name="guidelines-edit"),
    path("members/", members.people, name="members"),
    path("members/anonymise/", personal_data.anonymise, name="anonymise"),
    path("members/invite/", members.invite, name="members-invite"),
    path("audit/", audit.audit, name="audit"),
]

label_urls = [
    path("", label_screen.label_screen, name="label"),
    path("submit/", label_screen.submit_label, name="label-submit"),
    path("correct/", label_screen.submit_correction, name="label-correct"),
    path("undo/", label_screen.undo_label, name="label-undo"),
    path("next/", label_screen.next_ahead, name="label-next"),
    path("ahead/", label_screen.items_ahead, name="label-ahead"),
    path("offline.js", label_screen.offline_worker, name="label-offline"),
    path("reopen/", label_screen.reopen_item, name="label-reopen"),
    path("skip/", label_screen.skip_item, name="label-skip"),
    path("flag/", side_panel.toggle_flag, name="label-flag"),
    path("hold/", side_panel.renew_holds, name="label-hold"),
    path("draft/", side_panel.save_draft, name="label-draft"),
    path("draft/drop/", side_panel.delete_draft, name="label-draft-drop"),
    path("siblings/", side_panel.sibling_list, name="label-siblings"),
    path("guidelines/", side_panel.guidelines_panel, name="label-guidelines"),
]

annotator_urls = [
    path("my-items/", my_items.my_items, name="my-items"),
    path("comments/", comments.comments, name="comments"),
    path("mentions/", comments.mentions, name="mentions"),
]

qualification_urls = [
    path("qualification/", qualification.own_rounds, name="qualification"),
    path("qualification/people/", qualification.all_rounds, name="qualification-people"),
    path("answer-key/", control_items.answer_key, name="answer-key"),
    path("control-items/", control_items.control_results, name="control-items"),
]

decision_urls = [
    path("verify/", verification.verify, name="verify"),
    path("verify/answer/", verification.submit_verdict, name="verify-answer"),
    path("verify/undo/", verification.undo_verdict, name="verify-undo"),
    path("adjudicate/", cases.case_list, name="adjudicate"),
    path("adjudicate/<path:key>/", cases.case, name="case"),
]

item_urls = [
    path("items/", items.items, name="items"),
    path("bulk-changes/", bulk_changes.changes, name="bulk-changes"),
    path("bulk-changes/<int:number>/undo/", bulk_changes.undo, name="bulk-undo"),
    path("items/<path:key>/", items.item, name="item"),
    path("abilities/", ability_sorting.abilities, name="abilities"),
    path("snapshots/", snapshots.snapshots, name="snapshots"),
    path("snapshots/<int:number>/", snapshots.snapshot, name="snapshot"),
    path("snapshots/<int:number>/cancel/", snapshots.cancel_snapshot, name="snapshot-cancel"),
]

import_urls = [
    path("", imports.imports, name="imports"),
    path("<int:number>/", imports.import_detail, name="import"),
    path("<int:number>/cancel/", imports.cancel_import, name="import-cancel"),
    path("<int:number>/rows/", imports.rejected_rows, name="import-rows"),
    path("<int:number>/rows/<int:line>/", row_correction.correct_row, name="import-row"),
    path("<int:number>/problems.csv", imports.rejected_problems, name="import-problems"),
]

lead_urls = [
    path("assign/", assignment.assign, name="assign"),
    path("pilot/", pilot.pilot, name="pilot"),
    path("baseline/", human_baseline.baseline, name="baseline"),
    path("baseline/rows.csv", human_baseline.download, name="baseline-rows"),
    path("perturb/", generation.perturb, name="perturb"),
    path("perturb/<int:number>/", generation.generation, name="generation"),
]

settings_urls = [
    path("task/", task_type.edit_task_type, name="task"),
    path("task/preview/", task_type.preview_task_type, name="task-preview"),
    path("settings/", project_settings.edit_settings, name="settings"),
    path("categories/", categories.category_list, name="categories"),
    path("categories/file.toml", categories.category_file, name="categories-file"),
    path("categories/new/", categories.edit_entry, {"table": "category"}, name="category-new"),
    path("categories/new-group/", categories.edit_entry, {"table": "ability"}, name="group-new"),
    path(
        "categories/group/<slug:group>/", categories.edit_entry, {"table": "ability"}, name="group"
    ),
    path(
        "categories/category/<slug:category>/",
        categories.edit_entry,
        {"table": "category"},
        name="category",
    ),
]

report_urls = [
    path("pace/", boards.progress, name="pace"),
    path("pace/work-time.csv", boards.work_time_file, name="work-time"),
    path("people/<path:alias>/", boards.person, name="person"),
    path("board/", boards.category_board, name="board"),
    path("agreement/", agreement.agreement_page, name="agreement"),
]

urlpatterns = [
    *account_urls,
    path("projects/<slug:slug>/label/", include(label_urls)),
    path("projects/<slug:slug>/import/", include(import_urls)),
    path("projects/<slug:slug>/", include(project_urls)),
    path("projects/<slug:slug>/", include(annotator_urls)),
    path("projects/<slug:slug>/", include(qualification_urls)),
    path("projects/<slug:slug>/", include(decision_urls)),
    path("projects/<slug:slug>/", include(item_urls)),
    path("projects/<slug:slug>/", include(lead_urls)),
    path("projects/<slug:slug>/", include(settings_urls)),
    path("projects/<slug:slug>/", include(report_urls)),
    *former_paths.urlpatterns,
]
