"""The page of the strategies that come with Blindspot, from the files of `judging/strategies/`."""

from collections.abc import Iterator, Mapping

from judging import strategies
from judging.strategies import Strategy, descriptions
from judging.strategies.catalogue import RECOMMENDED
from operation.docs.reference import markdown
from operation.docs.reference.markdown import code, codes, plain


def write_page() -> str:
    """The page as Markdown."""
    frames = descriptions.FRAME_DESCRIPTIONS
    return markdown.page(
        "Strategies",
        "How evaluators are asked: every strategy that comes with Blindspot, with its prompts word "
        "for word. Names in double braces are replaced by the texts of an item. A project can copy "
        "a strategy and change it on the page *Strategies*.",
        "## Overview",
        markdown.table(
            ("group", "shows", "strategies"),
            (
                (words.title, words.shows, codes(one.slug for one in list_of_frame(frame)))
                for frame, words in frames.items()
            ),
        ),
        *(part for frame in frames for part in _frame(frame)),
    )


def list_of_frame(frame: str) -> list[Strategy]:
    """The strategies that show these texts, by name."""
    return [one for _, one in sorted(strategies.load_all().items()) if one.frame == frame]


def _frame(frame: str) -> Iterator[str]:
    words = descriptions.FRAME_DESCRIPTIONS[frame]
    yield f"## {words.title}"
    yield f"**Shows**: {words.shows}"
    for strategy in list_of_frame(frame):
        yield from _strategy(strategy)


def _strategy(strategy: Strategy) -> Iterator[str]:
    yield f"### {code(strategy.slug)}"
    yield f"**{plain(strategy.title)}.** {RECOMMENDED.get(strategy.slug, '')}".strip()
    yield plain(markdown.read_head(strategies.read_source(strategy.slug)))
    yield markdown.facts(_facts(strategy))
    yield from _parts(strategy)
    for number in range(strategy.last_step + 1):
        step = strategy.step(number)
        for title, text in (("System prompt", step.system), ("Prompt", step.prompt)):
            if text:
                yield f"{title}{f' of step {number + 1}, {code(step.name)}' if step.name else ''}:"
                yield markdown.fence(text)


def _facts(strategy: Strategy) -> Iterator[tuple[str, str]]:
    yield "Asks for", plain(descriptions.describe_answers(strategy))
    yield "Outcome", plain(" ".join(descriptions.describe_decision(strategy)))
    yield "Parsing", plain(descriptions.describe_parsing(strategy))
    yield "Parser", code(strategy.parser) if strategy.parser else ""
    yield "Category", code(strategy.category) if strategy.category else ""
    named = ", ".join(f"{name} = {value}" for name, value in sorted(strategy.parameters.items()))
    yield "Parameters", code(named) if named else ""
    yield "Examples in the prompt", str(strategy.examples or "")
    yield "Source", f"study {plain(strategy.study)}" if strategy.study else ""
    yield "Wording", plain(descriptions.describe_wording(strategy))


def _parts(strategy: Strategy) -> Iterator[str]:
    """What the prompts show by name: axes, metrics and draws."""
    yield markdown.table(
        ("axis", "text", "decides for items of"),
        (
            (code(one.slug), f"**{plain(one.title)}.** {plain(one.text)}", codes(one.abilities))
            for one in strategy.axes
        ),
    )
    yield markdown.facts(
        (f"Rubric of {code(one.slug)}", _points(one.points)) for one in strategy.axes
    )
    yield markdown.facts(
        (f"Rules of {code(one.slug)}", plain(" ".join(one.rules))) for one in strategy.axes
    )
    yield markdown.table(
        ("metric", "title", "text", "scale"),
        (
            (code(one.slug), plain(one.title), plain(one.text), _points(one.points)
             or descriptions.describe_scale(one.scale))
            for one in strategy.metrics
        ),
    )  # fmt: skip
    yield markdown.table(
        ("draw", "option", "percent of the items", "text"),
        (
            (code(draw.name), code(option.name), f"{share:.3g}", plain(option.text))
            for draw in strategy.draws
            for option, share in draw.percentages
        ),
    )


def _points(points: Mapping[float, str]) -> str:
    return " ".join(f"**{value:g}** {plain(text)}" for value, text in sorted(points.items()))
