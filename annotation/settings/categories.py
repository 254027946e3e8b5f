"""The categories of a project, as leads change them. Every change is a new version, on record; an
earlier version can be taken up again."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import asdict
from typing import Any

from django.db.models import Case, F, QuerySet, Value, When
from django.utils.text import slugify

from annotation.db import transactions
from annotation.db.batches import make_batches
from annotation.errors import FieldError, Refused, Stale
from annotation.items import taxonomy
from annotation.models import Event, Item, Membership, Project, TaxonomyVersion
from annotation.projects import creation
from annotation.tasktypes import toml_text

EVENT = "categories"
# The number of items in memory at once: each may have megabytes of fields.
BATCH = 20
Definition = dict[str, Any]
# What a category does to a score, as the forms offer it.
EFFECT_TITLES = {
    "penalty": "Penalty: a fair grader takes points off",
    "none": "None: the answer is worth as much as before",
    "either": "Either: it depends on the item",
}
# Keys that are left out where they are off.
_OFF = ("colour", "retired")


def own_slug(project: Project) -> str:
    """Return the slug of the project's own versions."""
    return f"of--{project.slug}"[:80]


def list_changes(project: Project) -> QuerySet[Event]:
    """Return the changes of the categories, the newest first: what was done is the subject, and the
    digests of both versions are in the data."""
    changes = Event.objects.in_project(project).filter(kind=EVENT)
    return changes.select_related("member").order_by("-pk")


def find_version(project: Project, digest: str) -> TaxonomyVersion | None:
    """Find a version that the project has or has had; None if it never had this one."""
    if not any(digest in (one.old["digest"], one.new["digest"]) for one in list_changes(project)):
        return None
    return TaxonomyVersion.objects.filter(digest=digest).first()


def find_group(definition: Definition, slug: str) -> Definition | None:
    """Return the entry of a group, or None."""
    return next((one for one in definition.get("ability", ()) if one["slug"] == slug), None)


def find_category(definition: Definition, slug: str) -> Definition | None:
    """Return the entry of a category, or None."""
    return next((one for one in definition.get("category", ()) if one["slug"] == slug), None)


def put(
    definition: Definition, table: str, slug: str, values: Mapping[str, Any]
) -> tuple[Definition, str]:
    """Return the definition with these values for the entry with this slug, and the slug. "" adds
    an entry at the end of its list, with a slug from its name. Empty values are removed.

    Raises `FieldError` for an unknown slug, and for a name that another entry has.
    """
    changed = deepcopy(definition)
    entries = changed.setdefault(table, [])
    entry = next((one for one in entries if one["slug"] == slug), None)
    if slug and entry is None:
        raise FieldError("This entry no longer exists. Look at the list again.", "name")
    name = " ".join(str(values["name"]).split())
    word = taxonomy.plain_word(name)
    for one in entries:
        alike = word and word == taxonomy.plain_word(one["name"])
        if one is not entry and (alike or one["name"] == name):
            remedy = "Choose another name: files are matched whatever their case and hyphens."
            raise FieldError(f"There is another one called {one['name']}. {remedy}", "name")
    if entry is None:
        entry = {"slug": _new_slug(name, {one["slug"] for one in entries})}
        entries.append(entry)
    for key, value in {**values, "name": name}.items():
        if value in ("", None) or (key in _OFF and not value):
            entry.pop(key, None)
        else:
            entry[key] = value
    return changed, entry["slug"]


def move(definition: Definition, table: str, slug: str, step: int) -> Definition:
    """Return the definition with this entry one place earlier (-1) or later (1); a category stays
    among those of its group."""
    changed = deepcopy(definition)
    entries = changed[table]
    group = next(one for one in entries if one["slug"] == slug).get("ability")
    places = [at for at, one in enumerate(entries) if one.get("ability") == group]
    here = next(at for at, place in enumerate(places) if entries[place]["slug"] == slug)
    there = here + step
    if 0 <= there < len(places):
        one, other = places[here], places[there]
        entries[one], entries[other] = entries[other], entries[one]
    return changed


def remove(project: Project, definition: Definition, table: str, slug: str) -> Definition:
    """Return the definition without an entry. Raises `Refused` for a category that items have, and
    for a group that has categories."""
    changed = deepcopy(definition)
    if table == "category" and (used := count_items(project).get(slug)):
        raise Refused(f"{used:,} items have this category. Retire or merge it instead.")
    if table == "ability" and any(one["ability"] == slug for one in changed["category"]):
        said = "This ability still has categories. Move them to another ability first."
        raise Refused(taxonomy.load_taxonomy(project).word_groups(said))
    changed[table] = [one for one in changed[table] if one["slug"] != slug]
    return changed


def count_items(project: Project) -> dict[str, int]:
    """Count the live items of the project by category."""
    rows = Item.objects.in_project(project).by_category()
    return {row["category"]: row["items"] for row in rows}


def replace(project: Project, definition: Definition) -> Definition:
    """Return another list of categories for the project. Categories that its items have, and that
    the other list lacks, are kept as retired ones."""
    changed = deepcopy(definition)
    old = project.taxonomy.definition
    there = {one["slug"] for one in changed.setdefault("category", [])}
    groups = {one["slug"] for one in changed.setdefault("ability", [])}
    for slug in count_items(project):
        entry = find_category(old, slug)
        if slug in there or entry is None:
            continue
        changed["category"].append({**entry, "retired": True, "merged_into": ""})
        group = find_group(old, entry["ability"])
        if group and group["slug"] not in groups:
            groups.add(group["slug"])
            changed["ability"].append(group)
    return changed


