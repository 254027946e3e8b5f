"""What the API takes and says of endpoints: never a key, only the name of the variable that holds
it."""

from typing import Any

from rest_framework import serializers

from annotation.api.form_bodies import FormSerializer
from judging.evaluators.forms import EndpointPageForm
from judging.evaluators.keys import is_key_set
from judging.evaluators.providers import merge_defaults
from judging.evaluators.trial_call import TrialResult
from judging.models import Endpoint


class EndpointSerializer(serializers.ModelSerializer[Endpoint]):
    """An evaluator. Prices are of a million tokens, null where unknown.

    `sends` are the parameters of every request: defaults, and `parameters` over them. `key_set`:
    whether the server finds a key in `key_variable`. `remaining`: what the provider's headers said
    is left, and when.
    """

    sends = serializers.SerializerMethodField()
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
            "sends",
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

    def get_sends(self, endpoint: Endpoint) -> dict[str, Any]:
        return merge_defaults(endpoint.pinned())

    def get_key_set(self, endpoint: Endpoint) -> bool:
        return is_key_set(endpoint.key_variable)


class NewEndpointSerializer(FormSerializer):
    """An evaluator to be set up. One that is asked in chats gets a limit of tokens among its
    parameters, unless these name one or say by null that there is to be none."""

    form = EndpointPageForm


class ChangedEndpointSerializer(FormSerializer):
    """What is to be changed of an endpoint. Once runs rest on it, what shapes its requests stays:
    provider, address, model, parameters, api, template and json_mode."""

    form = EndpointPageForm
    leaves = frozenset({"name"})


class TriedSerializer(serializers.Serializer[TrialResult]):
    """What came of a test call; `problem` says why there is no answer. `cost` is null where a price
    or a count of tokens is unknown."""

    problem = serializers.CharField(allow_blank=True)
    text = serializers.CharField(allow_blank=True)
    finish = serializers.CharField(allow_blank=True)
    model = serializers.CharField(allow_blank=True)
    tokens_in = serializers.IntegerField(allow_null=True)
    tokens_out = serializers.IntegerField(allow_null=True)
    seconds = serializers.FloatField(allow_null=True)
    cost = serializers.DecimalField(max_digits=20, decimal_places=12, allow_null=True)
