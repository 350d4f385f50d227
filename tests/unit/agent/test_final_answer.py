"""FinalAnswer: asked of the server or by a tool, read the same way, sent back a bounded time."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, field_validator
from typing_extensions import TypedDict

from graphloop import (
    Agent,
    EndReason,
    OutputInvalid,
    RunResult,
    StepChanges,
    StepInfo,
    allow,
    ask,
    deny,
)
from graphloop.agent.final_answer import FINAL_ANSWER, FinalAnswer
from graphloop.agent.options import AgentOptions
from graphloop.errors import ConfigError
from graphloop.providers.script import Entry
from graphloop.testing import ScriptedModel
from graphloop.values import FinishReason, Reply, ToolChoice, UserMessage
from tests.strategies import call, reply, wrong


class City(BaseModel):
    """A place."""

    name: str
    people: int

    @field_validator("people")
    @classmethod
    def inhabited(cls, value: int) -> int:
        """Refuse ghost towns, which no JSON Schema can say."""
        if value == 0:
            raise ValueError("nobody lives there")
        return value


@dataclass
class Point:
    """Two numbers."""

    x: int
    y: int


class Row(TypedDict):
    """One field."""

    id: int


OSLO = {"name": "Oslo", "people": 700_000}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def read() -> str:
    """Read."""
    return "text"


def final(arguments: object) -> Reply:
    """Return a turn that gives the answer by a call."""
    return reply(call(FINAL_ANSWER, "f", json.dumps(arguments)))


def asked(
    model: ScriptedModel, kind: object = City, **options: Any
) -> tuple[RunResult[None], ScriptedModel]:
    """Run an agent with this output type."""
    given: AgentOptions = wrong({"output_type": kind, "tools": [read], **options})
    return Agent(model, **given).generate_sync("go"), model


@pytest.mark.parametrize(
    ("kind", "value", "output"),
    [
        (City, OSLO, City(name="Oslo", people=700_000)),
        (Point, {"x": 1, "y": 2}, Point(1, 2)),
        (Row, {"id": 3}, {"id": 3}),
        (int, {"value": 4}, 4),
        (list[str], {"value": ["a", "b"]}, ["a", "b"]),
        (int | None, {"value": None}, None),
        (City | Point, {"value": {"x": 1, "y": 2}}, Point(1, 2)),
        (SCHEMA, {"a": 5}, {"a": 5}),
        ({"type": "array", "items": {"type": "integer"}}, {"value": [1]}, [1]),
    ],
)
def test_an_answer_of_any_type_is_read_the_same_by_call_and_by_text(
    kind: object, value: object, output: object
) -> None:
    """Which of the two it is depends on the server, and on nothing that the caller wrote."""
    by_tool, _ = asked(ScriptedModel([final(value)]), kind)
    by_text, _ = asked(ScriptedModel([json.dumps(value)]), kind, output_mode="native")

    assert (output, EndReason.COMPLETED) == (by_tool.output, by_tool.end_reason)
    assert (output, EndReason.COMPLETED) == (by_text.output, by_text.end_reason)


def test_in_native_mode_the_server_is_told_the_form_and_no_tool_is_added() -> None:
    """The request says it once."""
    _, model = asked(ScriptedModel([json.dumps(OSLO)]), output_mode="native")

    request = model.requests[0]
    assert (["read"], "City") == (
        [tool.name for tool in request.tools],
        request.output and request.output.name,
    )


def test_in_tool_mode_a_tool_takes_the_answer_and_the_server_is_told_nothing() -> None:
    """Its description says what the type's docstring says."""
    _, model = asked(ScriptedModel([final(OSLO)]))

    request = model.requests[0]
    assert (["read", FINAL_ANSWER], None) == ([one.name for one in request.tools], request.output)
    assert request.tools[1].description.endswith("A place.")
    assert {"name", "people"} == json.loads(request.tools[1].parameters)["properties"].keys()


@pytest.mark.parametrize(
    ("labels", "own_server", "native"),
    [
        (["openai:x"], False, True),
        (["anthropic:x", "openai:x"], False, True),
        (["openai:x"], True, False),
        (["openai:x", "script"], False, False),
        (["script"], False, False),
    ],
)
def test_the_server_sees_to_the_form_where_every_model_s_wire_can(
    labels: list[str], own_server: bool, native: bool
) -> None:
    """A fallback that cannot would answer in any form it likes."""
    one = FinalAnswer(City, "auto", labels, own_server=own_server)

    assert (native, native) == (one.spec is not None, one.tool is None)


class Tree(BaseModel):
    """A type that holds itself."""

    inner: list[Tree]


@pytest.mark.parametrize("kind", [dict[str, int], Tree, list[Tree], dict[str, City]])
@pytest.mark.parametrize(
    ("labels", "native"),
    [(["anthropic:x"], False), (["openai:x", "anthropic:x"], False), (["openai:x"], True)],
)
def test_a_form_that_the_server_does_not_take_is_taken_by_a_tool(
    kind: object, labels: list[str], native: bool
) -> None:
    """A caller who leaves the way to us must not get a 400 for a type that any model can fill."""
    one = FinalAnswer(kind, "auto", labels)

    assert (native, native) == (one.spec is not None, one.tool is None)


