"""Django's PostgreSQL backend with faster connection checks."""

import select

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    def is_usable(self) -> bool:
        """True if a persistent connection can serve another request.

        When a server closes the connection, the socket becomes readable. So a connection whose
        socket has nothing to read is trusted. Only a readable socket costs the round trip that
        Django would make before every request.
        """
        if self.connection is not None and not self.connection.closed:
            watched = select.poll()
            watched.register(self.connection.fileno(), select.POLLIN)
            if not watched.poll(0):
                return True
        usable: bool = super().is_usable()
        return usable
