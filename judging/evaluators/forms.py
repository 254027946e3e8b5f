"""Forms for an endpoint, in the admin and on its own page."""

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any, Self, cast

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.forms.fields import InvalidJSONInput
from django.http import QueryDict
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from annotation.items.text_digest import digest_texts
from judging.evaluators.models import REQUEST_FIELDS
from judging.evaluators.presets import Preset, load_presets
from judging.evaluators.prices import DEFAULT_MAX_TOKENS
from judging.evaluators.providers import PROVIDERS, callable_providers
from judging.evaluators.providers.addresses import check_base_url
from judging.evaluators.providers.errors import ForbiddenAddress
from judging.evaluators.providers.parameters import UNSTORABLE, is_storable, with_token_limit
from judging.evaluators.ratings import NAME_LENGTH, RATING_FIELDS, SOURCE_LENGTH, clean_ratings
from judging.models import Endpoint

FIRST_PROVIDER = "openai_compatible"
RESERVED_NAMES = frozenset({"new"})
FIELDSETS = {
    "Evaluator": ("name", "provider", "address", "key_variable", "model"),
    "How": ("api", "template", "json_mode", "parameters"),
    "Limits": ("in_flight", "per_minute", "tokens_per_minute", "timeout"),
    "Prices": ("price_in", "price_out", "price_cached", "price_reasoning"),
    "Outside ratings": ("ratings",),
}


class ParametersField(forms.JSONField):
    """A field for JSON; brackets that are nested too deep are an error of the user."""

    def to_python(self, value: Any) -> Any:
        """Return the decoded JSON."""
        try:
            return super().to_python(value)
        except RecursionError:
            raise ValidationError("This JSON is nested too deep.") from None

    def bound_data(self, data: Any, initial: Any) -> Any:
        """Return the value to show again."""
        try:
            return super().bound_data(data, initial)
        except RecursionError:
            return InvalidJSONInput(data)


class RatingsWidget(forms.Widget):
    """A table with a row of inputs for each rating, and empty rows for more. A form's data may have
    the ratings themselves instead, as those of the API do."""

    empty_rows = 2

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        """Return the rows that are not empty."""
        if name in data:
            return data[name]
        if not isinstance(data, QueryDict):
            return []
        columns = [data.getlist(f"{name}-{one}") for one in RATING_FIELDS]
        rows = (dict(zip(RATING_FIELDS, row, strict=True)) for row in zip(*columns, strict=False))
        return [row for row in rows if any(value.strip() for value in row.values())]

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return name not in data and f"{name}-{RATING_FIELDS[0]}" not in data

    def id_for_label(self, id_: str) -> str:
        return f"{id_}-1-{RATING_FIELDS[0]}"

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        """Return the table; the ids of its inputs have the number of the row."""
        rows = value if isinstance(value, list) else []
        known = Endpoint.objects.exclude(ratings=[]).values_list("ratings", flat=True)
        context = {
            "name": name,
            "id": (attrs or {}).get("id", f"id_{name}"),
            "rows": [*rows, *[{}] * self.empty_rows],
            "longest": {"name": NAME_LENGTH, "source": SOURCE_LENGTH},
            "known": sorted({one["name"] for ratings in known for one in ratings}),
        }
        return render_to_string("judging/_rating_inputs.html", context)


class RatingsField(forms.Field):
    """A field for outside ratings."""

    widget = RatingsWidget

    def to_python(self, value: Any) -> list[dict[str, Any]]:
        """Return the ratings as they are stored."""
        return clean_ratings(value)


