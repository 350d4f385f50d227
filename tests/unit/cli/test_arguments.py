"""Arguments of several commands are the same in each of them."""

from __future__ import annotations

import pytest

from graphloop.cli.arguments import STORE
from tests.unit.cli.command_line import graphloop


@pytest.mark.parametrize("command", ["run", "resume"])
def test_a_reason_can_be_given_to_begin_and_to_go_on(command: str) -> None:
    """Both drive a run."""
    assert "--unbounded REASON" in graphloop(command, "--help").stdout


@pytest.mark.parametrize("command", ["run", "resume", "replay", "fork", "approve", "runs"])
def test_where_runs_are_kept_can_be_set_once_for_all(command: str) -> None:
    """By an environment variable."""
    assert STORE in graphloop(command, "--help").stdout


WITH = ("run", "draw", "check", "diff", "fuzz", "schema", "resume", "replay", "fork")


@pytest.mark.parametrize("command", WITH)
def test_whatever_loads_a_file_can_be_told_who_registers_what_it_names(command: str) -> None:
    """Otherwise a file with a node of one's own would run from Python only."""
    assert "--with FILE" in graphloop(command, "--help").stdout
