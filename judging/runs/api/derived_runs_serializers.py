"""What the API takes and gives where runs are foreseen, made of runs, or read again."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from judging.models import Call, Reading, Reply
from judging.runs.api.serializers import check_cap
from judging.runs.canaries import Canary, Drift
from judging.runs.reparse import OutcomeChange, ReparsePreview
from judging.runs.start import PlannedRun


class AmountSerializer(serializers.Serializer[Any]):
    """Money in the currency of the endpoint's prices, with the interval of the pilot."""

    value = serializers.DecimalField(max_digits=20, decimal_places=6)
    low = serializers.DecimalField(max_digits=20, decimal_places=6)
    high = serializers.DecimalField(max_digits=20, decimal_places=6)


class EstimateSerializer(serializers.Serializer[Any]):
    """A figure with its 95 % interval; null with a reason where it is not defined."""

    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    n = serializers.IntegerField()
    reason = serializers.CharField(allow_blank=True)


class PilotSerializer(serializers.Serializer[Any]):
    """What one call took, by `n` replies that are there."""

    n = serializers.IntegerField()
    tokens = EstimateSerializer()
    cost = EstimateSerializer()


class AskingSerializer(serializers.Serializer[PlannedRun]):
    """What a run would ask: `stored` of its `requests` are answered already and cost nothing.

    `cost` is by the length of the prompts, null where a price is unknown; `by_pilot` has an
    interval once 30 calls are answered. `pilots` are runs that are measuring it now.
    """

    strategy = serializers.CharField(source="strategy.slug")
    strategy_version = serializers.IntegerField(source="strategy.number")
    endpoint = serializers.CharField(source="endpoint.name")
    items = serializers.IntegerField(source="foreseen.items")
    calls = serializers.IntegerField(source="foreseen.calls")
    requests = serializers.IntegerField(source="foreseen.requests")
    stored = serializers.IntegerField(source="foreseen.stored")
    to_ask = serializers.IntegerField(source="foreseen.to_ask")
    cost = serializers.DecimalField(
        source="foreseen.cost", max_digits=20, decimal_places=6, allow_null=True
    )
    pilot = PilotSerializer(source="foreseen.pilot")
    by_pilot = AmountSerializer(source="foreseen.by_pilot", allow_null=True)
    wants_pilot = serializers.BooleanField()
    pilots = serializers.SerializerMethodField()
    labelling = serializers.IntegerField(source="foreseen.labelling")
    examples = serializers.ListField(source="foreseen.examples", child=serializers.CharField())

    def get_pilots(self, asking: PlannedRun) -> list[int]:
        return [run.number for run in asking.pilots]


class AgainSerializer(serializers.Serializer[Any]):
    """Something is asked again; only a lead may do so while people label the items."""

    while_labelling = serializers.BooleanField(default=False)


class CloneSerializer(AgainSerializer):
    """How far a clone is the same: over the items as they are now, or as they were pinned; at the
    same endpoint, or at another one by its name."""

    endpoint = serializers.CharField(default=None, allow_null=True, max_length=80)
    as_pinned = serializers.BooleanField(default=False)
    cap = serializers.DecimalField(
        default=None, allow_null=True, max_digits=14, decimal_places=6, min_value=0
    )

    def validate_cap(self, cap: Any) -> Any:
        return check_cap(cap)


class DeriveSerializer(serializers.Serializer[Any]):
    """Runs by their numbers, and the strategy that makes one outcome of theirs."""

    strategy = serializers.CharField(max_length=80)
    runs = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2_147_483_647), max_length=1000
    )


class ParserSerializer(serializers.Serializer[Any]):
    """By which parser replies are read; null for the one that the run has, as it is now."""

    parser = serializers.CharField(default=None, allow_null=True, allow_blank=True, max_length=80)


class OutcomeChangeSerializer(serializers.Serializer[OutcomeChange]):
    """An item, along one axis, and what it is held for now and would be."""

    item = serializers.CharField()
    axis = serializers.CharField(allow_blank=True)
    before = serializers.CharField()
    after = serializers.CharField()


class CountedChangeSerializer(serializers.Serializer[Any]):
    """How many outcomes would change in one way."""

    before = serializers.CharField()
    after = serializers.CharField()
    n = serializers.IntegerField()


class ReparsedSerializer(serializers.Serializer[ReparsePreview]):
    """What another parser would change; `changes` are the first of them, `counts` are of all."""

    parser = serializers.CharField()
    outcomes = serializers.IntegerField()
    changed = serializers.IntegerField()
    counts = serializers.SerializerMethodField()
    changes = OutcomeChangeSerializer(many=True)

    def get_counts(self, preview: ReparsePreview) -> list[dict[str, Any]]:
        return [
            {"before": before, "after": after, "n": n}
            for (before, after), n in preview.counts.most_common()
        ]


class DriftSerializer(serializers.Serializer[Drift]):
    """How many outcomes of an asking differ from the first one's, of those that both decided."""

    run = serializers.IntegerField(source="run.number")
    state = serializers.CharField(source="run.state")
    asked_at = serializers.DateTimeField(source="run.created_at")
    changed = serializers.IntegerField()
    share = EstimateSerializer()


class CanarySerializer(serializers.Serializer[Canary]):
    """All askings of a canary by their runs' numbers, and how far each later one drifted."""

    askings = serializers.SerializerMethodField()
    drifts = DriftSerializer(many=True)

    def get_askings(self, canary: Canary) -> list[int]:
        return [run.number for run in canary.askings]


class ReplySerializer(serializers.Serializer[Reply]):
    """What came back, as it came."""

    text = serializers.CharField(allow_blank=True)
    finish = serializers.CharField()
    model = serializers.CharField(allow_blank=True)
    tokens_in = serializers.IntegerField(allow_null=True)
    tokens_out = serializers.IntegerField(allow_null=True)
    cost = serializers.DecimalField(max_digits=20, decimal_places=12, allow_null=True)
    asked_at = serializers.DateTimeField()
    seconds = serializers.FloatField()


class StoredReadingSerializer(serializers.Serializer[Reading]):
    """What a parser made of a reply: a value, or the cause why there is none."""

    parser = serializers.CharField()
    value = serializers.JSONField()
    path = serializers.CharField(allow_blank=True)
    cause = serializers.CharField(allow_blank=True)
    explanation = serializers.CharField(allow_blank=True)


class CallSerializer(serializers.Serializer[Call]):
    """What a run wanted of one item, and all that came of it; `shows` is what an earlier step said
    that this call shows. `message` has the provider's words about a failure."""

    item = serializers.CharField(source="outcome.item.key")
    axis = serializers.CharField(allow_blank=True)
    role = serializers.CharField()
    order = serializers.IntegerField()
    step = serializers.IntegerField()
    sample = serializers.IntegerField()
    request = serializers.CharField(source="request.digest")
    state = serializers.CharField(source="request.state")
    cause = serializers.CharField(source="request.cause", allow_blank=True)
    message = serializers.CharField(source="request.message", allow_blank=True)
    attempts = serializers.IntegerField(source="request.attempts")
    shows = serializers.JSONField(source="fed_by.value", default=None)
    reply = ReplySerializer(source="request.reply", default=None, allow_null=True)
    readings = serializers.SerializerMethodField()

    @extend_schema_field(StoredReadingSerializer(many=True))
    def get_readings(self, call: Call) -> Any:
        reply = getattr(call.request, "reply", None)
        return [
            StoredReadingSerializer(one).data for one in (reply.readings.all() if reply else ())
        ]
