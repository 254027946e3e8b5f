"""The result pages, in their order. A new page is a module with its `VIEWS`, and an entry here."""

from judging.views.results import (
    by_category,
    compare,
    explanations,
    missing,
    overview,
    reference,
    sensitivity,
    verdicts,
)
from judging.views.results.kinds import Page

PAGES: dict[str, Page] = {
    "overview": Page(
        title="Overview",
        question="How much do the evaluators notice, by ability, and how often for nothing?",
        picture="dots",
        views=overview.VIEWS,
    ),
    "by-category": Page(
        title="By category",
        question="Which errors do the evaluators miss, and how far did scores move?",
        picture="heat",
        views=by_category.VIEWS,
    ),
    "verdicts": Page(
        title="Verdicts",
        question="What do pairs say, does the place of an answer decide, and do repeats agree?",
        picture="stack",
        views=verdicts.VIEWS,
    ),
    "reference": Page(
        title="Reference",
        question="With the gold answer at hand, how far below the top do errors bring an answer?",
        picture="bins",
        views=reference.VIEWS,
    ),
    "explanations": Page(
        title="Explanations",
        question="What is noticed in words alone, and what are the explanations worth?",
        picture="words",
        views=explanations.VIEWS,
    ),
    "compare": Page(
        title="Compare",
        question="Which of two runs notices more on the same items, and would less have shown?",
        picture="dots",
        views=compare.VIEWS,
    ),
    "sensitivity": Page(
        title="Sensitivity",
        question="Do the evaluators tell errors from changes that are none?",
        picture="plane",
        views=sensitivity.VIEWS,
    ),
    "missing": Page(
        title="Missing",
        question="Which replies could not be used, and what could they have changed?",
        picture="bins",
        views=missing.VIEWS,
    ),
}
