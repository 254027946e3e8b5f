"""The page of the templates of categories, from `annotation/items/taxonomy.toml` and the files of
`annotation/items/taxonomies/`."""

from collections.abc import Iterator

from annotation.items import taxonomy
from annotation.items.taxonomy import Ability, Category, Taxonomy
from operation.docs.reference import markdown
from operation.docs.reference.markdown import code, plain

_EFFECTS = {
    "penalty": "",
    "none": "It leaves the score as it is.",
    "either": "It may lower the score.",
}


def write_page() -> str:
    """The page as Markdown."""
    return markdown.page(
        "Categories",
        "The categories of errors that a project can begin with. A lead changes them on the page "
        "*Categories* of the project. A change of a category should lower the score of an answer, "
        "unless the description says otherwise.",
        *(part for slug in taxonomy.load_templates() for part in _template(slug)),
    )


def _template(slug: str) -> Iterator[str]:
    definition = taxonomy.load_templates()[slug]
    known = taxonomy.parse_definition(definition)
    yield f"## {plain(str(definition['title']))}"
    if not known.abilities:
        yield f"Template {code(slug)}: it has no category. Groups are called {known.groups}."
        return
    yield (
        f"Template {code(slug)}: {len(known)} categories in {len(known.abilities)} groups, which "
        f"are called {known.groups}."
    )
    for ability in known.abilities:
        yield from _group(known, ability)


def _group(known: Taxonomy, ability: Ability) -> Iterator[str]:
    yield f"### {plain(ability.name)}"
    named = [code(ability.slug)]
    if ability.code:
        named.append(f"code {code(ability.code)}")
    if ability.axis:
        named.append(f"judged on the axis {code(ability.axis)}")
    yield f"{plain(ability.description)} ({', '.join(named)})".strip()
    yield markdown.table(
        ("category", "description", "example"),
        (_row(one) for one in known if one.ability == ability.slug),
    )


def _row(category: Category) -> tuple[str, ...]:
    said = [f"**{plain(category.name)}.** {plain(category.description)}"]
    said.append(_EFFECTS[category.expected_effect])
    if category.retired:
        said.append(f"Retired: new items get {code(category.merged_into)}.")
    example = category.example
    shown = f"“{plain(example.before)}” becomes “{plain(example.after)}”" if example else ""
    return code(category.slug), " ".join(filter(None, said)), shown
