"""Request bodies that are validated by the forms of pages, so that API and pages have the same
rules and messages."""

from typing import Any, ClassVar

from django import forms
from rest_framework import serializers

from annotation.api.responses import Unprocessable


class FormSerializer(serializers.Serializer[Any]):
    """The fields of a form except those in `leaves`, with the page's labels and help texts."""

    form: ClassVar[Any]
    leaves: ClassVar[frozenset[str]] = frozenset()

    def get_fields(self) -> dict[str, Any]:
        of_form = self.form.base_fields.items()
        taken = {name: _body_field(field) for name, field in of_form if name not in self.leaves}
        return taken | super().get_fields()


def check_form(form: forms.BaseForm) -> None:
    """Raise `Unprocessable` with the errors by field if the form is not valid."""
    if not form.is_valid():
        errors = {name or "body": [*map(str, said)] for name, said in form.errors.items()}
        raise form_error({name.replace("__all__", "body"): said for name, said in errors.items()})


def form_error(errors: dict[str, list[str]]) -> Unprocessable:
    """Build the error for a body that has these problems, by field."""
    return Unprocessable("The body cannot be used.", errors)


def _body_field(field: forms.Field) -> Any:
    """Convert the form field to a serializer field. If the form field may be empty, the value may
    be null or ""."""
    kind, options = next(made for of, made in _FIELD_BUILDERS if isinstance(field, of))
    initial = field.initial() if callable(field.initial) else field.initial
    empty = kind.initial
    if "allow_null" in options(field) or "allow_blank" in options(field):
        empty = None if "allow_null" in options(field) else ""
    given = empty if initial in (None, "") else initial
    asked = {"required": True} if field.required and given is empty else {"default": given}
    words = {"help_text": field.help_text, "label": field.label}
    return kind(**options(field), **asked, **words)


def _switch(field: Any) -> dict[str, Any]:
    return {}


def _whole(field: Any) -> dict[str, Any]:
    null = {} if field.required else {"allow_null": True}
    return {"min_value": field.min_value, "max_value": field.max_value, **null}


def _money(field: Any) -> dict[str, Any]:
    digits = {"max_digits": field.max_digits, "decimal_places": field.decimal_places}
    return {**digits, "min_value": field.min_value, "allow_null": True}


def _choice(field: Any) -> dict[str, Any]:
    # The form may have the empty choice among its choices.
    choices = [(value, words) for value, words in field.choices if value != ""]
    return {"choices": choices, "allow_blank": not field.required}


def _text(field: Any) -> dict[str, Any]:
    blank = {"allow_blank": not field.required, "trim_whitespace": field.strip}
    return {"max_length": field.max_length, **blank}


# The first matching class counts, since some classes are subclasses of later classes.
_FIELD_BUILDERS: tuple[tuple[type[forms.Field], tuple[Any, Any]], ...] = (
    (forms.BooleanField, (serializers.BooleanField, _switch)),
    (forms.ChoiceField, (serializers.ChoiceField, _choice)),
    (forms.DecimalField, (serializers.DecimalField, _money)),
    (forms.IntegerField, (serializers.IntegerField, _whole)),
    (forms.JSONField, (serializers.DictField, _switch)),
    (forms.EmailField, (serializers.EmailField, _text)),
    (forms.CharField, (serializers.CharField, _text)),
)
