"""Convert the replies of a generator run to rows of items, with their provenance."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import F, Q

from annotation import tasktypes
from annotation.generation.generated_items import GeneratedText
from annotation.importing.comparison import LANGUAGE_FIELD
from annotation.importing.exported_rows import DerivedRow
from annotation.importing.flags import NUMBERS, OUTDATED
from annotation.items.rendering.sheet import ORIGINALS_FIELD
from annotation.models import Project
from annotation.tasktypes import TaskType
from judging.errors import Refused
from judging.models import Outcome, Reading, Run
from judging.runs.selection import TRANSLATED_FROM
from judging.strategies import draws
from judging.strategies.draws import Drawn
from judging.strategies.replies import unusable_texts
from perturbers.flags import lacks_numbers

ORIGIN = "generated"
# Task types use different names for the same text.
TEXT_SYNONYMS = {"input": "prompt", "prompt": "input"}
# The names of the texts in the replies, by frame. The task type determines the name of an answer,
# and those of a translation.
REPLY_TEXTS = {
    "perturbation": ("perturbed", "claim", "rationale"),
    "input": ("input", "context", "rationale"),
    "answer": ("response",),
    "translation": (),
}
# Fields with these prefixes are about the gold answer, or say what was drawn for the item that is
# the source, and are copied to derived items.
COPIED_PREFIXES = ("gold_", draws.FIELD_PREFIX)
# Fields of a translation with this prefix are those of its source about its own generator.
SOURCE_PREFIX = "source_"
# Fields of a translation with this prefix are those of its own generator, where a source that was
# not generated has a field of that name, such as the model that answered.
TRANSLATOR_PREFIX = "generator_"
# The field of a reworded prompt that keeps the prompt from which it was made.
ORIGINAL = "original"
_ORIGINALS = frozenset({ORIGINALS_FIELD, f"{SOURCE_PREFIX}{ORIGINALS_FIELD}"})
_TEXTS = _ORIGINALS.union({ORIGINAL}, *REPLY_TEXTS.values())


class GeneratedReply(NamedTuple):
    """A reply with generated texts, together with its item and its provenance."""

    item: int
    key: str
    category: str
    ability: str
    source_ability: str
    cluster: str
    fields: Mapping[str, Any]
    dose: int | None
    current_texts: Mapping[str, Any]
    revision: int
    texts: Mapping[str, Any]
    sample: int
    digest: str
    model: str
    made_at: datetime
    value: Any
    drawn: Drawn | None


def check(run: Run, target: Project) -> None:
    """Raise `Refused` if a run's texts cannot be imported as items of a project."""
    if not run.generates or run.pinned_strategy().frame not in REPLY_TEXTS:
        raise Refused(f"Run {run.number} evaluates items and generates none.")
    task = tasktypes.load_task_type(target)
    if fills_own_items(run, target):
        return
    there = {*_list_reply_texts(run)}
    if not _makes_prompts(run):
        there |= {text.name for text in tasktypes.load_task_type(run.project).texts}
    there |= {TEXT_SYNONYMS[name] for name in there & TEXT_SYNONYMS.keys()}
    lacking = [text.title for text in task.texts if text.required and text.name not in there]
    if lacking or not _list_made_texts(run, task):
        raise Refused(
            f"{target.slug} cannot take these items: its task type, {task.title}, needs "
            f"{', '.join(lacking) or 'other texts'}. Choose another project."
        )


def explain_unfinished(run: Run) -> str:
    """The reason why a run cannot be used yet; "" once the run has ended or is paused."""
    if run.state in {Run.State.PLANNING, Run.State.RUNNING}:
        return f"Run {run.number} is still running. Wait until it has finished, or pause it."
    return ""


def can_skip_review(run: Run) -> bool:
    """True if held items may be accepted without review, because the change is score-invariant:
    then a wrong change does not count as an error that an evaluator missed."""
    made = run.pinned_strategy().made
    return made is not None and made.expected_effect == "none"


def fills_own_items(run: Run, target: Project) -> bool:
    """True if the replies are the missing texts of the run's own items."""
    waits = bool(tasktypes.load_task_type(target).awaits)
    return waits and target.pk == run.project_id and run.pinned_strategy().frame == "answer"


def build_answers(run: Run) -> Iterator[GeneratedText]:
    """The answers for the items of a run: for each item, the first sample with a usable reply."""
    name = tasktypes.load_task_type(run.project).awaits
    seen = set[int]()
    for said in iterate_replies(run):
        if said.item not in seen:
            seen.add(said.item)
            note = f"The {name} answer by {_generator(run)}, {said.model}, run {run.number}."
            facts = {
                f"{name}_{fact}": value for fact, value in _build_origin_fields(run, said).items()
            }
            yield GeneratedText(said.item, said.key, said.revision, str(said.value), note, facts)


