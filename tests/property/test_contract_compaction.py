"""Contract 12: compaction keeps what matters, parts no call from its result, and only shrinks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from graphloop.conversation.compaction import (
    Compaction,
    protected,
    prune,
    prune_media,
    prune_reasoning,
    prune_tool_results,
    remaining,
    summarized,
    to_summarize,
)
from graphloop.conversation.tokens import Calibration, estimate
from graphloop.values import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolResult,
    UserMessage,
    call_key,
    evolve,
)
from tests.property.test_contract_pairing import assert_paired
from tests.strategies import assistant_messages, contents, messages

History = tuple[Message, ...]

long_contents = contents | st.integers(20, 400).map(lambda size: "x" * size)
others: st.SearchStrategy[Message] = st.one_of(
    st.builds(SystemMessage, st.just("be brief")),
    st.builds(UserMessage, contents, st.sampled_from(["", "", "verify", "compact"])),
)
keeps = st.integers(1, 4)
windows = st.integers(1_000, 3_000)


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Return a history as a run makes it: every call answered at once, in order."""
    made: list[Message] = draw(st.lists(others, max_size=3))
    for number in range(draw(st.integers(0, 7))):
        reply = draw(assistant_messages)
        made.append(reply)
        made.extend(
            ToolResult(call_key(number, at), one.id, one.name, draw(long_contents))
            for at, one in enumerate(reply.calls)
        )
        made.extend(draw(st.lists(others, max_size=1)))
    return tuple(made)


def assert_kept(before: History, after: History, keep: int) -> None:
    """Assert that what compaction may not touch is there, the same objects in the same order."""
    turns = [at for at, one in enumerate(before) if isinstance(one, AssistantMessage)]
    tail = before[turns[-keep] :] if len(turns) >= keep else before
    asked = [one for one in before if isinstance(one, UserMessage)]
    said = [one for one in asked if not one.origin]
    system = [one for one in before if isinstance(one, SystemMessage)]

    left = {id(one) for one in after}
    assert all(id(one) in left for one in (*system, *asked[:1], *said[-1:], *before[-1:]))
    assert [id(one) for one in tail] == [id(one) for one in after[len(after) - len(tail) :]]


@given(before=histories(), keep=keeps, window=windows, factor=st.floats(0.5, 2.0))
def test_pruning_keeps_the_frame_and_the_tail_and_only_shrinks(
    before: History, keep: int, window: int, factor: float
) -> None:
    """The model must still know what it is asked, by whom, and what just happened."""
    calibration = Calibration(factor)
    tokens = calibration.corrected(estimate(before))
    compaction = Compaction(window, keep_recent_turns=keep)

    pruned = prune(before, compaction, calibration, tokens)

    assert_kept(before, pruned.messages, keep)
    assert_paired(pruned.messages)
    assert len(before) == len(pruned.messages)
    assert estimate(pruned.messages) <= estimate(before)
    assert pruned.enough == compaction.enough(pruned.tokens)
    counts = [tokens, *(one.tokens_after for one in pruned.layers)]
    assert counts == sorted(set(counts), reverse=True)
    assert pruned.tokens == counts[-1]
    assert bool(pruned.layers) == (before != pruned.messages)


@given(before=histories(), keep=keeps, summary=st.text(max_size=60))
def test_summaries_keep_the_frame_and_the_pairs_and_come_to_an_end(
    before: History, keep: int, summary: str
) -> None:
    """Summarised as long as there is something to summarise, whatever the model writes."""
    now = before
    for _ in range(len(before) + 1):
        span = to_summarize(now, keep)
        after = now if span is None else summarized(now, span, summary)
        if after == now:
            break
        assert span is not None
        assert span.stop - span.start >= 2
        assert not set(range(span.start, span.stop)) & protected(now, keep)
        assert_kept(now, after, keep)
        assert_paired(after)
        assert estimate(after) < estimate(now)
        assert remaining(estimate(now), now, after, Calibration()) == estimate(after)
        now = after
    else:
        raise AssertionError("summarised for ever")


@given(before=st.lists(messages, max_size=9).map(tuple), keep=keeps)
def test_no_history_at_all_is_too_odd(before: History, keep: int) -> None:
    """Histories are handed in by users, with results that nobody asked for."""
    copy = tuple(evolve(one) for one in before)

    pruned = prune(before, Compaction(1_000, keep_recent_turns=keep), Calibration(), 9_999)
    span = to_summarize(pruned.messages, keep)
    after = pruned.messages if span is None else summarized(pruned.messages, span, "s")

    assert_kept(before, after, keep)
    assert copy == before
    if span is not None and span.stop < len(before):
        assert not isinstance(before[span.stop], ToolResult)


@given(before=histories(), keep=keeps)
def test_pruning_again_changes_nothing(before: History, keep: int) -> None:
    """Compaction runs before each call while the window is full."""
    for layer in (prune_media, prune_tool_results, prune_reasoning):
        once = layer(before, keep)
        again = layer(once, keep)

        assert all(one is other for one, other in zip(once, again, strict=True))


@given(before=histories(), keep=keeps)
def test_what_pruning_does_not_change_stays_the_same_object(before: History, keep: int) -> None:
    """Wires know messages by identity: an equal copy is encoded again."""
    for layer in (prune_media, prune_tool_results, prune_reasoning):
        pairs = zip(before, layer(before, keep), strict=True)

        assert all(one is other or one != other for one, other in pairs)
