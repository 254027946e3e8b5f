"""The page of the environment variables, as `config/environment.py` declares them."""

from collections.abc import Iterator

from django.conf import settings

from operation.docs.reference import markdown

_KEYS = (
    "API keys of evaluators are in variables whose names end in `_API_KEY`. A site admin enters "
    "the name of the variable at the endpoint; server and workers read the key from their "
    "environment."
)


def write_page() -> str:
    """The page as Markdown."""
    return markdown.page(
        "Environment variables",
        "Blindspot is configured by environment variables only. If a value is wrong, Blindspot "
        "does not start, and the error names the variable. `python manage.py doctor` checks that "
        "what they name works.",
        *_groups(),
        "## Keys of evaluators",
        _KEYS,
    )


def _groups() -> Iterator[str]:
    for title, variables in settings.ENVIRONMENT_VARIABLES.items():
        yield f"## {title}"
        yield markdown.table(
            ("variable", "meaning", "if it is not set"),
            (
                (
                    markdown.code(one.name),
                    one.meaning,
                    one.unset or markdown.code(one.default),
                )
                for one in variables
            ),
        )
