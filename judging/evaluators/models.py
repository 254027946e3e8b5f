from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from annotation.db import sql
from judging.evaluators.prices import Prices
from judging.evaluators.providers import PROVIDERS, build_body, provider_choices
from judging.evaluators.providers.parameters import fit_token_limit, merge_parameters
from judging.evaluators.ratings import check_ratings
from judging.strategies.definitions import SECRET_NAME


class EndpointQuerySet(models.QuerySet["Endpoint"]):
    def named(self, name: str) -> Endpoint | None:
        """Return the endpoint with this name, or None."""
        if "\0" in name:  # PostgreSQL raises an error for this character
            return None
        return self.filter(name=name).first()

    def listed(self, *, archived: bool = False) -> EndpointQuerySet:
        """Endpoints for lists and new runs, with archived ones only if requested."""
        return self if archived else self.filter(archived_at=None)

    def keep(self, endpoint: Endpoint) -> bool:
        """Keep an endpoint from being deleted until this transaction ends, since a run will use it.
        Return False if it is deleted already, or not among these."""
        return bool(sql.keep_rows(self.filter(pk=endpoint.pk)))

    def alike(self, endpoint: Endpoint) -> EndpointQuerySet:
        """Endpoints of the same provider at the same address. They share their requests: any of
        them may send a request that runs of the other endpoints need too.
        """
        return self.filter(provider=endpoint.provider, address=endpoint.address)

    def due(self, now: datetime) -> EndpointQuerySet:
        """Endpoints with a run to plan, continue or finish, or with requests left by a dead worker.

        An endpoint whose provider asked for a pause is included only if it has a run to plan.
        """
        from judging.models import Request, Run

        runs = Run.objects.filter(endpoint=OuterRef("pk"))
        # Few requests are leased, but an endpoint may have many requests, so the query starts from
        # the leased requests.
        expired = Request.objects.expired(now).values("endpoint")
        free = Q(paused_until=None) | Q(paused_until__lte=now)
        to_ask = free & (Exists(runs.running().due(now)) | Q(pk__in=expired))
        return self.filter(to_ask | Exists(runs.filter(state="planning"))).order_by("pk")

    def pause(self, until: datetime) -> int:
        """Send nothing before this time. If an earlier pause ends later, it stays in force."""
        return self.exclude(paused_until__gte=until).update(paused_until=until)


API_CHOICES = {"chat": "Chat", "completions": "Completions with a template"}
JSON_CHOICES = {
    "": "As text",
    "json_object": "JSON object",
    "json_schema": "JSON by schema",
    "json_object_schema": "JSON object with a schema",
}

# A dot at the start or end, or two in a row, could change the path of the endpoint's page.
check_name = RegexValidator(
    r"\A[-a-zA-Z0-9_]+(\.[-a-zA-Z0-9_]+)*\Z",
    "Use letters, digits, hyphens, underscores, and dots between them, for example gpt-4.1.",
)

# Settings that shape a request. They are fixed once runs use the endpoint.
REQUEST_FIELDS = ("provider", "address", "model", "parameters", "api", "template", "json_mode")
REMAINING_EVERY = timedelta(seconds=5)


@dataclass(frozen=True)
class _EmptyPrompt:
    """A minimal prompt, to check whether a body can be built at all."""

    system: str = "System"
    user: str = "User"
    parts: Mapping[str, Any] = field(default_factory=dict)


def _price_field(help_text: str) -> models.DecimalField[Any, Any]:
    """A price per million tokens, None if it is unknown."""
    return models.DecimalField(
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text=help_text,
    )


