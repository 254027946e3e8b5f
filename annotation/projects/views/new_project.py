"""The pages where projects are created, archived and restored."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotation import tasktypes
from annotation.errors import FieldError
from annotation.items import taxonomy
from annotation.models import Account, Project
from annotation.projects import access, creation
from annotation.projects.visible_names import check_visible
from annotation.settings.project_settings import SETTING_NAMES
from annotation.tasktypes import form_entries, toml_text, versions


class NewProjectForm(forms.Form):
    """The form of a new project."""

    name = forms.CharField(
        max_length=200,
        validators=[check_visible],
        help_text="As people see it; it can be changed later.",
    )
    description = forms.CharField(
        required=False, max_length=2_000, widget=forms.Textarea({"rows": 2})
    )
    task_type = forms.ChoiceField(label="Task type", widget=forms.RadioSelect)
    empty_rubric = forms.BooleanField(
        required=False,
        label="Begin with an empty rubric",
        help_text="One criterion instead of the example of study 002. You write your own on the "
        "page Task type.",
    )
    categories = forms.ChoiceField(
        label="Categories of the items",
        choices=lambda: [*taxonomy.template_titles().items()],
        widget=forms.RadioSelect,
        initial="fbi",
    )
    like = forms.ModelChoiceField(
        label="Or the same as another project",
        queryset=Project.objects.none(),
        to_field_name="slug",
        required=False,
        empty_label="No",
        help_text="Task type, categories and settings are then those of that project, whatever is "
        "chosen above.",
    )

    def clean_name(self) -> str:
        """Refuse the name of a project that the person sees: nobody could tell the two apart."""
        name = " ".join(str(self.cleaned_data["name"]).split())
        if self._seen.filter(name__iexact=name).exists():
            raise forms.ValidationError(creation.NAME_TAKEN)
        return name

    def __init__(self, data: Any, account: Account) -> None:
        super().__init__(data)
        self._seen = Project.objects.visible_to(account)
        definitions = tasktypes.load_definitions()
        tasks = {slug: tasktypes.parse_definition(one) for slug, one in definitions.items()}
        # What the form asks besides depends on the task type.
        self.with_categories = {slug for slug, task in tasks.items() if task.categories}
        self.rubrics = {slug for slug, one in definitions.items() if form_entries.is_rubric(one)}
        task_type: Any = self.fields["task_type"]
        task_type.choices = [
            (slug, f"{task.title}: {task.question}" if task.question else task.title)
            for slug, task in tasks.items()
        ]
        task_type.initial = "perturbation-vetting"
        like: Any = self.fields["like"]
        like.queryset = Project.objects.led_by(account).select_related("task_type", "taxonomy")
        if not like.queryset.exists():
            del self.fields["like"]


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def new_project(request: HttpRequest) -> HttpResponse:
    """The form of a new project; a POST creates it, with the person as its lead."""
    account = access.require_project_creator(request)
    form = NewProjectForm(request.POST if request.method == "POST" else None, account)
    if request.method == "POST" and form.is_valid():
        said = form.cleaned_data
        try:
            project = creation.create_led_project(
                account, said["name"], description=said["description"], **_begin_with(said)
            )
        except FieldError as error:
            form.add_error("name", str(error))
        else:
            if said["empty_rubric"] and not said.get("like"):
                _empty_rubric(project)
            messages.success(request, f"{project.name} is created, and you are its lead.")
            return redirect("project", slug=project.slug)
    status = 422 if form.errors else 200
    return render(request, "annotation/new_project.html", {"form": form}, status=status)


def _empty_rubric(project: Project) -> None:
    """Replace the criteria of a rubric by one to be edited; other task types stay as they are."""
    definition = project.task_type.definition
    if not form_entries.is_rubric(definition):
        return
    text = toml_text.write_definition(form_entries.without_criteria(definition))
    lead = project.members.get()
    shown = project.task_type_id
    versions.save_version(project, versions.parse_source(project, text), member=lead, shown=shown)


def _begin_with(said: Mapping[str, Any]) -> dict[str, Any]:
    """The task type, categories and settings of the new project: those of another one, or as
    chosen."""
    if like := said.get("like"):
        copied = [name for name in SETTING_NAMES if name not in ("name", "description")]
        settings = {name: getattr(like, name) for name in copied}
        return {**settings, "version": like.task_type, "taxonomy": like.taxonomy}
    template = taxonomy.load_templates()[said["categories"]]
    return {"task_type": said["task_type"], "taxonomy": creation.store_taxonomy(template)}


@require_safe
@login_required
def archived(request: HttpRequest) -> HttpResponse:
    """The archived projects that the person may restore."""
    assert isinstance(request.user, Account)
    context = {"projects": Project.objects.archived_of(request.user)}
    return render(request, "annotation/archived.html", context)


@require_POST
@login_required
def archive(request: HttpRequest, slug: str) -> HttpResponse:
    """Archive a project."""
    member = access.ensure_membership(access.member_for(request, slug, right="manage"))
    creation.archive_project(member, timezone.now())
    messages.success(request, f"{member.project.name} is archived. Nothing was deleted.")
    return redirect("archived")


@require_POST
@login_required
def restore(request: HttpRequest, slug: str) -> HttpResponse:
    """Restore an archived project."""
    member = access.ensure_membership(access.archived_lead(request, slug))
    creation.restore_project(member)
    messages.success(request, f"{member.project.name} is back.")
    return redirect("project", slug=slug)
