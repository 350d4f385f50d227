"""Mermaid sequence diagrams: nothing that was said can break out of its line."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from graphloop.views.drawing import visible
from graphloop.views.sequence import Party, Said
from graphloop.views.sequence_mermaid import sequence_mermaid

YOU, LOOP = Party("you", "you"), Party("loop", "agent")
PARTY = re.compile(r"  (?:actor|participant) (p\d+) as (.*)")
LINE = re.compile(r"  (p\d+)(-?->>)(p\d+): (.*)")


def read(text: str) -> str:
    """Read a text as Mermaid does: `#35;` is a sign by its number."""
    return re.sub(r"#(\d+);", lambda entity: chr(int(entity[1])), text)


def test_a_question_and_its_answer() -> None:
    """An answer's arrow is dashed, as everywhere."""
    said = (Said(0, YOU, LOOP, "Why?"), Said(1, LOOP, YOU, "completed", answers=True))

    assert sequence_mermaid(said).splitlines() == [
        "sequenceDiagram",
        "  actor p0 as you",
        "  participant p1 as loop agent",
        "  p0->>p1: Why?",
        "  p1-->>p0: completed",
    ]


@given(st.lists(st.tuples(st.text(min_size=1), st.text())))
def test_names_and_words_read_back_are_what_they_were(pairs: list[tuple[str, str]]) -> None:
    """Whatever a tool is called, and whatever it returns."""
    said = [Said(0, LOOP, Party("tool", name), words) for name, words in pairs]
    head, *lines = sequence_mermaid(said).splitlines()

    assert "sequenceDiagram" == head
    parties = {one[1]: one[2] for one in map(PARTY.fullmatch, lines) if one}
    found = [match for line in lines if (match := LINE.fullmatch(line))]
    assert len(lines) == len(parties) + len(found)
    for (name, words), match in zip(pairs, found, strict=True):
        assert f"tool {visible(name)}" == read(parties[match[3]])
        assert visible(words).strip() in {read(match[4]).strip(), ""}
    assert not any(";" in re.sub(r"#\d+;", "", line) for line in lines)
