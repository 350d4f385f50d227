"""Approvals inside agents that agents call: they reach the human, and the answer its call."""

from __future__ import annotations

import asyncio
from pathlib import Path

from graphloop import Agent, EndReason, RunResult, agent_tool, allow, deny
from graphloop.parts.kinds import Part, SubAgent, ToolApprovalRequest
from graphloop.testing import ScriptedModel
from tests.regressions.worlds import call, calls, counting, results_of


def ask(name: str) -> dict[str, object]:
    """Return a reply that calls an agent."""
    return {"calls": [{"name": name, "arguments": {"prompt": "do it"}}]}


class Firm:
    """A chief who calls a clerk, who pays; with `deep`, the clerk has a clerk of his own."""

    def __init__(self, ran: list[str], *, deep: bool = False, store: str | None = None) -> None:
        self.clerk_model = ScriptedModel([calls(call("pay")), "paid"], label="clerk")
        self.chief_model = ScriptedModel(
            [ask("office" if deep else "clerk"), "all done"], label="chief"
        )
        self.clerk = agent_tool(
            self.clerk_model,
            name="clerk",
            description="Pays.",
            tools=[counting(ran, needs_approval=True)],
        )
        office = agent_tool(
            ScriptedModel([ask("clerk"), "the clerk has paid"], label="office"),
            name="office",
            description="Has a clerk.",
            tools=[self.clerk],
        )
        self.chief = Agent(self.chief_model, tools=[office if deep else self.clerk], store=store)


def approve_all(agent: Agent, parked: RunResult) -> RunResult:
    return agent.resume_sync(parked, approvals={one.key: True for one in parked.pending})


def test_pydantic_ai_4302_a_deferred_call_defers_its_caller() -> None:
    """The caller waits, and the approved call runs once, in the agent that made it.

    pydantic/pydantic-ai#4302: a tool of a sub-agent could not ask for approval at all.
    openai/openai-agents-js#243: `interruptions` stayed empty for a tool of an agent as tool.
    openai/openai-agents-js#680: once approved, the outer agent ended without the tool's run.
    mastra-ai/mastra#23626: the sub-agent began anew, and asked for the same approval again.
    """
    ran: list[str] = []
    firm = Firm(ran)

    parked = firm.chief.generate_sync("pay them")
    result = approve_all(firm.chief, parked)

    assert (EndReason.PARKED, 1) == (parked.end_reason, len(parked.pending))
    assert ["pay 1"] == ran
    assert ["pay 1 done"] == results_of(firm.clerk_model.requests[-1].messages)
    assert ["paid"] == results_of(firm.chief_model.requests[-1].messages)
    assert (2, 2) == (len(firm.clerk_model.requests), len(firm.chief_model.requests))
    assert (EndReason.COMPLETED, "all done") == (result.end_reason, result.text)


def test_pydantic_ai_3527_the_request_says_which_agent_asks() -> None:
    """pydantic/pydantic-ai#3527: how should a request of agent B get from agent A to the user?"""
    parked = Firm([], deep=True).chief.generate_sync("pay them")

    (one,) = parked.pending
    assert ("office", "clerk") == one.agents
    assert ("pay", '{"x": 1}') == (one.name, one.arguments)


def test_openai_agents_python_4414_approvals_go_two_levels_down() -> None:
    """openai/openai-agents-python#4414: behind two agents, an approval was asked for again."""
    ran: list[str] = []
    firm = Firm(ran, deep=True)

    result = approve_all(firm.chief, firm.chief.generate_sync("pay them"))

    assert not result.pending
    assert ["pay 1"] == ran


def test_agent_framework_4963_a_nested_approval_finds_its_tool() -> None:
    """microsoft/agent-framework#4963: the answer was dropped: the outer agent had no such tool."""
    ran: list[str] = []
    firm = Firm(ran)
    parked = firm.chief.generate_sync("pay them")
    (one,) = parked.pending

    result = firm.chief.resume_sync(parked, approvals={one.key: one.approve(edit={"x": 7})})

    assert ["pay 7"] == ran
    assert EndReason.COMPLETED is result.end_reason


def test_agent_framework_8247_an_approved_call_runs_in_its_agent() -> None:
    """microsoft/agent-framework#8247: the entry agent was asked to run another agent's call."""
    entry: list[str] = []
    ran: list[str] = []
    firm = Firm(ran)
    own = counting(entry, needs_approval=True)
    chief = firm.chief.with_options(tools=[firm.clerk, own])

    approve_all(chief, chief.generate_sync("pay them"))

    assert ([], ["pay 1"]) == (entry, ran)


def test_mastra_12552_the_stream_tells_a_request_at_any_depth() -> None:
    """mastra-ai/mastra#12552: approvals of sub-agents were swallowed by the parent's stream."""
    firm = Firm([], deep=True)

    async def scenario() -> list[Part]:
        return [part async for part in firm.chief.stream("pay them").full_stream]

    told = [
        (part.agents, part.part.tool_name)
        for part in asyncio.run(scenario())
        if isinstance(part, SubAgent) and isinstance(part.part, ToolApprovalRequest)
    ]
    assert [(("office", "clerk"), "pay")] == told


def test_mastra_20487_a_declined_nested_call_never_runs() -> None:
    """mastra-ai/mastra#20487: declining a call let it run after all."""
    ran: list[str] = []
    firm = Firm(ran)
    parked = firm.chief.generate_sync("pay them")

    result = firm.chief.resume_sync(parked, approvals={one.key: False for one in parked.pending})

    assert [] == ran
    assert EndReason.COMPLETED is result.end_reason


def test_xagent_773_a_nested_approval_outlives_its_process(tmp_path: Path) -> None:
    """xorbitsai/xagent#773: a question of an agent's agent was lost, and lost with its process."""
    ran: list[str] = []
    store = str(tmp_path / "runs.db")

    Firm(ran, store=store).chief.generate_sync("pay them", run_id="r")
    rest = _rest(ran, store)
    keys = [one.key for one in rest.resume_sync("r").pending]
    result = rest.resume_sync("r", approvals=dict.fromkeys(keys, True))

    assert ["pay 1"] == ran
    assert "all done" == result.text


def _rest(ran: list[str], store: str) -> Agent:
    clerk = agent_tool(
        ScriptedModel(["paid"], label="clerk"),
        name="clerk",
        description="Pays.",
        tools=[counting(ran, needs_approval=True)],
    )
    return Agent(ScriptedModel(["all done"], label="chief"), tools=[clerk], store=store)


def test_kronos_agent_os_25_delegation_is_no_way_around_a_gate() -> None:
    """spyrae/kronos-agent-os#25: what the top agent had to ask about, its agents just did."""
    ran: list[str] = []
    clerk_model = ScriptedModel([calls(call("pay")), "could not pay"], label="clerk")
    clerk = agent_tool(clerk_model, name="clerk", description="Pays.", tools=[counting(ran)])
    chief = Agent(
        ScriptedModel([ask("clerk"), "sorry"], label="chief"),
        tools=[clerk],
        gate=deny("pay", reason="nobody pays today") | allow("*"),
    )

    chief.generate_sync("pay them")

    assert [] == ran
    assert "nobody pays today" in results_of(clerk_model.requests[-1].messages)[0]
