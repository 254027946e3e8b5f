"""Views that start new runs from existing runs (clone, canary, combine), move runs, or parse their
replies again."""

from collections.abc import Iterable, Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from annotation.htmx import HtmxRequest
from annotation.models import Membership
from annotation.projects import access
from judging import tasks
from judging.errors import Refused
from judging.models import Endpoint, Run, StrategyVersion
from judging.results import figures
from judging.runs import canaries, choices, derived, descriptions, lifecycle, reparse
from judging.runs.choices import get_run_or_404
from judging.runs.forms import DescriptionForm, RunCapField
from judging.runs.reparse import ReparsePreview
from judging.runs.views.runs import render_run
from judging.strategies import catalogue

ONLY_PARSER = "Current parser"


class RepeatRunForm(forms.Form):
    """Form to repeat a run. While the items are being labelled, only a lead may allow the
    repetition."""

    while_labelling = forms.BooleanField(
        label="Include items still being labelled",
        required=False,
        help_text="The audit log records that you allowed it.",
    )

    def __init__(self, data: Any = None, *, is_lead: bool) -> None:
        super().__init__(data)
        if not is_lead:
            self.fields["while_labelling"].widget = forms.HiddenInput()
            self.fields["while_labelling"].disabled = True


class CloneForm(RepeatRunForm):
    """How to clone a run."""

    as_pinned = forms.ChoiceField(
        label="Texts",
        choices=[
            ("", "The current revisions of the same items"),
            ("1", "The revisions and examples pinned by the run"),
        ],
        required=False,
    )
    cap = RunCapField()
    endpoint = forms.ModelChoiceField(
        label="Endpoint",
        queryset=Endpoint.objects.none(),
        to_field_name="name",
        required=False,
        help_text="At another endpoint, all requests are sent again.",
    )
    field_order = ["endpoint", "as_pinned", "cap", "while_labelling"]

    def __init__(
        self, data: Any = None, *, is_lead: bool, same: Endpoint, others: QuerySet[Endpoint]
    ) -> None:
        super().__init__(data, is_lead=is_lead)
        gone = same.archived_at is not None
        self.fields["endpoint"].required = gone
        _set_choices(
            self.fields["endpoint"], others, "Choose one" if gone else f"Same: {same.name}"
        )

    def clean_as_pinned(self) -> bool:
        """True if the items are used as the run pinned them; False for an empty choice."""
        return bool(self.cleaned_data["as_pinned"])


class MoveForm(forms.Form):
    """Form for the endpoint that a run will use from now on."""

    endpoint = forms.ModelChoiceField(
        label="Endpoint",
        queryset=Endpoint.objects.none(),
        to_field_name="name",
        help_text="Site admins add endpoints. An endpoint that runs use cannot be changed: add a "
        "corrected one.",
    )

    def __init__(self, data: Any = None, *, others: QuerySet[Endpoint]) -> None:
        super().__init__(data)
        _set_choices(self.fields["endpoint"], others, "Choose one")


def _set_choices(field: forms.Field, endpoints: QuerySet[Endpoint], empty: str) -> None:
    assert isinstance(field, forms.ModelChoiceField)
    field.queryset, field.empty_label = endpoints, empty


class DeriveForm(DescriptionForm):
    """How to combine the outcomes of runs, with a weight for each run, used by weighted votes, and
    the name, the tags and the note of the derived run."""

    strategy = forms.ChoiceField(label="How to combine them", widget=forms.RadioSelect)

    def __init__(
        self, data: Any = None, *, folds: Iterable[StrategyVersion], runs: Sequence[Run]
    ) -> None:
        super().__init__(data)
        self.numbers = [run.number for run in runs]
        for run in runs:
            self.fields[f"weight-{run.number}"] = forms.FloatField(
                label=run.mention[0].upper() + run.mention[1:],
                required=False,
                min_value=0,
                max_value=derived.MOST_WEIGHT,
                initial=1,
                widget=forms.NumberInput(attrs={"step": "any"}),
            )
        self.versions = {version.slug: version for version in folds}
        field = self.fields["strategy"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(slug, one.strategy().title) for slug, one in self.versions.items()]
        self.initial["strategy"] = next(iter(self.versions), "")

    def clean(self) -> None:
        """Keep errors of weights only for weighted votes: nothing else uses the weights."""
        version = self.versions.get(self.cleaned_data.get("strategy", ""))
        if version and version.strategy().fold != "weighted":
            for number in self.numbers:
                self.errors.pop(f"weight-{number}", None)

    def version(self) -> StrategyVersion:
        """The chosen strategy version, once the form is valid."""
        return self.versions[self.cleaned_data["strategy"]]

    def weights(self) -> dict[int, float]:
        """The weight of each run by number, if the chosen strategy has weights."""
        if self.version().strategy().fold != "weighted":
            return {}
        given = {number: self.cleaned_data[f"weight-{number}"] for number in self.numbers}
        return {number: weight for number, weight in given.items() if weight is not None}

    def weight_fields(self) -> list[forms.BoundField]:
        """The fields of the weights."""
        return [self[f"weight-{number}"] for number in self.numbers]


class ReparseForm(forms.Form):
    """Form for the parser of a run's replies."""

    parser = forms.ChoiceField(label="Parser", required=False)

    def __init__(self, data: Any = None, *, parsers: Sequence[str], now: str) -> None:
        super().__init__(data, initial={"parser": now})
        field = self.fields["parser"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(name, name or ONLY_PARSER) for name in parsers]


