"""Names of people, projects and categories, which stand in titles, lists, mails and files.

Nobody expects a character there that turns the words beside it round, or that makes two names look
the same.
"""

from django.core.exceptions import ValidationError

from annotation.items.rendering import invisible_characters


def check_visible(name: str) -> None:
    """Raise `ValidationError` for a name with a character that cannot be seen."""
    if sign := invisible_characters.find_unseen(name):
        raise ValidationError(
            f"The name contains a character that cannot be seen ({sign}). Remove it."
        )
