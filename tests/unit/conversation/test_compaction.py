"""Compaction: what is kept, what goes first, and what a summary may stand for."""

from __future__ import annotations

import pytest

from graphloop.conversation.compaction import (
    ORIGIN,
    Compaction,
    LayerEffect,
    protected,
    prune,
    prune_media,
    prune_tool_results,
    remaining,
    summarized,
    summary_request,
    to_summarize,
)
from graphloop.conversation.tokens import Calibration, estimate
from graphloop.errors import ConfigError
from graphloop.media import Inline, MediaPart, Url
from graphloop.run import History
from graphloop.values import (
    AssistantMessage,
    Message,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolResult,
    UserMessage,
    UserPart,
)
from tests.strategies import call, said, wrong

LONG = "x" * 3_600
"""Text of 1,000 tokens."""

PLAIN = Calibration()


def result(content: str | tuple[UserPart, ...] = LONG) -> ToolResult:
    return ToolResult("c0.0", "", "read", content)


def turn(thought: str = LONG, content: str = LONG) -> tuple[Message, ...]:
    """Return one turn of the model: a thought, a call and its result."""
    return (said(ReasoningPart(thought), call()), result(content))


def talk(turns: int) -> tuple[Message, ...]:
    """Return a question and so many turns after it."""
    return (
        SystemMessage("be brief"),
        UserMessage("go"),
        *(message for _ in range(turns) for message in turn()),
    )


def kept(messages: tuple[Message, ...], keep: int = 1) -> list[int]:
    return sorted(protected(messages, keep))


# --- options


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"context_window": 999}, "`context_window` to be a whole number of at least 1000"),
        ({"keep_recent_turns": 0}, "`keep_recent_turns` to be a whole number of at least 1"),
        ({"keep_recent_turns": 1.5}, "`keep_recent_turns` to be a whole number"),
        ({"threshold": 0}, "`threshold`: expected a share above 0 and up to 1, found 0"),
        ({"threshold": 1.01}, "`threshold`: expected a share"),
        ({"threshold": float("nan")}, "`threshold`: expected a share"),
        ({"target": "all"}, "`target`: expected a share above 0 and up to 1, found 'all'"),
        ({"layers": ()}, "at least one layer"),
        ({"layers": ("prune_reasoning", "prune_reasoning")}, "each once"),
        ({"layers": ("prune_reasonings",)}, "Did you mean 'prune_reasoning'?"),
        ({"layers": ("summarize", "prune_reasoning")}, "expected 'summarize' at the end"),
        ({"summary_prompt": " "}, "`summary_prompt`: expected a text"),
    ],
)
def test_an_option_that_cannot_work_is_refused(options: dict[str, object], problem: str) -> None:
    """Before the run, not when its window is full."""
    with pytest.raises(ConfigError) as caught:
        Compaction(**wrong({"context_window": 10_000} | options))

    assert problem in str(caught.value)


def test_the_ends_of_the_ranges_are_allowed() -> None:
    """A share may be the whole."""
    compaction = Compaction(1_000, threshold=1, target=1, keep_recent_turns=1)

    assert (True, False) == (compaction.due(1_001), compaction.due(1_000))
    assert (True, False) == (compaction.enough(1_000), compaction.enough(1_001))


# --- what is kept


def test_instructions_first_question_and_tail_are_protected() -> None:
    """Without them the model no longer knows what it is doing."""
    assert [0, 1, 6, 7] == kept(talk(3))
    assert [0, 1, 4, 5, 6, 7] == kept(talk(3), keep=2)


def test_what_a_person_said_last_is_protected_however_old() -> None:
    """A loop of fifty turns must not forget what it was asked fifty turns ago."""
    messages = (
        UserMessage("first"),
        *turn(),
        UserMessage("old"),
        *turn(),
        UserMessage("now"),
        UserMessage("and this"),
        *turn(),
        UserMessage("checked", origin="verify"),
        *turn(),
    )

    assert [0, 6, 7, 11, 12] == kept(messages)


@pytest.mark.parametrize("keep", [0, -1])
def test_no_turns_at_all_cannot_be_kept(keep: int) -> None:
    """The last turn may hold the call whose result is being sent."""
    with pytest.raises(ConfigError, match="keep_recent_turns"):
        protected(talk(3), keep)


# --- pruning


def test_only_old_results_become_a_note() -> None:
    """Wires keep the bytes of messages that stay, so caches of the prefix may hit."""
    messages = talk(3)

    after = prune_tool_results(messages, 1)

    note = "[pruned: 3600 characters]"
    assert (note, note) == (wrong(after[3]).content, wrong(after[5]).content)
    assert ("c0.0", "read", "ok") == (wrong(after[3]).key, wrong(after[3]).name, "ok")
    assert all(after[at] is messages[at] for at in (0, 1, 2, 4, 6, 7))
    assert talk(3) == messages


def test_only_a_note_that_is_one_is_left_alone() -> None:
    """A tool could keep its result for ever by beginning like one."""
    messages = (UserMessage("go"), said(call()), result("[pruned: 1 characters]" + LONG), *turn())

    assert "[pruned: 3622 characters]" == wrong(prune_tool_results(messages, 1)[2]).content


def test_images_and_files_are_counted_in_the_note() -> None:
    """They cost the most, and the model should know that they were there."""
    parts = (
        TextPart("seen"),
        MediaPart("image/*", Url("u")),
        MediaPart("application/pdf", Inline(b"d")),
    )
    messages = (UserMessage("go"), said(call()), result(parts), *turn())

    once = prune_tool_results(messages, 1)

    assert "[pruned: 4 characters, 2 files]" == wrong(once[2]).content
    assert once == prune_tool_results(once, 1)


