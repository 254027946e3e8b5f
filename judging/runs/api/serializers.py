"""Serializers of runs. They use numbers and names, never database ids."""

from decimal import Decimal
from typing import Any

from rest_framework import serializers

from judging import strategies
from judging.evaluators.api import CurrencyField
from judging.models import Outcome, Run
from judging.runs import descriptions
from judging.runs.counts import PaidReplies
from judging.runs.estimate import Shortage
from judging.runs.forms import MOST_KEYS
from judging.runs.pinning import MAX_LANGUAGE
from judging.runs.progress import Progress, RunPace, RunStatus
from judging.runs.supplements import MAX_TIMEOUT, SupplementEstimate
from judging.runs.warnings import RunWarning
from judging.strategies.definitions import MAX_EXAMPLES, MAX_SAMPLES


class _NameField(serializers.CharField):
    """A slug defined by this program, or a category name from an import."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=80, **kwargs)


def _refuse_zero(cap: Decimal) -> None:
    if cap == 0:
        raise serializers.ValidationError("With a cap of 0 no request can be sent.")


class RunCapField(serializers.DecimalField):
    """The cap of a new run, which is above 0; null for none."""

    def __init__(self) -> None:
        super().__init__(
            default=None,
            allow_null=True,
            max_digits=14,
            decimal_places=6,
            min_value=0,
            validators=[_refuse_zero],
        )


class DescriptionSerializer(serializers.Serializer[Any]):
    """The name, the tags and the note of a run. The name is used once among the project's runs that
    are not archived; "" for none."""

    name = serializers.CharField(
        default="", allow_blank=True, max_length=descriptions.MAX_NAME, help_text="A short name."
    )
    tags = serializers.ListField(
        child=serializers.CharField(max_length=descriptions.MAX_TAG),
        default=list,
        max_length=descriptions.MAX_TAGS,
        help_text="Words to filter by, stored in small letters with hyphens for spaces.",
    )
    note = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=descriptions.MAX_NOTE,
        help_text="A text for readers of the run's page.",
    )


class StartSerializer(DescriptionSerializer):
    """A new run. With a `limit`, the same seed draws the same items.

    `categories`, `abilities` and `keys` filter the items; an empty list filters nothing. With
    `votes`, several `samples` are votes, otherwise repeats; null uses the strategy's default.
    `parameters` override the endpoint's. Without `axes`, or with "main" among them, each item is
    asked about along the axis of its ability, as in study 000. "all" asks along all axes of the
    strategy, with several times the requests; figures use only the axis of an item's ability. An
    explanation check needs `over`, the run to check. With `same_as`, the number of a run, the items
    are those of that run with their current texts, and the filters choose among them. A `canary`
    sends answered requests again. With `unlabelled`, error detection and ROUGE-L of responses
    also judge items without a final label. `draws` sets the shares of what a generator draws, by
    draw and option, in percent of the items; options that are left out get none, and draws that are
    left out keep the strategy's shares.
    `language` is what a translation is made into, by its English name. With the `items_digest` of
    an estimate with the same seed, nothing starts if items were added, changed, labelled or removed
    since then. Only a lead may include
    items that are still being labelled.
    """

    strategy = serializers.CharField(max_length=80)
    endpoint = serializers.CharField(max_length=80)
    limit = serializers.IntegerField(
        default=None, allow_null=True, min_value=1, max_value=2_147_483_647
    )
    cap = RunCapField()
    with_duplicates = serializers.BooleanField(default=False)
    unlabelled = serializers.BooleanField(default=False)
    language = serializers.CharField(default="", allow_blank=True, max_length=MAX_LANGUAGE)
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
    draws = serializers.DictField(
        child=serializers.DictField(child=serializers.FloatField(min_value=0)), default=dict
    )
    categories = serializers.ListField(child=_NameField(), default=list, max_length=1000)
    abilities = serializers.ListField(child=_NameField(), default=list, max_length=1000)
    keys = serializers.ListField(
        child=serializers.CharField(max_length=200), default=list, max_length=MOST_KEYS
    )
    over = serializers.IntegerField(
        default=None, allow_null=True, min_value=1, max_value=2_147_483_647
    )
    same_as = serializers.IntegerField(
        default=None, allow_null=True, min_value=1, max_value=2_147_483_647
    )
    canary = serializers.BooleanField(default=False)
    items_digest = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=64,
        help_text="That of the estimate: if the run would have other items now, it does not start.",
    )
    while_labelling = serializers.BooleanField(default=False)

    def validate_parameters(self, parameters: Any) -> Any:
        try:
            strategies.compute_digest(parameters)
        except (TypeError, ValueError) as problem:
            raise serializers.ValidationError(
                f"This cannot be sent in a request: {problem}"
            ) from problem
        return parameters


class ResumeSerializer(serializers.Serializer[Any]):
    """Resume a paused run with a higher `cap`, at most the project's cap; null keeps the current
    cap."""

    cap = serializers.DecimalField(
        default=None, allow_null=True, max_digits=14, decimal_places=6, min_value=0
    )


class MoveSerializer(serializers.Serializer[Any]):
    """The name of the endpoint that the run will use from now on."""

    endpoint = serializers.CharField(max_length=80)


class SupplementSerializer(serializers.Serializer[Any]):
    """The `parameters` to change when a run asks its unusable items again, and the `timeout` in
    seconds that its calls get from now on; null keeps it. Without parameters, only the failed
    requests are sent again, as they are."""

    parameters = serializers.DictField(default=dict)
    timeout = serializers.IntegerField(
        default=None, allow_null=True, min_value=1, max_value=MAX_TIMEOUT
    )


class PriceRangeSerializer(serializers.Serializer[Any]):
    """What a run costs, in `currency`."""

    low = serializers.DecimalField(max_digits=20, decimal_places=6)
    high = serializers.DecimalField(max_digits=20, decimal_places=6)


class ShortageSerializer(serializers.Serializer[Shortage]):
    """A message about a `limit`, "cap" or "budget", that is below the estimated price."""

    limit = serializers.CharField()
    message = serializers.CharField()


class SupplementEstimateSerializer(serializers.Serializer[SupplementEstimate]):
    """The `items` that a supplement would ask again, its `calls`, and their different `requests`,
    of which `stored` are already answered and cost nothing, and `to_ask` are to be sent. `price` is
    the range of what these cost, from replies as short as the endpoint's earlier ones to `cost`,
    with replies up to the token limit; both are null if a price is unknown. `shortages` are the
    limits that the price may exceed."""

    items = serializers.IntegerField()
    calls = serializers.IntegerField()
    requests = serializers.IntegerField()
    stored = serializers.IntegerField()
    to_ask = serializers.IntegerField()
    cost = serializers.DecimalField(max_digits=20, decimal_places=6, allow_null=True)
    price = PriceRangeSerializer(allow_null=True)
    shortages = ShortageSerializer(many=True)
    currency = CurrencyField()


class RunSerializer(serializers.Serializer[Run]):
    number = serializers.IntegerField()
    name = serializers.CharField(allow_blank=True)
    tags = serializers.ListField(child=serializers.CharField())
    note = serializers.CharField(allow_blank=True)
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
        help_text="Whether it uses only part of the items that were available at its start."
    )
    while_labelling = serializers.BooleanField()


class ListedRunSerializer(RunSerializer):
    """A run with its numbers of items: all, pending, missing."""

    items = serializers.IntegerField(source="counted.items")
    pending = serializers.IntegerField(source="counted.pending")
    missing = serializers.IntegerField(source="counted.missing")


class WordsSerializer(serializers.Serializer[Any]):
    """A message from the provider, with the number of requests that failed, or wait for another
    try, because of it."""

    cause = serializers.CharField(allow_blank=True)
    message = serializers.CharField()
    n = serializers.IntegerField()


class RunProgressSerializer(serializers.Serializer[Progress]):
    """Numbers of requests and items, failures by cause, and the calls that are still to be created.

    `in_flight` of the `waiting` requests are being sent now. `tries` are the failed tries by cause,
    even if a later try was answered. `spent_unanswered` is what those of them that the provider may
    have answered counted against caps: the most that they may have cost.
    """

    requests = serializers.IntegerField()
    answered = serializers.IntegerField()
    failed = serializers.IntegerField()
    waiting = serializers.IntegerField()
    items = serializers.IntegerField()
    settled = serializers.IntegerField()
    failures = serializers.DictField(child=serializers.IntegerField())
    to_come = serializers.IntegerField()
    in_flight = serializers.IntegerField()
    tries = serializers.DictField(child=serializers.IntegerField())
    spent_unanswered = serializers.FloatField()


class PinnedRunSerializer(RunSerializer):
    """A run with everything it pins.

    `sends` are the parameters sent with each request, including our defaults. Pinned parameters
    that are null are not sent.
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
    currency = CurrencyField()
    cap = serializers.DecimalField(max_digits=14, decimal_places=6, allow_null=True)
    spent = serializers.DecimalField(max_digits=20, decimal_places=12)

    def get_sources(self, run: Run) -> list[int]:
        return list(run.sources.order_by("number").values_list("number", flat=True))


