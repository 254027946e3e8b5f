"""What the evaluator half refuses."""


class Refused(ValueError):
    """A run that cannot be started or moved; the message says what to do."""
