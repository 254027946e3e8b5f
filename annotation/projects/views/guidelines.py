"""Guidelines: read and acknowledged by members, written and published by leads."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from annotation.errors import Refused
from annotation.models import GuidelinesVersion, Membership
from annotation.projects import access
from annotation.projects import guidelines as versions

# The number of variants with a text field of their own; more would make the page too long.
MAX_VARIANTS = 40
VARIANT_PREFIX = "variant."


class GuidelinesForm(forms.Form):
    """A new version of the guidelines."""

    text = forms.CharField(
        required=False,
        strip=False,
        max_length=versions.MAX_LENGTH,
        widget=forms.Textarea({"rows": 16}),
        label="For every item",
        help_text="Markdown.",
    )
    note = forms.CharField(
        required=False,
        max_length=500,
        label="What changed",
        help_text="One sentence for all annotators.",
    )


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def read_guidelines(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the guidelines, by default the current version. A POST records that the member has read
    them."""
    member = access.member_for(request, slug, right="enter")
    if request.method == "POST":
        number = request.POST.get("number", "")
        if member.pk and number.isdecimal():
            versions.acknowledge(member, int(number[:6]))
        return redirect("guidelines", slug=slug)
    history = list(member.project.guidelines.select_related("author").order_by("-number"))
    shown, before = _choose_versions(history, request.GET.get("version", ""))
    context = {
        "project": member.project,
        "member": member,
        "history": history,
        "shown": shown,
        "before": before,
        "changes": versions.list_changes(before, shown) if shown and before else [],
        "unseen": versions.unseen_version(member),
    }
    return render(request, "annotation/guidelines/read.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def edit_guidelines(request: HttpRequest, slug: str) -> HttpResponse:
    """Write the next version. A POST with `preview` shows it and publishes nothing."""
    lead = access.member_for(request, slug, right="manage")
    current = versions.current_version(lead.project)
    if request.method != "POST":
        form = GuidelinesForm(initial={"text": current.text if current else ""})
        return _render_editor(request, lead, form, current.variants if current else {})
    form = GuidelinesForm(request.POST)
    variants = _variants(request)
    if "preview" in request.POST:
        return _render_editor(request, lead, form, variants, preview=True)
    if not (form.is_valid() and _is_current(request, form, current)):
        return _render_editor(request, lead, form, variants, status=422)
    try:
        version = versions.publish(
            lead.project,
            form.cleaned_data["text"],
            variants,
            form.cleaned_data["note"],
            access.ensure_membership(lead),
            base=current.number if current else 0,
        )
    except Refused as problem:
        form.add_error(None, str(problem))
        return _render_editor(request, lead, form, variants, status=422)
    said = f"Version {version.number} published. All annotators are told about it."
    if current and version.number == current.number:
        said = "Nothing changed, so there is no new version."
    messages.success(request, said)
    return redirect("guidelines", slug=slug)


def _is_current(
    request: HttpRequest, form: GuidelinesForm, current: GuidelinesVersion | None
) -> bool:
    """True if nobody has published since the page was loaded; otherwise adds an error to the form.

    If the lead then sends the form again, it is published as the next version, since the lead has
    seen the error.
    """
    if request.POST.get("base") == _number(current):
        return True
    form.add_error(
        None,
        f"Version {_number(current)} was published while you were writing. Read the changes, copy "
        "what you want to keep, and publish again.",
    )
    return False


def _number(version: GuidelinesVersion | None) -> str:
    return str(version.number if version else 0)


def _render_editor(
    request: HttpRequest,
    lead: Membership,
    form: GuidelinesForm,
    variants: dict[str, str],
    *,
    preview: bool = False,
    status: int = 200,
) -> HttpResponse:
    kinds = list(dict.fromkeys([*sorted(variants), *versions.variant_values(lead.project)]))
    context: dict[str, Any] = {
        "project": lead.project,
        "member": lead,
        "form": form,
        "base": _number(versions.current_version(lead.project)),
        "variants": [(kind, variants.get(kind, "")) for kind in kinds[:MAX_VARIANTS]],
        "more": kinds[MAX_VARIANTS:],
        "preview": preview,
        "text": form["text"].value() or "",
        "written": [(kind, text) for kind, text in variants.items() if text.strip()],
    }
    template = "annotation/guidelines/edit.html"
    if preview and getattr(request, "htmx", False):
        template += "#preview"
    return render(request, template, context, status=status)


def _variants(request: HttpRequest) -> dict[str, str]:
    """Return the variants in the form, by the value of the guidelines field."""
    names = [name for name in request.POST if name.startswith(VARIANT_PREFIX)]
    return {name.removeprefix(VARIANT_PREFIX): request.POST[name] for name in names}


def _choose_versions(
    history: list[GuidelinesVersion], number: str
) -> tuple[GuidelinesVersion | None, GuidelinesVersion | None]:
    """Choose the version to show (the latest by default) and the version before it, or None.

    Raises `Http404` for an unknown number.
    """
    if not history and not number:
        return None, None
    for place, version in enumerate(history):
        if number in ("", str(version.number)):
            return version, next(iter(history[place + 1 :]), None)
    raise Http404
