"""The task types of a project's own: parsed from TOML, checked, compared, and stored as
versions."""

import hashlib
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from annotation import importing, tasktypes
from annotation.db import transactions
from annotation.errors import Stale
from annotation.models import Event, Item, Label, Membership, Project, Resolution, TaskTypeVersion
from annotation.tasktypes import TaskType, toml_text, validation
from annotation.tasktypes.fields import Field
from annotation.tasktypes.fields.base import Option
from annotation.tasktypes.toml_tables import Place, describe_place
from annotation.tasktypes.toml_text import TomlProblem

MAX_SOURCE_LENGTH = 200_000
_SLUG_LENGTH = 80


@dataclass(frozen=True)
class ParsedSource:
    """A text with the task type that it declares; if the text has problems, None with these
    problems."""

    source: str
    definition: dict[str, Any]
    task: TaskType | None
    problems: tuple[TomlProblem, ...]


@dataclass(frozen=True)
class LostAnswer:
    """An answer that the new version would no longer accept, or a number on a scale that would end
    elsewhere, with the number of current labels that have this answer. `known` counts the
    qualification and control items whose correct answer it is."""

    field: str
    answer: str
    labels: int
    known: int = 0


def version_slug(project: Project) -> str:
    """Return the slug of the project's own versions: the file's slug, "--" and the project's slug.
    A slug that is too long is cut and ends with a digest."""
    slug = f"{project.task_type.file_slug}--{project.slug}"
    if len(slug) <= _SLUG_LENGTH:
        return slug
    digest = hashlib.sha256(project.slug.encode()).hexdigest()[:8]
    return f"{slug[: _SLUG_LENGTH - 9]}-{digest}"


def version_source(version: TaskTypeVersion) -> str:
    """Return the TOML of a version. It is generated for versions that were stored without their
    text."""
    return version.source or toml_text.write_definition(version.definition)


def project_versions(project: Project) -> QuerySet[TaskTypeVersion]:
    """Return the versions that the project uses, has used or started from, the newest first."""
    today = project.task_type
    own = Q(slug__in=[version_slug(project), today.file_slug]) | Q(pk=today.pk)
    return TaskTypeVersion.objects.filter(own).order_by("-created_at", "-pk")


def load_options(project: Project) -> dict[str, Option]:
    """Load the options of the deciding question by value, with those that only earlier versions of
    the task type have: labels keep such answers. Makes no query if the project never changed it."""
    is_own = project.task_type.slug == version_slug(project)
    used = project_versions(project).reverse() if is_own else ()
    tasks = (*map(tasktypes.load_version, used), tasktypes.load_task_type(project))
    return {str(option.value): option for task in tasks for option in task.deciding.options}


def former_choices(project: Project) -> dict[str, str]:
    """Return the titles of the choices that earlier versions of the project's task type offered and
    its version of today does not, by their value; empty if the project never changed it."""
    if project.task_type.slug != version_slug(project):
        return {}
    found: dict[str, str] = {}
    for version in project_versions(project):
        options = tasktypes.load_version(version).deciding.options
        found = {**{str(one.value): one.title for one in options}, **found}
    today = {str(one.value) for one in tasktypes.load_version(project.task_type).deciding.options}
    return {value: title for value, title in found.items() if value not in today}


def find_version(project: Project, wanted: int) -> TaskTypeVersion | None:
    """Find the project's version with this id; None if there is none."""
    return project_versions(project).filter(pk=wanted).first()


def parse_source(project: Project, source: str) -> ParsedSource:
    """Parse a text for this project. The slug in the text is replaced by the project's own slug."""
    source = source.replace("\r\n", "\n")
    if len(source) > MAX_SOURCE_LENGTH:
        return ParsedSource(
            source,
            {},
            None,
            (TomlProblem(None, f"Shorten it to {MAX_SOURCE_LENGTH:,} characters."),),
        )
    named = toml_text.set_slug(source, version_slug(project))
    try:
        definition = toml_text.parse(named)
        task = tasktypes.parse_definition(definition)
    except tomllib.TOMLDecodeError as error:
        return ParsedSource(named, {}, None, (toml_text.describe_parse_error(error, named),))
    except RecursionError:
        return ParsedSource(
            named,
            {},
            None,
            (TomlProblem(None, "Brackets are nested too deeply. Use fewer levels."),),
        )
    except tasktypes.TaskTypeError as error:
        # The message begins with the name of the task type, which the page already shows.
        problem = _locate_problem(named, error.place, str(error).split(": ", 1)[1])
        return ParsedSource(named, definition, None, (problem,))
    except (OverflowError, ValueError):
        large = TomlProblem(None, "A number is too large to be used. Make it smaller.")
        return ParsedSource(named, {}, None, (large,))
    found = [
        _locate_problem(named, problem.place, f"{describe_place(problem.place)}: {problem.text}")
        for problem in [
            *validation.find_problems(task),
            *_item_problems(project, task),
            *_answer_problems(project, task),
        ]
    ]
    return ParsedSource(named, definition, None if found else task, tuple(found))


