"""The page where leads edit the task type: as a form or as text, with a preview, the versions and
their diff."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from annotation import tasktypes
from annotation.errors import Stale
from annotation.htmx import HtmxRequest
from annotation.items.diffing import difference
from annotation.models import Item, Membership, Project, TaskTypeVersion
from annotation.projects import access
from annotation.tasktypes import form_entries, toml_text, versions
from annotation.tasktypes.fields import FIELD_KINDS
from annotation.tasktypes.versions import ParsedSource


class SourceForm(forms.Form):
    """The TOML text, and the id of the version that the page showed."""

    source = forms.CharField(strip=False, required=False)
    shown = forms.IntegerField(min_value=1, max_value=2**63 - 1, required=False)


class VersionsForm(forms.Form):
    """The ids of the versions to load or to compare."""

    use = forms.IntegerField(min_value=1, max_value=2**63 - 1, required=False)
    old = forms.IntegerField(min_value=1, max_value=2**63 - 1, required=False)
    new = forms.IntegerField(min_value=1, max_value=2**63 - 1, required=False)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def edit_task_type(request: HttpRequest, slug: str) -> HttpResponse:
    """The task type of the project, as a form or with `?tab=toml` as text. A POST stores it as a
    new version, or with `do` shows the form after a change of its lists."""
    member = access.member_for(request, slug, right="manage")
    if request.method == "POST" and "do" in request.POST:
        return _page(request, member, _posted_source(request, member.project))
    if request.method == "POST":
        return _save_version(request, member)
    return _page(request, member, _initial_source(request, member.project))


@require_POST
@never_cache
@login_required
def preview_task_type(request: HtmxRequest, slug: str) -> HttpResponse:
    """The form as annotators would see it, or the problems of the text; htmx requests get only the
    preview."""
    member = access.member_for(request, slug, right="manage")
    adapted = _posted_source(request, member.project)
    if not request.htmx:
        return _page(request, member, adapted)
    context = _preview_context(member.project, adapted)
    context["parts"] = "form" in request.POST
    return render(request, "annotation/task.html#preview", context)


def _initial_source(request: HttpRequest, project: Project) -> ParsedSource:
    """The text of the current version, or of the earlier version that `?use=` names."""
    wanted = _usable_data(VersionsForm(request.GET)).get("use")
    version = versions.find_version(project, wanted) if wanted else None
    return versions.parse_source(project, versions.version_source(version or project.task_type))


def _posted_source(request: HttpRequest, project: Project) -> ParsedSource:
    """The text that was sent, with what was typed in the form and the change of its lists."""
    source = str(_usable_data(SourceForm(request.POST)).get("source", ""))
    adapted = versions.parse_source(project, source)
    if "form" not in request.POST or not adapted.definition:
        return adapted
    definition = form_entries.read_entries(adapted.definition, request.POST)
    definition = form_entries.change_lists(definition, request.POST.get("do", ""))
    if definition == adapted.definition:
        return adapted
    return versions.parse_source(project, toml_text.write_definition(definition))


def _form_parts(definition: dict[str, Any]) -> dict[str, Any]:
    """The entries of the form, for its template."""
    fields = [
        {
            **field,
            "path": f"fields.{number}",
            "asks_for": _asks_for(field.get("kind", "")),
            "entries": list(form_entries.list_field(number, field)),
            "choices": [
                {**choice, "path": path, "entries": list(form_entries.list_choice(path, choice))}
                for path, choice in form_entries.list_choices(number, field)
            ],
        }
        for number, field in enumerate(definition.get("fields", []))
    ]
    new = [(kind, _asks_for(kind).capitalize()) for kind in form_entries.NEW_KINDS]
    return {"head": list(form_entries.list_head(definition)), "fields": fields, "new": new}


def _asks_for(kind: str) -> str:
    return FIELD_KINDS[kind].asks_for.partition(";")[0] if kind in FIELD_KINDS else kind


def _save_version(request: HttpRequest, member: Membership) -> HttpResponse:
    form = _usable_data(SourceForm(request.POST))
    project = member.project
    adapted = _posted_source(request, project)
    if adapted.task is None:
        return _page(request, member, adapted, status=422)
    agreed = tasktypes.digest_definition(adapted.definition)
    lost = versions.find_lost_answers(project, adapted.task)
    if lost and request.POST.get("save-anyway") != agreed:
        return _page(request, member, adapted, status=422, lost=lost, agreed=agreed)
    try:
        version = versions.save_version(
            project, adapted, member=access.ensure_membership(member), shown=form.get("shown") or 0
        )
    except Stale as problem:
        return _page(request, member, adapted, status=409, stale=str(problem))
    said = f"Saved as {version}. It applies to items opened from now on." if version else ""
    messages.success(request, said or "No changes: this is the current version.")
    return redirect("task", slug=project.slug)


def _page(
    request: HttpRequest,
    member: Membership,
    adapted: ParsedSource,
    *,
    status: int = 200,
    **said: Any,
) -> HttpResponse:
    project = member.project
    context = {
        "project": project,
        "member": member,
        "current": project.task_type,
        "versions": versions.project_versions(project),
        "asked_for": {name: kind.asks_for for name, kind in FIELD_KINDS.items()},
        "has_comments": any(line.startswith("#") for line in adapted.source.splitlines()),
        "parts": _form_parts(adapted.definition) if _is_form(request, adapted) else None,
        **_comparison_context(request, project),
        **_preview_context(project, adapted),
        **said,
    }
    return render(request, "annotation/task.html", context, status=status)


def _is_form(request: HttpRequest, adapted: ParsedSource) -> bool:
    """True if the page shows the form: by default, unless the text cannot be read."""
    if request.method == "POST":
        return "form" in request.POST and bool(adapted.definition)
    return request.GET.get("tab") != "toml" and bool(adapted.definition)


def _preview_context(project: Project, adapted: ParsedSource) -> dict[str, Any]:
    """The template context of the preview: the enabled fields, with an item of the project as an
    example."""
    context: dict[str, Any] = {"project": project, "adapted": adapted}
    if adapted.task is None:
        return context
    task = adapted.task.with_switches(tasktypes.enabled_switches(project))
    item = Item.objects.in_project(project).first()
    texts = item.revision().texts if item else {}
    shown = [(text, texts.get(text.name)) for text in task.texts]
    return context | {"task": task, "item": item, "shown": shown, "texts": texts}


def _comparison_context(request: HttpRequest, project: Project) -> dict[str, Any]:
    """The template context of a comparison: the two versions in the query string and the
    differences of their texts; {} if a version is unknown."""
    wanted = _usable_data(VersionsForm(request.GET))
    known = {version.pk: version for version in versions.project_versions(project)}
    old, new = known.get(wanted.get("old") or 0), known.get(wanted.get("new") or 0)
    if not old or not new:
        return {}
    return {"old": old, "new": new, "compared": _difference(old, new)}


def _difference(old: TaskTypeVersion, new: TaskTypeVersion) -> difference.Difference:
    return difference.compare(versions.version_source(old), versions.version_source(new))


def _usable_data(form: forms.Form) -> dict[str, Any]:
    """The valid fields of the form; invalid fields are ignored, since people may also type the
    URL."""
    form.is_valid()
    return form.cleaned_data
