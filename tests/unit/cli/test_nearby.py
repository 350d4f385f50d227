"""Mistyped paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop.cli.nearby import TARGETS, not_found, suspect


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello", False),
        ("What is 1/2 of 3?", False),
        ("agents.py", True),
        ("examples/none", True),
        ("./x", True),
        ("wether", True),
        ("dangling", True),
        ("x" * 5_000, False),
    ],
)
@pytest.mark.usefixtures("desk")
def test_a_word_that_looks_like_a_path_is_no_question(text: str, *, expected: bool) -> None:
    """Asking a model about a mistyped file name costs money and answers nothing."""
    Path("weather").mkdir()
    Path("dangling").symlink_to("nowhere")

    assert suspect(text) is expected


def test_the_error_names_what_is_there(desk: Path) -> None:
    """The fix is usually one letter away."""
    for name in ("weather", ".git", "__pycache__"):
        (desk / "examples" / name).mkdir(parents=True)
    (desk / "examples" / "own.py").touch()
    (desk / "examples" / "notes.txt").touch()

    error = not_found("examples/wether")

    assert str(error) == (
        f"examples/wether: expected {TARGETS}, found nothing of that name. "
        "Did you mean 'examples/weather'? Found here: examples/own.py, examples/weather."
    )


def test_a_topology_s_file_is_one_of_what_is_expected(desk: Path) -> None:
    """It is found by its own kind: recorded replies are YAML, too, and nobody's target."""
    for name in ("support.yaml", "b.json", "own.py", "notes.txt"):
        (desk / name).touch()

    assert str(not_found("suport.yaml")) == (
        "suport.yaml: expected a directory, a .py file, or a topology (.yaml, .yml, .json), found "
        "nothing of that name. Did you mean 'support.yaml'? "
        "Found here: b.json, support.yaml, own.py."
    )
    assert str(not_found("none.py", expected="a .py file")) == (
        "none.py: expected a .py file, found nothing of that name. Did you mean 'own.py'? "
        "Found here: own.py."
    )


def test_a_missing_folder_is_named_before_what_is_in_it(desk: Path) -> None:
    """`exmples/weather`: the mistake is in the first part."""
    (desk / "examples").mkdir()

    assert "Did you mean 'examples'?" in str(not_found("exmples/weather/agent.py"))

    (desk / "examples" / "weather").mkdir()
    assert "Did you mean 'examples/weather'?" in str(not_found("exmples/weather"))


def test_a_full_folder_is_not_listed_whole(desk: Path) -> None:
    """An error is read, a directory listing is not."""
    for number in range(12):
        (desk / f"a{number:02}").mkdir()

    assert "a09 and 2 more." in str(not_found("zzz.py"))


@pytest.mark.usefixtures("desk")
def test_an_empty_folder_is_called_empty() -> None:
    """There is nothing to suggest, and that is said."""
    assert str(not_found("zzz.py")).endswith("Nothing like it is in '.'.")


def test_a_link_that_leads_nowhere_is_not_suggested_for_itself(desk: Path) -> None:
    """What was typed is right, so the message must say what is wrong with it."""
    (desk / "loop.py").symlink_to("gone.py")

    assert str(not_found("loop.py")) == (
        f"loop.py: expected {TARGETS}, found a link that leads nowhere. Nothing like it is in '.'."
    )


@pytest.mark.usefixtures("desk")
def test_a_word_that_is_no_path_is_suggested_where_it_is_understood() -> None:
    """`agent` is a word of two commands; elsewhere it would be a question."""
    assert "Did you mean 'agent'?" in str(not_found("agnet", ("agent",)))
    assert "Did you mean" not in str(not_found("agnet"))
