"""Forms to start runs and to set caps."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from annotation.items.taxonomy import Taxonomy
from judging.errors import Refused
from judging.models import Endpoint, Run, StrategyVersion
from judging.runs import descriptions
from judging.runs.run_config import MAIN_AXIS, RunOverrides
from judging.strategies.definitions import MAX_EXAMPLES, MAX_SAMPLES
from judging.strategies.descriptions import FRAME_DESCRIPTIONS

OFFLINE_GROUP = "Baselines"
VOTE_CHOICES = {"": "As the strategy says", "repeats": "Repeats", "votes": "Votes"}
SEED_LIMIT = 2**48 - 1
MOST_KEYS = 100_000
T = TypeVar("T")


@dataclass(frozen=True)
class Option:
    """One checkbox. `note` is shown next to its label."""

    name: str
    value: str
    label: str
    note: str
    checked: bool


class CapField(forms.DecimalField):
    """The most that a run may cost, in the currency of the endpoint's prices; empty for no cap."""

    def __init__(self, **options: Any) -> None:
        help_text = (
            "The run pauses before it would spend more than this. Use the currency of the "
            "endpoint's prices; leave empty for no cap."
        )
        usual = {"label": "Cost cap", "help_text": help_text, "required": False}
        super().__init__(min_value=0, max_digits=14, decimal_places=6, **{**usual, **options})


class DescriptionForm(forms.Form):
    """The name, the tags and the note of a run. The page also sends what it showed, so that what
    somebody else has changed meanwhile is not set back (`list_overtaken`)."""

    name = forms.CharField(
        label="Name",
        required=False,
        max_length=descriptions.MAX_NAME,
        show_hidden_initial=True,
        help_text="A short name for charts and tables, in place of “run 7”. It is used once in the "
        "project, and can be changed later.",
    )
    tags = forms.CharField(
        label="Tags",
        required=False,
        max_length=descriptions.MAX_TAGS * (descriptions.MAX_TAG + 2),
        show_hidden_initial=True,
        help_text="Words by which runs are filtered and chosen, separated by commas.",
    )
    note = forms.CharField(
        label="Note",
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        max_length=descriptions.MAX_NOTE,
        show_hidden_initial=True,
        help_text="Shown on the run's page.",
    )

    @staticmethod
    def load(run: Run) -> dict[str, str]:
        """What the form shows of a run."""
        return {"name": run.name, "tags": ", ".join(run.tags), "note": run.note}

    def changes(self) -> dict[str, Any]:
        """The new values of the fields that differ from what the page showed."""
        return {name: self.cleaned_data[name] for name in self.changed_data}

    def list_overtaken(self, run: Run) -> list[str]:
        """The changed fields that no longer have in the run what the page showed, nor the new
        value."""
        now = self.load(run)

        def sent(name: str) -> str:
            # Browsers send line breaks as CRLF.
            return str(self.data.get(name, "")).replace("\r\n", "\n")

        return [
            name
            for name in self.changed_data
            if now[name] not in (sent(f"initial-{name}"), sent(name))
        ]

    def clean_name(self) -> str:
        return _call(descriptions.clean_name, self.cleaned_data["name"])

    def clean_tags(self) -> list[str]:
        return _call(descriptions.clean_tags, [self.cleaned_data["tags"]])

    def clean_note(self) -> str:
        return _call(descriptions.clean_note, self.cleaned_data["note"])


def _call(clean: Callable[[Any], T], value: Any) -> T:
    """Clean a value; what a service refuses becomes an error of the form."""
    try:
        return clean(value)
    except Refused as problem:
        raise ValidationError(str(problem)) from problem


