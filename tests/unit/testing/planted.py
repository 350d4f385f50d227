"""Graphs with a bug each, such as people write: the fuzzer has to find every one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from graphloop import END, Edges, Graph, allow, ask, deny
from graphloop.effects import CallTool, Effect, Invoke
from graphloop.events import (
    AnswerChecked,
    CallbackReturned,
    Decided,
    Event,
    ModelReplied,
    ToolReturned,
)
from graphloop.node_protocol import Kind, Leave, Node, Reaction, Wait
from graphloop.nodes import Append, Execute, Gate, ModelCall, PrepareStep, StopCheck
from graphloop.outcomes import (
    Aborted,
    AnsweredCalls,
    Calls,
    Done,
    Final,
    Go,
    Outcome,
    Ready,
    Rejected,
    Resend,
    Settled,
    Stop,
)
from graphloop.run import Run, evolve
from graphloop.values import ToolResult, call_key, call_place
from tests.runs import changed

__all__ = ["BUGS", "table"]

Decision: TypeAlias = Reaction[None, Outcome]
Bug: TypeAlias = Callable[[Node[None, Outcome]], Node[None, Outcome]]


@dataclass(frozen=True)
class Around:
    """A node that does what another does; those that derive from it do one thing wrong."""

    node: Node[None, Outcome]

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def kind(self) -> Kind:
        return self.node.kind

    @property
    def outcomes(self) -> frozenset[type[Outcome]]:
        return self.node.outcomes

    @property
    def contract(self) -> object:
        return getattr(self.node, "contract", None)

    def enter(self, run: Run[None], /) -> Reaction[None, Outcome]:
        return self.node.enter(run)

    def on(
        self, run: Run[None], event: Event, answered: Effect | None, /
    ) -> Reaction[None, Outcome]:
        return self.node.on(run, event, answered)


def same(run: Run[None]) -> Run[None]:
    """Return a run as it is."""
    return run


def as_heard(event: Event) -> Event:
    """Return an event as it is."""
    return event


def as_decided(_: Run[None], __: Event | None, reaction: Decision) -> Decision:
    """Return a decision as it is."""
    return reaction


@dataclass(frozen=True)
class Twisted(Around):
    """Is entered by another run, hears another event, or decides something else."""

    entered: Callable[[Run[None]], Run[None]] = same
    heard: Callable[[Event], Event] = as_heard
    decided: Callable[[Run[None], Event | None, Decision], Decision] = as_decided

    def enter(self, run: Run[None], /) -> Decision:
        return self.decided(run, None, super().enter(self.entered(run)))

    def on(self, run: Run[None], event: Event, answered: Effect | None, /) -> Decision:
        return self.decided(run, event, super().on(run, self.heard(event), answered))


def entering(change: Callable[[Run[None]], Run[None]]) -> Bug:
    """Return the bug of a node that is entered by another run than there is."""
    return lambda node: Twisted(node, entered=change)


def hearing(change: Callable[[Event], Event]) -> Bug:
    """Return the bug of a node that hears another event than came."""
    return lambda node: Twisted(node, heard=change)


def deciding(change: Callable[[Run[None], Event | None, Decision], Decision]) -> Bug:
    """Return the bug of a node that decides something else; `change` gets the run before."""
    return lambda node: Twisted(node, decided=change)


@dataclass(frozen=True)
class Reckless:
    """Runs all calls of the turn, whatever a gate says: a gate is in its way."""

    name: str = "reckless"
    kind: Kind = "execute"
    outcomes: frozenset[type[Outcome]] = frozenset({Done, Aborted})

    def enter(self, run: Run[None], /) -> Reaction[None, Outcome]:
        """Run everything."""
        turn = run.turn
        wishes = tuple(
            CallTool(run.next_effect + place, call_key(turn.number, place), call)
            for place, call in enumerate(turn.calls)
        )
        empty: tuple[ToolResult | None, ...] = (None,) * len(wishes)
        return Wait(evolve(run, turn=evolve(turn, results=empty)), wishes)

    def on(
        self, run: Run[None], event: Event, answered: Effect | None, /
    ) -> Reaction[None, Outcome]:
        """Keep the result."""
        if not isinstance(answered, CallTool):
            return Leave(run, Aborted())
        call, place = answered.call, call_place(answered.key)
        result = ToolResult(answered.key, call.id, call.name, "failed", "error")
        if isinstance(event, ToolReturned):
            result = evolve(result, content=event.content, status=event.status)
        results = (*run.turn.results[:place], result, *run.turn.results[place + 1 :])
        run = evolve(run, turn=evolve(run.turn, results=results))
        return Wait(run) if run.pending else Leave(run, Done())


def forgetful(event: Event) -> Event:
    """Keep no more than three calls of a reply."""
    if not isinstance(event, ModelReplied) or len(event.reply.message.calls) <= 3:
        return event
    parts = [*event.reply.message.parts]
    parts.remove(event.reply.message.calls[-1])
    message = evolve(event.reply.message, parts=tuple(parts))
    return evolve(event, reply=evolve(event.reply, message=message))


@dataclass(frozen=True)
class Hasty(Around):
    """Runs a call again, under the same key, when it took too long."""

    def on(
        self, run: Run[None], event: Event, answered: Effect | None, /
    ) -> Reaction[None, Outcome]:
        """Try again at once."""
        if isinstance(event, ToolReturned) and event.status == "timeout":
            assert isinstance(answered, CallTool)
            return Wait(run, (CallTool(run.next_effect, answered.key, answered.call),))
        return super().on(run, event, answered)


def yielding(_: Run[None], event: Event | None, reaction: Decision) -> Decision:
    """Take a person's no for a yes."""
    if not isinstance(event, Decided) or not isinstance(reaction, Leave):
        return reaction
    after = reaction.run
    verdicts = tuple(
        evolve(one, kind="run") if one is not None and one.kind == "deny" else one
        for one in after.turn.verdicts
    )
    return Leave(evolve(after, turn=evolve(after.turn, verdicts=verdicts)), reaction.outcome)


