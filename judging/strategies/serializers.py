"""What the API takes and gives of strategies: texts, names and numbers, never ids."""

from typing import Any

from rest_framework import serializers

from judging.models import StrategyVersion
from judging.strategies import catalogue, descriptions, frames
from judging.strategies.editing import MAX_NOTE_LENGTH, MAX_SLUG_LENGTH, MAX_SOURCE_LENGTH
from judging.strategies.preview import CallPreview
from judging.strategies.replies.outputs import ParsedReply

LONGEST_REPLY = 200_000
LONGEST_TITLE = 120


class ListedStrategySerializer(serializers.Serializer[Any]):
    """A strategy in its newest version. `own`: the project wrote it. `runs` of the project use
    any version of it. New runs are not offered one that was retired."""

    slug = serializers.CharField(source="version.slug")
    title = serializers.CharField(source="strategy.title")
    study = serializers.CharField(source="strategy.study")
    frame = serializers.CharField(source="strategy.frame")
    output = serializers.CharField(source="strategy.output")
    own = serializers.BooleanField(source="is_own")
    version = serializers.IntegerField(source="version.number")
    digest = serializers.CharField(source="version.digest")
    runs = serializers.IntegerField()
    offered = serializers.BooleanField(source="is_offered")


class StrategyVersionSerializer(serializers.Serializer[Any]):
    """One version. `made_from` is the version that its text was made from, as "slug vN". A shipped
    one that was never used is not stored yet, and has no time."""

    slug = serializers.CharField()
    version = serializers.IntegerField(source="number")
    digest = serializers.CharField()
    created_at = serializers.SerializerMethodField()
    by = serializers.CharField(source="member.alias", default=None, allow_null=True)
    note = serializers.CharField(allow_blank=True)
    made_from = serializers.SerializerMethodField()
    runs = serializers.SerializerMethodField()

    def get_created_at(self, version: StrategyVersion) -> str | None:
        return version.created_at.isoformat() if version.pk else None

    def get_made_from(self, version: StrategyVersion) -> str | None:
        return str(version.parent) if version.parent else None

    def get_runs(self, version: StrategyVersion) -> int:
        return int(getattr(version, "used", 0))


class StrategyCallSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    title = serializers.CharField()


class StrategySerializer(StrategyVersionSerializer):
    """One version with its text (TOML), what that says, and the calls that an item takes."""

    title = serializers.SerializerMethodField()
    study = serializers.SerializerMethodField()
    toml = serializers.SerializerMethodField()
    definition = serializers.JSONField()
    offers = serializers.SerializerMethodField()
    decides = serializers.SerializerMethodField()
    calls = serializers.SerializerMethodField()

    def get_title(self, version: StrategyVersion) -> str:
        return version.strategy().title

    def get_study(self, version: StrategyVersion) -> str:
        return version.strategy().study

    def get_toml(self, version: StrategyVersion) -> str:
        return catalogue.get_source(version)

    def get_offers(self, version: StrategyVersion) -> str:
        return descriptions.describe_answers(version.strategy())

    def get_decides(self, version: StrategyVersion) -> list[str]:
        return descriptions.describe_decision(version.strategy())

    def get_calls(self, version: StrategyVersion) -> list[dict[str, str]]:
        strategy = version.strategy()
        return [
            {
                "name": descriptions.format_call_name(spec),
                "title": descriptions.format_call_title(strategy, spec),
            }
            for spec in frames.list_all_calls(strategy)
        ]


class StrategyCopySerializer(serializers.Serializer[Any]):
    """A copy of a strategy (by default of its newest version) as the project's own."""

    strategy = serializers.CharField(max_length=MAX_SLUG_LENGTH)
    version = serializers.IntegerField(default=None, allow_null=True, min_value=1)
    slug = serializers.CharField(max_length=MAX_SLUG_LENGTH)
    title = serializers.CharField(default="", allow_blank=True, max_length=LONGEST_TITLE)
    note = serializers.CharField(default="", allow_blank=True, max_length=MAX_NOTE_LENGTH)


class StrategyTextSerializer(serializers.Serializer[Any]):
    """The next version of an own strategy. `base` is the number of the version that the text was
    made from: if there is a later one by now, nothing is stored."""

    toml = serializers.CharField(max_length=MAX_SOURCE_LENGTH, trim_whitespace=False)
    base = serializers.IntegerField(min_value=1)
    note = serializers.CharField(default="", allow_blank=True, max_length=MAX_NOTE_LENGTH)


class StrategyTriedSerializer(serializers.Serializer[Any]):
    """`toml` is a text that is not stored; without one the newest version is meant. `call` is a
    name that the strategy lists."""

    toml = serializers.CharField(
        default=None, allow_null=True, max_length=MAX_SOURCE_LENGTH, trim_whitespace=False
    )
    call = serializers.CharField(default="", allow_blank=True, max_length=200)


class StrategyPreviewAskedSerializer(StrategyTriedSerializer):
    """Without an item one is taken that a run would be over. `said` stands for what only a run
    has: replies of earlier steps by their names, or explanation and score."""

    item = serializers.CharField(default="", allow_blank=True, max_length=200)
    endpoint = serializers.CharField(default="", allow_blank=True, max_length=80)
    said = serializers.DictField(
        child=serializers.CharField(max_length=MAX_SOURCE_LENGTH), default=dict
    )


class StrategyPromptSerializer(serializers.Serializer[Any]):
    system = serializers.CharField()
    user = serializers.CharField()
    parts = serializers.DictField(help_text="The texts that a baseline measures.")


class StrategySentSerializer(serializers.Serializer[Any]):
    body = serializers.CharField()
    digest = serializers.CharField(help_text="Empty while something stands in for a reply.")
    answered = serializers.BooleanField()


class StrategyPreviewSerializer(serializers.Serializer[CallPreview]):
    """What a call would send. `flags`: what the shown texts hold that speaks to the judge; they
    are passed as they are. `sent` is null without an endpoint, or where `refused` says why."""

    call = serializers.CharField()
    title = serializers.CharField()
    prompt = StrategyPromptSerializer()
    replies = serializers.DictField(child=serializers.CharField())
    stand_ins = serializers.ListField(child=serializers.CharField())
    flags = serializers.ListField(child=serializers.CharField())
    notes = serializers.ListField(child=serializers.CharField())
    sent = StrategySentSerializer(allow_null=True)
    refused = serializers.CharField()


class StrategyParseAskedSerializer(StrategyTriedSerializer):
    """A reply to be read as a run would read it, with how it ended."""

    text = serializers.CharField(allow_blank=True, max_length=LONGEST_REPLY, trim_whitespace=False)
    finish = serializers.ChoiceField(choices=list(descriptions.FINISH_DESCRIPTIONS), default="stop")


class StrategyReadingSerializer(serializers.Serializer[ParsedReply]):
    """What was read: `value` is a number, a word, true or false, or one for each metric, with a
    cause in the place of what was not read; null says why in `cause`."""

    value = serializers.JSONField()
    path = serializers.CharField()
    cause = serializers.CharField()
    explanation = serializers.CharField()
