"""The verdicts behind the lines of the `detector` table, for one prompt or for four."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judging.models import Run
from judging.results import detectors
from judging.results.detectors import MEAN, PROMPTS, GroupKey, VerdictsByItem

OTHER_ITEMS_REASON = "the prompts judged different items"


@dataclass(frozen=True)
class DetectorLine:
    """One run over a group of items, or the mean over an evaluator's prompts there.

    `runs` and `said` have one entry per prompt. `reason` says why there is no mean: one of the four
    prompts is missing, or has a different number of items. `other_items`: the prompts have the same
    number of items, but not the same items.
    """

    runs: tuple[Run, ...]
    strategy: str
    group: Mapping[str, str]
    said: tuple[VerdictsByItem, ...]
    reason: str = ""
    other_items: bool = False

    @property
    def n(self) -> int:
        """The number of items of the prompt with the fewest items."""
        return min(map(len, self.said))

    @property
    def common(self) -> list[int]:
        """The items that all prompts have, sorted."""
        return sorted(set.intersection(*(set(said) for said in self.said)))

    def head(self) -> dict[str, Any]:
        """The first columns of its row."""
        is_run = self.strategy != MEAN
        return {
            "run": self.runs[0].number if is_run else None,
            "endpoint": self.runs[0].endpoint.name,
            "strategy": self.strategy,
        }


def build_lines(
    runs: Sequence[Run], said: Mapping[int, Mapping[GroupKey, VerdictsByItem]], by: Sequence[str]
) -> Iterator[DetectorLine]:
    """Build a line for every run and every group that the run judged, then the means, in the order
    of `detector`."""
    for run in runs:
        for group, found in sorted(said[run.pk].items()):
            yield DetectorLine((run,), run.strategy.slug, _group_columns(by, group), (found,))
    for of_one in detectors.group_by_endpoint(runs).values():
        for group, asked in sorted(group_by_prompt(of_one, said).items()):
            if len(asked) > 1:
                yield _mean_line(_group_columns(by, group), asked)


def last_by_group(
    runs: Sequence[Run], said: Mapping[int, Mapping[GroupKey, VerdictsByItem]]
) -> dict[GroupKey, tuple[Run, VerdictsByItem]]:
    """Find the last run that judged the items of each group, with its verdicts. The parts of a
    study may be separate runs."""
    groups = ((group, run, judged) for run in runs for group, judged in said[run.pk].items())
    return {group: (run, judged) for group, run, judged in groups}


def group_by_prompt(
    runs: Sequence[Run], said: Mapping[int, Mapping[GroupKey, VerdictsByItem]]
) -> dict[GroupKey, dict[str, tuple[Run, VerdictsByItem]]]:
    """For each group, one evaluator's verdicts with each of the four prompts that it was given."""
    found: dict[GroupKey, dict[str, tuple[Run, VerdictsByItem]]] = defaultdict(dict)
    for slug in PROMPTS:
        of_prompt = last_by_group([run for run in runs if run.strategy.slug == slug], said)
        for group, one in of_prompt.items():
            found[group][slug] = one
    return found


def _group_columns(by: Sequence[str], group: GroupKey) -> dict[str, str]:
    return dict(zip(by, group, strict=True))


def _mean_line(
    group: Mapping[str, str], asked: Mapping[str, tuple[Run, VerdictsByItem]]
) -> DetectorLine:
    runs, said = zip(*asked.values(), strict=True)
    reason = detectors.why_no_mean(asked, map(len, said))
    other = len({frozenset(one) for one in said}) > 1
    return DetectorLine(tuple(runs), MEAN, group, tuple(said), reason, other)
