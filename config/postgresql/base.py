"""Django's PostgreSQL backend with cheaper connection checks."""

import select

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    def is_usable(self) -> bool:
        """Whether a persistent connection can serve another request.

        A server that has closed the connection makes the socket readable. So a quiet socket is
        trusted, and only a readable one costs the round trip that Django would make before every
        request.
        """
        if self.connection is not None and not self.connection.closed:
            watched = select.poll()
            watched.register(self.connection.fileno(), select.POLLIN)
            if not watched.poll(0):
                return True
        usable: bool = super().is_usable()
        return usable
