"""sequence_mermaid: what was said in a run as a Mermaid sequence diagram.

Parties have generated ids, and every sign that means something to Mermaid stands as its entity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from .mermaid import escaped
from .sequence import Said

__all__ = ["sequence_mermaid"]

SAFE: Final = "_ ,.:()?!'/-\"{}[]=+*@$"
"""Signs that mean nothing to Mermaid in a message, and that would make it hard to read."""


def sequence_mermaid(said: Sequence[Said]) -> str:
    """Return a `sequenceDiagram`: a party for everybody who takes part, a line a thing said."""
    return "".join(f"{line}\n" for line in _lines(said))


def _lines(said: Sequence[Said]) -> Iterator[str]:
    parties = list(dict.fromkeys(party for one in said for party in (one.source, one.target)))
    ids = {party: f"p{number}" for number, party in enumerate(parties)}
    yield "sequenceDiagram"
    for party, name in ids.items():
        word = "actor" if party.kind in {"you", "person"} else "participant"
        kind = "" if party.kind == party.name else f"{party.kind} "
        yield f"  {word} {name} as {kind}{escaped(party.name, SAFE)}"
    for one in said:
        arrow = "-->>" if one.answers else "->>"
        # A message must not be empty.
        words = escaped(one.words, SAFE).strip() or "…"
        yield f"  {ids[one.source]}{arrow}{ids[one.target]}: {words}"
