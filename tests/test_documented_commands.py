"""What the documents tell people to type is what the commands take."""

import re
import shlex
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md"))]
DOCUMENTS += [ROOT / "examples" / "README.md"]
TYPED = re.compile(r"python manage\.py (\w[^`|\n]*)")
COMMANDS = sorted(
    {
        (document.relative_to(ROOT).as_posix(), line.strip())
        for document in DOCUMENTS
        for line in TYPED.findall(document.read_text(encoding="utf-8"))
    }
)


@pytest.mark.parametrize(("document", "line"), COMMANDS)
def test_a_command_in_a_document_can_be_typed(document: str, line: str) -> None:
    name, *words = shlex.split(line.replace("NUMBER", "1"))
    app = get_commands()[name]
    command = app if not isinstance(app, str) else load_command_class(app, name)
    # Raises CommandError for an option or a choice that there is not.
    command.create_parser("manage.py", name).parse_args(words)


def test_the_documents_name_commands_at_all() -> None:
    assert len(COMMANDS) > 10