class PaidSerializer(serializers.Serializer[PaidReplies]):
    """The prices of a run's `replies`, even if another run requested them. `unknown` replies have
    no known price and used `unknown_tokens`; `charged` replies cost something; all other replies
    were free."""

    replies = serializers.IntegerField()
    unknown = serializers.IntegerField()
    unknown_tokens = serializers.IntegerField(source="tokens")
    charged = serializers.IntegerField()


class RunPaceSerializer(serializers.Serializer[RunPace]):
    """Answers per second over the last 20 replies, however old, or over 10 s if more arrived in
    them, and the seconds left at that pace; null if nothing arrived since the run was started or
    resumed, or it is not running."""

    per_second = serializers.FloatField(allow_null=True)
    seconds_left = serializers.FloatField(allow_null=True)


class RunWarningSerializer(serializers.Serializer[RunWarning]):
    """A warning about a number of replies: `other_model` if they name another model than the one
    that was asked, `cut_prompts` if the server probably cut the prompts."""

    kind = serializers.CharField()
    replies = serializers.IntegerField()
    message = serializers.CharField()


class WatchedRunSerializer(serializers.Serializer[RunStatus]):
    """A run and its status: missing outcomes by cause, and the providers' messages for requests
    that failed or wait for another try.

    `unattended` is true if work is due and no worker is alive. `paused_until` is the time until
    which the provider asked for no calls. `steps` are the actions that are possible now. `refused`
    is a parameter of ours that the evaluator refused: `ask-without/` starts the same run without
    this parameter, or sends the same limit as `instead`, the parameter name that the evaluator
    asked for. `answered_by` counts the replies by the model that they name, and `warnings` say
    what may be wrong with replies that arrived. `run.spent` leaves out replies with an unknown
    price; `paid` counts them.
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
    answered_by = serializers.DictField(child=serializers.IntegerField())
    warnings = RunWarningSerializer(many=True)


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
    values = serializers.JSONField(source="decided_values")
    drawn = serializers.DictField(
        child=serializers.DictField(child=serializers.CharField(allow_blank=True)),
        allow_null=True,
        help_text="What a generator drew for the item: by draw, the options with their values.",
    )
