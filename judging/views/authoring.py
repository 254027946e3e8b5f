"""Strategies are copied, written and tried: a text, what it would send, what it reads."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotation import access, diffing
from annotation.errors import Refused, Stale
from annotation.models import Membership
from annotation.views.painting import HtmxRequest
from judging import errors
from judging.models import StrategyVersion
from judging.preparing import authoring, catalogue, offering, previewing
from judging.preparing.authoring import LONGEST_NOTE, Draft
from judging.prompts import described
from judging.prompts.placeholders import SHOWN
from judging.replies import outputs
from judging.views.desk import CopyForm, Desk, desk
from judging.views.strategies import found

LONGEST_REPLY = 200_000


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def copy(request: HttpRequest, slug: str, strategy: str) -> HttpResponse:
    """Make a strategy the project's own, to change it there."""
    member = access.member_for(request, slug, right="run")
    parent = _version(member, strategy, request.GET.get("version", ""))
    initial = {"slug": f"our-{parent.slug}"[: authoring.LONGEST_SLUG].rstrip("-")}
    initial["title"] = f"{parent.strategy().title}, ours"
    form = CopyForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            version = authoring.copy(
                member.project, parent, **form.cleaned_data, member=access.seated(member)
            )
        except Refused as problem:
            form.add_error("slug", str(problem))
        else:
            messages.success(request, f"{version} is the project's own now. Change it below.")
            return redirect("strategy-edit", slug=slug, strategy=version.slug)
    context = {"project": member.project, "member": member, "parent": parent, "form": form}
    status = 422 if form.errors else 200
    return render(request, "judging/strategy_copy.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def edit(request: HtmxRequest, slug: str, strategy: str) -> HttpResponse:
    """The text of the project's own strategy; a POST stores it as the next version."""
    member = access.member_for(request, slug, right="run")
    newest = found(member, strategy)
    if newest.project_id is None:
        messages.info(request, f"{newest.slug} is shipped with Blindspot. Copy it to change it.")
        return redirect("strategy-copy", slug=slug, strategy=strategy)
    if newest.retired_at and request.method != "POST":
        messages.info(request, f"{newest.slug} is retired. Take it back to change it.")
        return redirect("strategy", slug=slug, strategy=strategy)
    if request.method == "POST":
        return _save(request, member, newest, desk(request.POST))
    begun = _version(member, strategy, request.GET.get("use", ""))
    return _page(request, member, newest, Desk(source=catalogue.source_of(begun)))


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def preview(request: HtmxRequest, slug: str, strategy: str) -> HttpResponse:
    """What the text, or the stored strategy, would send about an item; alone for a script."""
    member = access.member_for(request, slug, right="run")
    newest = found(member, strategy)
    wish = desk(request.POST if request.method == "POST" else request.GET)
    if not request.htmx:
        return _page(request, member, newest, wish)
    draft = _draft(newest, wish)
    context = _frame(member, newest, wish, draft) | _previewed(member, draft, wish)
    return render(request, "judging/strategy_desk.html#preview", context)


@require_POST
@never_cache
@login_required
def parse(request: HtmxRequest, slug: str, strategy: str) -> HttpResponse:
    """What would be read in a pasted reply; alone for a script."""
    member = access.member_for(request, slug, right="run")
    newest = found(member, strategy)
    wish = desk(request.POST)
    if not request.htmx:
        return _page(request, member, newest, wish)
    draft = _draft(newest, wish)
    context = _frame(member, newest, wish, draft) | _read(member, draft, wish)
    return render(request, "judging/strategy_desk.html#reading", context)


@require_safe
@never_cache
@login_required
def keys(request: HttpRequest, slug: str) -> HttpResponse:
    """Items to choose from, by a part of their keys."""
    member = access.member_for(request, slug, right="run")
    found_keys = previewing.keys_like(member.project, request.GET.get("item", "").strip())
    return render(request, "judging/_item_keys.html", {"keys": found_keys})


def _save(
    request: HtmxRequest, member: Membership, newest: StrategyVersion, wish: Desk
) -> HttpResponse:
    if len(wish.note) > LONGEST_NOTE:
        problem = f"The note is too long. Shorten it to {LONGEST_NOTE:,} characters."
        return _page(request, member, newest, wish, status=422, problem=problem)
    draft = _draft(newest, wish)
    if draft.strategy is None:
        problem = " ".join(authoring.said(one) for one in draft.problems)
        return _page(request, member, newest, wish, status=422, problem=problem)
    try:
        version = authoring.save(
            member.project,
            draft,
            shown=wish.shown,
            note=wish.note,
            member=access.seated(member),
        )
    except Stale as problem:
        return _page(request, member, newest, wish, status=409, **_others(newest, draft, problem))
    except Refused as problem:
        return _page(request, member, newest, wish, status=422, problem=str(problem))
    if version is None:
        messages.info(request, f"Nothing was stored: this is the text of {newest} already.")
        return redirect("strategy-edit", slug=member.project.slug, strategy=newest.slug)
    messages.success(request, f"Stored as {version}. Runs that were started keep their version.")
    address = reverse("strategy", args=[member.project.slug, version.slug])
    return redirect(
        f"{address}?{urlencode({'old': str(version.parent), 'new': str(version)})}#compared"
    )


def _others(newest: StrategyVersion, draft: Draft, problem: Stale) -> dict[str, Any]:
    """What somebody else stored meanwhile, beside the text that was not."""
    compared = diffing.compare(catalogue.source_of(newest), draft.source)
    return {"stale": str(problem), "compared": compared, "shown": newest.number}


def _version(member: Membership, slug: str, number: str) -> StrategyVersion:
    """The version of this number, by default the newest one."""
    newest = found(member, slug)
    known = {str(one.number): one for one in catalogue.versions(member.project, newest)}
    version = known.get(number) if number else newest
    if version is None:
        raise Http404
    return version


def _page(
    request: HttpRequest,
    member: Membership,
    newest: StrategyVersion,
    wish: Desk,
    *,
    status: int = 200,
    **said: Any,
) -> HttpResponse:
    draft = _draft(newest, wish)
    context = _frame(member, newest, wish, draft) | _previewed(member, draft, wish)
    context |= _read(member, draft, wish) | said
    return render(request, "judging/strategy_desk.html", context, status=status)


def _frame(member: Membership, newest: StrategyVersion, wish: Desk, draft: Draft) -> dict[str, Any]:
    return {
        "project": member.project,
        "member": member,
        "newest": newest,
        "editable": newest.project_id is not None,
        "wish": wish,
        "shown": wish.shown or newest.number,
        "draft": draft,
        "endpoints": offering.endpoints(),
        "finishes": described.FINISHES,
        "placeholders": sorted({name for one in SHOWN.values() for name in one.needed}),
        "keys": previewing.keys_like(member.project, ""),
    }


def _draft(newest: StrategyVersion, wish: Desk) -> Draft:
    """The text in the editor; of what is shipped only its own text."""
    if wish.source is None or newest.project_id is None:
        return authoring.read(catalogue.source_of(newest), newest.slug)
    return authoring.read(wish.source, newest.slug)


def _previewed(member: Membership, draft: Draft, wish: Desk) -> dict[str, Any]:
    if draft.strategy is None:
        return {"preview": None}
    version = draft.version()
    item = previewing.item_of(member.project, wish.item, version)
    endpoint = offering.endpoints().named(wish.endpoint) if wish.endpoint else None
    made = previewing.preview(
        member.project, version, item=item, call=wish.call, endpoint=endpoint, said=wish.said
    )
    previewing.note_seen(member, item, made, timezone.now())
    return {"preview": made, "item": item, "endpoint": endpoint}


def _read(member: Membership, draft: Draft, wish: Desk) -> dict[str, Any]:
    """What is read in the pasted reply, or why nothing can be."""
    if draft.strategy is None or not wish.reply:
        return {"reading": None}
    if len(wish.reply) > LONGEST_REPLY:
        return {"reading": None, "unread": f"Shorten the reply to {LONGEST_REPLY:,} characters."}
    try:
        reading = previewing.read(
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
        "parser": outputs.parser(draft.strategy),
        "way": described.PATHS.get(reading.path, ""),
        "cause": described.CAUSES.get(reading.cause, reading.cause),
    }