def test_a_form_that_the_server_does_not_take_is_refused_where_it_alone_may_see_to_it() -> None:
    """Before anything is sent; a server of one's own may take more."""
    with pytest.raises(ConfigError, match=r"'Tree' holds a schema within itself.*'tool'"):
        FinalAnswer(Tree, "native", ["anthropic:x"])

    FinalAnswer(Tree, "native", ["anthropic:x"], own_server=True)
    FinalAnswer(Tree, "native", ["openai:x"])


@pytest.mark.parametrize(
    ("mode", "bad", "good"),
    [
        ("native", '{"name": "Oslo"}', json.dumps(OSLO)),
        ("native", "I do not know", json.dumps(OSLO)),
        ("native", json.dumps({"name": "X", "people": 0}), json.dumps(OSLO)),
        ("tool", final({"name": "Oslo"}), final(OSLO)),
        ("tool", final({"name": "X", "people": 0}), final(OSLO)),
        ("tool", reply(call(FINAL_ANSWER, "f", '{"name": "Os')), final(OSLO)),
        ("tool", "Oslo", final(OSLO)),
    ],
)
def test_an_answer_that_does_not_fit_is_sent_back_with_what_is_wrong(
    mode: str, bad: Entry, good: Entry
) -> None:
    """The model's next turn is its chance to mend it; what it said stays in the history."""
    result, model = asked(ScriptedModel([bad, good]), output_mode=mode)

    assert City(name="Oslo", people=700_000) == result.output
    told = model.requests[1].messages[-1]
    assert isinstance(told, UserMessage)
    assert "output" == told.origin
    assert any(
        word in str(told.content)
        for word in ("people", "not valid JSON", "nobody lives there", "by calling the tool")
    )


@pytest.mark.parametrize("retries", [0, 1, 2])
@pytest.mark.parametrize(
    ("mode", "bad", "text"),
    [
        ("native", "no idea", "no idea"),
        ("tool", "no idea", "no idea"),
        ("tool", final({"name": "Oslo"}), '{"name": "Oslo"}'),
    ],
)
def test_an_answer_is_sent_back_so_often_and_then_the_run_fails_with_it(
    mode: str, bad: Entry, text: str, retries: int
) -> None:
    """One bound for both ways; the error has what the model said, for whoever can use it."""
    model = ScriptedModel([bad] * 9)

    with pytest.raises(OutputInvalid) as raised:
        asked(model, output_mode=mode, max_output_retries=retries)

    assert (text, retries + 1) == (raised.value.text, len(model.requests))


def test_a_step_limit_ends_the_corrections_too() -> None:
    """Hard limits hold for every turn (CONTRACT §9 #22)."""
    result, model = asked(ScriptedModel(["no"] * 9), max_steps=2, max_output_retries=5)

    assert (None, EndReason.MAX_STEPS) == (result.output, result.end_reason)
    assert 2 == len(model.requests)


def test_a_run_that_ends_without_its_output_says_why() -> None:
    """An `output` of None looks like an answer to code that asks for nothing else."""
    cut, _ = asked(ScriptedModel([reply("{", finish=FinishReason.LENGTH)] * 4), max_steps=1)
    whole, _ = asked(ScriptedModel([final(OSLO)]))

    assert cut.output is None
    assert ("`output` is None: the run ended by `length` before it had one",) == cut.warnings
    assert () == whole.warnings


def test_the_tool_that_takes_the_answer_is_forced_where_it_is_the_only_way_to_answer() -> None:
    """A model that is free to answer in prose does, and then there is no output."""
    thinks = {"provider_options": {"thinking": {"type": "enabled", "budget_tokens": 2000}}}
    for choice, options in (
        ("required", {}),
        ("auto", {"tool_choice": "auto"}),
        ("auto", thinks),  # Anthropic's API takes no forced choice beside it.
        ("auto", {"output_mode": "native"}),
    ):
        native = "native" in options.values()
        given = json.dumps(OSLO) if native else final(OSLO)
        _, model = asked(ScriptedModel([given]), **options)
        assert choice == model.requests[0].tool_choice.mode


def test_the_error_of_an_answer_that_never_fits_is_for_the_developer() -> None:
    """What the model was told is quoted in it, as such."""
    with pytest.raises(OutputInvalid) as raised:
        asked(ScriptedModel(["no"] * 9), max_output_retries=1)

    assert str(raised.value) == (
        "`output_type`: expected an answer of this type, found none; it was sent back 1 time(s). "
        "As the model reads it: Give the final answer by calling the tool 'final_answer', "
        "not as text."
    )


def test_an_answer_beside_other_calls_is_no_end() -> None:
    """The model has not seen yet what the others return."""
    both = reply(call("read", "a"), call(FINAL_ANSWER, "f", json.dumps(OSLO)))

    result, _ = asked(ScriptedModel([both, final({"name": "Rome", "people": 1})]))

    assert (City(name="Rome", people=1), 2) == (result.output, len(result.steps))


