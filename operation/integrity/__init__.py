"""What must hold of the stored data: `CHECKS` lists every check by its name."""

from operation.integrity import database, items, jobs, labelling, runs
from operation.integrity.checks import Check

CHECKS: dict[str, Check] = {
    check.name: check
    for checks in (labelling.CHECKS, items.CHECKS, runs.CHECKS, jobs.CHECKS, database.CHECKS)
    for check in checks
}
# An archive of results has no texts, no answers that people wrote in their own words, and only some
# of the runs that shared a reply.
NOT_IN_ARCHIVES = frozenset(
    {"text-digests", "label-choices", "final-values", "spent", "spent-once"}
)