class StartForm(DescriptionForm):
    """Form for new runs: strategies, endpoints, items, samples, the cost cap, and name, tags and
    note."""

    strategy = forms.MultipleChoiceField(
        label="Strategies", error_messages={"required": "Choose one or more strategies."}
    )
    over = forms.ModelChoiceField(
        Run.objects.none(),
        label="Run whose explanations to check",
        to_field_name="number",
        required=False,
        empty_label="No run",
        help_text="For an explanation check: a finished run that explained its scores.",
    )
    endpoint = forms.ModelMultipleChoiceField(
        Endpoint.objects.none(),
        label="Evaluators",
        to_field_name="name",
        error_messages={"required": "Choose one or more evaluators."},
    )
    ability = forms.MultipleChoiceField(label="Abilities", required=False)
    category = forms.MultipleChoiceField(label="Categories", required=False)
    keys = forms.CharField(
        label="Item keys",
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text="One per line. Leave empty for all items in the chosen abilities and categories.",
    )
    limit = forms.IntegerField(
        label="Maximum number of items",
        min_value=1,
        required=False,
        help_text="A random sample, drawn with the seed. Leave empty for all items.",
    )
    # The same seed draws the same items, so the started run has the items of the estimate.
    seed = forms.IntegerField(
        label="Seed",
        min_value=0,
        max_value=SEED_LIMIT,
        help_text="The same seed gives the same items in the same order.",
    )
    with_duplicates = forms.BooleanField(
        label="Include exact duplicates",
        required=False,
        help_text="Not counted towards abilities.",
    )
    unlabelled = forms.BooleanField(
        label="Include items without a final label",
        required=False,
        help_text="For error detection. They enter no figure about the evaluator, but Corrected "
        "rates uses them to estimate how many items have an error.",
    )
    samples = forms.IntegerField(
        label="Samples per call",
        min_value=1,
        max_value=MAX_SAMPLES,
        required=False,
        help_text="Leave empty for the strategy's default, usually 1.",
    )
    votes = forms.ChoiceField(
        label="How to combine samples",
        choices=[*VOTE_CHOICES.items()],
        required=False,
        help_text="Repeats: share of samples; votes: majority (self-consistency).",
    )
    axes = forms.MultipleChoiceField(label="Axes", required=False)
    examples = forms.IntegerField(
        label="Few-shot examples",
        min_value=0,
        max_value=MAX_EXAMPLES,
        required=False,
        help_text="Resolved items drawn with the seed and shown in every prompt; the run does not "
        "evaluate them. Leave empty for the strategy's default, usually none. 0: no examples.",
    )
    parameters = forms.CharField(
        label="Parameters that replace the endpoint's",
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text='A JSON object, for example {"temperature": 0.7}. Leave empty for none.',
    )
    cap = CapField(label="Cost cap per run")
    canary = forms.BooleanField(
        label="Run as a canary",
        required=False,
        help_text="Sends new requests instead of reusing stored answers, for 20 items unless you "
        "set a maximum. Repeat it later from its page to see whether the evaluator has changed.",
    )
    while_labelling = forms.BooleanField(
        label="Include items still being labelled",
        required=False,
        help_text="Annotators might see evaluator output before they label. The audit log records "
        "that you allowed it.",
    )

    def __init__(
        self,
        data: Any = None,
        *,
        strategies: Iterable[StrategyVersion],
        endpoints: QuerySet[Endpoint],
        explained: QuerySet[Run],
        abilities: Sequence[tuple[str, int]],
        categories: Sequence[tuple[str, int]],
        taxonomy: Taxonomy,
        is_lead: bool,
        **kwargs: Any,
    ) -> None:
        super().__init__(data, **kwargs)
        self.strategies = {one.slug: one for one in strategies}
        self.taxonomy = taxonomy
        self.counts = {"ability": dict(abilities), "category": dict(categories)}
        known = {version.slug: version.strategy() for version in self.strategies.values()}
        self.known = {slug: one for slug, one in known.items() if one.frame != "fold"}
        _set_choices(self.fields["strategy"], self.known)
        _set_choices(self.fields["ability"], dict(abilities))
        _set_choices(self.fields["category"], dict(categories))
        _set_choices(self.fields["axes"], self._axes())
        for field in self.fields.values():
            field.label = field.label and taxonomy.word_groups(str(field.label))
            field.help_text = taxonomy.word_groups(str(field.help_text))
        _set_queryset(self.fields["endpoint"], endpoints)
        if len(named := list(endpoints.values_list("name", flat=True)[:2])) == 1:
            self.initial.setdefault("endpoint", named)
        _set_queryset(self.fields["over"], explained)
        if not explained.exists():
            del self.fields["over"]
        if not is_lead:
            del self.fields["while_labelling"]

    def clean_cap(self) -> Any:
        cap = self.cleaned_data["cap"]
        if cap == 0:
            raise ValidationError(
                "With a cap of 0 no request can be sent. Leave the cap empty for no limit."
            )
        return cap

    def clean_keys(self) -> tuple[str, ...]:
        """The keys, given one per line, without blank lines and duplicates. Raises
        `ValidationError` for more than `MOST_KEYS`."""
        keys = dict.fromkeys(line.strip() for line in self.cleaned_data["keys"].splitlines())
        if len(keys) > MOST_KEYS:
            raise ValidationError(f"Enter at most {MOST_KEYS:,} keys.")
        return tuple(key for key in keys if key)

    def clean_parameters(self) -> dict[str, Any]:
        return parse_parameters(self.cleaned_data["parameters"])

    def own(self) -> RunOverrides:
        """The overrides of the runs, once the form is valid."""
        said = self.cleaned_data
        return RunOverrides(
            parameters=said["parameters"],
            axes=tuple(said["axes"]),
            votes={"repeats": False, "votes": True}.get(said["votes"]),
            examples=said["examples"],
            unlabelled=said["unlabelled"],
        )

    def strategy_groups(self) -> list[tuple[str, bool, list[Option]]]:
        """The strategies grouped by frame. Each group says if any of its strategies is chosen."""
        titles = {frame: words.title for frame, words in FRAME_DESCRIPTIONS.items()}
        grouped: dict[str, list[Option]] = {
            title: [] for title in [*titles.values(), OFFLINE_GROUP]
        }
        chosen = self._chosen("strategy")
        for slug, one in self.known.items():
            note = "the project's own" if self.strategies[slug].project_id else one.study
            option = Option("strategy", slug, one.title, note, slug in chosen)
            grouped[OFFLINE_GROUP if one.metric else titles[one.frame]].append(option)
        return [
            (
                title,
                any(one.checked for one in options)
                or (title == OFFLINE_GROUP and self.only_offline),
                options,
            )
            for title, options in grouped.items()
            if options
        ]

    @property
    def only_offline(self) -> bool:
        """True if no evaluator LLM is offered, so that only the baselines can run."""
        field = self.fields["endpoint"]
        assert isinstance(field, forms.ModelMultipleChoiceField)
        return all(one.is_offline for one in field.queryset or ())

    def endpoint_options(self) -> list[Option]:
        """The offered endpoints; the chosen endpoints are marked."""
        chosen = self._chosen("endpoint")
        field = self.fields["endpoint"]
        assert isinstance(field, forms.ModelMultipleChoiceField)
        return [
            Option("endpoint", one.name, one.name, _endpoint_label(one), one.name in chosen)
            for one in field.queryset or ()
        ]

    def ability_options(self) -> list[Option]:
        """The abilities of the items, each with its number of items; the chosen abilities are
        marked."""
        return self._counted("ability", self.taxonomy.ability_names())

    def category_options(self) -> list[Option]:
        """The categories of the items, each with its number of items; the chosen categories are
        marked."""
        return self._counted("category", self.taxonomy.category_names())

    def axis_options(self) -> list[Option]:
        """The axes of all strategies on the form; the chosen axes are marked."""
        chosen = self._chosen("axes")
        named = self._axes()
        return [Option("axes", slug, title, "", slug in chosen) for slug, title in named.items()]

    def _axes(self) -> dict[str, str]:
        named = {axis.slug: axis.title for one in self.known.values() for axis in one.axes}
        main = self.taxonomy.word_groups("The axis of each item's ability")
        return {MAIN_AXIS: main} | named if named else {}

    def _counted(self, name: str, titles: Mapping[str, str]) -> list[Option]:
        chosen = self._chosen(name)
        return [
            Option(name, value, titles.get(value, value), f"{n:,}", value in chosen)
            for value, n in self.counts[name].items()
        ]

    def _chosen(self, name: str) -> set[str]:
        return {str(value) for value in self[name].value() or ()}


