"""What starts a run, checked before a service sees it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.db.models import QuerySet

from judging.models import Endpoint
from judging.strategies import Strategy

FRAMES = {
    "single": "Single answers: gold and perturbed scored apart",
    "pair": "Pairs: which of two answers is better, in both orders",
    "reference": "With a reference: the perturbed answer scored against gold",
    "detection": "Error detection: is there an error in the response",
    "rating": "Ratings: the response by each criterion",
    "rubric": "Rubrics: points by each metric, and their total",
    "matching": "Matching: how far the response agrees with gold",
}
OFFLINE = "Baselines: offline, they cost nothing"


class StartForm(forms.Form):
    """A new run: strategy, endpoint, how many items, what it may cost."""

    limit = forms.IntegerField(
        label="At most this many items",
        min_value=1,
        required=False,
        help_text="A random part. Empty: all of them.",
    )
    cap = forms.DecimalField(
        label="Stop before this much is spent",
        min_value=0,
        max_digits=14,
        decimal_places=6,
        required=False,
        help_text="In the currency of the endpoint's prices. Empty: no limit.",
    )
    with_duplicates = forms.BooleanField(
        label="Items that repeat another word for word, too",
        required=False,
        help_text="They count in no ability.",
    )
    # The same seed chooses the same items, so that what was foreseen is what is started.
    seed = forms.IntegerField(min_value=0, max_value=2**48, widget=forms.HiddenInput)

    def __init__(
        self,
        *args: Any,
        strategies: Mapping[str, Strategy],
        endpoints: QuerySet[Endpoint],
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.fields["strategy"] = forms.ChoiceField(choices=_by_frame(strategies.values()))
        self.fields["endpoint"] = forms.ModelChoiceField(
            endpoints,
            to_field_name="name",
            empty_label="Choose an endpoint",
            help_text="Baselines need the endpoint baseline, all others an evaluator LLM.",
        )
        self.order_fields(["strategy", "endpoint"])

    def clean_cap(self) -> Any:
        cap = self.cleaned_data["cap"]
        if cap == 0:
            raise forms.ValidationError("Nothing can be asked for 0; leave it empty for no limit.")
        return cap


def _by_frame(strategies: Iterable[Strategy]) -> list[tuple[str, list[tuple[str, str]]]]:
    groups: dict[str, list[tuple[str, str]]] = defaultdict(list)
    # What judges other runs is started from those.
    for strategy in (one for one in strategies if one.frame in FRAMES):
        study = f" ({strategy.study})" if strategy.study else ""
        group = OFFLINE if strategy.metric else FRAMES[strategy.frame]
        groups[group].append((strategy.slug, strategy.title + study))
    order = [*FRAMES.values(), OFFLINE]
    return sorted(groups.items(), key=lambda group: order.index(group[0]))
