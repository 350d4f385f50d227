"""Where a command writes to: a file, or stdout."""

from __future__ import annotations

import pytest

from graphloop.cli.output import MACHINES, PICTURES, printed, put, refuse_mixed, tell_found
from graphloop.errors import ConfigError


@pytest.mark.parametrize(
    ("given", "suffix"),
    [
        ("-", ".mmd"),
        *((f"-{one}", one) for one in (*PICTURES, *MACHINES)),
        ("-.TXT", ".txt"),
        (None, None),
        ("a.txt", None),
        ("-a.txt", None),
        ("./-.txt", None),
        ("-.d/a.png", None),
    ],
)
def test_a_dash_and_a_suffix_are_stdout(given: str | None, suffix: str | None) -> None:
    """Everything else is the name of a file."""
    assert suffix == printed("-o", given, (*PICTURES, *MACHINES))


@pytest.mark.parametrize("given", ["-.png", "-.pdf", "-.bmp", "-.", "-.x.svg", "-.scxml"])
def test_what_stdout_cannot_take_is_refused(given: str) -> None:
    """No file of such a name is wanted: its name looks like an option."""
    with pytest.raises(ConfigError) as caught:
        printed("--draw", given, PICTURES)

    assert "--draw" in str(caught.value)
    assert "-.mmd, -.dot, -.txt, -.svg" in str(caught.value)
    assert f"./{given}" in str(caught.value)


def test_two_things_on_stdout_are_refused() -> None:
    """Nobody could take them apart."""
    refuse_mixed({"--json": True, "--draw": False})
    with pytest.raises(ConfigError, match="--json and --draw would both be printed"):
        refuse_mixed({"--json": True, "--sarif": False, "--draw": True})


def test_what_was_found_is_told_beside_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """So stdout can be sent to a file."""
    tell_found("good", beside=None)
    put("a -> b\n\n", ".dot")
    put("a --> b", ".txt")
    tell_found("bad", beside=".txt")

    assert ("good\na -> b\na --> b\n", "bad\n") == tuple(capsys.readouterr())
