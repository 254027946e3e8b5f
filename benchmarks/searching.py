"""How fast words in the texts of many items are found, and how fast they are indexed.

    python -m benchmarks.searching [--databases postgresql sqlite] [--items 100000] [--letters 3000]

Each database is new. The words of the texts are as frequent as in a language: the word of rank n
occurs about 1/n as often as the first. `stored` are items stored per second as an import stores
them, without slots, and `bare` without the triggers of the search, in turns of 2,000 items; `share`
is the one divided by the other. `indexed` are items indexed per second by one worker. A search is
what the page of items does: the number of items, the first fifty, and their excerpts. It is asked
for words of each frequency, beginnings, quotations and pairs. PostgreSQL is expected at
TEST_POSTGRES_URL. The exit code is 1 if a search finds something else than a look through the
texts; a missed limit is only reported.
"""

import argparse
import json
import random
import string
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import accumulate, count
from pathlib import Path
from typing import Any

from benchmarks.workbench import reporting, scratch

ROOT = Path(__file__).resolve().parents[1]
LIMIT, SHARE = 300, 0.8
VOCABULARY, TURN, SEARCHES = 50_000, 2_000, 200


def main() -> None:
    """Measure each database in its own process, and print the results."""
    options = _options()
    if options.one:
        print(json.dumps(_measured(options)))
        return
    wrong = False
    print(
        f"{'database':<12}{'items':>10}{'letters':>9}{'stored/s':>10}{'bare/s':>9}{'share':>7}"
        f"{'indexed/s':>11}{'median ms':>11}{'p95 ms':>8}{'longest ms':>12}"
    )
    for kind in options.databases:
        if kind == "postgresql" and (lacking := scratch.lacking_postgresql()):
            print(lacking)
            continue
        command = [sys.executable, "-m", "benchmarks.searching", "--one", "--databases", kind]
        command += ["--items", str(options.items), "--letters", str(options.letters)]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout.splitlines()[-1])
        print(_line(kind, options, found), flush=True)
        wrong |= bool(found["wrong"])
    if wrong:
        print("A search found other items than a look through the texts.")
        raise SystemExit(1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--databases", nargs="+", choices=scratch.KINDS, default=[*scratch.KINDS])
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--letters", type=int, default=3_000)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _line(kind: str, options: argparse.Namespace, found: dict[str, Any]) -> str:
    share = found["stored"] / found["bare"]
    checks = [
        reporting.limit_line(found["p95"] < LIMIT, f"p95 {found['p95']} ms, under {LIMIT}"),
        reporting.limit_line(share >= SHARE, f"stored at {share:.2f} of bare, at least {SHARE}"),
    ]
    return (
        f"{kind:<12}{options.items:>10,}{options.letters:>9,}{found['stored']:>10,}"
        f"{found['bare']:>9,}{share:>7.2f}{found['indexed']:>11,}{found['median']:>11}"
        f"{found['p95']:>8}{found['longest']:>12}  slowest: {found['slowest']}\n"
        f"  {'; '.join(checks)}"
    )


def _measured(options: argparse.Namespace) -> dict[str, Any]:
    chance = random.Random(7)
    words = [
        "".join(chance.choices(string.ascii_lowercase, k=3 + n % 8)) for n in range(VOCABULARY)
    ]
    with scratch.database(options.databases[0]):
        from annotation import importing
        from annotation.items import search_index
        from annotation.models import Item

        project = importing.create_project("bench")
        texts = _texts(chance, words, options)
        seconds = {True: 0.0, False: 0.0}
        for turn in range(-(-options.items // TURN)):
            rows = [next(texts) for _ in range(min(TURN, options.items - turn * TURN))]
            with_triggers = turn % 2 == 0
            (search_index.TRIGGERS.install if with_triggers else search_index.TRIGGERS.drop)()
            begun = time.perf_counter()
            _store(project, turn * TURN, rows)
            seconds[with_triggers] += (time.perf_counter() - begun) / len(rows)
        search_index.TRIGGERS.install()
        begun = time.perf_counter()
        search_index.run_slice()
        indexed = options.items / (time.perf_counter() - begun)
        _analyse()
        turns = -(-options.items // TURN)
        assert Item.objects.count() == options.items
        return {
            "stored": round(-(-turns // 2) / seconds[True]),
            "bare": round(turns // 2 / seconds[False]),
            "indexed": round(indexed),
            **_searched(project, chance, words),
        }


def _texts(chance: random.Random, words: list[str], options: argparse.Namespace) -> Iterator[str]:
    weights = list(accumulate(1 / (rank + 1) for rank in range(VOCABULARY)))
    length = max(1, options.letters // 7)
    while True:
        yield " ".join(chance.choices(words, cum_weights=weights, k=length))


def _store(project: Any, first: int, texts: list[str]) -> None:
    from annotation.db import bulk, transactions
    from annotation.models import Item, Revision

    with transactions.transact():
        ids = bulk.reserve_ids(Item, len(texts)), bulk.reserve_ids(Revision, len(texts))
        items = [
            {
                "id": pk, "project_id": project.pk, "key": f"item-{first + number:07}",
                "position": first + number + 1, "category": "number-errors",
                "ability": "factual", "source_ability": "factual", "cluster": str(pk),
            }
            for number, pk in enumerate(ids[0])
        ]  # fmt: skip
        bulk.copy(Item, items)
        rows = zip(ids[1], ids[0], texts, strict=True)
        bulk.copy(
            Revision,
            [
                {
                    "id": pk, "item_id": item, "number": 1, "digest": "",
                    "texts": json.dumps({"prompt": text[:60], "perturbed": text}),
                }
                for pk, item, text in rows
            ],
        )  # fmt: skip


def _analyse() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        # What the database's own housekeeping does soon after an import.
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")


def _queries(chance: random.Random, words: list[str]) -> Iterator[str]:
    """Words of each frequency: of rank 1, 10, 100 ... as often as each other."""
    for number in count():
        rank = int(10 ** chance.uniform(0, 4.69))
        word, other = words[rank], words[int(10 ** chance.uniform(0, 4.69))]
        yield (word, f'"{word}"', f"{word} {other}", word[:3], f"{word} -{other}")[number % 5]


def _searched(project: Any, chance: random.Random, words: list[str]) -> dict[str, Any]:
    from annotation import tasktypes
    from annotation.items import search
    from annotation.items.views.items import PAGE_SIZE, FoundPages
    from annotation.models import Item

    task = tasktypes.load_task_type(project)
    took: list[tuple[float, str]] = []
    wrong = 0
    queries = _queries(chance, words)
    for number in range(SEARCHES):
        query = next(queries)
        terms = search.parse_query(query)
        begun = time.perf_counter()
        items = Item.objects.in_project(project).for_list()
        page = FoundPages(search.find_items(items, project, terms), PAGE_SIZE).get_page(1)
        rows = list(page)
        excerpts = search.find_excerpts(task, rows, terms)
        took.append((time.perf_counter() - begun, f"{query} ({page.paginator.count:,})"))
        wrong += any(not found for found in excerpts.values())
        if number < 10:
            wrong += page.paginator.count != _look_through(terms)
    took.sort()
    return {
        "median": round(took[len(took) // 2][0] * 1000),
        "p95": round(took[int(len(took) * 0.95)][0] * 1000),
        "longest": round(took[-1][0] * 1000),
        "slowest": took[-1][1],
        "wrong": wrong,
    }


def _look_through(terms: Any) -> int:
    """How many items match, at most `search.MOST_FOUND` and one, by a look at every text."""
    from annotation.items import search
    from annotation.models import Revision

    wanted, unwanted = (
        [search.pattern([term]) for term in terms if term.excluded == excluded]
        for excluded in (False, True)
    )
    found = 0
    for texts in Revision.objects.values_list("texts", flat=True).iterator(5_000):
        text = " . ".join(texts.values())
        if all(one.search(text) for one in wanted) and not any(
            one.search(text) for one in unwanted
        ):
            found += 1
            if found > search.MOST_FOUND:
                break
    return found


if __name__ == "__main__":
    main()
