"""A project whose annotators mark passages, with labels and severities."""

from typing import Any

from annotation import tasktypes
from annotation.models import Project
from annotation.tasktypes import versions
from tests.builders import make_member

FIELD = """
[[fields]]
name = "spans"
kind = "span"
title = "Where are the errors?"

[[fields.choices]]
value = "sum"
title = "Sum"

[[fields.choices]]
value = "fact"
title = "Fact"

[[fields.severities]]
value = "minor"
title = "Minor"

[[fields.severities]]
value = "major"
title = "Major"
"""
PLAIN_FIELD = FIELD.split("[[fields.choices]]")[0]


def with_spans(project: Project, field: str | None = None) -> Project:
    """The project, whose task type also asks for passages; with labels if it has no first look."""
    slug = project.task_type.slug
    source = tasktypes.load_sources()[slug]
    chosen = field or (PLAIN_FIELD if slug == "perturbation-vetting" else FIELD)
    at = source.find("\n[blind]")
    source = source + chosen if at < 0 else source[:at] + chosen + source[at:]
    parsed = versions.parse_source(project, source)
    assert not parsed.problems, parsed.problems
    lead = make_member(project, role="lead")
    versions.save_version(project, parsed, member=lead, shown=project.task_type_id)
    project.refresh_from_db()
    return project


def passage(text: str, start: int, quote: str, **kinds: Any) -> dict[str, Any]:
    return {"text": text, "start": start, "end": start + len(quote), "quote": quote, **kinds}
