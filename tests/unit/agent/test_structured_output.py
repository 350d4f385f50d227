"""Answers of a type: asked for, read, sent back a bounded time, and shown while they grow."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, field_validator
from typing_extensions import TypedDict

from graphloop import (
    Agent,
    EndReason,
    OutputInvalid,
    RunResult,
    RunStream,
    StepChanges,
    StepInfo,
    StepResult,
    Usage,
    allow,
    ask,
    budget,
    deny,
    generate_object_sync,
)
from graphloop.agent.final_answer import FINAL_ANSWER, FinalAnswer, Output, json_output
from graphloop.agent.generate import ABOUT_ONE_ANSWER
from graphloop.agent.options import AgentOptions
from graphloop.errors import BadReply, ConfigError
from graphloop.providers.script import Entry
from graphloop.testing import ScriptedModel
from graphloop.values import FinishReason, Reply, UserMessage
from tests.strategies import call, reply, wrong
from tests.unit.agent.doubles import read, stream


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


OSLO = {"name": "Oslo", "people": 700_000}


@dataclass
class Point:
    """Two numbers."""

    x: int
    y: int


class Row(TypedDict):
    """One field."""

    id: int


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def asked(
    model: ScriptedModel, kind: object = City, **options: Any
) -> tuple[RunResult[Any], ScriptedModel]:
    """Run an agent with this output type."""
    given: dict[str, Any] = {"output_type": kind, "tools": [read], **options}
    one: Agent[None, Any] = Agent(model, **given)
    return one.generate_sync("go"), model


def final(arguments: object) -> Reply:
    """Return a turn that gives the answer by a call."""
    return reply(call(FINAL_ANSWER, "f", json.dumps(arguments)))


@pytest.mark.parametrize(
    ("kind", "value", "output"),
    [
        (City, OSLO, City(name="Oslo", people=700_000)),
        (Point, {"x": 1, "y": 2}, Point(1, 2)),
        (Row, {"id": 3}, {"id": 3}),
        (int, {"value": 4}, 4),
        (int | None, {"value": None}, None),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (City | Point, {"value": {"x": 1, "y": 2}}, Point(1, 2)),
        (SCHEMA, {"a": 5}, {"a": 5}),
        ({"type": "array", "items": {"type": "integer"}}, {"value": [1]}, [1]),
    ],
)
def test_an_answer_is_read_the_same_by_call_and_by_text(
    kind: object, value: object, output: object
) -> None:
    by_tool, _ = asked(ScriptedModel([final(value)]), kind)
    by_text, _ = asked(ScriptedModel([json.dumps(value)]), kind, output_mode="native")

    assert (output, EndReason.COMPLETED) == (by_tool.output, by_tool.end_reason)
    assert (output, EndReason.COMPLETED) == (by_text.output, by_text.end_reason)


class Tree(BaseModel):
    """A type that holds itself."""

    inner: list[Tree]


@pytest.mark.parametrize(
    ("kind", "labels", "own_server", "native"),
    [
        (City, ["openai:x"], False, True),
        (City, ["anthropic:x", "openai:x"], False, True),
        (City, ["openai:x"], True, False),
        (City, ["openai:x", "script"], False, False),
        (City, ["script"], False, False),
        (dict[str, int], ["openai:x"], False, True),
        *[
            (kind, labels, False, False)
            for kind in (dict[str, int], Tree, list[Tree], dict[str, City])
            for labels in (["anthropic:x"], ["openai:x", "anthropic:x"])
        ],
    ],
)
def test_a_server_sees_to_the_form_where_each_wire_can(
    kind: object, labels: list[str], own_server: bool, native: bool
) -> None:
    one = FinalAnswer(kind, "auto", labels, own_server=own_server)

    assert (native, native) == (one.spec is not None, one.tool is None)


def test_a_form_no_server_takes_is_refused_in_native_mode() -> None:
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
def test_a_misfit_answer_is_sent_back_with_what_is_wrong(
    mode: str, bad: Entry, good: Entry
) -> None:
    result, model = asked(ScriptedModel([bad, good]), output_mode=mode)

    assert City(name="Oslo", people=700_000) == result.output
    told = model.requests[1].messages[-1]
    assert isinstance(told, UserMessage)
    assert "output" == told.origin
    assert any(
        word in str(told.content)
        for word in ("people", "not valid JSON", "nobody lives there", "by calling the tool")
    )


def test_a_step_limit_ends_the_corrections_too() -> None:
    result, model = asked(ScriptedModel(["no"] * 9), max_steps=2, max_output_retries=5)

    assert (False, EndReason.MAX_STEPS) == (result.has_output, result.end_reason)
    assert 2 == len(model.requests)


def test_a_run_that_ends_without_its_output_says_why() -> None:
    cut, _ = asked(ScriptedModel([reply("{", finish=FinishReason.LENGTH)] * 4), max_steps=1)
    whole, _ = asked(ScriptedModel([final(OSLO)]))

    assert not cut.has_output
    with pytest.raises(OutputInvalid, match=r"expected a run that completed.*'length'"):
        _ = cut.output
    assert ("there is no `output`: the run ended by `length` before it had one",) == cut.warnings
    assert () == whole.warnings


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        (json.dumps(OSLO), r"'City', found a text in place of a call .*output_mode='native'"),
        ("Oslo!", r"found a text in place of a call .*'Oslo!', in reply 3 after 2 correction"),
        (final({"name": "Oslo"}), r"found one that does not fit, .*raise `max_output_retries`"),
    ],
)
def test_an_error_about_an_answer_speaks_to_the_developer(entry: Entry, found: str) -> None:
    """The message names the type, the answer, the number of replies, and the way out."""
    with pytest.raises(OutputInvalid, match=found) as raised:
        asked(ScriptedModel([entry] * 9), output_mode="tool", max_output_retries=2)

    assert "as the model reads it" not in str(raised.value)


def test_the_answering_tool_is_forced_where_it_is_the_only_way() -> None:
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


def test_an_answer_beside_other_calls_is_no_end() -> None:
    both = reply(call("read", "a"), call(FINAL_ANSWER, "f", json.dumps(OSLO)))

    result, _ = asked(ScriptedModel([both, final({"name": "Rome", "people": 1})]))

    assert (City(name="Rome", people=1), 2) == (result.output, len(result.steps))


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
    result, _ = asked(ScriptedModel([final(OSLO)] * 3), **options)

    assert City(name="Oslo", people=700_000) == result.output


def typed(name: str) -> dict[str, Any]:
    """Return the options of an agent with a name, a form and a tool."""
    return {"name": name, "output_type": City, "tools": [read]}


def test_a_parent_s_gate_lets_a_child_answer() -> None:
    child = Agent(ScriptedModel([reply(call()), final(OSLO)], label="c"), **typed("expert"))
    parent = Agent(
        ScriptedModel([reply(call("expert", "x", '{"prompt": "?"}')), "done"]),
        tools=[child.as_tool(description="knows")],
        gate=allow("expert"),
    )

    result = parent.generate_sync("go")

    assert ("ok", OSLO) == ((one := result.steps[0].tool_results[0]).status, one.value)


def test_an_agent_that_takes_over_gives_the_answer() -> None:
    expert = Agent(ScriptedModel([json.dumps(OSLO)], label="e"), name="expert")
    tools = [expert.as_tool(description="knows", takes_over=True)]
    both = reply(call(FINAL_ANSWER, "f", '{"name": "Rome"}'), call("expert", "x"))

    result, _ = asked(ScriptedModel([both]), tools=tools)

    assert City(name="Oslo", people=700_000) == result.output


class Town(BaseModel):
    """A place."""

    name: str


def giving(*answers: object) -> ScriptedModel:
    """Return a model that gives these answers."""
    return ScriptedModel([reply(call("final_answer", "f", json.dumps(one))) for one in answers])


def test_usage_and_cost_are_those_of_all_attempts() -> None:
    said = giving({"nme": "Oslo"}, {"name": "Oslo"})

    result = generate_object_sync(said, Town, "where?", price=lambda _: 0.25)

    assert (2, Usage(20, 10), 0.5) == (len(said.requests), result.usage, result.cost_usd)
    assert result.usage == result.run.total_usage


def test_warnings_are_those_of_the_run() -> None:
    def listen(_: StepResult) -> None:
        raise LookupError("bug")

    result = generate_object_sync(giving({"name": "Oslo"}), Town, "?", on_step_finish=listen)

    assert ("on_step_finish raised LookupError: bug",) == result.warnings


@pytest.mark.parametrize("retries", [0, 1, 4])
def test_an_unfit_answer_is_asked_again_up_to_the_limit(retries: int) -> None:
    said = giving(*[{"nme": "Oslo"}] * 9)

    with pytest.raises(OutputInvalid, match="name") as raised:
        generate_object_sync(said, Town, "where?", max_output_retries=retries)

    assert (retries + 1, '{"nme": "Oslo"}') == (len(said.requests), raised.value.text)


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        (reply("I will not", finish=FinishReason.REFUSAL), "ended by refusal"),
        (reply("Half a", finish=FinishReason.LENGTH), "ended by length"),
    ],
)
def test_a_run_that_ends_without_an_answer_is_an_error(entry: Entry, found: str) -> None:
    with pytest.raises(OutputInvalid, match=found) as raised:
        generate_object_sync(ScriptedModel([entry] * 9), Town, "where?")

    assert raised.value.text in {"I will not", "Half a"}


LOOP_OPTIONS = sorted(AgentOptions.__annotations__.keys() - ABOUT_ONE_ANSWER)


@pytest.mark.parametrize("option", LOOP_OPTIONS)
def test_every_option_of_the_loop_is_refused_by_name(option: str) -> None:
    said = giving({"name": "Oslo"})

    with pytest.raises(ConfigError, match=rf"{option} would have no effect: use Agent\("):
        generate_object_sync(said, Town, "where?", **wrong({option: None}))

    assert [] == said.requests


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: Annotated[int, Field(le=60)] = 0


WEATHER = Output(Weather)


def schema(output: Output) -> dict[str, object]:
    told: dict[str, object] = json.loads(output.spec.schema)
    return told


def test_a_value_that_is_no_object_is_wrapped_in_one() -> None:
    told, plain, wrapped = schema(Output(list[Weather])), Output(Weather), Output(list[str])

    assert (["value"], True) == (told["required"], "$defs" in told)
    assert "output" == wrapped.spec.name == Output(int | str).spec.name
    assert {"city": "O"} == plain.unwrap({"city": "O"})
    assert (["a"], None) == (wrapped.unwrap({"value": ["a"]}), wrapped.unwrap({}))
    assert wrapped.unwrap("?") is None


def refused(output: Output, text: str) -> str:
    with pytest.raises(OutputInvalid) as caught:
        output.parse(text)

    assert caught.value.text == text
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("", "it is empty"),
        (" \n", "it is empty"),
        ("Oslo!", "not valid JSON"),
        ('```json\n{"city": "Oslo"}\n```', "not valid JSON"),
        ('{"city": "Oslo"} and more', "not valid JSON"),
        ('{"city": "\ud800"}', "not valid JSON"),
        ('{"city": "Oslo", "degrees": NaN}', "not valid JSON"),
        ("[1]", "expected one JSON object"),
        ("{}", "'Weather': city: Field required. Answer again"),
        ('{"city": 3}', "city: Input should be a valid string, found 3"),
        ('{"city": "a", "degrees": 61}', "degrees: Input should be less than or equal to 60"),
    ],
)
def test_an_error_names_the_place_that_does_not_fit(text: str, finding: str) -> None:
    message = refused(WEATHER, text)

    assert message.startswith("The answer does not have the form 'Weather': ")
    assert finding in message
    assert message.endswith("Answer again, with nothing but JSON that fits the schema.")


class Fussy(BaseModel):
    word: str

    @field_validator("word")
    @classmethod
    def check(cls, word: str) -> str:
        raise KeyError(word)


def test_errors_of_wrapped_and_raw_forms_are_understood() -> None:
    names: Output = Output(wrong(list[str]))
    form = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    rules, fussy = Output(form), Output(Fussy)
    form.clear()  # What was given cannot be changed afterwards.

    for text in ('["a"]', '{"value": "a"}', '{"values": ["a"]}'):
        assert 'the schema, {"value": …}.' in refused(names, text)
    assert "'a' is a required property" in refused(rules, "{}")
    assert "a: 'x' is not of type 'integer'" in refused(rules, '{"a": "x"}')
    assert "KeyError" in refused(wrong(fussy), '{"word": "x"}')
    assert len(refused(WEATHER, json.dumps({"city": ["x" * 10_000]}))) < 1_000
    assert len(refused(WEATHER, "x" * 100_000)) < 1_000
    with pytest.raises(OutputInvalid, match="call the tool again"):
        WEATHER.parse_arguments('{"city": 3}')


class Unfit:
    """No JSON can make one."""


def forecast(city: str) -> str:
    """A function could be called with what a model says, which is what tools are for."""
    return city


@pytest.mark.parametrize(
    "kind",
    [
        Unfit,
        5,
        len,
        forecast,
        {"type": "nothing"},
        {"type": "array", "items": {"$ref": "#/items"}, "x": {1, 2}},
        {"$ref": "https://x"},
    ],
)
def test_a_type_without_a_schema_is_refused(kind: object) -> None:
    with pytest.raises(ConfigError, match="output type"):
        Output(kind)


WHOLE = {"a": "some words", "b": [1, 2]}


def answering(*script: Entry, mode: Literal["native", "tool"] = "native") -> Agent[None, Any]:
    """Return an agent whose answer has a form."""
    form: Mapping[str, object] = {
        "type": "object",
        "properties": {"a": {}, "b": {}},
        "required": ["a", "b"],
    }
    return Agent(ScriptedModel(script), output_type=json_output(form), output_mode=mode)


async def objects_of(values: AsyncIterator[object]) -> list[object]:
    """Return everything that comes."""
    return [value async for value in values]


async def objects(one: RunStream[Any]) -> list[object]:
    """Return everything that an object stream shows."""
    return await objects_of(one.object_stream)


def spoken(mode: Literal["native", "tool"], value: object) -> Entry:
    """Return a turn that gives an answer: as text, word by word, or by a call."""
    text = json.dumps(value)
    return text if mode == "native" else reply(call("final_answer", "f", text))


@pytest.mark.parametrize("mode", ["native", "tool"])
async def test_an_answer_is_shown_while_it_grows_and_then_whole(
    mode: Literal["native", "tool"],
) -> None:
    one = answering(spoken(mode, WHOLE), mode=mode).stream("go")
    *growing, last = await objects(one)
    assert last == WHOLE == (await one.result()).output
    assert growing
    assert WHOLE == growing[-1]
    for before, after in pairwise(growing):
        assert isinstance(before, dict)
        assert isinstance(after, dict)
        assert before.keys() <= after.keys()


async def test_an_answer_sent_back_is_followed_by_another() -> None:
    one = answering('{"a": 1}', spoken("native", WHOLE)).stream("go")
    shown = await objects(one)
    assert {"a": 1} in shown
    assert {"a": "some "} in shown[shown.index({"a": 1}) + 1 :]
    assert WHOLE == shown[-1]


async def test_an_object_stream_raises_after_what_came() -> None:
    one = answering({"text": '{"a": "half of', "error": "the line broke"}).stream("go")
    values = aiter(one.object_stream)
    assert {} == await anext(values)
    with pytest.raises(BadReply):
        await objects_of(values)


async def test_a_run_that_did_not_complete_has_no_last_object() -> None:
    script = [reply('{"a": 1', finish=FinishReason.LENGTH)] * 9

    one = answering(*script).stream("go")
    shown = await objects(one)
    assert EndReason.LENGTH is (await one.result()).end_reason
    assert {"a": 1} == shown[-1]


async def test_an_object_stream_without_an_output_type_is_refused() -> None:
    one = stream("hi")
    with pytest.raises(ConfigError, match="output_type"):
        await objects(one)
    assert one.run is None


async def test_the_call_that_gives_the_answer_is_no_tool_call_of_the_budget() -> None:
    """An answer that is paid for is not thrown away because tools have spent their calls."""
    answers = [{"calls": [{"name": FINAL_ANSWER, "arguments": {"value": n}}]} for n in range(3)]
    work: Entry = {"calls": [{"name": "read", "arguments": {"x": 1}}]}
    agent = Agent(
        ScriptedModel([work, *answers]), tools=[read], output_type=int, budget=budget(tool_calls=1)
    )

    result = await agent.generate("Count.")

    assert (EndReason.COMPLETED, 0, 1) == (
        result.end_reason,
        result.output,
        result.run.spent.tool_calls,
    )

    chat = agent.with_options(budget=None).chat(budget=budget(tool_calls=1))

    assert [1, 2] == [(await chat.send(f"{n}")).output for n in range(2)]
