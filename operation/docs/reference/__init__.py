"""The pages of the documentation that are written from the code: one file for each page.

`python manage.py write_docs` writes them, and a test says if one is stale.
"""

from collections.abc import Callable

from operation.docs.reference import (
    categories,
    commands,
    formats,
    growth,
    keys,
    settings,
    strategies,
    tables,
    task_types,
    troubleshooting,
)

# What writes each page, by its file.
GENERATED: dict[str, Callable[[], str]] = {
    "docs/commands.md": commands.write_page,
    "docs/settings.md": settings.write_page,
    "docs/tables.md": tables.write_page,
    "docs/task-types.md": task_types.write_page,
    "docs/strategies.md": strategies.write_page,
    "docs/categories.md": categories.write_page,
    "docs/formats.md": formats.write_page,
    "docs/keys.md": keys.write_page,
    "docs/growth.md": growth.write_page,
    troubleshooting.FILE: troubleshooting.write_page,
}
