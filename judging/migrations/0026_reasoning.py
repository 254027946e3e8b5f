"""Thinking and its tokens, cached tokens, and the prices of both.

The new columns of replies are nullable and have neither default nor check, so that adding them
neither writes nor reads a row.
"""

import django.core.validators
from django.db import migrations, models
from django.db.models import Q


def _price(help_text: str) -> models.DecimalField:
    return models.DecimalField(
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        validators=[django.core.validators.MinValueValidator(0)],
        help_text=help_text,
    )


class Migration(migrations.Migration):
    dependencies = [("judging", "0025_endpoint_json_modes")]

    operations = [
        migrations.AddField(
            "reply",
            "tokens_cached",
            models.IntegerField(
                null=True, help_text="The input tokens that were read from the provider's cache."
            ),
        ),
        migrations.AddField(
            "reply",
            "tokens_reasoning",
            models.IntegerField(
                null=True, help_text="The output tokens that were spent on thinking."
            ),
        ),
        migrations.AddField(
            "reply",
            "thinking",
            models.TextField(
                null=True, help_text="What the model wrote before its reply. It is never parsed."
            ),
        ),
        migrations.AddField(
            "endpoint",
            "price_cached",
            _price("Price of a million input tokens from the provider's cache."),
        ),
        migrations.AddField(
            "endpoint",
            "price_reasoning",
            _price("Price of a million output tokens of thinking."),
        ),
        migrations.AddConstraint(
            "endpoint",
            models.CheckConstraint(
                condition=(Q(price_cached=None) | Q(price_cached__gte=0))
                & (Q(price_reasoning=None) | Q(price_reasoning__gte=0)),
                name="endpoint_prices_of_parts",
            ),
        ),
    ]
