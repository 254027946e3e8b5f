"""The command `blindspot` of an installed package: manage.py without a checkout."""

import os
import sys
from importlib import import_module
from pathlib import Path

HELP = """Usage: blindspot COMMAND

  demo [--port 8001]        set up and serve an example project
  serve [--port 8001]       serve what is in the database
  manage COMMAND ...        any other command: where the documentation says
                            `python manage.py`, type `blindspot manage`

The documentation is at /docs/ of the served site. Data is stored in
{folder}; set VAR_DIR for another folder.
"""


def main() -> None:
    """Run a command of manage.py. All packages lie in this one, so it is put on the path."""
    top = Path(__file__).resolve().parent.parent
    sys.path.insert(0, str(top))
    os.environ.setdefault("VAR_DIR", str(data_folder()))
    name, *words = sys.argv[1:] or ["help"]
    match name:
        case "demo":
            sys.argv[1:] = ["demo", "--serve", *words]
        case "serve":
            pass
        case "manage":
            sys.argv = ["blindspot manage", *words]
        case _:
            sys.stdout.write(HELP.format(folder=os.environ["VAR_DIR"]))
            sys.exit(0 if name in {"help", "--help", "-h"} else 2)
    import_module("manage").main()


def data_folder() -> Path:
    """Where a person's programs keep data on this kind of system."""
    home = Path.home()
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "Blindspot"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local")) / "Blindspot"
    return Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "blindspot"
