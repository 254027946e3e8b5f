import re
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.utils import timezone

from judging.providers import PROVIDERS
from judging.providers.prices import Prices
from judging.querysets import EndpointQuerySet
from judging.strategies import Strategy, from_definition

PROVIDER_CHOICES = {"openai_compatible": "OpenAI-compatible", "baseline": "Baseline (offline)"}


_SECRET = re.compile(r"(?i)key|secret|password|authorization|\btoken\b")


class Endpoint(models.Model):
    """An evaluator that can be called. Its key stays in the environment; only a name is here."""

    name = models.SlugField(max_length=80, unique=True)
    provider = models.CharField(max_length=40, choices=PROVIDER_CHOICES)
    address = models.CharField(
        max_length=300, blank=True, help_text="Base URL, for example https://host/v1"
    )
    key_variable = models.CharField(
        max_length=80,
        blank=True,
        validators=[RegexValidator(r"^[A-Z][A-Z0-9_]*_API_KEY\Z")],
        help_text="The environment variable that holds the key; its name ends in _API_KEY.",
    )
    model = models.CharField(max_length=200)
    parameters = models.JSONField(default=dict, blank=True)
    in_flight = models.PositiveSmallIntegerField(
        default=16, validators=[MinValueValidator(1)], help_text="Calls at the same time."
    )
    per_minute = models.PositiveIntegerField(null=True, blank=True, help_text="Calls a minute.")
    timeout = models.PositiveSmallIntegerField(
        default=120, validators=[MinValueValidator(1)], help_text="Seconds for one call."
    )
    price_in = models.DecimalField(
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="A million tokens in.",
    )
    price_out = models.DecimalField(
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="A million tokens out.",
    )
    paused_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

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
                condition=models.Q(provider__in=list(PROVIDER_CHOICES)), name="endpoint_provider"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        if self.provider != "baseline" and not self.address:
            raise ValidationError({"address": "Give the base URL of the evaluator."})
        if not isinstance(self.parameters, dict):
            raise ValidationError({"parameters": "Give a JSON object, for example {}."})
        if secret := next(filter(_SECRET.search, self.parameters), None):
            raise ValidationError(
                {
                    "parameters": f"{secret!r} looks like a key. Parameters are stored and shown;"
                    " name the environment variable that holds the key instead."
                }
            )
        if self.pk and self.has_moved():
            raise ValidationError(
                "Runs rest on this endpoint's provider and address. Make a new endpoint."
            )

    def has_moved(self) -> bool:
        """Whether provider or address differ from what runs of this endpoint pin."""
        was = {"pinned__provider": self.provider, "pinned__address": self.address}
        return self.runs.exclude(**was).exists()

    def is_paused(self, now: datetime) -> bool:
        """Whether its provider asked not to be called yet."""
        return self.paused_until is not None and self.paused_until > now

    def prices(self) -> Prices:
        """What a million tokens cost; nothing where no network is needed."""
        if PROVIDERS[self.provider].offline:
            return Prices(Decimal(0), Decimal(0))
        return Prices(self.price_in, self.price_out)

    def pinned(self) -> dict[str, Any]:
        """What a run keeps of the endpoint: all that shapes a request, and no key."""
        return {
            "name": self.name,
            "provider": self.provider,
            "address": self.address,
            "model": self.model,
            "parameters": self.parameters,
        }


class StrategyVersion(models.Model):
    """One state of a strategy file. A run names it, so an edited file changes no old run."""

    slug = models.SlugField(max_length=80)
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    definition = models.JSONField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["slug", "number"]
        constraints = [
            models.UniqueConstraint(fields=["slug", "number"], name="strategy_number"),
            models.UniqueConstraint(fields=["slug", "digest"], name="strategy_digest"),
        ]

    def __str__(self) -> str:
        return f"{self.slug} v{self.number}"

    def strategy(self) -> Strategy:
        return from_definition(self.definition)
