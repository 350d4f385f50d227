"""Conversations: whether calls pair, the past stays, and requests grow."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from graphloop import Graph, tool
from graphloop.effects import CallModel, Effect
from graphloop.events import CallbackReturned, Changes, Event, Setup, Started, Steered
from graphloop.history import History
from graphloop.node_protocol import Node, Reaction, Wait
from graphloop.nodes import Retrying
from graphloop.outcomes import Compacted, Outcome
from graphloop.run import Run, evolve
from graphloop.testing.conversations import rewritten, unpaired
from graphloop.testing.fuzzing import fuzz
from graphloop.testing.subject import Subject
from graphloop.testing.trace import Decision, Trace, TraceStep
from graphloop.values import AssistantMessage, Message, ToolCall, ToolResult, UserMessage
from tests.runs import changed as with_facts
from tests.strategies import call, said
from tests.unit.testing.planted import Around, as_it_is, table, twisted

ASKED = said(call("read", "1"), call("write", "2"))
FIRST, SECOND = ToolResult("c0.0", "1", "read", "a"), ToolResult("c0.1", "2", "write", "b")
USER = UserMessage("Go.")


@pytest.mark.parametrize(
    "history", [(), (USER,), (USER, ASKED, FIRST, SECOND), (ASKED, FIRST, SECOND, USER, said("x"))]
)
def test_a_paired_history_is_in_order(history: tuple[Message, ...]) -> None:
    """Nothing is found where nothing is wrong."""
    assert [] == list(unpaired(history))


@pytest.mark.parametrize(
    ("history", "found"),
    [
        ((ASKED,), "call 1 of 'read' has no result"),
        ((ASKED, FIRST), "call 2 of 'write' has no result"),
        ((ASKED, FIRST, USER, SECOND), "call 2 of 'write' has no result"),
        ((ASKED, SECOND, FIRST), "a result of 'write' answers a call of 'read'"),
        ((ASKED, FIRST, SECOND, SECOND), "message 4: the result of 'write' answers no call"),
        ((FIRST,), "the result of 'read' answers no call"),
    ],
)
def test_every_way_to_be_unpaired_is_found(history: tuple[Message, ...], found: str) -> None:
    """One orphan, and providers refuse the whole conversation for ever."""
    assert found in "\n".join(unpaired(history))


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
class Changing(Around):
    """Makes another run of what it is given, and of what it leaves behind."""

    def enter(self, run: Run[None], /) -> Reaction[None, Outcome]:
        """Change what has just been added."""
        return super().enter(self.changed(run))

    def changed(self, run: Run[None]) -> Run[None]:
        """Return the run that the node goes on with."""
        raise NotImplementedError


@dataclass(frozen=True)
class Forgetting(Changing):
    """Takes back the last message that the run has added."""

    def changed(self, run: Run[None]) -> Run[None]:
        return with_facts(run, added=History(run.record.added[:-1]))


@dataclass(frozen=True)
class Dropping(Changing):
    """Takes back the newest answer, as if it had not been given."""

    def changed(self, run: Run[None]) -> Run[None]:
        return with_facts(
            run, messages=History(run.messages[:-1]), added=History(run.record.added[:-1])
        )


@dataclass(frozen=True)
class Forging(Changing):
    """Makes the newest result another one, where the conversation stands, and where it is told."""

    def changed(self, run: Run[None]) -> Run[None]:
        if not run.record.added or not isinstance(newest := run.record.added[-1], ToolResult):
            return run
        forged = evolve(newest, content="forged", status="ok")
        messages, added = (*run.messages[:-1], forged), (*run.record.added[:-1], forged)
        return with_facts(run, messages=History(messages), added=History(added))


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
        # What comes right behind the append, in the same step of the engine:
        ("stop", Forgetting, "of what the run has added is gone"),
        ("stop", Dropping, "of the conversation is gone"),
        ("stop", Forging, "of the conversation is another one now"),
        ("stop", Forging, "of what the run has added is another one now"),
    ],
)
def test_a_node_that_changes_the_past_is_found(kind: str, bug: type[Around], found: str) -> None:
    """What a model has read, and what a caller is given, is what was said."""

    def twist(node: Node[None, Outcome]) -> Node[None, Outcome]:
        return bug(node) if node.kind == kind else as_it_is(node)

    report = fuzz(table(twist), seeds=100)

    told = [one for each in report.failing for one in each.violations if one.code == "past"]
    (name,) = [one.name for one in table().nodes.values() if one.kind == kind]
    assert any(found in one.what for one in told)
    assert all(one.what.endswith(f"changed by node {name!r}") for one in told)
    assert all(one.event for one in told)


def test_a_node_that_may_compact_rewrites_nothing_on_its_other_ways() -> None:
    """That it leaves by `Compacted` at times makes it no editor."""

    def twist(node: Node[None, Outcome]) -> Node[None, Outcome]:
        return Shortening(node) if node.kind == "append" else as_it_is(node)

    report = fuzz(table(twist), seeds=100)

    told = {one.what for each in report.failing for one in each.violations if one.code == "past"}
    assert told == {"message 1 of the conversation is another one now, changed by node 'append'"}


def two_moves(
    event: Event,
    node: Node[None, Outcome] | None = None,
    before: tuple[Message, ...] = (UserMessage("a"), UserMessage("b")),
    told: tuple[Message, ...] = (),
    after: tuple[Message, ...] = (ANOTHER,),
) -> tuple[Subject[None], Trace[None]]:
    """Return a trace of a node that tells something, and by this event leaves another history."""

    def placed(one: Node[None, Outcome]) -> Node[None, Outcome]:
        return one if node is None or one.kind != node.kind else node

    graph: Graph[None] = table(placed)
    name = "stop_check" if node is None else node.name
    started = Started(0.0, "r", graph.name, before, Setup())
    run: Run[None] = Run(
        id="r",
        node=name,
        state=None,
        setup=Setup(),
        at=0.0,
        messages=History(before + told),
    )
    later = evolve(run, messages=History(after))
    first, second = Decision(1, name, Wait(run)), Decision(2, name, Wait(later))
    steps = (
        TraceStep(started, None, "", (first,), (), run),
        TraceStep(event, None, name, (second,), (), later),
    )
    return Subject(graph, None, Setup()), Trace(steps)


def test_who_may_change_the_conversation_may() -> None:
    """The caller, a function that was asked for it, a node that compacts, open calls."""
    plain = CallbackReturned(1.0, 1, Changes())
    handed_in = (UserMessage("a"), AssistantMessage((ToolCall("1", "read", "{}"),)))
    append = next(one for one in table().nodes.values() if one.kind == "append")
    allowed = [
        two_moves(Steered(1.0, 1, (ANOTHER,))),
        two_moves(CallbackReturned(1.0, 1, Changes(messages=(ANOTHER,)))),
        two_moves(plain, before=handed_in),
        two_moves(plain, Shortening(append)),
    ]

    assert ["past"] == [one.code for one in rewritten(*two_moves(plain))]
    assert ["past"] == [one.code for one in rewritten(*two_moves(plain, Rewriting(append)))]
    for subject, trace in allowed:
        assert [] == list(rewritten(subject, trace))


def test_a_node_that_tries_again_takes_back_what_it_has_told_and_no_more() -> None:
    """What stood when it was entered is none of its own."""
    plain, before, told = CallbackReturned(1.0, 1, Changes()), (UserMessage("a"),), (ANOTHER,)
    model = next(one for one in table().nodes.values() if one.kind == "model")
    again = Retrying(model, times=2)

    assert [] == list(rewritten(*two_moves(plain, again, before, told, before)))
    for node, after in ((model, before), (again, ())):
        found = rewritten(*two_moves(plain, node, before, told, after))
        assert ["past"] == [one.code for one in found]


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
class Unshared(Whispering):
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
    assert fuzz(twisted("model", Unshared), seeds=100, tools=[read]).ok
