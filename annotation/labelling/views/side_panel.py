"""Further requests of the label screen: holds, drafts, flags, siblings, guidelines."""

import json
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation.errors import Refused
from annotation.htmx import HtmxRequest
from annotation.labelling import blind_names, drafts, my_items, queue
from annotation.labelling.queue import offers
from annotation.labelling.submissions import Submission
from annotation.labelling.views.label_screen import submission_view
from annotation.models import Item, Membership
from annotation.projects import access, guidelines


@require_POST
@login_required
def renew_holds(request: HttpRequest, slug: str) -> JsonResponse:
    """Extend the holds of an open page, and return the names of the items that the person still
    holds."""
    member = access.member_for(request, slug, right="label")
    return JsonResponse({"held": sorted(queue.renew_holds(member))})


@require_POST
@login_required
def save_draft(request: HttpRequest, slug: str) -> JsonResponse:
    """Store a draft, sent as a JSON object of key, item, revision, data and the `version` that the
    page began with; `left` is true if the page shows another item by now. If another page has
    changed it since, the answer is 409 and has what that page wrote. The header `Draft-Version` has
    the present version."""
    member = access.member_for(request, slug, right="label")
    try:
        kept = drafts.save_draft(member, *_parse_draft(request.body))
    except drafts.Outdated as problem:
        answer = JsonResponse({"elsewhere": problem.words}, status=409)
        answer["Draft-Version"] = problem.version
        return answer
    except Refused as problem:
        return JsonResponse({"problem": str(problem)}, status=422)
    answer = JsonResponse({"kept": kept is not None})
    answer["Draft-Version"] = kept.version if kept else ""
    return answer


@submission_view
def delete_draft(request: HtmxRequest, member: Membership) -> HttpResponse:
    """Delete a draft from the list of drafts."""
    item = _known_item(member, request.POST.get("item", ""))
    if item:
        drafts.delete_draft(member, item)
        name = blind_names.display_names(member, [item])[item.pk]
        messages.success(request, f"Draft on {name} discarded.")
    return redirect("my-items", slug=member.project.slug)


@submission_view
def toggle_flag(request: HtmxRequest, member: Membership) -> HttpResponse:
    """Flag the item for a lead, or remove the flag."""
    # PostgreSQL refuses to search for NUL and to store it.
    key, note = (request.POST.get(name, "").replace("\0", "") for name in ("item", "note"))
    try:
        stands = queue.toggle_flag(member, key, note=note[:2000])
    except Refused as problem:
        said, status = {"problem": str(problem)}, 422
    else:
        said, status = (
            {"said": _describe_flag(key, stands), "flagged": "yes" if stands else ""},
            200,
        )
    if request.htmx:
        return JsonResponse(said, status=status)
    messages.info(request, said.get("said") or said["problem"])
    return redirect("label", slug=member.project.slug)


@require_GET
@never_cache
@login_required
def sibling_list(request: HttpRequest, slug: str) -> HttpResponse:
    """Show other items of the same question, with the person's labels; status 409 while the item
    must still be labelled blind."""
    member = access.member_for(request, slug, right="label")
    item = _known_item(member, request.GET.get("item", ""))
    found = my_items.list_siblings(member, item) if item else []
    context = {"project": member.project, "item": item, "siblings": found}
    refused = found is None or item is None
    template = "annotation/label/_siblings.html"
    return render(request, template, context, status=409 if refused else 200)


@require_http_methods(["GET", "POST"])
@never_cache
@login_required
def guidelines_panel(request: HtmxRequest, slug: str) -> HttpResponse:
    """Show the guidelines that apply to an item; a POST records that the person has read them."""
    member = access.member_for(request, slug, right="label")
    if request.method == "POST":
        number = request.POST.get("number", "")
        guidelines.acknowledge(member, int(number[:6]) if number.isdecimal() else 0)
        return HttpResponse(status=204) if request.htmx else redirect("label", slug=slug)
    version = guidelines.current_version(member.project)
    context = {
        "project": member.project,
        "version": version,
        "news": version is not None and version.number > member.guidelines_seen,
        **_panel_context(member, request, version),
    }
    return render(request, "annotation/label/_guidelines.html", context)


def _panel_context(member: Membership, request: HttpRequest, version: Any) -> dict[str, Any]:
    """The template context: the general guidelines and, if the URL names an item, the guidelines
    for its kind.

    The kind may be the item's category, so these are not shown before the blind label is given.
    """
    item = _known_item(member, request.GET.get("item", ""))
    if version is None or item is None or blind_names.is_blind(member, item):
        return {"text": version.text if version else ""}
    found = guidelines.for_item(version, member.project, item)
    return {
        "text": found.text,
        "kind": found.kind if found.variant else "",
        "variant": found.variant,
    }


def _parse_draft(body: bytes) -> tuple[Submission, Any, str | None, bool]:
    """Parse the shown item, the draft's data, its version, if any, and whether it was left from the
    body. Raises `Refused` if the body cannot be read."""
    try:
        sent = json.loads(body[: drafts.MAX_LENGTH * 6])
        shown = Submission(str(sent["key"]), str(sent["item"]), int(sent["revision"]))
        return shown, sent["data"], sent.get("version"), bool(sent.get("left"))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise Refused("The form could not be read. Reload the page.") from error


def _known_item(member: Membership, key: str) -> Item | None:
    """Find the item; None if the member was never shown it."""
    item = blind_names.find_item(member, key)
    return item if item and offers.has_met_item(member, item) else None


def _describe_flag(key: str, stands: bool) -> str:
    return f"{key} is flagged for a lead." if stands else f"{key} is no longer flagged."
