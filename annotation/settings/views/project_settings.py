"""The settings page of a project, which says for each setting what it does and which items it
affects."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import NON_FIELD_ERRORS
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from annotation import tasks, tasktypes
from annotation.errors import Stale
from annotation.htmx import HtmxRequest
from annotation.labelling import work_order
from annotation.models import Membership, Project, TextFormat
from annotation.projects import access, audit
from annotation.projects.audit import AuditChange, AuditEntry
from annotation.projects.visible_names import check_visible
from annotation.settings import project_settings
from annotation.tasktypes.outcome_rules import RULE_TITLES

MAX_LABELS = 100
MAX_SHOWN = 20
RULE_PREFIX = "rule."
# The first answer to a double click, which says what was changed, is seldom shown.
SAVED_ALREADY = "These settings are saved already."


def _number_field(label: str, help_text: str, least: int = 0, most: int = MAX_LABELS) -> Any:
    return forms.IntegerField(min_value=least, max_value=most, label=label, help_text=help_text)


def _switch_field(label: str, help_text: str) -> Any:
    return forms.BooleanField(required=False, label=label, help_text=help_text)


class SettingsForm(forms.Form):
    """The settings; each help text explains the setting and says what a change applies to."""

    name = forms.CharField(max_length=200, label="Name", validators=[check_visible])
    description = forms.CharField(
        required=False, widget=forms.Textarea({"rows": 2}), label="Description"
    )
    order = forms.ChoiceField(
        choices=[*work_order.ORDER_TITLES.items()],
        label="Order of the items",
        help_text="In random order, the first labels cover all kinds of items, and two items of "
        "one question do not follow each other if others are left. Applies at once.",
    )
    order_field = forms.CharField(
        required=False,
        max_length=80,
        label="Item field that sorts the items",
        help_text="Only used if a field orders the items. Numbers come before words.",
    )
    begun_first = _switch_field(
        "Finish begun items first",
        "With several annotators per item, items that somebody has labelled come before items that "
        "nobody has, so that agreement can be measured early.",
    )
    overlap = _number_field(
        "Annotators per item",
        "How many annotators label each item. Applies at once; existing labels stay.",
        least=1,
    )
    share_percent = _number_field(
        "Double-annotated sample (%)",
        "Random share of items with more annotators, to measure agreement. Applies at once.",
        most=100,
    )
    share_overlap = _number_field(
        "Annotators per item in the sample", "Only used if the share is above 0.", least=1
    )
    disputed_overlap = _number_field(
        "Labels after a disagreement",
        "If annotators disagree, collect up to this many labels, then send to adjudication. 0: "
        "adjudicate at once. A lower number applies at once, a higher one to new disagreements.",
    )
    hold_minutes = _number_field(
        "Reservation time (minutes)",
        "How long an opened item stays reserved. Applies to items opened from now on.",
        least=1,
        most=10_080,
    )
    verify = _switch_field(
        "Verification",
        "Another annotator confirms or contests the labels before they become final. Applies to "
        "items labelled from now on; final labels stay.",
    )
    verify_blind = _switch_field(
        "Blind verification",
        "The verifier answers without seeing the label. An equal answer confirms it, a different "
        "one contests it. Only used with verification; applies at once.",
    )
    blind_first = _switch_field(
        "Blind first",
        "Annotators first see items without the change and say whether there is an error, where, "
        "and how bad it is. Applies to items opened from now on.",
    )
    claim_check = _switch_field(
        "Claim check",
        "Asks for each changed piece whether the claim explains it. Applies to labels from now "
        "on; earlier labels have no answer.",
    )
    expected_effect = _switch_field(
        "Expected effect",
        "Asks how much a good evaluator should deduct. Applies to labels from now on; earlier "
        "labels have no answer.",
    )
    practice_items = _number_field(
        "Items per qualification round",
        "Annotators must pass a round before they get real items. This includes current "
        "annotators, unless you exempt them. 0 turns qualification off. Started rounds keep "
        "their size.",
    )
    practice_pass = _number_field(
        "Pass mark (right answers)", "Only used with qualification rounds. Applies to new rounds."
    )
    probe_every = _number_field(
        "One control item in this many items",
        "About one in this many items is a control item, which has a known answer. Only leads "
        "see the results. 0: no control items. Applies to items opened from now on.",
        most=10_000,
    )
    text_format = forms.ChoiceField(
        choices=TextFormat.choices,
        label="Text format",
        help_text="How texts are shown by default; each person can choose another format.",
    )
    guidelines_field = forms.CharField(
        required=False,
        max_length=80,
        label="Item field that selects the guidelines",
        help_text="For example task or category. Empty: all items have the same guidelines.",
    )

    def __init__(self, project: Project, data: Any = None) -> None:
        initial = {name: getattr(project, name) for name in project_settings.SETTING_NAMES}
        super().__init__(data, initial=initial)
        self.project = project
        task = tasktypes.load_version(project.task_type)
        options = {field.option for field in task.fields}
        for name in {"claim_check", "expected_effect"} - options:
            del self.fields[name]
        if task.blind is None:
            del self.fields["blind_first"]
        self.resolved = task.resolved
        for field in task.resolved:
            self._add_rule(field)

    def _add_rule(self, field: Any) -> None:
        own = RULE_TITLES[field.rule or "majority"]
        choices = [
            ("", f"default of the task type: {own}"),
            *project_settings.allowed_rules(field).items(),
        ]
        self.fields[f"{RULE_PREFIX}{field.name}"] = forms.ChoiceField(
            choices=choices,
            required=False,
            initial=self.project.rules.get(field.name, ""),
            label=f"Aggregation of “{field.title}”",
            help_text="Applies to items labelled from now on; final labels stay.",
        )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if self.data.get("seen") != _count_changes(self.project) and self.has_changed():
            # This error keeps a lead from overwriting another lead's change unknowingly. If the
            # form is sent again, the values are stored. A double click sends it twice.
            self.add_error(
                None, ("Somebody else changed the settings. Check the changes, then save again.")
            )
        if not self.errors:
            for problem in project_settings.find_problems(self.project, self.values()):
                self.add_error(problem.name, problem.text)
        return cleaned

    def values(self) -> dict[str, Any]:
        """The settings by name; `rules` has the rules by field."""
        said = self.cleaned_data
        rules = {field.name: said.get(f"{RULE_PREFIX}{field.name}") for field in self.resolved}
        plain = {name: said[name] for name in project_settings.SETTING_NAMES if name in said}
        return plain | {"rules": {name: rule for name, rule in rules.items() if rule}}

    def groups(self) -> list[tuple[str, list[forms.BoundField]]]:
        """The fields grouped by heading, in the order of the page."""
        rules = tuple(f"{RULE_PREFIX}{field.name}" for field in self.resolved)
        headed = [
            ("The project", ("name", "description")),
            ("Order", ("order", "order_field", "begun_first")),
            ("Labels", ("overlap", "share_percent", "share_overlap", "disputed_overlap",
                        "hold_minutes")),
            ("Aggregation", (*rules, "verify", "verify_blind")),
            ("Questions", ("blind_first", "claim_check", "expected_effect")),
            ("Qualification and control items", ("practice_items", "practice_pass", "probe_every")),
            ("Reading", ("text_format", "guidelines_field")),
        ]  # fmt: skip
        shown = [(title, [self[n] for n in names if n in self.fields]) for title, names in headed]
        return [(title, bound) for title, bound in shown if bound]


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def edit_settings(request: HtmxRequest, slug: str) -> HttpResponse:
    """Show the settings; a POST changes them, or with `look` previews how many items change."""
    lead = access.member_for(request, slug, right="manage")
    if request.method != "POST":
        return _page(request, lead, SettingsForm(lead.project))
    form = SettingsForm(lead.project, request.POST)
    if not form.is_valid():
        # Saving again may undo what somebody else has changed meanwhile.
        is_late = form.errors.keys() == {NON_FIELD_ERRORS}
        reach = project_settings.preview_change(lead.project, form.values()) if is_late else []
        return _page(request, lead, form, status=422, reach=reach)
    if "look" in request.POST:
        return _page(
            request, lead, form, reach=project_settings.preview_change(lead.project, form.values())
        )
    if not form.has_changed():
        messages.success(request, SAVED_ALREADY)
        return redirect("settings", slug=slug)
    try:
        applied = project_settings.apply_change(
            lead.project, access.ensure_membership(lead), form.values(), seen=int(form.data["seen"])
        )
    except Stale as problem:  # somebody else saved since the form was checked
        form.add_error(None, str(problem))
        lead.project.refresh_from_db()
        reach = project_settings.preview_change(lead.project, form.values())
        return _page(request, lead, form, status=422, reach=reach)
    if applied.job:
        tasks.send_resize(applied.job.pk)
    messages.success(request, _describe_result(applied))
    return redirect("settings", slug=slug)


def _page(
    request: HtmxRequest, lead: Membership, form: SettingsForm, status: int = 200, **said: Any
) -> HttpResponse:
    """Render the page, or only the preview of the change for htmx requests."""
    if request.htmx:
        part = {"form": form, **said}
        return render(request, "annotation/settings.html#reach", part, status=status)
    context = {
        "project": lead.project,
        "member": lead,
        "form": form,
        "job": project_settings.unfinished_job(lead.project),
        "changes": _changes(lead.project, form),
        "seen": _count_changes(lead.project),
        **said,
    }
    return render(request, "annotation/settings.html", context, status=status)


def _count_changes(project: Project) -> str:
    """The number of changes of the settings so far; a form sends back the number at the time when
    it was loaded."""
    return str(project_settings.list_changes(project).count())


def _changes(project: Project, form: SettingsForm) -> list[AuditEntry]:
    """The latest changes with old and new values."""
    titles = {name: field.label for name, field in form.fields.items()} | {"rules": "Rules"}
    return [
        AuditEntry(
            event,
            audit.event_actor(event),
            event.kind,
            tuple(
                AuditChange(
                    str(titles.get(name, name)),
                    _describe_value(event.old.get(name)),
                    _describe_value(value),
                )
                for name, value in event.new.items()
            ),
        )
        for event in project_settings.list_changes(project)[:MAX_SHOWN]
    ]


def _describe_value(value: Any) -> str:
    """Describe a value in words; rules are listed by field."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, dict):
        value = "; ".join(f"{name}: {RULE_TITLES.get(rule, rule)}" for name, rule in value.items())
    return "nothing" if value in ("", None) else str(value)


def _describe_result(applied: project_settings.SettingsChange) -> str:
    if not applied.changed:
        return SAVED_ALREADY
    count = len(applied.changed)
    said = f"{count} setting{'s' if count > 1 else ''} changed."
    return f"{said} A worker is updating how many labels each item needs." if applied.job else said
