"""Between history and wire: the bytes of each request of a run begin with those of the one before.

The encoders and the loop have tests of their own. Here a whole run goes over a socket, and what the
server was sent is compared.
"""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphloop import Agent, AnswerInfo, Review, tool
from tests.sizes import sized
from tests.transcripts import any_text
from tests.unit.testing.kernel_faults import FAULTS
from tests.wire_server import Answer, WireServer, sse

Call = tuple[str, str]
Turn = tuple[str, tuple[Call, ...]]
"""What a model says in one turn, and the tools that it calls with a text."""

MODELS = {"anthropic": "anthropic:claude-test-1", "openai": "openai:test-1"}
on_both_wires = pytest.mark.parametrize("wire", sorted(MODELS))


@tool
async def look(text: str) -> str:
    """Look something up."""
    return f"Seen: {text}"


@tool
async def fail(text: str) -> str:
    """Fail at everything."""
    raise ValueError(text)


def on_anthropic(said: str, calls: tuple[Call, ...], at: int) -> Answer:
    """Return a turn as Anthropic streams it."""
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": f"m{at}", "model": "x", "usage": {}}}
    ]
    blocks: list[tuple[dict[str, Any], dict[str, Any]]] = []
    if said:
        delta: dict[str, Any] = {"type": "text_delta", "text": said}
        blocks.append(({"type": "text", "text": ""}, delta))
    for place, (name, text) in enumerate(calls):
        start: dict[str, Any] = {
            "type": "tool_use",
            "id": f"toolu_{at}_{place}",
            "name": name,
            "input": {},
        }
        arguments = json.dumps({"text": text})
        blocks.append((start, {"type": "input_json_delta", "partial_json": arguments}))
    for index, (block, delta) in enumerate(blocks):
        events += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    reason = "tool_use" if calls else "end_turn"
    events += [
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {}},
        {"type": "message_stop"},
    ]
    return Answer(sse(*[(str(one["type"]), json.dumps(one)) for one in events]))


def on_openai(said: str, calls: tuple[Call, ...], at: int) -> Answer:
    """Return a turn as chat completions stream it."""
    asked = [
        {
            "index": place,
            "id": f"call_{at}_{place}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps({"text": text})},
        }
        for place, (name, text) in enumerate(calls)
    ]
    reason = "tool_calls" if calls else "stop"
    choices: list[dict[str, Any]] = [
        {"index": 0, "delta": {"role": "assistant", "content": said, "tool_calls": asked}},
        {"index": 0, "delta": {}, "finish_reason": reason},
    ]
    return Answer(sse(*[json.dumps({"choices": [one]}) for one in choices], "[DONE]"))


ENCODED = {"anthropic": on_anthropic, "openai": on_openai}


def bodies(wire: str, turns: list[Turn], instructions: str) -> list[bytes]:
    """Return what a server was sent that answers an agent with these turns."""

    def last(info: AnswerInfo) -> Review:
        return Review(ok=info.text == turns[-1][0], feedback="Go on.")

    async def main() -> list[bytes]:
        answers = [ENCODED[wire](said, calls, at) for at, (said, calls) in enumerate(turns)]
        async with WireServer(answers) as server:
            agent = Agent(
                MODELS[wire],
                tools=[look, fail],
                instructions=instructions or None,
                verify=last,
                max_verify_retries=9,
                max_consecutive_tool_errors=9,
                base_url=server.url,
                api_key="k",
            )
            await agent.generate("Begin.")
            return [one.body for one in server.requests]

    return asyncio.run(main())


def assert_prefixes(sent: list[bytes]) -> None:
    """Assert that each request begins with the one before it."""
    for before, after in pairwise(sent):
        assert after.startswith(before.removesuffix(b"]}"))
        assert len(after) > len(before)


calls = st.tuples(st.sampled_from(["look", "fail", "nowhere"]), any_text)
turns = st.tuples(st.text(min_size=1, max_size=8).map("So: ".__add__), st.lists(calls, max_size=3))
scripts = st.lists(turns.map(lambda one: (one[0], tuple(one[1]))), max_size=4)


@on_both_wires
@given(script=scripts, instructions=st.sampled_from(["", "Be brief."]))
@settings(max_examples=sized(12, 500), deadline=None)
def test_the_bytes_of_a_request_begin_with_those_of_the_one_before(
    wire: str, script: list[Turn], instructions: str
) -> None:
    """Prompt caches hit, whatever a model says, its tools return, and its answers are sent back."""
    done: Turn = ("Done.", ())

    sent = bodies(wire, [*script, done], instructions)

    assert len(sent) == len(script) + 1
    assert_prefixes(sent)


@on_both_wires
@pytest.mark.parametrize(
    "fault",
    [
        "a turn stands in mid-history",
        "tools change their order",
    ],
)
def test_a_fault_of_the_kernel_shows_in_the_bytes(
    wire: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A comparison that never fails compares nothing."""
    FAULTS[fault][0](monkeypatch)
    script: list[Turn] = [(f"So: {at}", (("look", "a"),)) for at in range(4)]

    sent = bodies(wire, [*script, ("Done.", ())], "")

    assert len(sent) > 2
    with pytest.raises(AssertionError):
        assert_prefixes(sent)
