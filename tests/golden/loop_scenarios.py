"""How replies end, what tools do, and what bounds and checks say of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, Unpack

from pydantic import BaseModel

from graphloop import AnswerInfo, Compaction, PendingTurn, Review, StepChanges, StepInfo, budget
from graphloop.agent.options import AgentOptions
from graphloop.errors import RateLimited, ToolError
from graphloop.limits import stop
from graphloop.limits.model_price import ModelPrice
from graphloop.parts.kinds import ToolState
from graphloop.providers import TextDelta
from tests.golden.recorder import World, call, says
from tests.golden.register import named, scenario

PRICE = {"scripted": ModelPrice(input_usd=1_000.0, output_usd=2_000.0)}


class Person(BaseModel):
    """Somebody, for typed answers."""

    name: str
    age: int


@scenario
async def answer(world: World) -> None:
    await world.run(world.agent(says("Hello.")).stream("Hi"))


@scenario
async def instructions_and_history(world: World) -> None:
    agent = world.agent(says("Blue."), instructions="Be brief.", temperature=0.5, seed=7)
    history = [
        {"role": "user", "content": "Which colour?"},
        {"role": "assistant", "content": "Of what?"},
        {"role": "user", "content": "The sky."},
    ]
    await world.run(agent.stream(messages=history))


@scenario
async def reasoning(world: World) -> None:
    reply = says("4.", call("add", a=2), reasoning="Two and two.")
    await world.run(
        world.agent(reply, says("4.", reasoning="Told."), tools=[world.tool("add")]).stream("2+2")
    )


def _ending(reason: str, *, with_call: bool) -> None:
    async def run(world: World) -> None:
        calls = [call("read", x=1)] if with_call else []
        first = says("Half an ans", *calls, finish_reason=reason)
        agent = world.agent(
            first, says("Whole."), says("Again."), says("More."), tools=[world.tool("read")]
        )
        await world.run(agent.stream("Go"))

    named(f"reply_ends_by_{reason}_{'call' if with_call else 'text'}", run)


for _reason in (
    "length",
    "content_filter",
    "refusal",
    "stop_sequence",
    "pause",
    "context_window",
    "other",
):
    for _with_call in (False, True):
        _ending(_reason, with_call=_with_call)


@scenario
async def empty_reply(world: World) -> None:
    await world.run(
        world.agent(says(""), says(""), says("Now."), tools=[world.tool("read")]).stream("Hi")
    )


@scenario
async def model_fails(world: World) -> None:
    await world.run(world.agent(RateLimited("slow down")).stream("Hi"))


@scenario
async def fallback_model(world: World) -> None:
    second = world.model(says("From the second."), label="second")
    agent = world.agent(RateLimited("slow down"), fallback_models=[second])
    await world.run(agent.stream("Hi"))


@scenario
async def model_fails_in_the_second_turn(world: World) -> None:
    agent = world.agent(says("", call("read")), RateLimited("no"), tools=[world.tool("read")])
    await world.run(agent.stream("Hi"))


# Tools.


@scenario
async def tool_turn(world: World) -> None:
    agent = world.agent(
        says("", call("read", x=1)), says("Done."), tools=[world.tool("read", "72°F")]
    )
    await world.run(agent.stream("Go"))


@scenario
async def calls_side_by_side(world: World) -> None:
    calls = [call("read", f"c{n}", x=n) for n in range(4)]
    tools = [world.tool("read", lambda given: f"x is {given['x']}")]
    agent = world.agent(says("Four.", *calls), says("Done."), tools=tools, max_tool_concurrency=2)
    await world.run(agent.stream("Go"))


@scenario
async def calls_with_one_id(world: World) -> None:
    calls = [call("read", "same", x=1), call("write", "same", x=2), call("read", "same", x=3)]
    tools = [world.tool("read", lambda given: f"read {given['x']}"), world.tool("write")]
    await world.run(world.agent(says("", *calls), says("Done."), tools=tools).stream("Go"))


@scenario
async def unknown_tool(world: World) -> None:
    agent = world.agent(
        says("", call("reed"), call("read")), says("Done."), tools=[world.tool("read")]
    )
    await world.run(agent.stream("Go"))


@scenario
async def invalid_arguments(world: World) -> None:
    broken = {"name": "read", "arguments": '{"x": 1', "id": "a"}
    wrong = {"name": "read", "arguments": {"x": "one"}, "id": "b"}
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    tools = [world.tool("read", parameters=schema)]
    await world.run(world.agent(says("", broken, wrong), says("Done."), tools=tools).stream("Go"))


@scenario
async def tool_raises(world: World) -> None:
    tools = [world.tool("read", KeyError("Paris")), world.tool("write", ToolError("Disk full."))]
    agent = world.agent(says("", call("read"), call("write")), says("Sorry."), tools=tools)
    await world.run(agent.stream("Go"))


@scenario
async def tool_fails_for_ever(world: World) -> None:
    replies = [says(f"Try {n}.", call("read")) for n in range(6)]
    agent = world.agent(*replies, tools=[world.tool("read", OSError("gone"))])
    await world.run(agent.stream("Go"))


@scenario
async def tool_ends_the_run(world: World) -> None:
    agent = world.agent(says("", call("submit", x=1)), tools=[world.tool("submit", ends_run=True)])
    await world.run(agent.stream("Go"))


@scenario
async def tool_choice_of_the_first_turn(world: World) -> None:
    agent = world.agent(
        says("", call("read")), says("Done."), tools=[world.tool("read")], tool_choice="required"
    )
    await world.run(agent.stream("Go"))


@scenario
async def active_tools(world: World) -> None:
    agent = world.agent(
        says("", call("read"), call("write")),
        says("Done."),
        tools=[world.tool("read"), world.tool("write")],
        active_tools=["read"],
    )
    await world.run(agent.stream("Go"))


@scenario
async def client_tool(world: World) -> None:
    agent = world.agent(
        says("", call("theirs", x=1), call("ours", x=2)),
        says("Done."),
        tools=[world.client_tool("theirs"), world.tool("ours")],
    )
    parked = await world.run(agent.stream("Go"))
    assert parked is not None
    answers = {one.key: "from outside" for one in parked.pending}
    await world.run(agent.resume_stream(parked, tool_results=answers))


# Bounds.


def _bounded(name: str, /, **options: Unpack[AgentOptions]) -> None:
    async def run(world: World) -> None:
        replies = [says(f"Turn {n}.", call("read", f"c{n}", x=n)) for n in range(8)]
        options["tools"] = [world.tool("read")]
        agent = world.agent(*replies, **options)
        await world.run(agent.stream("Go"))

    named(name, run)


_bounded("at_most_steps", max_steps=3)
_bounded("budget_of_calls", budget=budget(tool_calls=2))
_bounded("budget_of_tokens", budget=budget(tokens=40))
_bounded("budget_of_dollars", budget=budget(usd=0.05), prices=PRICE)
_bounded("stops_at_a_call", stop_when=stop.has_tool_call("read"))
_bounded("stops_when_two_hold", stop_when=[stop.total_tokens_exceed(40), stop.step_count_is(3)])
_bounded("stops_by_a_predicate", stop_when=lambda info: info.step_count >= 2)


@scenario
async def too_many_pauses(world: World) -> None:
    replies = [says(f"Part {n}.", finish_reason="pause") for n in range(14)]
    await world.run(world.agent(*replies).stream("Go"))


# Answers that are checked.


def _typed(name: str, mode: Literal["native", "tool"], *replies: Mapping[str, object]) -> None:
    async def run(world: World) -> None:
        agent = world.agent(*replies, output_type=Person, output_mode=mode)
        await world.run(agent.stream("Who?"))

    named(name, run)


_typed("typed_answer", "native", says('{"name": "Ada", "age": 36}'))
_typed("typed_answer_mended", "native", says("Ada, 36"), says('{"name": "Ada", "age": 36}'))
_typed("typed_answer_never", "native", says("no"), says("no"), says("no"), says("no"))
_typed("typed_answer_by_tool", "tool", says("", call("final_answer", name="Ada", age=36)))
_typed(
    "typed_answer_by_tool_mended",
    "tool",
    says("", call("final_answer", name="Ada")),
    says("", call("final_answer", name="Ada", age=36)),
)


@scenario
async def verified(world: World) -> None:
    def verify(info: AnswerInfo) -> Review:
        return Review(ok="source" in info.text, feedback="Name the source.")

    agent = world.agent(says("It rains."), says("It rains; source: BBC."), verify=verify)
    await world.run(agent.stream("Weather?"))


@scenario
async def never_verified(world: World) -> None:
    replies = [says(f"It rains {n}.") for n in range(4)]
    await world.run(world.agent(*replies, verify=lambda _: False).stream("Weather?"))


@scenario
async def not_done(world: World) -> None:
    agent = world.agent(says("Done?"), says("Done!"), done_when=lambda info: "!" in info.text)
    await world.run(agent.stream("Go"))


# Turns that are changed.


@scenario
async def prepare_step_changes_a_turn(world: World) -> None:
    other = world.model(says("", call("late")), label="other")
    late = world.tool("late", "added")

    def prepare(info: StepInfo) -> StepChanges | None:
        if info.step_index == 1:
            return StepChanges(add_tools=[late], withdraw_tools=["read"], model=other)
        return None

    agent = world.agent(
        says("", call("read")), says("Done."), tools=[world.tool("read")], prepare_step=prepare
    )
    await world.run(agent.stream("Go"))


@scenario
async def compacted(world: World) -> None:
    long = "word " * 700
    agent = world.agent(
        says("", call("read", x=1)),
        says("", call("read", x=2), usage={"input_tokens": 1_450, "output_tokens": 5}),
        says("A summary."),
        says("Done."),
        tools=[world.tool("read", long)],
        compaction=Compaction(1_500, keep_recent_turns=1),
    )
    await world.run(agent.stream("Go"))


@scenario
async def iterated_and_steered(world: World) -> None:
    agent = world.agent(
        says("First.", call("read", x=1), call("send", to="Ada")),
        says("Second.", call("read", x=2)),
        says("Done."),
        tools=[world.tool("read"), world.tool("send")],
    )

    async def have_a_say(turn: PendingTurn) -> None:
        world.note("turn", [turn.index, turn.text, [one.name for one in turn.calls.values()]])
        if turn.index == 0:
            keys = {one.name: key for key, one in turn.calls.items()}
            turn.override_tool_results({keys["read"]: "from the cache"})
            turn.skip_tools("Drafts only.")
            turn.append_messages("Show me the draft.")
        elif turn.index == 1:
            results = await turn.generate_tool_response()
            world.note("results", [one.content for one in results or ()])

    run = agent.iter("Go")
    async for turn in run:
        await have_a_say(turn)
    world.result(await run.until_done())


@scenario
async def steered_and_followed_up(world: World) -> None:
    agent = world.agent(
        says("", call("read")), says("Done."), says("Written."), tools=[world.tool("read")]
    )
    stream = agent.stream("Go")
    async for part in stream.full_stream:
        if isinstance(part, ToolState) and part.state == "executing":
            stream.steer("Look at the tests, too.")
            stream.follow_up("Now write it down.")
    await world.settle(stream)


# Stopping.


@scenario
async def aborted_while_the_model_talks(world: World) -> None:
    stream = world.agent(says("A long answer.", deltas=["A long", " answer."])).stream("Go")
    async for part in stream.full_stream:
        if isinstance(part, TextDelta):
            stream.abort("enough")
    await world.settle(stream)


@scenario
async def aborted_while_a_tool_runs(world: World) -> None:
    began = asyncio.Event()

    async def wait(_: dict[str, Any]) -> str:
        world.note("waits")
        began.set()
        await asyncio.Event().wait()
        return "never"

    slow = _tool_that(world, "slow", wait)
    calls = [call("slow", "a"), call("read", "b"), call("read", "c")]
    agent = world.agent(says("", *calls), tools=[slow, world.tool("read")], max_tool_concurrency=1)
    stream = agent.stream("Go")

    async def stop_it() -> None:
        await began.wait()
        stream.abort("enough")

    async with asyncio.TaskGroup() as group:
        group.create_task(stop_it())
        await world.run(stream)


@scenario
async def aborted_after_the_step(world: World) -> None:
    agent = world.agent(says("", call("read")), says("Not asked."), tools=[world.tool("read")])
    stream = agent.stream("Go")
    async for part in stream.full_stream:
        if isinstance(part, ToolState) and part.state == "executing":
            stream.abort("that will do", after_step=True)
    await world.settle(stream)


def _tool_that(world: World, name: str, execute: Callable[..., Awaitable[str]]) -> Any:
    tool = world.tool(name)
    return type(tool)(name=name, parameters={"type": "object"}, execute=execute)
