"""The pages of comments on an item, and of mentions."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from annotation.errors import Refused, TooEarly
from annotation.htmx import HtmxRequest
from annotation.labelling import comments as labelling_comments
from annotation.models import Item, Membership
from annotation.projects import access


class CommentForm(forms.Form):
    """A new comment; with `withdraw`, the number of a comment to withdraw."""

    item = forms.CharField(max_length=200, strip=False)
    text = forms.CharField(required=False, strip=False)
    withdraw = forms.IntegerField(required=False, min_value=1, max_value=1_000_000)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def comments(request: HtmxRequest, slug: str) -> HttpResponse:
    """Show the comments on `?item=`, as a page, or as a fragment for htmx; a POST adds or withdraws
    a comment.

    With `beside`, htmx gets the fragment for the label screen.
    """
    member = access.member_for(request, slug, right="enter")
    if request.method == "POST":
        return _add_or_withdraw(request, access.ensure_membership(member))
    key = request.GET.get("item", "")
    if not key:
        return _render_no_item(request, member)
    return _render_comments(request, member, _item(member, key))


@require_safe
@never_cache
@login_required
def mentions(request: HtmxRequest, slug: str) -> HttpResponse:
    """Show the comments that mention the member, and mark them as read."""
    member = access.member_for(request, slug, right="enter")
    context = {
        "project": member.project,
        "member": member,
        "mentions": labelling_comments.load_mentions(member, now=timezone.now()),
    }
    response = render(request, "annotation/mentions.html", context)
    labelling_comments.mark_read(member, now=timezone.now())
    return response


def _add_or_withdraw(request: HtmxRequest, member: Membership) -> HttpResponse:
    form = CommentForm(request.POST)
    if not form.is_valid():
        return _render_no_item(request, member)
    data, now = form.cleaned_data, timezone.now()
    item = _item(member, data["item"])
    try:
        if data["withdraw"]:
            labelling_comments.withdraw_comment(member, item, data["withdraw"], now=now)
        else:
            labelling_comments.add_comment(member, item, data["text"], now=now)
    except Refused as problem:
        kept = {"comment_problem": str(problem), "kept": data["text"]}
        return _render_comments(request, member, item, status=422, **kept)
    if request.htmx:
        return _render_comments(request, member, item)
    messages.success(request, "Comment withdrawn." if data["withdraw"] else "Comment saved.")
    return redirect(
        f"{reverse('comments', args=[member.project.slug])}?{urlencode({'item': item.key})}"
    )


def _item(member: Membership, key: str) -> Item:
    found = Item.objects.in_project(member.project).with_keys([key]).first()
    if found is None:
        raise Http404
    return found


def _render_comments(
    request: HtmxRequest, member: Membership, item: Item, status: int = 200, **values: Any
) -> HttpResponse:
    context = {"project": member.project, "member": member, "item": item, **values}
    try:
        context["comments"] = labelling_comments.load_comments(member, item, now=timezone.now())
    except TooEarly as problem:
        context["too_early"] = str(problem)
    return render(request, _template(request), context, status=status)


def _template(request: HtmxRequest) -> str:
    if not request.htmx:
        return "annotation/comments.html"
    beside = "beside" in request.GET
    return "annotation/label/_comments.html" if beside else "annotation/_comments.html"


def _render_no_item(request: HtmxRequest, member: Membership) -> HttpResponse:
    """The page for a request that names no item."""
    context = {
        "project": member.project,
        "member": member,
        "item": {"key": "?"},
        "too_early": "Choose an item to read its comments.",
    }
    return render(request, "annotation/comments.html", context, status=422)
