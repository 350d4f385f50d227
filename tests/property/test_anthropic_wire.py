"""What Anthropic's server asks of a conversation, and what it gets back as it sent it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop.values import Message, ToolResult, UserMessage
from tests.anthropic_talk import START, STOP, WIRE, block_delta, block_start, block_stop
from tests.property.wires import WIRES, block_values, encoded, histories, joined, kept_and_sent
from tests.transcripts import ANTHROPIC, any_text, decoded, event, heard


@given(histories(WIRES["anthropic"]).map(joined))
def test_every_call_sent_is_answered_next_and_no_id_is_used_twice(history: list[Message]) -> None:
    """The API refuses a conversation for one missing, doubled or misplaced id."""
    whole = encoded(WIRE, *history)
    used: list[str] = []

    for at, message in enumerate(whole["messages"]):
        assert message["content"]
        asked = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        used += asked
        if asked:
            following = whole["messages"][at + 1]["content"]
            assert asked == [block["tool_use_id"] for block in following[: len(asked)]]

    assert len(set(used)) == len(used)
    results = [one for one in history if isinstance(one, ToolResult)]
    assert len(used) == len(results)


@pytest.mark.parametrize("name", ANTHROPIC)
def test_a_reply_can_be_sent_back(name: str) -> None:
    """What a server sent must be what it accepts, blocks in their order, nothing lost."""
    _, reply = decoded(WIRE, ANTHROPIC[name])

    (_, message) = encoded(WIRE, UserMessage("Begin."), reply.message)["messages"]

    assert len(message["content"]) == len(reply.message.parts)
    assert message["role"] == "assistant"


TEXTS = ("text", "thinking", "signature", "data", "id", "name", "partial_json")
MORE = ("citation", "citations", "input", "content", "caller", "score")
fields = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(TEXTS, any_text) | dict.fromkeys(MORE, block_values)
)
deltas_of_a_block = st.fixed_dictionaries(
    {"type": st.sampled_from(("signature_delta", "compaction_delta", "citations_delta"))},
    optional={"signature": any_text, "content": any_text},
).map(lambda delta: {"citation": None, **delta})
KINDS = ("text", "thinking", "redacted_thinking", "tool_use", "compaction", "fallback")
blocks = st.tuples(
    st.tuples(fields, st.sampled_from(KINDS)).map(lambda block: block[0] | {"type": block[1]}),
    st.lists(deltas_of_a_block, max_size=3),
)
endings = st.fixed_dictionaries(
    {"stop_reason": any_text.map("x".__add__)},
    optional=dict.fromkeys(("stop_sequence", "container", "id", "stop_details"), block_values),
)
usages = st.dictionaries(
    st.sampled_from(("input_tokens", "output_tokens", "output_tokens_details", "iterations")),
    block_values | st.dictionaries(st.just("thinking_tokens"), block_values),
)


@given(st.lists(blocks, max_size=4), endings, usages)
def test_any_reply_can_be_kept_and_sent_back(
    said: list[tuple[dict[str, object], list[dict[str, object]]]],
    ending: dict[str, object],
    usage: dict[str, object],
) -> None:
    """One half of a character in one field would end the run that must write it down."""
    events = [START]
    for index, (block, deltas) in enumerate(said):
        events += [block_start(index, **block), *(block_delta(index, **delta) for delta in deltas)]
        events += [block_stop(index)]
    events += [event({"type": "message_delta", "delta": ending, "usage": usage}), STOP]

    kept_and_sent(WIRE, heard(WIRE, events)[1])
