"""Pages of imports for leads: upload, check, import, and download of rejected rows."""

from collections.abc import Mapping
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import FileResponse, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation import tasktypes
from annotation.errors import FieldError, Refused
from annotation.generation import perturbers
from annotation.importing import jobs, preview, receive, row_correction, upload_files
from annotation.importing.column_mapping import item_titles
from annotation.importing.item_rows import required_columns
from annotation.importing.receive import ItemUpload
from annotation.importing.upload_limits import TOO_LARGE_KEY
from annotation.items import taxonomy
from annotation.models import Job, Membership, Project
from annotation.projects import access
from annotation.settings import categories as project_categories
from annotation.tasktypes import TaskType
from formats.readers import list_contents, list_titles

INDEPENDENCE_HELP = (
    "Items from the same question, text or picture are not independent. Without a column, each "
    "item counts as its own question. But if the first items of the project were grouped by "
    "prompt, later items are too."
)
SOURCE_HELP = (
    "Items with the same prompt count as one question. If the file names the question, choose that "
    "column: intervals depend on it."
)


class ColumnsForm(forms.Form):
    """Form to choose the file's column for each item column; an empty choice means none."""

    # An item column may have the name of another field of the form.
    prefix = "columns"
    accept = forms.BooleanField(
        required=False,
        label="Import final labels",
        help_text=(
            "For published data: the final label comes from the category, or from columns named "
            "like the fields of the task. Annotators do not get these items."
        ),
    )

    def __init__(self, data: Any, task: TaskType, job: Job) -> None:
        super().__init__(data)
        found, known = upload_files.list_choosable(job), taxonomy.load_taxonomy(job.project)
        self._needed = required_columns(task)
        self.names = item_titles(task, known) if found else {}
        choices = [("", "not in the file"), *((name, name) for name in found)]
        for name, title in self.names.items():
            self.fields[f"of-{name}"] = forms.ChoiceField(
                label=title,
                required=name in self._needed,
                choices=choices,
                error_messages={"required": "Every item needs this. Choose a column."},
            )
        if "of-cluster" in self.fields:
            self.fields["of-cluster"].help_text = INDEPENDENCE_HELP if task.rates else SOURCE_HELP

    @classmethod
    def from_job(cls, task: TaskType, job: Job) -> "ColumnsForm":
        """Return an unbound form with the current choices: errors appear only after submission."""
        form = cls(None, task, job)
        chosen = job.result["columns"]
        form.initial = {f"of-{name}": column for name, column in chosen.items()}
        form.initial["accept"] = job.result["accept"]
        return form

    def chosen(self) -> dict[str, str]:
        """The chosen file column for each item column; "" for no column."""
        return {name: self.cleaned_data[f"of-{name}"] for name in self.names}

    @property
    def needed(self) -> list[Any]:
        """The bound fields of the required columns."""
        return [self[f"of-{name}"] for name in self.names if name in self._needed]

    @property
    def others(self) -> list[Any]:
        """The bound fields of the optional columns."""
        return [self[f"of-{name}"] for name in self.names if name not in self._needed]


MAX_NAME = 80
# So alike is a word to the name of a category that it is suggested.
SIMILAR = 0.8
NEW_GROUP = "Ungrouped"
"""The name of the group of new categories, where the project has no group."""


class UploadForm(forms.Form):
    file = forms.FileField(
        label="File",
        widget=forms.FileInput({"accept": ",".join(upload_files.list_suffixes())}),
        help_text=f"{list_titles()}, or a zip of these. Choose a file, or drop it here.",
        error_messages={"required": "Choose a file.", "empty": "The file is empty."},
    )
    layout = forms.ChoiceField(required=False, label="Content")
    password = forms.CharField(
        required=False,
        max_length=200,
        strip=False,
        widget=forms.PasswordInput({"autocomplete": "off"}),
        label="Password",
        help_text="Only for an encrypted archive.",
    )

    def __init__(self, project: Project, *args: Any) -> None:
        super().__init__(*args)
        layout: Any = self.fields["layout"]
        layout.choices = [("", "Detect automatically"), *_list_contents(project)]


