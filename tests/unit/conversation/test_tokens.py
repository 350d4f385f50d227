"""Estimates: what each kind of message costs, and what a run learns of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop.conversation.tokens import Calibration, content_tokens, estimate
from graphloop.media import Inline, MediaPart, Url
from graphloop.values import (
    AssistantMessage,
    Message,
    OpaquePart,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
)
from tests.strategies import messages


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (SystemMessage(""), 4),
        (SystemMessage("x" * 36), 14),
        (SystemMessage("x"), 5),
        (UserMessage("x" * 36), 14),
        (UserMessage((TextPart("x" * 36), MediaPart("image/*", Url("https://x")))), 1_614),
        (UserMessage((MediaPart("text/plain", Inline(b"x" * 360)),)), 104),
        (UserMessage((MediaPart("application/json", Inline(b"x" * 360)),)), 104),
        (UserMessage((MediaPart("audio/wav", Inline(b"x" * 50_001)),)), 105),
        (UserMessage((MediaPart("video/mp4", Inline(b"x" * 50_001)),)), 55),
        (UserMessage((MediaPart("application/pdf", Inline(b"x")),)), 1_604),
        (UserMessage((MediaPart("application/pdf", Inline(b"")),)), 1_604),
        (UserMessage((MediaPart("application/pdf", Inline(b"x" * 37_501)),)), 3_204),
        (AssistantMessage((TextPart("x" * 36),)), 14),
        (AssistantMessage((ReasoningPart("x" * 12, "y" * 12, "z" * 12),)), 14),
        (AssistantMessage((OpaquePart("x" * 36),)), 14),
        (AssistantMessage((ToolCall("i", "x" * 18, "y" * 18),)), 24),
        (ToolResult("c0.0", "i", "read", "x" * 36), 24),
        (ToolResult("c0.0", "i", "read", (MediaPart("image/*", Url("x")),)), 1_614),
    ],
)
def test_a_message_costs_what_it_holds(message: Message, tokens: int) -> None:
    """The numbers are the contract's: 3.6 characters a token, and what wires add."""
    assert tokens == estimate((message,))


@given(first=st.lists(messages, max_size=4), second=st.lists(messages, max_size=4))
def test_the_estimate_of_a_whole_is_the_sum_of_its_parts(
    first: list[Message], second: list[Message]
) -> None:
    """A run that keeps a sum looks at new messages only, however long it is."""
    assert estimate(first) + estimate(second) == estimate([*first, *second])


@given(text=st.text(max_size=40), more=st.text(max_size=40))
def test_more_text_never_costs_less(text: str, more: str) -> None:
    """Otherwise pruning could make a request longer."""
    assert content_tokens(text) <= content_tokens(text + more)


@pytest.mark.parametrize(
    ("estimated", "measured", "factor"),
    [(100, 150, 1.5), (1, 1_000, 2.0), (1_000, 1, 0.5), (0, 5, 1.0), (5, 0, 1.0), (-5, -5, 1.0)],
)
def test_one_measurement_gives_a_calibration(estimated: int, measured: int, factor: float) -> None:
    """What a run can tell that keeps its last measurement only."""
    assert Calibration(factor) == Calibration.of(estimated, measured)


@given(estimated=st.integers(-5, 10**9), measured=st.integers(-5, 10**9))
def test_the_factor_stays_in_its_range(estimated: int, measured: int) -> None:
    """A server that counts nonsense would switch compaction off, or never let it rest."""
    assert 0.5 <= Calibration.of(estimated, measured).factor <= 2.0


def test_an_estimate_is_corrected_as_the_model_would_count() -> None:
    """Whatever is begun counts as a token."""
    assert 130 == Calibration(1.3).corrected(100)
    assert 2 == Calibration(1.3).corrected(1)
