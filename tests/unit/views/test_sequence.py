"""Sequences: who told whom what, in the order in which it happened."""

from __future__ import annotations

from graphloop.approvals import Approval
from graphloop.events import CallCheck, Event
from graphloop.graph import Graph
from graphloop.tool_outcome import ToolOutcome
from graphloop.views.sequence import LONG, sequence
from tests.strategies import Adversary, call, loop, reply

MODELS = (reply("done"), reply(call("read"), call("write")), reply("done"), reply("done"))


def journal(graph: Graph[None], *, approval: Approval | None, text: str = "fine") -> list[Event]:
    world = Adversary(
        MODELS,
        checks=(CallCheck(needs_approval=True),),
        decisions=(approval,),
        tools=(ToolOutcome(text, "ok"),),
    )
    return world.run(graph).events


def told(graph: Graph[None], events: list[Event]) -> list[tuple[str, str, str]]:
    return [(one.source.name, one.target.name, one.words) for one in sequence(graph, events)]


def test_a_run_is_told_from_the_question_to_the_answer() -> None:
    """With everybody who took part, and what each of them said."""
    graph = loop()
    lines = told(graph, journal(graph, approval=Approval(True)))
    loop_name = graph.name

    assert ("you", loop_name) == lines[0][:2]
    assert (loop_name, "you") == lines[-1][:2]
    assert "completed: done" == lines[-1][2]
    assert (loop_name, "person", "may read run? {}") in lines
    assert ("person", loop_name, "approved") in lines
    assert ("read", loop_name, "ok: fine") in lines
    kinds = [one.source.kind for one in sequence(graph, journal(graph, approval=Approval(True)))]
    assert kinds.index("model") < kinds.index("person") < kinds.index("tool")


def test_a_question_that_nobody_has_answered_is_the_last_thing_said() -> None:
    """The diagram of a parked run ends where the run stands."""
    graph = loop()
    last = sequence(graph, journal(graph, approval=None))[-1]

    assert ("loop", "person", False) == (last.source.kind, last.target.kind, last.answers)


def test_a_denial_and_its_reason_are_told() -> None:
    """The model was told, so the reader is."""
    graph = loop()
    lines = told(graph, journal(graph, approval=Approval(False, "too dear")))

    assert ("person", graph.name, "denied: too dear") in lines
    assert "read" not in {source for source, _, _ in lines}


def test_long_texts_are_cut_and_stand_on_one_line() -> None:
    """A diagram is no transcript."""
    graph = loop()
    lines = told(graph, journal(graph, approval=Approval(True), text="line\n" * 100))

    assert max(len(words) for _, _, words in lines) <= LONG
    assert not any("\n" in words for _, _, words in lines)
