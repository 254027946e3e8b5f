"""Settings of usual evaluators, to start a new endpoint from."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

PRESETS_FILE = Path(__file__).with_name("presets.toml")


@dataclass(frozen=True)
class Preset:
    """What is known of a kind of evaluator; see `presets.toml`."""

    slug: str
    title: str
    why: str
    source: str
    values: Mapping[str, Any]


@cache
def load_presets() -> Mapping[str, Preset]:
    """Return the presets by slug, in their order on the page."""
    found = tomllib.loads(PRESETS_FILE.read_text(encoding="utf-8"))["preset"]
    return {one["slug"]: Preset(**one) for one in found}
