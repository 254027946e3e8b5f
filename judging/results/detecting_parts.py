"""What the lines of the `detector` table are made of: verdicts, by one prompt or by four."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judging.models import Run
from judging.results import detecting
from judging.results.detecting import MEAN, PROMPTS, Group, Judged

OTHER_ITEMS = "the prompts judged different items"


@dataclass(frozen=True)
class Part:
    """One run over a group of items, or the mean over an evaluator's prompts there.

    `runs` and `said` have an entry a prompt. `reason` says why there is no mean: one of the four
    prompts is not there, or has another number of items. `other_items`: the prompts have as many
    items, but not the same ones.
    """

    runs: tuple[Run, ...]
    strategy: str
    group: Mapping[str, str]
    said: tuple[Judged, ...]
    reason: str = ""
    other_items: bool = False

    @property
    def n(self) -> int:
        return min(map(len, self.said))

    @property
    def common(self) -> list[int]:
        """The items that all prompts have, in their order."""
        return sorted(set.intersection(*(set(said) for said in self.said)))

    def head(self) -> dict[str, Any]:
        """The columns that its row begins with."""
        is_run = self.strategy != MEAN
        return {
            "run": self.runs[0].number if is_run else None,
            "endpoint": self.runs[0].endpoint.name,
            "strategy": self.strategy,
        }


def parts(
    runs: Sequence[Run], said: Mapping[int, Mapping[Group, Judged]], by: Sequence[str]
) -> Iterator[Part]:
    """Every run with every group that it judged, then the means, in the order of `detector`."""
    for run in runs:
        for group, found in sorted(said[run.pk].items()):
            yield Part((run,), run.strategy.slug, _named(by, group), (found,))
    for of_one in detecting.by_endpoint(runs).values():
        for group, asked in sorted(by_prompt(of_one, said).items()):
            if len(asked) > 1:
                yield _mean(_named(by, group), asked)


def last(
    runs: Sequence[Run], said: Mapping[int, Mapping[Group, Judged]]
) -> dict[Group, tuple[Run, Judged]]:
    """Of each group the last run that judged items of it, and what it said of them: parts of a
    study may be runs of their own."""
    groups = ((group, run, judged) for run in runs for group, judged in said[run.pk].items())
    return {group: (run, judged) for group, run, judged in groups}


def by_prompt(
    runs: Sequence[Run], said: Mapping[int, Mapping[Group, Judged]]
) -> dict[Group, dict[str, tuple[Run, Judged]]]:
    """Of each group what one evaluator said by each of the four prompts that it was asked by."""
    found: dict[Group, dict[str, tuple[Run, Judged]]] = defaultdict(dict)
    for slug in PROMPTS:
        of_prompt = last([run for run in runs if run.strategy.slug == slug], said)
        for group, one in of_prompt.items():
            found[group][slug] = one
    return found


def _named(by: Sequence[str], group: Group) -> dict[str, str]:
    return dict(zip(by, group, strict=True))


def _mean(group: Mapping[str, str], asked: Mapping[str, tuple[Run, Judged]]) -> Part:
    runs, said = zip(*asked.values(), strict=True)
    reason = detecting.lacking(asked, map(len, said))
    other = len({frozenset(one) for one in said}) > 1
    return Part(tuple(runs), MEAN, group, tuple(said), reason, other)
