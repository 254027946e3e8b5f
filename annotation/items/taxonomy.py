"""Categories and their abilities, which each project has in versions. `taxonomy.toml` is the one
that ships: the template of new projects."""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

FILE = Path(__file__).with_suffix(".toml")
TEMPLATES = Path(__file__).with_name("taxonomies")
EFFECTS = ("penalty", "none", "either")
"""What a change of a category should cost: points, nothing, or either."""

LONGEST, MOST = 2_000, 500
"""Characters of a text, and entries of a list."""

LONGEST_SLUG = 50
LONGEST_WORD = 30
"""Characters of what people call a group."""

COLOURS = 8
"""Groups have a colour from 1 to this number, or 0 for none."""


class TaxonomyError(ValueError):
    """Raised for a taxonomy that cannot be used; the message names the entry and what to change."""


class UnknownSlugError(TaxonomyError, LookupError):
    """Raised for a slug that no entry has; the message lists the known slugs."""


STUDY_WORDS = {"group": "ability", "groups": "abilities"}
"""What study 000 calls a group of categories, one and several; the words of a definition without
its own. Files, addresses and the API call a group so in every project."""

_STUDY_WORD = re.compile(r"\b(an )?(ability|abilities)\b", re.IGNORECASE)

FORMER_FIELD = "former_category"
"""The field of an item that keeps its category from before a merge."""


@dataclass(frozen=True)
class Ability:
    """A group of categories.

    `axis` is the axis that determines the outcome of the ability's items (study 000, section 4). It
    is empty for score-invariant, whose items take the axis of their source ability. `colour` is a
    number up to `COLOURS`.
    """

    slug: str
    name: str
    code: str = ""
    description: str = ""
    axis: str = ""
    colour: int = 0


@dataclass(frozen=True)
class Example:
    """A piece of text before and after a change of the category."""

    before: str
    after: str


@dataclass(frozen=True)
class Category:
    """A category. `expected_effect` on the score is one of `EFFECTS`.

    No new item gets a `retired` category; `merged_into` is the category that new items get instead.
    `in_paper` is False for categories that only study 000's published archive has. `keeps_text` is
    False for categories whose answers may be rewritten, so that little of the gold answer may
    remain.
    """

    slug: str
    name: str
    ability: str
    description: str = ""
    example: Example | None = None
    expected_effect: str = "penalty"
    in_paper: bool = True
    keeps_text: bool = True
    retired: bool = False
    merged_into: str = ""


Entry = TypeVar("Entry", Ability, Category, Example)
Named = TypeVar("Named", Ability, Category)


