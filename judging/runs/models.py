"""Models of runs: budgets, runs, outcomes, calls and cached counts, with their querysets."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Count, Exists, F, OuterRef, Q, Value
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce, Length, Lower
from django.utils import timezone

from annotation.items.diffing import difference
from annotation.items.models import IN_DATA_SET
from judging.evaluators.providers import merge_defaults
from judging.runs import run_config
from judging.runs.engine.models import lease_expired
from judging.strategies import Strategy
from judging.strategies.replies.causes import ONE_ORDER, list_reply_causes

if TYPE_CHECKING:
    from annotation.models import Project
    from judging.models import StrategyVersion


# The `truth` that a run pins of an item without a final label. No final label is called so.
UNLABELLED = "unlabelled"
# The pause reason of a run that a person paused.
PAUSED_BY_HAND = "Paused by hand."


class RunQuerySet(models.QuerySet["Run"]):
    def in_project(self, project: Project) -> RunQuerySet:
        """The project's runs, including archived runs and pilots."""
        return self.filter(project=project)

    def guided(self) -> RunQuerySet:
        """Return the runs that regenerate items with reviewers' remarks."""
        return self.filter(pinned__own__has_key="guidance").select_related("strategy")

    def planning(self) -> RunQuerySet:
        """Runs whose calls are still being created, with their strategies."""
        return self.filter(state="planning").select_related("strategy")

    def running(self) -> RunQuerySet:
        """Runs that send requests now; a paused run does not count. Neither does a run of an
        archived project: nobody could see or stop it."""
        return self.filter(state="running", project__archived_at=None)

    def going_on(self) -> RunQuerySet:
        """Runs that are being planned or that send requests; a paused run does not count."""
        return self.filter(state__in=["planning", "running"])

    def stopped(self) -> RunQuerySet:
        """Runs that a person cancelled or paused. Runs that the program paused, because of a cap or
        a refused key, are not included: their calls in flight are paid for, so they end
        normally."""
        return self.filter(Q(state="cancelled") | Q(state="paused", reason=PAUSED_BY_HAND))

    def due(self, now: datetime) -> RunQuerySet:
        """Runs with calls to plan, with requests to send, or without open requests, which can be
        finished."""
        calls = self._calls()
        waiting = Q(request__state="waiting", request__next_try__lte=now)
        expired = Q(request__state="leased") & lease_expired("request__leased_until", now)
        still_open = calls.filter(request__state__in=["waiting", "leased"])
        running = Q(state="running") & (
            Exists(calls.filter(waiting | expired)) | ~Exists(still_open)
        )
        return self.filter(Q(state="planning") | running)

    def to_retry(self) -> RunQuerySet:
        """Runs with failed requests that can be sent again, or with missing outcomes that another
        run's retry has fixed."""
        from judging.models import Request

        # The query starts from the failed requests, since few requests failed but a run may have
        # many calls.
        failed = Call.objects.filter(request__in=Request.objects.filter(state="failed"))
        mended = Outcome.objects.filter(run=OuterRef("pk")).mended()
        retried = self.filter(kind="asked", state__in=["running", "paused", "finished"])
        return retried.filter(Q(pk__in=failed.values("run")) | Exists(mended))

    def _calls(self) -> models.QuerySet[Any]:

        return Call.objects.filter(run=OuterRef("pk"))

    def with_strategy(self, version: StrategyVersion) -> RunQuerySet:
        """Runs with any version of a strategy, newest first."""
        owner = Q(strategy__project=version.project_id)
        return self.filter(owner, strategy__slug=version.slug).order_by("-number")

    def judging(self) -> RunQuerySet:
        """Runs that count in figures, thus without generator runs, which judge nothing."""
        return self.filter(generates=False)

    def listed(self, *, archived: bool = False) -> RunQuerySet:
        """Runs for lists and figures, with archived runs only if requested."""
        return self if archived else self.filter(archived_at=None)

    def with_name(self, name: str) -> RunQuerySet:
        """Unarchived runs with this name, in small or capital letters."""
        # Compared as the constraint does, whatever letters the database knows to turn.
        return self.listed().alias(lower=Lower("name")).filter(lower=Lower(Value(name)))

    def tagged(self, tag: str) -> RunQuerySet:
        """Runs with this tag."""
        # SQLite cannot look into a JSON list; a project has hundreds of runs, not millions.
        pairs = self.exclude(tags=[]).values_list("pk", "tags")
        return self.filter(pk__in=[pk for pk, tags in pairs if tag in tags])

    def list_tags(self) -> list[str]:
        """The tags of these runs, sorted."""
        every = self.exclude(tags=[]).order_by().values_list("tags", flat=True)
        return sorted({tag for tags in every for tag in tags})

    def numbered(self, numbers: Iterable[int]) -> RunQuerySet:
        """Runs with these numbers. Run numbers are unique only within a project."""
        # A number too large for the column belongs to no run, and would raise a database error.
        return self.filter(number__in=[one for one in numbers if 0 < one < 2**31])

    def for_results(self) -> RunQuerySet:
        """Runs with everything that tables of results show, ordered by number."""
        return self.select_related("strategy", "endpoint", "project").order_by("number")

    def for_page(self) -> RunQuerySet:
        """Runs with everything that the page of a run shows, in one query."""
        return self.select_related("strategy", "endpoint", "member", "project")

    def for_list(self) -> RunQuerySet:
        """Runs with everything that a list shows, latest first."""
        return self.select_related("strategy", "endpoint", "member").order_by("-number")


