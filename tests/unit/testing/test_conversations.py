"""Conversations: whether calls pair, the past stays, and requests grow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from graphloop import Graph, tool
from graphloop.conversation import BLOCKED_NOTE
from graphloop.effects import CallModel, Effect
from graphloop.events import CallbackReturned, Changes, Event, Setup, Started, Steered
from graphloop.node_protocol import Kind, Leave, Node, Reaction, Wait
from graphloop.nodes import Retrying
from graphloop.outcomes import Blocked, Compacted, Outcome
from graphloop.run import History, Run, evolve
from graphloop.testing.conversations import rewritten, unpaired
from graphloop.testing.fuzzing import fuzz
from graphloop.testing.subject import Subject
from graphloop.testing.trace import Move, Trace, TraceStep
from graphloop.values import AssistantMessage, Message, ToolCall, ToolResult, UserMessage
from tests.runs import changed as with_facts
from tests.strategies import call, said
from tests.unit.testing.planted import (
    Bug,
    Twisted,
    deciding,
    entering,
    table,
    twisted,
)

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


def rewriting(run: Run[None]) -> Run[None]:
    """Make the first message another one, once there are enough."""
    if len(run.messages) <= 3:
        return run
    return evolve(run, messages=History((ANOTHER, *run.messages[1:])))


def forgetting(run: Run[None]) -> Run[None]:
    """Take back the last message that the run has added."""
    return with_facts(run, added=History(run.record.added[:-1]))


def dropping(run: Run[None]) -> Run[None]:
    """Take back the newest answer, as if it had not been given."""
    return with_facts(
        run, messages=History(run.messages[:-1]), added=History(run.record.added[:-1])
    )


def forging(run: Run[None]) -> Run[None]:
    """Make the newest result another one, in both records."""
    if not run.record.added or not isinstance(newest := run.record.added[-1], ToolResult):
        return run
    forged = evolve(newest, content="forged", status="ok")
    messages, added = (*run.messages[:-1], forged), (*run.record.added[:-1], forged)
    return with_facts(run, messages=History(messages), added=History(added))


@dataclass(frozen=True)
class Shortening(Twisted):
    """Says that it makes conversations shorter."""

    @property
    def outcomes(self) -> frozenset[type[Outcome]]:
        return self.node.outcomes | {Compacted}


@pytest.mark.parametrize(
    ("kind", "bug", "found"),
    [
        ("prepare", rewriting, "message 1 of the conversation is another one now"),
        # What comes right behind the append, in the same step of the engine:
        ("stop", forgetting, "of what the run has added is gone"),
        ("stop", dropping, "of the conversation is gone"),
        ("stop", forging, "of the conversation is another one now"),
        ("stop", forging, "of what the run has added is another one now"),
    ],
)
def test_a_node_that_changes_the_past_is_found(
    kind: Kind, bug: Callable[[Run[None]], Run[None]], found: str
) -> None:
    """A model has read it, and a caller was given it: it stays."""
    report = fuzz(twisted(kind, entering(bug)), seeds=100)

    told = [one for each in report.failing for one in each.violations if one.code == "past"]
    (name,) = [one.name for one in table().nodes.values() if one.kind == kind]
    assert any(found in one.what for one in told)
    assert all(one.what.endswith(f"changed by node {name!r}") for one in told)
    assert all(one.event for one in told)


def test_a_node_may_rewrite_only_where_it_leaves_by_compacted() -> None:
    """That it leaves by `Compacted` at times makes it no editor."""
    report = fuzz(twisted("append", lambda node: Shortening(node, rewriting)), seeds=100)

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
    begin, later = evolve(run, messages=History(before)), evolve(run, messages=History(after))
    first = Move(1, None, graph.nodes[name], begin, begin, Wait(run), "")
    second = Move(2, event, graph.nodes[name], run, begin, Wait(later), "")
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
        two_moves(plain, Shortening(append, rewriting)),
    ]

    assert ["past"] == [one.code for one in rewritten(*two_moves(plain))]
    assert ["past"] == [
        one.code for one in rewritten(*two_moves(plain, Twisted(append, rewriting)))
    ]
    for subject, trace in allowed:
        assert [] == list(rewritten(subject, trace))


@pytest.mark.parametrize(
    ("after", "codes"),
    [
        ((UserMessage(BLOCKED_NOTE), said("x")), []),
        ((UserMessage(BLOCKED_NOTE),), ["past"]),
        ((ANOTHER, said("x")), ["past"]),
        ((UserMessage("a"), said(BLOCKED_NOTE)), ["past"]),
    ],
    ids=["note", "gone", "other", "answer"],
)
def test_a_screen_that_blocks_only_takes_messages_of_the_user(
    after: tuple[Message, ...], codes: list[str]
) -> None:
    """A note stands in the place of each, and what a model has said stays."""
    plain = CallbackReturned(1.0, 1, Changes())
    subject, trace = two_moves(plain, before=(UserMessage("a"), said("x")), after=after)
    first, second = trace.steps
    (move,) = second.moves
    blocked = replace(move, reaction=Leave(move.run, Blocked()))

    found = rewritten(subject, Trace((first, replace(second, moves=(blocked,)))))

    assert codes == [one.code for one in found]


def test_a_retrying_node_takes_back_only_its_own_messages() -> None:
    """What stood when it was entered is none of its own."""
    plain, before, told = CallbackReturned(1.0, 1, Changes()), (UserMessage("a"),), (ANOTHER,)
    model = next(one for one in table().nodes.values() if one.kind == "model")
    again = Retrying(model, times=2)

    assert [] == list(rewritten(*two_moves(plain, again, before, told, before)))
    for node, after in ((model, before), (again, ())):
        found = rewritten(*two_moves(plain, node, before, told, after))
        assert ["past"] == [one.code for one in found]


def whispering(told: Callable[[Message], Message]) -> Bug:
    """Return the bug of a node that sends the model other messages; the record keeps the truth."""

    def forged(effect: Effect) -> Effect:
        if not isinstance(effect, CallModel):
            return effect
        messages = tuple(map(told, effect.request.messages))
        return evolve(effect, request=evolve(effect.request, messages=messages))

    def sent(
        _: Run[None], __: Event | None, reaction: Reaction[None, Outcome]
    ) -> Reaction[None, Outcome]:
        if not isinstance(reaction, Wait):
            return reaction
        return Wait(reaction.run, tuple(map(forged, reaction.effects)))

    return deciding(sent)


def another_result(one: Message) -> Message:
    """Return a result that no tool gave."""
    return evolve(one, content="forged") if isinstance(one, ToolResult) else one


def the_same(one: Message) -> Message:
    """Return a message as it is."""
    return one


def test_a_model_that_is_sent_another_result_is_found() -> None:
    """It would decide on what nobody has said."""
    report = fuzz(twisted("model", whispering(another_result)), seeds=100, tools=[read])

    told = [one.what for each in report.failing for one in each.violations]
    assert any(
        one.startswith("the model is sent another result of call c-")
        and one.endswith("than the conversation has, by node 'model_call'")
        for one in told
    )
    assert fuzz(twisted("model", whispering(the_same)), seeds=100, tools=[read]).ok
