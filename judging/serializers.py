"""What the API takes and gives of runs. Numbers and names, never ids of the database."""

from typing import Any

from rest_framework import serializers

from judging.models import Outcome, Run
from judging.watching import Progress, Watched


class StartSerializer(serializers.Serializer[Any]):
    """A new run. The same seed chooses the same items for a `limit`."""

    strategy = serializers.CharField(max_length=80)
    endpoint = serializers.CharField(max_length=80)
    limit = serializers.IntegerField(
        default=None, allow_null=True, min_value=1, max_value=2_147_483_647
    )
    cap = serializers.DecimalField(
        default=None, allow_null=True, max_digits=14, decimal_places=6, min_value=0
    )
    with_duplicates = serializers.BooleanField(default=False)
    seed = serializers.IntegerField(default=None, allow_null=True, min_value=0, max_value=2**48 - 1)

    def validate_cap(self, cap: Any) -> Any:
        if cap == 0:
            raise serializers.ValidationError("Nothing can be asked for 0.")
        return cap


class RunSerializer(serializers.Serializer[Run]):
    number = serializers.IntegerField()
    state = serializers.CharField()
    reason = serializers.CharField()
    strategy = serializers.CharField(source="strategy.slug")
    strategy_version = serializers.IntegerField(source="strategy.number")
    endpoint = serializers.CharField(source="endpoint.name")
    started_by = serializers.CharField(source="member.alias", default=None, allow_null=True)
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class ListedRunSerializer(RunSerializer):
    """A run with counts of its items: all, not decided yet, missing."""

    items = serializers.IntegerField()
    pending = serializers.IntegerField()
    missing = serializers.IntegerField()


class WordsSerializer(serializers.Serializer[Any]):
    """How many requests failed, or wait for another try, in these words of the provider."""

    cause = serializers.CharField(allow_blank=True)
    message = serializers.CharField()
    n = serializers.IntegerField()


class RunProgressSerializer(serializers.Serializer[Progress]):
    """Counts of requests, then of items; failures by cause; calls that are still to be made."""

    requests = serializers.IntegerField()
    answered = serializers.IntegerField()
    failed = serializers.IntegerField()
    waiting = serializers.IntegerField()
    items = serializers.IntegerField()
    settled = serializers.IntegerField()
    failures = serializers.DictField(child=serializers.IntegerField())
    to_come = serializers.IntegerField()


class PinnedRunSerializer(RunSerializer):
    """A run with all that it rests on."""

    pinned = serializers.JSONField()
    parser = serializers.CharField()
    renderer = serializers.CharField()
    seed = serializers.IntegerField()
    digest = serializers.CharField()
    cap = serializers.DecimalField(max_digits=14, decimal_places=6, allow_null=True)
    spent = serializers.DecimalField(max_digits=14, decimal_places=6)


class WatchedRunSerializer(serializers.Serializer[Watched]):
    """A run and where it stands: missing items by cause, what providers said of requests that
    failed and of those that wait for another try.

    `unattended`: something is due and no worker takes it up. `paused_until`: the evaluator
    asked not to be called before. `steps` can be taken now.
    """

    run = PinnedRunSerializer()
    progress = RunProgressSerializer()
    missing = serializers.DictField(child=serializers.IntegerField())
    failed = WordsSerializer(many=True)
    tried = WordsSerializer(many=True)
    unattended = serializers.BooleanField()
    paused_until = serializers.DateTimeField(allow_null=True)
    steps = serializers.ListField(child=serializers.CharField())


class OutcomeSerializer(serializers.Serializer[Outcome]):
    item = serializers.CharField(source="item.key")
    revision = serializers.IntegerField(source="revision.number")
    ability = serializers.CharField()
    category = serializers.CharField()
    source_ability = serializers.CharField()
    cluster = serializers.CharField()
    score_invariant = serializers.BooleanField(source="invariant")
    result = serializers.CharField()
    detail = serializers.CharField()
    cause = serializers.CharField()
    values = serializers.JSONField()


class FiguresSerializer(serializers.Serializer[Any]):
    """A table of figures as the command prints it: rates are fractions of 1, unrounded."""

    table = serializers.CharField()
    columns = serializers.ListField(child=serializers.CharField())
    rows = serializers.ListField(child=serializers.DictField())