if TYPE_CHECKING:
    from annotation.models import Item


# No column can contain this character, so a search for it finds nothing.
NUL = "\x00"


class OutcomeQuerySet(models.QuerySet[Any]):
    def of_requests(self, ids: Iterable[int]) -> OutcomeQuerySet:
        """Outcomes with a call for any of these requests."""
        return self.filter(calls__request__among=ids).distinct()

    def main(self) -> OutcomeQuerySet:
        """The outcomes along the axes of the items' own abilities, if there are several axes."""
        return self.filter(main=True)

    def pending(self) -> OutcomeQuerySet:
        """Outcomes without a result yet."""
        return self.filter(result="pending")

    def mended(self) -> OutcomeQuerySet:
        """Outcomes that are missing because a request failed, but without a failed request now,
        since another run has retried it."""
        in_reply = list_reply_causes()
        failures = ~Q(cause__in=[*in_reply, ONE_ORDER]) | (
            Q(cause=ONE_ORDER) & ~Q(values__missing__in=in_reply)
        )
        made, failed = self._calls(), self._calls().filter(request__state="failed")
        # A call that could not be created, see `Outcome.reject`, has no failed request.
        unsent = Q(cause="rejected", values__has_key="reason")
        # Each missing outcome has a cause, but SQLite uses the index of missing outcomes only if
        # the query contains this condition.
        missing = self.filter(failures & ~unsent, result="missing", cause__gt="")
        return missing.filter(Exists(made), ~Exists(failed))

    def lock_unsure(self) -> list[int]:
        """Lock and return the ids of the outcomes that a retry decides again: missing outcomes with
        calls, and outcomes with a failed call. Pending outcomes are locked too. The locks are taken
        in the order in which outcomes are decided."""
        failed = self._calls().filter(request__state="failed")
        unsure = Q(Exists(self._calls()), result="missing") | Q(Exists(failed))
        locked = self.filter(unsure | Q(result="pending")).order_by("pk")
        rows = locked.select_for_update(no_key=True).values_list("pk", "result")
        return [pk for pk, result in rows if result != "pending"]

    def reopen(self) -> int:
        """Make these outcomes pending again."""
        return self.update(result="pending", detail="", cause="", share=None, values={})

    def settled(self) -> OutcomeQuerySet:
        """Outcomes with a result, missing outcomes included."""
        return self.exclude(result="pending")

    def counted(self) -> OutcomeQuerySet:
        """Settled outcomes that count in figures: the item still has, on the judged revision, the
        final label that the run pinned, and is part of the data set: not excluded, and not for
        qualification or control. If the run pinned no label, any final label is enough."""
        return self.settled().filter(self._held())

    def counted_or_unlabelled(self) -> OutcomeQuerySet:
        """The outcomes of `counted`, and settled outcomes that were judged without a final label,
        of items of the data set whose texts are still the same."""
        current = Q(revision__number=F("item__revision_number"))
        return self.settled().filter(self._held() | Q(truth=UNLABELLED) & current & IN_DATA_SET)

    def not_counted(self) -> OutcomeQuerySet:
        """Settled outcomes that figures leave out."""
        return self.settled().filter(~self._held())

    def parsed(self) -> OutcomeQuerySet:
        """Outcomes with a verdict: detected or undetected."""
        return self.filter(result__in=["detected", "undetected"])

    def with_errors(self) -> OutcomeQuerySet:
        """Outcomes of items with an error, without duplicates."""
        return self.filter(invariant=False).exclude(ability="")

    def of_invariant(self) -> OutcomeQuerySet:
        """Outcomes of score-invariant items, without duplicates."""
        return self.filter(invariant=True).exclude(ability="")

    def of_repeats(self) -> OutcomeQuerySet:
        """Outcomes of duplicate items, which belong to no ability."""
        return self.filter(ability="")

    def without_repeats(self) -> OutcomeQuerySet:
        """Outcomes of items that are no duplicates."""
        return self.exclude(ability="")

    def originals(self) -> OutcomeQuerySet:
        """Leave out exact duplicates. Unlike `without_repeats`, this also holds for task types
        whose items need no ability."""
        return self.filter(item__duplicate_of=None)

    def with_moved(self) -> OutcomeQuerySet:
        """Annotate `moved`, the score of the perturbed answer minus the score of the gold answer;
        None unless both were scored."""
        of = [Cast(KT(f"values__{name}"), models.FloatField()) for name in ("perturbed", "gold")]
        return self.annotate(moved=of[0] - of[1])

    def for_list(self) -> OutcomeQuerySet:
        """Outcomes in the order of the items, without texts and the items' own fields, either of
        which may have megabytes."""
        found = self.select_related("item", "revision").defer("revision__texts", "item__fields")
        return found.order_by("item__position")

    def for_replies(self) -> OutcomeQuerySet:
        """Outcomes with item, revision, project and task type, which are needed to parse the
        replies."""
        return self.select_related("item", "revision__item__project__task_type")

    def along(self, axis: str) -> OutcomeQuerySet:
        """Outcomes along this axis. With "", all outcomes, beginning with those along the items'
        own axes."""
        if not axis:
            return self.order_by("-main", "axis")
        return self.none() if NUL in axis else self.filter(axis=axis)

    def about(self, key: str) -> OutcomeQuerySet:
        """Outcomes of the item with this key."""
        return self.none() if NUL in key else self.filter(item__key=key)

    def of_item(self, item: Item) -> OutcomeQuerySet:
        """Outcomes of one item in all runs, the latest run first."""
        found = self.filter(item=item).select_related("run__strategy", "run__endpoint", "revision")
        return found.order_by("-run__number")

    def count_items(self) -> models.QuerySet[Any, dict[str, Any]]:
        """The numbers of all, pending and missing items of each run."""

        def items(**such: Any) -> Count:
            return Count("item", distinct=True, filter=Q(**such))

        counted = {
            "pending": items(result="pending"),
            "missing": items(result="missing", main=True),
        }
        return self.values("run").annotate(items=items(), **counted).order_by()

    def kinds(self) -> models.QuerySet[Any, dict[str, Any]]:
        """The number of outcomes for each combination of ability, category, source ability, result,
        detail and cause."""
        fields = ("ability", "category", "source_ability", "result", "detail", "cause")
        return self.values(*fields).annotate(n=Count("pk")).order_by(*fields)

    def _held(self) -> Q:
        from annotation.models import Resolution

        # Use a single condition: with two conditions, PostgreSQL looks up each outcome separately
        # instead of joining the tables.
        truth = models.ExpressionWrapper(OuterRef("truth"), output_field=models.CharField())
        now = Resolution.objects.current().filter(
            IN_DATA_SET, item=OuterRef("item"), revision=OuterRef("revision")
        )
        return Q(Exists(now.alias(truth=truth).filter(Q(value=F("truth")) | Q(truth=""))))

    def _calls(self) -> models.QuerySet[Any]:

        return Call.objects.filter(outcome=OuterRef("pk"))

    def missing_by_cause(self) -> models.QuerySet[Any, dict[str, Any]]:
        """The causes of missing outcomes as dicts, each with its number of outcomes `n`, most
        frequent first."""
        counted = self.filter(result="missing").values("cause").annotate(n=Count("pk"))
        return counted.order_by("-n", "cause")


