"""Filters for the outcomes behind one figure, where plain fields of outcomes are not enough."""

import re
from collections.abc import Iterable
from typing import Any

from django.db.models import (
    Case,
    Exists,
    F,
    FloatField,
    Max,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    Value,
    When,
)
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce

from annotation.models import Diff, Project, Revision
from annotation.reports.grouping import Grouping
from judging.models import Outcome, Run
from judging.results import expected_effect, item_features
from judging.runs.models import NUL, OutcomeQuerySet

OUTCOME_FIELDS = ("ability", "category", "source_ability")
# Comparison with another run: which of the two runs detected more of an item that both parsed.
ONLY_HERE, ONLY_THERE, DIFFERS_FROM, IN_BOTH = "only_here", "only_there", "differs_from", "in_both"
# Items that count in both runs, parsed or missing.
SHARED_WITH = "shared_with"
# Items in which the other run, such as a check of explanations, detected nothing.
NOT_DETECTED_IN = "not_detected_in"
_NEAR = 1e-9
# The number of errors in an answer: a column of items, else a field from their import.
DOSE, OWN_DOSE = "item__dose", Grouping("dose", "Dose")
# Try at most this many equal signs: each costs a query, and a URL may have hundreds.
MOST_EQUAL_SIGNS = 5
_WHOLE = re.compile(r"0|[1-9][0-9]{0,4}")


def detected_share() -> Any:
    """The detected part of an item in SQL: the detected share of its repeats, 1 or 0 without
    repeats, null if the outcome is missing."""
    return Case(
        When(result="detected", then=Coalesce("share", Value(1.0))),
        When(result="undetected", then=Coalesce("share", Value(0.0))),
        output_field=FloatField(),
    )


def filter_by_other_run(found: OutcomeQuerySet, number: int, which: str) -> OutcomeQuerySet:
    """Filter by the outcomes of another run of the same project, for the cells of Compare. The
    other run parsed the item too (`in_both`) and detected less of it (`only_here`), more of it
    (`only_there`), or less or more of it (`differs_from`).

    With repeats, the shares are compared. `shared_with` selects items that count in both runs,
    parsed or missing, and `not_detected_in` items that the other run did not detect, or does not
    have.
    """
    other = (
        Outcome.objects.counted()
        .main()
        .filter(item=OuterRef("item"), run__number=number, run__project=OuterRef("run__project"))
    )
    if which == SHARED_WITH:
        return found.filter(Exists(other))
    if which == NOT_DETECTED_IN:
        return found.filter(~Exists(other.filter(result="detected")))
    of_both = found.annotate(
        here=detected_share(),
        there=Subquery(other.annotate(said=detected_share()).values("said")[:1]),
    ).annotate(apart=F("here") - F("there"))
    more, less = Q(apart__gt=_NEAR), Q(apart__lt=-_NEAR)
    such = {
        ONLY_HERE: more,
        ONLY_THERE: less,
        DIFFERS_FROM: more | less,
        IN_BOTH: Q(apart__isnull=False),
    }
    return of_both.filter(such[which])


def filter_changing(found: OutcomeQuerySet) -> OutcomeQuerySet:
    """Keep outcomes with both a detected and an undetected sample. Samples may be repeats or
    votes."""
    runs = Run.objects.filter(pk__in=found.order_by().values("run"))
    samples = range(runs.aggregate(most=Max("samples"))["most"] or 0)
    one, other = Q(pk=None), Q(pk=None)
    for place in samples:
        one |= Q(**{f"values__parts__{place}__result": "detected"})
        other |= Q(**{f"values__parts__{place}__result": "undetected"})
    return found.filter(one, other)


def filter_by_slice(found: OutcomeQuerySet, text: str) -> OutcomeQuerySet:
    """The outcomes of a slice `name=value`: a column of items, a measured feature, or an own field.
    No outcomes if no item can have that value."""
    if "=" not in text or NUL in text:
        return found.none()
    name, value = _split_slice(found, text)
    if name in OUTCOME_FIELDS:
        return found.filter(**{name: value})
    if name in item_features.FEATURES:
        project = _get_project(found)
        if project is None:
            return found.none()
        if name not in item_features.shadowed_features(project, [name]):
            return _filter_by_feature(found, project, name, value)
    # Cast it; otherwise SQLite reads the value that it is compared with as JSON.
    held = Cast(Grouping(name, name).expression("item__"), TextField())
    return found.annotate(of_slice=held).filter(of_slice=value)


