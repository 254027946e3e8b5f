"""Versions of the program, libraries, database schema and methods that compute the figures."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata

from django.conf import settings
from django.db.migrations.loader import MigrationLoader

LIBRARIES = ("Django", "numpy", "scipy", "altair", "vl-convert-python")
APPS = frozenset({"annotation", "judging"})

FIRST_VERSION = 1


@dataclass(frozen=True)
class Method:
    """A method by which some columns of tables are computed from counts.

    If you change a method so that the same data give different figures, increase its `version` and
    add a line to the changelog. `columns` are the columns that it computes, by table. `rows` are
    the key columns of the tables in which the method also decides which rows exist, and their
    order. Counts and rates belong to no method: they must always equal the counts and rates in an
    archive.
    """

    version: int
    columns: Mapping[str, tuple[str, ...]]
    rows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _interval_columns(*figures: str) -> tuple[str, ...]:
    return tuple(f"{figure}_{end}" for figure in figures for end in ("low", "high", "reason"))


def _ends(*figures: str) -> tuple[str, ...]:
    return tuple(f"{figure}_{end}" for figure in figures for end in ("low", "high"))


METHODS: dict[str, Method] = {
    "sign-flip test": Method(
        6,
        {
            "compare": (
                "low", "high", "p", "p_holm", "q", "standard_error", "shows", "letters_a",
                "letters_b", "reason", "false_alarm_p", "j_p",
                *_interval_columns("false_alarm", "j"),
            ),
            "evaluators": ("letters",),
        },
    ),
    "blind spots": Method(
        5,
        {
            "blindspots": (
                "difference_low", "difference_high", "p", "q", "tests", "blind", "reason",
            )
        },
        {"blindspots": ("run", "slice")},
    ),
    "intervals": Method(
        3,
        {
            "agreement": ("low", "high", "reason"),
            "alignment": _interval_columns(
                "rho", "pearson", "tau", "rmse", "mae", "bias", "accuracy002", "mean_people",
                "mean_evaluator",
            ),
            "ceiling": (
                "people_low", "people_high", "evaluator_low", "evaluator_high", "low", "high",
                "reason",
            ),
            "changes": ("low", "high", "reason"),
            "detector_ranges": ("low", "high", "reason"),
            "doses": _interval_columns("penalty"),
            "penalties": _interval_columns("penalty"),
            "sensitivity": _interval_columns("j"),
            "soft_labels": _interval_columns("pearson", "rho", "brier"),
        },
    ),
    "intervals of rates": Method(
        2,
        {
            **dict.fromkeys(
                (
                    "verdicts", "order_effect", "error_kinds", "detector_ranges",
                    "by_score", "majority", "agreement", "pairwise", "pairwise_pairs",
                    "pairwise_position", "audit_classes", "soft_shares",
                ),
                ("low", "high"),
            ),
            "undetected": ("low", "high", *_ends("both_good")),
            "blindspots": ("low", "high", "rest_low", "rest_high"),
            "board": (
                *_ends("share", "corrected", "surgicality", "detectability"), "more",
            ),
            "doses": _ends("detection"),
            "explanations": ("low", "high", *_ends("found", "false_credit", "rate_corrected")),
            "making": _ends("share"),
            "penalties": _ends("detection"),
            "repeats": ("low", "high", *_ends("first", "changing")),
            "soft_labels": _ends("agreement", "people", "highest"),
            "strength_points": _ends("precision", "recall"),
            **dict.fromkeys(
                ("evaluators", "sensitivity"), _ends("detection", "false_alarm", "j")
            ),
        },
    ),
    "accuracy of study 002": Method(
        2,
        {
            "alignment": ("accuracy002", *_interval_columns("accuracy002")),
            "alignment_groups": ("pooled", "mean", "sd", "groups", "undefined", "reason"),
        },
    ),
    "correlations over evaluators": Method(
        1,
        {
            "strength": (
                *_interval_columns("pearson", "rho"), "pearson_p", "rho_p",
            )
        },
    ),
    "values of fields": Method(
        2, {"dataset": ()}, {"dataset": ("ability", "category", "of", "value")}
    ),
    "d′": Method(2, {"sensitivity": ("d_prime", *_interval_columns("d_prime"))}),
    "alternative annotator test": Method(
        2,
        {"alt_test": ("evaluator", "people", "p", "q", "wins", "passed", "reason")},
        {
            "alt_test": (
                "run", "metric", "ability", "category", "off_scale", "epsilon", "rater",
            )
        },
    ),
    "money": Method(2, {
            "cost": ("cost", "per_detected", "paid"),
            "evaluators": ("cost_per_1000",),
        },
    ),
}  # fmt: skip


def method_versions() -> dict[str, int]:
    """The version of each method."""
    return {name: method.version for name, method in METHODS.items()}


def changed_methods(table: str, then: Mapping[str, int]) -> Iterator[str]:
    """Return the methods of a table whose version differs from that in the archive. If the archive
    does not list a method, its version is the first.
    """
    for name, method in METHODS.items():
        if table in method.columns and then.get(name, FIRST_VERSION) != method.version:
            yield name


def program_version() -> str:
    """This program's version."""
    text = (settings.BASE_DIR / "pyproject.toml").read_text(encoding="utf-8")
    return str(tomllib.loads(text)["project"]["version"])


def library_versions() -> dict[str, str]:
    """The versions of the libraries that figures and charts depend on."""
    return {name: metadata.version(name) for name in LIBRARIES}


def last_migrations() -> dict[str, str]:
    """The last migration of each app."""
    found = MigrationLoader(None).graph.leaf_nodes()
    return {app: name for app, name in found if app in APPS}
