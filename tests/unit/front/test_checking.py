"""Checking: what cannot work, or would have no effect, is refused before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from graphloop import Compaction, ModelPrice, allow, budget
from graphloop.errors import ConfigError
from graphloop.front.checking import (
    check_kinds,
    check_model,
    choice_of,
    clock_of,
    known_tools,
    reject_unknown,
    settings_of,
)
from graphloop.front.options import AgentOptions, RunOptions
from graphloop.front.told import ChoiceInput
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.values import Settings, ToolChoice
from tests.strategies import spec, wrong

TOOLS = [spec("read"), spec("write")]


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

    assert Settings(9, 0.5, 1, (".",), 7, False, '{"top_k": 3}') == settings_of(
        options, one_at_a_time=True
    )
    assert Settings() == settings_of({}, one_at_a_time=False)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"temperature": "hot"}, "`temperature` is a finite number; found 'hot'"),
        ({"top_p": True}, "`top_p` is a finite number; found True"),
        ({"temperature": float("nan")}, "`temperature` is a finite number; found nan"),
        ({"top_p": float("inf")}, "`top_p` is a finite number; found inf"),
        ({"max_tokens": 0}, "`max_tokens` is a whole number"),
        ({"provider_options": [1]}, "`provider_options` is a mapping; found"),
        ({"provider_options": {"f": float("nan")}}, "`provider_options` holds what JSON cannot"),
        ({"provider_options": {"f": object()}}, "`provider_options` holds what JSON cannot"),
        ({"stop_sequences": "END"}, "`stop_sequences` is a list of strings"),
        ({"stop_sequences": [1]}, "`stop_sequences` is a list of strings"),
        ({"stop_sequences": 5}, "`stop_sequences` is a list of strings"),
        ({"seed": "x"}, "`seed` is a whole number"),
    ],
)
def test_a_setting_that_cannot_work_is_refused(options: RunOptions, found: str) -> None:
    """Before it is sent, not by the server's riddle."""
    with pytest.raises(ConfigError, match=found):
        settings_of(options, one_at_a_time=False)


def test_a_misspelled_option_is_found_and_corrected() -> None:
    """An option that is silently ignored is the worst kind."""
    with pytest.raises(ConfigError, match="no option 'max_step'\\. Did you mean 'max_steps'"):
        reject_unknown(["max_step"], AgentOptions, "an agent")
    reject_unknown(["max_steps", "tools"], AgentOptions, "an agent")


def test_names_of_tools_must_exist() -> None:
    """And be a list, for a string is a list of letters."""
    assert ("write",) == known_tools("active_tools", ["write"], TOOLS)
    with pytest.raises(ConfigError, match=r"'raed', which is not among the tools .* Did you mean"):
        known_tools("active_tools", ["raed"], TOOLS)
    assert ("write",) == known_tools("active_tools", wrong({"write"}), TOOLS)
    with pytest.raises(ConfigError, match=r"\(none\)"):
        known_tools("active_tools", ["read"], [])


@pytest.mark.parametrize("given", ["read", b"read", 5, [5], {"read": 1}, (one for one in ["read"])])
def test_a_list_of_tools_is_a_list_of_strings(given: Sequence[str]) -> None:
    """A string is a list of letters, and a generator is empty the second time."""
    with pytest.raises(ConfigError, match="`active_tools` is a list of strings; found"):
        known_tools("active_tools", given, TOOLS)


@pytest.mark.parametrize(
    ("given", "choice"),
    [
        ("auto", ToolChoice()),
        ("none", ToolChoice("none")),
        ("required", ToolChoice("required")),
        (ToolChoice("tool", "read"), ToolChoice("tool", "read")),
        (
            ToolChoice("required", scope="first_step"),
            ToolChoice("required", scope="first_step"),
        ),
    ],
)
def test_a_choice_becomes_a_value(given: ChoiceInput, choice: ToolChoice) -> None:
    """Words for the common ones."""
    assert choice == choice_of(given, TOOLS)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("requird", "Did you mean 'required'"),
        (ToolChoice("tool", "gone"), "names 'gone'"),
        (ToolChoice("required"), "there are no tools"),
        (ToolChoice(wrong("bogus")), "`tool_choice` is one of"),
        (ToolChoice(wrong("requird")), "Did you mean 'required'"),
        (ToolChoice("auto", "read"), "names 'read', which has no effect in mode 'auto'"),
        (ToolChoice("tool", wrong(5)), "`tool_choice` is a list of strings"),
        (wrong(None), "`tool_choice` is one of .* found None"),
        (wrong(["required"]), "`tool_choice` is one of"),
        (wrong(ToolChoice), "`tool_choice` is one of"),
        (ToolChoice("required", scope=wrong("first_stp")), "Did you mean 'first_step'"),
        (ToolChoice("required", scope=wrong(None)), "the scope of `tool_choice` is one of"),
    ],
)
def test_a_choice_that_cannot_be_made_is_refused(given: ChoiceInput, found: str) -> None:
    """A forced tool that is not there would make every request fail."""
    tools = [] if given == ToolChoice("required") else TOOLS

    with pytest.raises(ConfigError, match=found):
        choice_of(given, tools)


@pytest.mark.parametrize(
    "name",
    [
        "approve_tool_call",
        "clock",
        "compact",
        "done_when",
        "on_step_finish",
        "prepare_step",
        "price",
        "verify",
    ],
)
def test_a_function_that_is_none_is_refused_at_once(name: str) -> None:
    """Otherwise it would be found out in the middle of a run that has cost money."""
    with pytest.raises(ConfigError, match=f"`{name}` is a function; found 3"):
        check_kinds({name: 3})


