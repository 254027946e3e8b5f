"""The data tables of an archive: which rows and columns of the database it contains.

Rows refer to other rows by keys within the project (an item's key, a run's number, a request's
digest), never by database ids. No account, name or address of a person is included.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Exists, ForeignKey, Model, OuterRef, Q, QuerySet

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
    TaxonomyVersion,
)
from judging.archive import redact
from judging.archive.redact import ArchiveScope, Mask
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


@dataclass(frozen=True)
class ArchivePart:
    """One data table of an archive.

    `key` identifies a row within the project; foreign keys in `columns` are written as the key of
    the row they refer to. A mask replaces the values of a column. The masks in `texts` and
    `replies` apply if texts or replies are not included, and the masks in `always` apply in every
    archive. `later` are columns that may refer to a later row of the same table.
    """

    name: str
    model: type[Model]
    key: tuple[str, ...]
    columns: tuple[str, ...]
    rows: Callable[[ArchiveScope], QuerySet[Any]]
    texts: Mapping[str, Mask] = field(default_factory=dict)
    replies: Mapping[str, Mask] = field(default_factory=dict)
    always: Mapping[str, Mask] = field(default_factory=dict)
    later: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The path of the table in the archive."""
        return f"data/{self.name}.jsonl"

    @property
    def of_project(self) -> bool:
        """True if every row belongs to the project. Then the project is not written in the rows."""
        names = {one.name for one in self.model._meta.fields}
        return "project" in names and "project" not in self.columns

    def masked(self, scope: ArchiveScope) -> dict[str, Mask]:
        """Return the masks that apply, by column."""
        texts = {} if scope.texts else self.texts
        replies = {} if scope.replies else self.replies
        return {**texts, **replies, **self.always}


def related_model(model: type[Model], column: str) -> type[Model] | None:
    """Return the model that a column refers to, or None if it is not a foreign key."""
    found = model._meta.get_field(column)
    return found.related_model if isinstance(found, ForeignKey) else None


def lookup_paths(model: type[Model], column: str) -> Iterator[str]:
    """Return the query path of a column's value, or the paths that form the key of the row to which
    the column refers.
    """
    pointed = related_model(model, column)
    if pointed is None:
        yield column
        return
    for inner in KEY_COLUMNS[pointed]:
        yield from (f"{column}__{path}" for path in lookup_paths(pointed, inner))


def _select_in_project(model: type[Model]) -> Callable[[ArchiveScope], QuerySet[Any]]:
    return lambda scope: model._default_manager.filter(project=scope.project)


def _select_by_item(model: type[Model]) -> Callable[[ArchiveScope], QuerySet[Any]]:
    return lambda scope: model._default_manager.filter(item__project=scope.project)


def _select_by_run(model: type[Model]) -> Callable[[ArchiveScope], QuerySet[Any]]:
    return lambda scope: model._default_manager.filter(run__in=scope.runs)


def _task_types(scope: ArchiveScope) -> QuerySet[Any]:
    mine = TaskTypeVersion.objects.filter(pk=scope.project.task_type_id)
    labels = Label.objects.filter(project=scope.project).order_by().values("task_type")
    imported = Resolution.objects.filter(item__project=scope.project, task_type__isnull=False)
    used = Q(pk__in=labels) | Q(pk__in=imported.order_by().values("task_type").distinct())
    return mine | TaskTypeVersion.objects.filter(used)


def _taxonomies(scope: ArchiveScope) -> QuerySet[Any]:
    """Return the project's categories as they are now, and as they were for runs, labels and
    resolutions."""
    labels = Label.objects.filter(project=scope.project).order_by().values("taxonomy").distinct()
    resolved = Resolution.objects.filter(item__project=scope.project).order_by()
    return TaxonomyVersion.objects.filter(
        Q(digest=scope.project.taxonomy_id)
        | Q(digest__in=_select_used_by_runs(scope, "taxonomy"))
        | Q(digest__in=labels)
        | Q(digest__in=resolved.values("taxonomy").distinct())
    )