def backwards(run: Run[None]) -> Run[None]:
    """Turn the results of a turn round."""
    return evolve(run, turn=evolve(run.turn, results=run.turn.results[::-1]))


def twofold(run: Run[None], _: Event | None, reaction: Decision) -> Decision:
    """Add the results of a turn twice."""
    results = [one for one in run.turn.results if one is not None]
    assert isinstance(reaction, Leave)
    again = changed(reaction.run, added=reaction.run.record.added.append(*results))
    return Leave(evolve(again, messages=again.messages.append(*results)), reaction.outcome)


def endless(run: Run[None], _: Event | None, reaction: Decision) -> Decision:
    """Promise a bound, and go on for ever."""
    is_over = isinstance(reaction, Leave) and isinstance(reaction.outcome, Stop)
    return Leave(run, Go()) if is_over else reaction


@dataclass(frozen=True)
class Looping:
    """Sends an answer back as often as its function says."""

    name: str = "looping"
    kind: Kind = "check"
    outcomes: frozenset[type[Outcome]] = frozenset({Rejected, Final, Aborted})

    def enter(self, run: Run[None], /) -> Reaction[None, Outcome]:
        """Ask."""
        return Wait(run, (Invoke(run.next_effect, "judge"),))

    def on(
        self, run: Run[None], event: Event, answered: Effect | None, /
    ) -> Reaction[None, Outcome]:
        """Go on as long as it likes."""
        match event:
            case CallbackReturned(answer=AnswerChecked(accepted=False)):
                return Leave(evolve(run, ending=None), Rejected())
            case _:
                return Leave(run, Final() if answered else Aborted())


