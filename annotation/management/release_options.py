"""What commands that make items have in common: who gets these."""

from argparse import ArgumentParser


def add_arguments(parser: ArgumentParser, *, accept: str) -> None:
    """Arguments that `Vetting.of` reads; `accept` says in words what is accepted unseen."""
    parser.add_argument(
        "--share",
        type=int,
        default=100,
        metavar="PERCENT",
        help="so many of each category people get at once, drawn at random; the rest waits",
    )
    parser.add_argument("--accept", action="store_true", help=accept)
    parser.add_argument(
        "--aside", nargs="+", default=[], metavar="FLAG", help="what is flagged so waits"
    )
    parser.add_argument("--job", type=int, metavar="ID", help="as a job asks; a worker starts it")
