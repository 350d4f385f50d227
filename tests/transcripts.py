"""Streams of model servers: recorded ones, and the events to write one's own from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from hypothesis import strategies as st

from graphloop.providers.base import Delta, Restarted, ServerEvent, UsageSoFar, Wire
from graphloop.providers.sse import SseDecoder
from graphloop.values import Reply

__all__ = ["ANTHROPIC", "OPENAI", "any_text", "decoded", "event", "heard", "in_pieces"]


def _recorded(wire: str) -> Mapping[str, bytes]:
    paths = (Path(__file__).parent / "golden" / wire).glob("*.sse")
    return {path.stem: path.read_bytes() for path in sorted(paths)}


ANTHROPIC = _recorded("anthropic")
OPENAI = _recorded("openai")

# Halves of characters among it, and sometimes nothing but.
any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=8) | st.text(
    st.sampled_from("a\ud83d\udc69é"), max_size=8
)


def event(value: object, name: str = "") -> ServerEvent:
    """Return the event that says `value` as JSON."""
    return ServerEvent(name, json.dumps(value).encode())


def heard(wire: Wire, events: Iterable[ServerEvent]) -> tuple[list[Delta], Reply]:
    """Return what a stream of `events` shows, and the answer it ends with."""
    decoder = wire.decoder()
    items = [item for one in events for item in decoder.feed(one)]
    return [item for item in items if not isinstance(item, UsageSoFar | Restarted)], decoder.reply()


def decoded(wire: Wire, *chunks: bytes) -> tuple[list[Delta], Reply]:
    """Return what a stream of bytes shows, and the answer it ends with."""
    lines = SseDecoder()
    events = [event for chunk in chunks for event in lines.feed(chunk)]
    return heard(wire, events + lines.close())


def in_pieces(whole: bytes, cuts: Iterable[int]) -> list[bytes]:
    """Return `whole` cut at the given places, those beyond its end left out."""
    inside = sorted(cut for cut in cuts if cut < len(whole))
    bounds = zip([0, *inside], [*inside, len(whole)], strict=True)
    return [whole[start:end] for start, end in bounds]
