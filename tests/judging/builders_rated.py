"""Items that people and evaluators gave numbers to, brought in by the commands as anybody would."""

import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from django.core.management import call_command

from annotation.models import Project
from judging.models import Run
from judging.results import paired_scores
from judging.results.paired_scores import PairedScores

Answers = Mapping[str, Any]


def write(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    lines = (json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def command(name: str, *words: str, **options: Any) -> str:
    said = io.StringIO()
    call_command(name, *words, stdout=said, stderr=said, **options)
    return said.getvalue()


def bring_items(
    folder: Path,
    slug: str,
    items: Iterable[Mapping[str, Any]],
    task_type: str = "rating",
    *,
    accept: bool = False,
) -> Project:
    """A project with these items, made if it is not there."""
    path = write(folder / f"{slug}-items.jsonl", items)
    named = {"project": slug, "create": True, "task_type": task_type, "accept": accept}
    command("import_items", str(path), **named)
    return Project.objects.get(slug=slug)


def bring_labels(folder: Path, project: Project, said: Iterable[tuple[str, str, Answers]]) -> None:
    """What people said: (item, rater, answers)."""
    rows = [
        {"item": item, "rater": rater, "time": f"2026-01-01T00:{number % 60:02}:00Z", **answers}
        for number, (item, rater, answers) in enumerate(said)
    ]
    path = write(folder / f"{project.slug}-labels.jsonl", rows)
    command("import_labels", str(path), project=project.slug)


def bring_scores(
    folder: Path,
    project: Project,
    endpoint: str,
    strategy: str,
    said: Iterable[tuple[str, Answers | float | None]],
) -> Run:
    """What an evaluator gave: (item, numbers by metric, or one); None: it could not be read.

    An item that is there again was asked about again.
    """
    asked = Counter[str]()
    rows = []
    for item, numbers in said:
        name = "values" if isinstance(numbers, Mapping) else "value"
        rows.append({"item": item, "sample": asked[item], name: numbers})
        asked[item] += 1
    path = write(folder / f"{project.slug}-{endpoint}-{strategy}.jsonl", rows)
    named = {"project": project.slug, "endpoint": endpoint, "strategy": strategy}
    command("import_replies", str(path), format="jsonl", **named)
    return Run.objects.for_results().filter(project=project).latest("number")


def runs_of(project: Project) -> list[Run]:
    return list(Run.objects.in_project(project).for_results())


def aligned(project: Project, metric: str, by: Sequence[str] = ()) -> list[PairedScores]:
    """Both sides of each run on one metric."""
    found = paired_scores.load_paired_scores(project, runs_of(project), by)
    return [one for one in found if one.metric.name == metric]


def only(rows: Iterable[Mapping[str, Any]], **wanted: Any) -> dict[str, Any]:
    """The one row that has these values."""
    [found] = [row for row in rows if wanted.items() <= row.items()]
    return dict(found)
