"""An installation to try: people who can sign in, items in part labelled, baselines asked.

Every step can be repeated. What was done is not done again, and what people did since then stays.
"""

import hashlib
import json
import random
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from django.contrib.auth.hashers import make_password

from annotation import guidelines, importing, perturbing, queue, tasktypes
from annotation.models import Account, Event, Membership, Project, Role
from annotation.perturbing import Wish
from annotation.submissions import Said
from annotation.vetting import Vetting
from formats.readers import READERS
from formats.rows import DEFAULT_LIMITS, BadRow
from judging.engine import asking
from judging.models import Run
from judging.preparing import selecting
from judging.running import runs

# Of a project whose items people vet, so much is labelled already; the rest is left to do.
LABELLED = 0.6
# The first label of every category is what its item is meant to be; these come after.
DOUBTS = {26: "invalid", 28: "not-sure", 30: "not-relevant"}
LABELLERS = ("ada", "ben")
BASELINES = ("rouge-l", "length")
# Perturbers that find places for a ladder in the examples; people see a few of each category.
LADDERS = Wish(perturbers=("spelling", "numbers", "results"), seed="demo", doses=(1, 2, 4))
SOME = Vetting(share=10, accept=True)
DONE = "demo made"


@dataclass(frozen=True)
class Person:
    """Someone who can sign in; a site admin has no role in the project."""

    name: str
    role: Role | None
    does: str


PEOPLE = (
    Person("annotator", Role.ANNOTATOR, "labels what is left to do"),
    Person("researcher", Role.RESEARCHER, "reads results and starts runs"),
    Person("lead", Role.LEAD, "does all of that, and corrects and imports"),
    Person("admin", None, "site admin: people, projects, endpoints"),
)


def passwords(kept: Path) -> dict[str, str]:
    """The people's passwords by name: made once at random, and kept where only the owner reads."""
    if not kept.exists():
        kept.touch(mode=0o600)
        made = {person.name: secrets.token_urlsafe(9) for person in PEOPLE}
        kept.write_text(json.dumps(made, indent=1), encoding="ascii")
    return dict(json.loads(kept.read_text(encoding="ascii")))


def seat(project: Project, words: dict[str, str]) -> dict[str, bool]:
    """Give every demo person an account and their role in the project.

    Whether the kept password opens it, by name: one that somebody changed since stays changed.
    """
    return {person.name: _seat(project, person, words[person.name]) for person in PEOPLE}


def _seat(project: Project, person: Person, word: str) -> bool:
    account, made = Account.objects.get_or_create(username=person.name)
    if made:
        account.password = make_password(word, salt=_salt(word))
        account.is_staff = account.is_superuser = person.role is None
        account.save()
    if person.role:
        given = {"alias": person.name, "role": person.role}
        Membership.objects.get_or_create(project=project, account=account, defaults=given)
    return f"${_salt(word)}$" in account.password or account.check_password(word)


def _salt(word: str) -> str:
    # Known again at the next start: to check four passwords took as long as all else together.
    # A password that was changed has a salt of its own.
    return hashlib.sha256(word.encode()).hexdigest()[:22]


def is_made(project: Project) -> bool:
    return Event.objects.filter(project=project, kind=DONE).exists()


def note_made(project: Project) -> None:
    Event.record(DONE, project.slug, project_id=project.pk, member_id=None)


def project_from(path: Path, slug: str, name: str) -> Project:
    """The project with the example items, in an order in which categories come in turn."""
    project = Project.objects.filter(slug=slug).select_related("task_type").first()
    project = project or importing.begin_project(slug, name=name)
    task = tasktypes.from_definition(project.task_type.definition)
    drafts = list(importing.check(READERS["jsonl"](path, DEFAULT_LIMITS), task))
    importing.store(project, _mixed(drafts))
    return project


def _mixed(drafts: Sequence[importing.Draft | BadRow]) -> list[importing.Draft | BadRow]:
    """The first item of each category before the second ones, both halves shuffled alike always."""
    order = random.Random(0)
    halves = [list(drafts[::2]), list(drafts[1::2])]
    for half in halves:
        order.shuffle(half)
    return halves[0] + halves[1]


def write_guidelines(project: Project, path: Path) -> None:
    """Publish the example guidelines as the first version, if the project has none."""
    if guidelines.current(project) is None:
        text = path.read_text(encoding="utf-8")
        guidelines.publish(project, text, {}, "The first version.", None)


def label_part(project: Project) -> int:
    """Label the first items as people without accounts did, through the queue; how many."""
    members = [_labeller(project, alias) for alias in LABELLERS]
    # Counted anew: what the pages show may be some seconds old, and others would be labelled.
    total, resolved = queue.counted(project)
    wanted = int(LABELLED * total)
    for number in range(resolved, wanted):
        member = members[number % len(members)]
        offer = queue.next_offer(member)
        if isinstance(offer, queue.Waiting):
            return number
        queue.label(member, offer.shown, Said(_answers(number, offer.item.category)))
    return wanted


def _labeller(project: Project, alias: str) -> Membership:
    member, _ = Membership.objects.get_or_create(
        project=project, alias=alias, defaults={"role": Role.ANNOTATOR}
    )
    return member


def _answers(number: int, category: str) -> dict[str, str]:
    meant = "score-invariant" if category == "score-invariant" else "valid"
    choice = DOUBTS.get(number, meant)
    return {"choice": choice} | ({"reason": "question-unclear"} if choice == "not-sure" else {})


def make_ladders(project: Project) -> int:
    """Have perturbers put 1, 2 and 4 errors into the gold answers; how many items that makes. Most
    of them are accepted unseen, so that there is something to ask about every dose."""
    return perturbing.make(project, LADDERS, SOME).report.new


def ask_baselines(project: Project) -> list[Run]:
    """One finished run of each offline baseline over what is resolved."""
    return [_baseline(project, slug) for slug in BASELINES]


def _baseline(project: Project, slug: str) -> Run:
    endpoint = selecting.endpoints().get(name=selecting.BASELINE)
    run = Run.objects.filter(project=project, strategy__slug=slug).first()
    if run is None:
        version = selecting.strategy_version(slug)
        run = runs.start(project, strategy=version, endpoint=endpoint, options=runs.Options(seed=0))
    while run.state in {Run.State.PLANNING, Run.State.RUNNING}:
        asking.work(endpoint.pk)
        run.refresh_from_db()
    return run
