"""Checks before a run starts: endpoint, cap, budget, and items that are still being labelled."""

from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any

from annotation.models import Membership, Project, Slot, Stage
from judging.errors import Refused
from judging.evaluators import providers
from judging.evaluators.providers import NEVER_CALLED
from judging.evaluators.providers.parameters import API_DEFAULT, find_family
from judging.models import Budget, Endpoint, Run
from judging.runs.amounts import format_amount
from judging.strategies import Strategy, frames


def check_endpoint(
    strategy: Strategy,
    endpoint: Endpoint,
    cap: Decimal | None = None,
    *,
    parameters: Mapping[str, Any] | None = None,
) -> None:
    """Raise `Refused` if the strategy cannot use the endpoint, or a cap cannot be enforced.

    `parameters` are the run's parameters, by default the endpoint's parameters overridden by the
    strategy's.
    """
    if strategy.frame == "fold":
        raise Refused(
            f"Strategy {strategy.slug} sends no requests. Combine finished runs with it instead."
        )
    if bool(strategy.metric) != (endpoint.provider == "baseline"):
        wanted = "the offline baseline endpoint" if strategy.metric else "an evaluator LLM"
        raise Refused(f"Strategy {strategy.slug} needs {wanted}; {endpoint.name} is not one.")
    if endpoint.provider in NEVER_CALLED:
        raise Refused(
            f"{endpoint.name} is only for imported or combined replies and cannot be called."
        )
    if cap is not None:
        check_prices(endpoint)
    pinned = endpoint.pinned(strategy.parameters)
    if parameters is not None:
        pinned["parameters"] = parameters
    _check_parameters(strategy, pinned)
    check_bodies(strategy, endpoint, pinned)


def check_not_archived(endpoint: Endpoint) -> None:
    """Raise `Refused` if the endpoint, as it is now, is archived or deleted. Otherwise nobody can
    delete it until this transaction ends."""
    if not Endpoint.objects.listed().keep(endpoint):
        raise Refused(
            f"Endpoint {endpoint.name} is archived or deleted, so it takes no new runs. Choose "
            "another endpoint, or ask a site admin to restore it."
        )


def check_bodies(strategy: Strategy, endpoint: Endpoint, pinned: Mapping[str, Any]) -> None:
    """Raise `Refused` if the endpoint cannot be sent what a run with these pins would send."""
    for prompt in frames.render_blank_prompts(strategy):
        try:
            providers.build_body(pinned, prompt, schema=strategy.schema)
        except ValueError as error:
            raise Refused(f"{endpoint.name} cannot be called: {error}") from error


def _check_parameters(strategy: Strategy, pinned: Mapping[str, Any]) -> None:
    """Raise `Refused` if the strategy sets a parameter that the model is known to refuse.
    Parameters set for the endpoint or the run are not checked: a gateway may accept them."""
    for name in find_family(pinned["model"]).refuses:
        value = strategy.parameters.get(name)
        if value in (None, API_DEFAULT) or pinned["parameters"].get(name) != value:
            continue
        raise Refused(
            f"{pinned['model']} does not accept {name} = {value}, which strategy {strategy.slug} "
            "sends. Choose another endpoint, or start"
            f' the run with the parameters {{"{name}": null}}: samples then vary with the'
            " model's own default."
        )


def check_budget(project: Project, endpoint: Endpoint) -> None:
    """Raise `Refused` if the project's budget cannot be enforced with this endpoint."""
    held = Budget.objects.filter(project=project).first()
    if held and held.cap is not None and not _has_prices(endpoint):
        raise Refused(
            f"{endpoint.name} has no price, so the project's budget of {format_amount(held.cap)} "
            "cannot be enforced. Enter its prices (0 for a free evaluator), or let a lead remove "
            "the budget on the Budget page."
        )


def count_being_labelled(run: Run, items: Collection[int]) -> int:
    """Count the items that are still being labelled. The count is 0 for baselines, which only
    measure, and for generators, which only write, since neither gives a judgement that an annotator
    could copy.
    """
    if run.generates or not run.endpoint.is_evaluator():
        return 0
    open_places = (
        Slot.objects.in_project(run.project_id).at_stage(Stage.LABEL).in_use().of_live_items()
    )
    return len(set(open_places.values_list("item", flat=True)).intersection(items))


def check_labelling(labelling: int, *, allowed: bool, member: Membership | None) -> None:
    """Raise `Refused` if items of the run are still being labelled and no lead has allowed such a
    run.

    `member` is None on the command line, which may do everything that a lead may do.
    """
    if not labelling:
        return
    if not allowed:
        raise Refused(
            f"{labelling} of these items are still being labelled, and annotators must not see "
            "evaluator output before. Wait until they are labelled, or ask a lead to allow it."
        )
    if member is not None and not member.is_lead:
        raise Refused(
            f"{labelling} of these items are still being labelled. Only a lead can allow a run "
            "over them."
        )


def check_prices(endpoint: Endpoint) -> None:
    """Raise `Refused` if a cap cannot be enforced because the endpoint has no prices."""
    if not _has_prices(endpoint):
        raise Refused(
            f"{endpoint.name} has no price, so a cap cannot be enforced. Enter its prices (0 for a "
            "free evaluator), or leave the cap empty."
        )


def _has_prices(endpoint: Endpoint) -> bool:
    prices = endpoint.prices()
    return None not in (prices.per_million_in, prices.per_million_out)
