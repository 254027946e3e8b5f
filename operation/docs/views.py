"""The documentation, for everybody: its pages, its search, and the same as Markdown."""

from functools import cache

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.templatetags.static import static
from django.urls import reverse
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_safe

from operation.docs import pages
from operation.docs.search import search

MARKDOWN = "text/markdown; charset=utf-8"


@require_safe
def contents(request: HttpRequest) -> HttpResponse:
    """List the pages, or with `?q=` the sections that have all words of a question."""
    question = request.GET.get("q", "").strip()[:200]
    found = {"question": question, "hits": search(question)}
    return render(request, "docs/contents.html", {"groups": pages.load_contents(), **found})


@require_safe
def page(request: HttpRequest, document: str) -> HttpResponse:
    """Show a page."""
    shown = _find(document)
    text = _render(shown)
    context = {
        "groups": pages.load_contents(),
        "page": shown,
        "text": mark_safe(text),  # noqa: S308 - a file of ours, rendered without HTML of its own
        "sections": [one for one in pages.list_sections(shown) if one.level == 2],
    }
    return render(request, "docs/page.html", context)


@require_safe
def markdown(request: HttpRequest, document: str) -> HttpResponse:
    """Return the Markdown of a page."""
    return HttpResponse(_find(document).source, MARKDOWN)


@require_safe
def llms(request: HttpRequest) -> HttpResponse:
    """List the pages for programs that read them: https://llmstxt.org."""
    lines = ["# Blindspot", "", "> Measures which errors evaluator LLMs miss.", ""]
    for group in pages.load_contents():
        lines += [f"## {group.title}", ""]
        for one in group.pages:
            there = request.build_absolute_uri(reverse("docs-markdown", args=[one.slug]))
            lines.append(f"- [{one.title}]({there}): {one.about}")
        lines.append("")
    return HttpResponse("\n".join(lines), "text/plain; charset=utf-8")


def docs_context(request: HttpRequest) -> dict[str, object]:
    """Tell templates which page of the documentation explains the screen that is shown. Visitors
    who are not signed in do not learn which screen an address leads to."""
    match, user = request.resolver_match, getattr(request, "user", None)
    if match is None or user is None or not user.is_authenticated:
        return {"explained_in": None}
    screens = pages.pages_by_screen()
    name, tab = match.url_name or "", match.kwargs.get("page", "")
    return {"explained_in": screens.get(f"{name} {tab}") or screens.get(name)}


@cache
def _render(shown: pages.Page) -> str:
    # Anybody may ask for a page, however often, and none changes while the server runs.
    return pages.render_page(shown, _target)


def _find(slug: str) -> pages.Page:
    try:
        return pages.pages_by_slug()[slug]
    except KeyError:
        raise Http404 from None


def _target(path: str) -> str | None:
    if path.startswith(f"{pages.PICTURES}/"):
        return static(path)
    for one in pages.list_pages():
        if one.file == path:
            return reverse("docs-page", args=[one.slug])
    return None
