"""Documents that people print."""

import re

import pytest
from django.urls import reverse

from tests.browser.conftest import OpenPage

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

MARGIN = "12mm"


def test_the_page_for_annotators_fits_on_one_sheet(open_page: OpenPage) -> None:
    page = open_page(None, reverse("docs-page", args=["annotators"]))
    margin = dict.fromkeys(("top", "right", "bottom", "left"), MARGIN)
    printed = page.pdf(format="A4", margin=margin)
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1
