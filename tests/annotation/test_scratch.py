"""Temporary files that a killed process left behind."""

import os
import time
from pathlib import Path
from typing import Any

from annotation.jobs import scratch


def test_what_has_not_changed_for_a_day_is_deleted_and_nothing_else(
    settings: Any, tmp_path: Path
) -> None:
    settings.VAR_DIR, settings.FILE_UPLOAD_TEMP_DIR = tmp_path, tmp_path / "scratch"
    (tmp_path / "scratch" / "old-folder").mkdir(parents=True)
    (tmp_path / "imports").mkdir()
    old = ["scratch/old.upload", "scratch/old-folder/rows", "imports/coming-old.csv"]
    kept = ["scratch/new.upload", "imports/coming-new.csv", "imports/import-1.csv", "secret_key"]
    for name in old + kept:
        (tmp_path / name).touch()
    yesterday = time.time() - scratch.KEPT_SECONDS - 60
    for name in [*old, "scratch/old-folder", "imports/import-1.csv", "secret_key"]:
        os.utime(tmp_path / name, (yesterday, yesterday))
    scratch.delete_leftovers()
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert found == set(kept)
    assert not (tmp_path / "scratch" / "old-folder").exists()
