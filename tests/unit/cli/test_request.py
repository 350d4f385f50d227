"""What the command line asked of a run."""

from __future__ import annotations

import pytest

from graphloop.cli.request import ResumeRequest, RunRequest, refuse_twice
from graphloop.errors import ConfigError


def test_what_is_not_given_stays_the_targets_own() -> None:
    """A default here would override what the file says, unasked."""
    request = RunRequest(target="agent.py")

    assert {request.model, request.max_steps, request.store, request.approve} == {None}
    assert request.as_json is False


def test_what_says_nothing_is_refused_all_at_once() -> None:
    """An unset shell variable must not choose the model, the question or the store by accident."""
    request = RunRequest(target="", prompt=" ", model="", script="", base_url="", store="\t")

    with pytest.raises(
        ConfigError,
        match="FILE_OR_PROMPT and PROMPT and --model and --script and --base-url and --store to",
    ):
        request.refuse_blanks()


def test_instructions_may_be_empty() -> None:
    """That takes the target's own away, which is an effect; what is not given is no blank."""
    RunRequest(target="agent.py", instructions="").refuse_blanks()


def test_taking_a_run_up_refuses_blanks_too() -> None:
    """An empty id would otherwise be the beginning of every id."""
    with pytest.raises(ConfigError, match="RUN and --target and --base-url to say something"):
        ResumeRequest(run="", target=" ", base_url="").refuse_blanks()
    ResumeRequest(run="r").refuse_blanks()


def test_a_run_that_is_named_twice_is_refused() -> None:
    """A picture of two runs would show one."""
    refuse_twice(["a", "b"])

    with pytest.raises(ConfigError, match="--run names 'a' twice"):
        refuse_twice(["a", "b", "a"])