@dataclass(frozen=True)
class Taxonomy:
    """All abilities and categories in the order of the file; iteration yields the categories.

    `group` and `groups` are what people call an ability, one and several, see `word_groups`.
    """

    abilities: tuple[Ability, ...]
    categories: tuple[Category, ...]
    group: str = STUDY_WORDS["group"]
    groups: str = STUDY_WORDS["groups"]

    def __iter__(self) -> Iterator[Category]:
        return iter(self.categories)

    def __len__(self) -> int:
        return len(self.categories)

    def named_as(self, other: "Taxonomy") -> "Taxonomy":
        """Return these groups and categories with the names and words that another version has for
        them; what it does not have keeps its name."""
        groups, names = other.ability_names(), other.category_names()
        return replace(
            self,
            abilities=tuple(
                replace(one, name=groups.get(one.slug, one.name)) for one in self.abilities
            ),
            categories=tuple(
                replace(one, name=names.get(one.slug, one.name)) for one in self.categories
            ),
            **other.words,
        )

    @property
    def words(self) -> dict[str, str]:
        """What people call an ability, under the names of the definition."""
        return {"group": self.group, "groups": self.groups}

    def word_groups(self, text: str) -> str:
        """Return one of our texts with this project's word for a group of categories wherever it
        says ability or abilities."""
        return _STUDY_WORD.sub(self._word_group, text)

    def _word_group(self, found: re.Match[str]) -> str:
        article, word = found.groups(default="")
        said = self.group if word.casefold() == STUDY_WORDS["group"] else self.groups
        if article:
            article = article[0] + ("n " if said[0].casefold() in "aeiou" else " ")
        return article + (said[0].upper() + said[1:] if word[0].isupper() else said)

    @property
    def offered(self) -> tuple[Category, ...]:
        """The categories that new items can have."""
        return tuple(category for category in self.categories if not category.retired)

    def find(self, slug: str) -> Category | None:
        """Return the category with this slug, or None."""
        return self._by_slug.get(slug)

    def ability_names(self) -> dict[str, str]:
        """Return the name of each ability, by slug."""
        return {ability.slug: ability.name for ability in self.abilities}

    def category_names(self) -> dict[str, str]:
        """Return the name of each category, by slug."""
        return {category.slug: category.name for category in self.categories}

    def order_of(self, group: Mapping[str, str]) -> list[tuple[int, str]]:
        """Return the sort key of a group: abilities and categories in the order of the taxonomy,
        unknown ones last, from a to z. The names are `ability`, `source_ability` and `category`;
        any other one raises `KeyError`."""
        abilities = {ability.slug: place for place, ability in enumerate(self.abilities)}
        orders = {"ability": abilities, "source_ability": abilities, "category": self.places()}
        return [
            (orders[name].get(value, len(orders[name])), value) for name, value in group.items()
        ]

    def places(self) -> dict[str, int]:
        """Return the place of each category in the order of the taxonomy, by slug."""
        return {category.slug: place for place, category in enumerate(self.categories)}

    def category(self, slug: str) -> Category:
        """Return the category with this slug. Raises `UnknownSlugError`."""
        return self._by_slug.get(slug) or _find("category", self.offered, slug)

    def ability(self, slug: str) -> Ability:
        """Return the ability with this slug. Raises `UnknownSlugError`."""
        return _find("ability", self.abilities, slug)

    @cached_property
    def sorts(self) -> tuple[Ability, ...]:
        """The abilities that prompts are sorted into: all but those whose items are made from
        answers of any ability, see `is_made_of`."""
        # Kept, since an import asks for every row.
        return tuple(one for one in self.abilities if not self._is_made_of_any(one))

    def ability_called(self, word: str) -> str:
        """Return the slug of the ability with this slug, name or code, whatever its case, spaces
        and hyphens. If there is none, return the word unchanged."""
        words = self._ability_words
        return words.get(word) or words.get(_lookup_word(word), word)

    def category_called(self, word: str) -> str:
        """Return the slug of the category with this slug or name, whatever its case, spaces and
        hyphens. If there is none, return the word unchanged."""
        return word if word in self._by_slug else self._category_words.get(_lookup_word(word), word)

    # Once for each version: an import asks for every row.
    @cached_property
    def _by_slug(self) -> dict[str, Category]:
        return {category.slug: category for category in self.categories}

    @cached_property
    def _category_words(self) -> dict[str, str]:
        return {
            _lookup_word(name): one.slug for one in self.categories for name in (one.name, one.slug)
        }

    @cached_property
    def _ability_words(self) -> dict[str, str]:
        return {
            _lookup_word(name): ability.slug
            for ability in self.abilities
            for name in (ability.code, ability.name, ability.slug)
            if name
        } | {ability.slug: ability.slug for ability in self.abilities}

    def is_made_of(self, category: str, ability: str) -> bool:
        """True if items of the category are made from answers of the ability. This must be the
        ability of the category, unless no change of that ability costs points and it has no axis
        (score-invariant): then it can be any. No item is made for a category that is not in the
        taxonomy."""
        found = self.find(category)
        own = self.ability(found.ability) if found else None
        return own is not None and (own.slug == ability or self._is_made_of_any(own))

    def _is_made_of_any(self, ability: Ability) -> bool:
        effects = {one.expected_effect for one in self.categories if one.ability == ability.slug}
        return not ability.axis and effects == {"none"}

    def with_effect(self, effect: str) -> list[str]:
        """The slugs of the categories with this expected effect."""
        return [one.slug for one in self.categories if one.expected_effect == effect]

    def score_invariant(self) -> tuple[Category, ...]:
        """The categories whose changes should not affect a score."""
        return tuple(c for c in self.categories if c.expected_effect == "none")

    def in_paper(self) -> tuple[Category, ...]:
        """The 23 rows of study 000, table 1, in its order."""
        return tuple(c for c in self.categories if c.in_paper)