def wordless(run: Run[None]) -> Run[None]:
    """Take for granted that a reply says something."""
    reply = run.turn.reply
    assert reply is None or reply.message.parts[0] is not None
    return run


VISITS: list[int] = []


def impure(run: Run[None]) -> Run[None]:
    """Give the turn another limit each time that this process comes here."""
    VISITS.append(1)
    return evolve(run, turn=evolve(run.turn, max_tokens=len(VISITS)))


def as_it_is(node: Node[None, Outcome]) -> Node[None, Outcome]:
    """Return a node as it is."""
    return node


def table(twist: Bug = as_it_is, lacking: str = "") -> Graph[None]:
    """Return the plainest loop.

    Args:
        twist: makes each node another one.
        lacking: what the loop goes without: `append`, `gate` or `bound`.
    """
    prepare, model, gate = twist(PrepareStep()), twist(ModelCall()), twist(Gate())
    execute, append, stop = twist(Execute()), twist(Append()), twist(StopCheck(max_steps=6))
    again = prepare if lacking == "bound" else stop
    calls = execute if lacking == "gate" else gate
    edges: Edges[None] = {
        prepare: {Ready: model, Calls: calls, ...: END},
        model: {Calls: calls, ...: append},
        gate: {Settled: execute, ...: append},
        execute: {Done: stop if lacking == "append" else append, ...: append},
        append: {AnsweredCalls: again, Resend: again, ...: END},
        stop: {Go: prepare, ...: END},
    }
    absent = {"gate": gate, "bound": stop}.get(lacking)
    return Graph("plain", prepare, {node: row for node, row in edges.items() if node is not absent})


def twisted(kind: Kind, bug: Bug) -> Graph[None]:
    """Return the plainest loop with a bug in its node of this kind."""
    return table(lambda node: bug(node) if node.kind == kind else node)


def reckless(gate: Gate) -> Graph[None]:
    """Return a loop with this gate, and a node that does not heed it."""
    others: dict[str, Node[None, Outcome]] = {"execute": Reckless(), "gate": gate}
    return table(lambda node: others.get(node.kind, node))


def without_end() -> Graph[None]:
    """Return a loop that a function keeps up."""
    prepare, model, append, looping = PrepareStep(), ModelCall(), Append(), Looping()
    edges: Edges[None] = {
        prepare: {Ready: model, ...: END},
        model: {...: append},
        append: {Final: looping, ...: END},
        looping: {Rejected: prepare, ...: END},
    }
    return Graph("without-end", prepare, edges)


BUGS: Mapping[str, tuple[str, Callable[[], Graph[None]]]] = {
    "no gate at all": (
        "gate",
        lambda: table(lambda node: Reckless() if node.kind == "execute" else node, "gate"),
    ),
    "a gate that is not heeded": (
        "gate",
        lambda: reckless(Gate(rules=(deny("write") | allow("*")).rules)),
    ),
    "a person who is not heeded": ("gate", lambda: reckless(Gate(rules=ask("*").rules))),
    "a no that counts as a yes": ("gate", lambda: twisted("gate", deciding(yielding))),
    "a call that is lost": ("answers", lambda: twisted("model", hearing(forgetful))),
    "a turn that is not appended": ("answers", lambda: table(lacking="append")),
    "results in another order": ("history", lambda: twisted("append", entering(backwards))),
    "results that come twice": ("history", lambda: twisted("append", deciding(twofold))),
    "a tool that is run again": ("broken", lambda: twisted("execute", Hasty)),
    "a cycle without a bound": ("endless", lambda: table(lacking="bound")),
    "a function that never ends": ("endless", without_end),
    "a bound that is not kept": ("bound", lambda: twisted("stop", deciding(endless))),
    "an empty reply": ("broken", lambda: twisted("append", entering(wordless))),
    "a node that remembers": ("replay", lambda: twisted("model", entering(impure))),
}
"""What is wrong, by which invariant is broken and the graph."""
