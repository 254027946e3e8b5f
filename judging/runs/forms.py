"""Forms to start runs and to set caps."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from annotation.items.taxonomy import Taxonomy
from judging.errors import Refused
from judging.models import Endpoint, Run, StrategyVersion
from judging.runs import descriptions
from judging.runs.amounts import format_amount
from judging.runs.pinning import MAX_LANGUAGE, check_language
from judging.runs.run_config import ALL_AXES, MAIN_AXIS, RunOverrides
from judging.strategies import Strategy, draws, frames
from judging.strategies.definitions import MAX_EXAMPLES, MAX_SAMPLES
from judging.strategies.descriptions import FRAME_DESCRIPTIONS

OFFLINE_GROUP = "Baselines"
OWN_GROUP = "Of this project"
VOTE_CHOICES = {"": "As the strategy says", "repeats": "Repeats", "votes": "Votes"}
SEED_LIMIT = 2**48 - 1
MOST_KEYS = 100_000
T = TypeVar("T")


@dataclass(frozen=True)
class Option:
    """One checkbox. `note` is shown next to its label, `cost` behind it, and `why` below. `kind`
    says whether an endpoint is, or a strategy needs, an evaluator LLM ("llm") or the baseline; a
    "translation" needs a language too. A strategy that `draws` has shares that can be set. If there
    is a `barrier`, it is shown, and only a box that a link has ticked can be changed."""

    name: str
    value: str
    label: str
    note: str
    checked: bool
    kind: str = ""
    draws: bool = False
    cost: str = ""
    why: str = ""
    barrier: str = ""


class CapField(forms.DecimalField):
    """The most that runs may cost, in the site's currency; empty for no cap."""

    def __init__(self, **options: Any) -> None:
        help_text = (
            f"In {settings.CURRENCY}. The run pauses before it would spend more than this. Leave "
            "empty for no cap."
        )
        usual = {"label": "Cost cap", "help_text": help_text, "required": False}
        super().__init__(min_value=0, max_digits=14, decimal_places=6, **{**usual, **options})


class RunCapField(CapField):
    """The cap of one run, which is above 0."""

    def validate(self, value: Any) -> None:
        """Raises `ValidationError` for a cap with which the run could send nothing."""
        super().validate(value)
        if value == 0:
            raise ValidationError(
                "With a cap of 0 no request can be sent. Leave the cap empty for no limit."
            )


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


class RunChoiceField(forms.ModelChoiceField):
    """A choice of a run by its number; the labels say what the run asked."""

    def label_from_instance(self, run: Run) -> str:
        part = ", part of the items" if run.is_part else ""
        return f"{run.title}: {run.strategy.slug} at {run.endpoint.name}{part}"


