from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Q
from django.utils import timezone

from judging.evaluators.providers import merge_defaults
from judging.querysets import CallQuerySet, OutcomeQuerySet, RunQuerySet
from judging.runs import run_config
from judging.strategies import Strategy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judging.results.run_marks import RunMark
    from judging.runs.counts import ItemCounts


class Budget(models.Model):
    """What a project may spend on evaluators; no row means no limit."""

    project = models.OneToOneField("annotation.Project", models.PROTECT, related_name="budget")
    cap = models.DecimalField(max_digits=14, decimal_places=6, null=True, blank=True)
    reserved = models.DecimalField(max_digits=20, decimal_places=12, default=0)
    spent = models.DecimalField(max_digits=20, decimal_places=12, default=0)

    def __str__(self) -> str:
        return f"budget of {self.project}"


class Run(models.Model):
    """One strategy over a frozen set of items, with all that it pins (design 3.10)."""

    class Kind(models.TextChoices):
        ASKED = "asked"
        RECORDED = "recorded"
        DERIVED = "derived"

    class State(models.TextChoices):
        PLANNING = "planning"
        RUNNING = "running"
        PAUSED = "paused"
        FINISHED = "finished"
        CANCELLED = "cancelled"

    project = models.ForeignKey("annotation.Project", models.PROTECT, related_name="runs")
    number = models.PositiveIntegerField()
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.ASKED)
    strategy = models.ForeignKey("StrategyVersion", models.PROTECT, related_name="runs")
    endpoint = models.ForeignKey("Endpoint", models.PROTECT, related_name="runs")
    pinned = models.JSONField(help_text="The endpoint as it was: provider, address, parameters.")
    parser = models.CharField(max_length=80)
    renderer = models.CharField(max_length=20)
    digest = models.CharField(max_length=64, help_text="Of all that the run pins.")
    seed = models.BigIntegerField()
    samples = models.PositiveSmallIntegerField(
        default=1, help_text="How often each call is made: repeats, or votes if it folds them."
    )
    sources = models.ManyToManyField(
        "self",
        symmetrical=False,
        blank=True,
        related_name="derived",
        help_text="The runs that it votes over, checks the explanations of, or asks again.",
    )
    few_shot = models.JSONField(
        default=list, help_text="Items shown as examples: pairs of key and revision digest."
    )
    occasion = models.CharField(
        max_length=40, blank=True, help_text="Why it asks anew what was answered: a canary."
    )
    generates = models.BooleanField(
        default=False, db_default=False, help_text="Makes texts of items, and judges none."
    )
    is_part = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Over a part of the items that it could have been over when it began.",
    )
    while_labelling = models.BooleanField(
        default=False, help_text="Started while people were labelling its items, as a lead allowed."
    )
    state = models.CharField(max_length=10, choices=State.choices, default=State.PLANNING)
    reason = models.TextField(blank=True, help_text="Why it is paused, in words.")
    cap = models.DecimalField(max_digits=14, decimal_places=6, null=True, blank=True)
    reserved = models.DecimalField(max_digits=20, decimal_places=12, default=0)
    spent = models.DecimalField(max_digits=20, decimal_places=12, default=0)
    member = models.ForeignKey("annotation.Membership", models.PROTECT, null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)

    objects = RunQuerySet.as_manager()
    # Put there by `tallies.with_item_counts`.
    counted: "ItemCounts"
    # Put there by `results.run_marks`: why it stands beside no other run unless it is named.
    marks: "Sequence[RunMark]" = ()

    class Meta:
        ordering = ["project_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["project", "number"], name="run_number"),
            models.CheckConstraint(
                condition=Q(reserved__gte=0, spent__gte=0), name="run_money_positive"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.project.slug} run {self.number}"

    def was_answered(self) -> bool:
        """Whether anything that it wants was answered since it was started."""
        return self.calls.filter(request__reply__created_at__gte=self.created_at).exists()

    def asked(self) -> Strategy:
        """The strategy as this run pins it."""
        return run_config.build_strategy(self.strategy.strategy(), self.pinned)

    def sends(self) -> dict[str, Any]:
        """The parameters of each request, our defaults among them. Of a run that asked nobody
        those that it pins, since what else was sent is not known."""
        if self.kind == self.Kind.ASKED:
            return merge_defaults(self.pinned)
        return {
            name: value for name, value in self.pinned["parameters"].items() if value is not None
        }


class Outcome(models.Model):
    """What a run says of one item, along one axis if its strategy has some. Made pending with the
    run, it pins the item's revision.

    Category, ability and cluster are copied here, so that a headline table is one GROUP BY.
    """

    class Result(models.TextChoices):
        PENDING = "pending"
        DETECTED = "detected"
        UNDETECTED = "undetected"
        SCORED = "scored"
        MADE = "made"
        MISSING = "missing"

    run = models.ForeignKey(Run, models.PROTECT, related_name="outcomes")
    item = models.ForeignKey("annotation.Item", models.PROTECT, related_name="outcomes")
    revision = models.ForeignKey("annotation.Revision", models.PROTECT, related_name="outcomes")
    category = models.CharField(max_length=80)
    ability = models.CharField(max_length=80)
    source_ability = models.CharField(max_length=80, blank=True)
    cluster = models.CharField(max_length=64)
    invariant = models.BooleanField(help_text="Score-invariant: a detection is a false alarm.")
    truth = models.CharField(
        max_length=40, blank=True, help_text="What the item was held for when it was pinned."
    )
    axis = models.CharField(max_length=40, blank=True)
    main = models.BooleanField(
        default=True, help_text="What headline figures count: the axis of the item's ability."
    )
    result = models.CharField(max_length=10, choices=Result.choices, default=Result.PENDING)
    detail = models.CharField(max_length=20, blank=True)
    share = models.FloatField(
        null=True, help_text="Share of its parsed repeats that detect, 0 to 1."
    )
    cause = models.CharField(max_length=20, blank=True)
    values = models.JSONField(default=dict)

    objects = OutcomeQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "item", "axis"], name="outcome_one"),
            models.CheckConstraint(
                condition=Q(result="missing") & ~Q(cause="") | ~Q(result="missing") & Q(cause=""),
                name="outcome_missing_has_cause",
            ),
        ]
        indexes = [
            models.Index(
                fields=["run", "ability", "category", "result", "cluster"], name="outcome_table"
            ),
            models.Index(
                fields=["run", "cause"], condition=Q(result="missing"), name="outcome_missing"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.item} in {self.run}: {self.result}"

    def reject(self, reason: str) -> None:
        """The item makes no request, so nobody can be asked about it."""
        self.result, self.cause = self.Result.MISSING, "rejected"
        self.values = {"reason": reason}
        self.save(update_fields=["result", "cause", "values"])


class Call(models.Model):
    """What a run wants of one item; it points at the request that answers it."""

    run = models.ForeignKey(Run, models.PROTECT, related_name="calls")
    outcome = models.ForeignKey(Outcome, models.PROTECT, related_name="calls")
    role = models.CharField(max_length=20)
    order = models.PositiveSmallIntegerField(default=0)
    step = models.PositiveSmallIntegerField(default=0)
    axis = models.CharField(max_length=40, blank=True)
    sample = models.PositiveSmallIntegerField(default=0)
    request = models.ForeignKey("Request", models.PROTECT, related_name="calls")
    fed_by = models.ForeignKey(
        "Reading",
        models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="What an earlier reply said that this call shows.",
    )

    objects = CallQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["outcome", "role", "order", "step", "axis", "sample"], name="call_one"
            )
        ]
        indexes = [models.Index(fields=["request", "run"], name="call_of_request")]

    def __str__(self) -> str:
        return f"{self.role} {self.order} of {self.outcome_id}"
