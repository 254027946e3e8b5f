"""The errors that services raise and people see, as one tree; every message says what to do.

    Refused             the request cannot be accepted; nothing was stored
    ├── Stale           the data changed after the page was loaded: look again
    │   └── InProgress  the same request is being executed: send it again after `wait` seconds
    ├── TooEarly        others' comments could influence a label that is still to come: label first
    └── FieldError      a value that its field does not accept: change it

Pages catch these errors where they show the sent form again; the API catches them only in
`api.responses.handle_exception`. Unusable rows of a file are no errors: they are
`formats.rows.BadRow`.
"""


class Refused(ValueError):
    """A request that cannot be accepted; the message says what to do instead."""


class Stale(Refused):
    """The data changed after the page was loaded; nothing was stored."""


class InProgress(Stale):
    """The same request is still being executed; it can be sent again after `wait` seconds."""

    def __init__(self, message: str, wait: int) -> None:
        super().__init__(message)
        self.wait = wait


class TooEarly(Refused):
    """Others' comments could influence a label that the member has not given yet."""


class FieldError(Refused):
    """A value that its field does not accept; the message says what it accepts."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field