class EndpointForm(forms.ModelForm):
    """A form for an endpoint. It checks that the address may be called and the parameters can be
    sent.
    """

    ratings = RatingsField(
        required=False,
        help_text="Ratings of the model from elsewhere, such as an Elo rating or a benchmark. "
        "Results show how precision and recall go along with a rating. Use the same name for the "
        "same rating of other endpoints.",
    )

    def clean_address(self) -> str:
        """Return the address, "" if there is none. Raises `ValidationError` if the address must not
        be called. An address that can no longer be changed is not checked.
        """
        address: str = self.cleaned_data["address"]
        if self.fields["address"].disabled:
            # The user could not correct the address here, and every call checks it again anyway.
            return address
        try:
            return check_base_url(address, settings.EVALUATOR_HOSTS) if address else ""
        except ForbiddenAddress as error:
            # Otherwise the model would find no address, and report a second error because it is
            # missing.
            self.instance.address = address
            raise ValidationError(str(error)) from error

    def clean(self) -> dict[str, Any]:
        """Add a token limit to a new chat endpoint: without a limit, small models write until the
        context is full. The parameters of an existing endpoint are not changed.
        """
        cleaned: dict[str, Any] = super().clean() or {}
        provider, parameters = str(cleaned.get("provider")), cleaned.get("parameters")
        is_chat = provider in callable_providers() and cleaned.get("api") == "chat"
        if self.instance.pk is None and is_chat and isinstance(parameters, dict):
            model, defaults = cleaned.get("model", ""), PROVIDERS[provider].default_parameters
            cleaned["parameters"] = with_token_limit(provider, model, defaults, parameters)
        return cleaned

    def clean_parameters(self) -> Any:
        """Return the parameters, {} for an empty field. Raises `ValidationError` for a value that
        the database cannot store.
        """
        # Django turns an empty field into None, and runs cannot be planned if the parameters are
        # None.
        parameters = self.cleaned_data["parameters"]
        if parameters is None:
            return {}
        if not is_storable(parameters):
            raise ValidationError(f"The parameters contain {UNSTORABLE}. Remove it.")
        return parameters


