"""What the API takes and gives of runs. Numbers and names, never ids of the database."""

from typing import Any

from rest_framework import serializers

from judging import strategies
from judging.models import Outcome, Run
from judging.runs.counts import PaidReplies
from judging.runs.forms.new_run import MOST_KEYS
from judging.runs.progress import Progress, RunPace, RunStatus
from judging.strategies.definitions import MAX_EXAMPLES, MAX_SAMPLES


class _NameField(serializers.CharField):
    """A slug of ours, or what an import called a category."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=80, **kwargs)


class StartSerializer(serializers.Serializer[Any]):
    """A new run. The same seed chooses the same items for a `limit`.

    `categories`, `abilities` and `keys` narrow the items down, each if it names any. `votes` says
    whether several `samples` are votes instead of repeats, null leaves it to the strategy.
    `parameters` are laid over the endpoint's. `axes` may name "main" for the axis of each item's
    ability. An explanation check is `over` a run. A `canary` asks anew what was answered. Only a
    lead may ask about items that people are still labelling.
    """

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
    samples = serializers.IntegerField(
        default=None, allow_null=True, min_value=1, max_value=MAX_SAMPLES
    )
    votes = serializers.BooleanField(default=None, allow_null=True)
    axes = serializers.ListField(child=_NameField(), default=list, max_length=40)
    examples = serializers.IntegerField(
        default=None, allow_null=True, min_value=0, max_value=MAX_EXAMPLES
    )
    parameters = serializers.DictField(default=dict)
    categories = serializers.ListField(child=_NameField(), default=list, max_length=1000)
    abilities = serializers.ListField(child=_NameField(), default=list, max_length=1000)
    keys = serializers.ListField(
        child=serializers.CharField(max_length=200), default=list, max_length=MOST_KEYS
    )
    over = serializers.IntegerField(
        default=None, allow_null=True, min_value=1, max_value=2_147_483_647
    )
    canary = serializers.BooleanField(default=False)
    while_labelling = serializers.BooleanField(default=False)

    def validate_cap(self, cap: Any) -> Any:
        return check_cap(cap)

    def validate_parameters(self, parameters: Any) -> Any:
        try:
            strategies.compute_digest(parameters)
        except (TypeError, ValueError) as problem:
            raise serializers.ValidationError(f"No request can carry this: {problem}") from problem
        return parameters


def check_cap(cap: Any) -> Any:
    """A cap that leaves something to ask for."""
    if cap == 0:
        raise serializers.ValidationError("With a cap of 0 no request can be sent.")
    return cap


class ResumeSerializer(serializers.Serializer[Any]):
    """How a paused run goes on: under a higher `cap`, the project's at most; null leaves it as it
    is."""

    cap = serializers.DecimalField(
        default=None, allow_null=True, max_digits=14, decimal_places=6, min_value=0
    )


class MoveSerializer(serializers.Serializer[Any]):
    """The name of the endpoint at which a run is asked from now on."""

    endpoint = serializers.CharField(max_length=80)


class RunSerializer(serializers.Serializer[Run]):
    number = serializers.IntegerField()
    kind = serializers.CharField()
    state = serializers.CharField()
    reason = serializers.CharField()
    strategy = serializers.CharField(source="strategy.slug")
    strategy_version = serializers.IntegerField(source="strategy.number")
    endpoint = serializers.CharField(source="endpoint.name")
    started_by = serializers.CharField(source="member.alias", default=None, allow_null=True)
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)
    archived_at = serializers.DateTimeField(allow_null=True)
    occasion = serializers.CharField(allow_blank=True)
    is_part = serializers.BooleanField(
        help_text="Over part of the items that were available at its start."
    )
    while_labelling = serializers.BooleanField()


class ListedRunSerializer(RunSerializer):
    """A run with counts of its items: all, not decided yet, missing."""

    items = serializers.IntegerField(source="counted.items")
    pending = serializers.IntegerField(source="counted.pending")
    missing = serializers.IntegerField(source="counted.missing")


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
    """A run with all that it rests on.

    `sends` are the parameters of each of its requests, our defaults among them; those that are
    null among the pinned ones are not sent.
    """

    pinned = serializers.JSONField()
    sends = serializers.DictField()
    parser = serializers.CharField()
    renderer = serializers.CharField()
    seed = serializers.IntegerField()
    samples = serializers.IntegerField()
    few_shot = serializers.JSONField()
    sources = serializers.SerializerMethodField()
    digest = serializers.CharField()
    cap = serializers.DecimalField(max_digits=14, decimal_places=6, allow_null=True)
    spent = serializers.DecimalField(max_digits=20, decimal_places=12)

    def get_sources(self, run: Run) -> list[int]:
        return list(run.sources.order_by("number").values_list("number", flat=True))


class PaidSerializer(serializers.Serializer[PaidReplies]):
    """Of a run's `replies`, whichever run asked for them: `unknown` came at an unknown price, and
    took so many `unknown_tokens`; `charged` cost something, the others nothing."""

    replies = serializers.IntegerField()
    unknown = serializers.IntegerField()
    unknown_tokens = serializers.IntegerField(source="tokens")
    charged = serializers.IntegerField()


class RunPaceSerializer(serializers.Serializer[RunPace]):
    """What is answered a second now, and the seconds until the rest is; null if nothing comes."""

    per_second = serializers.FloatField(allow_null=True)
    seconds_left = serializers.FloatField(allow_null=True)


class WatchedRunSerializer(serializers.Serializer[RunStatus]):
    """A run and where it stands: missing items by cause, what providers said of requests that
    failed and of those that wait for another try.

    `unattended`: something is due and no worker is alive. `paused_until`: the evaluator
    asked not to be called before. `steps` can be taken now. `refused` is a parameter of ours that
    the evaluator refused: `ask-without/` starts the same run without it, or with the same limit as
    `instead`, which is what the evaluator says to send in its place. `run.spent` leaves out
    what replies of an unknown price cost; `paid` says how many there are.
    """

    run = PinnedRunSerializer()
    progress = RunProgressSerializer()
    missing = serializers.DictField(child=serializers.IntegerField())
    failed = WordsSerializer(many=True)
    tried = WordsSerializer(many=True)
    unattended = serializers.BooleanField()
    paused_until = serializers.DateTimeField(allow_null=True)
    steps = serializers.ListField(child=serializers.CharField())
    pace = RunPaceSerializer()
    refused = serializers.CharField(allow_blank=True)
    instead = serializers.CharField(allow_blank=True)
    paid = PaidSerializer(source="run.counted.paid")


class OutcomeSerializer(serializers.Serializer[Outcome]):
    item = serializers.CharField(source="item.key")
    revision = serializers.IntegerField(source="revision.number")
    ability = serializers.CharField()
    category = serializers.CharField()
    source_ability = serializers.CharField()
    cluster = serializers.CharField()
    score_invariant = serializers.BooleanField(source="invariant")
    axis = serializers.CharField(allow_blank=True)
    main = serializers.BooleanField()
    result = serializers.CharField()
    detail = serializers.CharField()
    cause = serializers.CharField()
    values = serializers.JSONField()
