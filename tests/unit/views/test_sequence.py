"""Sequences: the messages of a run in order, as Mermaid and as text."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from graphloop.events import CallCheck, Event
from graphloop.graph import NodeGraph
from graphloop.policy.approvals import Approval
from graphloop.tools.outcome import ToolOutcome
from graphloop.views.drawing import visible
from graphloop.views.sequences import Party, Said, sequence, sequence_mermaid, sequence_text
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
    return [(one.source.name, one.target.name, one.words) for one in sequence(graph, events)]


def test_a_run_is_told_from_the_question_to_the_answer() -> None:
    """With every party, and what each of them said."""
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


def test_a_question_without_an_answer_is_the_last_message() -> None:
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


def test_a_question_and_its_answer_in_mermaid() -> None:
    """An answer's arrow is dashed, as everywhere."""
    said = (Said(0, YOU, LOOP, "Why?"), Said(1, LOOP, YOU, "completed", answers=True))

    assert sequence_mermaid(said).splitlines() == [
        "sequenceDiagram",
        "  actor p0 as you",
        "  participant p1 as loop agent",
        "  p0->>p1: Why?",
        "  p1-->>p0: completed",
    ]


def test_arrows_of_a_text_lead_from_the_speaker_to_the_listener() -> None:
    """Past the lifelines between them."""
    said = (
        Said(0, YOU, LOOP, "Pay."),
        Said(1, LOOP, TOOL, "{}"),
        Said(2.5, TOOL, YOU, "paid", answers=True),
        Said(3, LOOP, LOOP, "hm"),
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
    """Whatever a tool is called, and whatever it returns; a text is 80 columns wide at most."""
    said = [Said(0, LOOP, Party("tool", name), words) for name, words in pairs]
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
