"""What must hold of the stored data: `CHECKS` lists every check by its name."""

from operation.integrity import items, labelling, records, runs
from operation.integrity.checks import Check

CHECKS: dict[str, Check] = {
    check.name: check
    for checks in (labelling.CHECKS, items.CHECKS, runs.CHECKS, records.CHECKS)
    for check in checks
}
