"""A project's budget for evaluators, and how much of it each run has spent."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Sum

from annotation.db import transactions
from annotation.models import Account, Event, Membership, Project
from judging.errors import Refused
from judging.evaluators.prices import bound_cost
from judging.models import Budget, Run
from judging.runs import counts
from judging.runs.amounts import format_amount
from judging.runs.counts import PaidReplies
from judging.runs.spending import DECIMAL_PLACES, ZERO
from judging.runs.transitions import record_event


@dataclass(frozen=True)
class RunSpending:
    """The cost so far of a run that calls an evaluator, with what is known about the prices of its
    replies."""

    run: Run
    paid: PaidReplies

    @property
    def spent(self) -> Decimal | None:
        """The known spending; None if there are replies but no reply has a known price."""
        return None if self.paid.is_unknown else self.run.spent

    @property
    def words(self) -> str:
        """The cost of the run, in words. An unknown price is not shown as 0, and a run that can
        cost nothing is free before its first reply."""
        is_unspent = not self.paid.replies and not self.run.spent
        # What a token in and one out cost at most.
        if is_unspent and bound_cost(self.run.endpoint.prices(), 1, 1, max) == ZERO:
            return "free"
        return format_spent(self.run.spent, self.paid)


@dataclass(frozen=True)
class BudgetStatus:
    """A project's budget, in the site's currency.

    `spent` and `reserved` are sums over all runs of the project. `counted` is the part of `spent`
    that counts against the `cap`: for a cap set by an older version, earlier spending is left out.
    `paid` says what is known about the prices of the replies; replies with an unknown price cannot
    count towards a cap.
    """

    cap: Decimal | None
    spent: Decimal
    counted: Decimal
    reserved: Decimal
    paid: PaidReplies

    @property
    def left(self) -> Decimal | None:
        """The amount that can still be reserved; None without a cap."""
        return None if self.cap is None else max(ZERO, self.cap - self.counted - self.reserved)

    @property
    def known(self) -> Decimal | None:
        """The known spending; None if there are replies but no reply has a known price."""
        return None if self.paid.is_unknown else self.spent

    @property
    def words(self) -> str:
        """The cost of all runs, in words. An unknown price is not shown as 0."""
        return format_spent(self.spent, self.paid)


def format_spent(spent: Decimal, paid: PaidReplies) -> str:
    """Format the spending as text, with different words for an unknown price and a price of 0.
    Amounts reserved for replies that report no tokens still count against caps."""
    tokens = f" ({paid.tokens:,} tokens)" if paid.tokens else ""
    if paid.is_unknown:
        counted = f", at most {format_amount(spent)} counted" if spent else ""
        return f"unknown{counted}{tokens}"
    said = format_amount(spent) if spent or paid.charged or not paid.replies else "free"
    if not paid.unknown:
        return said
    return f"{said}, unknown cost for {paid.unknown:,} of {paid.replies:,} replies{tokens}"


def load_status(project: Project) -> BudgetStatus:
    """Load the cap and the spent and reserved amounts of a project."""
    budget = Budget.objects.filter(project=project).first()
    spent, reserved = _sums(project)
    asked = Run.objects.in_project(project).filter(kind=Run.Kind.ASKED).order_by()
    return BudgetStatus(
        cap=budget.cap if budget else None,
        spent=spent,
        counted=budget.spent if budget else spent,
        reserved=reserved,
        paid=counts.count_paid(list(asked.values_list("pk", flat=True))),
    )


def list_spending(runs: Sequence[Run]) -> list[RunSpending]:
    """List the cost of each run. A reply shared by several runs counts in each of these runs."""
    paid = counts.count_paid_by_run([run.pk for run in runs])
    return [RunSpending(run, paid.get(run.pk, PaidReplies())) for run in runs]


def set_cap(
    project: Project,
    cap: Decimal | None,
    member: Membership | None,
    *,
    account: Account | None = None,
) -> None:
    """Set the project's spending cap; None removes it.

    Amounts that its runs have already spent and reserved count too. Runs that were paused by a cap
    stay paused until they are resumed. `account` is the user who sets the cap if they have no
    membership in the project.
    """
    with transactions.transact():
        # Two people may set the first cap at the same moment.
        Project.objects.select_for_update(no_key=True).only("pk").get(pk=project.pk)
        # Reserving and settling always change the run first, so this lock keeps other bookings out.
        list(Run.objects.in_project(project).order_by("pk").select_for_update().only("pk"))
        budget = Budget.objects.select_for_update().filter(project=project).first()
        was = budget and budget.cap
        if budget is None:
            spent, reserved = _sums(project)
            budget = Budget(project=project, spent=spent, reserved=reserved)
        elif was == cap:
            return
        budget.cap = cap
        budget.save()
        old, new = ({"cap": None if one is None else str(one)} for one in (was, cap))
        counted = str(budget.spent + budget.reserved)
        Event.objects.create(
            kind="budget",
            subject=str(project),
            project=project,
            member=member,
            account=account,
            data={"old": old, "new": new, "counted": counted},
        )


def raise_cap(run: Run, cap: Decimal, member: Membership | None) -> None:
    """Raise a run's cap; the current cap changes nothing. Raises `Refused` for a lower cap, for a
    cap above the project's cap, and for a run without a cap. Must run inside the caller's
    transaction."""
    held = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
    if held.cap == cap:
        return
    if held.cap is None:
        raise Refused(f"Run {run.number} has no cap to raise.")
    if cap < held.cap:
        raise Refused(
            f"The cap of run {run.number} is {format_amount(held.cap)}, of which "
            f"{format_amount(held.spent)} is"
            " spent. A cap can only be raised."
        )
    budget = Budget.objects.filter(project=run.project_id, cap__lt=cap).first()
    if budget and budget.cap is not None:
        raise Refused(
            f"The project's budget is {format_amount(budget.cap)}. A lead can raise it on the "
            "Budget page."
        )
    Run.objects.filter(pk=run.pk).update(cap=cap)
    old, new = ({"cap": f"{one.normalize():f}"} for one in (held.cap, cap))
    record_event("run cap", run, member, old=old, new=new)


def _sums(project: Project) -> tuple[Decimal, Decimal]:
    runs = Run.objects.in_project(project).order_by()
    sums = runs.aggregate(spent=Sum("spent"), reserved=Sum("reserved"))
    # SQLite adds amounts as binary fractions, which are inexact.
    return round(sums["spent"] or ZERO, DECIMAL_PLACES), round(
        sums["reserved"] or ZERO, DECIMAL_PLACES
    )
