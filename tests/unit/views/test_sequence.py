"""Sequences: the messages of a run, as Mermaid and as text."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from graphloop import Agent
from graphloop.events import CallCheck, Event
from graphloop.graph import NodeGraph
from graphloop.policy.approvals import Approval
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.tools.outcome import ToolOutcome
from graphloop.views.drawing import visible
from graphloop.views.sequences import (
    Party,
    SequenceMessage,
    sequence,
    sequence_mermaid,
    sequence_text,
)
from tests.strategies import Adversary, call, loop, reply

YOU, LOOP, TOOL = Party("you", "you"), Party("loop", "agent"), Party("tool", "pay")
PARTY = re.compile(r"  (?:actor|participant) (p\d+) as (.*)")
LINE = re.compile(r"  (p\d+)(-?->>)(p\d+): (.*)")
MODELS = (reply("done"), reply(call("read"), call("write")), reply("done"), reply("done"))


def journal(
    graph: NodeGraph[None], *, approval: Approval | None, text: str = "fine"
) -> list[Event]:
    world = Adversary(
        MODELS,
        checks=(CallCheck(needs_approval=True),),
        decisions=(approval,),
        tools=(ToolOutcome(text, "ok"),),
    )
    return world.run(graph).events


def told(graph: NodeGraph[None], events: list[Event]) -> list[tuple[str, str, str]]:
    return [(sent.source.name, sent.target.name, sent.words) for sent in sequence(graph, events)]


def test_a_sequence_has_every_message_of_a_run() -> None:
    graph = loop()
    lines = told(graph, journal(graph, approval=Approval(True)))
    loop_name = graph.name

    assert ("you", loop_name) == lines[0][:2]
    assert (loop_name, "you") == lines[-1][:2]
    assert "completed: done" == lines[-1][2]
    assert (loop_name, "person", "may read run? {}") in lines
    assert ("person", loop_name, "approved") in lines
    assert ("read", loop_name, "ok: fine") in lines
    sent = sequence(graph, journal(graph, approval=Approval(True)))
    kinds = [message.source.kind for message in sent]
    assert kinds.index("model") < kinds.index("person") < kinds.index("tool")


async def test_media_of_a_question_are_named() -> None:
    """Their bytes would fill the picture, and their number alone says little."""
    store = MemoryStore()
    agent = Agent(ScriptedModel(["A cat."]), store=store)
    result = await agent.generate(["What is it?", b"\x89PNG\r\n\x1a\n"], run_id="r")

    lines = told(loop(), [*await store.load("r")])

    assert "A cat." == result.text
    assert "What is it? [image]" == lines[0][2]


def test_the_last_message_of_a_parked_run_is_its_question() -> None:
    graph = loop()
    last = sequence(graph, journal(graph, approval=None))[-1]

    assert ("loop", "person", False) == (last.source.kind, last.target.kind, last.is_reply)


def test_a_denial_is_a_message_with_its_reason() -> None:
    graph = loop()
    lines = told(graph, journal(graph, approval=Approval(False, "too dear")))

    assert ("person", graph.name, "denied: too dear") in lines
    assert "read" not in {source for source, _, _ in lines}


def test_a_reply_has_a_dashed_arrow_in_mermaid() -> None:
    said = (
        SequenceMessage(0, YOU, LOOP, "Why?"),
        SequenceMessage(1, LOOP, YOU, "completed", is_reply=True),
    )

    assert sequence_mermaid(said).splitlines() == [
        "sequenceDiagram",
        "  actor p0 as you",
        "  participant p1 as loop agent",
        "  p0->>p1: Why?",
        "  p1-->>p0: completed",
    ]


def test_arrows_of_a_text_lead_to_the_receiver() -> None:
    said = (
        SequenceMessage(0, YOU, LOOP, "Pay."),
        SequenceMessage(1, LOOP, TOOL, "{}"),
        SequenceMessage(2.5, TOOL, YOU, "paid", is_reply=True),
        SequenceMessage(3, LOOP, LOOP, "hm"),
    )

    assert sequence_text(said).splitlines() == [
        "A  you",
        "B  loop agent",
        "C  tool pay",
        "",
        "A   B   C",
        "├──▶┤   │      0.00  Pay.",
        "│   ├──▶┤      1.00  {}",
        "├◀──┼───┤      2.50  paid",
        "│   ●   │      3.00  hm",
    ]


def unescaped(text: str) -> str:
    """Read a text as Mermaid does: `#35;` is a sign by its number."""
    return re.sub(r"#(\d+);", lambda entity: chr(int(entity[1])), text)


@given(st.lists(st.tuples(st.text(min_size=1), st.text()), max_size=12))
def test_no_message_breaks_out_of_its_line(pairs: list[tuple[str, str]]) -> None:
    """A text has at most 80 columns."""
    said = [SequenceMessage(0, LOOP, Party("tool", name), words) for name, words in pairs]
    head, *lines = sequence_mermaid(said).splitlines()

    assert "sequenceDiagram" == head
    parties = {match[1]: match[2] for match in map(PARTY.fullmatch, lines) if match}
    found = [match for line in lines if (match := LINE.fullmatch(line))]
    assert len(lines) == len(parties) + len(found)
    for (name, words), match in zip(pairs, found, strict=True):
        assert f"tool {visible(name)}" == unescaped(parties[match[3]])
        assert visible(words).strip() in {unescaped(match[4]).strip(), ""}
    assert not any(";" in re.sub(r"#\d+;", "", line) for line in lines)
    rows = sequence_text(said).split("\n")
    assert max(map(len, rows)) <= 80
    assert len(rows) == len(parties) + 2 + len(said) + 1