def test_old_media_become_a_note_before_anything_else_goes() -> None:
    """A picture costs as much as pages of text, and the model has said what it saw."""
    image = MediaPart("image/png", Inline(b"x"), "a.png")
    spoken = AssistantMessage((TextPart("here"), image), "w")
    messages = (
        UserMessage((TextPart("look"), image)),
        *(said(call()), result((TextPart("seen"), image))),
        *(UserMessage((image,), origin="prepare_step"), spoken, said("b"), *turn()),
    )

    after = prune_media(messages, 1)

    note = TextPart("[pruned: image 'a.png' of type 'image/png']")
    assert messages[0] is after[0]
    assert ("c0.0", (TextPart("seen"), note)) == (wrong(after[2]).key, wrong(after[2]).content)
    assert (note,) == wrong(after[3]).content
    assert (TextPart("here"),) == wrong(after[4]).parts
    assert after[5:] == messages[5:]
    pruned = prune(messages, Compaction(4_000, keep_recent_turns=1), PLAIN, 4_000)
    assert "prune_media" == pruned.layers[0].layer


def test_media_that_cost_no_more_than_their_note_stay() -> None:
    """A short text file would become longer."""
    short = MediaPart("text/plain", Inline(b"yes"), "answer.txt")
    messages = (UserMessage("go"), said(call()), result((short,)), *turn())

    assert messages == prune_media(messages, 1)


def test_a_reply_of_media_alone_stays() -> None:
    """Servers refuse a reply without any part."""
    drawn = AssistantMessage((MediaPart("image/png", Inline(b"x")),), "w")
    messages = (UserMessage("go"), drawn, *turn(), *turn())

    assert drawn is prune_media(messages, 1)[1]


# --- layers


def test_layers_run_in_order_until_it_is_enough() -> None:
    """What costs the least of the meaning goes first, and no more than needed."""
    messages = talk(6)  # 12 messages of 1,000 tokens, five turns of them old.
    tokens = estimate(messages)

    enough = prune(messages, Compaction(10_000, keep_recent_turns=1), PLAIN, tokens)
    both = prune(messages, Compaction(4_000, keep_recent_turns=1), PLAIN, tokens)
    turned = prune(
        messages,
        Compaction(4_000, keep_recent_turns=1, layers=("prune_reasoning", "prune_tool_results")),
        PLAIN,
        tokens,
    )

    assert (["prune_tool_results"], True) == ([one.layer for one in enough.layers], enough.enough)
    assert ["prune_tool_results", "prune_reasoning"] == [one.layer for one in both.layers]
    assert ["prune_reasoning", "prune_tool_results"] == [one.layer for one in turned.layers]
    assert both.messages == turned.messages
    assert (tokens, both.layers[0].tokens_after) == (
        both.layers[0].tokens_before,
        both.layers[1].tokens_before,
    )
    assert estimate(both.messages) == both.tokens == both.layers[1].tokens_after


def test_savings_are_corrected_like_their_tokens() -> None:
    """And what is not messages (tools, say) stays counted."""
    compaction = Compaction(1_000, keep_recent_turns=1, layers=("prune_tool_results",))
    messages = (UserMessage("go"), said(call()), result(), said("b"))

    pruned = prune(messages, compaction, Calibration(2.0), 5_000)

    saved = 2 * (1_000 - 7)
    assert (LayerEffect("prune_tool_results", 5_000, 5_000 - saved),) == pruned.layers
    assert 0 == remaining(10, messages, (), PLAIN)


def test_a_window_that_the_provider_calls_full_is_full() -> None:
    """Its count is right, and the estimate was wrong."""
    messages = talk(3)

    assert prune(messages, Compaction(50_000, keep_recent_turns=1), PLAIN, 50_000).layers


# --- summaries


def test_a_run_at_the_beginning_is_found() -> None:
    """A history need not begin with a question."""
    assert slice(0, 2) == to_summarize((said("a"), said("b"), UserMessage("go"), said("c")), 1)


@pytest.mark.parametrize("messages", [(), talk(0), talk(1)])
def test_a_young_history_is_not_summarised(messages: tuple[Message, ...]) -> None:
    """There is nothing but the question and the answer to it."""
    assert to_summarize(messages, 1) is None


def test_a_summary_stands_in_one_message_of_the_user() -> None:
    """Every wire takes it there, and its origin tells people what it is."""
    messages = talk(3)
    span = to_summarize(messages, 1)
    assert span is not None

    after = summarized(messages, span, " All read.\n")

    assert (messages[0], messages[1]) == after[:2]
    assert after[2] == UserMessage(
        "Summary of the earlier conversation, whose messages were left out here:\n\nAll read.",
        origin=ORIGIN,
    )
    assert messages[6:] == after[3:]


@pytest.mark.parametrize("summary", ["", " \n", LONG * 5])
def test_a_summary_that_does_not_help_replaces_nothing(summary: str) -> None:
    """A blank one would lose the conversation, a long one is no summary."""
    messages = talk(3)

    assert messages == summarized(messages, slice(2, 6), summary)


def test_a_summary_request_has_no_calls_and_fits() -> None:
    """No wire takes calls without their tools; the window was full already."""
    messages = talk(300)
    compaction = Compaction(10_000, summary_prompt="Shorten.")

    asked = summary_request(History(messages), slice(2, 590), compaction)

    assert SystemMessage("Shorten.") == asked[0]
    assert [SystemMessage, UserMessage] == [type(one) for one in asked]
    text = wrong(asked[1]).content
    assert text.startswith("<transcript>\nassistant:\n[calls read: {}]\n\nresult of read (ok): xxx")
    assert text.endswith("</transcript>")
    assert 4_000 < estimate(asked) <= 5_100
