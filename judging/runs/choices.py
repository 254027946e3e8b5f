"""What people can choose: runs, strategies, endpoints that can be called, and items."""

from collections.abc import Collection, Iterable

from django.db.models import Count, Q, QuerySet
from django.shortcuts import get_object_or_404

from annotation.models import Item, Membership, Project
from judging.errors import Refused
from judging.evaluators import endpoints
from judging.evaluators.models import EndpointQuerySet
from judging.evaluators.providers import NEVER_CALLED
from judging.models import Endpoint, Run, StrategyVersion
from judging.strategies import catalogue

# The maximum number of unknown keys in a message.
MAX_NAMED_KEYS = 5


def get_run_or_404(member: Membership, number: int) -> Run:
    """Return the run with this number in the member's project, loaded for its page. Raises
    `Http404`."""
    return get_object_or_404(Run.objects.in_project(member.project).for_page(), number=number)


def get_version(project: Project, name: str) -> StrategyVersion:
    """Return the newest version of a strategy by its name; raise `Refused` if there is none."""
    found = catalogue.find_version(project, name)
    if found is None:
        known = ", ".join(listed.version.slug for listed in catalogue.list_offered(project))
        raise Refused(f"There is no strategy {name!r}. Choose one of: {known}.")
    if found.retired_at:
        raise Refused(f"Strategy {name} is retired. Restore it before you start runs with it.")
    return catalogue.store_version(found)


def list_endpoints() -> EndpointQuerySet:
    """The endpoints that can be called, without archived ones."""
    return endpoints.list_all().listed().exclude(provider__in=NEVER_CALLED)


def list_other_endpoints(run: Run) -> EndpointQuerySet:
    """The other endpoints that a run could use: offline endpoints for a metric, evaluators for all
    other strategies."""
    offline = Q(provider="baseline")
    fit = offline if run.strategy.strategy().metric else ~offline
    return list_endpoints().filter(fit).exclude(pk=run.endpoint_id)


def get_endpoint(name: str) -> Endpoint:
    """Return the endpoint with this name; raise `Refused` if no such endpoint can be called."""
    found = list_endpoints().named(name)
    if found is None and Endpoint.objects.exclude(archived_at=None).named(name):
        raise Refused(f"Endpoint {name} is archived. Restore it, or choose another one.")
    if found is None:
        known = ", ".join(list_endpoints().values_list("name", flat=True))
        raise Refused(f"There is no endpoint {name!r} that can be called. Choose one of: {known}.")
    return found


def list_explained_runs(project: Project) -> QuerySet[Run]:
    """Runs whose explanations can be checked, newest first."""
    ended = Run.objects.in_project(project).listed().filter(state=Run.State.FINISHED, samples=1)
    asked = ended.exclude(kind=Run.Kind.DERIVED)
    # The JSON definition of the strategy has its frame, and says if replies explain their answer.
    explains = asked.filter(
        strategy__definition__frame="single", strategy__definition__explanation=True
    )
    return explains.for_page().order_by("-number")


def list_comparable_runs(project: Project) -> QuerySet[Run]:
    """Runs that judged items, newest first. A new run may use the same items."""
    judged = Run.objects.in_project(project).listed().judging().order_by("-number")
    # The list shows hundreds of runs, so it leaves out the definitions of their strategies.
    named = ("number", "name", "is_part", "project", "strategy__slug", "endpoint__name")
    return judged.select_related("strategy", "endpoint").only(*named)


def find_last_seed(project: Project) -> int | None:
    """The seed of the project's newest run that asked an evaluator; None before the first one."""
    asked = Run.objects.in_project(project).filter(kind=Run.Kind.ASKED).order_by("-number")
    return asked.values_list("seed", flat=True).first()


def count_by_field(project: Project, field: str) -> list[tuple[str, int]]:
    """Count the project's live items for each value of a field."""
    live = Item.objects.in_project(project).live().exclude(**{field: ""})
    counted = live.order_by(field).values_list(field).annotate(n=Count("pk"))
    return [(str(value), n) for value, n in counted]


def select_items(
    project: Project,
    *,
    categories: Collection[str] = (),
    abilities: Collection[str] = (),
    keys: Collection[str] = (),
) -> set[int] | None:
    """Return the ids of the items in one of the categories, in one of the abilities, and among the
    keys; None for all items. Raise `Refused` for keys that are not in the project.

    An empty filter accepts all items. An item matches an ability if it is the item's ability or
    source ability.
    """
    if not (categories or abilities or keys):
        return None
    live = Item.objects.in_project(project).live()
    if keys:
        _check_keys(keys, live.filter(key__in=keys).values_list("key", flat=True))
        live = live.filter(key__in=keys)
    if categories:
        live = live.filter(category__in=categories)
    if abilities:
        made_from = Q(source_ability__in=abilities)
        live = live.filter(Q(ability__in=abilities) | made_from)
    return set(live.values_list("pk", flat=True))


def _check_keys(wanted: Collection[str], there: Iterable[str]) -> None:
    lacking = sorted(set(wanted).difference(there))
    if lacking:
        more = f" and {len(lacking) - MAX_NAMED_KEYS} more" if len(lacking) > MAX_NAMED_KEYS else ""
        raise Refused(
            f"The project has no items {', '.join(lacking[:MAX_NAMED_KEYS])}{more}. Check the keys."
        )
