"""The page where a lead corrects a rejected row of an import. What is corrected is kept with the
import, over the values of the file, until the file is checked and imported."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from annotation import importing, tasktypes
from annotation.errors import Refused
from annotation.importing import jobs, sources, upload_files
from annotation.importing.column_mapping import item_columns, item_titles
from annotation.importing.item_rows import required_columns
from annotation.items import revisions, taxonomy
from annotation.items.taxonomy import Taxonomy
from annotation.models import Job
from annotation.projects import access
from annotation.tasktypes import TaskType
from formats.rows import BadRow, Row

MAX_LENGTH = 1_000_000


class RowForm(forms.Form):
    """The values of one row, by item column. Only what is changed in it is a correction."""

    # An item column may have the name of another field of the page.
    prefix = "row"

    def __init__(
        self, data: Any, task: TaskType, known: Taxonomy, row: Row, names: list[str]
    ) -> None:
        super().__init__(data)
        titles, texts = dict(item_titles(task)), {text.name for text in task.texts}
        for name in names:
            text = _shown(row.values.get(name))
            label = titles.get(name, name)
            if name == "category" and task.categories:
                offered = [(one.slug, one.name) for one in known.offered]
                self.fields[name] = _choice(label, known.category_called(text), text, offered)
            elif name == "source_ability" and task.categories:
                offered = [(one.slug, one.name) for one in known.sorts()]
                self.fields[name] = _choice(label, known.ability_called(text), text, offered)
            else:
                widget = forms.Textarea({"rows": 4}) if name in texts else forms.TextInput()
                self.fields[name] = forms.CharField(
                    label=label,
                    required=False,
                    strip=False,
                    max_length=MAX_LENGTH,
                    initial=text,
                    widget=widget,
                )
            self.fields[name].widget.attrs["dir"] = "auto"
        self.fields[names[0]].widget.attrs["autofocus"] = True

    def changed(self) -> dict[str, str]:
        """The values that are not those of the row, with the line ends that the row has."""
        before = {name: str(field.initial) for name, field in self.fields.items()}
        sent = {
            name: revisions.match_line_breaks(before[name], value.replace("\r\n", "\n"))
            for name, value in self.cleaned_data.items()
        }
        return {name: value for name, value in sent.items() if value != before[name]}


def _choice(
    label: str, slug: str, word: str, offered: list[tuple[str, str]]
) -> forms.TypedChoiceField:
    """A choice of the names that are offered; first of all, the word of the file if it is none."""
    known = slug in dict(offered)
    as_is = [] if known else [(word, f"{word} (in the file)" if word else "None")]
    return forms.TypedChoiceField(
        label=label, required=False, choices=[*as_is, *offered], initial=slug if known else word
    )


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def can_correct(job: Job) -> bool:
    """True if rows of the import can be corrected on the page. Rows of an encrypted archive are not
    stored unencrypted, and the columns of a study's own layout have a fixed meaning."""
    return (
        jobs.awaits_start(job)
        and not upload_files.is_fixed(job)
        and not upload_files.password_path(job).exists()
    )


def row_url(job: Job, place: dict[str, Any]) -> str:
    """The page of a row that is named as in a report."""
    page = reverse("import-row", args=[job.project.slug, job.result["number"], place["line"]])
    is_archive = job.result["ending"] == ".zip"
    return page + (f"?{urlencode({'file': place['file']})}" if is_archive else "")


