"""Comments on items. Members can read the comments on an item once they have labelled it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q

from annotation.db import transactions
from annotation.errors import Refused, TooEarly
from annotation.labelling import visibility
from annotation.labelling.models.labels import LabelQuerySet
from annotation.labelling.models.notes import CommentQuerySet, number_comments
from annotation.labelling.queue import claims
from annotation.models import RIGHTS, Comment, Event, Item, Label, Membership, Stage

MAX_LENGTH = 10_000
SAME_WITHIN = timedelta(minutes=1)
MAX_SUGGESTIONS = 6


@dataclass(frozen=True)
class Mention:
    """A comment that names the member; `open` if the member may read it, `new` if the member has
    not seen it yet."""

    comment: Comment
    open: bool
    new: bool


def load_comments(member: Membership, item: Item, *, now: datetime) -> list[Comment | Label]:
    """The comments on the item, oldest first, each with its `number`, and among them the current
    labels that people gave with a comment. Raises `TooEarly`.

    If others have labelled or commented on the item, the member's later labels of it count as
    informed.
    """
    found = comments_on(member, item)
    visibility.record_seen(member, item, now=now)
    thread = [*found.for_page(member), *_commented_labels(member, item)]
    return sorted(thread, key=lambda entry: entry.created_at)


def comments_on(member: Membership, item: Item) -> CommentQuerySet:
    """The comments on an item, oldest first. Raises `TooEarly` if the member may not read them
    yet."""
    if not visibility.may_see(member, item):
        raise TooEarly("You will see the comments of others after you have labelled the item.")
    return Comment.objects.of_item(item).shown_to(member).order_by("created_at", "pk")


def count_by_others(member: Membership, item: Item) -> int:
    """The number of comments by others on the item, with those that they gave with a label."""
    written = Comment.objects.of_item(item).of_others_than(member.pk).shown_to(member).count()
    return written + _commented_labels(member, item).of_others_than(member.pk).count()


def _commented_labels(member: Membership, item: Item) -> LabelQuerySet:
    """The current labels with a comment. Those of others are shown to everybody at the ordinary
    stage alone: at the others they would tell a control item from any other item."""
    labels = Label.objects.current().of_item(item).exclude(comment="").select_related("member")
    if member.can_see_items:
        return labels
    return labels.filter(Q(stage=Stage.LABEL) | Q(member=member.pk))


def suggest_names(member: Membership, comments: Iterable[Comment | Label]) -> list[str]:
    """Suggest aliases for a mention: first the authors of comments, then some members who can
    adjudicate."""
    deciding = Membership.objects.in_project(member.project).with_role_in(RIGHTS["adjudicate"])
    some = deciding.exclude(pk=member.pk).values_list("alias", flat=True)[:MAX_SUGGESTIONS]
    wrote = [comment.member.alias for comment in comments if comment.member_id != member.pk]
    return list(dict.fromkeys([*wrote, *some]))[:MAX_SUGGESTIONS]


def project_comments(member: Membership) -> CommentQuerySet:
    """All comments that the member may read, on any item, newest first."""
    found = Comment.objects.in_project(member.project).shown_to(member)
    return (
        found
        if member.can_see_items
        else found.on_items_labelled_by(member.pk, visibility.OWN_LABEL_STAGES)
    )


def load_readable(member: Membership, found: Iterable[Comment], *, now: datetime) -> list[Comment]:
    """Load the comments, each with its `number` on its item; the member must be allowed to read
    them.

    If there are comments by others on an item, the member's later labels of it count as informed.
    """
    comments = number_comments(found, Comment.objects.shown_to(member))
    others = {comment.item_id for comment in comments if comment.member_id != member.pk}
    visibility.record_all_seen(member, others, now=now)
    return comments


def add_comment(member: Membership, item: Item, text: str, *, now: datetime) -> Comment:
    """Store a comment; members whom it names as @alias find the comment among their mentions. The
    same text again within a minute is the same comment: a double click, or sent again as the answer
    was lost. Raises `TooEarly` and `Refused`."""
    text = text.replace("\r\n", "\n").strip()
    _check(member, item, text)
    with transactions.transact():
        claims.lock_member(member)
        own = Comment.objects.of_item(item).filter(member=member, text=text)
        if again := own.filter(created_at__gt=now - SAME_WITHIN).first():
            return again
        comment = Comment.objects.create(item=item, member=member, text=text, created_at=now)
        members = Membership.objects.in_project(member.project).filter(active=True)
        comment.mentions.set(find_mentioned(text, members))
        Event.record("comment", item.key, project_id=item.project_id, member_id=member.pk)
    return comment


def withdraw_comment(member: Membership, item: Item, number: int, *, now: datetime) -> Comment:
    """Withdraw a comment: members their own, leads any. The comment is kept but no longer shown.
    `number` counts the comments that the member may see, withdrawn ones included; the event has the
    comment's number among all.

    Raises `TooEarly` and `Refused`.
    """
    with transactions.transact():
        comment = Comment.objects.shown_to(member).called(item, number)
        own = comment is not None and comment.member_id == member.pk
        if not own and not visibility.may_see(member, item):
            # Otherwise the errors below would reveal how many comments there are.
            raise TooEarly("You will see the comments of others after you have labelled the item.")
        if comment is None:
            raise Refused("This comment no longer exists. Reload the page.")
        if comment.member_id != member.pk and not member.is_lead:
            raise Refused("Only its author or a lead can withdraw a comment.")
        if comment.withdrawn_at is None:
            comment.withdraw(now)
            number_comments([comment], Comment.objects.all())
            Event.record(
                "withdraw comment",
                item.key,
                project_id=item.project_id,
                member_id=member.pk,
                number=comment.number,
                author=comment.member.alias,
            )
    return comment


def find_mentioned(text: str, members: Iterable[Membership]) -> list[Membership]:
    """Find the members whom the text names as @alias; if two aliases match, the longer alias
    counts."""
    by_alias = {member.alias.casefold(): member for member in members}
    if not by_alias:
        return []
    # The text is folded already; Python would also take a dotless i for an i.
    found = _mention_pattern(by_alias).findall(text.casefold())
    return [by_alias[name] for name in dict.fromkeys(found)]


def replace_mentions(text: str, members: Iterable[Membership], word: str) -> str:
    """Put the word in the place of every @alias that names one of the members."""
    aliases = {form for member in members for form in (member.alias, member.alias.casefold())}
    pattern = _mention_pattern(aliases, re.IGNORECASE)
    return pattern.sub(lambda _: word, text) if aliases else text


def _mention_pattern(aliases: Iterable[str], flags: int = 0) -> re.Pattern[str]:
    names = "|".join(map(re.escape, sorted(aliases, key=len, reverse=True)))
    return re.compile(rf"(?<!\w)@({names})(?!\w)", flags)


def load_mentions(member: Membership, *, now: datetime, limit: int = 100) -> list[Mention]:
    """The latest comments that name the member, newest first.

    The member's later labels count as informed if the member may read the comments on the item.
    """
    if member.pk is None:
        return []
    seen = member.mentions_seen_at
    found = [
        Mention(
            comment=comment,
            open=visibility.may_see(member, comment.item),
            new=seen is None or comment.created_at > seen,
        )
        for comment in Comment.objects.naming(member)[:limit]
    ]
    for item in {mention.comment.item for mention in found if mention.open}:
        visibility.record_seen(member, item, now=now)
    return found


def mark_read(member: Membership, *, now: datetime) -> None:
    """Mark the member's mentions as read."""
    if member.pk is not None:
        member.mentions_seen_at = now
        member.save(update_fields=["mentions_seen_at"])


def _check(member: Membership, item: Item, text: str) -> None:
    if not visibility.may_see(member, item):
        raise TooEarly("Label the item first. Until then, write your comment with the label.")
    if not text:
        raise Refused("The comment is empty. Enter some text.")
    if len(text) > MAX_LENGTH:
        raise Refused(
            f"The comment has {len(text):,} characters; at most {MAX_LENGTH:,} are allowed."
        )
    if "\0" in text:
        raise Refused("The comment contains a NUL character, which cannot be saved. Remove it.")
