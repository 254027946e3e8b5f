"""The site admin's pages for evaluators. Endpoints can be edited; requests, replies and outcomes
can only be viewed."""

from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from annotation.accounts.admin import request_account
from annotation.admin import ReadOnlyAdmin
from judging.evaluators import endpoints
from judging.evaluators.forms import EndpointForm
from judging.evaluators.models import REQUEST_FIELDS
from judging.models import (
    Budget,
    Call,
    Delivery,
    Dispatcher,
    Endpoint,
    Outcome,
    Reading,
    Reply,
    Request,
    Run,
    StrategyVersion,
    Webhook,
    Worker,
)
from judging.runs import budget


@admin.register(Endpoint)
class EndpointAdmin(admin.ModelAdmin):
    form = EndpointForm
    list_display = ("name", "provider", "model", "address", "key_variable", "in_flight")
    list_filter = ("provider",)
    search_fields = ("name", "model")

    def get_readonly_fields(self, request: HttpRequest, obj: Endpoint | None = None) -> Any:
        # Runs depend on the settings that shape their requests. For another evaluator, add an
        # endpoint.
        said = ("created_at", "remaining", "archived_at", "paused_until")
        return (*said, *REQUEST_FIELDS) if obj and obj.runs.exists() else said

    def save_model(self, request: HttpRequest, obj: Endpoint, form: Any, change: bool) -> None:
        """Save the endpoint and record its changes in an event."""
        endpoints.save_endpoint(form, request_account(request))

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        # Runs pin their endpoint. One without runs is deleted on its own page, which records it.
        return False


@admin.register(Budget)
class BudgetAdmin(admin.ModelAdmin):
    list_display = ("project", "cap", "reserved", "spent")
    readonly_fields = ("reserved", "spent")
    raw_id_fields = ("project",)

    def save_model(self, request: HttpRequest, obj: Budget, form: Any, change: bool) -> None:
        """Set the project's cap. The service creates or changes the project's budget and records an
        event.
        """
        budget.set_cap(obj.project, obj.cap, None, account=request_account(request))
        obj.pk = Budget.objects.get(project=obj.project).pk

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        # For a project without a limit there is a budget without a cap.
        return False


@admin.register(StrategyVersion)
class StrategyVersionAdmin(ReadOnlyAdmin):
    list_display = ("slug", "number", "digest", "created_at")
    list_filter = ("slug",)


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "state", "strategy", "endpoint", "created_at", "finished_at")
    list_filter = ("state", "project")
    list_select_related = ("project", "strategy", "endpoint")


@admin.register(Request)
class RequestAdmin(ReadOnlyAdmin):
    list_display = ("digest", "endpoint", "state", "attempts", "cause", "next_try")
    list_filter = ("state", "endpoint")
    search_fields = ("digest__startswith",)
    list_select_related = ("endpoint",)
    raw_id_fields = ("leased_for",)


@admin.register(Reply)
class ReplyAdmin(ReadOnlyAdmin):
    list_display = ("request_id", "finish", "model", "tokens_in", "tokens_out", "cost", "asked_at")
    list_filter = ("finish",)
    raw_id_fields = ("request",)


@admin.register(Reading)
class ReadingAdmin(ReadOnlyAdmin):
    list_display = ("reply_id", "parser", "value", "path", "cause")
    raw_id_fields = ("reply",)


@admin.register(Outcome)
class OutcomeAdmin(ReadOnlyAdmin):
    list_display = ("item", "run", "category", "result", "detail", "cause")
    list_filter = ("result",)
    list_select_related = ("item", "run__project")
    raw_id_fields = ("run", "item", "revision")


@admin.register(Call)
class CallAdmin(ReadOnlyAdmin):
    list_display = ("pk", "run", "role", "order", "sample", "request_id")
    list_select_related = ("run__project",)
    raw_id_fields = ("run", "outcome", "request")


@admin.register(Dispatcher)
class DispatcherAdmin(ReadOnlyAdmin):
    list_display = ("name", "holder", "held_until")


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin):
    list_display = ("host", "process", "started_at", "alive_until", "progressed_at", "failures")


@admin.register(Webhook)
class WebhookAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "project", "address", "topics", "active", "failing_since")
    list_filter = ("active",)
    list_select_related = ("project",)
    # Whoever has it and the secret key can sign messages.
    exclude = ("nonce",)


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyAdmin):
    list_display = ("uid", "webhook", "type", "state", "tries", "status", "created_at")
    list_filter = ("state", "type")
    list_select_related = ("webhook",)
    raw_id_fields = ("webhook",)
