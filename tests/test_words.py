"""One word for each thing, in what people read: templates, messages, scripts and documents.

Each rule has what to say, and a pattern of what not to say. Only the string
constants of Python files are searched, without docstrings.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = ("*.md", "docs/*.md", "examples/*.md")
TEMPLATES = ("templates/**/*.html", "templates/**/*.txt")
# What annotators are asked. Words of prompts to evaluators are not among them.
DEFINITIONS = ("annotation/**/*.toml", "judging/archive/*.toml")
SCRIPTS = ("static/js/**/*.js",)
PACKAGES = (
    "annotation",
    "judging",
    "operation",
    "config",
    "charts",
    "formats",
    "perturbers",
    "stats",
)
# Files in which a word cannot change by itself, and why.
EXEMPT = (
    # Words of a prompt: a changed byte is another request.
    "judging/strategies/criteria.py",
    # Words of prompts, as the files of strategies have them.
    "docs/strategies.md",
    # The name of a stored rule.
    "annotation/generation/generated_items.py",
    "templates/judging/data_card.txt",
)

# What to say, and what not to (a regular expression, in any case).
TERMS = [
    # Names of pages and files (quoted, hyphenated, dotted) and of the task type are fine.
    (
        "label, labelling",
        r"(?-i:\bVet(s|ted)?\b)(?!-)|(?<![\w\"'./#-])vet(s|ted)?\b(?![\"'/=:-]|\.\w)"
        r"|(?<!perturbation[ -])(?<![\w\"'./#-])vetting\b(?![\"'/=:-]|\.\w)",
    ),
    (
        "final label, or resolution for data",
        r"\bheld true\b|\bholds? true\b|\bholds of (an|the) item|\bwhat holds\b",
    ),
    ("annotators per item (overlap)", r"\blabels for each item\b|\bso many (people|annotators)\b"),
    ("double-annotated sample", r"\brandom share with more labels\b"),
    ("reserved by others", r"\bheld by others\b|\bwhat others work on\b"),
    ("reservation time", r"\bminutes that an item is held\b"),
    (
        "control item",
        r"\bsilent(ly)? check|\bchecks? silently\b|\bgold questions?\b|\ba probe\b"
        r"|(?<![/\w])probes\b",
    ),
    (
        "qualification round",
        r"\bpracti[cs]e rounds?\b|\brounds? of practi[cs]e\b|\bitems to practi[cs]e\b",
    ),
    ("pass mark", r"\bright answers that pass\b"),
    ("verification; confirmed, contested", r"\bwithstands?\b|\bseconding\b"),
    ("disagreement, adjudication", r"\bwhat (people|annotators) disagree on\b"),
    ("generation board", r"\bboard of making\b|\bmaking board\b"),
    ("generated items", r"\b(is|are|was|were) made here\b"),
    ("as intended", r"\b(is|are|turned out) as meant\b"),
    ("rejected", r"\bturned down\b"),
    ("regenerate", r"\bma[kd]e again\b|\bmake the rejected again\b"),
    ("accepted without review", r"\baccept(ed)? unseen\b"),
    ("category or type", r"\bkinds? of errors?\b|\bsorts? of errors?\b"),
    ("interquartile range", r"\bmiddle half\b"),
    ("detection rate, false-alarm rate", r"\bhow much is noticed\b|\bnoticed for nothing\b"),
    ("missing, or left out", r"\bno figure counts\b"),
    (
        "gold vs perturbed answer",
        r"\bgold answers? against\b|\bgood answer against\b|\} against \{",
    ),
    ("display problem", r"\bpage is in the way\b"),
    ("why are you not sure?", r"\bin the way\b"),
    ("save", r"\bstore (it so|a form|this form)\b"),
    ("current labels", r"\blabels? (of the work )?that (are|is) in force\b"),
    ("export", r"\btake (data|figures|items|labels|them) out\b|\bcan be taken out\b"),
]
SENTENCES = [
    ("Choose an answer. If nothing else is asked, the next item follows.", "where that says all"),
    ("You would be guessing.", "with good conscience"),
    ("Skipped. You find it under Skipped.", "lies on that pile|until you take it back"),
    ("Undone. Label X again.", "waits for a new label"),
    ("Applies at once; existing labels stay.", "holds at once|holds from now on"),
    ("Only used if the share is above 0.", "means nothing while"),
    ("If annotators disagree, collect up to this many labels.", "whose labels decide nothing"),
    ("Stronger colour is worse.", "the deeper the shade"),
    ("They are never sent to evaluators.", "ask nobody for work|belong to no run"),
    ("How long an opened item stays reserved.", "takes an item and does nothing"),
    ("Possible prompt injection.", "speaks? to (a|the) judge|a flag proves nothing"),
    ("X has no price, so its cost is unknown.", "is unknown, not zero|no cap can be kept"),
    ("Samples per call", "ask each call (so many|n) times"),
    ("Download these figures", "the same figures elsewhere"),
    ("You are done. N items need another annotator.", "labelled all that you can"),
    ("A lead will review your answers.", "is a lead's to say"),
    ("Unsent drafts.", "what you began and did not send"),
    ("No labels match your search.", "no label of yours is like"),
    ("Label this item first.", "say first what you see"),
    ("This item had been reassigned.", "went to somebody else"),
    ("You released {key}.", "is left to others"),
    ("Correct answer for {key} saved.", "what is right of"),
    ("Daily output varies too much.", "too unlike each other|tells no range"),
    ("Texts without enough suitable spots are skipped and counted.", "too few places for"),
    ("Flagged items are held for review.", "what is flagged so|what a machine flags"),
    ("no usable answer found", "nothing that counts was found"),
    ("Repeats: share of samples; votes: majority", "of votes their majority"),
    ("Include exact duplicates", "repeat another word for word|items that repeat others"),
    ("These fields cannot be used for grouping.", "not to group by"),
    ("Updating how many labels each item needs.", "being brought in line"),
    ("Share valid per category, with uncertainty.", "how firmly"),
    ("Shaded: 95 % interval of the end date.", "the wedge"),
    ("People appear under their aliases", "people stand (in them )?under|stand in them under"),
    ("Correct = all fields with a known answer match.", "of which the answer is known was"),
    ("lead invites you to annotate in X as mira.", "invites you to .{1,40}you would be its"),
    ("New people create their account with it.", "who has no account yet makes one"),
    ("Human performance on the evaluators' task", "what evaluators are asked to do"),
    ("We would answer differently", "not what we would say"),
    ("p: sign-flip test over questions", "that of the clusters' signs"),
    ("Smallest difference found with 80 % power", "would show [0-9{]"),
    ("Equal scores whose explanation names an error", "found of the equal"),
    ("The N largest differences", r"the ([0-9]+|\{\{[^}]*\}\}) furthest"),
    ("How to ask", "how (it is|they are|is) asked about|how is asked"),
    ("Parse again", "read (the )?replies again|replies (were|are) read again"),
    ("parsed as strict JSON", "found by way of"),
    ("Combine the chosen runs", "derive of the chosen"),
    ("If all missing were detected", r"lowest rate \(missing\)"),
    ("A small p suggests that", "small p says that"),
    ("no better than a coin", "0 is guessing"),
    ("Repeating it adds nothing.", "again is nothing new|the same again (changes|is|brings) no"),
    ("create it if it does not exist", "made if need be|if need be"),
    ("run it in this process", "work on it here"),
]
NAME = re.compile(r"[a-z0-9_./:-]*")
RULES = [(say, re.compile(pattern, re.IGNORECASE)) for say, pattern in TERMS + SENTENCES]


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """What people read in a file, with the line where it begins."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from enumerate(_paragraphs(text), start=1)
        return
    tree = ast.parse(text)
    silent = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part for part in node.values if isinstance(part, ast.Constant)]
            silent |= set(map(id, parts))
            yield node.lineno, "{}".join(str(part.value) for part in parts)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in silent:
            continue
        # One word in small letters is a name in the code.
        if isinstance(node.value, str) and not NAME.fullmatch(node.value):
            yield node.lineno, " ".join(node.value.split())


