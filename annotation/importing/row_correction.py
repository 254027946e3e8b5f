"""The page where a lead corrects a rejected row of an import. What is corrected is kept with the
import, over the values of the file, until the file is checked and imported."""

import json
from collections.abc import Iterable
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
from annotation.errors import Refused, Stale
from annotation.importing import jobs, upload_files
from annotation.importing.column_mapping import item_columns, item_titles
from annotation.importing.item_rows import required_columns
from annotation.items import revisions, taxonomy, text_digest
from annotation.items.taxonomy import Taxonomy
from annotation.models import Job
from annotation.projects import access
from annotation.tasktypes import TaskType
from formats.rows import BadRow, Row

Place = dict[str, Any]
"""What names a row in a report: its `file`, its `line`, and what people see of it."""


class RowForm(forms.Form):
    """The values of a row, by item column. Only those that differ from the file's are a
    correction."""

    # An item column may have the name of another field of the page.
    prefix = "row"

    def __init__(
        self,
        data: Any,
        task: TaskType,
        known: Taxonomy,
        row: Row,
        corrected: dict[str, str],
        names: list[str],
    ) -> None:
        super().__init__(data)
        self._row, self._wrong = row, names[0]
        titles, texts = item_titles(task, known), {text.name for text in task.texts}
        lookups = {
            "category": (known.category_called, known.offered),
            "source_ability": (known.ability_called, known.sorts),
        }
        for name in names:
            text, label = corrected.get(name, as_text(row.values.get(name))), titles.get(name, name)
            if name in lookups and task.categories:
                find, offered = lookups[name]
                self.fields[name] = _choice(label, find(text), text, offered)
            else:
                # A line would lose its line breaks.
                is_long = name in texts or "\n" in text or "\r" in text
                self.fields[name] = forms.CharField(
                    label=label,
                    required=False,
                    strip=False,
                    initial=text,
                    widget=forms.Textarea({"rows": 4}) if is_long else forms.TextInput(),
                )
            self.fields[name].widget.attrs["dir"] = "auto"
        self.fields[names[0]].widget.attrs["autofocus"] = True

    def add_faults(self, faults: Iterable[BadRow]) -> None:
        """Say at each field what is wrong with its value."""
        for fault in faults:
            self.add_error(fault.field if fault.field in self.fields else None, fault.reason)

    def corrections(self, corrected: dict[str, str]) -> dict[str, str]:
        """The values that differ from those of the file. What was not sent stays as it is."""
        found: dict[str, str] = {}
        for name, field in self.fields.items():
            value, said = self._row.values.get(name), self.cleaned_data[name]
            if self.add_prefix(name) not in self.data:
                found |= {name: corrected[name]} if name in corrected else {}
                continue
            before, after = as_text(value), said.replace("\r\n", "\n")
            is_word = isinstance(field, forms.ChoiceField) and said == field.initial
            same = after == before.replace("\r\n", "\n") or (is_word and name not in corrected)
            # A number, say, that should be a text becomes one.
            if not same or (name == self._wrong and value is not None and not is_text(value)):
                found[name] = revisions.match_line_breaks(before, after)
        return found


def _choice(label: str, slug: str, word: str, offered: Any) -> forms.ChoiceField:
    """A choice of what is offered; first of all, the word of the file if it is none of it."""
    names = [(one.slug, one.name) for one in offered]
    is_known = slug in dict(names)
    as_is = [] if is_known else [(word, f"{word} (in the file)" if word else "None")]
    return forms.ChoiceField(
        label=label, required=False, choices=[*as_is, *names], initial=slug if is_known else word
    )


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def as_text(value: Any) -> str:
    """Return a value of a row as text; "" if there is none."""
    if value is None or is_text(value):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def can_correct(job: Job) -> bool:
    """True if rows of the import can be corrected on the page. Rows of an encrypted archive are not
    stored unencrypted, and the columns of a study's own layout have a fixed meaning."""
    return (
        jobs.awaits_start(job)
        and not upload_files.is_fixed(job)
        and not upload_files.password_path(job).exists()
    )


def row_url(job: Job, place: Place) -> str:
    """The page of a row."""
    page = reverse("import-row", args=[job.project.slug, job.result["number"], place["line"]])
    is_archive = job.result["ending"] == ".zip"
    return page + (f"?{urlencode({'file': place['file']})}" if is_archive else "")


def list_left(job: Job, after: Place | None = None) -> list[Place]:
    """Return the rows shown as rejected that can be corrected and were not yet since the check, or
    only those after a row. A row that could not even be read must be corrected in the file."""
    if not can_correct(job):
        return []
    fresh = [one for one in upload_files.list_corrections(job) if not one["checked"]]
    done, start = {_at(one) for one in fresh}, _at(after) if after else ("", 0)
    rejected = job.result["report"]["problems"]
    return [one for one in rejected if one.get("is_read") and start < _at(one) not in done]