def build_rows(run: Run, target: Project) -> Iterator[DerivedRow]:
    """Each reply as a row of the target project, in the order of the items."""
    task, strategy = tasktypes.load_task_type(target), run.pinned_strategy()
    here = target.pk == run.project_id
    for line, said in enumerate(iterate_replies(run), start=1):
        kept = said._replace(texts={}, fields={}) if _makes_prompts(run) else said
        parts, origin = _parts(run, said), _build_origin_fields(run, said)
        if strategy.translates:
            origin = _leave_own_names(origin, said.fields)
            origin |= {LANGUAGE_FIELD: strategy.language, TRANSLATED_FROM: said.key}
            origin[ORIGINALS_FIELD] = _list_originals(task, said, parts)
        if strategy.rewords:
            origin[ORIGINAL] = _find_text("prompt", said.texts)
        values = _copy_fields(kept, origin, whole=strategy.translates)
        values |= _texts(task, kept, parts) | origin
        values |= draws.build_fields(strategy, said.drawn)
        values |= {
            "key": f"{said.key}{build_key_infix(run)}{said.sample + 1}",
            "category": strategy.category or said.category,
            "source_ability": said.source_ability or said.ability,
            "origin": ORIGIN,
            "cluster": said.cluster,
        }
        if not task.categories:
            values["ability"] = said.ability
        if not here:
            values["source_item"] = said.key
            values["source_project"] = run.project.slug
        yield DerivedRow(
            f"run {run.number}",
            line,
            values,
            parent=said.key if here else "",
            dose=said.dose if strategy.translates else None,
            flags=(*_compare_with_source(run, said, parts), *_flag_outdated(run, said, parts)),
        )


def build_key_infix(run: Run) -> str:
    """Return the middle part of the keys of a run's rows, between the source's key and the sample
    number."""
    strategy = run.pinned_strategy()
    return f"+{strategy.category or strategy.slug.removeprefix('generate-')}.{run.number}."


def iterate_replies(run: Run) -> Iterator[GeneratedReply]:
    """The usable replies, in the order of the items and samples."""
    call, item = "reply__request__calls", "reply__request__calls__outcome__item"
    # One `filter()`, so that all conditions apply to the same call: other runs may share its
    # request.
    found = Reading.objects.filter(
        Q((f"{item}__revisions__number", F(f"{item}__revision_number"))),
        reply__request__calls__run=run,
        reply__request__calls__outcome__result__in=(Outcome.Result.MADE, Outcome.Result.PENDING),
        parser=run.parser,
        cause="",
    )
    columns = (
        item,
        *(f"{item}__{name}" for name in GeneratedReply._fields[1:8]),
        f"{item}__revisions__texts",
        f"{call}__outcome__revision__number",
        f"{call}__outcome__revision__texts",
        f"{call}__sample",
        "reply__request__digest",
        "reply__model",
        "reply__created_at",
        "value",
        f"{call}__outcome__drawn",
    )
    ordered = found.order_by(f"{item}__position", f"{call}__sample")
    strategy = run.pinned_strategy()
    for said in map(GeneratedReply._make, ordered.values_list(*columns).iterator(chunk_size=200)):
        # Some samples may be usable while others are not.
        if not unusable_texts.find_cause(strategy, said.value, said.texts):
            yield said


def is_generated(fields: Mapping[str, Any]) -> bool:
    """True if these are the fields of an item that a model generated."""
    return "generator" in fields or f"{TRANSLATOR_PREFIX}generator" in fields


def list_text_fields(fields: Mapping[str, Any]) -> frozenset[str]:
    """The names of those fields of an item that have texts if a model generated it: of its source,
    or beside its own. A translation also has the fields of its source, which are texts only if that
    was generated, too."""
    if not is_generated(fields):
        return frozenset()
    is_whole = ORIGINALS_FIELD in fields and f"{SOURCE_PREFIX}generator" not in fields
    return _ORIGINALS if is_whole else _TEXTS


