"""An example project: accounts to sign in, partly labelled items, and finished baseline runs.

The demo can be set up repeatedly: finished steps are skipped, and later changes by users are kept.
"""

import hashlib
import json
import random
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from django.contrib.auth.hashers import make_password

from annotation import importing, tasktypes
from annotation.generation import perturbers
from annotation.generation.perturbers import PerturbRequest
from annotation.generation.release import ReleasePolicy
from annotation.labelling import queue
from annotation.models import Account, Event, Item, Membership, Project, Resolution, Role
from annotation.projects import guidelines
from formats.readers import FORMATS
from formats.rows import BadRow
from judging.errors import Refused
from judging.evaluators import endpoints
from judging.models import Run
from judging.runs import lifecycle, selection
from judging.runs.engine import ask

# The share of the items that is labelled in advance; the rest is left for the user.
LABELLED_SHARE = 0.6
# Items get the intended label, except the items with these numbers. The first item of a category is
# never among them.
DOUBTFUL_CHOICES = {26: "invalid", 28: "not-sure", 30: "not-relevant"}
ANNOTATOR_ALIASES = ("ada", "ben")
BASELINES = ("rouge-l", "length")
# Perturbers that can insert errors at several doses in the examples; annotators see a few of each
# category.
PERTURBATION_OPTIONS = PerturbRequest(
    perturbers=("spelling", "numbers", "results"), seed="demo", doses=(1, 2, 4)
)
VETTING_OPTIONS = ReleasePolicy(share=10, accept=True)
MADE_EVENT = "demo made"
DESCRIPTION = "Example items: some are left to label, and two offline evaluators have run."


@dataclass(frozen=True)
class Person:
    """A user who can sign in; a site admin has no role in the project."""

    name: str
    role: Role | None
    does: str


PEOPLE = (
    Person("annotator", Role.ANNOTATOR, "labels what is left to do"),
    Person("researcher", Role.RESEARCHER, "reads results and starts runs"),
    Person("lead", Role.LEAD, "does all of that, and corrects and imports"),
    Person("admin", None, "site admin: people, projects, endpoints"),
)


def load_passwords(kept: Path) -> dict[str, str]:
    """Return the passwords of the users by name. They are generated once, and stored in a file that
    only its owner can read.
    """
    if not kept.exists():
        kept.touch(mode=0o600)
        made = {person.name: secrets.token_urlsafe(9) for person in PEOPLE}
        kept.write_text(json.dumps(made, indent=1), encoding="ascii")
    return dict(json.loads(kept.read_text(encoding="ascii")))


def create_accounts(project: Project, words: dict[str, str]) -> dict[str, bool]:
    """Give every demo user an account and their role in the project.

    Returns for each name whether the stored password is still valid. A password that a user has
    changed stays changed.
    """
    return {person.name: _create_account(project, person, words[person.name]) for person in PEOPLE}


def _create_account(project: Project, person: Person, word: str) -> bool:
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
    # The next start computes the salt again to recognise the password: checking four passwords took
    # as long as everything else together. A changed password has its own salt.
    return hashlib.sha256(word.encode()).hexdigest()[:22]


def is_made(project: Project) -> bool:
    """True if the demo created this project, according to the event of `record_made`."""
    return Event.objects.filter(project=project, kind=MADE_EVENT).exists()


def record_made(project: Project) -> None:
    """Record that the demo created this project, so that `is_made` recognises it."""
    Event.record(MADE_EVENT, project.slug, project_id=project.pk, member_id=None)


def import_project(path: Path, slug: str, name: str) -> Project:
    """Return the project with the example items, ordered so that the categories alternate."""
    project = Project.objects.filter(slug=slug).select_related("task_type").first()
    project = project or importing.create_audited_project(slug, name=name, description=DESCRIPTION)
    task = tasktypes.parse_definition(project.task_type.definition)
    drafts = list(importing.parse_items(FORMATS["jsonl"].read(path), task))
    importing.store_items(project, _shuffle_drafts(drafts))
    return project


def _shuffle_drafts(
    drafts: Sequence[importing.ParsedItem | BadRow],
) -> list[importing.ParsedItem | BadRow]:
    """The first items of all categories, then the other items; both parts have a fixed random
    order."""
    order = random.Random(0)
    halves = [list(drafts[::2]), list(drafts[1::2])]
    for half in halves:
        order.shuffle(half)
    return halves[0] + halves[1]


def write_guidelines(project: Project, path: Path) -> None:
    """Publish the example guidelines as the first version, if the project has none."""
    if guidelines.current_version(project) is None:
        text = path.read_text(encoding="utf-8")
        guidelines.publish(project, text, {}, "The first version.", None)


def label_part(project: Project) -> int:
    """Label the first items through the queue, as annotators without accounts; return how many."""
    members = [_get_annotator(project, alias) for alias in ANNOTATOR_ALIASES]
    # Count again: the cached count of the pages may be some seconds old, and then the wrong items
    # would be labelled.
    items = Item.objects.in_project(project).originals().of_tests()
    done = Resolution.objects.in_data_set().filter(item__project=project)
    wanted = int(LABELLED_SHARE * items.count())
    for number in range(done.count(), wanted):
        member = members[number % len(members)]
        offer = queue.next_offer(member)
        if isinstance(offer, queue.Waiting):
            return number
        queue.store_label(member, offer.submission(_answers(number, offer.item.category)))
    return wanted


def _get_annotator(project: Project, alias: str) -> Membership:
    member, _ = Membership.objects.get_or_create(
        project=project, alias=alias, defaults={"role": Role.ANNOTATOR}
    )
    return member


def _answers(number: int, category: str) -> dict[str, str]:
    meant = "score-invariant" if category == "score-invariant" else "valid"
    choice = DOUBTFUL_CHOICES.get(number, meant)
    return {"choice": choice} | ({"reason": "question-unclear"} if choice == "not-sure" else {})


def make_perturbed_items(project: Project) -> int:
    """Let perturbers insert 1, 2 and 4 errors into the gold answers; return the number of new
    items. Most of them are accepted without review, so that runs have items of every dose."""
    return perturbers.make_items(project, PERTURBATION_OPTIONS, VETTING_OPTIONS).report.new


def run_baselines(project: Project) -> list[Run]:
    """Run each offline baseline once over the resolved items."""
    return [_run_baseline(project, slug) for slug in BASELINES]


def _run_baseline(project: Project, slug: str) -> Run:
    endpoint = endpoints.list_all().get(name=endpoints.BASELINE)
    run = Run.objects.filter(project=project, strategy__slug=slug).first()
    if run is None:
        version = selection.get_strategy_version(slug)
        run = lifecycle.start_run(
            project, strategy=version, endpoint=endpoint, config=lifecycle.RunConfig(seed=0)
        )
    while run.state in {Run.State.PLANNING, Run.State.RUNNING}:
        ask.run_slice(endpoint.pk)
        run.refresh_from_db()
        if run.reason:
            raise Refused(run.reason)
    return run
