"""Temporary files, which are left behind when a process is killed."""

import shutil
import time

from django.conf import settings

# No temporary file is used for so long.
KEPT_SECONDS = 24 * 3600


def delete_leftovers() -> None:
    """Delete temporary files and folders that have not changed for a day, of uploads and of what
    is unpacked. A file that somebody else deletes meanwhile is no error."""
    since = time.time() - KEPT_SECONDS
    coming = (settings.VAR_DIR / "imports").glob("coming-*")
    for path in (*settings.FILE_UPLOAD_TEMP_DIR.iterdir(), *coming):
        if path.lstat().st_mtime < since:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