@pytest.mark.parametrize(
    "name",
    [
        "api_key",
        "approval_secret",
        "approval_ttl_s",
        "approve_tool_call",
        "budget",
        "compact",
        "compaction",
        "done_when",
        "gate",
        "on_step_finish",
        "prepare_step",
        "price",
        "step_timeout_s",
        "store",
        "verify",
    ],
)
def test_an_option_may_be_left_out_by_none(name: str) -> None:
    """So that a caller's own optional argument can be handed on."""
    check_kinds({name: None})


@pytest.mark.parametrize(
    "name", ["agents", "clock", "fallback_models", "name", "prices", "run_ungated"]
)
def test_an_option_without_which_nothing_works_is_not_none(name: str) -> None:
    """It would be found out by the first step."""
    with pytest.raises(ConfigError, match=f"`{name}` cannot be None"):
        check_kinds({name: None})


@pytest.mark.parametrize("name", ["api_key", "base_url", "instructions", "name"])
def test_texts_are_strings(name: str) -> None:
    """A list of messages as instructions would be sent as its repr, or not at all."""
    with pytest.raises(ConfigError, match=f"`{name}` is a string; found 3"):
        check_kinds({name: 3})


@pytest.mark.parametrize(
    ("store", "found"), [(5, "found 5"), (MemoryStore, "found the class MemoryStore")]
)
def test_a_store_is_a_store_or_a_directory(store: object, found: str) -> None:
    """Anything else would fail at the first write, when the model has been paid."""
    with pytest.raises(ConfigError, match=f"`store` is a Store or a directory; {found}"):
        check_kinds({"store": store})

    for one in (MemoryStore(), "runs", Path("runs")):
        check_kinds({"store": one})


@pytest.mark.parametrize(
    ("model", "found"),
    [(None, "found None"), (5, "found 5"), (ScriptedModel, "found the class ScriptedModel")],
)
def test_a_model_is_a_name_or_a_provider(model: object, found: str) -> None:
    """A class is neither, however much it looks like one."""
    with pytest.raises(ConfigError, match=f"`model` is a .*; {found}"):
        check_model(model)

    check_model("anthropic:x")
    check_model(ScriptedModel([]))


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"gate": "allow"}, "`gate` is a Policy; found 'allow'"),
        ({"gate": [allow("read")]}, r"`gate` is a Policy; .*join policies with `\|`"),
        ({"budget": {"tokens": 3}}, "`budget` is a Budget"),
        ({"compaction": 9_000}, "`compaction` is a Compaction; found 9000"),
        ({"prices": [1]}, "`prices` is a Mapping"),
        ({"prices": {"x": 0.5}}, r"`prices\['x'\]` is of type ModelPrice; found 0.5"),
        ({"agents": []}, "`agents` is a Mapping"),
        ({"agents": {"x": len}}, r"`agents\['x'\]` is of type AgentTool"),
        ({"run_ungated": 1}, "`run_ungated` is True or False; found 1"),
        ({"fallback_models": "openai:x"}, "`fallback_models` is a list of models"),
        ({"fallback_models": 5}, "`fallback_models` is a list of models; found 5"),
        ({"on_bad_history": "repai"}, "repair, refuse; found 'repai'. Did you mean 'repair'"),
        ({"on_bad_history": None}, "`on_bad_history` is one of"),
        ({"output_mode": "tol"}, "auto, native, tool; found 'tol'. Did you mean 'tool'"),
        ({"approval_ttl_s": 0}, "`approval_ttl_s` is a finite number above 0; found 0"),
        ({"approval_ttl_s": float("inf")}, "`approval_ttl_s` is a finite number"),
        ({"step_timeout_s": -1}, "`step_timeout_s` is a finite number above 0"),
        ({"max_agent_depth": -1}, "`max_agent_depth` is a whole number of at least 0"),
        ({"max_agent_depth": None}, "`max_agent_depth` is a whole number"),
        ({"approval_secret": ""}, "secret must not be empty"),
        ({"approval_secret": 5}, "secret is text or bytes"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_in_words(
    options: dict[str, object], found: str
) -> None:
    """The option, what it takes, and what was found: enough to mend it without the manual."""
    with pytest.raises(ConfigError, match=found):
        check_kinds(options)


def test_values_of_the_right_kind_pass() -> None:
    """What is refused above has a right form."""
    check_kinds(
        {
            "gate": allow("read"),
            "budget": budget(tokens=3),
            "compaction": Compaction(9_000),
            "prices": {"x": ModelPrice(1, 2)},
            "agents": {},
            "run_ungated": True,
            "fallback_models": ["openai:x"],
            "on_bad_history": "refuse",
            "output_mode": "tool",
            "approval_ttl_s": 0.5,
            "step_timeout_s": 3,
            "max_agent_depth": 0,
            "approval_secret": b"x",
        }
    )


@pytest.mark.parametrize("told", [float("nan"), float("inf"), "noon", None, True])
def test_a_clock_tells_a_number(told: object) -> None:
    """A journal with another time in it could never be read again."""
    with pytest.raises(ConfigError, match="`clock` tells the seconds since the epoch; found"):
        clock_of({"clock": wrong(lambda: told)})()

    assert 5 == clock_of({"clock": lambda: 5})()
    assert clock_of({})() > 0
