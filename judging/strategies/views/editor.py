"""Pages to copy, edit and try a strategy: its source, its prompts, and the parsing of a reply."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotation.errors import Refused, Stale
from annotation.htmx import HtmxRequest
from annotation.items import taxonomy
from annotation.items.diffing import difference
from annotation.models import Membership
from annotation.projects import access
from judging import errors
from judging.models import StrategyVersion
from judging.runs import choices
from judging.strategies import (
    catalogue,
    definitions,
    descriptions,
    draws,
    editing,
    preview,
    prompt_files,
)
from judging.strategies.editing import MAX_NOTE_LENGTH, MAX_SLUG_LENGTH, StrategyDraft
from judging.strategies.replies import outputs
from judging.strategies.replies.causes import describe_cause
from judging.strategies.schema import FRAME_PLACEHOLDERS, FramePlaceholders
from judging.strategies.views.strategies import get_strategy_or_404

SAID_PREFIX = "said-"
LONGEST_TITLE = 120


class NewStrategyForm(forms.Form):
    """The slug and title of a new strategy of the project."""

    slug = forms.CharField(
        label="Name",
        max_length=MAX_SLUG_LENGTH,
        help_text="Small letters, digits and hyphens. It cannot be changed later; runs are listed "
        "under it.",
        widget=forms.TextInput({"autocomplete": "off", "autocapitalize": "none"}),
    )
    title = forms.CharField(label="Title", max_length=LONGEST_TITLE)


class CopyForm(NewStrategyForm):
    """A copy: its slug in the project, a title, and a note on why it was made."""

    leave_out = forms.ChoiceField(
        label="Instructions inside the texts",
        required=False,
        choices=[
            ("", "As in the original"),
            ("guard", "Leave out the sentence against them"),
            ("markers", "Leave out the sentence and the marker lines"),
        ],
        help_text="A sentence in shipped prompts says that instructions between the marker lines "
        "are not to be followed. Leave it out to measure what it does.",
    )
    note = forms.CharField(
        label="Note",
        max_length=MAX_NOTE_LENGTH,
        required=False,
        help_text="What the copy is for. Shown with its first version.",
    )


@dataclass(frozen=True)
class EditorInput:
    """Everything that was entered in the editor. If one part is invalid, nothing that was entered
    is lost.

    `source` is None if the stored source is used. `shown` is the number of the version that was
    edited, 0 if the page did not send the number. `said` gives texts in place of earlier replies,
    by name.
    """

    source: str | None = None
    shown: int = 0
    note: str = ""
    item: str = ""
    call: str = ""
    endpoint: str = ""
    reply: str = ""
    finish: str = "stop"
    said: Mapping[str, str] = field(default_factory=dict)


def parse_editor_input(data: QueryDict) -> EditorInput:
    """Read the submitted data as text, whether valid or not."""
    sent = {
        name: str(value).replace("\0", "\N{REPLACEMENT CHARACTER}") for name, value in data.items()
    }
    shown = sent.get("shown", "")
    return EditorInput(
        source=sent.get("source"),
        shown=int(shown) if shown.isascii() and shown.isdecimal() and len(shown) < 10 else 0,
        note=sent.get("note", ""),
        item=sent.get("item", "").strip(),
        call=sent.get("call", ""),
        endpoint=sent.get("endpoint", ""),
        reply=sent.get("reply", ""),
        finish=sent.get("finish", "") or "stop",
        said={
            name.removeprefix(SAID_PREFIX): text
            for name, text in sent.items()
            if name.startswith(SAID_PREFIX)
        },
    )


LONGEST_REPLY = 200_000


class ImportForm(NewStrategyForm):
    """A file of prompts with the name and title of the strategy that is made of it."""

    file = forms.FileField(
        label="File of prompts",
        help_text="Text in UTF-8. Without headings, all of it is the prompt. Lines such as "
        "=== system ===, === prompt === or === step extract === divide it into parts.",
    )
    note = forms.CharField(
        label="Note",
        max_length=MAX_NOTE_LENGTH,
        required=False,
        help_text="Where the prompts are from. Shown with its first version.",
    )
    field_order = ("file", "slug", "title", "note")


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def copy_strategy(request: HttpRequest, slug: str, strategy: str) -> HttpResponse:
    """Copy a strategy as the project's own, to edit it."""
    member = access.member_for(request, slug, right="run")
    parent = _get_version_or_404(member, strategy, request.GET.get("version", ""))
    initial = {"slug": f"our-{parent.slug}"[: editing.MAX_SLUG_LENGTH].rstrip("-")}
    initial["title"] = f"{parent.strategy().title}, copy"
    form = CopyForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            version = editing.copy_strategy(
                member.project, parent, **form.cleaned_data, member=access.ensure_membership(member)
            )
        except Refused as problem:
            form.add_error("slug", str(problem))
        else:
            messages.success(request, f"{version} created. Edit it below.")
            return redirect("strategy-edit", slug=slug, strategy=version.slug)
    context = {"project": member.project, "member": member, "parent": parent, "form": form}
    status = 422 if form.errors else 200
    return render(request, "judging/strategy_copy.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def import_strategy(request: HttpRequest, slug: str, strategy: str) -> HttpResponse:
    """Import a file of prompts as the project's own strategy, in every other respect like another
    one."""
    member = access.member_for(request, slug, right="run")
    like = _get_version_or_404(member, strategy, request.GET.get("version", ""))
    form = ImportForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        content = values.pop("file").read(prompt_files.MAX_BYTES + 1)
        try:
            version = prompt_files.import_strategy(
                member.project, like, content, **values, member=access.ensure_membership(member)
            )
        except Refused as problem:
            form.add_error(None, str(problem))
        else:
            messages.success(request, f"{version} created from the file. Check it below.")
            return redirect("strategy-edit", slug=slug, strategy=version.slug)
    strategy_asked = like.strategy()
    shown = FRAME_PLACEHOLDERS.get(strategy_asked.frame, FramePlaceholders(frozenset()))
    context = {
        "project": member.project,
        "member": member,
        "like": like,
        "form": form,
        "can_import": not strategy_asked.metric and strategy_asked.frame != "fold",
        "needed": sorted(shown.needed),
    }
    status = 422 if form.errors else 200
    return render(request, "judging/strategy_import.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def edit_strategy(request: HtmxRequest, slug: str, strategy: str) -> HttpResponse:
    """The editor of the project's own strategy; POST saves the next version."""
    member = access.member_for(request, slug, right="run")
    newest = get_strategy_or_404(member, strategy)
    if newest.project_id is None:
        messages.info(request, f"{newest.slug} is built in. Copy it to change it.")
        return redirect("strategy-copy", slug=slug, strategy=strategy)
    if newest.retired_at and request.method != "POST":
        messages.info(request, f"{newest.slug} is retired. Restore it to change it.")
        return redirect("strategy", slug=slug, strategy=strategy)
    if request.method == "POST":
        return _save_version(request, member, newest, parse_editor_input(request.POST))
    begun = _get_version_or_404(member, strategy, request.GET.get("use", ""))
    return _render_editor(request, member, newest, EditorInput(source=catalogue.get_source(begun)))


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def preview_strategy(request: HtmxRequest, slug: str, strategy: str) -> HttpResponse:
    """Show what the unsaved source, or the stored strategy, would send about an item; htmx gets
    only the preview.
    """
    member = access.member_for(request, slug, right="run")
    newest = get_strategy_or_404(member, strategy)
    wish = parse_editor_input(request.POST if request.method == "POST" else request.GET)
    if not request.htmx:
        return _render_editor(request, member, newest, wish)
    draft = _build_draft(newest, wish)
    context = _editor_context(member, newest, wish, draft) | _preview_context(member, draft, wish)
    return render(request, "judging/strategy_edit.html#preview", context)


@require_POST
@never_cache
@login_required
def parse_reply(request: HtmxRequest, slug: str, strategy: str) -> HttpResponse:
    """Show the answer that would be parsed from a pasted reply; htmx gets only the reading."""
    member = access.member_for(request, slug, right="run")
    newest = get_strategy_or_404(member, strategy)
    wish = parse_editor_input(request.POST)
    if not request.htmx:
        return _render_editor(request, member, newest, wish)
    draft = _build_draft(newest, wish)
    context = _editor_context(member, newest, wish, draft) | _parse_context(member, draft, wish)
    return render(request, "judging/strategy_edit.html#reading", context)


@require_safe
@never_cache
@login_required
def suggest_items(request: HttpRequest, slug: str) -> HttpResponse:
    """Suggest items whose keys contain the typed text."""
    member = access.member_for(request, slug, right="run")
    found_keys = preview.suggest_keys(member.project, request.GET.get("item", "").strip())
    return render(request, "judging/_item_keys.html", {"keys": found_keys})


def _save_version(
    request: HtmxRequest, member: Membership, newest: StrategyVersion, wish: EditorInput
) -> HttpResponse:
    if len(wish.note) > MAX_NOTE_LENGTH:
        problem = f"The note is too long. Shorten it to {MAX_NOTE_LENGTH:,} characters."
        return _render_editor(request, member, newest, wish, status=422, problem=problem)
    draft = _build_draft(newest, wish)
    if draft.strategy is None:
        problem = " ".join(editing.format_problem(one) for one in draft.problems)
        return _render_editor(request, member, newest, wish, status=422, problem=problem)
    try:
        version = editing.save_version(
            member.project,
            draft,
            shown=wish.shown,
            note=wish.note,
            member=access.ensure_membership(member),
        )
    except Stale as problem:
        return _render_editor(
            request, member, newest, wish, status=409, **_conflict_context(newest, draft, problem)
        )
    except Refused as problem:
        return _render_editor(request, member, newest, wish, status=422, problem=str(problem))
    if version is None:
        messages.info(request, f"Nothing to save: the text is the same as in {newest}.")
        return redirect("strategy-edit", slug=member.project.slug, strategy=newest.slug)
    messages.success(request, f"Saved as {version}. Existing runs keep their version.")
    address = reverse("strategy", args=[member.project.slug, version.slug])
    return redirect(
        f"{address}?{urlencode({'old': str(version.parent), 'new': str(version)})}#compared"
    )


def _conflict_context(
    newest: StrategyVersion, draft: StrategyDraft, problem: Stale
) -> dict[str, Any]:
    """Compare the version that somebody else saved meanwhile with the unsaved source."""
    compared = difference.compare(catalogue.get_source(newest), draft.source)
    return {"stale": str(problem), "compared": compared, "shown": newest.number}


def _get_version_or_404(member: Membership, slug: str, number: str) -> StrategyVersion:
    """Return the version with this number, by default the newest version."""
    newest = get_strategy_or_404(member, slug)
    known = {str(one.number): one for one in catalogue.list_versions(member.project, newest)}
    version = known.get(number) if number else newest
    if version is None:
        raise Http404
    return version


def _render_editor(
    request: HttpRequest,
    member: Membership,
    newest: StrategyVersion,
    wish: EditorInput,
    *,
    status: int = 200,
    **said: Any,
) -> HttpResponse:
    draft = _build_draft(newest, wish)
    context = _editor_context(member, newest, wish, draft) | _preview_context(member, draft, wish)
    context |= _parse_context(member, draft, wish) | said
    return render(request, "judging/strategy_edit.html", context, status=status)


def _editor_context(
    member: Membership, newest: StrategyVersion, wish: EditorInput, draft: StrategyDraft
) -> dict[str, Any]:
    return {
        "project": member.project,
        "member": member,
        "newest": newest,
        "editable": newest.project_id is not None,
        "wish": wish,
        "shown": wish.shown or newest.number,
        "draft": draft,
        "warnings": definitions.list_warnings(draft.strategy) if draft.strategy else [],
        "endpoints": choices.list_endpoints(),
        "finishes": descriptions.FINISH_DESCRIPTIONS,
        "placeholders": sorted(
            {name for one in FRAME_PLACEHOLDERS.values() for name in one.needed}
        ),
        "draw_values": [*draws.VALUES],
        "keys": preview.suggest_keys(member.project, ""),
    }


def _build_draft(newest: StrategyVersion, wish: EditorInput) -> StrategyDraft:
    """Build the draft in the editor. For a built-in strategy, the draft is always the strategy's
    own source.
    """
    if wish.source is None or newest.project_id is None:
        return editing.parse_source(catalogue.get_source(newest), newest.slug)
    known = taxonomy.load_taxonomy(newest.project)
    return editing.parse_source(wish.source, newest.slug, known)


def _preview_context(member: Membership, draft: StrategyDraft, wish: EditorInput) -> dict[str, Any]:
    if draft.strategy is None:
        return {"preview": None}
    version = draft.version()
    item = preview.find_item(member.project, wish.item, version)
    endpoint = choices.list_endpoints().named(wish.endpoint) if wish.endpoint else None
    made = preview.build_preview(
        member.project, version, item=item, call=wish.call, endpoint=endpoint, said=wish.said
    )
    preview.record_seen_answers(member, item, made, timezone.now())
    return {"preview": made, "item": item, "endpoint": endpoint}


def _parse_context(member: Membership, draft: StrategyDraft, wish: EditorInput) -> dict[str, Any]:
    """Return the reading of the pasted reply, or the reason why there is none."""
    if draft.strategy is None or not wish.reply:
        return {"reading": None}
    if len(wish.reply) > LONGEST_REPLY:
        return {"reading": None, "unread": f"Shorten the reply to {LONGEST_REPLY:,} characters."}
    try:
        reading = preview.parse_reply(
            member.project,
            draft.version(),
            text=wish.reply,
            finish=wish.finish,
            call=wish.call,
        )
    except errors.Refused as problem:
        return {"reading": None, "unread": str(problem)}
    return {
        "reading": reading,
        "parser": outputs.get_parser_version(draft.strategy),
        "way": descriptions.PATH_DESCRIPTIONS.get(reading.path, ""),
        "cause": describe_cause(reading.cause),
    }
