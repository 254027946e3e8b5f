"""What people are refused, as one tree; every message says what to do.

    Refused             cannot be taken as it is; nothing was stored
    ├── Stale           what the page showed changed meanwhile: look again
    ├── TooEarly        others' words could sway a label that is not given yet: label first
    └── FieldError      an answer that its field does not take: answer otherwise

Services raise them. A page catches them where it paints what was sent again, the API in
`api.explained` alone. Rows of a file that cannot be used are no errors but `formats.rows.BadRow`.
"""


class Refused(ValueError):
    """What cannot be done or taken; the message says what to do instead."""


class Stale(Refused):
    """What the page was made of changed meanwhile; nothing was stored."""


class TooEarly(Refused):
    """Comments of others could sway a label that is not given yet."""


class FieldError(Refused):
    """An answer that its field does not take; the message says what it takes."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field
