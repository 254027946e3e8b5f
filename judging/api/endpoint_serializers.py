"""What the API says of endpoints: never a key, only the name of the variable that holds it."""

from typing import Any

from rest_framework import serializers

from judging.models import Endpoint
from judging.providers import parameters_of
from judging.providers.keys import is_set


class EndpointSerializer(serializers.ModelSerializer[Endpoint]):
    """An evaluator. Prices are of a million tokens, null where unknown.

    `parameters` are what is sent, defaults included. `key_set`: whether the server finds a key in
    `key_variable`. `remaining`: what the provider's headers said is left, and when.
    """

    parameters = serializers.SerializerMethodField()
    key_set = serializers.SerializerMethodField()
    remaining = serializers.JSONField(read_only=True)

    class Meta:
        model = Endpoint
        fields = (
            "name",
            "provider",
            "address",
            "key_variable",
            "key_set",
            "model",
            "api",
            "template",
            "json_mode",
            "parameters",
            "in_flight",
            "per_minute",
            "tokens_per_minute",
            "timeout",
            "price_in",
            "price_out",
            "paused_until",
            "remaining",
            "created_at",
        )
        read_only_fields = fields

    def get_parameters(self, endpoint: Endpoint) -> dict[str, Any]:
        return parameters_of(endpoint.pinned())

    def get_key_set(self, endpoint: Endpoint) -> bool:
        return is_set(endpoint.key_variable)
