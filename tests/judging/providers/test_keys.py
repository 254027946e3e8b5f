import pytest

from judging.evaluators.keys import is_key_set, read_key
from judging.evaluators.providers.errors import MissingKey

HELD = {
    "OPENAI_API_KEY": " sk-1 \n",
    "EMPTY_API_KEY": " ",
    "TWO_API_KEY": "a\nb",
    "SECRET_KEY": "s",
}


def test_a_key_is_read_from_the_variable_without_space_round_it():
    assert read_key("OPENAI_API_KEY", HELD) == "sk-1"


def test_no_variable_means_no_key():
    assert read_key("", HELD) == ""


def test_the_environment_of_the_process_is_the_default(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "from-outside")
    assert read_key("SOME_API_KEY") == "from-outside"


def test_a_key_is_set_if_it_is_there_and_can_be_sent(monkeypatch):
    for name, value in {"GOOD": "sk-1", "EMPTY": " ", "TWO": "a b", "ODD": "ключ"}.items():
        monkeypatch.setenv(f"{name}_API_KEY", value)
    names = ("GOOD_API_KEY", "EMPTY_API_KEY", "TWO_API_KEY", "ODD_API_KEY", "NO_API_KEY", "")
    assert [is_key_set(name) for name in names] == [True, False, False, False, False, False]


@pytest.mark.parametrize(
    "variable",
    [
        "SECRET_KEY",
        "DATABASE_URL",
        "PATH",
        "_API_KEY",
        "openai_api_key",
        "X_API_KEY\n",
        "X_API_KEY_2",
        "9X_API_KEY",
    ],
)
def test_other_variables_are_never_read(variable):
    with pytest.raises(MissingKey, match="ends in _API_KEY"):
        read_key(variable, HELD | {variable: "value"})


@pytest.mark.parametrize("variable", ["ABSENT_API_KEY", "EMPTY_API_KEY"])
def test_a_missing_key_says_which_variable_to_set(variable):
    with pytest.raises(MissingKey, match=f"{variable} is not set. Set it"):
        read_key(variable, HELD)


def test_a_key_that_would_break_the_header_is_not_shown():
    with pytest.raises(MissingKey) as caught:
        read_key("TWO_API_KEY", HELD)
    assert "a\nb" not in str(caught.value)
