"""The page of problems: what people meet most is written by hand, and what `doctor` finds follows
from its checks."""

import re
from collections.abc import Iterator

from django.conf import settings

from operation import doctor, timed_checks
from operation.docs.reference import markdown
from operation.docs.reference.markdown import code
from operation.findings import Problem

FILE = "docs/troubleshooting.md"
HEADING = "## What doctor finds"
_ABOUT = (
    "Each check of `python manage.py doctor`, with the problems that it can find. *wrong*: "
    "something does not work. *doubtful*: it works, but look at it. A word in capitals stands for "
    "what is filled in. `--only NAME` runs single checks. This part is generated from the code by "
    "`python manage.py write_docs`."
)
_ANY = "What can happen to each of the checks."
_PLACE = re.compile(r"\{(\w+)[^}]*\}")


def write_page() -> str:
    """The page as Markdown: its hand-written part as it is, and the checks anew."""
    written = (settings.BASE_DIR / FILE).read_text(encoding="utf-8")
    by_hand, *_ = written.partition(f"\n{HEADING}\n")
    return "\n\n".join([by_hand.rstrip(), HEADING, _ABOUT, *_checks()]) + "\n"


def _checks() -> Iterator[str]:
    first: dict[tuple[Problem, ...], str] = {}
    for name, check in (doctor.CHECKS | doctor.OPTIONAL_CHECKS).items():
        yield f"### {code(name)}"
        yield " ".join((check.__doc__ or "").split()).replace("Check ", "Checks ", 1)
        problems = doctor.PROBLEMS[name]
        same = first.setdefault(problems, name)
        yield _problems(problems) if same == name else f"The same problems as {code(same)}."
    yield "### Any check"
    yield _ANY
    yield _problems(timed_checks.PROBLEMS)


def _problems(problems: tuple[Problem, ...]) -> str:
    return markdown.bullets(
        f"**{_named(one.says)}** (*{one.grade}*) {_named(one.means)} **Do this:** "
        f"{_named(one.remedy)}"
        for one in problems
    )


def _named(text: str) -> str:
    """The text with the names in braces as words in capitals."""
    return _PLACE.sub(lambda place: place[1].upper(), text)
