"""The page of the task types, from the files of `annotation/tasktypes/`."""

from collections.abc import Iterator

from annotation import tasktypes
from annotation.tasktypes import TaskType
from annotation.tasktypes.fields import FIELD_KINDS, Field, Option
from annotation.tasktypes.outcome_rules import RULE_TITLES
from operation.docs.reference import markdown
from operation.docs.reference.markdown import code, codes, plain

_SWITCHES = {
    "claim_check": "only if the project checks claims",
    "expected_effect": "only if the project asks for the expected effect",
}
_ROUTES = {
    "expert": "an adjudicator decides",
    "gold-error": "an adjudicator corrects the gold answer",
    "exclude": "the item is excluded",
}


def write_page() -> str:
    """The page as Markdown."""
    return markdown.page(
        "Task types",
        "What annotators see and are asked, by task type. A lead adapts a task type on the page "
        "*Task type* of the project. The words in code are those of files and the API.",
        "## Kinds of fields",
        markdown.table(
            ("kind", "asks for"),
            ((code(name), plain(kind.asks_for)) for name, kind in sorted(FIELD_KINDS.items())),
        ),
        *(part for slug in tasktypes.load_definitions() for part in _task_type(slug)),
    )


def _task_type(slug: str) -> Iterator[str]:
    task = tasktypes.parse_definition(tasktypes.load_definitions()[slug])
    yield f"## {plain(task.title)}"
    yield plain(markdown.read_head(tasktypes.load_sources()[slug]))
    yield f"**Question**: {plain(task.question)}"
    yield markdown.facts(_facts(task))
    yield markdown.table(
        ("text", "title", "required"),
        (
            (code(one.name), plain(one.title) + (" (or several)" if one.many else ""),
             "yes" if one.required else "no")
            for one in task.texts
        ),
    )  # fmt: skip
    for field in task.fields:
        yield f"### {plain(field.title)}"
        yield from _field(task, field)
    if task.blind:
        yield "### Blind questions"
        yield (
            "If the project shows items blind, these come first, with the texts "
            f"{codes(task.blind.shows)} alone. **Question**: {plain(task.blind.question)}"
        )
        for field in task.blind.fields:
            yield f"#### {plain(field.title)}"
            yield from _field(task, field)


def _facts(task: TaskType) -> Iterator[tuple[str, str]]:
    yield "Name in files and commands", code(task.slug)
    yield "Items have a category", "yes" if task.categories else "no"
    yield "Final label", f"{_rule(task.deciding)} of “{plain(task.deciding.title)}”"
    yield "Recommended annotators per item", str(task.raters)
    if task.diff:
        yield "Shown as a difference", f"{code(task.diff[0])} to {code(task.diff[1])}"
    if task.correctable:
        yield "Annotators can correct", code(task.correctable)
    if task.awaits:
        yield "An item can wait for", f"{code(task.awaits)}, before it can be labelled"
    if task.quick:
        yield "One key", "one key press is a complete label, unless more is asked"
    if task.pair:
        yield (
            "Compared as A and B",
            f"{codes(task.pair.texts)}, in an order that is drawn; their systems are in the fields "
            f"{codes(task.pair.systems)} of an item",
        )


def _rule(field: Field) -> str:
    """How labels of the field become its part of the final label."""
    return RULE_TITLES.get(field.rule, "by the project's rule")


def _field(task: TaskType, field: Field) -> Iterator[str]:
    yield plain(field.help)
    facts = [f"Field {code(field.name)}, kind {code(field.kind)}"]
    if field.when:
        earlier = task.field(field.when.field)
        title = plain(earlier.title) if earlier else field.when.field
        facts.append(f"asked if “{title}” is {' or '.join(map(code, field.when.values))}")
    if field.option:
        facts.append(_SWITCHES[field.option])
    facts.append("required" if field.required else "not required")
    if field.unless and (other := task.field(field.unless)):
        facts.append(f"can be left out if “{plain(other.title)}” is answered")
    if field.rule:
        facts.append(f"final label: {_rule(field)}")
    if field.level:
        facts.append(f"agreement is measured as {field.level}")
    yield "; ".join(facts) + "."
    yield markdown.table(("key", "answer", "title", "meaning"), map(_option, field.options))


def _option(option: Option) -> tuple[str, ...]:
    said = [plain(option.help)]
    if option.examples:
        said.append(f"Examples: {' / '.join(map(plain, option.examples))}")
    if option.route:
        said.append(f"Then {_ROUTES[option.route]}.")
    if option.drops:
        said.append("Removes the item from the final set.")
    key = code(option.key) if option.key else ""
    return key, code(option.value), plain(option.title), " ".join(filter(None, said))
