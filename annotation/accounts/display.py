"""How a person wants pages to look. Each browser keeps this in cookies, so that a telephone and a
large screen can differ; `templates/base.html` writes what was chosen as `data-` attributes."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.http import HttpRequest

COOKIE_AGE = 365 * 24 * 3600


@dataclass(frozen=True)
class DisplaySetting:
    """One choice; `slug` is the name of its cookie. The first of `choices` (value, title) is the
    default."""

    slug: str
    title: str
    help: str
    choices: tuple[tuple[str, str], ...]

    def chosen(self, cookies: Mapping[str, str]) -> str:
        """The value that a browser keeps, or the default."""
        values = [value for value, _ in self.choices]
        kept = cookies.get(self.slug)
        return kept if kept in values else values[0]


SETTINGS = (
    DisplaySetting(
        "theme",
        "Colours",
        "",
        (("system", "Same as the device"), ("light", "Light"), ("dark", "Dark")),
    ),
    DisplaySetting(
        "text-size",
        "Size of the texts of items",
        "",
        (("normal", "Normal"), ("small", "Small"), ("large", "Large"), ("huge", "Very large")),
    ),
    DisplaySetting(
        "spacing",
        "Spacing",
        "Close spacing shows more text at once.",
        (("wide", "Comfortable"), ("close", "Close")),
    ),
    DisplaySetting(
        "item-keys",
        "Keys of items on the label screen",
        "A key can give the answer away, such as number-errors/12. Hide them if you would notice.",
        (("shown", "Shown"), ("hidden", "Hidden")),
    ),
)


def display_context(request: HttpRequest) -> dict[str, object]:
    """Tell templates what this browser chose, by name of the attribute; defaults are left out."""
    chosen = {one.slug: one.chosen(request.COOKIES) for one in SETTINGS}
    defaults = {one.slug: one.choices[0][0] for one in SETTINGS}
    return {
        "display": {slug: value for slug, value in chosen.items() if value != defaults[slug]},
        "hides_item_keys": chosen["item-keys"] == "hidden",
    }
