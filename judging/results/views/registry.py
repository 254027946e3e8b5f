"""The result pages, in their order. A new page is a module with its `VIEWS`, and an entry here."""

from judging.results.views import (
    agreement,
    blind_spots,
    by_category,
    compare,
    cost,
    data_set,
    detector,
    doses,
    explanations,
    missing,
    overview,
    people,
    people_groups,
    people_items,
    people_raters,
    reference,
    sensitivity,
    verdicts,
)
from judging.results.views.page_parts import ResultPage

PAGES: dict[str, ResultPage] = {
    "overview": ResultPage(
        title="Overview",
        question="How much do the evaluators notice, by ability, and how often for nothing?",
        picture="dots",
        views=overview.VIEWS,
    ),
    "by-category": ResultPage(
        title="By category",
        question="Which errors do the evaluators miss, and how far did scores move?",
        picture="heat",
        views=by_category.VIEWS,
    ),
    "verdicts": ResultPage(
        title="Verdicts",
        question="What do pairs say, does the place of an answer decide, and do repeats agree?",
        picture="stack",
        views=verdicts.VIEWS,
    ),
    "reference": ResultPage(
        title="Reference",
        question="With the gold answer at hand, how far below the top do errors bring an answer?",
        picture="bins",
        views=reference.VIEWS,
    ),
    "explanations": ResultPage(
        title="Explanations",
        question="What is noticed in words alone, and what are the explanations worth?",
        picture="words",
        views=explanations.VIEWS,
    ),
    "detector": ResultPage(
        title="Detector",
        question="How well do evaluators find natural errors, which kinds, and does asking matter?",
        picture="target",
        views=detector.VIEWS,
    ),
    "people": ResultPage(
        title="Against people",
        question="How near do the evaluators come to what people say?",
        picture="scatter",
        views=(
            *people.VIEWS,
            *people_groups.VIEWS,
            *people_items.VIEWS,
            *people_raters.VIEWS,
        ),
    ),
    "compare": ResultPage(
        title="Compare",
        question="Which of two runs notices more on the same items, and would less have shown?",
        picture="dots",
        views=compare.VIEWS,
    ),
    "blind-spots": ResultPage(
        title="Blind spots",
        question="Which slices of the items does an evaluator miss more than the rest?",
        picture="spots",
        views=blind_spots.VIEWS,
    ),
    "sensitivity": ResultPage(
        title="Sensitivity",
        question="Do the evaluators tell errors from changes that are none, and do more cost more?",
        picture="plane",
        views=(*sensitivity.VIEWS, *doses.VIEWS),
    ),
    "missing": ResultPage(
        title="Missing",
        question="Which replies could not be used, and what could they have changed?",
        picture="bins",
        views=missing.VIEWS,
    ),
    "data-set": ResultPage(
        title="Data set",
        question="What are the items, and what are they held for?",
        picture="bins",
        views=data_set.VIEWS,
    ),
    "agreement": ResultPage(
        title="Agreement and effort",
        question="How far do people agree, and how long does it take them?",
        picture="heat",
        views=agreement.VIEWS,
    ),
    "cost": ResultPage(
        title="Cost",
        question="What did the runs cost, and what did a detected error cost?",
        picture="stack",
        views=cost.VIEWS,
    ),
}
