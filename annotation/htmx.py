"""The type of requests that htmx may send, for pages or parts of pages; for the views of both
applications."""

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails


class HtmxRequest(HttpRequest):
    """A request as the htmx middleware leaves it."""

    htmx: HtmxDetails
