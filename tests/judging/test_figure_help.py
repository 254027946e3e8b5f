"""What is said of each figure: on its page, in the document, and that nothing is said twice."""

import re
from html import unescape

import pytest
from django.test import Client

from judging.results import figure_help
from judging.results.tables import PAGES
from stats import bootstrap
from tests.judging.test_same_everywhere import VIEWS, everything, path_of, plain

__all__ = ["everything"]
pytestmark = pytest.mark.django_db

USED = {name for page in PAGES.values() for view in page.views for name in view.figures}
# Columns by whose titles a figure is known, in the titles of tables.
TITLES = {
    "J": "j", "d′": "d_prime", "F1": "f1", "MCC": "f1", "Precision": "detector",
    "RMSE": "distance", "Strength": "strength",
    "Spearman ρ": ("correlation", "outside_ratings", "soft_correlation"),
    "Penalty": ("penalty", "trend"), "Detection": ("rate", "difference", "trend"),
    "Undetected rate": "rate",
    "Win rate": "rate",
    "By category, p": "missing_p", "p, adjusted": "p_holm", "Letters": "p_holm",
    "Detection, a minus b": "difference", "q": ("blind_spots", "alt_test"),
    "Recall": "detector",
    "Without false credit": "after_credit",
}  # fmt: skip


def test_the_document_has_what_the_pages_say() -> None:
    written = figure_help.DOCUMENT.read_text(encoding="utf-8")
    assert written == figure_help.write_document(), "run python -m judging.results.figure_help"


def test_every_text_is_of_use_and_every_part_is_said() -> None:
    found = figure_help.load_figures()
    assert found.keys() == USED
    assert {one.interval for one in found.values() if one.interval} == {
        *figure_help.load_intervals().values()
    }
    for name, one in found.items():
        assert {"What", "Formula", "Limits", "Source"} <= dict(one.parts).keys(), name
        assert not re.search(r"\{\w+\}", " ".join(text for _, text in one.parts)), name
    assert f"{bootstrap.DRAWS:,} bootstrap samples" in dict(found["f1"].parts)["Interval"]


@pytest.mark.parametrize(("page", "view"), VIEWS)
def test_a_page_explains_the_figures_of_its_table(everything: Client, page: str, view: str) -> None:
    text = everything.get(f"{path_of(page, view)}&intervals=yes").content.decode()
    help_of_page = text.partition('id="figure-help"')[2].partition("</details>")[0]
    [named] = [one.figures for one in PAGES[page].views if one.slug == view]
    expected = [figure_help.load_figures()[name].title for name in named]
    assert [plain(one) for one in re.findall(r"<h3.*?</h3>", help_of_page)] == expected
    for name in named:
        for _, said in figure_help.load_figures()[name].parts:
            assert " ".join(said.split()) in " ".join(unescape(help_of_page).split())
    table = text[text.index("<thead") : text.index("</table>")]
    heads = [plain(one.partition("<small")[0]) for one in re.findall(r"(?s)<th.*?</th>", table)]
    for head in heads:
        known = TITLES.get(head, ())
        assert not known or {*named} & ({known} if isinstance(known, str) else {*known}), head
    small = re.findall(r"<small>([^<]* to [^<]*)", table)
    if [one for one in small if re.fullmatch(r"[−+\d.]+( %)? to [−+\d.]+( %)?.*", plain(one))]:
        assert any(figure_help.load_figures()[name].interval for name in named)
