"""The index of the words in the texts of items and in the comments on them.

Triggers mark an item as due in the transaction that changes its texts or comments, so no code can
forget it, and neither imports nor labels wait for the index. Workers then store the words of the
items that are due. PostgreSQL keeps them as a `tsvector`, SQLite in a table of FTS5.

Both get words that are already cut out, by `split_words`, so that both find the same items.
"""

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import chain

from django.db import connection

from annotation.db import transactions
from annotation.db.batches import bulky_id_batches
from annotation.db.triggers import Trigger, TriggerSet
from annotation.models import Comment, Item, Label, Project, Revision, SearchText
from stats.unicode_forms import normalise

# Small enough for a batch to commit well within 200 ms, so that people can label meanwhile.
BATCH = 100
# On SQLite a worker and the people share one process and one lock for writes: there the batches are
# smaller, and each is followed by a pause of so many times as long as it took.
SQLITE_BATCH, SQLITE_PAUSE = 20, 3
# PostgreSQL numbers no later word of a text, and takes a megabyte in all: 4 bytes a letter.
MOST_WORDS, MOST_LETTERS, LONGEST_WORD = 16_000, 200_000, 100
# Scripts without spaces between words: each letter is a word of its own.
_NO_SPACES = "\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_NO_SPACE = re.compile(f"[{_NO_SPACES}]")
_WORD = re.compile(rf"[{_NO_SPACES}]|[^\W_{_NO_SPACES}]+")
_ASCII_WORD = re.compile(r"[a-z0-9]+")


def split_words(text: str) -> list[str]:
    """Split a text into words of letters and digits, in lower case. Letters of scripts that write
    no spaces are words of their own."""
    return list(_iterate_words(text))


def _iterate_words(text: str) -> Iterator[str]:
    if text.isascii():
        found = _ASCII_WORD.finditer(text.lower())
    else:
        found = _WORD.finditer(normalise("NFKC", text).casefold())
    return (word[0] for word in found)


def is_letter_word(word: str) -> bool:
    """True for a letter of a script that writes no spaces, which is a word of its own."""
    return bool(_NO_SPACE.fullmatch(word))


def project_word(project_id: int) -> str:
    """A word that each item of the project has, so that what other projects have does not slow a
    search down. It begins with a character for private use, which no word of a text has."""
    return f"\ue000{project_id}"


def find_due(now: datetime) -> list[int]:
    """Return [0] if any item is due, otherwise []: the index has no parts."""
    return [0] if SearchText.objects.filter(due=True).exists() else []


def count_due(project: Project, limit: int) -> int:
    """Count the project's items that the search does not know yet, up to this limit."""
    return SearchText.objects.filter(due=True, item__project=project)[:limit].count()


def run_slice(number: int = 0, *, stopped: Callable[[], bool] = lambda: False) -> None:
    """Store the words of due items until none is due or `stopped` returns true."""
    while not stopped():
        begun = time.perf_counter()
        if not update_batch():
            break
        if connection.vendor == "sqlite":
            time.sleep(SQLITE_PAUSE * (time.perf_counter() - begun))


def update_batch() -> int:
    """Store the words of up to `BATCH` due items, on SQLite `SQLITE_BATCH`; return their number.

    Changes of these items wait for the end of the batch, and mark the items as due again. Items
    that are being changed at the moment are left to the next batch.
    """
    with transactions.transact():
        due = SearchText.objects.filter(due=True).order_by("pk")
        locked = due.select_for_update(of=("self",), skip_locked=True)
        most = SQLITE_BATCH if connection.vendor == "sqlite" else BATCH
        ids = list(locked.values_list("pk", flat=True)[:most])
        if ids:
            _store(dict(_load_words(ids)))
    return len(ids)


def load_texts(ids: list[int]) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """Yield each item with its current texts and their names, each alternative of a list on its
    own, and then the comments on it with the name "". Few long texts are in memory at once."""
    of_items = {"item__among": ids}
    said: dict[int, list[tuple[str, str]]] = defaultdict(list)
    comments = Comment.objects.filter(withdrawn_at=None, **of_items).values_list("item", "text")
    labels = Label.objects.current().filter(**of_items).exclude(comment="")
    for pk, text in chain(comments, labels.order_by().values_list("item", "comment")):
        said[pk].append(("", text))
    # Joined by the database, a planner without statistics would read all items after an import.
    current = dict(Item.objects.filter(pk__among=ids).values_list("pk", "revision_number"))
    revisions = Revision.objects.filter(**of_items).order_by()
    numbered = revisions.values_list("pk", "item", "number")
    shown = {pk: item for pk, item, number in numbered if current[item] == number}
    for pk in current.keys() - shown.values():
        yield pk, said[pk]
    texts_of = Revision.objects.filter(pk__among=list(shown)).order_by()
    for some in bulky_id_batches(texts_of, "texts"):
        rows = Revision.objects.filter(pk__among=some).order_by().values_list("item", "texts")
        for pk, texts in rows:
            each = (
                (name, text)
                for name, value in texts.items()
                for text in (value if isinstance(value, list) else [value])
                if isinstance(text, str)
            )
            yield pk, [*each, *said[pk]]