def _paragraphs(text: str) -> list[str]:
    """Each line with the beginning of the next, since a phrase may be broken between them."""
    text = re.sub(r"\{% load [^%]*%\}", "", text)
    # One word in small letters that is marked as code is a name in the code.
    text = re.sub(rf"`{NAME.pattern}`", "``", text)
    lines = [" ".join(re.sub(r"^\s*(#|//|\*)\s?", "", line).split()) for line in text.splitlines()]
    return [
        f"{line} {' '.join(after.split()[:6])}"
        for line, after in zip(lines, [*lines[1:], ""], strict=False)
    ]


def hits(path: Path) -> list[str]:
    """What is said otherwise than by the rules, as file:line: "phrase", say what instead."""
    name = path.relative_to(ROOT).as_posix()
    found: dict[tuple[int, str], str] = {}
    for number, line in _lines(path):
        for say, pattern in RULES:
            # Of two lines that are read together, a phrase counts where it begins.
            if (match := pattern.search(line)) and (number - 1, match[0]) not in found:
                found[number, match[0]] = f'{name}:{number}: "{match[0]}", say: {say}'
    return list(found.values())


def _shown() -> list[Path]:
    """The files that hold what people read."""
    patterns = [*DOCUMENTS, *TEMPLATES, *DEFINITIONS, *SCRIPTS]
    patterns += [f"{package}/**/*.py" for package in PACKAGES]
    paths = {path for pattern in patterns for path in ROOT.glob(pattern)}
    return sorted(path for path in paths if "migrations" not in path.parts)


def _is_exempt(path: Path) -> bool:
    name = path.relative_to(ROOT).as_posix()
    return name in EXEMPT


def test_what_people_read_says_one_word_for_each_thing() -> None:
    """Some seconds: every template, script, document and string is read."""
    assert [hit for path in _shown() if not _is_exempt(path) for hit in hits(path)] == []


@pytest.mark.parametrize(
    ("name", "text", "say"),
    [
        ("a.html", "<p>Vet the next\n item.</p>", "label, labelling"),
        ("a.py", 'MESSAGE = f"{key} is left to " "others."', "You released {key}."),
        ("a.md", "The deeper the\nshade, the worse.", "Stronger colour is worse."),
        ("a.js", 'say("Nothing is in the way");', "why are you not sure?"),
    ],
)
def test_a_word_of_the_table_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, say: str
) -> None:
    monkeypatch.setattr("tests.test_words.ROOT", tmp_path)
    (tmp_path / name).write_text(text)
    [hit] = hits(tmp_path / name)
    assert hit.startswith(f"{name}:1: ")
    assert hit.endswith(say)


def test_a_name_in_the_code_may_be_another_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.test_words.ROOT", tmp_path)
    path = tmp_path / "a.md"
    path.write_text("The table `probes` has the results.")
    assert hits(path) == []
    path.write_text("The table of probes has the results.")
    assert len(hits(path)) == 1


def test_the_name_of_a_task_type_and_a_health_probe_are_plain_words(tmp_path: Path) -> None:
    path = ROOT / "tests" / "none.py"
    assert not any(pattern.search("perturbation vetting") for _, pattern in RULES)
    assert not any(pattern.search("the readiness probe of a container") for _, pattern in RULES)
    assert not path.exists()