def without_texts(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of an item without those that `list_text_fields` names."""
    texts = list_text_fields(fields)
    if not texts:
        return fields
    return {name: value for name, value in fields.items() if name not in texts}


def _makes_prompts(run: Run) -> bool:
    """True if a run generates prompts that ask something else. Then the answers of the source item
    and their authors are not copied."""
    strategy = run.pinned_strategy()
    return strategy.frame == "input" and not strategy.rewords


def _list_made_texts(run: Run, task: TaskType) -> set[str]:
    """The names of the task type's texts that the run's replies contain."""
    parts = {*_list_reply_texts(run)}
    parts |= {TEXT_SYNONYMS[name] for name in parts & TEXT_SYNONYMS.keys()}
    return {text.name for text in task.texts} & (parts - {"claim", "rationale", "context"})


def _list_reply_texts(run: Run) -> tuple[str, ...]:
    """The names of the texts that a run's replies may contain."""
    if run.pinned_strategy().translates:
        return tuple(text.name for text in tasktypes.load_task_type(run.project).texts)
    return REPLY_TEXTS[run.pinned_strategy().frame]


def _parts(run: Run, said: GeneratedReply) -> Mapping[str, Any]:
    if run.pinned_strategy().translates:
        return unusable_texts.name_texts(said.value, said.texts)
    names = REPLY_TEXTS[run.pinned_strategy().frame]
    return said.value if isinstance(said.value, dict) else {names[0]: str(said.value)}


def _copy_fields(said: GeneratedReply, origin: Mapping[str, Any], *, whole: bool) -> dict[str, Any]:
    """The fields of the source item that hold for an item made from it: those about its gold answer
    and its translation, or as a `whole` all, where those that the new item has of its own get a
    prefix."""
    if not whole:
        return {
            name: value
            for name, value in said.fields.items()
            if name.startswith(COPIED_PREFIXES) or name in (LANGUAGE_FIELD, TRANSLATED_FROM)
        }
    own = {*origin, "source_item", "source_project"}
    return {
        f"{SOURCE_PREFIX}{name}" if name in own else name: value
        for name, value in said.fields.items()
    }


def _compare_with_source(
    run: Run, said: GeneratedReply, parts: Mapping[str, Any]
) -> tuple[str, ...]:
    """The flags of a text that should say the same as its source."""
    strategy = run.pinned_strategy()
    if strategy.rewords:
        pairs = [(_find_text("prompt", said.texts), parts["input"])]
    elif strategy.translates:
        pairs = [(said.texts[name], part) for name, part in parts.items()]
    else:
        return ()
    lacking = any(lacks_numbers(*map(draws.join_text, pair)) for pair in pairs)
    return (NUMBERS,) if lacking else ()


def _flag_outdated(run: Run, said: GeneratedReply, parts: Mapping[str, Any]) -> tuple[str, ...]:
    """The flag of a text whose item has or translates a text of the source item that was corrected
    since, such as a wrong gold answer."""
    if _makes_prompts(run):
        return ()
    strategy = run.pinned_strategy()
    used = {*said.texts}
    if not (strategy.translates or strategy.rewords):
        used -= parts.keys()  # replaced by the reply
    is_outdated = any(said.current_texts.get(name) != said.texts[name] for name in used)
    return (OUTDATED,) if is_outdated else ()


def _texts(task: TaskType, said: GeneratedReply, parts: Mapping[str, Any]) -> dict[str, Any]:
    """The texts of an item of this task type; other generated parts become fields of the item."""
    names = {text.name for text in task.texts}
    rest = {
        name: part for name, part in parts.items() if not {name, TEXT_SYNONYMS.get(name)} & names
    }
    texts: dict[str, Any] = {}
    for text in task.texts:
        value = _find_text(text.name, parts) or _find_text(text.name, said.texts)
        # If there are several references, each of them is a complete correct answer.
        texts[text.name] = value[0] if isinstance(value, list) and not text.many else value
    return rest | texts


def _list_originals(
    task: TaskType, said: GeneratedReply, parts: Mapping[str, Any]
) -> dict[str, Any]:
    """The texts that were translated, by their names in this task type, for those who check the
    translation."""
    there = {name: said.texts[name] for name in parts}
    found = {text.name: _find_text(text.name, there) for text in task.texts}
    return {name: text for name, text in found.items() if text}


def _find_text(name: str, there: Mapping[str, Any]) -> Any:
    return there.get(name) or there.get(TEXT_SYNONYMS.get(name, name)) or ""


def _build_origin_fields(run: Run, said: GeneratedReply) -> dict[str, Any]:
    """The provenance of a text, for the fields of its item."""
    return {
        "generator": _generator(run),
        "model": said.model or str(run.pinned["model"]),
        "made_on": said.made_at.date().isoformat(),
        "seed": str(run.pinned["parameters"].get("seed", run.seed)),
        "request": said.digest,
    }


def _leave_own_names(origin: dict[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The provenance of a translation, with other names where the source has such a field and was
    not generated: then the field is about something else, and figures are grouped by it."""
    if "generator" in fields or "perturber" in fields:
        return origin
    return {
        f"{TRANSLATOR_PREFIX}{name}" if name in fields else name: value
        for name, value in origin.items()
    }


def _generator(run: Run) -> str:
    return f"{run.strategy.slug} v{run.strategy.number}"
