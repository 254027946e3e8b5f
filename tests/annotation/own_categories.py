"""A project with categories of its own: two groups of review faults, with words that no other
taxonomy has."""

from annotation.items import taxonomy
from annotation.models import Project
from annotation.projects import creation

TEXT = """
slug = "reviews"

[[ability]]
slug = "tone"
name = "Tone of voice"
code = "T"
description = "How the reviewer speaks to the author."
axis = "content-quality"

[[ability]]
slug = "evidence"
name = "Evidence"
code = "E"
description = "What the review rests on."
axis = "hallucination"

[[category]]
slug = "rude"
name = "Rude remark"
ability = "tone"
description = "The review is unkind to the author."
example = { before = "This is unclear.", after = "Any child would see this." }
expected_effect = "penalty"

[[category]]
slug = "flattery"
name = "Flattery"
ability = "tone"
description = "The review praises without a reason."
example = { before = "The proof is short.", after = "What a wonderful proof!" }
expected_effect = "none"

[[category]]
slug = "made-up-citation"
name = "Made-up citation"
ability = "evidence"
description = "The review cites a paper that does not exist."
example = { before = "(Lee 2020)", after = "(Lee 2031)" }
expected_effect = "penalty"
"""


def with_own_categories(project: Project, *renamed: tuple[str, str]) -> Project:
    """The same project, with these categories, some of them with another short name."""
    text = TEXT
    for slug, other in renamed:
        text = text.replace(f'slug = "{slug}"', f'slug = "{other}"')
    definition = taxonomy.read_toml(text)
    project.taxonomy = creation.store_taxonomy(definition)
    project.save(update_fields=["taxonomy"])
    return project