class StartForm(DescriptionForm):
    """Form for new runs: strategies, endpoints, items, samples, the cost cap, and name, tags and
    note."""

    strategy = forms.MultipleChoiceField(
        label="Strategies", error_messages={"required": "Choose one or more strategies."}
    )
    over = RunChoiceField(
        Run.objects.none(),
        label="Run whose explanations to check",
        to_field_name="number",
        required=False,
        empty_label="No run",
        help_text="For an explanation check: a finished run that explained its scores.",
    )
    language = forms.CharField(
        label="Language to translate into",
        required=False,
        max_length=MAX_LANGUAGE,
        help_text="For translations: its English name, for example Swedish. The prompt shows it, "
        "and the items get it in their field “language”.",
    )
    endpoint = forms.ModelMultipleChoiceField(
        Endpoint.objects.none(),
        label="Evaluators",
        to_field_name="name",
        error_messages={"required": "Choose one or more evaluators."},
    )
    same_as = RunChoiceField(
        Run.objects.none(),
        label="The same items as",
        to_field_name="number",
        required=False,
        empty_label="No other run: choose the items below",
        help_text="To compare runs: the same items, even if they were drawn or limited, with their "
        "current texts. The estimate says which items have changed or can no longer be used.",
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
        help_text="The same seed gives the same items in the same order. It is the seed of the "
        "project's last run unless you change it.",
    )
    with_duplicates = forms.BooleanField(
        label="Include exact duplicates",
        required=False,
        help_text="Not counted towards abilities.",
    )
    unlabelled = forms.BooleanField(
        label="Include items without a final label",
        required=False,
        help_text="For error detection: Corrected rates estimate from them how many items have an "
        "error, and Soft labels use them too. For ROUGE-L of responses: to choose tasks before "
        "people rate. They enter no other figure.",
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
        help_text="Items with a final label, drawn with the seed and shown in every prompt; the "
        "run does not evaluate them. Leave empty for the strategy's default, usually none. 0: no "
        "examples.",
    )
    parameters = forms.CharField(
        label="Parameters that replace the endpoint's",
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text='A JSON object, for example {"temperature": 0.7}. Leave empty for none.',
    )
    draws = forms.CharField(
        label="Shares of what generators draw",
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text="One line for each draw: its name, a colon, and options with the percentage of "
        "the items that get them. Other options get none. Leave empty for the shares of the "
        "strategies.",
    )
    cap = RunCapField(label="Cost cap per run")
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
        comparable: QuerySet[Run] | None = None,
        recommended: Mapping[str, str] | None = None,
        usable: Mapping[str, int] | None = None,
        generating: bool = True,
        **kwargs: Any,
    ) -> None:
        """`recommended` has the slugs of the strategies to begin with, each with the reason;
        `usable` has the number of items by what a strategy needs of them. Generators stand with
        the other strategies if the project is `generating`, otherwise apart."""
        super().__init__(data, **kwargs)
        self.recommended, self.usable = dict(recommended or {}), dict(usable or {})
        self.generating = generating
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
        self.only_offline = all(one.is_offline for one in endpoints)
        _set_queryset(self.fields["over"], explained)
        if comparable is not None and comparable.exists():
            _set_queryset(self.fields["same_as"], comparable)
        else:
            del self.fields["same_as"]
        if not explained.exists():
            del self.fields["over"]
        if not is_lead:
            del self.fields["while_labelling"]
        if not self.draw_lines:
            del self.fields["draws"]

    def clean_keys(self) -> tuple[str, ...]:
        """The keys, given one per line, without blank lines and duplicates. Raises
        `ValidationError` for more than `MOST_KEYS`."""
        keys = dict.fromkeys(line.strip() for line in self.cleaned_data["keys"].splitlines())
        if len(keys) > MOST_KEYS:
            raise ValidationError(f"Enter at most {MOST_KEYS:,} keys.")
        return tuple(key for key in keys if key)

    def clean_parameters(self) -> dict[str, Any]:
        return parse_parameters(self.cleaned_data["parameters"])

    def clean_draws(self) -> dict[str, dict[str, float]]:
        try:
            return draws.parse_shares(self.cleaned_data["draws"])
        except ValueError as problem:
            raise ValidationError(str(problem)) from problem

    def clean_language(self) -> str:
        """The language, "" if no chosen strategy translates: then the page does not show the field.
        Raises `ValidationError` if one translates and no language is given."""
        language: str = self.cleaned_data["language"]
        chosen = [self.known[slug] for slug in self.cleaned_data.get("strategy", ())]
        translating = [one for one in chosen if one.translates]
        for one in translating:
            _call(partial(check_language, one), language)
        return language if translating else ""

    def own(self) -> RunOverrides:
        """The overrides of the runs, once the form is valid."""
        said = self.cleaned_data
        return RunOverrides(
            parameters=said["parameters"],
            axes=tuple(said["axes"]) or None,
            votes={"repeats": False, "votes": True}.get(said["votes"]),
            examples=said["examples"],
            unlabelled=said["unlabelled"],
            draws=said.get("draws", {}),
            language=said["language"],
        )

    def recommended_options(self) -> list[Option]:
        """The strategies to begin with, each with the reason and its calls."""
        return [self._strategy_option(slug) for slug in self.recommended if slug in self.known]

    def strategy_groups(self) -> list[tuple[str, bool, list[Option]]]:
        """All other strategies: those of the project, then the shipped ones by frame. Each group
        says whether it is open, as it is if one of its strategies is chosen."""
        return self._group([slug for slug in self.known if self._stands_with_others(slug)])

    def generator_groups(self) -> list[tuple[str, bool, list[Option]]]:
        """The generators, if nothing in the project waits for them."""
        return self._group([slug for slug in self.known if not self._stands_with_others(slug)])

    @property
    def generators_chosen(self) -> bool:
        """True if a generator that stands apart is chosen."""
        return any(chosen for _, chosen, _ in self.generator_groups())

    def _stands_with_others(self, slug: str) -> bool:
        return self.generating or not self.known[slug].generates

    def _group(self, slugs: Iterable[str]) -> list[tuple[str, bool, list[Option]]]:
        titles = {frame: words.title for frame, words in FRAME_DESCRIPTIONS.items()}
        grouped: dict[str, list[Option]] = {
            title: [] for title in [OWN_GROUP, *titles.values(), OFFLINE_GROUP]
        }
        chosen = self._chosen("strategy")
        for slug in slugs:
            if slug not in self.recommended:
                one = self.known[slug]
                title = OFFLINE_GROUP if one.metric else titles[one.frame]
                title = OWN_GROUP if self.strategies[slug].project_id else title
                grouped[title].append(self._strategy_option(slug))
        return [
            (
                title,
                title == OWN_GROUP
                or any(one.value in chosen for one in options)
                or (title == OFFLINE_GROUP and self.only_offline),
                options,
            )
            for title, options in grouped.items()
            if options
        ]

    def _strategy_option(self, slug: str) -> Option:
        one = self.known[slug]
        barrier = self._find_barrier(one)
        notes = ["the project's own" if self.strategies[slug].project_id else one.study]
        if one.axes and not self._list_fitting_axes(slug):
            notes.append(
                self.taxonomy.word_groups("none of its axes is about this project's abilities")
            )
        return Option(
            name="strategy",
            value=slug,
            label=one.title,
            note="; ".join(note for note in notes if note),
            checked=slug in self._chosen("strategy"),
            kind="translation" if one.translates else "baseline" if one.metric else "llm",
            draws=bool(one.draws),
            cost=self._describe_calls(one),
            why=self.recommended.get(slug, ""),
            barrier=barrier,
        )

    def _find_barrier(self, strategy: Strategy) -> str:
        """Why the strategy cannot be used now, "" if it can."""
        if self.only_offline and not strategy.metric:
            return "needs an evaluator LLM"
        if strategy.frame == "explanation" and "over" not in self.fields:
            return "needs a finished run that explained its scores"
        return ""

    def _describe_calls(self, strategy: Strategy) -> str:
        if strategy.metric:
            return "free"
        calls, chosen = frames.count_calls_per_axis(strategy), self._chosen("axes")
        if strategy.axes and ALL_AXES in chosen:
            calls *= len(strategy.axes)
        each = f"{calls} call{'s' * (calls > 1)} per item"
        if strategy.axes and chosen - {ALL_AXES, MAIN_AXIS} and ALL_AXES not in chosen:
            return f"{each} and axis"
        items = self.usable.get(frames.get_item_needs(strategy))
        return f"{each}, {items * calls:,} for {items:,} items" if items else each

    @property
    def draw_lines(self) -> dict[str, str]:
        """The draws of the offered generators with their own shares, as lines for the field, each
        with the other options and the titles of the strategies."""
        found: dict[tuple[str, str], list[str]] = {}
        for one in self.known.values():
            for draw in one.draws:
                others = ", ".join(option.name for option in draw.options if not option.share)
                said = draws.format_shares(draw), f"(or {others}) " if others else ""
                found.setdefault(said, []).append(one.title)
        return {line: f"{others}{', '.join(titles)}" for (line, others), titles in found.items()}

    @property
    def draws_chosen(self) -> bool:
        """True if a strategy is chosen that draws something."""
        return any(self.known[slug].draws for slug in self._chosen("strategy") & self.known.keys())

    def endpoint_options(self) -> list[Option]:
        """The offered endpoints; the chosen endpoints are marked."""
        chosen = self._chosen("endpoint")
        field = self.fields["endpoint"]
        assert isinstance(field, forms.ModelMultipleChoiceField)
        return [
            Option(
                name="endpoint",
                value=one.name,
                label=one.name,
                note=_endpoint_label(one),
                checked=one.name in chosen,
                kind="baseline" if one.is_offline else "llm",
            )
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
        """The axes that are about abilities of this project, or are of its own strategies; the
        chosen axes are marked. Without any such axis there is nothing to choose."""
        chosen = self._chosen("axes")
        fitting = {axis for slug in self.known for axis in self._list_fitting_axes(slug)} | chosen
        named = {slug: title for slug, title in self._axes().items() if slug in fitting}
        if not named:
            return []
        named = {one: self._axes()[one] for one in (MAIN_AXIS, ALL_AXES)} | named
        return [Option("axes", slug, title, "", slug in chosen) for slug, title in named.items()]

    def _list_fitting_axes(self, slug: str) -> list[str]:
        """The axes of a strategy that decide items of an ability of this project; all axes of the
        project's own strategy."""
        known = self.taxonomy.ability_names()
        named = {one.axis for one in self.taxonomy.abilities}
        return [
            axis.slug
            for axis in self.known[slug].axes
            if self.strategies[slug].project_id
            or axis.slug in named
            or not known.keys().isdisjoint(axis.abilities)
        ]

    def _axes(self) -> dict[str, str]:
        named = {axis.slug: axis.title for one in self.known.values() for axis in one.axes}
        main = self.taxonomy.word_groups("The axis of each item's ability")
        every = "All axes of a strategy"
        return {MAIN_AXIS: main, ALL_AXES: every} | named if named else {}

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
        raise ValidationError(
            'Enter a JSON object, with names in double quotes, for example {"temperature": 0.7}. '
            f"What was entered cannot be read: {error}."
        ) from error
    except RecursionError:
        raise ValidationError("This JSON is nested too deep.") from None
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
    if prices.per_million_in is None or prices.per_million_out is None:
        price = "price unknown: a cap cannot be enforced"
    elif prices.per_million_in or prices.per_million_out:
        amounts = map(format_amount, (prices.per_million_in, prices.per_million_out))
        price = "{} in / {} out per million tokens".format(*amounts)
    else:
        price = "free"
    return f"{endpoint.model}; {price}"


class CapForm(forms.Form):
    """The spending cap of a project."""

    cap = CapField(label="Cap", help_text=f"In {settings.CURRENCY}. Leave empty for no cap.")