def _at(place: Place) -> tuple[str, int]:
    return place["file"], place["line"]


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def correct_row(request: HttpRequest, slug: str, number: int, line: int) -> HttpResponse:
    """Show a rejected row as a form. A POST keeps the correction and goes on to the next such row
    or to the check of the file, or removes an earlier correction."""
    member = access.member_for(request, slug, right="manage")
    job = jobs.find_import(member.project, number)
    if job is None:
        messages.error(request, f"Import {number} does not exist. Upload its file again.")
        return redirect("imports", slug)
    file = job.result["name"]
    if job.result["ending"] == ".zip":
        file = request.GET.get("file", "")
    row = upload_files.load_shown_row(job, file, line) if can_correct(job) else None
    if row is None:
        messages.error(request, "This row cannot be corrected here. Correct it in the file.")
        return redirect("import", slug, number)
    task, known = tasktypes.load_task_type(job.project), taxonomy.load_taxonomy(job.project)
    place = {"file": file, "line": line, "row": row.number or line}
    corrected = _values(job, place)
    faults = _list_faults(row, corrected, task, known, job)
    told = next((one for one in job.result["report"]["problems"] if _at(one) == _at(place)), None)
    data, names = request.POST or None, _names(job, task, faults, told)
    form = RowForm(data, task, known, row, corrected, names)
    seen: Any = {**row.values, "corrected": corrected}
    shown, status = text_digest.digest_texts(seen), 200
    if data is not None and form.is_valid():
        status = 422
        try:
            if "undo" in data:
                jobs.correct_row(job, place, {})
                messages.success(request, "Correction removed.")
                return redirect("import", slug, number)
            if data.get("shown") != shown:
                raise Stale("Somebody else corrected this row meanwhile. Look at it again.")
            values = form.corrections(corrected)
            faults = _list_faults(row, values, task, known, job)
            form.add_faults(faults)
            if not faults:
                if values != corrected:
                    key = values.get("key", as_text(row.values.get("key")))
                    jobs.correct_row(job, {**place, "key": key}, values)
                return redirect(_next_page(request, job, place))
        except Refused as problem:
            status = 409 if isinstance(problem, Stale) else 422
            form.add_error(None, str(problem))
    left = list_left(job, place)
    context = {
        "project": job.project,
        "member": member,
        "job": job,
        "form": form,
        "shown": shown,
        "file": file,
        "row": place["row"],
        "key": as_text(row.values.get("key")),
        "problem": told,
        "faults": [(item_titles(task, known).get(one.field, one.field), one) for one in faults],
        "corrected": corrected,
        "is_checked": _is_checked(job, place),
        "left": left,
        "skip": row_url(job, left[0]) if left else "",
    }
    return render(request, "annotation/import_row.html", context, status=status)


def _values(job: Job, place: Place) -> dict[str, str]:
    """Return the corrected values of a row."""
    found = (one["values"] for one in upload_files.list_corrections(job) if _at(one) == _at(place))
    return next(found, {})


def _is_checked(job: Job, place: Place) -> bool:
    """True if the file was checked since the row was corrected, or the row was not corrected."""
    found = [one for one in upload_files.list_corrections(job) if _at(one) == _at(place)]
    return all(one["checked"] for one in found)


def _list_faults(
    row: Row, corrected: dict[str, str], task: TaskType, known: Taxonomy, job: Job
) -> list[BadRow]:
    """Return what is wrong with the corrected row by itself: its faults in the key, the texts and
    the category, and the first other one. After each of these faults, the field gets a value that
    is right, to find the next one."""
    right = {"key": "a", **{text.name: "a" for text in task.texts}}
    if known.offered:
        right["category"] = known.offered[0].slug
    faults: dict[str, BadRow] = {}
    values = dict(corrected)
    while (fault := _parse(row, values, task, known, job)) and fault.field not in faults:
        faults[fault.field] = fault
        if fault.field in right:
            values[fault.field] = right[fault.field]
    return list(faults.values())


def _parse(
    row: Row, corrected: dict[str, str], task: TaskType, known: Taxonomy, job: Job
) -> BadRow | None:
    """Return what is wrong with the corrected row by itself; None if it can become an item."""
    whole = Row(row.file, row.line, {**row.values, **corrected}, row.number)
    [parsed] = importing.parse_items([whole], task, known, accept=job.result["accept"])
    return parsed if isinstance(parsed, BadRow) else None


def _names(job: Job, task: TaskType, faults: list[BadRow], told: Place | None) -> list[str]:
    """The columns of the form: the ones that are wrong, then those of the file, then the others
    that every item needs."""
    chosen = job.result["columns"]
    columns = {column: name for name, column in chosen.items() if column}
    wrong = [fault.field for fault in faults]
    wrong += [columns.get(told["field"], str(told["field"]))] if told else []
    used = [name for name in item_columns(task) if chosen.get(name)]
    return [name for name in dict.fromkeys([*wrong, *used, *required_columns(task)]) if name]


def _next_page(request: HttpRequest, job: Job, place: Place) -> str:
    """The page of the next row to correct; after the last one the file is checked again."""
    job.refresh_from_db()
    if after := list_left(job, place) if "next" in request.POST else ():
        return row_url(job, after[0])
    if jobs.is_unchecked(job):
        jobs.check_again(job)
    return reverse("import", args=[job.project.slug, job.result["number"]])