class EndpointPageForm(EndpointForm):
    """The form on the page of an endpoint. Settings that runs depend on are disabled."""

    class Meta:
        model = Endpoint
        fields = [name for names in FIELDSETS.values() for name in names]
        field_classes = {"parameters": ParametersField}
        labels = {
            "key_variable": "Environment variable with the key",
            "model": "Model",
            "api": "API",
            "template": "Template",
            "json_mode": "JSON",
            "in_flight": "Calls in flight",
            "per_minute": "Calls per minute",
            "tokens_per_minute": "Tokens per minute",
            "timeout": "Timeout (seconds)",
            "price_in": "Price per million input tokens",
            "price_out": "Price per million output tokens",
            "price_cached": "Price per million cached input tokens",
            "price_reasoning": "Price per million reasoning tokens",
        }
        help_texts = {
            "name": "Short: letters, digits, hyphens, underscores and dots, such as gpt-4.1. It "
            "cannot be changed later.",
            "address": "Base URL with the version: https://host/v1 for OpenAI-compatible servers"
            " and Anthropic, https://host/v1beta for Gemini.",
            "key_variable": "The environment variable (of server and workers) that contains the "
            "key. Its name must end in _API_KEY. Leave empty to send no key. The key itself is "
            "never stored.",
            "model": "The model name, as the provider spells it.",
            "api": "Use completions for OpenAI-compatible servers that do not apply a chat "
            "template.",
            "json_mode": "Only if the evaluator supports it, and only for strategies that ask for "
            "JSON. Anthropic supports JSON by schema; a JSON object with a schema is what "
            "llama-cpp-python takes.",
            "parameters": "A JSON object that replaces defaults, for example "
            '{"max_tokens": 500}. null removes a default: {"temperature": null}. A new endpoint'
            f" limits an answer to {DEFAULT_MAX_TOKENS:,} tokens, or more for models that are"
            ' known to think first; {"max_tokens": null} removes the limit. The limit includes the'
            " thinking: if a model thinks first, allow tokens for both, or the reply is cut off.",
            "in_flight": "Maximum number of simultaneous calls, over all workers.",
            "per_minute": "Leave empty for no limit.",
            "tokens_per_minute": "Input and output together. Leave empty for no limit.",
            "timeout": "After this time a call is stopped and retried.",
            "price_in": f"In {settings.CURRENCY}. Leave empty if unknown; a cap can then not be "
            "enforced. 0: free.",
            "price_out": f"In {settings.CURRENCY}. Leave empty if unknown. 0: free.",
            "price_cached": f"In {settings.CURRENCY}, for input that the provider reports as read "
            "from its cache. Leave empty if it costs as much as other input.",
            "price_reasoning": f"In {settings.CURRENCY}, for output that the provider reports as "
            "thinking. Leave empty if it costs as much as other output, as usual.",
        }
        widgets = {
            "template": forms.Textarea({"rows": 3, "spellcheck": "false"}),
            "parameters": forms.Textarea({"rows": 2, "spellcheck": "false"}),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # The default is a callable, and Django would add a hidden initial field for a callable.
        self.fields["parameters"].show_hidden_initial = False
        self.resting = bool(self.instance.pk) and self.instance.runs.exists()
        if self.instance.pk:
            del self.fields["name"]
        else:
            provider = cast(forms.ChoiceField, self.fields["provider"])
            provider.choices = [(name, PROVIDERS[name].title) for name in callable_providers()]
            provider.initial = FIRST_PROVIDER
        self.offline = bool(self.instance.pk) and self.instance.is_offline
        fixed: Iterable[str] = REQUEST_FIELDS if self.resting else ()
        if self.offline:
            fixed = self.fields.keys() - {"ratings"}
        for name in fixed:
            self.fields[name].disabled = True

    @classmethod
    def from_preset(cls, preset: Preset, sent: QueryDict, before: str) -> Self:
        """A new form with a preset's values in all fields that nobody has typed in: those that are
        empty, or as the form or the preset `before` had filled them."""
        empty = cls()
        filled = _field_texts(empty, {})
        earlier = load_presets().get(before)
        shown = _field_texts(empty, _with_name(earlier) if earlier else {})
        # Texts that the fields show as they are, also where a field shows values as JSON.
        own = {
            name: InvalidJSONInput(text)
            for name, text in sent.items()
            if name in empty.fields and _normalize(str(text)) not in ("", shown[name], filled[name])
        }
        ratings = RatingsWidget().value_from_datadict(sent, {}, "ratings")
        return cls(initial=_with_name(preset) | own | {"ratings": ratings})

    @property
    def shown(self) -> str:
        """A digest of the stored values, which the page sends with the form."""
        return digest_texts({name: str(value) for name, value in self.initial.items()})

    def clean(self) -> dict[str, Any]:
        """Raises `ValidationError` if somebody else has saved other values since the page showed
        them: it would take back a price, for example. A form that is sent again changes nothing."""
        if self.data.get("shown", self.shown) != self.shown and self.has_changed():
            raise ValidationError(
                "Somebody else changed this endpoint meanwhile. Compare its page with your values: "
                "saving again replaces all of them."
            )
        return super().clean()

    def clean_name(self) -> str:
        """Raises `ValidationError` for a name that the path of another page uses."""
        name: str = self.cleaned_data["name"]
        if name in RESERVED_NAMES:
            raise ValidationError("This name is reserved. Choose another one.")
        return name

    def groups(self) -> list[tuple[str, list[forms.BoundField]]]:
        """The fields that can be changed, under their headings."""
        changed = {name for name, field in self.fields.items() if not field.disabled}
        groups = (
            (title, [self[name] for name in names if name in changed])
            for title, names in FIELDSETS.items()
        )
        return [(title, fields) for title, fields in groups if fields]


def _with_name(preset: Preset) -> dict[str, Any]:
    """The values of a preset, with a name that no endpoint has yet."""
    taken = {*Endpoint.objects.filter(name__startswith=preset.slug).values_list("name", flat=True)}
    names = (f"{preset.slug}-{number}" if number > 1 else preset.slug for number in count(1))
    return {"name": next(name for name in names if name not in taken), **preset.values}


def _field_texts(form: EndpointPageForm, initial: Mapping[str, Any]) -> dict[str, str]:
    """What a browser sends for each field of an unchanged form with these values."""
    found = type(form)(initial=dict(initial))
    values = {name: found[name].value() for name in found.fields}
    return {name: _normalize("" if value is None else str(value)) for name, value in values.items()}


def _normalize(text: str) -> str:
    return " ".join(text.split())
