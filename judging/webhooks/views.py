"""The pages of a project's webhooks, for leads: list, form, and one webhook with its deliveries."""

import uuid
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import OuterRef, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotation.errors import FieldError, Refused
from annotation.models import Membership
from annotation.projects import access
from judging.models import Delivery, Webhook
from judging.webhooks import signing, webhooks
from judging.webhooks.delivery import MAX_TRIES, PATIENCE, RETENTION
from judging.webhooks.forms import WebhookForm
from judging.webhooks.topics import TOPICS

DELIVERIES_PER_PAGE = 50


@require_safe
@login_required
def webhook_list(request: HttpRequest, slug: str) -> HttpResponse:
    """The project's webhooks with the last delivery of each."""
    lead = access.member_for(request, slug, right="manage")
    finished = Delivery.objects.filter(webhook=OuterRef("pk")).exclude(status=None, problem="")
    last = Subquery(finished.order_by("-pk").values("pk")[:1])
    hooks = Webhook.objects.in_project(lead.project).select_related("member__account")
    found = list(hooks.annotate(last=last))
    now = timezone.now()
    deliveries = Delivery.objects.in_bulk([one.last for one in found if one.last])
    context = {
        "project": lead.project,
        "member": lead,
        "rows": [
            (one, _topic_titles(one), one.is_failing(now), deliveries.get(one.last))
            for one in found
        ],
        "full": len(found) >= webhooks.MAX_WEBHOOKS,
        "most": webhooks.MAX_WEBHOOKS,
    }
    return render(request, "judging/webhooks.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def edit_webhook(request: HttpRequest, slug: str, webhook: int | None = None) -> HttpResponse:
    """Add a webhook, or change address and topics of one."""
    lead = access.member_for(request, slug, right="manage")
    found = webhooks.get_webhook(lead, webhook) if webhook else None
    sent = request.POST if request.method == "POST" else None
    form = WebhookForm.from_webhook(found, sent)
    if sent is not None and form.is_valid():
        try:
            saved = _save(access.ensure_membership(lead), found, form.cleaned_data)
        except FieldError as error:
            form.add_error(error.field, str(error))
        except Refused as error:
            form.add_error(None, str(error))
        else:
            return redirect("webhook", slug=slug, webhook=saved.pk)
    context = {"project": lead.project, "member": lead, "webhook": found, "form": form}
    return render(request, "judging/webhook_edit.html", context, status=422 if form.errors else 200)


@require_safe
@never_cache
@login_required
def webhook(request: HttpRequest, slug: str, webhook: int) -> HttpResponse:
    """One webhook: its state, its secret, and its deliveries, the newest first. htmx gets the
    deliveries while one of them is about to be sent."""
    lead = access.member_for(request, slug, right="manage")
    found, now = webhooks.get_webhook(lead, webhook), timezone.now()
    waits = bool(found.wait_until and found.wait_until > now)
    page = Paginator(found.deliveries.all(), DELIVERIES_PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "project": lead.project,
        "member": lead,
        "webhook": found,
        "topics": _topic_titles(found),
        "secret": signing.derive_secret(found.nonce),
        "page": page,
        "waits": waits,
        "failing": found.is_failing(now),
        "failed": found.deliveries.failed().count(),
        "busy": found.active and not waits and found.deliveries.due(now).exists(),
        "most_tries": MAX_TRIES,
        "patience": PATIENCE.days,
        "kept": RETENTION.days,
    }
    part = "#deliveries" if request.headers.get("HX-Request") else ""
    return render(request, "judging/webhook.html" + part, context)


@require_POST
@login_required
def change_webhook(request: HttpRequest, slug: str, webhook: int, step: str) -> HttpResponse:
    """Switch a webhook on or off, give it a new secret, test it, send again what failed, or delete
    it."""
    lead = access.member_for(request, slug, right="manage")
    found, now = webhooks.get_webhook(lead, webhook), timezone.now()
    lead = access.ensure_membership(lead)
    try:
        said = _take_step(found, lead, step, now)
    except Refused as error:
        messages.error(request, str(error))
    else:
        messages.success(request, said)
    if step == "delete":
        return redirect("webhooks", slug=slug)
    return redirect("webhook", slug=slug, webhook=webhook)


@require_POST
@login_required
def send_again(request: HttpRequest, slug: str, webhook: int, delivery: uuid.UUID) -> HttpResponse:
    """Send one finished delivery again."""
    lead = access.member_for(request, slug, right="manage")
    found = webhooks.get_webhook(lead, webhook)
    try:
        again = webhooks.send_again(
            found, webhooks.get_delivery(found, delivery), now=timezone.now()
        )
    except Refused as error:
        messages.error(request, str(error))
    else:
        if not again:
            messages.info(request, "This message already waits to be sent.")
    return redirect("webhook", slug=slug, webhook=webhook)


def _topic_titles(webhook: Webhook) -> list[str]:
    return [topic.title for name, topic in TOPICS.items() if name in webhook.topic_list]


def _save(lead: Membership, found: Webhook | None, said: dict[str, Any]) -> Webhook:
    now = timezone.now()
    if found is None:
        return webhooks.create_webhook(lead, said["address"], said["topics"], now=now)
    webhooks.change_webhook(found, lead, **said, now=now)
    return found


def _take_step(found: Webhook, lead: Membership, step: str, now: Any) -> str:
    if step in ("on", "off"):
        webhooks.change_webhook(found, lead, active=step == "on", now=now)
        return f"The webhook is {step}."
    if step == "secret":
        webhooks.renew_secret(found, lead)
        return "The webhook has a new secret. Give it to the receiver now: the old one is gone."
    if step == "ping":
        webhooks.send_ping(found, now=now)
        return "The test is on its way."
    if step == "again":
        number = webhooks.send_again(found, found.deliveries.failed(), now=now)
        return (
            f"{number} deliveries are sent again." if number != 1 else "1 delivery is sent again."
        )
    webhooks.delete_webhook(found, lead)
    return "The webhook and its deliveries are deleted."
