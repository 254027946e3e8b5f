"""API keys of evaluators. The database stores only the name of the environment variable with the
key.
"""

import os
import re
from collections.abc import Mapping

from judging.evaluators.providers.errors import MissingKey

# Deliberately strict: whoever can edit an endpoint chooses both the name of the variable and the
# address to which its value is sent, so SECRET_KEY or DATABASE_URL must not be allowed.
VARIABLE_PATTERN = re.compile(r"[A-Z][A-Z0-9_]*_API_KEY")


def read_key(variable: str, environment: Mapping[str, str] | None = None) -> str:
    """Return the key in an environment variable, or "" if `variable` is "" (the endpoint needs no
    key).

    Raises MissingKey, with a message that says what to do, if the name is not of the form
    `SOMETHING_API_KEY`, the variable is unset or empty, or the value cannot be sent in a header.
    """
    if not variable:
        return ""
    if not VARIABLE_PATTERN.fullmatch(variable):
        raise MissingKey(
            f"{variable[:60]!r} cannot be used for a key. Choose a variable in capitals whose name "
            "ends in _API_KEY."
        )
    key = (os.environ if environment is None else environment).get(variable, "").strip()
    if not key:
        raise MissingKey(
            f"{variable} is not set. Set it in the environment of the server and the workers, then "
            "try again."
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise MissingKey(
            f"{variable} contains white space or characters that no key has. Set it again."
        )
    return key


def is_key_set(variable: str) -> bool:
    """True if this process finds a usable key in the environment variable."""
    try:
        return bool(read_key(variable))
    except MissingKey:
        return False
