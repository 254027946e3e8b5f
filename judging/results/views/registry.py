"""The result pages, in order. A new page needs a module with its `VIEWS` and an entry here."""

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
        question="What are the detection and false-alarm rates, by ability?",
        picture="dots",
        views=overview.VIEWS,
    ),
    "by-category": ResultPage(
        title="By category",
        question="Which error categories are missed, and how do scores differ?",
        picture="heat",
        views=by_category.VIEWS,
    ),
    "verdicts": ResultPage(
        title="Verdicts",
        question="What are the pairwise verdicts, and do order and repeats matter?",
        picture="stack",
        views=verdicts.VIEWS,
    ),
    "reference": ResultPage(
        title="Reference",
        question="How far do scores drop when the evaluator sees the gold answer?",
        picture="bins",
        views=reference.VIEWS,
    ),
    "explanations": ResultPage(
        title="Explanations",
        question="Which errors are named only in explanations, and how good are these?",
        picture="words",
        views=explanations.VIEWS,
    ),
    "detector": ResultPage(
        title="Detector",
        question="How well are natural errors detected, and does the prompt matter?",
        picture="target",
        views=detector.VIEWS,
    ),
    "people": ResultPage(
        title="Against people",
        question="How well do evaluators agree with human ratings?",
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
        question="Which of two runs detects more on the same items, and how sure is it?",
        picture="dots",
        views=compare.VIEWS,
    ),
    "blind-spots": ResultPage(
        title="Blind spots",
        question="In which slices does an evaluator miss more errors than elsewhere?",
        picture="spots",
        views=blind_spots.VIEWS,
    ),
    "sensitivity": ResultPage(
        title="Sensitivity",
        question="Can evaluators tell errors from score-invariant changes?",
        picture="plane",
        views=(*sensitivity.VIEWS, *doses.VIEWS),
    ),
    "missing": ResultPage(
        title="Missing",
        question="Which replies were unusable, and how much could they change the rates?",
        picture="bins",
        views=missing.VIEWS,
    ),
    "data-set": ResultPage(
        title="Data set",
        question="What is in the data set, and what are the final labels?",
        picture="bins",
        views=data_set.VIEWS,
    ),
    "agreement": ResultPage(
        title="Agreement and effort",
        question="How well do annotators agree, and how long do they take?",
        picture="heat",
        views=agreement.VIEWS,
    ),
    "cost": ResultPage(
        title="Cost",
        question="What did the runs cost, in all and per detected error?",
        picture="stack",
        views=cost.VIEWS,
    ),
}
