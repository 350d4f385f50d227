"""Gates, people and temporal rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from graphloop import (
    Approval,
    allow,
    approve,
    ask,
    decline,
    deny,
)
from graphloop.agent.options import AgentOptions
from graphloop.rules import at_most_once, never
from tests.golden.recorder import World, call, says
from tests.golden.register import named, scenario


@scenario
async def denied_by_a_rule(world: World) -> None:
    agent = world.agent(
        says("", call("read"), call("delete")),
        says("Done."),
        tools=[world.tool("read"), world.tool("delete")],
        gate=allow("read") | deny("delete", reason="Never."),
    )
    await world.run(agent.stream("Go"))


@scenario
async def denied_for_ever(world: World) -> None:
    replies = [says(f"Try {n}.", call("delete")) for n in range(8)]
    agent = world.agent(*replies, tools=[world.tool("delete")], gate=deny("*"))
    await world.run(agent.stream("Go"))


def _decided(name: str, decision: bool | Approval, /, **options: Unpack[AgentOptions]) -> None:
    async def run(world: World) -> None:
        tools = [world.tool("pay", needs_approval=True), world.tool("read")]
        calls = [call("read", x=1), call("pay", amount=50)]
        options["tools"] = tools
        agent = world.agent(says("", *calls), says("Done."), **options)
        parked = await world.run(agent.stream("Go"))
        assert parked is not None
        answers = {one.key: decision for one in parked.pending}
        await world.run(agent.resume_stream(parked, approvals=answers))

    named(name, run)


_decided("approved", True)
_decided("declined", decline("Too much."))
_decided("approved_with_an_edit", approve(edit={"amount": 5}))
_decided("approved_after_the_others_ran", True, run_ungated=True)


@scenario
async def asked_when_a_condition_holds(world: World) -> None:
    def over_limit(arguments: Mapping[str, Any], _: object) -> bool:
        return bool(arguments["amount"] > 10)

    agent = world.agent(
        says("", call("pay", "a", amount=5), call("pay", "b", amount=50)),
        says("Done."),
        tools=[world.tool("pay")],
        gate=ask("pay", when=over_limit) | allow("pay"),
        approve_tool_call=lambda pending: "50" in pending.arguments,
    )
    await world.run(agent.stream("Go"))


@scenario
async def approver_says_no(world: World) -> None:
    agent = world.agent(
        says("", call("pay")),
        says("Then not."),
        tools=[world.tool("pay", needs_approval=True)],
        approve_tool_call=lambda _: False,
    )
    await world.run(agent.stream("Go"))


@scenario
async def temporal_rules(world: World) -> None:
    agent = world.agent(
        says("", call("deploy")),
        says("", call("review"), call("deploy")),
        says("", call("deploy")),
        says("", call("deploy")),
        says("Done."),
        tools=[world.tool("review"), world.tool("deploy")],
        rules=[never("deploy", before="review"), at_most_once("deploy")],
    )
    await world.run(agent.stream("Go"))
