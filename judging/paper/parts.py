"""The tables of an archive: which rows and columns of the database are frozen, and by which names.

A row names others by what is theirs in the project (an item's key, a run's number, a request's
digest), never by ids of the database; and no account, name or address of a person is among them.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Exists, ForeignKey, Model, OuterRef, QuerySet

from annotation import diffing
from annotation.models import (
    Diff,
    GuidelinesVersion,
    Item,
    Label,
    Membership,
    Project,
    Resolution,
    Revision,
    Slot,
    TaskTypeVersion,
)
from judging.models import (
    Call,
    Endpoint,
    Outcome,
    Reading,
    Reply,
    Request,
    Run,
    StrategyVersion,
)
from judging.paper import masking
from judging.paper.masking import Mask, Scope


@dataclass(frozen=True)
class Part:
    """One table of an archive.

    `key` names a row among the project's; columns may be foreign keys, which are written as the
    key of what they point at. Masks say what takes the place of a column's value: where texts
    (`texts`) or replies (`replies`) are not kept, and whatever is kept (`always`). `later` are
    columns that point at rows of the same table which may come after.
    """

    name: str
    model: type[Model]
    key: tuple[str, ...]
    columns: tuple[str, ...]
    rows: Callable[[Scope], QuerySet[Any]]
    texts: Mapping[str, Mask] = field(default_factory=dict)
    replies: Mapping[str, Mask] = field(default_factory=dict)
    always: Mapping[str, Mask] = field(default_factory=dict)
    later: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        return f"data/{self.name}.jsonl"

    @property
    def of_project(self) -> bool:
        """Whether every row belongs to the project and need not say so."""
        names = {one.name for one in self.model._meta.fields}
        return "project" in names and "project" not in self.columns

    def masked(self, scope: Scope) -> dict[str, Mask]:
        """What hides something, by column."""
        texts = {} if scope.texts else self.texts
        replies = {} if scope.replies else self.replies
        return {**texts, **replies, **self.always}


def target(model: type[Model], column: str) -> type[Model] | None:
    """The model that a column points at, if it does."""
    found = model._meta.get_field(column)
    return found.related_model if isinstance(found, ForeignKey) else None


def paths(model: type[Model], column: str) -> Iterator[str]:
    """How a query names a column's value, or the key of the row that it points at."""
    pointed = target(model, column)
    if pointed is None:
        yield column
        return
    for inner in KEYS[pointed]:
        yield from (f"{column}__{path}" for path in paths(pointed, inner))


def _of_project(model: type[Model]) -> Callable[[Scope], QuerySet[Any]]:
    return lambda scope: model._default_manager.filter(project=scope.project)


def _of_items(model: type[Model]) -> Callable[[Scope], QuerySet[Any]]:
    return lambda scope: model._default_manager.filter(item__project=scope.project)


def _of_runs(model: type[Model]) -> Callable[[Scope], QuerySet[Any]]:
    return lambda scope: model._default_manager.filter(run__in=scope.runs)


def _task_types(scope: Scope) -> QuerySet[Any]:
    mine = TaskTypeVersion.objects.filter(pk=scope.project.task_type_id)
    labels = Label.objects.filter(project=scope.project).order_by().values("task_type")
    return mine | TaskTypeVersion.objects.filter(pk__in=labels)


def _of_run(scope: Scope, column: str) -> QuerySet[Any]:
    return Run.objects.filter(pk__in=scope.runs).order_by().values(column)


def _endpoints(scope: Scope) -> QuerySet[Any]:
    """Those of the runs, and those that were first to ask what the runs shared."""
    asked = Request.objects.filter(_asked(scope, "pk")).order_by().values("endpoint").distinct()
    return Endpoint.objects.filter(pk__in=_of_run(scope, "endpoint")) | Endpoint.objects.filter(
        pk__in=asked
    )


def judged(runs: Collection[int]) -> QuerySet[Revision]:
    """The revisions that these runs are of."""
    return Revision.objects.filter(
        Exists(Outcome.objects.filter(revision=OuterRef("pk"), run__in=runs))
    )


def _asked(scope: Scope, request: str) -> Exists:
    return Exists(Call.objects.filter(run__in=scope.runs, request=OuterRef(request)))


