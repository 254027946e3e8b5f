"""Who gets what was made, checked before a service sees it."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms

from annotation.making import Vetting

WAIT, ACCEPT = "wait", "accept"
RESTS = {
    WAIT: "It waits until you give it to people",
    ACCEPT: "It is accepted unseen",
}


class BringForm(forms.Form):
    """Where the replies of a run come in, and who sees them."""

    into = forms.ChoiceField(label="Into which project")
    share = forms.IntegerField(
        label="People see at once, in %",
        min_value=0,
        max_value=100,
        help_text="A random share of each category, one item at least unless it is 0.",
    )
    rest = forms.ChoiceField(label="The rest", choices=RESTS.items(), widget=forms.RadioSelect)
    aside = forms.MultipleChoiceField(
        label="Keep aside, whatever the rest does",
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
        blank = [] if initial.get("into") else [("", "Choose one")]
        self._offer("into", [*blank, *there])
        self._offer("aside", list(flags.items()))
        if not may_accept:
            del self.fields["rest"]

    def vetting(self) -> Vetting:
        """What was chosen, after the form was checked."""
        said = self.cleaned_data
        accept = said.get("rest") == ACCEPT
        return Vetting(share=said["share"], accept=accept, aside=frozenset(said["aside"]))

    def _offer(self, name: str, offered: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = offered