def read_file(text: str) -> Definition:
    """Return the definition in an uploaded file, TOML as `write_file` makes it. Raises
    `FieldError`."""
    try:
        definition = toml_text.parse(text.replace("\r\n", "\n"))
        taxonomy.parse_definition(definition)
    except (taxonomy.TaxonomyError, ValueError, RecursionError) as error:
        is_toml = isinstance(error, taxonomy.TaxonomyError)
        said = f"{error}" if is_toml else f"It is not valid TOML: {error}."
        raise FieldError(
            f"The file has no categories as “Export as a file” writes them. {said}", "file"
        ) from error
    return definition


def write_file(definition: Definition) -> str:
    """Return a definition as TOML, with the word for a group."""
    return toml_text.write_definition(taxonomy.STUDY_WORDS | definition)


def save(
    project: Project, definition: Definition, *, member: Membership, shown: str, note: str
) -> TaxonomyVersion | None:
    """Store the definition as a version and switch the project to it. Returns None if nothing
    changed.

    `shown` is the digest of the version that the page showed, and `note` says what changed. Items
    follow: those of a merged category get the other one and keep the former one in the field
    `former_category`; where a category moved to another group, they get that ability; where a merge
    was taken back, even after the merged category was removed, they get their former category
    again. Labels, final labels and runs stay.

    Raises `Stale` if the project has another version by now, and `FieldError` for a definition that
    cannot be used.
    """
    title = f"Categories of {project.name}"
    own = {
        key: value for key, value in definition.items() if taxonomy.STUDY_WORDS.get(key) != value
    }
    definition = {**own, "slug": own_slug(project), "title": title}
    try:
        new = taxonomy.parse_definition(definition)
    except taxonomy.TaxonomyError as error:
        raise FieldError(str(error), "name") from error
    with transactions.transact():
        held = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        if held.taxonomy_id != shown:
            raise Stale("Somebody else changed the categories meanwhile. Look at them again.")
        before = held.taxonomy
        named = {"slug": "", "title": ""}
        if {**before.definition, **named} == {**definition, **named}:
            return None
        old = taxonomy.load_taxonomy(held)
        version = creation.store_taxonomy(definition)
        held.taxonomy = version
        held.save(update_fields=["taxonomy"])
        moved = _move_items(held, old, new)
        Event.record(
            EVENT,
            note,
            project_id=project.pk,
            member_id=member.pk,
            old={"version": str(before), "digest": before.digest},
            new={"version": str(version), "digest": version.digest},
            items=moved,
        )
    project.taxonomy = version
    return version


def _move_items(project: Project, old: taxonomy.Taxonomy, new: taxonomy.Taxonomy) -> int:
    """Give the items of the project the category and ability of the new version. Return how many
    changed."""
    items = Item.objects.filter(project=project)
    last_merges = _load_last_merges(project)
    moved = 0
    for category in new.categories:
        was = old.find(category.slug)
        if category.merged_into:  # also what came in meanwhile
            moved += _give_category(
                items.filter(category=category.slug), new.category(category.merged_into)
            )
        elif target := was.merged_into if was else last_merges.get(category.slug):
            found = items.filter(
                category=target, **{f"fields__{taxonomy.FORMER_FIELD}": category.slug}
            )
            moved += _give_category(found, category, forget=True)
        if was and was.ability != category.ability:
            found = items.filter(category=category.slug).exclude(ability=category.ability)
            same = When(source_ability=F("ability"), then=Value(category.ability))
            moved += found.update(
                source_ability=Case(same, default=F("source_ability")), ability=category.ability
            )
    return moved


def _load_last_merges(project: Project) -> dict[str, str]:
    """Load the category with which each category of the former versions was merged when it was last
    in one; "" if it was not. It may have been removed since."""
    versions = TaxonomyVersion.objects.filter(slug=own_slug(project)).order_by("number")
    former = versions.exclude(digest=project.taxonomy_id).values_list("definition", flat=True)
    return {
        entry["slug"]: entry.get("merged_into", "")
        for definition in former
        for entry in definition.get("category", ())
    }


def _give_category(items: Any, category: taxonomy.Category, *, forget: bool = False) -> int:
    moved = 0
    for part in make_batches(list(items.values_list("pk", flat=True)), BATCH):
        # Another change of many items may have given some of them another category meanwhile.
        found = list(items.filter(pk__in=part).locked().order_by("pk"))
        for item in found:
            kept = {
                name: value for name, value in item.fields.items() if name != taxonomy.FORMER_FIELD
            }
            item.fields = kept if forget else {**kept, taxonomy.FORMER_FIELD: item.category}
            if item.source_ability == item.ability:
                item.source_ability = category.ability
            item.category, item.ability = category.slug, category.ability
        Item.objects.bulk_update(found, ["category", "ability", "source_ability", "fields"])
        moved += len(found)
    return moved


def _new_slug(name: str, taken: Iterable[str]) -> str:
    """Return a slug from a name; a name without Latin letters gets a number, so that no word of a
    file is taken for it."""
    base = slugify(name)[: taxonomy.LONGEST_SLUG - 4].strip("-_").replace("_", "-")
    base = "-".join(filter(None, base.split("-")))
    first, start = ((base,), 2) if base else ((), 1)
    numbered = (f"{base or 'own'}-{number}" for number in range(start, taxonomy.MOST + 2))
    return next(one for one in (*first, *numbered) if one not in taken)


def entry_values(entry: Definition | None, kind: type[Any]) -> dict[str, Any]:
    """Return the values of an entry, with the defaults of its kind."""
    plain = {name: value for name, value in (entry or {}).items() if name != "example"}
    return asdict(kind(**plain)) | entry if entry else {}
