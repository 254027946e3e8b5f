"""Whether the default lane notices when the code is broken: mutations drawn by a seed.

    .venv/bin/python -m tests.mutations --seed 19 --number 30

Each mutation turns one operator, constant or return value of a function into another, in a copy of
the checkout. One run of the lane says which tests come by which of them; then each is switched on
alone, and those tests run until one fails. What no test fails for is named, with its line. Other
words go to pytest in the first run, as `--ignore tests/browser`.
"""

import argparse
import ast
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (
    "annotation",
    "charts",
    "config",
    "formats",
    "judging",
    "operation",
    "perturbers",
    "stats",
)
OTHER: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult,
}  # fmt: skip
# Arguments that change how fast something is, which rows PostgreSQL locks (SQLite locks none), or
# how many pixels wide something is drawn, and nothing that a test of the default lane could hold.
UNTOLD_ARGUMENTS = {
    "batch_size", "chunk_size", "lock", "maxsize", "no_key", "timeout", "verbosity",
    "dx", "dy", "fontSize", "labelPadding", "opacity", "size", "strokeDash", "strokeWidth",
    "symbolOpacity", "tickCount", "titlePadding",
}  # fmt: skip
# From so many characters on, texts are cut.
LONG = 50
CLOCKS = {"monotonic", "perf_counter", "now"}
# It runs on PostgreSQL alone, and the default lane has SQLite.
ON_POSTGRESQL = "config/postgresql"
LITERAL = (ast.Constant, ast.List, ast.Tuple, ast.expr_context)
# What a switched-on mutation may take before it counts as noticed: it may go round for ever.
SECONDS = 1200


@dataclass(frozen=True)
class Mutation:
    """An expression of a file, by its place in bytes, and what stands there instead."""

    path: str
    line: int
    start: int
    end: int
    before: str
    after: str


def mutations(path: Path) -> Iterator[Mutation]:
    """All of a file, in the order of their places."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    tree = ast.parse(source)
    for node in _inside_functions(tree):
        for other in _others(node):
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            before, after = source[start:end].decode(), ast.unparse(other)
            yield Mutation(str(path.relative_to(ROOT)), node.lineno, start, end, before, after)


def _inside_functions(node: ast.AST, inside: bool = False) -> Iterator[ast.expr]:
    """Expressions that run when a function does. Those in f-strings have no true places."""
    if isinstance(node, ast.expr) and inside:
        yield node
    is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    for name, part in ast.iter_fields(node):
        if name == "body" and _is_for_postgresql(node):
            continue
        runs = inside or (name == "body" and is_function)
        for child in part if isinstance(part, list) else [part]:
            is_docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            if (
                isinstance(child, ast.AST)
                and not isinstance(child, ast.JoinedStr | ast.arguments | ast.match_case)
                and not _is_guard(child)
                and not _is_untold(child)
                and not _is_cut(child)
                and name not in ("annotation", "decorator_list")
                and not is_docstring
            ):
                yield from _inside_functions(child, runs)


def _is_guard(node: ast.AST) -> bool:
    """`zip(..., strict=True)` asserts what holds: nothing but a mistake of ours can break it."""
    return isinstance(node, ast.keyword) and node.arg == "strict"


def _is_untold(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.keyword)
        and node.arg in UNTOLD_ARGUMENTS
        and all(isinstance(part, LITERAL) for part in ast.walk(node.value))
    )


def _is_cut(node: ast.AST) -> bool:
    """`message[:500]`: a text that is cut one character later is as good."""
    return isinstance(node, ast.Slice) and any(
        isinstance(end, ast.Constant) and isinstance(end.value, int) and end.value >= LONG
        for end in (node.lower, node.upper)
    )


def _is_for_postgresql(node: ast.AST) -> bool:
    """Whether the lane's database never comes by its body."""
    if isinstance(node, ast.FunctionDef):
        return node.name == "as_postgresql"
    return isinstance(node, ast.If) and bool(
        re.fullmatch(r"\w+\.vendor == 'postgresql'", ast.unparse(node.test))
    )


def _is_race(*parts: ast.expr) -> bool:
    """Of two times of a clock that goes on no test can say that they are equal."""
    return any(
        isinstance(inner, ast.Call)
        and isinstance(inner.func, ast.Attribute)
        and inner.func.attr in CLOCKS
        for part in parts
        for inner in ast.walk(part)
    )


def _others(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Compare(left, [ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()], [right]) if _is_race(
            left, right
        ):
            return
        case ast.Compare(left, [op], [right]) if type(op) in OTHER:
            yield ast.Compare(left, [OTHER[type(op)]()], [right])
        case ast.BoolOp(op, values):
            yield ast.BoolOp(OTHER[type(op)](), values)
        case ast.BinOp(left, op, right) if type(op) in OTHER and not _is_text(left, right):
            yield ast.BinOp(left, OTHER[type(op)](), right)
        case ast.UnaryOp(ast.Not(), inner):
            yield inner
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() as value):
            yield ast.Constant(value + 1)
        case ast.IfExp(test, body, orelse):
            yield ast.IfExp(test, orelse, body)


def _is_text(*parts: ast.expr) -> bool:
    return any(
        isinstance(part, ast.JoinedStr | ast.List | ast.Tuple)
        or (isinstance(part, ast.Constant) and isinstance(part.value, str))
        for part in parts
    )


