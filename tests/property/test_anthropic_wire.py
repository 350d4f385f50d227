"""The Anthropic wire, held to its promises over histories and bytes nobody thought of."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop.errors import ProviderError
from graphloop.events import ModelReplied
from graphloop.providers.base import ReasoningDelta, ServerEvent, TextDelta
from graphloop.run import History
from graphloop.stores.codec import Codec
from graphloop.values import (
    AssistantMessage,
    AssistantPart,
    Message,
    ModelRequest,
    OpaquePart,
    OutputSpec,
    ReasoningPart,
    Reply,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from tests.anthropic_talk import START, STOP, WIRE, block_delta, block_start, block_stop
from tests.transcripts import ANTHROPIC, any_text, decoded, event, heard, in_pieces

END = b"event: message_stop"
names = pytest.mark.parametrize("name", ANTHROPIC)

ids = st.sampled_from(["", "call_0", "toolu_1", "call_1_0", "a b", "é"]) | any_text
parts: st.SearchStrategy[AssistantPart] = st.one_of(
    st.builds(TextPart, any_text),
    st.builds(ReasoningPart, any_text, any_text, st.sampled_from(["", "data"])),
    st.builds(ToolCall, ids, any_text, st.sampled_from(["", "{", '{"a": 1}', "[]", '{"b":"\\n"}'])),
    st.just(OpaquePart('{"type":"server_tool_use","id":"s"}')),
)
# A reply that says nothing joins what is said before and after it, so it is no turn of its own.
turns = st.builds(
    AssistantMessage,
    st.tuples(st.builds(TextPart, st.just("So:"))).flatmap(
        lambda first: st.lists(parts, max_size=5).map(lambda rest: (*first, *rest))
    ),
    st.sampled_from(["", "anthropic", "openai"]),
)


@st.composite
def grown(draw: st.DrawFn) -> list[History[Message]]:
    """Draw the histories of a run's requests: each a continuation of the one before."""
    said = st.builds(UserMessage, any_text)
    rules = draw(st.lists(st.builds(SystemMessage, any_text), max_size=2))
    history: History[Message] = History((*rules, UserMessage("Begin.")))
    histories = [history]
    for _ in range(draw(st.integers(0, 5))):
        turn = draw(turns)
        results = [
            ToolResult("k", draw(ids), call.name, draw(any_text), draw(st.sampled_from(STATUS)))
            for call in turn.calls
        ]
        history = history.append(turn, *results, *draw(st.lists(said, max_size=2)))
        histories.append(history)
    return histories


STATUS = ("ok", "error", "not_run")


SEARCH = ToolSpec("s", "", "", kind="provider", definition='{"type":"web_search_1","name":"s"}')
outputs = st.none() | st.builds(OutputSpec, any_text, st.just('{"type":"object"}'), any_text)


@given(grown(), outputs, st.sampled_from([(), (SEARCH,)]))
def test_each_request_begins_with_the_one_before_it(
    histories: list[History[Message]], output: OutputSpec | None, tools: tuple[ToolSpec, ...]
) -> None:
    """Prompt caches hit only where the bytes are the same, from the first one on."""
    encoder = WIRE.encoder()

    bodies = [
        b"".join(encoder.encode(ModelRequest(history, tools, output=output)))
        for history in histories
    ]

    for before, after in pairwise(bodies):
        assert after.startswith(before.removesuffix(b"]}"))


@given(grown())
def test_what_is_remembered_never_changes_what_is_sent(histories: list[History[Message]]) -> None:
    """After a crash another process encodes the same history from nothing."""
    encoder = WIRE.encoder()

    for history in histories:
        remembered = b"".join(encoder.encode(ModelRequest(history)))

        assert remembered == b"".join(WIRE.encoder().encode(ModelRequest(tuple(history))))


@given(grown())
def test_every_call_sent_is_answered_next_and_no_id_is_used_twice(
    histories: list[History[Message]],
) -> None:
    """The API refuses a conversation for one missing, doubled or misplaced id."""
    whole = json.loads(b"".join(WIRE.encoder().encode(ModelRequest(histories[-1]))))
    used: list[str] = []

    for at, message in enumerate(whole["messages"]):
        assert message["content"]
        asked = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        used += asked
        if asked:
            following = whole["messages"][at + 1]["content"]
            assert asked == [block["tool_use_id"] for block in following[: len(asked)]]

    assert len(set(used)) == len(used)
    results = [one for one in histories[-1] if isinstance(one, ToolResult)]
    assert len(used) == len(results)


@names
@given(cuts=st.sets(st.integers(0, 4_000), max_size=6))
def test_a_transcript_means_the_same_wherever_it_is_cut(name: str, cuts: set[int]) -> None:
    """The network cuts where it likes, also within a character."""
    whole = ANTHROPIC[name]

    assert decoded(WIRE, *in_pieces(whole, cuts)) == decoded(WIRE, whole)