def load_taxonomy(project: Any) -> Taxonomy:
    """Return the categories of a project as they are now; each version is parsed once per
    process."""
    digest = project.taxonomy_id
    if digest == shipped_digest():
        return load_shipped()
    known = _PARSED.get(digest)
    if known is None:
        known = _PARSED[digest] = parse_definition(project.taxonomy.definition)
    return known


# By digest, so that no version needs to be read, or checked for changes, for a page.
_PARSED: dict[str, Taxonomy] = {}


@cache
def load_shipped() -> Taxonomy:
    """Return the taxonomy of `taxonomy.toml`. Raises `TaxonomyError`."""
    return parse_definition(shipped_definition())


@cache
def shipped_definition() -> dict[str, Any]:
    """Return the content of `taxonomy.toml`. Raises `TaxonomyError`."""
    return read_toml(FILE.read_text(encoding="utf-8"))


@cache
def load_templates() -> dict[str, dict[str, Any]]:
    """Return the definitions that a project can begin with, by slug: the shipped one first, "empty"
    last. Raises `TaxonomyError` for an invalid file."""
    found = {"fbi": shipped_definition()}
    for path in sorted(TEMPLATES.glob("*.toml")):
        found[path.stem] = read_toml(path.read_text(encoding="utf-8"))
        parse_definition(found[path.stem])
    empty = {
        "slug": "empty",
        "title": "Empty: no category yet",
        "group": "group",
        "groups": "groups",
        "ability": [],
        "category": [],
    }
    return found | {"empty": empty}


def template_titles() -> dict[str, str]:
    """Return the title of each template, by slug."""
    return {slug: str(definition["title"]) for slug, definition in load_templates().items()}


@cache
def shipped_digest() -> str:
    """Return the digest of `taxonomy.toml`."""
    return digest_definition(shipped_definition())


def digest_definition(definition: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a definition in hex; the order of the keys does not matter."""
    canonical = json.dumps(definition, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def parse(text: str) -> Taxonomy:
    """Return the taxonomy that a TOML text declares. Raises `TaxonomyError`."""
    return parse_definition(read_toml(text))


def read_toml(text: str) -> dict[str, Any]:
    """Return the tables of a TOML text. Raises `TaxonomyError`."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TaxonomyError(f"The taxonomy is not valid TOML: {error}.") from error


def parse_definition(content: Mapping[str, Any]) -> Taxonomy:
    """Return the taxonomy that tables declare. Raises `TaxonomyError`."""
    _check_tables(content)
    taxonomy = Taxonomy(
        abilities=tuple(_ability(entry) for entry in content.get("ability", ())),
        categories=tuple(_category(entry) for entry in content.get("category", ())),
        **{name: content.get(name, word) for name, word in STUDY_WORDS.items()},
    )
    _check_unique("ability", taxonomy.abilities)
    _check_unique("category", taxonomy.categories)
    _check_abilities(taxonomy)
    return taxonomy


def _ability(entry: Mapping[str, Any]) -> Ability:
    where = f"Ability {entry.get('slug', '?')!r}"
    ability = _entry(Ability, entry, where)
    _check_slug(ability.slug, where)
    if not 0 <= ability.colour <= COLOURS:
        raise TaxonomyError(f"{where}: colour is {ability.colour}; use 1 to {COLOURS}, or 0.")
    return ability


def _check_slug(slug: str, where: str) -> None:
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug) or len(slug) > LONGEST_SLUG:
        raise TaxonomyError(
            f"{where}: the slug has up to {LONGEST_SLUG} small letters, digits and single hyphens."
        )


