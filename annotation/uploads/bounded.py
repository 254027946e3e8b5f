"""How much of a file that is sent is taken at all."""

from typing import Any

from django.conf import settings
from django.core.files.uploadhandler import FileUploadHandler, StopUpload

# Where a request keeps that it held a file that is too large.
TOO_LARGE = "blindspot.too_large"


class Bounded(FileUploadHandler):
    """Stops taking a file once it is too large: the rest is read and dropped, never stored."""

    _seen = 0

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        self._seen = 0

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        self._seen += len(raw_data)
        if self._seen > settings.IMPORT_BYTES:
            assert self.request
            self.request.META[TOO_LARGE] = True
            raise StopUpload(connection_reset=False)
        return raw_data

    def file_complete(self, file_size: int) -> None:
        """The handlers that come after this one make the file."""
