"""The pages that generate items by perturbers: the form with a preview, and the result."""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from annotation.errors import FieldError, Refused
from annotation.generation import perturber_jobs
from annotation.generation import perturbers as generation_perturbers
from annotation.generation.perturbers import PerturbRequest
from annotation.generation.release import ReleasePolicy
from annotation.htmx import HtmxRequest
from annotation.importing import flags
from annotation.importing.exported_rows import DerivedRow
from annotation.items.diffing import difference as diffing_difference
from annotation.labelling import correct_answers
from annotation.models import Job, Membership
from annotation.projects import access
from perturbers.registry import PERTURBERS, Perturber

ERROR_CHOICES = [(str(number), str(number)) for number in (1, 2, 4, 8)]
WAIT, ACCEPT = "wait", "accept"
REST_CHOICES = [(WAIT, "Hold for review"), (ACCEPT, "Accept without review")]
PURPOSE_CHOICES = [
    (generation_perturbers.TEST_PURPOSE, "Items to label"),
    (correct_answers.PROBE, "Control items"),
    (correct_answers.PRACTICE, "Qualification items, with the claim as the explanation"),
]
DEFAULT_FLAGS = ("identical", "white-space-only", "empty", "duplicate")
# The number of perturbed answers in the preview.
MAX_EXAMPLES = 6
COMPARED_TEXTS = ("gold", "perturbed")


class PerturbForm(forms.Form):
    """The perturbers, how many items they generate, and how these are released."""

    perturbers = forms.MultipleChoiceField(
        choices=[(slug, slug) for slug in PERTURBERS],
        error_messages={"required": "Choose at least one perturber."},
    )
    errors_each = forms.MultipleChoiceField(
        label="Errors per answer",
        choices=ERROR_CHOICES,
        initial=["1"],
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one number."},
    )
    number = forms.IntegerField(
        label="Answers per gold answer",
        initial=1,
        min_value=1,
        max_value=generation_perturbers.MAX_PER_GOLD,
    )
    limit = forms.IntegerField(
        label="Number of gold answers",
        required=False,
        min_value=1,
        max_value=1_000_000_000,
        help_text="Use only the first gold answers. Empty: all.",
    )
    seed = forms.RegexField(
        generation_perturbers.SEED_PATTERN.pattern + r"\Z",
        required=False,
        help_text="The same seed makes the same errors. Empty: a new seed.",
        error_messages={"invalid": "1 to 20 letters, digits or hyphens."},
    )
    purpose = forms.ChoiceField(
        label="Purpose",
        choices=PURPOSE_CHOICES,
        initial=generation_perturbers.TEST_PURPOSE,
        required=False,
    )
    share = forms.IntegerField(
        label="Released at once (%)",
        initial=100,
        min_value=0,
        max_value=100,
        help_text="A random share of each category; at least one item unless 0.",
    )
    rest = forms.ChoiceField(
        label="The others", choices=REST_CHOICES, initial=WAIT, widget=forms.RadioSelect
    )
    aside = forms.MultipleChoiceField(
        label="Always hold for review",
        required=False,
        choices=[*flags.FLAG_TITLES.items()],
        initial=DEFAULT_FLAGS,
        widget=forms.CheckboxSelectMultiple,
    )

    def wish(self) -> PerturbRequest:
        """The request that a valid form makes. Without a seed, each call draws a new random
        seed."""
        said = self.cleaned_data
        return PerturbRequest(
            perturbers=tuple(slug for slug in PERTURBERS if slug in said["perturbers"]),
            seed=said["seed"] or generation_perturbers.new_seed(),
            number=said["number"],
            doses=tuple(map(int, said["errors_each"])),
            limit=said["limit"],
            purpose=said["purpose"] or generation_perturbers.TEST_PURPOSE,
        )

    def vetting(self) -> ReleasePolicy:
        """The release policy that a valid form chooses for the generated items."""
        said = self.cleaned_data
        aside = frozenset(said["aside"])
        return ReleasePolicy(share=said["share"], accept=said["rest"] == ACCEPT, aside=aside)


@dataclass(frozen=True)
class PerturberOption:
    """A perturber to choose, with the number of gold answers that are suitable for it."""

    perturber: Perturber
    golds: int
    chosen: bool