def parse_parameters(text: str) -> dict[str, Any]:
    """Parse parameters from a JSON object; {} for empty text. Raises `ValidationError` for anything
    else."""
    if not text.strip():
        return {}
    try:
        found = json.loads(text, parse_constant=_refuse_constant)
    except ValueError as error:
        raise ValidationError(f"This is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise ValidationError('Enter a JSON object, for example {"temperature": 0.7}.')
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a valid number for a request")


def _set_choices(field: forms.Field, values: Iterable[str] | Mapping[str, Any]) -> None:
    assert isinstance(field, forms.MultipleChoiceField)
    field.choices = [(value, value) for value in values]


def _set_queryset(field: forms.Field, rows: QuerySet[Any]) -> None:
    assert isinstance(field, forms.ModelChoiceField)
    field.queryset = rows


def _endpoint_label(endpoint: Endpoint) -> str:
    if endpoint.is_offline:
        return "offline, free"
    prices = endpoint.prices()
    unknown = None in (prices.per_million_in, prices.per_million_out)
    return f"{endpoint.model}{'; price unknown' if unknown else ''}"


class CapForm(forms.Form):
    """The spending cap of a project."""

    cap = CapField(
        label="Cap", help_text="Use the currency of the endpoints' prices. Leave empty for no cap."
    )
