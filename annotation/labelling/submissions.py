"""The data that a page sends about an item: the state that the page showed, and the person's
answers.

The key of a submission is an encrypted token of the page that it came from, so nobody can forge a
key, or read from it what the page does not say.
"""

import base64
import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from functools import cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.core import signing

from annotation import tasktypes
from annotation.errors import Refused
from annotation.items.diffing.difference import FORMER_ALGORITHM
from annotation.models import Draft, Membership, TaskTypeVersion
from annotation.tasktypes import TaskType

SALT = "queue.offer"
# All keys are as long as each other: a longer one would tell a newer slot, of a control item.
LENGTH = 160
# In a draft, the digest of the key of the page that wrote it.
PAGE = "page"
# In a draft, the algorithm of the diff whose changes its answers number.
DIFF = "diff"


@dataclass(frozen=True)
class SubmissionToken:
    """What a page showed (a slot and the number of a revision), and the member who saw it.

    Slots and items are numbered as they are made. So the number of a slot would tell control items,
    whose slots are the newest, and at a first look it would tell the items of a category, which
    stand together in most files.

    Items that are sent ahead are not held: their pages name the item, and no slot (0). The slot is
    found once something is sent, so such a page does not tell a control item from any other.

    `blind` is True if the page asked its questions before it showed diff, claim and rationale.
    `diff` is the algorithm of the diff that the page showed, by which answers number the changes,
    "" if the task compares no texts. Pages from before there was a second algorithm do not name it.
    `first` is the text of a pair that the page showed as A, "" if it drew no order. `task_type` is
    the id of the version of the task type that asked, 0 on pages from before it was named.
    """

    slot_id: int
    member_id: int
    revision: int
    blind: bool = False
    diff: str = FORMER_ALGORITHM
    first: str = ""
    item_id: int = 0
    task_type: int = 0


def issue_token(ticket: SubmissionToken) -> str:
    """Create a new key; every page gets a different key."""
    parts = json.dumps([*astuple(ticket), secrets.token_hex(8)], separators=(",", ":"))
    return _cipher(settings.SECRET_KEY).encrypt(parts.ljust(LENGTH).encode()).decode()


def read_token(key: str, member: Membership) -> SubmissionToken:
    """Read the content of the key. Raises `Refused` if the key is not valid, or was issued to
    another member."""
    try:
        *parts, _ = _read_parts(key)
        read = SubmissionToken(*parts)
    except (signing.BadSignature, ValueError, TypeError) as error:
        raise Refused("This page's key is not valid. Reload the page.") from error
    if read.member_id != member.pk:
        raise Refused("This page belongs to another user. Reload the page.")
    return read


def _read_parts(key: str) -> Any:
    try:
        return json.loads(_cipher(settings.SECRET_KEY).decrypt(key.encode()))
    except InvalidToken:
        # Pages from before keys were encrypted may still be open, or wait for a connection.
        return signing.loads(key, salt=SALT)


@cache
def _cipher(secret: str) -> Fernet:
    key = hashlib.sha256(b"blindspot submission " + secret.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(key))


def load_asked_task(member: Membership, token: SubmissionToken) -> TaskType:
    """Return the task type as the page asked it: a lead may have saved another version since."""
    project = member.project
    if token.task_type in (0, project.task_type_id):
        return tasktypes.load_task_type(project)
    version = TaskTypeVersion.objects.get(pk=token.task_type)
    return tasktypes.load_version(version).with_switches(tasktypes.enabled_switches(project))


def find_asked_task(member: Membership, key: str) -> TaskType:
    """Return the task type as the page with this key asked it; today's for a key that cannot be
    read."""
    try:
        return load_asked_task(member, read_token(key, member))
    except Refused:
        return tasktypes.load_task_type(member.project)


def digest_token(key: str) -> str:
    """The SHA-256 digest of a key, which is stored instead of the key."""
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True)
class Submission:
    """What a page sends about an item: its signed key, the item and revision that it showed, and
    the person's answers by field, comment, and time taken in seconds (None if unknown).

    A page that asks nothing, for example to skip the item, sends no answers. `begun_with` has the
    version of the draft that the page began with, and the key of the page whose draft it restored.
    """

    key: str
    item_key: str
    revision: int
    answers: Mapping[str, object] = field(default_factory=dict)
    comment: str = ""
    seconds: float | None = None
    begun_with: tuple[str, ...] = ()

    def knows(self, draft: Draft) -> bool:
        """True if the page wrote this draft, or began with it."""
        pages = map(digest_token, (self.key, *self.begun_with))
        return draft.version in self.begun_with or draft.data.get(PAGE) in pages