def find_lost_answers(project: Project, task: TaskType) -> list[LostAnswer]:
    """Find the answers in current labels and known answers that this task would no longer accept,
    and the numbers on a scale that would end elsewhere."""
    old = tasktypes.load_version(project.task_type)
    other = {
        field.name
        for _, asked in validation.field_groups(old)
        for field in asked
        if (new := task.field(field.name)) and _scale_ends(new) != _scale_ends(field)
    }
    gone = _answers(old) - {one for one in _answers(task) if one[0] not in other}
    if not gone:
        return []
    labels = Label.objects.current().in_project(project).values_list("answers", flat=True)
    right = Resolution.objects.current().known().of_project(project)
    in_labels, in_known = (
        _count_answers(old, labels),
        _count_answers(old, right.values_list("values", flat=True)),
    )
    used = sorted(gone & (in_labels.keys() | in_known.keys()))
    return [_build_lost_answer(old, *one, in_labels[one], in_known[one]) for one in used]


def save_version(
    project: Project, adapted: ParsedSource, *, member: Membership, shown: int
) -> TaskTypeVersion | None:
    """Store the task as a version and switch the project to it. Returns None if nothing changed.

    `shown` is the id of the version that the page showed. Raises `Stale` if the project has another
    version by now, and `ValueError` for a text with problems. Each label keeps the version with
    which it was given.
    """
    if adapted.task is None:
        raise ValueError("A text with problems cannot be saved.")
    with transactions.transact():
        held = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        if held.task_type_id != shown:
            raise Stale("Somebody saved another version while you were editing.")
        before = held.task_type
        if tasktypes.digest_definition(
            {**before.definition, "slug": ""}
        ) == tasktypes.digest_definition({**adapted.definition, "slug": ""}):
            return None
        own = version_slug(held)
        if before.slug not in (own, before.file_slug):
            # Of another project, of which this one is a copy. Answers that only it offers stay
            # known, see `load_options`.
            source = toml_text.set_slug(version_source(before), own)
            importing.store_task_type({**before.definition, "slug": own}, source)
        version = importing.store_task_type(adapted.definition, adapted.source)
        held.task_type = version
        held.save(update_fields=["task_type"])
        Event.record(
            "task-type",
            str(version),
            project_id=project.pk,
            member_id=member.pk,
            old={"task type": str(before)},
            new={"task type": str(version)},
        )
    return version


def _locate_problem(source: str, place: Place, text: str) -> TomlProblem:
    return TomlProblem(toml_text.find_line(source, place), text)


def _item_problems(project: Project, task: TaskType) -> Iterator[validation.FitProblem]:
    """Find the conflicts between the task and the texts of the project's items, which exist
    already."""
    if not Item.objects.in_project(project).exists():
        return
    old = tasktypes.load_version(project.task_type)
    known = {text.name: text for text in old.texts}
    for number, text in enumerate(task.texts):
        before = known.get(text.name)
        if text.required and not (before and before.required):
            said = f"existing items may lack {text.name!r}; write required = false."
            yield validation.FitProblem(("texts", number, "required"), said)
        elif before and before.many != text.many:
            said = f"is {before.many} for existing items; keep this value.".lower()
            yield validation.FitProblem(("texts", number, "many"), said)
    if task.awaits != old.awaits:
        kept = f'write awaits = "{old.awaits}"' if old.awaits else "leave it out"
        yield validation.FitProblem(("awaits",), f"existing items depend on the old value; {kept}.")
    if task.categories and not old.categories:
        yield validation.FitProblem(
            ("categories",), "existing items have no category; write false."
        )


def _answer_problems(project: Project, task: TaskType) -> Iterator[validation.FitProblem]:
    """Find fields that had another kind when labels or final labels were given: no rule could count
    the old answers together with new ones."""
    labels = Label.objects.filter(project=project)
    used = TaskTypeVersion.objects.filter(pk__in=labels.values("task_type"))
    asked_in = {one.pk: tasktypes.load_version(one) for one in used}
    today = tasktypes.load_version(project.task_type)
    final = Resolution.objects.of_project(project)
    for place, asked in validation.field_groups(task):
        for number, field in enumerate(asked):
            now = today.field(field.name)
            if now and now.kind == field.kind:
                continue  # also where both kinds were answered before this was refused
            other = {
                pk: before.kind
                for pk, one in asked_in.items()
                if (before := one.field(field.name)) and before.kind != field.kind
            }
            kind = next(iter(other.values()), now and now.kind)
            if kind and (
                labels.filter(task_type__in=other, answers__has_key=field.name).exists()
                or (now and final.filter(values__has_key=field.name).exists())
            ):
                said = f"is {kind!r} in existing answers; give the new question another name."
                yield validation.FitProblem((*place, number, "kind"), said)


def _scale_ends(field: Field) -> tuple[Any, ...]:
    """Return the lowest and the highest number of a scale; () for another field."""
    numbers = [option.value for option in field.options] if field.is_number else []
    return (min(numbers), max(numbers)) if numbers else ()


def _answers(task: TaskType) -> set[tuple[str, str]]:
    """Return the (field, value) pairs of all options."""
    every = task.fields + (task.blind.fields if task.blind else ())
    return {(field.name, str(option.value)) for field in every for option in field.options}


def _count_answers(
    task: TaskType, rows: "QuerySet[Any, dict[str, Any]]"
) -> Counter[tuple[str, str]]:
    """Count the rows of answers by (field, value)."""
    counts: Counter[tuple[str, str]] = Counter()
    for answers in rows.iterator(chunk_size=2_000):
        for name, answer in answers.items():
            field = task.field(name)
            if field and field.options:
                counts.update((name, one) for one in field.answer_values(answer))
    return counts


def _build_lost_answer(task: TaskType, name: str, said: str, labels: int, known: int) -> LostAnswer:
    field = task.field(name)
    titles = {str(option.value): option.title for option in field.options} if field else {}
    return LostAnswer(field.title if field else name, titles.get(said, said), labels, known)