@dataclass(frozen=True)
class PerturbExample:
    """A perturbed answer in the preview, with its difference from the gold answer."""

    category: str
    dose: int | None
    claim: str
    difference: diffing_difference.Difference
    flags: list[tuple[str, str]]


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def perturb(request: HtmxRequest, slug: str) -> HttpResponse:
    """Show the form to generate items by perturbers, with the list of generations. A POST with
    `preview` shows examples; without it, a worker generates the items."""
    member = access.member_for(request, slug, right="manage")
    if request.method != "POST":
        return _page(request, member, PerturbForm())
    form = PerturbForm(_with_seed(request.POST))
    if not form.is_valid():
        return _page(request, member, form, status=422)
    try:
        if "preview" in request.POST:
            rows = generation_perturbers.make_examples(member.project, form.wish(), MAX_EXAMPLES)
            return _page(request, member, form, shown=[_example(row) for row in rows])
        job = perturber_jobs.enqueue(
            member.project, form.wish(), form.vetting(), access.ensure_membership(member)
        )
    except Refused as problem:
        name = problem.field if isinstance(problem, FieldError) else ""
        form.add_error(name if name in form.fields else None, str(problem))
        return _page(request, member, form, status=422)
    return redirect("generation", slug, job.result["number"])


@require_safe
@never_cache
@login_required
def generation(request: HtmxRequest, slug: str, number: int) -> HttpResponse:
    """Show one generation with its settings, progress and result."""
    member = access.member_for(request, slug, right="manage")
    job = perturber_jobs.find_job(member.project, number)
    if job is None:
        messages.error(request, f"There is no generation number {number}.")
        return redirect("perturb", slug)
    context = {
        "project": member.project,
        "member": member,
        "job": job,
        "said": job.result,
        "rows": _rows(job),
        "flagged": _flag_rows(job),
    }
    template = "annotation/generation.html" + ("#state" if request.htmx else "")
    return render(request, template, context)


def _with_seed(sent: QueryDict) -> QueryDict:
    """Add a seed to the form data, so that the stored items match the preview."""
    data = sent.copy()
    if not data.get("seed", "").strip():
        data["seed"] = generation_perturbers.new_seed()
    return data


def _page(
    request: HttpRequest,
    member: Membership,
    form: PerturbForm,
    *,
    shown: list[PerturbExample] | None = None,
    status: int = 200,
) -> HttpResponse:
    fits = generation_perturbers.is_suitable(member.project)
    context: dict[str, Any] = {"project": member.project, "member": member, "form": form}
    context |= {
        "fits": fits,
        "shown": shown,
        "jobs": list(perturber_jobs.list_jobs(member.project)),
    }
    context |= {"offered": _perturber_options(member, form) if fits else []}
    return render(request, "annotation/perturb.html", context, status=status)


def _perturber_options(member: Membership, form: PerturbForm) -> list[PerturberOption]:
    """Return all perturbers; by default, the perturbers with a suitable gold answer are chosen."""
    reach = generation_perturbers.count_golds(member.project)
    sent = form["perturbers"].value() if form.is_bound else None
    return [
        PerturberOption(one, reach[slug], reach[slug] > 0 if sent is None else slug in sent)
        for slug, one in PERTURBERS.items()
    ]


def _example(row: DerivedRow) -> PerturbExample:
    values = row.values
    names = flags.flag_generated(values, COMPARED_TEXTS, values["category"])
    return PerturbExample(
        category=values["category"],
        dose=row.dose,
        claim=values["claim"],
        difference=diffing_difference.compare(values["gold"], values["perturbed"]),
        flags=flags.explain_flags(names, values, COMPARED_TEXTS, values["category"]),
    )


def _rows(job: Job) -> list[tuple[Perturber, int, int]]:
    """Return each requested perturber with the number of answers that it generated, and the number
    of answers that failed for lack of a suitable spot."""
    made = job.result.get("made") or {"made": {}, "lacking": {}}
    asked = [PERTURBERS[slug] for slug in job.result["perturbers"] if slug in PERTURBERS]
    return [(one, made["made"].get(one.slug, 0), made["lacking"].get(one.slug, 0)) for one in asked]


def _flag_rows(job: Job) -> list[tuple[str, str, int]]:
    """Return each rule that flagged items: its slug, its title and the number of flagged items."""
    found = (job.result.get("made") or {}).get("flagged", {})
    return [(slug, flags.FLAG_TITLES.get(slug, slug), n) for slug, n in sorted(found.items())]
