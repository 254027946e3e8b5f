import json
import stat
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from annotation.labelling import queue
from annotation.models import Account, Item, Label, Membership, Project
from judging import demo, planted_demo
from judging.models import Outcome, Run

# Items of the file of examples.
EXAMPLES = 52
# The asking has a database thread of its own, which sees only what is committed.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def var(settings: Settings, tmp_path: Path) -> Path:
    settings.VAR_DIR = tmp_path
    return tmp_path


@pytest.fixture(autouse=True)
def one_project(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second project takes some seconds, and has tests of its own: test_planted_demo.py."""
    monkeypatch.setattr(planted_demo, "make_project", lambda now: Project.objects.get())


def make_demo(**options: object) -> str:
    told = StringIO()
    call_command("demo", stdout=told, **options)
    return told.getvalue()


def test_a_demo_has_every_category_resolved_and_work_left_to_do() -> None:
    make_demo()
    progress = queue.load_progress(Membership.objects.get(alias="annotator"))
    assert progress.mine == 0
    made = Item.objects.filter(origin="perturber")
    seen = made.filter(slots__isnull=False).count()
    assert progress.left == EXAMPLES - int(demo.LABELLED_SHARE * EXAMPLES) + seen
    assert progress.total == EXAMPLES + made.count()
    assert set(Label.objects.values_list("choice", flat=True)) == {
        "valid",
        "score-invariant",
        *demo.DOUBTFUL_CHOICES.values(),
    }
    resolved = Outcome.objects.filter(run__number=1).values_list("category").distinct()
    assert resolved.count() == 23


def test_a_demo_has_something_to_say_of_every_dose() -> None:
    make_demo()
    decided = Outcome.objects.filter(run__number=1, item__dose__isnull=False)
    doses = set(decided.values_list("item__category", "item__dose"))
    assert doses == {
        (category, dose)
        for category in ("spelling", "number-errors", "calculations")
        for dose in (1, 2, 4)
    }
    assert Item.objects.filter(origin="perturber", slots__isnull=False).count() >= 3


def test_a_demo_has_guidelines_under_which_its_labels_were_made() -> None:
    make_demo()
    version = Project.objects.get().guidelines.get()
    assert (
        version.text == (Path(__file__).parents[2] / "examples/guidelines.md").read_text().strip()
    )
    assert set(Label.objects.values_list("guidelines", flat=True)) == {version.pk}


def test_a_demo_is_finished_rightly_though_pages_count_seldom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("annotation.db.project_counts.LARGE_PROJECT", 0)
    monkeypatch.setattr("annotation.db.project_counts.ITEMS_PER_SECOND", 0.1)
    project = demo.import_project(Path("examples/items.jsonl"), "demo", "Demo")
    queue.load_progress(demo._get_annotator(project, "ada"))
    assert demo.label_part(project) == int(demo.LABELLED_SHARE * project.items.count())
    before = Label.objects.count()
    demo.label_part(project)
    assert Label.objects.count() == before


def test_the_baselines_of_a_demo_have_decided_every_item() -> None:
    make_demo()
    assert [run.strategy.slug for run in Run.objects.filter(state="finished")] == [*demo.BASELINES]
    assert set(Outcome.objects.values_list("result", flat=True)) == {"detected", "undetected"}


def test_made_again_a_demo_changes_nothing_and_keeps_what_people_did() -> None:
    first = make_demo()
    member = Membership.objects.get(alias="annotator")
    offer = queue.next_offer(member)
    assert isinstance(offer, queue.Offer)
    queue.store_label(member, offer.submission({"choice": "valid"}))
    before = Label.objects.count()
    assert make_demo().splitlines()[-7:] == first.splitlines()[-7:]
    assert Label.objects.count() == before
    assert Run.objects.count() == 2


def test_a_demo_that_was_interrupted_is_finished_the_next_time() -> None:
    project = demo.import_project(Path("examples/items.jsonl"), "demo", "Demo")
    offer = queue.next_offer(demo._get_annotator(project, "ada"))
    assert isinstance(offer, queue.Offer)
    make_demo()
    assert Label.objects.count() == int(demo.LABELLED_SHARE * EXAMPLES)
    assert demo.is_made(Project.objects.get(slug="demo"))


def test_the_people_sign_in_with_the_passwords_that_are_told(var: Path) -> None:
    told = make_demo()
    kept = json.loads((var / "demo-passwords").read_text("utf-8"))
    assert stat.S_IMODE((var / "demo-passwords").stat().st_mode) == 0o600
    for person in demo.PEOPLE:
        assert kept[person.name] in told
        assert Account.objects.get(username=person.name).check_password(kept[person.name])
    assert [account.username for account in Account.objects.filter(is_superuser=True)] == ["admin"]


def test_a_password_that_somebody_changed_stays_changed_and_is_not_told(var: Path) -> None:
    make_demo()
    account = Account.objects.get(username="lead")
    account.set_password("another one")
    account.save()
    told = make_demo()
    assert json.loads((var / "demo-passwords").read_text("utf-8"))["lead"] not in told
    account.refresh_from_db()
    assert account.check_password("another one")


def test_a_public_site_gets_no_demo_people(settings: Settings) -> None:
    settings.SITE_URL = "https://blindspot.example"
    with pytest.raises(CommandError, match="SITE_URL"):
        make_demo()
    assert not Account.objects.exists()


def test_data_that_is_not_there_is_named_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"nothing\.zip"):
        make_demo(data=tmp_path / "nothing.zip")
    assert not Project.objects.exists()
