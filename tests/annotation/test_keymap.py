"""Keys of the label screen that a person chose."""

import pytest

from annotation.accounts import keymap


def test_only_what_differs_from_the_usual_keys_is_kept() -> None:
    pressed = {"undo": " E ", "skip": "s", "difference": "", "no-action": "x"}
    assert keymap.extract_changes(pressed) == {"undo": "e"}
    pressed = keymap.hotkeys({"undo": "e"})
    assert (pressed["undo"], pressed["skip"]) == ("e", "s")


@pytest.mark.parametrize(
    "changes, wrong",
    [
        ({"undo": "x"}, []),
        ({"undo": "é"}, []),
        ({"undo": "ee"}, ["undo"]),
        ({"undo": " "}, ["undo"]),
        ({"undo": "\u00a0"}, ["undo"]),
        ({"undo": "\u200b"}, ["undo"]),
        # That of another action, unless that one got another.
        ({"undo": "s"}, ["undo"]),
        ({"undo": "s", "skip": "u"}, []),
        ({"undo": "x", "skip": "x"}, ["skip", "undo"]),
    ],
)
def test_a_key_is_one_sign_that_no_other_action_has(
    changes: dict[str, str], wrong: list[str]
) -> None:
    assert sorted(keymap.find_problems(changes)) == wrong


def test_a_new_default_takes_no_key_that_somebody_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    key = next(key for key in "zyxw" if key not in keymap.DEFAULT_KEYS.values())
    chosen = {"skip": key}
    assert keymap.hotkeys(chosen) == keymap.DEFAULT_KEYS | chosen
    monkeypatch.setitem(keymap.DEFAULT_KEYS, "undo", key)
    pressed = keymap.hotkeys(chosen)
    assert (pressed["skip"], pressed["undo"]) == (key, keymap.DEFAULT_KEYS["skip"])
    assert len({*pressed.values()}) == len(pressed)
    assert keymap.find_problems(chosen), "but nobody can choose it now"
