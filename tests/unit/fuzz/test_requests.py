"""Requests: a model decides on what its tools have said, and on nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from graphloop import Agent, Compaction, tool
from graphloop.effects import CallModel, Effect
from graphloop.events import Event
from graphloop.fuzz.choices import Choices
from graphloop.fuzz.fuzzing import fuzz, subject_of
from graphloop.fuzz.requests import untrue_requests
from graphloop.fuzz.trials import tried
from graphloop.node_protocol import Reaction, Wait
from graphloop.outcomes import Outcome
from graphloop.run import Run, evolve
from graphloop.testing import ScriptedModel
from graphloop.values import Message, ToolResult
from tests.unit.fuzz.planted import Around, twisted


@tool
def read(text: str) -> str:
    """Read."""
    return text


@dataclass(frozen=True)
class Whispering(Around):
    """Sends the model other results than there are; the record keeps the truth."""

    def enter(self, run: Run[None], /) -> Reaction[None, Outcome]:
        """Change what is sent first."""
        return self.changed(super().enter(run))

    def on(
        self, run: Run[None], event: Event, answered: Effect | None, /
    ) -> Reaction[None, Outcome]:
        """Change what is sent again."""
        return self.changed(super().on(run, event, answered))

    def changed(self, reaction: Reaction[None, Outcome]) -> Reaction[None, Outcome]:
        """Return the reaction with other requests."""
        if not isinstance(reaction, Wait):
            return reaction
        return Wait(reaction.run, tuple([self.forged(one) for one in reaction.effects]))

    def forged(self, effect: Effect) -> Effect:
        """Return an effect with other results in it."""
        if not isinstance(effect, CallModel):
            return effect
        messages = tuple([self.told(one) for one in effect.request.messages])
        return evolve(effect, request=evolve(effect.request, messages=messages))

    def told(self, one: Message) -> Message:
        """Return what is sent in place of a message."""
        return evolve(one, content="forged") if isinstance(one, ToolResult) else one


@dataclass(frozen=True)
class Leaving(Whispering):
    """Sends less than there is, and all of that as it is."""

    def forged(self, effect: Effect) -> Effect:
        if not isinstance(effect, CallModel):
            return effect
        return evolve(effect, request=evolve(effect.request, messages=(*effect.request.messages,)))


def test_a_model_that_is_sent_another_result_is_found() -> None:
    """It would decide on what nobody has said."""
    report = fuzz(twisted("model", Whispering), seeds=100, tools=[read])

    told = [one.what for each in report.failing for one in each.violations]
    assert any(
        one.startswith("the model is sent another result of call c-")
        and one.endswith("than the conversation has, by node 'model_call'")
        for one in told
    )
    assert fuzz(twisted("model", Leaving), seeds=100, tools=[read]).ok


def test_an_agent_that_compacts_sends_what_there_is() -> None:
    """What is asked for a summary is the conversation, too."""
    compaction = Compaction(context_window=1_000, keep_recent_turns=1)
    subject = subject_of(Agent(ScriptedModel(()), tools=[read], compaction=compaction))

    for seed in range(200):
        story = tried(subject, Choices.seeded(seed), 2_000).story
        assert [] == list(untrue_requests(subject, story))