class CallQuerySet(models.QuerySet[Any]):
    def for_list(self, key: str | None = None) -> CallQuerySet:
        """Calls with item, request, reply and readings; if a key is given, only calls for the item
        with this key."""
        found = self.select_related("outcome__item").defer("outcome__item__fields").for_replies()
        if key is None:
            return found
        return self.none() if NUL in key else found.filter(outcome__item__key=key)

    def list_places_with_length(self) -> models.QuerySet[Any, tuple[Any, ...]]:
        """For each call: its supplement, sample, order, role and step, its id, and the characters
        of its reply and thinking, which are not loaded."""
        reply, thinking = Length("request__reply__text"), Length("request__reply__thinking")
        length = Coalesce(reply, 0) + Coalesce(thinking, 0)
        place = ("supplement", "sample", "order", "role", "step", "pk")
        return self.order_by().annotate(length=length).values_list(*place, "length")

    def for_replies(self) -> CallQuerySet:
        """Calls with request, reply and readings, in the order of creation."""
        return (
            self.select_related("request__reply", "fed_by")
            .prefetch_related("request__reply__readings")
            .order_by("pk")
        )


if TYPE_CHECKING:
    from collections.abc import Sequence

    from judging.results.run_marks import RunMark
    from judging.runs.counts import ItemCounts


