"""Several approvals in one turn: each is told, and each answer finds its call."""

from __future__ import annotations

from graphloop import Agent, approve, decline
from graphloop.parts.kinds import ToolApprovalRequest
from graphloop.testing import ScriptedModel
from tests.regressions.worlds import call, calls, counting, paired, results_of

THREE = calls(call("pay", 1), call("pay", 2), call("pay", 3))


def test_langgraph_6624_all_interrupts_of_a_turn_are_collected() -> None:
    """langchain-ai/langgraph#6624: of several parallel interrupts only the first came out."""
    agent = Agent(ScriptedModel([THREE]), tools=[counting([], needs_approval=True)])

    parked = agent.generate_sync("go")

    assert ['{"x": 1}', '{"x": 2}', '{"x": 3}'] == [one.arguments for one in parked.pending]


def test_langgraph_6626_equal_calls_are_answered_one_by_one() -> None:
    """langchain-ai/langgraph#6626: parallel interrupts had one id, so one answer went to all."""
    ran: list[str] = []
    same = [call("pay", x, id="call_0") for x in (1, 2, 3)]
    agent = Agent(ScriptedModel([calls(*same), "ok"]), tools=[counting(ran, needs_approval=True)])

    parked = agent.generate_sync("go")
    keys = [one.key for one in parked.pending]
    agent.resume_sync(parked, approvals={keys[0]: True, keys[1]: False, keys[2]: True})

    assert 3 == len(set(keys))
    assert ["pay 1", "pay 3"] == ran


def test_langgraph_6533_an_answer_goes_to_its_own_call() -> None:
    """One resume answers all calls, each with its own value.

    langchain-ai/langgraph#6533: values for parallel interrupts were swapped between tools.
    langchain-ai/langgraph#4028: each resume took one answer, and asked again for the others.
    """
    ran: list[str] = []
    agent = Agent(ScriptedModel([THREE, "ok"]), tools=[counting(ran, needs_approval=True)])

    parked = agent.generate_sync("go")
    edits = {one.key: approve(edit={"x": 10 + at}) for at, one in enumerate(parked.pending)}
    result = agent.resume_sync(parked, approvals=dict(reversed(edits.items())))

    assert not result.pending
    assert ["pay 10 done", "pay 11 done", "pay 12 done"] == results_of(result.messages)


def test_neograph_90_one_call_of_three_can_be_held_alone() -> None:
    """fox1245/NeoGraph#90: an interrupt held all tools of the node, or none."""
    ran: list[str] = []
    batch = calls(call("read", 1), call("read", 2), call("pay", 3))
    agent = Agent(
        ScriptedModel([batch, "ok"]),
        tools=[counting(ran, "read"), counting(ran, needs_approval=True)],
        run_ungated=True,
    )

    parked = agent.generate_sync("go")

    assert ["pay"] == [one.name for one in parked.pending]
    assert ["read 1", "read 2"] == ran


async def test_agent_framework_4590_the_stream_tells_every_request() -> None:
    """microsoft/agent-framework#4590: the end of the stream told only the last interrupt."""
    agent = Agent(ScriptedModel([THREE]), tools=[counting([], needs_approval=True)])

    stream = agent.stream("go")
    told = [part.key async for part in stream.full_stream if isinstance(part, ToolApprovalRequest)]
    pending = [one.key for one in (await stream.result()).pending]
    assert told == pending
    assert 3 == len(told)


def test_deepagentsjs_150_a_rejected_call_is_answered_too() -> None:
    """langchain-ai/deepagentsjs#150: rejecting one of two parallel calls left it unanswered."""
    ran: list[str] = []
    model = ScriptedModel([calls(call("pay"), call("read")), "ok"])
    agent = Agent(model, tools=[counting(ran, "read"), counting(ran, needs_approval=True)])

    parked = agent.generate_sync("go")
    result = agent.resume_sync(parked, approvals={parked.pending[0].key: decline("not today")})

    assert paired(model.requests[-1].messages)
    assert ["read 1"] == ran
    assert "not today" in results_of(result.messages)[0]
