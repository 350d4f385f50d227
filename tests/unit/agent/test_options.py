"""Options: each is defined once, and explained where it is defined."""

from __future__ import annotations

import inspect
import re

import pytest

from graphloop import ModelPrice
from graphloop.agent.options import (
    Access,
    AgentOptions,
    Checks,
    Limits,
    Permissions,
    RunOptions,
    Sampling,
    clock_of,
    group,
    reject_unknown_options,
)
from graphloop.errors import ConfigError
from graphloop.values import Settings
from tests.strategies import wrong


def explained(options: type[object]) -> set[str]:
    """Return the names that a class of options explains: what stands before a colon."""
    # From 3.13 on, Python takes the margin off a docstring itself.
    manual = inspect.cleandoc(options.__doc__ or "")
    heads = re.findall(r"^((?:`\w+`(?:, )?)+):", manual, re.MULTILINE)
    return {name for head in heads for name in re.findall(r"`(\w+)`", head)}


@pytest.mark.parametrize("options", [RunOptions, AgentOptions])
def test_every_option_is_explained_where_it_is_defined(options: type[object]) -> None:
    """`help(AgentOptions)` is the manual of the options; there is no other."""
    inherited = RunOptions.__annotations__ if options is AgentOptions else {}

    assert options.__annotations__.keys() - inherited.keys() == explained(options)


def test_an_agent_takes_all_that_a_graph_takes() -> None:
    """Whoever turns an agent into a graph of their own keeps their options."""
    assert RunOptions.__annotations__.items() <= AgentOptions.__annotations__.items()


def test_a_group_takes_its_options_and_no_other() -> None:
    """Each group is a part of the manual, with the defaults of its options."""
    options: AgentOptions = {"max_steps": 3, "temperature": 0.5}

    assert Limits(max_steps=3) == group(options, Limits)
    assert Sampling(temperature=0.5) == group(options, Sampling)
    assert Permissions() == group(options, Permissions)
    for kind in (Sampling, Limits, Permissions, Checks, Access):
        assert set() == kind.__annotations__.keys() - AgentOptions.__annotations__.keys()


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"approval_ttl_s": 0}, "`approval_ttl_s` is a finite number above 0; found 0"),
        ({"approval_ttl_s": float("inf")}, "`approval_ttl_s` is a finite number"),
        ({"approval_secret": ""}, "secret must not be empty"),
        ({"step_timeout_s": -1}, "`step_timeout_s` is a finite number above 0"),
        ({"max_agent_depth": -1}, "`max_agent_depth` is a whole number of at least 0"),
        ({"price": lambda _: None, "prices": {"x": ModelPrice(1, 2)}}, "`prices` has no effect"),
    ],
)
def test_a_value_that_no_run_can_keep_is_refused(options: AgentOptions, found: str) -> None:
    """An approval would never count, or for ever; a bound would hold nothing."""
    with pytest.raises(ConfigError, match=found):
        tuple(group(options, kind) for kind in (Limits, Permissions, Access))


def test_every_sampling_option_arrives() -> None:
    """None of them is dropped on the way."""
    options: RunOptions = {
        "max_tokens": 9,
        "temperature": 0.5,
        "top_p": 1,
        "stop_sequences": ["."],
        "seed": 7,
        "provider_options": {"top_k": 3},
    }

    assert Settings(9, 0.5, 1, (".",), 7, False, '{"top_k": 3}') == group(
        options, Sampling
    ).settings(one_at_a_time=True)
    assert Settings() == Sampling().settings()


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"temperature": float("nan")}, "`temperature`: expected a finite number, found nan"),
        ({"top_p": float("inf")}, "`top_p`: expected a finite number, found inf"),
        ({"max_tokens": 0}, "`max_tokens` is a whole number"),
        ({"provider_options": {"f": float("nan")}}, "`provider_options`: expected JSON"),
        ({"provider_options": {"f": object()}}, "`provider_options`: expected JSON"),
        ({"stop_sequences": "END"}, "`stop_sequences`: expected a list of strings"),
    ],
)
def test_a_setting_that_cannot_work_is_refused(options: RunOptions, found: str) -> None:
    """Before it is sent, not by the server's riddle."""
    with pytest.raises(ConfigError, match=found):
        group(options, Sampling).settings()


def test_a_misspelled_option_is_found_and_corrected() -> None:
    """An option that is silently ignored is the worst kind."""
    with pytest.raises(ConfigError, match="no option 'max_step'\\. Did you mean 'max_steps'"):
        reject_unknown_options(["max_step"], AgentOptions, "an agent")
    reject_unknown_options(["max_steps", "tools"], AgentOptions, "an agent")


@pytest.mark.parametrize("told", [float("nan"), float("inf"), "noon", None, True])
def test_a_clock_tells_a_number(told: object) -> None:
    """A journal with another time in it could never be read again."""
    with pytest.raises(ConfigError, match="`clock`: expected seconds since the epoch"):
        clock_of({"clock": wrong(lambda: told)})()

    assert 5 == clock_of({"clock": lambda: 5})()
    assert clock_of({})() > 0