class Budget(models.Model):
    """A project's spending cap for evaluators. A project without a row has no cap."""

    project = models.OneToOneField("annotation.Project", models.PROTECT, related_name="budget")
    cap = models.DecimalField(max_digits=14, decimal_places=6, null=True, blank=True)
    reserved = models.DecimalField(max_digits=20, decimal_places=12, default=0)
    spent = models.DecimalField(max_digits=20, decimal_places=12, default=0)

    def __str__(self) -> str:
        return f"budget of {self.project}"


class Run(models.Model):
    """The application of a strategy to a fixed set of items, with everything that the run pins."""

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
    name = models.CharField(
        max_length=60,
        blank=True,
        default="",
        db_default="",
        help_text="A short name, unique among the runs of the project that are not archived.",
    )
    tags: Any = models.JSONField(
        default=list,
        blank=True,
        db_default=models.Value([], models.JSONField()),
        help_text="Short words by which runs are filtered and chosen.",
    )
    note = models.TextField(
        blank=True, default="", db_default="", help_text="A text for readers of the run's page."
    )
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.ASKED)
    strategy = models.ForeignKey("StrategyVersion", models.PROTECT, related_name="runs")
    endpoint = models.ForeignKey("Endpoint", models.PROTECT, related_name="runs")
    pinned = models.JSONField(help_text="The endpoint at the start: provider, address, parameters.")
    parser = models.CharField(max_length=80)
    renderer = models.CharField(max_length=20)
    taxonomy = models.ForeignKey(
        "annotation.TaxonomyVersion",
        models.PROTECT,
        to_field="digest",
        null=True,
        related_name="+",
        help_text="The version of the categories under which the items were chosen.",
    )
    diff_algorithm = models.CharField(
        max_length=20,
        default=difference.ALGORITHM,
        help_text="The version of the diff by which edit sizes and places are measured.",
    )
    digest = models.CharField(max_length=64, help_text="Digest of everything the run pins.")
    seed = models.BigIntegerField()
    samples = models.PositiveSmallIntegerField(
        default=1, help_text="Samples per call: repeats, or votes if the run combines them."
    )
    sources = models.ManyToManyField(
        "self",
        symmetrical=False,
        blank=True,
        related_name="derived",
        help_text="The runs that it combines, repeats, or whose explanations it checks.",
    )
    few_shot = models.JSONField(
        default=list, help_text="Items shown as examples: pairs of key and digest of the revision."
    )
    occasion = models.CharField(
        max_length=40, blank=True, help_text="Why it sends answered requests again: a canary."
    )
    generates = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Whether it generates texts of items instead of judging items.",
    )
    is_part = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Whether it uses only part of the items that were available at its start.",
    )
    while_labelling = models.BooleanField(
        default=False,
        help_text="Whether it was started while its items were being labelled, as a lead allowed.",
    )
    state = models.CharField(max_length=10, choices=State.choices, default=State.PLANNING)
    reason = models.TextField(blank=True, help_text="Why it is paused.")
    cap = models.DecimalField(max_digits=14, decimal_places=6, null=True, blank=True)
    reserved = models.DecimalField(max_digits=20, decimal_places=12, default=0)
    spent = models.DecimalField(max_digits=20, decimal_places=12, default=0)
    member = models.ForeignKey("annotation.Membership", models.PROTECT, null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)

    objects = RunQuerySet.as_manager()
    # Set by `counts.with_item_counts`.
    counted: ItemCounts
    # Set by `results.run_marks`: the reason why tables leave out the run unless it is chosen.
    marks: Sequence[RunMark] = ()
    # Set by `results.run_marks` on a result page whose reader drops the numbers of named runs.
    hides_number = False
    # Set by `results.run_marks` on a result page all of whose runs are over part of the items.
    hides_part = False

    class Meta:
        ordering = ["project_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["project", "number"], name="run_number"),
            models.UniqueConstraint(
                "project",
                Lower("name"),
                condition=Q(archived_at=None) & ~Q(name=""),
                name="run_name_once",
            ),
            models.CheckConstraint(
                condition=Q(reserved__gte=0, spent__gte=0), name="run_money_positive"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.project.slug} run {self.number}"

    @property
    def title(self) -> str:
        """The run in headings and lists: its name and number, or "Run 7" without a name."""
        if not self.name:
            return f"Run {self.number}"
        return self.name if self.hides_number else f"{self.name} · run {self.number}"

    @property
    def strategy_name(self) -> str:
        """The slug of the strategy, for a translation with the language: "translate into
        Swedish"."""
        language = run_config.load_overrides(self.pinned).language
        return f"{self.strategy.slug} into {language}" if language else self.strategy.slug

    @property
    def label(self) -> str:
        """The run in tables and charts: its name and number, or number and strategy without a
        name."""
        if not self.name:
            return f"{self.number} · {self.strategy_name}"
        return self.name if self.hides_number else f"{self.name} · {self.number}"

    @property
    def mention(self) -> str:
        """The run within a sentence: "run 7", with its name if it has one."""
        if not self.name:
            return f"run {self.number}"
        return f"“{self.name}”" if self.hides_number else f"run {self.number} (“{self.name}”)"

    def was_answered(self) -> bool:
        """True if any request of the run was answered since the run started."""
        return self.calls.filter(request__reply__created_at__gte=self.created_at).exists()

    def pinned_strategy(self) -> Strategy:
        """The strategy with the run's pinned settings."""
        return run_config.build_strategy(self.strategy.strategy(), self.pinned)

    def sends(self) -> dict[str, Any]:
        """The parameters of each request, including our defaults. For a run that called no
        evaluator, only the pinned parameters, since others are not known."""
        if self.kind == self.Kind.ASKED:
            return merge_defaults(self.pinned)
        return {
            name: value for name, value in self.pinned["parameters"].items() if value is not None
        }


class Outcome(models.Model):
    """A run's result for one item, along one axis if its strategy has axes. The outcome is created
    together with the run, as pending, and pins the item's revision.

    Category, ability and cluster are copied here, so that a headline table needs only one GROUP BY.
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
        max_length=40, blank=True, help_text="The final label of the item when the run pinned it."
    )
    axis = models.CharField(max_length=40, blank=True)
    main = models.BooleanField(
        default=True, help_text="Used for headline figures: the axis of the item's ability."
    )
    result = models.CharField(max_length=10, choices=Result.choices, default=Result.PENDING)
    detail = models.CharField(max_length=20, blank=True)
    share = models.FloatField(
        null=True, help_text="Share of the parsed repeats that detected the error, 0 to 1."
    )
    cause = models.CharField(max_length=20, blank=True)
    values = models.JSONField(default=dict)
    drawn = models.JSONField(
        null=True,
        blank=True,
        help_text="What a generator drew for the item: by draw, the options with their values.",
    )

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
            # Whether there are any is asked at each result page; mostly there are none.
            models.Index(fields=["run"], condition=Q(truth=UNLABELLED), name="outcome_unlabelled"),
        ]

    def __str__(self) -> str:
        return f"{self.item} in {self.run}: {self.result}"

    @property
    def decided_values(self) -> dict[str, Any]:
        """The values of the decision; {} while it is pending, when `values` may hold what
        `former_results` keeps."""
        return {} if self.result == self.Result.PENDING else self.values

    def reject(self, reason: str) -> None:
        """Mark the outcome as missing because no request can be made for the item."""
        self.result, self.cause = self.Result.MISSING, "rejected"
        self.values = {"reason": reason}
        self.save(update_fields=["result", "cause", "values"])


class Call(models.Model):
    """A question of a run about one item; it points at the request that answers the question."""

    run = models.ForeignKey(Run, models.PROTECT, related_name="calls")
    outcome = models.ForeignKey(Outcome, models.PROTECT, related_name="calls")
    role = models.CharField(max_length=20)
    order = models.PositiveSmallIntegerField(default=0)
    step = models.PositiveSmallIntegerField(default=0)
    axis = models.CharField(max_length=40, blank=True)
    sample = models.PositiveSmallIntegerField(default=0)
    supplement = models.SmallIntegerField(
        default=0,
        db_default=0,
        help_text="0 for the run's own calls; otherwise the number of its supplement.",
    )
    request = models.ForeignKey("Request", models.PROTECT, related_name="calls")
    fed_by = models.ForeignKey(
        "Reading",
        models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="The reading of an earlier reply that this call shows.",
    )

    objects = CallQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["outcome", "role", "order", "step", "axis", "sample", "supplement"],
                name="call_one_of_supplement",
            )
        ]
        indexes = [models.Index(fields=["request", "run"], name="call_of_request")]

    def __str__(self) -> str:
        return f"{self.role} {self.order} of {self.outcome_id}"


class Tally(models.Model):
    """Stored counts of a run, so that pages need not count a million rows.

    `state` identifies the state of the run that was counted; the counts are valid until the run's
    state string changes. While a run is running, a worker counts repeatedly. `shown_until` is the
    time until which these counts may be shown even if more replies have arrived.
    """

    class Kind(models.TextChoices):
        ITEMS = "items"
        PROGRESS = "progress"

    run = models.ForeignKey("Run", models.CASCADE, related_name="tallies")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    state = models.CharField(max_length=200)
    counts = models.JSONField()
    shown_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "tallies"
        constraints = [models.UniqueConstraint(fields=["run", "kind"], name="tally_one")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.run_id}"
