"""Redirects from former paths of pages, for bookmarks, links in papers and open forms."""

from urllib.parse import quote

from django.http import HttpRequest, HttpResponsePermanentRedirect
from django.urls import re_path, reverse

# Pairs of a former and a current path, relative to the project's path. The first match counts.
PATHS = {
    "vet/piles/": "my-items/",
    "vet/label/": "label/submit/",
    "vet/": "label/",
    "practice/": "qualification/",
    "known/": "answer-key/",
    "probes/": "control-items/",
    "making/open/": "generation/release/",
    "making/": "generation/",
}


class _SameMethod(HttpResponsePermanentRedirect):
    """A redirect after which the browser repeats a POST, so that a label sent to a former path is
    not lost."""

    status_code = 308


def redirect_former_path(
    request: HttpRequest, slug: str, former: str
) -> HttpResponsePermanentRedirect:
    """Redirect to the current path: 301 for GET and HEAD, 308 for others to keep the body."""
    old = next(path for path in PATHS if former.startswith(path))
    address = reverse("project", args=[slug]) + PATHS[old] + quote(former.removeprefix(old))
    query = request.META["QUERY_STRING"]
    if old == "vet/piles/":
        query = query.replace("pile=held", "list=reserved").replace("pile=", "list=")
    if query:
        address += f"?{query}"
    is_read = request.method in ("GET", "HEAD")
    return (HttpResponsePermanentRedirect if is_read else _SameMethod)(address)


_FORMER = "|".join(sorted({path.partition("/")[0] + "/.*" for path in PATHS}))
urlpatterns = [
    re_path(rf"^projects/(?P<slug>[-\w]+)/(?P<former>{_FORMER})$", redirect_former_path),
]