def test_a_tool_of_the_same_name_is_refused() -> None:
    """One of the two would silently never run."""

    def final_answer() -> str:
        """Mine."""
        return "mine"

    with pytest.raises(ConfigError, match="a tool is named 'final_answer'"):
        Agent(ScriptedModel([]), tools=[final_answer], output_type=City)
    Agent(ScriptedModel([]), tools=[final_answer], output_type=City, output_mode="native")
    Agent(ScriptedModel([]), tools=[final_answer])


def changing(changes: StepChanges) -> Callable[[StepInfo], StepChanges | None]:
    """Return a function that makes these changes in the first turn."""
    return lambda info: None if info.step_index else changes


@pytest.mark.parametrize(
    "options",
    [
        {"gate": allow("read")},
        {"gate": deny("*")},
        {"gate": ask("*")},
        {"active_tools": ()},
        {"active_tools": ["read"]},
        {"tool_choice": "required"},
        {"prepare_step": changing(StepChanges(active_tools=["read"]))},
        {"prepare_step": changing(StepChanges(withdraw_tools=["read"]))},
    ],
)
def test_no_option_takes_away_the_way_to_answer(options: dict[str, Any]) -> None:
    """It does nothing but answer, so there is nothing to guard; without it no run completes."""
    result, _ = asked(ScriptedModel([final(OSLO)] * 3), **options)

    assert City(name="Oslo", people=700_000) == result.output


def test_a_parent_s_gate_lets_a_child_answer() -> None:
    """It stands before what the child does, not before what it says."""
    child = Agent(ScriptedModel([reply(call()), final(OSLO)], label="c"), **typed("expert"))
    parent = Agent(
        ScriptedModel([reply(call("expert", "x", '{"prompt": "?"}')), "done"]),
        tools=[child.as_tool(description="knows")],
        gate=allow("expert"),
    )

    result = parent.generate_sync("go")

    assert ("ok", OSLO) == ((one := result.steps[0].tool_results[0]).status, one.value)


def typed(name: str) -> AgentOptions:
    """Return the options of an agent with a name, a form and a tool."""
    return {"name": name, "output_type": City, "tools": [read]}


def test_a_choice_that_leaves_no_way_to_answer_is_refused() -> None:
    """The run could only fail."""
    with pytest.raises(ConfigError, match="`tool_choice='none'` leaves no way"):
        Agent(ScriptedModel([]), output_type=City, tool_choice="none")
    Agent(ScriptedModel([]), output_type=City, tool_choice=ToolChoice("none", scope="first_step"))
    Agent(ScriptedModel([]), output_type=City, output_mode="native", tool_choice="none")


@pytest.mark.parametrize(
    "changes",
    [
        StepChanges(withdraw_tools=[FINAL_ANSWER]),
        StepChanges(add_tools=[wrong(FinalAnswer(int, "tool", []).tool)]),
    ],
)
def test_the_way_to_answer_is_not_changed_in_the_middle_of_a_run(changes: StepChanges) -> None:
    """By adding or withdrawing tools."""
    with pytest.raises(ConfigError, match="takes the answer"):
        asked(ScriptedModel([final(OSLO)]), prepare_step=changing(changes))


@pytest.mark.parametrize("mode", ["native", "tool"])
def test_the_answer_of_an_agent_that_took_over_is_read_like_one_s_own(mode: str) -> None:
    """Whoever asked for a form gets it, or hears that it was not given."""
    expert = Agent(ScriptedModel([json.dumps(OSLO)], label="e"), name="expert")
    tools = [expert.as_tool(description="knows", takes_over=True)]

    result, _ = asked(ScriptedModel([reply(call("expert", "x"))]), tools=tools, output_mode=mode)

    assert City(name="Oslo", people=700_000) == result.output


def test_who_takes_over_has_the_last_word() -> None:
    """Also beside a call that gives an answer: the run has one, and it is the last."""
    expert = Agent(ScriptedModel([json.dumps(OSLO)], label="e"), name="expert")
    tools = [expert.as_tool(description="knows", takes_over=True)]
    both = reply(call(FINAL_ANSWER, "f", '{"name": "Rome"}'), call("expert", "x"))

    result, _ = asked(ScriptedModel([both]), tools=tools)

    assert City(name="Oslo", people=700_000) == result.output


async def test_a_run_that_was_parked_gives_its_answer_when_it_ends() -> None:
    """The form is the agent's, whoever drives the run."""
    model = ScriptedModel([reply(call()), final(OSLO)])
    agent = Agent(model, tools=[read], output_type=City, gate=ask("read"))

    parked = await agent.generate("go")
    assert (None, EndReason.PARKED) == (parked.output, parked.end_reason)
    assert (
        City(name="Oslo", people=700_000)
        == (await agent.resume(parked, approvals={"c0.0": True})).output
    )


def test_a_type_that_cannot_be_described_is_refused_at_once() -> None:
    """Before anything is sent."""
    with pytest.raises(ConfigError, match="no JSON Schema can be made of"):
        Agent(ScriptedModel([]), output_type=object())
