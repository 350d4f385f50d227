"""Effects and their records: what may have happened is not done again unasked."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from graphloop import Agent, Tool, ToolContext
from graphloop.errors import StoreError
from graphloop.events import Event, ToolReturned
from graphloop.testing import ScriptedModel
from graphloop.tools import NOT_DONE, Found
from graphloop.tools.options import EffectPolicy, NotFound, Reconcile
from tests.passing_store import PassingStore
from tests.regressions.worlds import NUMBER, call, calls, counting, paired, results_of


class Dying(PassingStore):
    """A store whose process dies, once, between the effect of a tool and its record."""

    def __init__(self) -> None:
        super().__init__()
        self._dies = True

    async def append(self, run_id: str, seq: int, *events: Event) -> None:
        """Keep events, but for the first result of a tool."""
        if self._dies and any(isinstance(event, ToolReturned) for event in events):
            self._dies = False
            raise StoreError("the process died")
        await super().append(run_id, seq, *events)


def charge(
    seen: list[str], effect: EffectPolicy, reconcile: Reconcile | None = None
) -> Tool[..., object]:
    """Return a tool that takes money, and notes under which key."""

    async def execute(_: Mapping[str, int], context: ToolContext) -> str:
        seen.append(context.idempotency_key)
        return "charged"

    return Tool(
        name="charge", parameters=NUMBER, execute=execute, effect=effect, reconcile=reconcile
    )


def crashed_and_resumed(tool: Tool[..., object]) -> tuple[list[str], str]:
    """Crash behind the tool's effect, resume, and return what the model read and then said."""

    async def scenario() -> tuple[list[str], str]:
        store = Dying()
        model = ScriptedModel([calls(call("charge")), "done"])
        agent = Agent(model, tools=[tool], store=store)
        with pytest.raises(StoreError, match="died"):
            await agent.generate("go", run_id="r")
        result = await agent.resume("r")
        assert paired(result.messages)
        return results_of(result.messages), result.text

    return asyncio.run(scenario())


def test_langgraph_8039_a_crash_before_a_record_repeats_nothing() -> None:
    """langchain-ai/langgraph#8039: what recovery did again depended on the order of two writes."""
    seen: list[str] = []

    told, text = crashed_and_resumed(charge(seen, "at_most_once"))

    assert 1 == len(seen)
    assert "done" == text
    assert "charged" not in told[0]


def test_langgraph_8702_a_tool_that_may_repeat_gets_a_key() -> None:
    """langchain-ai/langgraph#8702: a retry may pay twice; it was the user's job to prevent it."""
    seen: list[str] = []

    told, _ = crashed_and_resumed(charge(seen, "idempotent"))

    assert 2 == len(seen)
    assert 1 == len(set(seen))
    assert ["charged"] == told


def test_langgraph_7417_a_lookup_settles_a_dead_process_s_tool() -> None:
    """langchain-ai/langgraph#7417: the effect had happened, and only the service knew of it."""
    seen: list[str] = []

    def look_up(_: Mapping[str, int], context: ToolContext) -> Found | NotFound:
        return Found("charged before") if context.idempotency_key in seen else NOT_DONE

    told, _ = crashed_and_resumed(charge(seen, "reconcile", look_up))

    assert 1 == len(seen)
    assert ["charged before"] == told


def test_openai_agents_python_4615_an_unkept_result_is_not_lost() -> None:
    """openai/openai-agents-python#4615: a tool ran, its output was lost, and the run went on."""
    seen: list[str] = []

    told, _ = crashed_and_resumed(charge(seen, "at_most_once"))

    assert 1 == len(told)
    assert "not known" in told[0]


def test_langgraph_8039_equal_calls_are_two_effects() -> None:
    """langchain-ai/langgraph#8039: keys made of the action alone take two payments for one."""
    seen: list[str] = []
    model = ScriptedModel([calls(call("charge", id="same"), call("charge", id="same")), "done"])

    Agent(model, tools=[charge(seen, "idempotent")]).generate_sync("go", run_id="r")

    assert 2 == len(set(seen))


def test_adk_python_3940_one_call_is_one_execution() -> None:
    """google/adk-python#3940: tools were called several times by the framework, not the model."""
    ran: list[str] = []
    model = ScriptedModel([calls(call("pay", 1), call("pay", 2)), "done"])

    Agent(model, tools=[counting(ran)]).generate_sync("go")

    assert ["pay 1", "pay 2"] == ran
