"""Forms to release generated items and to regenerate rejected ones."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms

from annotation.generation.release import ReleasePolicy
from judging.runs.forms import RunCapField

WAIT, ACCEPT = "wait", "accept"
REMAINDER_CHOICES = {
    WAIT: "Hold it until I release it",
    ACCEPT: "Accept it without review",
}


class BringForm(forms.Form):
    """Form for importing a run's replies: the target project and the release policy."""

    into = forms.ChoiceField(label="Import into project")
    share = forms.IntegerField(
        label="Released at once (%)",
        min_value=0,
        max_value=100,
        help_text="A random sample of each category, at least one item unless this is 0.",
    )
    rest = forms.ChoiceField(
        label="The rest", choices=REMAINDER_CHOICES.items(), widget=forms.RadioSelect
    )
    aside = forms.MultipleChoiceField(
        label="Hold flagged items",
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(
        self,
        data: Any = None,
        *,
        targets: Iterable[tuple[str, str]],
        flags: Mapping[str, str],
        may_accept: bool,
        initial: Mapping[str, Any],
    ) -> None:
        super().__init__(data, initial={"rest": WAIT, **initial})
        there = list(targets)
        blank = [] if initial.get("into") else [("", "Choose a project")]
        self._offer("into", [*blank, *there])
        self._offer("aside", list(flags.items()))
        if not may_accept:
            del self.fields["rest"]

    def vetting(self) -> ReleasePolicy:
        """The release policy, once the form is valid."""
        said = self.cleaned_data
        accept = said.get("rest") == ACCEPT
        return ReleasePolicy(share=said["share"], accept=accept, aside=frozenset(said["aside"]))

    def _offer(self, name: str, offered: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = offered


class RegenerateForm(forms.Form):
    """Form to regenerate rejected items: instruction, evaluator, cap and items."""

    strategy = forms.ChoiceField(label="Instruction")
    endpoint = forms.ChoiceField(label="Evaluator")
    cap = RunCapField()
    items = forms.MultipleChoiceField(
        label="Rejected items",
        error_messages={
            "required": "Choose items to regenerate.",
            "invalid_choice": "%(value)s has been regenerated or has a new final label. Reload the "
            "page.",
        },
    )

    def __init__(
        self,
        data: Any = None,
        *,
        strategies: Iterable[tuple[str, str]],
        endpoints: Iterable[str],
        items: Iterable[str],
    ) -> None:
        there = list(items)
        super().__init__(data, initial={"items": there})
        offered = {
            "strategy": list(strategies),
            "endpoint": [(one, one) for one in endpoints],
            "items": [(one, one) for one in there],
        }
        for name, choices in offered.items():
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = choices

    def ticked(self) -> set[str]:
        """The keys of the items that are currently ticked."""
        return {str(one) for one in self["items"].value() or ()}
