"""Serializers of the API. They use keys and aliases, and never database ids or stages of slots."""

from dataclasses import asdict
from math import isfinite
from typing import Any

from drf_spectacular.utils import extend_schema_field, inline_serializer
from rest_framework import serializers

from annotation import tasktypes
from annotation.items import taxonomy
from annotation.items.diffing import stored
from annotation.labelling import queue
from annotation.labelling.submissions import Submission
from annotation.models import Item, Label, Membership, Revision

AnyField = serializers.Field[Any, Any, Any, Any]


class NamedField(serializers.DictField):
    """Values by name. A name must not contain lone surrogates, since messages repeat the names."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        names = "".join(data) if isinstance(data, dict) else ""
        if any("\ud800" <= character <= "\udfff" for character in names):
            raise serializers.ValidationError(
                "A name contains half of a surrogate pair, which cannot be stored. Remove it."
            )
        named: dict[str, Any] = super().to_internal_value(data)
        return named


@extend_schema_field(
    {
        "type": "object",
        "additionalProperties": {
            "oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
        },
    }
)
class TextsField(serializers.JSONField):
    """Texts by name; a text that may have several alternatives is a list of texts."""


class ShownSerializer(serializers.Serializer[Any]):
    """The fields of every submission: its key, and the item and revision that were shown."""

    key = serializers.CharField(max_length=400, trim_whitespace=False)
    item = serializers.CharField(max_length=200, trim_whitespace=False)
    revision = serializers.IntegerField(min_value=1, max_value=2_147_483_647)

    def submission(self) -> Submission:
        sent = self.validated_data
        return Submission(sent["key"], sent["item"], sent["revision"])


class UndoSerializer(serializers.Serializer[Any]):
    submission = serializers.CharField(
        max_length=400,
        default="",
        trim_whitespace=False,
        help_text="The `submission` of your last label, or the key that you sent it with. If you "
        "send the request again, no other label is undone.",
    )


class SubmissionSerializer(ShownSerializer):
    answers = NamedField(child=serializers.JSONField())
    comment = serializers.CharField(
        default="", allow_blank=True, max_length=10_000, trim_whitespace=False
    )
    seconds = serializers.FloatField(default=None, allow_null=True, min_value=0)

    def validate_seconds(self, seconds: float | None) -> float | None:
        if seconds is not None and not isfinite(seconds):
            raise serializers.ValidationError("Give a finite number.")
        return seconds

    def submission(self) -> Submission:
        sent = self.validated_data
        shown = sent["key"], sent["item"], sent["revision"]
        return Submission(*shown, sent["answers"], sent["comment"], sent["seconds"])


class CorrectionSerializer(ShownSerializer):
    texts = NamedField(
        child=serializers.CharField(allow_blank=True, max_length=1_000_000, trim_whitespace=False)
    )
    note = serializers.CharField(default="", allow_blank=True, max_length=2_000)


class ProgressSerializer(serializers.Serializer[queue.MemberProgress]):
    """Counts of items: labelled by you (`mine`), resolved, in the project (`total`) and not yet
    resolved (`left`). `awaiting` counts the items among `left` that cannot be labelled yet: they
    lack a text or are not released. `todo` counts the items that you can still label. Where items
    need several labels, `labels` of `labels_wanted` have been given."""

    mine = serializers.IntegerField()
    resolved = serializers.IntegerField()
    total = serializers.IntegerField()
    left = serializers.IntegerField()
    awaiting = serializers.IntegerField()
    todo = serializers.IntegerField()
    labels = serializers.IntegerField()
    labels_wanted = serializers.IntegerField()


class ProjectSerializer(serializers.Serializer[Any]):
    slug = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    task_type = serializers.CharField(source="task_type.slug")
    overlap = serializers.IntegerField()
    role = serializers.CharField(source="my_role", allow_null=True)


class ProjectDetailSerializer(serializers.Serializer[Membership]):
    """A project as a member sees it, with its task type."""

    slug = serializers.CharField(source="project.slug")
    name = serializers.CharField(source="project.name")
    description = serializers.CharField(source="project.description")
    task_type = serializers.CharField(source="project.task_type.slug")
    overlap = serializers.IntegerField(source="project.overlap")
    role = serializers.CharField()
    alias = serializers.CharField()
    task = serializers.SerializerMethodField()
    guidelines = serializers.SerializerMethodField()
    progress = serializers.SerializerMethodField()

    def get_task(self, member: Membership) -> dict[str, Any]:
        return tasktypes.asked_definition(member.project)

    @extend_schema_field(
        inline_serializer(
            "Guidelines",
            {"number": serializers.IntegerField(), "text": serializers.CharField()},
            allow_null=True,
        )
    )
    def get_guidelines(self, member: Membership) -> dict[str, Any] | None:
        guidelines = member.project.guidelines.last()
        return {"number": guidelines.number, "text": guidelines.text} if guidelines else None

    @extend_schema_field(ProgressSerializer)
    def get_progress(self, member: Membership) -> Any:
        return ProgressSerializer(queue.load_progress(member)).data


class CategorySerializer(serializers.Serializer[taxonomy.Category]):
    slug = serializers.CharField()
    name = serializers.CharField()
    ability = serializers.CharField()
    description = serializers.CharField()
    example = inline_serializer(
        "Example",
        {"before": serializers.CharField(), "after": serializers.CharField()},
        allow_null=True,
    )


class DifferenceSerializer(serializers.Serializer[Any]):
    """The stored comparison of two texts.

    A segment is a string if both texts are equal there, otherwise a pair of lists of strings that
    alternate between unchanged and changed, beginning with unchanged.
    """

    algorithm = serializers.CharField()
    segments = serializers.ListField(child=serializers.JSONField())
    edit_size = serializers.FloatField()
    place = serializers.FloatField(allow_null=True)
    identical = serializers.BooleanField()
    white_space_only = serializers.BooleanField()


class ShownItemSerializer(serializers.Serializer[queue.Offer]):
    """An item as its annotator sees it, without anything that reveals the answer.

    In the phase "blind", the item has only the texts that are shown first, no category and no diff.
    """

    key = serializers.CharField()
    category = CategorySerializer(allow_null=True)
    texts = TextsField()
    diff = DifferenceSerializer(allow_null=True)
    order = serializers.ListField(
        child=serializers.CharField(),
        allow_null=True,
        help_text="The names of the two texts to compare, in the order in which to show them as A "
        "and B; answers name the texts. Null if the task has no such pair.",
    )


class WaitingSerializer(serializers.Serializer[queue.Waiting]):
    """The reason why there is no item now. The work is not done while `held_by_others` (items
    reserved by others) or `awaiting` (items that lack a text or are not released) is above 0."""

    held_by_others = serializers.IntegerField()
    awaiting = serializers.IntegerField()
    next_free = serializers.DateTimeField(allow_null=True)
    done = serializers.IntegerField()


class OfferSerializer(serializers.Serializer[queue.Offer]):
    """An item to work on; the submission must carry `revision` and `key`."""

    item = ShownItemSerializer()
    revision = serializers.IntegerField()
    key = serializers.CharField()
    phase = serializers.ChoiceField(["blind", "qualification", "label"])

    def to_representation(self, offer: queue.Offer) -> dict[str, Any]:
        # The data are built by hand: nested serializers took longer than the rest of the call.
        return {
            "item": _offer_fields(offer),
            "revision": offer.revision.number,
            "key": offer.key,
            "phase": offer.phase,
        }


class NoOfferSerializer(serializers.Serializer[Any]):
    waiting = WaitingSerializer()
    importing = serializers.CharField(
        default="",
        help_text="Progress of a running import, in words; empty if there is none.",
    )


class LabelSerializer(serializers.Serializer[Any]):
    submission = serializers.CharField()
    item = serializers.CharField()
    revision = serializers.IntegerField()
    annotator = serializers.CharField()
    choice = serializers.CharField()
    answers = serializers.DictField(child=serializers.JSONField())
    comment = serializers.CharField()
    seconds = serializers.FloatField(allow_null=True)
    first_shown = serializers.CharField(
        help_text="The text of a pair that the annotator saw as A; empty if no order was drawn."
    )
    current = serializers.BooleanField()
    counted = serializers.BooleanField()
    withdrawn_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()

    def to_representation(self, label: Label) -> dict[str, Any]:
        # The data are built by hand, as for an offer: labels are read more often than anything
        # else.
        return {
            "submission": label.submission,
            "item": label.item.key,
            "revision": label.revision.number,
            "annotator": label.member.alias,
            "choice": label.choice,
            "answers": label.answers,
            "comment": label.comment,
            "seconds": label.seconds,
            "first_shown": label.first_shown,
            "current": label.current,
            "counted": label.counted,
            "withdrawn_at": label.withdrawn_at,
            "created_at": label.created_at,
        }


class ItemSerializer(serializers.Serializer[Any]):
    """An item without its texts."""

    key = serializers.CharField()
    category = serializers.CharField()
    ability = serializers.CharField()
    source_ability = serializers.CharField()
    origin = serializers.CharField()
    purpose = serializers.CharField()
    cluster = serializers.CharField()
    duplicate_of = serializers.CharField(source="duplicate_of.key", default=None, allow_null=True)
    flags = serializers.ListField(child=serializers.CharField())
    revision = serializers.IntegerField(source="revision_number")
    resolution = serializers.CharField(allow_null=True)
    resolution_source = serializers.CharField(allow_null=True)
    resolution_rule = serializers.CharField(allow_null=True)


class RevisionSerializer(serializers.Serializer[Revision]):
    number = serializers.IntegerField()
    digest = serializers.CharField()
    texts = TextsField()
    author = serializers.CharField(source="author.alias", default=None, allow_null=True)
    note = serializers.CharField()
    created_at = serializers.DateTimeField()


class ItemDetailSerializer(ItemSerializer):
    """An item with all its revisions; the last revision is current."""

    revisions = RevisionSerializer(many=True)
    diff = serializers.SerializerMethodField()

    def get_fields(self) -> dict[str, AnyField]:
        # Not declared above, since a serializer has an attribute of this name.
        return super().get_fields() | {"fields": serializers.JSONField()}

    @extend_schema_field(DifferenceSerializer(allow_null=True))
    def get_diff(self, item: Item) -> Any:
        return difference_fields(item.revision())


def difference_fields(revision: Revision) -> Any:
    """The revision's stored diff as JSON; None if the task compares no texts, or if one of the
    compared texts is missing."""
    task = tasktypes.load_version(revision.item.project.task_type)
    return stored.load_json(revision) if task.diff else None


def _offer_fields(offer: queue.Offer) -> dict[str, Any]:
    texts = offer.revision.texts
    pair = tasktypes.load_version(offer.item.project.task_type).pair if offer.first else None
    order = list(pair.in_order(offer.first)) if pair else None
    if offer.phase == "blind":
        blind = tasktypes.load_version(offer.item.project.task_type).blind
        first = {name: texts[name] for name in (blind.shows if blind else ()) if name in texts}
        return {"key": offer.name, "category": None, "texts": first, "diff": None, "order": order}
    category = taxonomy.load_taxonomy(offer.item.project).find(offer.item.category)
    return {
        "key": offer.item.key,
        "category": _category(category) if category else None,
        "texts": texts,
        "diff": difference_fields(offer.revision),
        "order": order,
    }


def _category(category: taxonomy.Category) -> dict[str, Any]:
    """The category without its expected effect, which would reveal the answer."""
    names = ("slug", "name", "ability", "description")
    example = asdict(category.example) if category.example else None
    return {name: getattr(category, name) for name in names} | {"example": example}
