"""Pages that show people the data stored about them, and a page where leads anonymise an
account."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from annotation.errors import Refused
from annotation.models import Account, Membership
from annotation.projects import access
from annotation.reports import personal_data


@require_safe
@never_cache
@login_required
def my_data(request: HttpRequest) -> HttpResponse:
    """Show the data stored about the signed-in person, in words, with a link to download all of
    it."""
    assert isinstance(request.user, Account)
    places = Membership.objects.filter(account=request.user).select_related("project")
    return render(request, "annotation/my_data.html", {"places": places})


@require_safe
@never_cache
@login_required
def my_data_file(request: HttpRequest) -> HttpResponse:
    """Return all data about the signed-in person as a JSON file."""
    assert isinstance(request.user, Account)
    answer = JsonResponse(
        personal_data.export_data(request.user),
        json_dumps_params={"indent": 1, "ensure_ascii": False},
    )
    answer["Content-Disposition"] = 'attachment; filename="my-data.json"'
    return answer


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def anonymise(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask for confirmation before an account is anonymised. A POST with the member's name does
    it."""
    lead = access.member_for(request, slug, right="manage")
    said = request.POST if request.method == "POST" else request.GET
    member = Membership.objects.in_project(lead.project).named(said.get("member", ""))
    if member is None or member.account is None:
        messages.error(request, "No member has this name, or they have no account.")
        return redirect("members", slug)
    if not personal_data.may_anonymise(lead, member):
        raise PermissionDenied("This person is a member of other projects too. Ask a site admin.")
    trouble = ""
    if request.method == "POST":
        try:
            _anonymise_member(lead, member, said.get("again", ""))
        except Refused as refused:
            trouble = str(refused)
        else:
            messages.success(request, f"The account of {member} is anonymised. Their work is kept.")
            return redirect("members", slug)
    context = {"project": lead.project, "member": lead, "person": member, "trouble": trouble}
    status = 422 if trouble else 200
    return render(request, "annotation/anonymise.html", context, status=status)


def _anonymise_member(lead: Membership, member: Membership, again: str) -> None:
    if again.strip() != member.alias:
        raise Refused(f"Type the name {member.alias} to confirm.")
    assert member.account
    personal_data.anonymise(member.account, lead.account, now=timezone.now())
