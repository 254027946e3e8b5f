"""Options of all commands that generate items: they set how many items annotators get at once."""

from argparse import ArgumentParser


def add_arguments(parser: ArgumentParser, *, accept: str) -> None:
    """Add the arguments that `ReleasePolicy.of` reads; `accept` is the help text of --accept."""
    parser.add_argument(
        "--share",
        type=int,
        default=100,
        metavar="PERCENT",
        help="percentage of each category to release now, drawn at random; the rest is held back",
    )
    parser.add_argument("--accept", action="store_true", help=accept)
    parser.add_argument(
        "--aside",
        nargs="+",
        default=[],
        metavar="FLAG",
        help="hold back all items with one of these flags",
    )
    parser.add_argument("--job", type=int, metavar="ID", help="run this job; used by workers")
