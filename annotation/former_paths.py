"""Pages whose address had another word in it: bookmarks, links in papers, forms still open."""

from urllib.parse import quote

from django.http import HttpRequest, HttpResponsePermanentRedirect
from django.urls import re_path, reverse

# What stood behind the project's address, and what stands there now. The first that fits counts.
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
    """A browser that was posting posts again, so that a label sent to the old address arrives."""

    status_code = 308


def redirect_former_path(
    request: HttpRequest, slug: str, former: str
) -> HttpResponsePermanentRedirect:
    """301 to today's address; 308 for what is sent, so that its body goes along."""
    old = next(path for path in PATHS if former.startswith(path))
    address = reverse("project", args=[slug]) + PATHS[old] + quote(former.removeprefix(old))
    if query := request.META["QUERY_STRING"]:
        address += f"?{query.replace('pile=held', 'list=reserved').replace('pile=', 'list=')}"
    is_read = request.method in ("GET", "HEAD")
    return (HttpResponsePermanentRedirect if is_read else _SameMethod)(address)


_FORMER = "|".join(sorted({path.partition("/")[0] + "/.*" for path in PATHS}))
urlpatterns = [
    re_path(rf"^projects/(?P<slug>[-\w]+)/(?P<former>{_FORMER})$", redirect_former_path),
]