def _select_used_by_runs(scope: ArchiveScope, column: str) -> QuerySet[Any]:
    return Run.objects.filter(pk__in=scope.runs).order_by().values(column)


def _endpoints(scope: ArchiveScope) -> QuerySet[Any]:
    """Return the endpoints of the runs, and the endpoints that first sent a request which these
    runs use too.
    """
    asked = (
        Request.objects.filter(_exists_call(scope, "pk")).order_by().values("endpoint").distinct()
    )
    return Endpoint.objects.filter(
        pk__in=_select_used_by_runs(scope, "endpoint")
    ) | Endpoint.objects.filter(pk__in=asked)


def judged_revisions(runs: Collection[int] | QuerySet[Any]) -> QuerySet[Revision]:
    """Return the revisions that these runs judged."""
    return Revision.objects.filter(
        Exists(Outcome.objects.filter(revision=OuterRef("pk"), run__in=runs))
    )


def _exists_call(scope: ArchiveScope, request: str) -> Exists:
    return Exists(Call.objects.filter(run__in=scope.runs, request=OuterRef(request)))


PARTS: tuple[ArchivePart, ...] = (
    ArchivePart(
        "task_types", TaskTypeVersion, ("slug", "number"),
        ("slug", "number", "digest", "definition", "source"), _task_types,
    ),
    ArchivePart(
        "taxonomies", TaxonomyVersion, ("digest",), ("slug", "number", "digest", "definition"),
        _taxonomies,
    ),
    ArchivePart(
        "project", Project, ("slug",),
        (
            "slug", "name", "description", "task_type", "taxonomy", "order", "order_field",
            "order_seed", "begun_first", "overlap", "hold_minutes", "share_percent",
            "share_overlap", "disputed_overlap", "rules", "verify", "verify_blind", "blind_first",
            "claim_check", "expected_effect", "practice_items", "practice_pass", "probe_every",
            "text_format", "guidelines_field", "created_at",
        ),
        lambda scope: Project.objects.filter(pk=scope.project.pk),
    ),
    ArchivePart(
        "guidelines", GuidelinesVersion, ("number",),
        ("number", "text", "variants", "note", "created_at"), _select_in_project(GuidelinesVersion),
    ),
    ArchivePart(
        "members", Membership, ("alias",), ("alias", "role", "active", "created_at"),
        _select_in_project(Membership),
    ),
    ArchivePart(
        "items", Item, ("key",),
        (
            "key", "position", "category", "ability", "source_ability", "cluster", "origin",
            "parent", "duplicate_of", "dose", "purpose", "fields", "flags", "revision_number",
            "first_reply_at", "deleted_at", "created_at",
        ),
        _select_in_project(Item), texts={"fields": redact.mask_fields},
        later=("parent", "duplicate_of"),
    ),
    ArchivePart(
        "revisions", Revision, ("item", "number"),
        ("item", "number", "digest", "texts", "author", "note", "created_at"),
        _select_by_item(Revision), texts={"texts": redact.mask_text, "note": redact.drop},
    ),
    ArchivePart(
        "diffs", Diff, ("revision", "algorithm"),
        ("revision", "algorithm", "segments", "edit_size", "place", "pinned"),
        lambda scope: Diff.objects.filter(
            Q(pinned=True)
            | Q(algorithm__in=Run.objects.filter(pk__in=scope.runs).values("diff_algorithm")),
            revision__in=judged_revisions(scope.runs),
        ),
        texts={"segments": redact.mask_diff},
    ),
    ArchivePart(
        "slots", Slot, ("item", "stage", "number"),
        (
            "item", "stage", "number", "priority", "position", "state", "member", "held_until",
            "returned", "ahead", "reserved_for", "reason",
        ),
        _select_in_project(Slot),
    ),
    ArchivePart(
        "labels", Label, ("submission",),
        (
            "submission", "item", "revision", "slot", "stage", "member", "choice", "answers",
            "missing", "comment", "task_type", "guidelines", "taxonomy", "supersedes", "current",
            "counted",
            "withdrawn_at", "seconds", "evaluator_seen", "informed", "created_at",
            "first_shown",
        ),
        _select_in_project(Label), texts={"comment": redact.drop, "answers":
        redact.drop_free_text}, later=("supersedes",),
    ),
    ArchivePart(
        "resolutions", Resolution, (),
        (
            "item", "revision", "value", "values", "reason", "comment", "rule", "source",
            "member", "taxonomy", "task_type", "current", "created_at", "ended_at",
        ),
        _select_by_item(Resolution), texts={"comment": redact.drop, "values":
        redact.drop_free_text},
    ),
    ArchivePart(
        "strategies", StrategyVersion, ("project", "slug", "number"),
        ("project", "slug", "number", "digest", "definition", "source", "note", "created_at"),
        lambda scope: StrategyVersion.objects.filter(pk__in=_select_used_by_runs(scope,
        "strategy")),
    ),
    ArchivePart(
        "endpoints", Endpoint, ("name",),
        (
            "name", "provider", "address", "model", "parameters", "api", "template", "json_mode",
            "ratings",
        ),
        _endpoints, always={"address": redact.public_address},
    ),
    ArchivePart(
        "runs", Run, ("number",),
        (
            "number", "kind", "strategy", "endpoint", "pinned", "parser", "renderer", "digest",
            "seed", "samples", "few_shot", "occasion", "is_part", "while_labelling", "state",
            "reason", "cap", "spent", "created_at", "finished_at", "archived_at",
            "taxonomy", "diff_algorithm", "name", "tags", "note",
        ),
        lambda scope: Run.objects.filter(pk__in=scope.runs),
        texts={"note": redact.drop},
        always={"pinned": redact.redact_pinned},
    ),
    ArchivePart(
        "sources", Run.sources.through, (), ("from_run", "to_run"),
        lambda scope: Run.sources.through.objects.filter(from_run__in=scope.runs),
    ),
    ArchivePart(
        "outcomes", Outcome, ("run", "item", "axis"),
        (
            "run", "item", "revision", "category", "ability", "source_ability", "cluster",
            "invariant", "truth", "axis", "main", "result", "detail", "share", "cause", "values",
            "drawn",
        ),
        _select_by_run(Outcome),
    ),
    ArchivePart(
        "requests", Request, ("digest",),
        ("digest", "endpoint", "sample", "occasion", "place", "state", "attempts", "cause",
         "message", "charged"),
        lambda scope: Request.objects.filter(_exists_call(scope, "pk")),
        replies={"message": redact.drop},
    ),
    ArchivePart(
        "replies", Reply, ("request",),
        (
            "request", "text", "finish", "model", "tokens_in", "tokens_out", "cost", "asked_at",
            "seconds", "tokens_cached", "tokens_reasoning", "thinking", "bytes_sent",
        ),
        lambda scope: Reply.objects.filter(_exists_call(scope, "request")),
        replies={"text": redact.drop, "thinking": redact.drop_if_any},
    ),
    ArchivePart(
        "readings", Reading, ("reply", "parser"),
        ("reply", "parser", "value", "path", "cause", "explanation"),
        lambda scope: Reading.objects.filter(_exists_call(scope, "reply__request")),
        replies={"explanation": redact.drop},
    ),
    ArchivePart(
        "calls", Call, ("outcome", "role", "order", "step", "axis", "sample", "supplement"),
        (
            "run", "outcome", "role", "order", "step", "axis", "sample", "supplement", "request",
            "fed_by",
        ),
        _select_by_run(Call),
    ),
)  # fmt: skip
KEY_COLUMNS: dict[type[Model], tuple[str, ...]] = {part.model: part.key for part in PARTS}