def _split_slice(found: OutcomeQuerySet, text: str) -> tuple[str, str]:
    """Split a slice into name and value. The text is split at the last of the first
    MOST_EQUAL_SIGNS equal signs that follows the name of an item field, else at the very first
    equal sign."""
    parts = text.split("=", MOST_EQUAL_SIGNS)
    cuts = [("=".join(parts[:n]), "=".join(parts[n:])) for n in range(len(parts) - 1, 0, -1)]
    named = (cut for cut in cuts[:-1] if found.filter(item__fields__has_key=cut[0]).exists())
    return next(named, cuts[-1])


def identical_revisions(runs: Iterable[Run]) -> "QuerySet[Revision]":
    """The revisions that these runs judged whose gold and perturbed answers are the same text:
    nobody can find an error there.

    Archives without texts have others of the same length in their place, so a stored diff that
    found a change has the last word.
    """
    judged = Exists(Outcome.objects.filter(revision=OuterRef("pk"), run__in=list(runs)))
    texts = Revision.objects.alias(gold=KT("texts__gold"), perturbed=KT("texts__perturbed"))
    changed = Exists(Diff.objects.filter(revision=OuterRef("pk"), edit_size__gt=0))
    return texts.filter(judged, ~changed, gold=F("perturbed")).order_by()


def filter_identical(found: OutcomeQuerySet, *, identical: bool) -> OutcomeQuerySet:
    """The outcomes whose gold and perturbed answers are the same text, or the others."""
    runs = Run.objects.filter(pk__in=found.order_by().values("run"))
    such = Q(revision__in=identical_revisions(runs))
    return found.filter(such if identical else ~such)


def filter_dosed(found: OutcomeQuerySet) -> OutcomeQuerySet:
    """The outcomes whose item may have a dose."""
    return found.filter(Q(item__dose__isnull=False) | Q(item__fields__has_key=OWN_DOSE.name))


def read_dose(held: int | None, own: object) -> int:
    """Read an item's dose from its column, else from its field; -1 if neither has a whole
    number."""
    if held is None:
        return int(str(own)) if _WHOLE.fullmatch(str(own)) else -1
    return held


def filter_by_dose(found: OutcomeQuerySet, dose: int) -> OutcomeQuerySet:
    """The outcomes whose item has this dose."""
    own = Cast(OWN_DOSE.expression("item__"), TextField())
    return found.annotate(own_dose=own).filter(
        Q(item__dose=dose) | Q(item__dose=None, own_dose=str(dose))
    )


def filter_by_expected_effect(found: OutcomeQuerySet, expected: str) -> OutcomeQuerySet:
    """The outcomes of items for which people expect this penalty, as in the table `penalties`."""
    project = _get_project(found)
    said = expected_effect.load_expected_effects(project) if project else {}
    if expected == expected_effect.UNANSWERED:
        return found.exclude(item__among=list(said))
    return found.filter(item__among=[item for item, one in said.items() if one == expected])


def filter_by_gold_score(found: OutcomeQuerySet, **ends: float) -> OutcomeQuerySet:
    """The outcomes where the gold answer's score meets the limits `gte` and `lte`."""
    scored = found.annotate(gold_score=Cast(KT("values__gold"), FloatField()))
    return scored.filter(**{f"gold_score__{end}": value for end, value in ends.items()})


def _get_project(found: OutcomeQuerySet) -> Project | None:
    """The project of these outcomes; None without outcomes."""
    return Project.objects.filter(runs__in=found.values("run")).first()


def _filter_by_feature(
    found: OutcomeQuerySet, project: Project, name: str, value: str
) -> OutcomeQuerySet:
    try:
        return item_features.filter_by_bin(found, project, name, value)
    except ValueError:
        return found.none()
