"""Past: who may change what stands in a conversation, and who may not."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from graphloop import Agent, Compaction, Graph, tool
from graphloop.events import CallbackReturned, Changes, Event, Setup, Started, Steered
from graphloop.fuzz.choices import Choices
from graphloop.fuzz.fuzzing import fuzz, subject_of
from graphloop.fuzz.past import rewritten
from graphloop.fuzz.story import Chapter, Story
from graphloop.fuzz.subject import Subject
from graphloop.fuzz.trials import tried
from graphloop.history import History
from graphloop.node_protocol import Node, Reaction
from graphloop.nodes import Retrying
from graphloop.outcomes import Compacted, Outcome
from graphloop.run import Run, evolve
from graphloop.testing import ScriptedModel
from graphloop.values import AssistantMessage, Message, ToolCall, UserMessage
from tests.unit.fuzz.planted import Around, as_it_is, table

ANOTHER = UserMessage("rewritten")


@tool
def read(text: str) -> str:
    """Read."""
    return text


@dataclass(frozen=True)
class Rewriting(Around):
    """Makes the first message another one, once there are enough."""

    def enter(self, run: Run[None], /) -> Reaction[None, Outcome]:
        """Rewrite it."""
        if len(run.messages) > 3:
            run = evolve(run, messages=History((ANOTHER, *run.messages[1:])))
        return super().enter(run)


@dataclass(frozen=True)
class Forgetting(Around):
    """Takes back the last message that the run has added."""

    def enter(self, run: Run[None], /) -> Reaction[None, Outcome]:
        """Take it back."""
        return super().enter(evolve(run, added=History(run.added[:-1])))


@dataclass(frozen=True)
class Shortening(Rewriting):
    """Says that it makes conversations shorter."""

    @property
    def outcomes(self) -> frozenset[type[Outcome]]:
        return self.node.outcomes | {Compacted}


@pytest.mark.parametrize(
    ("kind", "bug", "found"),
    [
        ("prepare", Rewriting, "message 1 of the conversation is another one now"),
        ("stop", Forgetting, "of what the run has added is gone"),
    ],
)
def test_a_node_that_changes_the_past_is_found(kind: str, bug: type[Around], found: str) -> None:
    """What a model has read, and what a caller is given, is what was said."""

    def twist(node: Node[None, Outcome]) -> Node[None, Outcome]:
        return bug(node) if node.kind == kind else as_it_is(node)

    report = fuzz(table(twist), seeds=100)

    told = [one for each in report.failing for one in each.violations if one.code == "past"]
    assert told
    assert found in told[0].what
    assert told[0].event


def test_an_agent_that_compacts_is_not_complained_of() -> None:
    """To shorten is what a Compact is for."""
    compaction = Compaction(context_window=1_000, keep_recent_turns=1)
    agent = Agent(ScriptedModel(()), tools=[read], compaction=compaction)
    subject = subject_of(agent)
    shortened = 0

    for seed in range(200):
        story = tried(subject, Choices.seeded(seed), 2_000).story
        assert [] == list(rewritten(subject, story))
        shortened += any(
            one.outcome == "compacted" for chapter in story.chapters for one in chapter.passages
        )

    assert shortened


def two_chapters(
    event: Event,
    node: Node[None, Outcome] | None = None,
    before: tuple[Message, ...] = (UserMessage("a"), UserMessage("b")),
) -> tuple[Subject[None], Story[None]]:
    """Return a story whose second chapter, by this event at a node, begins another history."""

    def placed(one: Node[None, Outcome]) -> Node[None, Outcome]:
        return one if node is None or one.kind != node.kind else node

    graph: Graph[None] = table(placed)
    name = "stop_check" if node is None else node.name
    first = Started(0.0, "r", graph.name, before, Setup())
    run: Run[None] = Run(
        id="r",
        graph=graph.name,
        node=name,
        state=None,
        setup=Setup(),
        at=0.0,
        started_at=0.0,
        messages=History(before),
    )
    told = Chapter(first, None, "", (), (), run)
    after = replace_messages(run)
    return Subject(graph, None, Setup()), Story((told, Chapter(event, None, name, (), (), after)))


def replace_messages(run: Run[None]) -> Run[None]:
    """Return the run with another conversation."""
    return evolve(run, messages=History((ANOTHER,)))


def test_who_may_change_the_conversation_may() -> None:
    """The caller, a function that was asked for it, a node that compacts, open calls, a retry."""
    plain = CallbackReturned(1.0, 1, Changes())
    handed_in = (UserMessage("a"), AssistantMessage((ToolCall("1", "read", "{}"),)))
    append = next(one for one in table().nodes.values() if one.kind == "append")
    model = next(one for one in table().nodes.values() if one.kind == "model")
    allowed = [
        two_chapters(Steered(1.0, 1, (ANOTHER,))),
        two_chapters(CallbackReturned(1.0, 1, Changes(messages=(ANOTHER,)))),
        two_chapters(plain, before=handed_in),
        two_chapters(plain, Shortening(append)),
        two_chapters(plain, Retrying(model, times=2)),
    ]

    assert ["past"] == [one.code for one in rewritten(*two_chapters(plain))]
    assert ["past"] == [one.code for one in rewritten(*two_chapters(plain, Rewriting(append)))]
    for subject, story in allowed:
        assert [] == list(rewritten(subject, story))