def list_left(job: Job, after: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Return the rejected rows of the report that can be corrected and are not yet, or only those
    after a row. A row that could not even be read must be corrected in the file."""
    if not can_correct(job):
        return []
    done = {(one["file"], one["line"]) for one in job.result.get("corrections", ())}
    start = (after["file"], after["line"]) if after else ("", 0)
    return [
        row
        for row in job.result["report"]["problems"]
        if row["field"] and start < (row["file"], row["line"]) not in done
    ]


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def correct_row(request: HttpRequest, slug: str, number: int, line: int) -> HttpResponse:
    """Show a rejected row as a form. A POST keeps the correction and goes to the next such row, or
    drops an earlier correction."""
    member = access.member_for(request, slug, right="manage")
    job = jobs.find_import(member.project, number)
    if job is None or not can_correct(job):
        messages.error(request, "The rows of this import can no longer be corrected here.")
        return redirect("import" if job else "imports", slug, *([number] if job else []))
    task, known = tasktypes.load_task_type(job.project), taxonomy.load_taxonomy(job.project)
    file = request.GET.get("file", job.result["name"])
    row = _find_row(job, file, line)
    if not isinstance(row, Row):
        messages.error(request, "This row cannot be read. Correct it in the file.")
        return redirect("import", slug, number)
    problems = job.result["report"]["problems"]
    told = next((one for one in problems if (one["file"], one["line"]) == (file, line)), None)
    fault = _parse(row, task, known, job)
    names = _names(job, task, fault, told)
    form = RowForm(request.POST if request.method == "POST" else None, task, known, row, names)
    place = {"file": file, "line": line, "row": row.number or line}
    try:
        if "undo" in request.POST:
            jobs.correct_row(job, place, {})
            messages.success(request, "The row is again as it is in the file.")
            return redirect("import", slug, number)
        if request.method == "POST" and form.is_valid():
            changed = Row(row.file, row.line, {**row.values, **form.changed()}, row.number)
            fault = _parse(changed, task, known, job)
            if fault is None:
                if form.changed():
                    key = _shown(changed.values.get("key"))
                    jobs.correct_row(job, {**place, "key": key}, form.changed())
                return redirect(_next_page(request, job, place))
    except Refused as problem:
        messages.error(request, str(problem))
        return redirect("import", slug, number)
    if fault and request.method == "POST":
        form.add_error(fault.field if fault.field in form.fields else None, fault.reason)
    left = list_left(job, place)
    context = {
        "project": job.project,
        "member": member,
        "job": job,
        "form": form,
        "row": place["row"],
        "key": told["key"] if told else _shown(row.values.get("key")),
        "problem": told,
        "fault": fault,
        "fault_title": dict(item_titles(task)).get(fault.field, fault.field) if fault else "",
        "corrected": any(
            (one["file"], one["line"]) == (file, line) for one in job.result.get("corrections", [])
        ),
        "left": left,
        "skip": row_url(job, left[0]) if left else "",
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "annotation/import_row.html", context, status=status)


def _find_row(job: Job, file: str, line: int) -> Row | BadRow | None:
    """Return the row with its corrections so far, under the names of item columns."""
    if not upload_files.uploaded_path(job).exists():
        return None
    inside = upload_files.inner_name(job, file)
    rows = sources.stream_rows(upload_files.build_source(job))
    return next((row for row in rows if (row.file, row.line) == (inside, line)), None)


def _parse(row: Row, task: TaskType, known: Taxonomy, job: Job) -> BadRow | None:
    """Return what is wrong with the row by itself; None if it can become an item."""
    [parsed] = importing.parse_items([row], task, known, accept=job.result["accept"])
    return parsed if isinstance(parsed, BadRow) else None


def _names(
    job: Job, task: TaskType, fault: BadRow | None, told: dict[str, Any] | None
) -> list[str]:
    """The columns of the form: the ones that are wrong, then those of the file, then the others
    that every item needs."""
    chosen = job.result["columns"]
    columns = {column: name for name, column in chosen.items() if column}
    wrong = [fault.field] if fault else []
    wrong += [columns.get(told["field"], told["field"])] if told else []
    used = [name for name in item_columns(task) if chosen.get(name)]
    return [name for name in dict.fromkeys([*wrong, *used, *required_columns(task)]) if name]


def _next_page(request: HttpRequest, job: Job, place: dict[str, Any]) -> str:
    """The page of the next row to correct; after the last one the file is checked again."""
    job.refresh_from_db()
    if after := list_left(job, place) if "next" in request.POST else ():
        return row_url(job, after[0])
    if job.result.get("unchecked"):
        jobs.check_again(job)
    return reverse("import", args=[job.project.slug, job.result["number"]])
