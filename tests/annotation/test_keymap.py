"""Keys of the label screen that a person chose."""

import pytest

from annotation.accounts import keymap


def test_only_what_differs_from_the_usual_keys_is_kept() -> None:
    pressed = {"u": " E ", "s": "s", "d": "", "no-action": "x"}
    assert keymap.extract_changes(pressed) == {"u": "e"}
    assert keymap.key_for_action({"u": "e"}, "u") == "e"
    assert keymap.key_for_action({"u": "e"}, "s") == "s"


@pytest.mark.parametrize(
    "changes, wrong",
    [
        ({"u": "x"}, []),
        ({"u": "é"}, []),
        ({"u": "ee"}, ["u"]),
        ({"u": " "}, ["u"]),
        ({"u": "\u00a0"}, ["u"]),
        ({"u": "\u200b"}, ["u"]),
        # That of another action, unless that one got another.
        ({"u": "s"}, ["u"]),
        ({"u": "s", "s": "u"}, []),
        ({"u": "x", "s": "x"}, ["s", "u"]),
    ],
)
def test_a_key_is_one_sign_that_no_other_action_has(
    changes: dict[str, str], wrong: list[str]
) -> None:
    assert sorted(keymap.find_problems(changes)) == wrong
