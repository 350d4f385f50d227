"""Contract 7: each wire keeps its promises over histories, cuts and servers nobody thought of."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphloop.errors import ProviderError
from graphloop.providers.base import (
    Delta,
    ReasoningDelta,
    Restarted,
    ServerEvent,
    TextDelta,
    ToolCallDelta,
    UsageSoFar,
)
from graphloop.run import History
from graphloop.values import Message, ModelRequest, OutputSpec, ToolKind, ToolSpec, UserMessage
from tests.for_each import for_each
from tests.openai_talk import DONE
from tests.property.wires import WIRES, histories, kept_and_sent
from tests.sizes import sized
from tests.transcripts import any_text, decoded, event, heard, in_pieces

on_each_wire = pytest.mark.parametrize("name", WIRES)
STREAMS = [(name, stream) for name in WIRES for stream in WIRES[name].streams]
RESIZED = [(name, stream) for name in WIRES for stream in WIRES[name].resized]
ASK = UserMessage("Go.")
outputs = st.none() | st.builds(OutputSpec, any_text, st.just('{"type":"object"}'), any_text)


@on_each_wire
@given(data=st.data(), as_history=st.booleans(), output=outputs)
def test_each_request_begins_with_the_bytes_of_the_one_before(
    name: str, data: st.DataObject, as_history: bool, output: OutputSpec | None
) -> None:
    """Prompt caches hit; and what was remembered is what another process would encode anew."""
    spoken = WIRES[name]
    encoder, history, before = spoken.wire.encoder(), History[Message](()), b""

    for turn in data.draw(histories(spoken)):
        history = history.append(*turn)
        messages = history if as_history else list(history)
        body = b"".join(encoder.encode(ModelRequest(messages, spoken.tools, output=output)))

        assert body.startswith(before)
        anew = ModelRequest(tuple(history), spoken.tools, output=output)
        assert body == b"".join(spoken.wire.encoder().encode(anew))
        before = body
        for end in spoken.ends:
            before = before.removesuffix(end)


@on_each_wire
@pytest.mark.parametrize("kind", sorted({*get_args(ToolKind)} - {"provider"}))
def test_a_model_is_offered_each_kind_of_tool_that_it_can_call(name: str, kind: ToolKind) -> None:
    """A sub-agent, or a tool of the caller's process, is a function to the model."""
    spec = ToolSpec("look_up", "Look.", '{"type":"object"}', kind=kind)

    body = b"".join(WIRES[name].wire.encoder().encode(ModelRequest((ASK,), (spec,))))

    assert b'"name":"look_up","description":"Look."' in body


@on_each_wire
@given(
    data=st.data(),
    end=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    cuts=st.sets(st.integers(0, 9_000), max_size=12),
)
def test_a_stream_says_the_same_wherever_it_is_cut_in_pieces(
    name: str, data: st.DataObject, end: bytes, cuts: set[int]
) -> None:
    """The network decides where bytes end, and must not decide what was said."""
    spoken = WIRES[name]
    whole = spoken.streams[data.draw(st.sampled_from(sorted(spoken.streams)))].replace(b"\n", end)

    assert decoded(spoken.wire, *in_pieces(whole, cuts)) == decoded(spoken.wire, whole)


@for_each("stream", STREAMS)
def test_a_stream_cut_before_its_end_is_no_answer(stream: tuple[str, str]) -> None:
    """A cut stream that looks whole would be believed."""
    name, title = stream
    spoken, whole = WIRES[name], WIRES[name].streams[title]

    for end in spoken.cuts(whole):
        with pytest.raises(ProviderError):
            decoded(spoken.wire, whole[:end])


@for_each("stream", [*STREAMS, *RESIZED])
def test_what_was_shown_is_what_was_answered(stream: tuple[str, str]) -> None:
    """A stream that was read along and the reply after it tell the same."""
    name, title = stream
    spoken = WIRES[name]
    deltas, reply = decoded(spoken.wire, {**spoken.streams, **spoken.resized}[title])

    if title == "started_over":
        return  # What a spliced stream showed before it started over cannot be taken back.
    assert said(deltas) == (reply.message.text, reply.message.reasoning)
    # A call is shown, and then given up or made into several.
    if title != "fallback" and not title.startswith("made-up parallel call"):
        calls = [(call.id, call.name, call.arguments) for call in reply.message.calls]
        assert called(deltas) == calls


def said(deltas: Iterable[Delta]) -> tuple[str, str]:
    """Return the text and the reasoning that a listener saw."""
    return (
        "".join(one.text for one in deltas if isinstance(one, TextDelta)),
        "".join(one.text for one in deltas if isinstance(one, ReasoningDelta)),
    )


def called(deltas: Iterable[Delta]) -> list[tuple[str, ...]]:
    """Return the id, the name and the arguments of each call that a listener saw."""
    calls: dict[int, tuple[str, ...]] = {}
    for one in deltas:
        if isinstance(one, ToolCallDelta):
            piece = (one.id, one.name, one.arguments_delta)
            calls[one.index] = tuple(
                map("".join, zip(calls.get(one.index, ("",) * 3), piece, strict=True))
            )
    return [*calls.values()]


@on_each_wire
@given(text=st.text(max_size=30), size=st.integers(1, 3))
def test_a_text_comes_whole_however_its_pieces_are_cut(name: str, text: str, size: int) -> None:
    """Servers cut a character beyond U+FFFF into two halves, each in a piece of its own."""
    units = text.encode("utf-16-be")
    halves = "".join(
        chr(high << 8 | low) for high, low in zip(units[::2], units[1::2], strict=True)
    )
    pieces = [halves[at : at + size] for at in range(0, len(halves), size)]

    deltas, reply = heard(WIRES[name].wire, WIRES[name].pieces(pieces))

    assert (said(deltas)[0], reply.message.text) == (text, text)


hostile = st.one_of([st.tuples(st.just(name), WIRES[name].hostile) for name in WIRES])
HALF_AN_ID = {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": ["\ud83d"]}]}}]}


@settings(max_examples=sized(80, 20_000))
@example(("openai", [event(HALF_AN_ID), DONE]))
@given(hostile)
def test_whatever_a_server_sends_only_provider_errors_come_of_it(
    sent: tuple[str, Sequence[ServerEvent]],
) -> None:
    """And a reply that does come can be shown, stored, and sent back."""
    name, events = sent
    wire = WIRES[name].wire
    decoder = wire.decoder()
    shown: list[Delta] = []
    try:
        for one in events:
            for item in decoder.feed(one):
                match item:
                    case UsageSoFar():
                        pass
                    case Restarted():
                        shown.clear()
                    case _:
                        shown.append(item)
        reply = decoder.reply()
    except ProviderError:
        return

    repr(shown).encode()
    assert said(shown)[0] == reply.message.text
    kept_and_sent(wire, reply)


@on_each_wire
@given(data=st.data(), status=st.integers(0, 999))
def test_any_refusal_gives_an_error_that_can_be_printed(
    name: str, data: st.DataObject, status: int
) -> None:
    """The error of an error would hide what happened."""
    body = data.draw(st.binary() | WIRES[name].values.map(json.dumps).map(str.encode))

    found = WIRES[name].wire.error(status, body)

    assert found.status == status
    assert len(str(found).encode()) < 5_000
