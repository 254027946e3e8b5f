import secrets
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from annotation.management.files import command_error, get_project
from annotation.models import Project
from judging.errors import Refused
from judging.management import run_commands
from judging.models import Run, StrategyVersion
from judging.runs import choices, derived, start
from judging.runs.amounts import format_estimate, format_range
from judging.runs.lifecycle import RunConfig
from judging.runs.run_config import RunOverrides
from judging.runs.start import NewRuns, PlannedRun
from judging.strategies import draws


class Command(BaseCommand):
    help = (
        "Start a run: send the labelled items of a project to an evaluator. With the strategy "
        "majority, minority-veto, weighted-votes or mean, combine the verdicts of existing runs "
        "instead."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", required=True, metavar="SLUG", help="the project")
        parser.add_argument("--strategy", required=True, metavar="SLUG", help="how to ask")
        parser.add_argument(
            "--endpoint", metavar="NAME", help="the evaluator; not used to combine runs"
        )
        parser.add_argument(
            "--over",
            type=int,
            nargs="+",
            action="extend",
            metavar="RUN",
            help="the runs to combine, or the run whose explanations are checked",
        )
        parser.add_argument(
            "--weights",
            type=float,
            nargs="+",
            metavar="WEIGHT",
            help="for weighted-votes: a weight for each run of --over, in their order",
        )
        _add_items(parser)
        _add_asking(parser)
        _add_description(parser)
        parser.add_argument(
            "--estimate",
            action="store_true",
            help="show calls and cost, start nothing",
        )
        parser.add_argument("--wait", action="store_true", help=run_commands.WAIT_HELP)

    def handle(self, *args: Any, **options: Any) -> None:
        run = self._start(options)
        if run is None:
            return
        items = run_commands.format_items(run)
        self.stdout.write(f"Run {run.number} of {options['project']}: {items}")
        run_commands.continue_run(run, self.stderr, wait=options["wait"])

    def _start(self, options: dict[str, Any]) -> Run | None:
        """Start the run and return it, or None if only an estimate was requested."""
        if options["limit"] is not None and options["limit"] < 1:
            raise command_error("--limit must be 1 or more.")
        if options["seed"] is not None and not 0 <= options["seed"] < 2**48:
            raise command_error("--seed must be between 0 and 2^48 - 1.")
        project = get_project(options["project"])
        over = run_commands.get_runs(project, options["over"] or [])
        try:
            strategy = choices.get_version(project, options["strategy"])
            if strategy.strategy().frame == "fold":
                _check_fold(options)
                return derived.derive_run(
                    project,
                    strategy=strategy,
                    sources=over,
                    weights=_parse_weights(options),
                    **_description(options),
                )
            if options["weights"]:
                raise Refused("Only weighted votes have weights. Leave out --weights.")
            if len(over) > 1:
                raise Refused(
                    "Explanations of only one run can be checked. Give one run with --over."
                )
            wish = _wish(project, strategy, over[0] if over else None, options)
            if options["estimate"]:
                self._say(start.estimate_runs(project, wish)[0])
                return None
            return start.start_runs(project, wish, None)[0]
        except Refused as error:
            raise command_error(str(error)) from error

    def _say(self, planned: PlannedRun) -> None:
        """Print how many requests a run would send and what it would cost."""
        found, by_pilot = planned.estimate, planned.estimate.by_pilot
        price = ""
        if by_pilot and found.price and found.price.high:
            interval = format_range(found.price.low, found.price.high)
            price = f"{format_estimate(by_pilot.value)} ({interval})"
        requests = run_commands.format_requests(found, price)
        self.stdout.write(f"{found.items} items, {found.calls} calls, {requests}")
        if planned.language:
            self.stdout.write(f"Translates into {planned.language}")
        if planned.along:
            self.stdout.write(f"Asks along {planned.along}")
        run_commands.write_shortages(self.stdout, planned.shortages, planned.refusal)
        for line in found.drawn_lines:
            self.stdout.write(f"Draws {line}")
        if same := found.same_items:
            self.stdout.write(
                f"{same.used} of the {same.items} items of run {same.number} can be used,"
                f" {same.changed} of them with a text that has changed since"
            )


def _add_items(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("which items")
    add = group.add_argument
    add("--limit", type=int, metavar="N", help="a random sample of N items")
    add("--seed", type=int, metavar="N", help="the same seed draws the same sample")
    add(
        "--same-as",
        type=int,
        metavar="RUN",
        help="the items of this run, with their current texts; the other options choose among them",
    )
    add("--duplicates", action="store_true", help="include exact duplicates")
    add(
        "--unlabelled",
        action="store_true",
        help="include items without a final label; only for error detection (for corrected rates) "
        "and for ROUGE-L of responses (to choose tasks)",
    )
    add("--category", nargs="+", default=[], metavar="SLUG", help="only items of these categories")
    add("--ability", nargs="+", default=[], metavar="SLUG", help="only items of these abilities")
    add("--keys", metavar="FILE", help="only items whose keys are in this file, one per line")
    run_commands.add_while_labelling(group)


def _add_asking(parser: ArgumentParser) -> None:
    add = parser.add_argument_group("how to ask").add_argument
    add("--cap", metavar="AMOUNT", help="stop before this much is spent")
    add("--samples", type=int, metavar="N", help="samples per call")
    add(
        "--votes",
        action="store_true",
        help="count samples as votes (majority) instead of repeats (share)",
    )
    add(
        "--axis",
        nargs="+",
        default=[],
        metavar="SLUG",
        help="only these axes; main (the default): the axis of the item's ability; all: every axis "
        "of the strategy, with several times the requests",
    )
    add(
        "--examples",
        type=int,
        metavar="N",
        help="show N labelled items as examples in the prompt; 0: none",
    )
    add(
        "--language",
        default="",
        metavar="NAME",
        help="translations: the language to translate into, such as Swedish",
    )
    add(
        "--parameters",
        default="",
        metavar="JSON",
        help="parameters that override those of the endpoint",
    )
    add(
        "--draw",
        nargs="+",
        action="extend",
        default=[],
        metavar="SHARES",
        help="shares of what a generator draws, in percent of the items or in proportion: "
        '"errors: 3=50, 4=50"; other options get none',
    )
    add(
        "--canary",
        action="store_true",
        help="start a canary: a fixed run to repeat later with ask_again",
    )


def _add_description(parser: ArgumentParser) -> None:
    add = parser.add_argument_group("name, tags and note").add_argument
    add("--name", default="", help="a short name for charts and tables, used once in the project")
    add(
        "--tag",
        nargs="+",
        action="extend",
        default=[],
        metavar="WORD",
        help="words to filter and choose runs by",
    )
    add("--note", default="", metavar="TEXT", help="a text for the run's page")


def _description(options: dict[str, Any]) -> dict[str, Any]:
    return {"name": options["name"], "tags": options["tag"], "note": options["note"]}


def _wish(
    project: Project, strategy: StrategyVersion, over: Run | None, options: dict[str, Any]
) -> NewRuns:
    items = choices.select_items(
        project,
        categories=options["category"],
        abilities=options["ability"],
        keys=_keys(options["keys"]),
    )
    chosen = run_commands.get_runs(project, [options["same_as"]] if options["same_as"] else [])
    try:
        shares = draws.parse_shares("\n".join(options["draw"]))
    except ValueError as error:
        raise command_error(f"--draw: {error}") from error
    own = RunOverrides(
        parameters=run_commands.parse_parameters(options["parameters"]),
        axes=tuple(options["axis"]) or None,
        votes=options["votes"] or None,
        examples=options["examples"],
        unlabelled=options["unlabelled"],
        draws=shares,
        language=options["language"].strip(),
    )
    if options["endpoint"] is None:
        raise command_error("Choose an evaluator: --endpoint NAME.")
    return NewRuns(
        strategies=[strategy],
        endpoints=[choices.get_endpoint(options["endpoint"])],
        config=RunConfig(
            seed=secrets.randbits(48) if options["seed"] is None else options["seed"],
            limit=options["limit"],
            cap=run_commands.parse_cap(options["cap"]),
            with_duplicates=options["duplicates"],
            samples=options["samples"],
            over=over,
            same_as=chosen[0] if chosen else None,
            items=items,
            own=own,
            while_labelling=options["while_labelling"],
            **_description(options),
        ),
        canary=options["canary"],
    )


def _keys(path: str | None) -> tuple[str, ...]:
    if path is None:
        return ()
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise command_error(f"--keys {path}: {error}") from error
    return tuple(key for line in lines if (key := line.strip()))


def _check_fold(options: dict[str, Any]) -> None:
    """Raise an error for options that are only for runs of an evaluator."""
    asking = ("endpoint", "limit", "seed", "cap", "samples", "same_as")
    if given := [f"--{name.replace('_', '-')}" for name in asking if options[name] is not None]:
        raise command_error(
            f"Strategy {options['strategy']} combines runs. Leave out {', '.join(given)} and give "
            "the runs with --over."
        )


def _parse_weights(options: dict[str, Any]) -> dict[int, float]:
    """The weight of each run by number."""
    over, weights = options["over"] or [], options["weights"] or []
    if weights and len(weights) != len(set(over)):
        raise command_error("Give --weights one weight for each run of --over, and each run once.")
    return dict(zip(over, weights, strict=False))