def _list_contents(project: Project) -> list[tuple[str, str]]:
    """The formats of the studies' files, each named like the study's template of categories. They
    are detected everywhere, but only offered where the project has some of the study's groups."""
    own = taxonomy.load_taxonomy(project).ability_names()
    studies = taxonomy.load_templates()
    return [
        (form, content)
        for form, content in list_contents()
        if any(group["slug"] in own for group in studies[form]["ability"])
    ]


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def imports(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a form to upload a file, and the imports so far. A POST uploads a file."""
    member = access.member_for(request, slug, right="manage")
    if request.method != "POST":
        return _list(request, member, UploadForm(member.project))
    form = UploadForm(member.project, request.POST, request.FILES)
    if request.META.get(TOO_LARGE_KEY):
        form.errors["file"] = form.error_class([str(receive.too_large_error())])
    elif form.is_valid():
        try:
            sent, now = ItemUpload(**form.cleaned_data), timezone.now()
            job = receive.receive_file(access.ensure_membership(member), sent, now)
        except FieldError as error:
            form.add_error("file", str(error))
        else:
            return redirect("import", slug, job.result["number"])
    return _list(request, member, form, status=422)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def import_detail(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Show the state of an import. A POST chooses its columns or, after the check, starts the
    import."""
    member = access.member_for(request, slug, right="manage")
    job = jobs.find_import(member.project, number)
    if job is None:
        return _render_gone(request, slug, number)
    if request.method != "POST":
        return _page(request, member, job)
    task = tasktypes.load_version(member.project.task_type)
    form = ColumnsForm(request.POST, task, job)
    try:
        if "import" in request.POST:
            shown = request.POST.get("preview", "")
            jobs.start_import(job, access.ensure_membership(member), shown=shown)
        elif "sort" in request.POST:
            try:
                _sort_words(request, access.ensure_membership(member), job)
            except FieldError as problem:
                messages.error(request, str(problem))
                return _page(request, member, job, sent=request.POST, status=422)
        elif "check" in request.POST:
            jobs.check_again(job)
        elif not form.is_valid():
            return _page(request, member, job, form, status=422)
        else:
            jobs.choose_columns(job, form.chosen(), accept=form.cleaned_data["accept"])
    except Refused as problem:
        messages.error(request, str(problem))
    return redirect("import", slug, number)


def _sort_words(request: HttpRequest, member: Membership, job: Job) -> None:
    """Give the words of the file that are no category the ones that the lead chose, adding new
    ones; then the file is checked again. Raises `Refused`."""
    project, definition = member.project, member.project.taxonomy.definition
    meant: dict[str, str] = {}
    added: dict[str, str] = {}
    for place, asked in enumerate(_list_words(job)):
        kind, _, slug = request.POST.get(f"word-{place}", "").partition(":")
        if kind == "new":
            effect = request.POST.get(f"effect-{place}", "")
            definition, slug = _add_category(definition, asked["word"], slug, effect)
            added.setdefault(slug, asked["word"])
        if kind in ("as", "new"):
            meant |= dict.fromkeys(asked["words"], slug)
        else:
            chosen = job.result.get("categories", {})
            meant |= {word: "" for word in asked["words"] if word in chosen}
    if not meant:
        raise FieldError("Choose a category for at least one of the words.")
    if added:
        note = f"Added {', '.join(added.values())}, from {job.result['name']}"
        project_categories.save(
            project, definition, member=member, shown=request.POST.get("shown", ""), note=note[:200]
        )
    jobs.check_again(job, categories=meant)


def _list_words(job: Job, sent: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """Return the words of the file that are no category: those without a meaning, with their number
    of rows and a category with a similar name, then those whose meaning somebody chose. Words that
    differ in case, spaces and hyphens alone are one. `sent` has the choices of a form."""
    known = taxonomy.load_taxonomy(job.project)
    names = {taxonomy.plain_word(one.name): one.slug for one in known.offered}
    found: dict[str, dict[str, Any]] = {}
    for one in (job.result.get("report") or {}).get("unknown", ()):
        plain = taxonomy.plain_word(one["word"])
        alike = get_close_matches(plain, names, n=1, cutoff=SIMILAR)
        choice = f"as:{names[alike[0]]}" if alike else ""
        fresh = {"word": one["word"], "words": [], "rows": 0, "choice": choice}
        entry = found.setdefault(plain or one["word"], fresh)
        entry["words"].append(one["word"])
        entry["rows"] += one["rows"]
    chosen = [
        {
            "word": word,
            "words": [word],
            "choice": f"as:{slug}",
            "stored": category and category.expected_effect,
        }
        for word, slug in job.result.get("categories", {}).items()
        for category in [known.find(slug)]
    ]
    words = [*found.values(), *chosen]
    for place, asked in enumerate(words):
        asked["choice"] = (sent or {}).get(f"word-{place}", asked["choice"])
        asked["effect"] = (sent or {}).get(f"effect-{place}", "")
    return words


def _add_category(
    definition: dict[str, Any], name: str, group: str, effect: str
) -> tuple[dict[str, Any], str]:
    """Return the definition with a category of this name, and its slug; a retired one is restored
    as it was. Without a group, it belongs to the first one, or to a new one; without an expected
    effect, it has a penalty. Raises `FieldError`."""
    if len(name) > MAX_NAME:
        raise FieldError(f"“{name[:MAX_NAME]}…” is too long for a name. Map it to a category.")
    known = taxonomy.parse_definition(definition)
    if there := known.find(known.category_called(name)):
        # It is retired, or the rows would be good.
        values = {"name": there.name, "retired": False, "merged_into": ""}
        return project_categories.put(definition, "category", there.slug, values)
    if not group and definition.get("ability"):
        group = definition["ability"][0]["slug"]
    elif not group:
        definition, group = project_categories.put(definition, "ability", "", {"name": NEW_GROUP})
    values = {"name": name, "ability": group, "expected_effect": effect or taxonomy.EFFECTS[0]}
    return project_categories.put(definition, "category", "", values)


@require_POST
@login_required
def cancel_import(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Cancel an import and return to its page, with a message if it had already finished. Only for
    leads."""
    member = access.member_for(request, slug, right="manage")
    job = jobs.find_import(member.project, number)
    if job is None:
        return _render_gone(request, slug, number)
    if not jobs.cancel_import(job, access.ensure_membership(member), timezone.now()):
        messages.error(request, f"Import {number} had already finished.")
    return redirect("import", slug, number)


@require_GET
@login_required
def rejected_rows(request: HttpRequest, slug: str, number: int) -> HttpResponseBase:
    """Download the rejected rows, unchanged, to correct them and upload them again."""
    member = access.member_for(request, slug, right="manage")
    job = jobs.find_import(member.project, number)
    if job is None:
        return _render_gone(request, slug, number)
    stem = Path(job.result["name"]).stem
    name = f"{stem}-to-mend{job.result['ending']}"
    return _file(request, job, upload_files.rejected_rows_path(job), name)


@require_GET
@login_required
def rejected_problems(request: HttpRequest, slug: str, number: int) -> HttpResponseBase:
    """Download a table of all rejected rows, with line, field and reason."""
    member = access.member_for(request, slug, right="manage")
    job = jobs.find_import(member.project, number)
    if job is None:
        return _render_gone(request, slug, number)
    return _file(
        request, job, upload_files.problems_path(job), f"{slug}-import-{number}-problems.csv"
    )


def _render_gone(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    messages.error(request, f"Import {number} does not exist. Upload its file again.")
    return redirect("imports", slug)


def _file(request: HttpRequest, job: Job, path: Path, name: str) -> HttpResponseBase:
    if not path.exists():
        messages.error(request, "This file has been deleted. Upload the data again to recreate it.")
        return redirect("import", job.project.slug, job.result["number"])
    return FileResponse(path.open("rb"), as_attachment=True, filename=name)


def _list(
    request: HttpRequest, member: Membership, form: UploadForm, status: int = 200
) -> HttpResponse:
    task = tasktypes.load_version(member.project.task_type)
    titles = item_titles(task, taxonomy.load_taxonomy(member.project))
    found = list(jobs.list_imports(member.project))
    context = {
        "project": member.project,
        "member": member,
        "form": form,
        "task": task,
        "perturbs": perturbers.is_suitable(member.project),
        "needed": [(name, titles[name]) for name in required_columns(task)],
        "jobs": found,
        "busy": any(_busy(job) for job in found),
        "days": jobs.FILE_RETENTION.days,
    }
    template = "annotation/imports.html" + ("#jobs" if request.headers.get("HX-Request") else "")
    return render(request, template, context, status=status)


def _page(
    request: HttpRequest,
    member: Membership,
    job: Job,
    form: ColumnsForm | None = None,
    sent: Mapping[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "project": member.project,
        "member": member,
        "job": job,
        "said": job.result,
        "busy": _busy(job),
        "checks": jobs.count_checks(job),
        "repeats": _is_unchanged(job),
        **_corrections(job),
    }
    if request.headers.get("HX-Request"):
        return render(request, "annotation/import.html#state", context)
    task = tasktypes.load_version(member.project.task_type)
    known, chosen = taxonomy.load_taxonomy(job.project), job.result["columns"]
    context |= {
        "task": task,
        "form": form or ColumnsForm.from_job(task, job),
        "open": not job.finished_at and job.result["step"] != upload_files.STORE,
        "missing": [
            item_titles(task, known)[name]
            for name in preview.missing_columns(task, upload_files.build_source(job), chosen)
        ],
        "shown": _preview_items(job, task),
        "rest": _unused_columns(job),
        "kinds": known.category_names(),
        "words": _list_words(job, sent),
        "known": known,
        "effects": project_categories.EFFECT_TITLES,
        "version": member.project.taxonomy_id,
    }
    return render(request, "annotation/import.html", context, status=status)


def _corrections(job: Job) -> dict[str, Any]:
    """Return the rejected rows, each with the page where it can be corrected, and the rows that
    were corrected so far."""
    report, left = job.result.get("report") or {}, row_correction.list_left(job)
    url = partial(row_correction.row_url, job)
    return {
        "problems": [
            {**row, "page": url(row) if row in left else ""} for row in report.get("problems", ())
        ],
        "left": [url(row) for row in left],
        "corrected": [
            {**one, "page": url(one)} for one in upload_files.list_corrections(job) if one["values"]
        ],
        "unchecked": jobs.is_unchecked(job),
        "can_correct": row_correction.can_correct(job),
    }


def _busy(job: Job) -> bool:
    """True if a worker is running the job or will run it."""
    return not job.finished_at and job.result["step"] in {upload_files.CHECK, upload_files.STORE}


def _is_unchanged(job: Job) -> bool:
    """True if all rows of the file are already in the project, unchanged."""
    report = job.result.get("report")
    return bool(report and report["rows"] and report["unchanged"] == report["rows"])


def _preview_items(job: Job, task: tasktypes.TaskType) -> list[preview.PreviewItem] | None:
    there = not job.finished_at and upload_files.uploaded_path(job).exists()
    known = taxonomy.load_taxonomy(job.project)
    return preview.preview_items(task, known, upload_files.build_source(job)) if there else []


def _unused_columns(job: Job) -> list[str]:
    """Return the file columns that were not chosen; they are stored as fields of each item."""
    chosen = set(job.result["columns"].values())
    found = upload_files.list_choosable(job)
    return [name for name in found if name not in chosen and "." not in name]
