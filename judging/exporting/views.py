"""Pages to export tables of a project as files."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import FileResponse, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation import tasktypes
from annotation.errors import FieldError
from annotation.items import taxonomy
from annotation.items.filters import ItemPageFilter
from annotation.jobs import job_queue
from annotation.models import Item, Job, Membership, Project, Snapshot
from annotation.projects import access
from annotation.tasktypes import versions
from formats import fbi
from formats.writers import FBI, FILE_FORMATS
from judging.exporting import dataset_card, jobs
from judging.exporting.rows import ExportRequest
from judging.exporting.tables import FORMAT_HINTS, TABLE_HINTS


class ExportForm(forms.Form):
    table = forms.ChoiceField()
    format = forms.ChoiceField(
        help_text="csv and tsv put an apostrophe before text that a spreadsheet would run as a "
        "formula; jsonl and parquet keep every text unchanged."
    )
    snapshot = forms.ChoiceField(
        required=False,
        label="As of",
        help_text="Current items, or the items of a snapshot. A snapshot is exported whole, "
        "without filters.",
    )
    licence = forms.ChoiceField(
        required=False,
        help_text="The licence named in the data card (format hub).",
    )
    with_control = forms.BooleanField(
        required=False,
        label="Include control and qualification items",
        help_text="For the table of items. Whoever has the file then knows which items these are, "
        "and their correct answers.",
    )
    canary = forms.BooleanField(
        required=False,
        label="Mark every row as test data",
        help_text="Adds a column with a request not to train on the data and a unique string. A "
        "model that knows the string has seen the data.",
    )

    encrypt = forms.BooleanField(
        required=False,
        label="Encrypt the file",
        help_text="Creates a zip with a generated password (AES-256, opens with 7-Zip). Only you "
        "see the password here, until the file is deleted.",
    )

    def __init__(
        self,
        *args: Any,
        tables: Iterable[str],
        formats: Iterable[str],
        snapshots: Iterable[str],
        licences: Iterable[tuple[str, str]],
        **values: Any,
    ) -> None:
        """`snapshots` are names. If `tables` lacks the table of items, the fields that only apply
        to items are removed."""
        super().__init__(*args, **values)
        tables = list(tables)
        offered = {
            "table": [(one, _label_with_hint(one, TABLE_HINTS)) for one in tables],
            "format": [(one, _label_with_hint(one, FORMAT_HINTS)) for one in formats],
            "snapshot": [("", "now"), *((name, name) for name in snapshots)],
            "licence": list(licences),
        }
        for name, choices in offered.items():
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = choices
        if "items" not in tables:
            for name in ("snapshot", "licence", "with_control"):
                del self.fields[name]


def _label_with_hint(name: str, words: Mapping[str, str]) -> str:
    return f"{name}: {words[name]}" if name in words else name


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def exports(request: HttpRequest, slug: str) -> HttpResponse:
    """The list of exports; POST requests one."""
    member = access.member_for(request, slug, right="results")
    asked = request.method == "POST"
    filters = _build_filters(request, member)
    form = _build_form(request, member)
    if asked and form.is_valid() and filters.is_valid():
        wish = _build_request(form.cleaned_data, filters)
        try:
            jobs.enqueue(member.project, access.ensure_membership(member), wish)
        except FieldError as error:
            form.add_error(error.field, str(error))
        else:
            messages.info(request, "The export is being made. Its file is in the list below.")
            return redirect("exports", slug)
    found = list(jobs.list_exports(member))
    context = {
        "project": member.project,
        "member": member,
        "form": form,
        "filters": filters.form,
        "jobs": [_export_line(job, member) for job in found],
        "busy": any(job.finished_at is None for job in found),
        "days": jobs.RETENTION.days,
    }
    template = "judging/exports.html" + ("#jobs" if request.headers.get("HX-Request") else "")
    return render(request, template, context, status=422 if asked else 200)


@require_GET
@login_required
def download_export(request: HttpRequest, slug: str, number: int) -> HttpResponseBase:
    """The file of an export, until it expires."""
    member = access.member_for(request, slug, right="results")
    job = jobs.list_exports(member).filter(result__number=number).first()
    if job is None or not jobs.can_download(job, timezone.now()):
        messages.error(request, f"Export {number} is no longer here. Create it again.")
        return redirect("exports", slug)
    name = f"{slug}-{job.result['table']}-{number}{jobs.get_path(job).suffix}"
    return FileResponse(jobs.get_path(job).open("rb"), as_attachment=True, filename=name)


@require_POST
@login_required
def cancel_export(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Cancel an export and go back to the list, with a message if it had finished. Unknown numbers
    and tables that the member may not export are ignored."""
    member = access.member_for(request, slug, right="results")
    job = jobs.list_exports(member).filter(result__number=number).first()
    if job and not job_queue.cancel_job(job, member):
        messages.error(request, f"Export {number} finished before it could be cancelled.")
    return redirect("exports", slug)


def _export_line(job: Job, member: Membership) -> tuple[Job, bool, str, int]:
    """Return an export for the list, whether its file exists, its password if the member may see
    it, and the number of items for which the layout of study 000 has no place.
    """
    there = jobs.can_download(job, timezone.now())
    # Items may come or go between counting and reading.
    left_out = max(0, (job.total or 0) - job.done) if job.result["form"] == FBI else 0
    return job, there, jobs.get_password(job, member), left_out


def _build_form(request: HttpRequest, member: Membership) -> ExportForm:
    made = Snapshot.objects.in_project(member.project).completed()
    return ExportForm(
        request.POST if request.method == "POST" else None,
        tables=jobs.list_tables(member),
        formats=_list_formats(member.project),
        snapshots=[snapshot.name for snapshot in made],
        licences=dataset_card.LICENCES.items(),
        initial={"encrypt": member.project.sealed},
    )


def _list_formats(project: Project) -> list[str]:
    """The formats of files. The layout of study 000 has no place for other categories."""
    texts = [text.name for text in tasktypes.load_version(project.task_type).texts]
    own = taxonomy.load_taxonomy(project)
    fits = fbi.can_hold(texts, own.ability_names(), own.category_names())
    return [form for form in FILE_FORMATS if fits or form != FBI]


def _build_filters(request: HttpRequest, member: Membership) -> ItemPageFilter:
    task = tasktypes.load_version(member.project.task_type)
    people = Membership.objects.in_project(member.project).who_label()
    return ItemPageFilter(
        request.POST if request.method == "POST" else request.GET,
        Item.objects.in_project(member.project),
        former=versions.former_choices(member.project),
        people=[person.alias for person in people],
        task=task,
        categories=taxonomy.load_taxonomy(member.project) if task.categories else None,
    )


def _build_request(asked: dict[str, Any], filters: ItemPageFilter) -> ExportRequest:
    data: dict[str, Any] = filters.data
    given = {name: str(data[name]) for name in filters.form.fields if data.get(name)}
    narrowed = given if asked["table"] == "items" else {}
    of_items: dict[str, Any] = {name: asked.get(name, "") for name in ("snapshot", "licence")}
    of_items |= {name: asked.get(name, False) for name in ("encrypt", "with_control")}
    return ExportRequest(asked["table"], asked["format"], narrowed, asked["canary"], **of_items)
