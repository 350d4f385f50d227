"""Contract 11 and 13: what belongs to the caller is never changed, and cannot be harmed."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from graphloop import Agent, RunResult, StepChanges, StepInfo
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.values import Reply
from tests.agents import CLIENT, drain, write
from tests.strategies import model_moves

roles = st.sampled_from(
    [
        {"role": "user", "content": "hi"},
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "system", "content": "be kind"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "a", "function": {"name": "read", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "text"},
    ]
)
conversations = st.lists(roles.map(copy.deepcopy), min_size=1, max_size=4)
scripts = st.lists(model_moves, max_size=3)


@given(messages=conversations, script=scripts)
def test_nothing_of_the_caller_s_is_ever_changed(
    messages: list[dict[str, object]], script: list[Reply]
) -> None:
    """The same list is the start of the caller's next request."""
    tools: list[Callable[..., object]] = [write, CLIENT]
    stops = ["END"]
    options: dict[str, object] = {"top_k": [1, 2]}
    replacement: list[dict[str, object]] = [{"role": "user", "content": "short"}]
    given_before = copy.deepcopy((messages, stops, options, replacement))

    def prepare(info: StepInfo) -> StepChanges | None:
        return StepChanges(messages=replacement) if info.step_index == 1 else None

    agent = Agent(
        ScriptedModel([*script, *["done"] * 9]),
        tools=tools,
        max_steps=4,
        stop_sequences=stops,
        provider_options=options,
        prepare_step=prepare,
        instructions="be kind",
    )
    asyncio.run(drain(agent.stream(messages=messages)))

    assert given_before == (messages, stops, options, replacement)
    assert [write, CLIENT] == tools


@given(script=scripts)
def test_a_run_never_changes_a_result_that_was_given_out(script: list[Reply]) -> None:
    """A leg's result is a value: resuming makes another one."""

    async def legs() -> None:
        agent = Agent(
            ScriptedModel([*script, *["done"] * 20]),
            tools=[CLIENT],
            max_steps=4,
            store=MemoryStore(),
        )
        _, leg = await drain(agent.stream("go", run_id="r"))
        for _ in range(9):
            if not isinstance(leg, RunResult) or not leg.pending:
                return
            before = (leg.messages, leg.steps, leg.total_usage, leg.pending, leg.run.seq)
            _, after = await drain(
                agent.resume_stream("r", tool_results={leg.pending[0].key: "theirs"})
            )
            assert before == (leg.messages, leg.steps, leg.total_usage, leg.pending, leg.run.seq)
            leg = after

    asyncio.run(legs())


@given(script=scripts)
def test_an_agent_answers_the_second_question_like_the_first(script: list[Reply]) -> None:
    """An agent holds no conversation: runs, also at the same time, know nothing of each other."""

    async def several() -> list[object]:
        model = ScriptedModel([*script, *["done"] * 9], restart=True)
        agent = Agent(model, tools=[write, CLIENT], max_steps=4)
        outcomes = await asyncio.gather(*(drain(agent.stream("go")) for _ in range(3)))
        outcomes.append(await drain(agent.stream("go")))
        return [
            (one.messages, one.end_reason) if isinstance(one, RunResult) else str(one)
            for _, one in outcomes
        ]

    first, *others = asyncio.run(several())

    assert [first] * 3 == others
