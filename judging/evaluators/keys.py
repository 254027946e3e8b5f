"""Keys of evaluators: the database has the variable's name, the environment has the key."""

import os
import re
from collections.abc import Mapping

from judging.evaluators.providers.errors import MissingKey

# Narrow on purpose: whoever can edit an endpoint chooses both this name and the address that gets
# the value, so SECRET_KEY or DATABASE_URL must not be allowed.
VARIABLE_PATTERN = re.compile(r"[A-Z][A-Z0-9_]*_API_KEY")


def read_key(variable: str, environment: Mapping[str, str] | None = None) -> str:
    """The key in an environment variable, "" if `variable` is "" (no key wanted).

    Raises MissingKey, with what to do, for a name that is not of the form `SOMETHING_API_KEY`, for
    a variable that is unset or empty, and for a value that cannot be sent in a header.
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
    """Whether this process finds a usable key in the environment variable."""
    try:
        return bool(read_key(variable))
    except MissingKey:
        return False