def _category(entry: Mapping[str, Any]) -> Category:
    where = f"Category {entry.get('slug', '?')!r}"
    example = entry.get("example")
    if isinstance(example, dict):
        entry = {**entry, "example": _entry(Example, example, f"{where}, example")}
    category = _entry(Category, entry, where)
    _check_slug(category.slug, where)
    if category.expected_effect not in EFFECTS:
        raise TaxonomyError(
            f"{where}: expected_effect is {category.expected_effect!r}; "
            f"make it one of {', '.join(EFFECTS)}."
        )
    return category


def _entry(kind: type[Entry], entry: Mapping[str, Any], where: str) -> Entry:
    known = {field.name: field for field in fields(kind)}
    if unknown := sorted(set(entry) - set(known)):
        raise TaxonomyError(f"{where}: unknown field {unknown[0]!r}; use {', '.join(known)}.")
    for name, field in known.items():
        if name not in entry and field.default is MISSING:
            raise TaxonomyError(f"{where}: {name} is missing; add it.")
        if name in entry:
            needed = field.default is MISSING
            _check_value(entry[name], field.type, f"{where}: {name}", needed=needed)
    return kind(**entry)


def _check_value(value: object, wanted: Any, where: str, *, needed: bool) -> None:
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        name = getattr(wanted, "__name__", "a table with before and after")
        raise TaxonomyError(f"{where} must be of type {name}, not {value!r}.")
    if not isinstance(value, str):
        return
    if needed and not value.strip():
        raise TaxonomyError(f"{where} is empty; fill it in.")
    if len(value) > LONGEST or "\0" in value:
        raise TaxonomyError(f"{where} must have at most {LONGEST:,} characters, and no NUL.")


def _check_tables(content: Mapping[str, Any]) -> None:
    for table in ("ability", "category"):
        entries = content.get(table, [])
        if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
            raise TaxonomyError(
                f"{table!r} is not a list of tables; write it as [[{table}]] entries."
            )
        if len(entries) > MOST:
            raise TaxonomyError(f"There are {len(entries)} [[{table}]] entries; use up to {MOST}.")
    for name in STUDY_WORDS:
        _check_value(content.get(name, name), str, name, needed=True)
        if len(content.get(name, name)) > LONGEST_WORD:
            raise TaxonomyError(f"{name} must have at most {LONGEST_WORD} characters.")
    if unknown := sorted(set(content) - {"slug", "title", "ability", "category", *STUDY_WORDS}):
        raise TaxonomyError(f"Unknown table {unknown[0]!r}; use [[ability]] and [[category]].")


def _check_unique(kind: str, entries: Iterable[Ability] | Iterable[Category]) -> None:
    seen: set[str] = set()
    for entry in entries:
        if entry.slug in seen:
            raise TaxonomyError(f"Two entries have the {kind} slug {entry.slug!r}; rename one.")
        seen.add(entry.slug)


def _check_abilities(taxonomy: Taxonomy) -> None:
    known = [ability.slug for ability in taxonomy.abilities]
    for category in taxonomy:
        other = taxonomy.find(category.merged_into) if category.merged_into else None
        if category.merged_into and (not category.retired or other is None or other.merged_into):
            raise TaxonomyError(
                f"Category {category.slug!r}: merged_into must name another category that is not "
                "merged itself, and the merged one must be retired."
            )
        if category.ability not in known:
            raise TaxonomyError(
                f"Category {category.slug!r}: there is no ability {category.ability!r}; "
                f"use one of {', '.join(known)}."
            )


def plain_word(word: str) -> str:
    """Return a word without what people write differently: case, spaces, hyphens, underscores."""
    return re.sub(r"[\W_]+", "", word.casefold())


def _lookup_word(word: str) -> str:
    """Return a word as it is looked up: a name without letters, such as an emoji, as it is."""
    return plain_word(word) or word.strip()


def _find(kind: str, entries: Sequence[Named], slug: str) -> Named:
    for entry in entries:
        if entry.slug == slug:
            return entry
    known = ", ".join(entry.slug for entry in entries) or "none, since the list is empty"
    raise UnknownSlugError(f"There is no {kind} {slug!r}; use one of {known}.")