def _load_words(ids: list[int]) -> Iterator[tuple[int, list[str]]]:
    projects = dict(Item.objects.filter(pk__among=ids).values_list("pk", "project"))
    for pk, texts in load_texts(ids):
        words = chain.from_iterable(_iterate_words(text) for _, text in texts)
        yield pk, _cut(chain([project_word(projects[pk])], words))


def _cut(words: Iterable[str]) -> list[str]:
    """The first words, as many as both databases take of an item."""
    kept: list[str] = []
    letters = 0
    for word in words:
        letters += min(len(word), LONGEST_WORD)
        if len(kept) == MOST_WORDS or letters > MOST_LETTERS:
            break
        kept.append(word[:LONGEST_WORD])
    return kept


def _store(words: dict[int, list[str]]) -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            numbered = [
                " ".join(f"{word}:{place}" for place, word in enumerate(each, start=1))
                for each in words.values()
            ]
            cursor.execute(
                "UPDATE annotation_searchtext AS s SET words = v.words::tsvector, due = false"
                " FROM unnest(%s::bigint[], %s::text[]) AS v (item_id, words)"
                " WHERE s.item_id = v.item_id",
                [list(words), numbered],
            )
        else:
            cursor.executemany(
                "UPDATE annotation_searchtext SET words = %s, due = 0 WHERE item_id = %s",
                [(" ".join(each), pk) for pk, each in words.items()],
            )


_MARK = "ON CONFLICT (item_id) DO UPDATE SET due = true WHERE NOT annotation_searchtext.due"
_MARK_ROW = f"INSERT INTO annotation_searchtext (item_id, due) VALUES (NEW.item_id, true) {_MARK}"
_WITH_COMMENT = "FOR EACH ROW WHEN (NEW.comment <> '')"
# The table of FTS5 keeps no texts of its own: what it forgets must be said as it was.
_FORGET = (
    "INSERT INTO annotation_searchwords (annotation_searchwords, rowid, words)"
    " SELECT 'delete', OLD.item_id, OLD.words WHERE OLD.words IS NOT NULL;"
)
_KEEP = (
    "INSERT INTO annotation_searchwords (rowid, words)"
    " SELECT NEW.item_id, NEW.words WHERE NEW.words IS NOT NULL;"
)


def _triggers() -> Iterator[Trigger]:
    of_row = f"BEGIN {_MARK_ROW}; END"
    added = of_row
    if connection.vendor == "postgresql":
        of_row = "EXECUTE FUNCTION annotation_search_mark()"
        added = (
            "REFERENCING NEW TABLE AS added FOR EACH STATEMENT"
            " EXECUTE FUNCTION annotation_search_mark_added()"
        )
    yield Trigger("annotation_revision", "INSERT", added)
    yield Trigger("annotation_comment", "INSERT", f"FOR EACH ROW {of_row}")
    yield Trigger("annotation_comment", "UPDATE", f"FOR EACH ROW {of_row}")
    yield Trigger("annotation_label", "INSERT", f"{_WITH_COMMENT} {of_row}")
    yield Trigger("annotation_label", "UPDATE", f"{_WITH_COMMENT} {of_row}")
    if connection.vendor == "sqlite":
        words = ("annotation_searchtext", "UPDATE OF words")
        yield Trigger("annotation_searchtext", "DELETE", f"FOR EACH ROW BEGIN {_FORGET} END")
        yield Trigger(*words, f"FOR EACH ROW BEGIN {_FORGET} {_KEEP} END")


def _functions() -> Iterator[str]:
    if connection.vendor == "sqlite":
        yield (
            "CREATE VIRTUAL TABLE IF NOT EXISTS annotation_searchwords USING fts5(words,"
            " content='annotation_searchtext', content_rowid='item_id',"
            " tokenize='unicode61 remove_diacritics 0')"
        )
        return
    yield (
        "CREATE INDEX IF NOT EXISTS annotation_search_words ON annotation_searchtext"
        " USING gin (words)"
    )
    does = (
        ("annotation_search_mark", _MARK_ROW),
        (
            "annotation_search_mark_added",
            "INSERT INTO annotation_searchtext (item_id, due)"
            f" SELECT DISTINCT item_id, true FROM added ORDER BY item_id {_MARK}",
        ),
    )
    for name, statement in does:
        yield (
            f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN {statement}; RETURN NULL; END $$"
        )


def _mark_unknown_items() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO annotation_searchtext (item_id, due) SELECT i.id, true"
            " FROM annotation_item AS i WHERE NOT EXISTS"
            " (SELECT 1 FROM annotation_searchtext AS s WHERE s.item_id = i.id)"
        )


TRIGGERS = TriggerSet(
    "annotation_search_",
    _triggers,
    _functions,
    frozenset(
        {"annotation_searchtext", "annotation_revision", "annotation_comment", "annotation_label"}
    ),
    _mark_unknown_items,
)
