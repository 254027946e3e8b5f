"""The error of refused runs."""


class Refused(ValueError):
    """A run cannot be started or changed; the message says what to do."""
