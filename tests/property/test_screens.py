"""Screens: whatever a caller says, and whenever, no model reads it before it was judged."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphloop import Agent, EndReason, RunResult, RunStream, tool
from graphloop.conversation import Compaction
from graphloop.events import AnswerChecked, CallbackReturned, EffectsStarted, ModelReplied
from graphloop.parts.kinds import StepFinish, ToolResultPart
from graphloop.providers import TextDelta
from graphloop.providers.script import Entry
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.values import UserMessage
from tests.sizes import sized
from tests.strategies import call, reply

BAD = "bad"


@dataclass
class Said:
    """What a caller says in one turn: texts to steer with, and texts for later."""

    now: list[str] = field(default_factory=list[str])
    later: list[str] = field(default_factory=list[str])


words = st.sampled_from(["a", "b", BAD])
turns = st.lists(
    st.builds(Said, st.lists(words, max_size=2), st.lists(words, max_size=1)), max_size=4
)


@dataclass
class World:
    """An agent whose tool and whose screen speak for the caller while the run goes on."""

    turns: Sequence[Said]
    parallel: bool
    judged: list[str] = field(default_factory=list[str])
    unjudged: list[str] = field(default_factory=list[str])
    said: int = 0

    def speak(self, stream: RunStream[str], said: Said) -> None:
        """Say the texts of one turn, each with a number of its own."""
        for texts, say in ((said.now, stream.steer), (said.later, stream.follow_up)):
            for text in texts:
                self.said += 1
                say(f"{text} {self.said}")

    def run(self) -> tuple[RunResult[str], list[object], list[object]]:
        """Run the agent, and return its result, its events and its parts."""
        world = self
        waiting = list(self.turns)

        async def judge(text: str) -> bool:
            self.judged += text.split("\n\n")
            if waiting and len(waiting) % 2:
                world.speak(stream, waiting.pop())
            return BAD not in text

        @tool
        def go() -> str:
            """Go on."""
            if waiting:
                world.speak(stream, waiting.pop())
            return "gone"

        calls = reply(call("go"))
        script: list[Entry] = [calls, "one", calls, calls, "two", *["end"] * 30]
        model = ScriptedModel(script)
        store = MemoryStore()
        agent = Agent(
            model,
            screen=judge,
            screen_in_parallel=self.parallel,
            tools=[go],
            store=store,
            max_steps=20,
            compaction=Compaction(10**6),
        )
        stream = agent.stream("start 0", run_id="r")

        async def work() -> tuple[RunResult[str], list[object], list[object]]:
            parts: list[object] = [part async for part in stream.full_stream]
            result = await stream.result()
            return result, [*await store.load("r")], parts

        result, events, parts = asyncio.run(work())
        seen = {
            str(message.content)
            for request in model.requests
            for message in request.messages
            if isinstance(message, UserMessage)
        }
        self.unjudged = sorted(seen - {*self.judged})
        return result, events, parts


@settings(max_examples=sized(25), deadline=None)
@given(turns)
def test_no_model_reads_what_no_screen_has_judged(said: list[Said]) -> None:
    world = World(said, parallel=False)

    result, _, _ = world.run()

    assert [] == world.unjudged
    assert len(world.judged) == len({*world.judged}), "each message is judged once"
    blocked = any(text.startswith(BAD) for text in world.judged)
    assert blocked == (result.end_reason is EndReason.REFUSAL)


@settings(max_examples=sized(25), deadline=None)
@given(turns)
def test_beside_a_model_nothing_of_a_blocked_turn_is_done_or_shown(said: list[Said]) -> None:
    world = World(said, parallel=True)

    result, events, parts = world.run()

    assert [] == world.unjudged
    assert len(world.judged) == len({*world.judged}), "each message is judged once"
    blocked = [
        at
        for at, event in enumerate(events)
        if isinstance(event, CallbackReturned)
        and isinstance(event.answer, AnswerChecked)
        and not event.answer.accepted
    ]
    assert bool(blocked) == (result.end_reason is EndReason.REFUSAL)
    if blocked:
        after = events[blocked[0] + 1 :]
        assert not any(isinstance(event, EffectsStarted) for event in after)
        texts = [part.text for part in parts if isinstance(part, TextDelta)]
        assert "I cannot help with that." == texts[-1]
        ran = sum(isinstance(part, ToolResultPart) for part in parts)
        turns_shown = [part for part in parts if isinstance(part, StepFinish)]
        assert ran == sum(len(step.tool_results) for step in result.steps)
        assert len(turns_shown) == len(result.steps)
    replied = [event for event in events if isinstance(event, ModelReplied)]
    assert len(result.steps) in {len(replied), len(replied) + 1}


@pytest.mark.parametrize("parallel", [False, True])
def test_the_worlds_say_what_is_blocked(parallel: bool) -> None:
    """A world in which nothing is blocked would prove little."""
    result, _, _ = World([Said([BAD])], parallel=parallel).run()

    assert EndReason.REFUSAL is result.end_reason