PARTS: tuple[Part, ...] = (
    Part(
        "task_types", TaskTypeVersion, ("slug", "number"),
        ("slug", "number", "digest", "definition", "source"), _task_types,
    ),
    Part(
        "project", Project, ("slug",),
        (
            "slug", "name", "description", "task_type", "overlap", "hold_minutes",
            "share_percent", "share_overlap", "disputed_overlap", "rules", "verify",
            "blind_first", "claim_check", "expected_effect", "practice_items", "practice_pass",
            "probe_every", "text_format", "guidelines_field", "created_at",
        ),
        lambda scope: Project.objects.filter(pk=scope.project.pk),
    ),
    Part(
        "guidelines", GuidelinesVersion, ("number",),
        ("number", "text", "variants", "note", "created_at"), _of_project(GuidelinesVersion),
    ),
    Part(
        "members", Membership, ("alias",), ("alias", "role", "active", "created_at"),
        _of_project(Membership),
    ),
    Part(
        "items", Item, ("key",),
        (
            "key", "position", "category", "ability", "source_ability", "cluster", "origin",
            "parent", "duplicate_of", "dose", "purpose", "fields", "flags", "revision_number",
            "first_reply_at", "deleted_at", "created_at",
        ),
        _of_project(Item), later=("parent", "duplicate_of"),
    ),
    Part(
        "revisions", Revision, ("item", "number"),
        ("item", "number", "digest", "texts", "author", "note", "created_at"),
        _of_items(Revision), texts={"texts": masking.as_long, "note": masking.nothing},
    ),
    Part(
        "diffs", Diff, ("revision", "algorithm"),
        ("revision", "algorithm", "segments", "edit_size", "place"),
        lambda scope: Diff.objects.filter(
            algorithm=diffing.ALGORITHM, revision__in=judged(scope.runs)
        ),
        texts={"segments": masking.changed_alike},
    ),
    Part(
        "slots", Slot, ("item", "stage", "number"),
        (
            "item", "stage", "number", "priority", "position", "state", "member", "held_until",
            "returned", "ahead", "reserved_for", "reason",
        ),
        _of_project(Slot),
    ),
    Part(
        "labels", Label, ("submission",),
        (
            "submission", "item", "revision", "slot", "stage", "member", "choice", "answers",
            "missing", "comment", "task_type", "guidelines", "supersedes", "current", "counted",
            "withdrawn_at", "seconds", "evaluator_seen", "informed", "created_at",
        ),
        _of_project(Label), texts={"comment": masking.nothing, "answers": masking.without_words},
        later=("supersedes",),
    ),
    Part(
        "resolutions", Resolution, (),
        (
            "item", "revision", "value", "values", "reason", "comment", "rule", "source",
            "member", "current", "created_at", "ended_at",
        ),
        _of_items(Resolution), texts={"comment": masking.nothing, "values": masking.without_words},
    ),
    Part(
        "strategies", StrategyVersion, ("project", "slug", "number"),
        ("project", "slug", "number", "digest", "definition", "source", "note", "created_at"),
        lambda scope: StrategyVersion.objects.filter(pk__in=_of_run(scope, "strategy")),
    ),
    Part(
        "endpoints", Endpoint, ("name",),
        ("name", "provider", "address", "model", "parameters", "api", "template", "json_mode"),
        _endpoints, always={"address": masking.public},
    ),
    Part(
        "runs", Run, ("number",),
        (
            "number", "kind", "strategy", "endpoint", "pinned", "parser", "renderer", "digest",
            "seed", "samples", "few_shot", "occasion", "is_part", "while_labelling", "state",
            "reason", "cap", "spent", "created_at", "finished_at", "archived_at",
        ),
        lambda scope: Run.objects.filter(pk__in=scope.runs),
        always={"pinned": masking.pinned_public},
    ),
    Part(
        "sources", Run.sources.through, (), ("from_run", "to_run"),
        lambda scope: Run.sources.through.objects.filter(from_run__in=scope.runs),
    ),
    Part(
        "outcomes", Outcome, ("run", "item", "axis"),
        (
            "run", "item", "revision", "category", "ability", "source_ability", "cluster",
            "invariant", "truth", "axis", "main", "result", "detail", "share", "cause", "values",
        ),
        _of_runs(Outcome),
    ),
    Part(
        "requests", Request, ("digest",),
        ("digest", "endpoint", "sample", "occasion", "place", "state", "attempts", "cause",
         "message"),
        lambda scope: Request.objects.filter(_asked(scope, "pk")),
        replies={"message": masking.nothing},
    ),
    Part(
        "replies", Reply, ("request",),
        (
            "request", "text", "finish", "model", "tokens_in", "tokens_out", "cost", "asked_at",
            "seconds",
        ),
        lambda scope: Reply.objects.filter(_asked(scope, "request")),
        replies={"text": masking.nothing},
    ),
    Part(
        "readings", Reading, ("reply", "parser"),
        ("reply", "parser", "value", "path", "cause", "explanation"),
        lambda scope: Reading.objects.filter(_asked(scope, "reply__request")),
        replies={"explanation": masking.nothing},
    ),
    Part(
        "calls", Call, ("outcome", "role", "order", "step", "axis", "sample"),
        ("run", "outcome", "role", "order", "step", "axis", "sample", "request", "fed_by"),
        _of_runs(Call),
    ),
)  # fmt: skip
KEYS: dict[type[Model], tuple[str, ...]] = {part.model: part.key for part in PARTS}