@names
def test_a_transcript_cut_short_is_never_an_answer(name: str) -> None:
    """A cut stream that looks whole would be believed; every single cut is tried."""
    whole = ANTHROPIC[name]
    end = whole.index(END, whole.index(b"event: message_start"))

    for length in range(0, end + len(END), 3):
        with pytest.raises(ProviderError):
            decoded(WIRE, whole[:length])


@pytest.mark.parametrize(
    "name",
    # What a spliced stream showed before it started over cannot be taken back.
    [name for name in ANTHROPIC if name != "started_over"],
)
def test_what_was_shown_is_what_was_answered(name: str) -> None:
    """A stream that was read along and the reply after it must tell the same."""
    deltas, reply = decoded(WIRE, ANTHROPIC[name])

    text = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    reasoning = "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))
    assert (text, reasoning) == (reply.message.text, reply.message.reasoning)


@names
def test_a_reply_can_be_sent_back(name: str) -> None:
    """What a server sent must be what it accepts, blocks in their order, nothing lost."""
    _, reply = decoded(WIRE, ANTHROPIC[name])
    history: tuple[Message, ...] = (UserMessage("Begin."), reply.message)

    (_, message) = json.loads(b"".join(WIRE.encoder().encode(ModelRequest(history))))["messages"]

    assert len(message["content"]) == len(reply.message.parts)
    assert message["role"] == "assistant"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)
KEYS = ("type", "index", "delta", "content_block", "message", "usage", "error", "text", "id")
WORDS = (
    *("message_start", "content_block_start", "content_block_delta", "content_block_stop"),
    *("message_delta", "message_stop", "error", "text", "tool_use", "thinking", "text_delta"),
    *("input_json_delta", "fallback", "partial_json", "redacted_thinking", "citations_delta"),
)
near_events = st.recursive(
    json_values | st.sampled_from(WORDS) | st.integers(0, 1),
    lambda inner: st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=20,
)
words = st.sampled_from(WORDS)


@st.composite
def block_events(draw: st.DrawFn) -> dict[str, object]:
    """Draw an event that names a block and has some of the fields one may have."""
    names = st.sampled_from(("text", "thinking", "partial_json", "input", "id", "citation", "data"))
    fields = st.dictionaries(names, json_values)
    return {
        "type": draw(words),
        "index": draw(st.integers(0, 1)),
        draw(st.sampled_from(("content_block", "delta"))): {**draw(fields), "type": draw(words)},
    }


@given(st.lists(block_events() | near_events | st.binary(max_size=9), max_size=12))
def test_any_events_give_a_reply_or_an_error_of_ours(events: list[object]) -> None:
    """A hostile or broken server may end a turn, but never a program."""
    decoder = WIRE.decoder()
    opening = {"type": "message_start", "message": {"id": "m", "stop_reason": "end_turn"}}
    ending = {"type": "message_stop"}

    try:
        for one in (opening, *events, ending):
            data = one if isinstance(one, bytes) else json.dumps(one).encode()
            for delta in decoder.feed(ServerEvent("", data)):
                repr(delta).encode()
        reply = decoder.reply()
    except ProviderError:
        return

    assert_it_can_be_kept_and_sent(reply)


TEXTS = ("text", "thinking", "signature", "data", "id", "name", "partial_json")
MORE = ("citation", "citations", "input", "content", "caller", "score")
fields = st.fixed_dictionaries(
    {"type": words | any_text},
    optional=dict.fromkeys(TEXTS, any_text) | dict.fromkeys(MORE, json_values),
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
    optional={
        "stop_sequence": json_values,
        "container": json_values,
        "id": json_values,
        "stop_details": json_values,
    },
)
usages = st.dictionaries(
    st.sampled_from(("input_tokens", "output_tokens", "output_tokens_details", "iterations")),
    json_values | st.dictionaries(st.just("thinking_tokens"), json_values),
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

    assert_it_can_be_kept_and_sent(heard(WIRE, events)[1])


def assert_it_can_be_kept_and_sent(reply: Reply) -> None:
    replied = ModelReplied(0.0, 0, reply)
    assert Codec().decode(Codec().encode(0, replied)) == (0, replied)
    request = ModelRequest((UserMessage("Begin."), reply.message))
    json.loads(b"".join(WIRE.encoder().encode(request)), parse_constant=refused)


def refused(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


@given(st.integers(100, 599), near_events | st.binary())
def test_any_error_body_gives_an_error_that_can_be_printed(status: int, body: object) -> None:
    """The way a failure is reported must not fail itself."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    failure = WIRE.error(status, data)

    assert len(str(failure).encode()) < 5000
