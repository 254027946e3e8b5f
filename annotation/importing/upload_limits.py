"""Which files that are sent are taken at all, and how much of them."""

from typing import Any

from django.conf import settings
from django.core.files.uploadhandler import FileUploadHandler, SkipFile, StopUpload

# Where a request keeps that it held a file that is too large.
TOO_LARGE_KEY = "blindspot.too_large"
# The routes that a file may be sent to, by their names.
UPLOAD_URLS = frozenset({"imports", "api-imports"})


class BoundedUploadHandler(FileUploadHandler):
    """Stops taking files once all of a request are too large together: the rest is read and
    dropped, never stored. So is every file for which no form of ours asks, or of a stranger: Django
    would store it before any view could refuse it.
    """

    _seen = 0

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        if not self._is_asked_for():
            raise SkipFile

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        self._seen += len(raw_data)
        if self._seen > settings.IMPORT_BYTES:
            assert self.request
            self.request.META[TOO_LARGE_KEY] = True
            raise StopUpload(connection_reset=False)
        return raw_data

    def file_complete(self, file_size: int) -> None:
        """The handlers that come after this one make the file."""

    def _is_asked_for(self) -> bool:
        assert self.request
        match = self.request.resolver_match
        return bool(match and match.url_name in UPLOAD_URLS and self.request.user.is_authenticated)