@require_http_methods(["GET", "POST"])
@login_required
def clone_run(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Start the same run again, over the current or the pinned revisions of its items."""
    member = access.member_for(request, slug, right="run")
    run = get_run_or_404(member, number)
    others = choices.list_other_endpoints(run)
    form = CloneForm(
        _submitted_data(request), is_lead=member.is_lead, same=run.endpoint, others=others
    )
    form.initial["cap"] = None if run.cap is None else f"{run.cap.normalize():f}"
    if request.method == "POST" and form.is_valid():
        try:
            copy = lifecycle.clone_run(run, access.ensure_membership(member), **form.cleaned_data)
        except Refused as problem:
            form.add_error(None, str(problem))
        else:
            return _redirect_to_run(
                request, copy, f"Run {copy.number} started as a clone of run {number}."
            )
    return _render_form(request, member, "judging/run_clone.html", form, run=run)


@require_http_methods(["GET", "POST"])
@login_required
def move_run(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Move a run without answers to another endpoint."""
    member = access.member_for(request, slug, right="run")
    run = get_run_or_404(member, number)
    form = MoveForm(_submitted_data(request), others=choices.list_other_endpoints(run))
    if request.method == "POST" and form.is_valid():
        endpoint = form.cleaned_data["endpoint"]
        try:
            lifecycle.move_to_endpoint(run, endpoint, access.ensure_membership(member))
        except Refused as problem:
            form.add_error(None, str(problem))
        else:
            return _redirect_to_run(request, run, f"Run {number} now uses {endpoint.name}.")
    return _render_form(request, member, "judging/run_move.html", form, run=run)


@require_POST
@login_required
def repeat_canary(request: HtmxRequest, slug: str, number: int) -> HttpResponse:
    """Repeat a canary."""
    member = access.member_for(request, slug, right="run")
    run = get_run_or_404(member, number)
    form = RepeatRunForm(request.POST, is_lead=member.is_lead)
    try:
        allowed = form.is_valid() and form.cleaned_data["while_labelling"]
        asked = canaries.repeat_canary(
            run, access.ensure_membership(member), while_labelling=allowed
        )
    except Refused as problem:
        return render_run(request, member, run, problem=str(problem))
    return _redirect_to_run(request, asked, f"The canary is repeated as run {asked.number}.")


@require_POST
@login_required
def ask_without(request: HtmxRequest, slug: str, number: int) -> HttpResponse:
    """Start the same run without the parameter that the evaluator refused."""
    member = access.member_for(request, slug, right="run")
    run = get_run_or_404(member, number)
    try:
        copy = lifecycle.restart_without_parameter(run, access.ensure_membership(member))
    except Refused as problem:
        return render_run(request, member, run, problem=str(problem))
    return _redirect_to_run(
        request, copy, f"Run {copy.number} started without the refused parameter."
    )


@require_http_methods(["GET", "POST"])
@login_required
def derive_run(request: HttpRequest, slug: str) -> HttpResponse:
    """Combine the chosen runs by a vote or by mean, without calling an evaluator."""
    member = access.member_for(request, slug, right="run")
    chosen = _named_runs(request, member)
    folds = [one.version for one in catalogue.list_offered(member.project) if one.strategy.fold]
    form = DeriveForm(_submitted_data(request), folds=folds, runs=chosen)
    if request.method == "POST" and form.is_valid():
        try:
            made = derived.derive_run(
                member.project,
                strategy=catalogue.store_version(form.version()),
                sources=chosen,
                weights=form.weights(),
                member=access.ensure_membership(member),
                **{name: form.cleaned_data[name] for name in descriptions.FIELDS},
            )
        except Refused as problem:
            form.add_error(None, str(problem))
        else:
            return redirect("run", slug=slug, number=made.number)
    return _render_form(
        request,
        member,
        "judging/run_derive.html",
        form,
        chosen=chosen,
        different=derived.describe_frames(chosen),
    )


@require_http_methods(["GET", "POST"])
@never_cache
@login_required
def reparse_run(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Preview what another parser would change, and switch to this parser."""
    member = access.member_for(request, slug, right="run")
    run = get_run_or_404(member, number)
    form = ReparseForm(
        _submitted_data(request),
        parsers=reparse.list_parsers(run),
        now=run.pinned_strategy().parser,
    )
    preview: ReparsePreview | None = None
    if request.method == "POST" and form.is_valid():
        try:
            if "apply" in request.POST:
                reparse.switch_parser(
                    run, access.ensure_membership(member), form.cleaned_data["parser"]
                )
                return _redirect_to_run(request, run, f"Run {number} now uses parser {run.parser}.")
            preview = reparse.build_preview(run, form.cleaned_data["parser"])
        except Refused as problem:
            form.add_error(None, str(problem))
    counts = preview.counts.most_common() if preview else []
    return _render_form(
        request, member, "judging/run_reparse.html", form, run=run, preview=preview, counts=counts
    )


def _submitted_data(request: HttpRequest) -> QueryDict | None:
    """Return the submitted data, which may be empty; None for a GET."""
    return request.POST if request.method == "POST" else None


def _named_runs(request: HttpRequest, member: Membership) -> list[Run]:
    """Return the runs with the numbers in the request; [] without numbers, since hardly anybody
    wants to combine all runs."""
    query = request.POST if request.method == "POST" else request.GET
    if "run" not in query:
        return []
    try:
        return figures.select_project_runs(member.project, query)
    except figures.UnknownRun as problem:
        raise Http404(str(problem)) from problem


def _redirect_to_run(request: HttpRequest, run: Run, said: str) -> HttpResponse:
    tasks.notify_workers(run.endpoint_id)
    messages.success(request, said)
    return redirect("run", slug=run.project.slug, number=run.number)


def _render_form(
    request: HttpRequest, member: Membership, template: str, form: Any, **more: Any
) -> HttpResponse:
    context = {"project": member.project, "member": member, "form": form, **more}
    return render(request, template, context, status=422 if form.errors else 200)