class Endpoint(models.Model):
    """An evaluator that can be called. Its API key is not stored, only the name of the environment
    variable with the key.
    """

    name = models.CharField(max_length=80, unique=True, validators=[check_name])
    provider = models.CharField(max_length=40, choices=provider_choices)
    address = models.CharField(
        max_length=300, blank=True, help_text="Base URL, for example https://host/v1"
    )
    key_variable = models.CharField(
        max_length=80,
        blank=True,
        validators=[RegexValidator(r"^[A-Z][A-Z0-9_]*_API_KEY\Z")],
        help_text="The environment variable with the API key; its name ends in _API_KEY.",
    )
    model = models.CharField(max_length=200)
    parameters = models.JSONField(default=dict, blank=True)
    api = models.CharField(max_length=20, choices=API_CHOICES, default="chat")
    template = models.TextField(
        blank=True,
        help_text="For completions: the model's template, with {{system}} and {{prompt}}.",
    )
    json_mode = models.CharField(max_length=20, choices=JSON_CHOICES, blank=True)
    in_flight = models.PositiveSmallIntegerField(
        default=16, validators=[MinValueValidator(1)], help_text="Calls at the same time."
    )
    per_minute = models.PositiveIntegerField(null=True, blank=True, help_text="Calls per minute.")
    tokens_per_minute = models.PositiveIntegerField(
        null=True, blank=True, help_text="Input and output tokens per minute."
    )
    timeout = models.PositiveSmallIntegerField(
        default=120,
        validators=[MinValueValidator(1)],
        help_text="Time limit for one call, in seconds.",
    )
    price_in = _price_field("Price of a million input tokens.")
    price_out = _price_field("Price of a million output tokens.")
    price_cached = _price_field("Price of a million input tokens from the provider's cache.")
    price_reasoning = _price_field("Price of a million output tokens of thinking.")
    ratings = models.JSONField(default=list, blank=True, validators=[check_ratings])
    paused_until = models.DateTimeField(null=True, blank=True)
    remaining = models.JSONField(
        default=dict,
        blank=True,
        help_text="Remaining limits from the provider's headers, with the time of the headers.",
    )
    created_at = models.DateTimeField(default=timezone.now)
    archived_at = models.DateTimeField(null=True, blank=True)

    objects = EndpointQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(in_flight__gte=1, timeout__gte=1), name="endpoint_limits"
            ),
            models.CheckConstraint(
                condition=(models.Q(price_in=None) | models.Q(price_in__gte=0))
                & (models.Q(price_out=None) | models.Q(price_out__gte=0)),
                name="endpoint_prices",
            ),
            models.CheckConstraint(
                condition=(models.Q(price_cached=None) | models.Q(price_cached__gte=0))
                & (models.Q(price_reasoning=None) | models.Q(price_reasoning__gte=0)),
                name="endpoint_prices_of_parts",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Raises `ValidationError` if the address is missing, if the parameters are not an object
        or look like a key, if a setting that runs pin was changed, or if no request can be built.
        Django's forms call this method.
        """
        if self.provider not in PROVIDERS:
            return
        if not self.is_offline and not self.address:
            raise ValidationError({"address": "Enter the base URL of the evaluator."})
        if not isinstance(self.parameters, dict):
            raise ValidationError({"parameters": "Enter a JSON object, for example {}."})
        if secret := next(filter(SECRET_NAME.search, self.parameters), None):
            raise ValidationError(
                {
                    "parameters": f"{secret!r} looks like a key. Parameters are stored and shown; "
                    "enter the name of the environment variable with the key instead."
                }
            )
        if self.is_reshaped():
            raise ValidationError(
                "Runs use this endpoint, so its provider, address, model and parameters cannot "
                "change. Add a new endpoint instead."
            )
        if not self.is_offline:
            self._try_bodies()

    def _try_bodies(self) -> None:
        """Build a request now, so that errors do not first appear while a run is being planned.

        It starts with a minimal request and adds one part at a time, so that the error says which
        part is wrong.
        """
        tried = self.pinned() | {"parameters": {}, "json_mode": ""}
        parts = {"model": {}, "json_mode": {"json_mode": self.json_mode}}
        parts["parameters"] = {"parameters": self.pinned()["parameters"]}
        for part, value in parts.items():
            tried |= value
            try:
                build_body(tried, _EmptyPrompt(), schema={})
            except ValueError as error:
                shaped_by_template = part == "model" and (self.template or self.api != "chat")
                raise ValidationError(
                    {"template" if shaped_by_template else part: str(error)}
                ) from error

    @property
    def is_offline(self) -> bool:
        """True if the endpoint makes no network calls."""
        return PROVIDERS[self.provider].offline

    def is_used(self) -> bool:
        """True if runs or requests name the endpoint, so that it must stay. A run that moved to
        another endpoint leaves its requests behind."""
        return self.runs.exists() or self.requests.exists()

    def is_reshaped(self) -> bool:
        """True if a setting that shapes requests was changed although runs use the endpoint."""
        if not (self.pk and self.runs.exists()):
            return False
        stored = Endpoint.objects.get(pk=self.pk)
        return any(getattr(stored, name) != getattr(self, name) for name in REQUEST_FIELDS)

    def is_paused(self, now: datetime) -> bool:
        """True if the provider asked for a pause that has not ended."""
        return self.paused_until is not None and self.paused_until > now

    def is_evaluator(self) -> bool:
        """True if the replies are judgements that annotators must not see before they label."""
        return PROVIDERS[self.provider].is_evaluator

    def prices(self) -> Prices:
        """The prices per million tokens; zero for an offline endpoint."""
        if self.is_offline:
            return Prices(Decimal(0), Decimal(0))
        return Prices(self.price_in, self.price_out, self.price_cached, self.price_reasoning)

    def pinned(
        self, strategy: Mapping[str, Any] | None = None, own: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the settings that a run pins: everything that shapes a request, without the key.
        The parameters are those of the endpoint, changed by those of the `strategy` and by the
        run's `own`, under the names that the model's family uses.
        """
        shapes = {name: getattr(self, name) for name in REQUEST_FIELDS}
        defaults = PROVIDERS[self.provider].default_parameters
        of_strategy = fit_token_limit(self.model, self.parameters, strategy or {})
        layers = (self.parameters, of_strategy, own or {})
        shapes["parameters"] = merge_parameters(self.provider, self.model, defaults, *layers)
        return {"name": self.name} | shapes

    def remaining_at(self) -> datetime | None:
        """The time at which the provider last reported remaining limits."""
        at = self.remaining.get("at")
        return datetime.fromisoformat(at) if at else None

    def note_remaining(self, said: Mapping[str, Any], now: datetime) -> None:
        """Store the remaining limits that the provider's headers report, at most once per
        REMAINING_EVERY.
        """
        noted = self.remaining_at()
        if not said or (noted and abs(now - noted) < REMAINING_EVERY):
            return
        at = now.astimezone(UTC).isoformat(timespec="seconds")
        self.remaining = {"at": at, "limits": dict(said)}
        Endpoint.objects.filter(pk=self.pk).update(remaining=self.remaining)
