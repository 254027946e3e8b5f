from django.urls import path

from annotation.accounts.views import keymap, sessions, tokens
from annotation.generation import views
from annotation.importing import views as importing_views
from annotation.items.views import ability_sorting, items, snapshots
from annotation.labelling.views import (
    assignment,
    cases,
    comments,
    control_items,
    human_baseline,
    label_screen,
    my_items,
    qualification,
    side_panel,
    verification,
)
from annotation.projects.views import audit, guidelines, home, invitations, members
from annotation.reports.views import agreement, boards, personal_data
from annotation.settings.views import project_settings, task_type

urlpatterns = [
    path("", home.home, name="home"),
    path("help/", home.manual, name="help"),
    path("patterns/", home.patterns, name="patterns"),
    path("tokens/", tokens.tokens, name="tokens"),
    path("keys/", keymap.keys, name="keys"),
    path("sessions/", sessions.sessions, name="sessions"),
    path("my-data/", personal_data.my_data, name="my-data"),
    path("my-data/file/", personal_data.my_data_file, name="my-data-file"),
    path("audit/", audit.audit_of_site, name="audit-site"),
    path("invitations/<str:invitation>/", invitations.invitation, name="invitation"),
    path("projects/<slug:slug>/", home.project, name="project"),
    path("projects/<slug:slug>/vet/", label_screen.label_screen, name="vet"),
    path("projects/<slug:slug>/vet/label/", label_screen.submit_label, name="vet-label"),
    path("projects/<slug:slug>/vet/correct/", label_screen.submit_correction, name="vet-correct"),
    path("projects/<slug:slug>/vet/undo/", label_screen.undo_label, name="vet-undo"),
    path("projects/<slug:slug>/vet/next/", label_screen.next_ahead, name="vet-next"),
    path("projects/<slug:slug>/vet/reopen/", label_screen.reopen_item, name="vet-reopen"),
    path("projects/<slug:slug>/vet/skip/", label_screen.skip_item, name="vet-skip"),
    path("projects/<slug:slug>/vet/flag/", side_panel.toggle_flag, name="vet-flag"),
    path("projects/<slug:slug>/vet/hold/", side_panel.renew_holds, name="vet-hold"),
    path("projects/<slug:slug>/vet/draft/", side_panel.save_draft, name="vet-draft"),
    path("projects/<slug:slug>/vet/draft/drop/", side_panel.delete_draft, name="vet-draft-drop"),
    path("projects/<slug:slug>/vet/siblings/", side_panel.sibling_list, name="vet-siblings"),
    path(
        "projects/<slug:slug>/vet/guidelines/", side_panel.guidelines_panel, name="vet-guidelines"
    ),
    path("projects/<slug:slug>/vet/piles/", my_items.my_items, name="piles"),
    path("projects/<slug:slug>/pace/", boards.progress, name="pace"),
    path("projects/<slug:slug>/board/", boards.category_board, name="board"),
    path("projects/<slug:slug>/agreement/", agreement.agreement_page, name="agreement"),
    path("projects/<slug:slug>/task/", task_type.edit_task_type, name="task"),
    path("projects/<slug:slug>/task/preview/", task_type.preview_task_type, name="task-preview"),
    path("projects/<slug:slug>/items/", items.items, name="items"),
    path("projects/<slug:slug>/items/<path:key>/", items.item, name="item"),
    path("projects/<slug:slug>/practice/", qualification.own_rounds, name="practice"),
    path("projects/<slug:slug>/practice/people/", qualification.all_rounds, name="practice-people"),
    path("projects/<slug:slug>/known/", control_items.answer_key, name="known"),
    path("projects/<slug:slug>/probes/", control_items.control_results, name="probes"),
    path("projects/<slug:slug>/guidelines/", guidelines.read_guidelines, name="guidelines"),
    path(
        "projects/<slug:slug>/guidelines/edit/", guidelines.edit_guidelines, name="guidelines-edit"
    ),
    path("projects/<slug:slug>/settings/", project_settings.edit_settings, name="settings"),
    path("projects/<slug:slug>/verify/", verification.verify, name="verify"),
    path("projects/<slug:slug>/verify/answer/", verification.submit_verdict, name="verify-answer"),
    path("projects/<slug:slug>/verify/undo/", verification.undo_verdict, name="verify-undo"),
    path("projects/<slug:slug>/adjudicate/", cases.case_list, name="adjudicate"),
    path("projects/<slug:slug>/adjudicate/<path:key>/", cases.case, name="case"),
    path("projects/<slug:slug>/abilities/", ability_sorting.abilities, name="abilities"),
    path("projects/<slug:slug>/assign/", assignment.assign, name="assign"),
    path("projects/<slug:slug>/baseline/", human_baseline.baseline, name="baseline"),
    path("projects/<slug:slug>/baseline/rows.csv", human_baseline.download, name="baseline-rows"),
    path("projects/<slug:slug>/perturb/", views.perturb, name="perturb"),
    path("projects/<slug:slug>/perturb/<int:number>/", views.generation, name="generation"),
    path("projects/<slug:slug>/import/", importing_views.imports, name="imports"),
    path("projects/<slug:slug>/import/<int:number>/", importing_views.import_detail, name="import"),
    path(
        "projects/<slug:slug>/import/<int:number>/cancel/",
        importing_views.cancel_import,
        name="import-cancel",
    ),
    path(
        "projects/<slug:slug>/import/<int:number>/rows/",
        importing_views.rejected_rows,
        name="import-rows",
    ),
    path(
        "projects/<slug:slug>/import/<int:number>/problems.csv",
        importing_views.rejected_problems,
        name="import-problems",
    ),
    path("projects/<slug:slug>/members/", members.people, name="members"),
    path("projects/<slug:slug>/members/anonymise/", personal_data.anonymise, name="anonymise"),
    path("projects/<slug:slug>/members/invite/", members.invite, name="members-invite"),
    path("projects/<slug:slug>/audit/", audit.audit, name="audit"),
    path("projects/<slug:slug>/snapshots/", snapshots.snapshots, name="snapshots"),
    path("projects/<slug:slug>/snapshots/<int:number>/", snapshots.snapshot, name="snapshot"),
    path(
        "projects/<slug:slug>/snapshots/<int:number>/cancel/",
        snapshots.cancel_snapshot,
        name="snapshot-cancel",
    ),
    path("projects/<slug:slug>/comments/", comments.comments, name="comments"),
    path("projects/<slug:slug>/mentions/", comments.mentions, name="mentions"),
]