def drawn(seed: int, number: int) -> list[Mutation]:
    """So many, each of another folder until all have had one, so that no large package has most."""
    dice = random.Random(seed)
    listed = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    folders: dict[str, list[Mutation]] = defaultdict(list)
    for name in sorted(listed):
        path = Path(name)
        is_ours = path.parts[0] in PACKAGES and "migrations" not in path.parts
        if is_ours and str(path.parent) != ON_POSTGRESQL:
            folders[str(path.parent)] += mutations(ROOT / path)
    found: list[Mutation] = []
    while len(found) < number:
        order = sorted(folder for folder, left in folders.items() if left)
        for folder in dice.sample(order, min(len(order), number - len(found))):
            one = dice.choice(folders[folder])
            folders[folder].remove(one)
            found.append(one)
    return found


SWITCH = '''"""Which mutation is on, and which tests come by which."""

import os
from pathlib import Path

ON = os.environ.get("MUTATION", "")
SEEN: set[tuple[str, str]] = set()


def on(number: str) -> bool:
    if ON:
        return number == ON
    test = os.environ.get("PYTEST_CURRENT_TEST", "at import")
    if (number, test) not in SEEN:
        SEEN.add((number, test))
        with (Path(__file__).parent / f"seen-{os.getpid()}.txt").open("a") as file:
            file.write(f"{number}\\t{test}\\n")
    return False
'''


def write_all(every: list[Mutation], copy: Path) -> None:
    """Each mutation beside what it replaces, with a switch that is off."""
    (copy / "mutating.py").write_text(SWITCH)
    by_file: dict[str, list[tuple[int, Mutation]]] = defaultdict(list)
    for number, one in enumerate(every, start=1):
        by_file[one.path].append((number, one))
    for name, held in by_file.items():
        source = (copy / name).read_bytes()
        # From the end on, so that places before stay true. The inner of two that nest comes first,
        # and moves the end of the outer.
        grown: list[tuple[int, int]] = []
        for number, one in sorted(held, key=lambda pair: (-pair[1].start, pair[1].end)):
            end = one.end + sum(more for inner_end, more in grown if inner_end <= one.end)
            inner = source[one.start : end].decode()
            switched = f"(({one.after}) if __import__('mutating').on('{number}') else ({inner}))"
            source = source[: one.start] + switched.encode() + source[end:]
            grown.append((one.end, len(switched.encode()) - (end - one.start)))
        (copy / name).write_bytes(source)


def run(
    copy: Path, *words: str, mutation: str = "", seconds: int | None = SECONDS
) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"MUTATION": mutation}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    return subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, timeout=seconds
    )


def is_noticed(copy: Path, number: int, tests: set[str], left_out: list[str]) -> str:
    """The first test that fails for a mutation; empty if none does."""
    is_imported = "at import" in tests
    tests = tests - {"at import"}
    # The API's operations get their names only once tests are chosen, so their file runs whole.
    tests = {test.partition("::")[0] if "schemathesis" in test else test for test in tests}
    in_browser = {test for test in tests if test.startswith("tests/browser")}
    files = {test.partition("::")[0] for test in tests}
    # Those that come by it, then their whole files, of which a fixture may have come by it. What is
    # also run while modules are imported may matter to any test: then all of them.
    steps = list(filter(None, [tests - in_browser, in_browser, files]))
    for chosen in [*steps, set()] if is_imported else steps:
        list_of_tests = f"chosen-{number}.txt"
        (copy / list_of_tests).write_text("\n".join(sorted(chosen)))
        try:
            words = ["-n", "0", f"@{list_of_tests}"] if chosen else []
            words += [f"--deselect={test}" for test in left_out]
            seconds = SECONDS if chosen else None
            ended = run(copy, "-x", *words, mutation=str(number), seconds=seconds)
        except subprocess.TimeoutExpired:
            return f"none ended within {SECONDS} s"
        if found := failed(ended):
            return found[0]
        # 5: all of them were left out.
        if ended.returncode not in (0, 5):
            raise RuntimeError(f"Tests of mutation {number} did not run: {ended.stdout[-2000:]}")
    return ""


def failed(ended: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in ended.stdout.splitlines() if line.startswith(("FAILED", "ERROR "))]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=19)
    parser.add_argument("--number", type=int, default=30)
    options, words = parser.parse_known_args()
    every = drawn(options.seed, options.number)
    for number, one in enumerate(every, start=1):
        print(f"{number}: {one.path}:{one.line}: {one.before!r} -> {one.after!r}")
    with tempfile.TemporaryDirectory(prefix="blindspot-mutations-") as folder:
        copy = Path(folder) / "copy"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(copy)], check=True)
        os.environ.setdefault("SHARED_DATA", str(ROOT.parent / "shared" / "data"))
        write_all(every, copy)
        whole = run(copy, *words, seconds=None)
        print(whole.stdout.splitlines()[-1], *failed(whole), sep="\n", flush=True)
        left_out = [line.split()[1] for line in failed(whole)]
        if left_out:
            print("What fails already would notice every mutation, so it is left out.")
        seen: dict[int, set[str]] = defaultdict(set)
        for path in copy.glob("seen-*.txt"):
            for line in path.read_text().splitlines():
                number, _, test = line.partition("\t")
                seen[int(number)].add(test.rpartition(" (")[0] or test)

        def check(number: int) -> bool:
            told = is_noticed(copy, number, seen[number], left_out) if seen[number] else ""
            print(
                f"{number}: {every[number - 1].path}:{every[number - 1].line}:"
                f" {told or 'NOT NOTICED'} ({len(seen[number])} tests come by it)",
                flush=True,
            )
            return bool(told)

        with ThreadPoolExecutor(os.cpu_count()) as at_once:
            missed = list(at_once.map(check, range(1, len(every) + 1))).count(False)
    print(f"{len(every) - missed} of {len(every)} noticed")
    return 1 if missed > len(every) // 10 else 0


if __name__ == "__main__":
    sys.exit(main())
