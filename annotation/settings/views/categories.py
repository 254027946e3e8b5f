"""The pages where leads keep the categories of a project: the list, a form for each entry, and the
list as a file."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from annotation.errors import FieldError, Refused, Stale
from annotation.items import taxonomy
from annotation.models import Membership, Project
from annotation.projects import access
from annotation.projects.visible_names import check_visible
from annotation.settings import categories
from annotation.settings.categories import EFFECT_TITLES, Definition

MAX_FILE = 500_000
STEPS = {"up": -1, "down": 1}


class CategoryForm(forms.Form):
    """The form of a category."""

    name = forms.CharField(max_length=80, validators=[check_visible])
    ability = forms.ChoiceField()
    description = forms.CharField(
        required=False,
        max_length=taxonomy.LONGEST,
        widget=forms.Textarea({"rows": 3}),
        help_text="What annotators read beside each item of the category.",
    )
    before = forms.CharField(label="Example, before", required=False, max_length=500)
    after = forms.CharField(label="Example, after", required=False, max_length=500)
    expected_effect = forms.ChoiceField(
        label="Expected effect on the score", choices=[*EFFECT_TITLES.items()]
    )

    def __init__(self, data: Any, known: taxonomy.Taxonomy, **values: Any) -> None:
        super().__init__(data, **values)
        field: Any = self.fields["ability"]
        field.label = known.word_groups("Ability")
        field.choices = [*known.ability_names().items()]

    def clean(self) -> dict[str, Any]:
        said: dict[str, Any] = super().clean() or {}
        if bool(said.get("before")) != bool(said.get("after")):
            self.add_error("after", "An example needs both texts, or none.")
        return said

    def values(self) -> dict[str, Any]:
        """The values of the entry."""
        said = dict(self.cleaned_data)
        before, after = said.pop("before"), said.pop("after")
        return {**said, "example": {"before": before, "after": after} if before else None}


class GroupForm(forms.Form):
    """The form of a group of categories."""

    name = forms.CharField(max_length=80, validators=[check_visible])
    description = forms.CharField(
        required=False, max_length=taxonomy.LONGEST, widget=forms.Textarea({"rows": 3})
    )
    axis = forms.CharField(
        required=False,
        max_length=80,
        help_text=(
            "You can leave this empty. Some strategies score an answer on several axes, such as "
            "hallucination and style: here you can name the one that matters for this group. If "
            "empty, it is the first axis of each strategy."
        ),
    )
    colour = forms.ChoiceField(
        required=False,
        choices=[("", "None"), *((str(n), f"Colour {n}") for n in range(1, taxonomy.COLOURS + 1))],
    )

    def values(self) -> dict[str, Any]:
        """The values of the entry."""
        return {**self.cleaned_data, "colour": int(self.cleaned_data["colour"] or 0)}


class WordsForm(forms.Form):
    """What people call a group of categories."""

    group = forms.CharField(label="One", max_length=taxonomy.LONGEST_WORD)
    groups = forms.CharField(label="Several", max_length=taxonomy.LONGEST_WORD)


class FileForm(forms.Form):
    """A file with categories."""

    file = forms.FileField(label="File (TOML)")

    def text(self) -> str:
        """The text of the file. Raises `FieldError`."""
        held = self.files.get("file")
        if held is None or (held.size or 0) > MAX_FILE:
            raise FieldError(f"Choose a TOML file of at most {MAX_FILE // 1000} kB.", "file")
        try:
            return str(held.read().decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise FieldError("The file is not text in UTF-8. Save it as UTF-8.", "file") from error


# As many changes as a list of a few years has.
MAX_CHANGES = 200


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def category_list(request: HttpRequest, slug: str) -> HttpResponse:
    """The groups and categories of the project, and what can be done with them; a POST does it."""
    member = access.member_for(request, slug, right="manage")
    if request.method != "POST":
        return _page(request, member)
    try:
        definition, note = _changed(request, member)
        _save(request, member, definition, note)
    except Refused as problem:
        status = 409 if isinstance(problem, Stale) else 422
        return _page(request, member, status=status, problem=str(problem))
    return redirect("categories", slug=slug)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def edit_entry(
    request: HttpRequest, slug: str, table: str, category: str = "", group: str = ""
) -> HttpResponse:
    """The form of a category or group, or of a new one; a POST saves it."""
    member = access.member_for(request, slug, right="manage")
    entry = category or group
    definition = member.project.taxonomy.definition
    find = categories.find_category if table == "category" else categories.find_group
    held = find(definition, entry) if entry else None
    if entry and held is None:
        raise Http404
    data = request.POST if request.method == "POST" else None
    form = _form(data, table, member.project, held, request.GET)
    problem, status = "", 200
    shown = request.POST.get("shown") or member.project.taxonomy_id
    if data is not None and form.is_valid():
        said = form.values()
        try:
            changed, _ = categories.put(definition, table, entry, said)
            name, before = " ".join(said["name"].split()), held["name"] if held else ""
            verb = f"Renamed {before} to" if held and before != name else "Changed"
            _save(request, member, changed, f"{verb if held else 'Added'} {name}"[:200])
            if "another" in data:
                query = f"?group={said['ability']}" if "ability" in said else ""
                return redirect(request.path + query)
            return redirect("categories", slug=slug)
        except FieldError as error:
            form.add_error(error.field if error.field in form.fields else None, str(error))
        except Stale:
            # With the list of now, saving once more takes over only this entry.
            shown, status = member.project.taxonomy_id, 409
            problem = "Somebody else changed the categories meanwhile. Save again to keep both."
    if form.errors:
        status = 422
    context = {
        "project": member.project,
        "member": member,
        "form": form,
        "table": table,
        "entry": held,
        "problem": problem,
        "shown": shown,
    }
    return render(request, "annotation/categories/edit.html", context, status=status)


@require_safe
@login_required
def category_file(request: HttpRequest, slug: str) -> HttpResponse:
    """The categories of the project as a file."""
    member = access.member_for(request, slug, right="items")
    text = categories.write_file(member.project.taxonomy.definition)
    response = HttpResponse(text, content_type="application/toml; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{slug}-categories.toml"'
    return response


def _form(
    data: QueryDict | None, table: str, project: Project, held: Definition | None, asked: Any
) -> CategoryForm | GroupForm:
    if table == "ability":
        return GroupForm(data, initial=categories.entry_values(held, taxonomy.Ability))
    initial = categories.entry_values(held, taxonomy.Category) or {"ability": asked.get("group")}
    known = taxonomy.load_taxonomy(project)
    return CategoryForm(data, known, initial={**initial, **(initial.get("example") or {})})


def _changed(request: HttpRequest, member: Membership) -> tuple[Definition, str]:
    """The definition after what a form of the list asks for, and a note on it. Raises `Refused`."""
    project, sent = member.project, request.POST
    action, _, slug = sent.get("do", "").partition(" ")
    if action == "template":
        found = taxonomy.load_templates().get(sent.get("template", ""))
        if found is None:
            raise FieldError("Choose a template first.", "template")
        title = found["title"].partition(":")[0]
        return categories.replace(project, found), f"Took the template {title}"
    if action == "file":
        given = categories.read_file(FileForm(sent, request.FILES).text())
        words = taxonomy.load_taxonomy(project).words
        return categories.replace(project, {**words, **given}), "Took the categories of a file"
    if action == "words":
        form = WordsForm(sent)
        if not form.is_valid():
            most = f"at most {taxonomy.LONGEST_WORD} characters"
            raise FieldError(f"Give a word for one and a word for several, {most} each.", "group")
        definition = {**project.taxonomy.definition, **form.cleaned_data}
        return definition, f"Called the groups {form.cleaned_data['groups']}"
    if action == "back":
        version = categories.find_version(project, slug)
        if version is None:
            raise Refused("There is no such version. Choose one from the list.")
        undone = categories.list_changes(project).filter(data__old__digest=slug).first()
        before = f", as it was before: {undone.subject}" if undone else ""
        note = f"Went back to version {version.number}{before}"[:200]
        return categories.replace(project, version.definition), note
    return _changed_entry(member, sent, action, slug)


def _changed_entry(
    member: Membership, sent: QueryDict, action: str, slug: str
) -> tuple[Definition, str]:
    """The definition after a change of one entry, and a note on it. Raises `Refused`."""
    definition = member.project.taxonomy.definition
    table = "ability" if sent.get("table") == "ability" else "category"
    find = categories.find_group if table == "ability" else categories.find_category
    entry = find(definition, slug)
    if entry is None:
        raise Refused("This entry no longer exists. Look at the list again.")
    name = entry["name"]
    if action in STEPS:
        changed = categories.move(definition, table, slug, STEPS[action])
        return changed, f"Moved {name} {action}"
    if action == "remove":
        return categories.remove(member.project, definition, table, slug), f"Removed {name}"
    values: dict[str, Any] = {"name": name}
    if action == "retire" and table == "category":
        values["retired"], note = True, f"Retired {name}"
    elif action == "restore" and table == "category":
        values |= {"retired": False, "merged_into": ""}
        note = f"Restored {name}"
    elif action == "merge" and table == "category":
        into = categories.find_category(definition, sent.get("into", ""))
        if into is None or into is entry or into.get("retired"):
            raise Refused("Choose another category that is in use, to merge it into.")
        values |= {"retired": True, "merged_into": into["slug"]}
        note = f"Merged {name} into {into['name']}"
    else:
        raise Refused("Choose what to do.")
    return categories.put(definition, table, slug, values)[0], note


def _save(request: HttpRequest, member: Membership, definition: Definition, note: str) -> None:
    version = categories.save(
        member.project,
        definition,
        member=access.ensure_membership(member),
        shown=request.POST.get("shown", ""),
        note=note,
    )
    if version:
        messages.success(request, f"{note}.")
    else:
        messages.info(request, "Nothing changed.")


def _page(
    request: HttpRequest, member: Membership, *, status: int = 200, problem: str = ""
) -> HttpResponse:
    project = member.project
    project.refresh_from_db(fields=["taxonomy"])
    known = taxonomy.load_taxonomy(project)
    counts = categories.count_items(project)
    context = {
        "project": project,
        "member": member,
        "problem": problem,
        "shown": project.taxonomy_id,
        "version": project.taxonomy,
        "groups": [
            (group, [(one, counts.get(one.slug, 0)) for one in known if one.ability == group.slug])
            for group in known.abilities
        ],
        "offered": known.offered,
        "has_items": bool(sum(counts.values())),
        "unknown": [(slug, n) for slug, n in counts.items() if slug and known.find(slug) is None],
        "effects": {name: title.partition(":")[0] for name, title in EFFECT_TITLES.items()},
        "templates": taxonomy.template_titles(),
        "known": known,
        "words": WordsForm(initial=known.words),
        "changes": [
            (change, str(change.new.get("version", "")).rpartition(" v")[2])
            for change in categories.list_changes(project)[:MAX_CHANGES]
        ],
    }
    return render(request, "annotation/categories/list.html", context, status=status)
