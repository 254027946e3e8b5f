"""Limits on uploaded files: which requests may send files, and how large the files may be."""

from typing import Any

from django.conf import settings
from django.core.files.uploadhandler import FileUploadHandler, SkipFile, StopUpload

# Key in the request's META that marks a file over the limit.
TOO_LARGE_KEY = "blindspot.too_large"
# The names of the routes that accept files.
UPLOAD_URLS = frozenset({"imports", "api-imports", "categories", "strategy-import"})


class BoundedUploadHandler(FileUploadHandler):
    """Drops files as soon as all files of a request together are too large. The rest of the request
    is read but not stored.

    Files that no form asks for and files from signed-out users are also dropped: Django would store
    them before a view could refuse them.
    """

    _seen = 0

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        """Raise `SkipFile` for a file that no form asks for, so that the rest of the request is
        still read."""
        super().new_file(*args, **kwargs)
        if not self._is_asked_for():
            raise SkipFile

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        """Return the chunk unchanged, for the next handler. Raises `StopUpload` if the whole
        request exceeds `settings.IMPORT_BYTES`."""
        self._seen += len(raw_data)
        if self._seen > settings.IMPORT_BYTES:
            assert self.request
            self.request.META[TOO_LARGE_KEY] = True
            raise StopUpload(connection_reset=False)
        return raw_data

    def file_complete(self, file_size: int) -> None:
        """Return None; the next handlers create the file."""

    def _is_asked_for(self) -> bool:
        assert self.request
        match = self.request.resolver_match
        return bool(match and match.url_name in UPLOAD_URLS and self.request.user.is_authenticated)
