"""Django's PostgreSQL, asked less often whether it is still there."""

import select

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    def is_usable(self) -> bool:
        """Whether a kept connection can serve another request.

        A server that went away has closed the socket, which makes it readable; one that says
        nothing is there. So a quiet socket is believed, and only one with something to read
        costs the round trip that Django would make before every request.
        """
        if self.connection is not None and not self.connection.closed:
            watched = select.poll()
            watched.register(self.connection.fileno(), select.POLLIN)
            if not watched.poll(0):
                return True
        usable: bool = super().is_usable()
        return usable
