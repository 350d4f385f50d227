"""Recordings: what a real server answered, replayed without it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from graphloop import Agent, tool
from graphloop.errors import ConfigError, ProviderError, RateLimited, ScriptError
from graphloop.events import Event
from graphloop.media import Inline, MediaPart, Url
from graphloop.providers import Access, MediaDelta, Retries, ScriptedModel, google_search
from graphloop.spending import UsageDetails
from graphloop.stores import MemoryStore
from graphloop.testing import recorded, refuse_requests
from graphloop.values import AssistantMessage, FinishReason, Reply, TextPart, Usage, evolve
from tests.wire_server import Answer, WireServer, json_answer, sse

NONE: dict[str, object] = {}
LOOK: dict[str, object] = {"calls": [{"name": "look", "arguments": NONE, "id": "call_x"}]}


@tool
def look() -> str:
    """Look."""
    return "fog"


def chunk(delta: Mapping[str, object], finish: str | None = None, **more: object) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return json.dumps({"model": "m-1", "choices": [choice], **more})


USED = {
    "prompt_tokens": 12,
    "completion_tokens": 3,
    "total_tokens": 15,
    "prompt_tokens_details": {"audio_tokens": 4},
}
CALLS = [{"index": 0, "id": "call_7", "function": {"name": "look", "arguments": "{ }"}}]
TALK = (
    sse(chunk({"tool_calls": CALLS}), chunk({}, "tool_calls", usage=USED), "[DONE]"),
    sse(chunk({"content": "It is"}), chunk({"content": " foggy."}, "stop", usage=USED), "[DONE]"),
)


async def test_a_talk_over_a_real_socket_is_replayed_as_it_was(tmp_path: Path) -> None:
    """Calls, text, usage, model and finish reasons; no server and no key the second time."""
    path = tmp_path / "talk.yaml"
    async with WireServer([Answer(body) for body in TALK]) as server:
        model = recorded("openai:m", path, api_key="key-canary", base_url=server.url)
        async with Agent(model, tools=[look], temperature=0.5) as agent:
            first = await agent.generate("Weather?")
        with refuse_requests():
            replayed = Agent(recorded("openai:m", path), tools=[look], temperature=0.5)
            second = await replayed.generate("Weather?")
        assert len(server.requests) == 2

    assert second.text == first.text == "It is foggy."
    assert (
        second.total_usage
        == first.total_usage
        == Usage(24, 6, details=UsageDetails(input_audio_tokens=8))
    )
    assert second.cost_usd == first.cost_usd
    told = [(each.id, each.name, each.arguments) for each in second.steps[0].tool_calls]
    assert told == [("call_7", "look", "{ }")]
    assert [each.finish_reason for each in second.steps] == [
        each.finish_reason for each in first.steps
    ]


async def test_no_key_header_or_provider_option_is_in_a_recording(tmp_path: Path) -> None:
    """A recording goes into a repository."""
    path = tmp_path / "talk.yaml"
    refusal = json_answer(401, '{"error": {"message": "wrong key canary-key-1"}}')
    async with WireServer([refusal]) as server:
        model = recorded("openai:m", path, api_key="canary-key-1", base_url=server.url)
        agent = Agent(model, provider_options={"metadata": {"token": "canary-option"}})
        with pytest.raises(ProviderError):
            await agent.generate("Hello", headers={"X-Token": "canary-header"})
        await agent.aclose()
        assert server.requests[0].headers["x-token"] == "canary-header"

    assert "AuthenticationFailed" in path.read_text("utf-8")
    assert "canary" not in path.read_text("utf-8")


async def test_a_recording_takes_the_access_that_connect_takes(tmp_path: Path) -> None:
    """A gateway may want a header or a field of the URL; a replay needs none of them."""
    path = tmp_path / "talk.yaml"
    async with WireServer([Answer(TALK[1])]) as server:
        access: Access = {"headers": {"x-team": "desk"}, "query": {"api-version": "v1"}}
        own: Access = {**access, "api_key": "k", "base_url": server.url}
        model = recorded("openai:m", path, **own)
        async with Agent(model) as agent:
            await agent.generate("Weather?")
        replay = recorded("openai:m", path, **access)
        assert (await Agent(replay).generate("Weather?")).text == "It is foggy."

    (request,) = server.requests
    assert request.headers["x-team"] == "desk"
    assert request.path.endswith("?api-version=v1")


async def test_a_recording_is_added_to(tmp_path: Path) -> None:
    """A run that parked goes on in another process, and its talk in the same file."""
    path = tmp_path / "talk.yaml"
    for reply in ("one", "two"):
        model = recorded(ScriptedModel([reply]), path, mode="append")
        await Agent(model).generate(f"Say {reply}.")

    assert path.read_text("utf-8").count("Recorded by") == 1
    for reply in ("one", "two"):
        replayed = Agent(recorded("openai:m", path))
        assert (await replayed.generate(f"Say {reply}.")).text == reply


async def test_pictures_of_the_model_are_replayed(tmp_path: Path) -> None:
    """With the bytes that the model made, or the URL where its server keeps them."""
    drawn = MediaPart("image/png", Inline(b"\x89PNG\r\n\x1a\n"))
    linked = MediaPart("image/*", Url("https://x/a.png"))
    message = AssistantMessage((TextPart("A fox."), drawn, linked))
    live = ScriptedModel([Reply(message, FinishReason.STOP)])
    first = await Agent(recorded(live, tmp_path / "talk.yaml")).generate("Draw a fox.")

    again = Agent(recorded(live, tmp_path / "talk.yaml", mode="replay")).stream("Draw a fox.")
    deltas = [part async for part in again.full_stream if isinstance(part, MediaDelta)]
    result = await again.result()

    (reply,) = [one for one in result.messages if isinstance(one, AssistantMessage)]
    assert (TextPart("A fox."), drawn, linked) == reply.parts
    assert first.text == result.text
    assert (drawn, linked) == first.media == result.media
    assert [MediaDelta(0, "image/png", "iVBORw0KGgo=")] == deltas


async def test_a_live_run_and_its_replay_differ_in_times_alone(tmp_path: Path) -> None:
    """Pictures of the caller, of a tool and of the model are in both journals."""
    picture = MediaPart("image/png", Inline(b"\x89PNG\r\n\x1a\n"))

    @tool
    def snap() -> list[MediaPart]:
        """Take a picture."""
        return [picture]

    calls = {"calls": [{"name": "snap", "arguments": NONE, "id": "call_x"}]}
    fox = AssistantMessage((TextPart("A fox."), picture), wire="script")
    drawn = Reply(fox, FinishReason.STOP, model="scripted", raw_finish_reason="stop")
    journals: list[list[Event]] = []
    for _ in range(2):  # The first records, and the second finds the file.
        store = MemoryStore()
        model = recorded(ScriptedModel([calls, drawn]), tmp_path / "talk.yaml")
        await Agent(model, tools=[snap], store=store).generate(["Draw.", picture], run_id="r")
        journals.append([evolve(one, at=0.0) for one in await store.load("r")])

    assert journals[0] == journals[1]
    told = [str((one, *getattr(one, "messages", ()))) for one in journals[0]]
    assert sum([text.count("Inline(<8 bytes>)") for text in told]) == 3


async def test_a_failure_is_replayed_with_its_class(tmp_path: Path) -> None:
    """A graph may lead a rate limit elsewhere than a bad reply."""
    path = tmp_path / "talk.yaml"
    refusal = json_answer(429, '{"error": {"message": "slow down"}}', retry_after="0")
    async with WireServer([refusal] * 9) as server:
        asked = 0
        for _ in range(2):
            agent = Agent(recorded("openai:m", path, api_key="k", base_url=server.url))
            with pytest.raises(RateLimited, match="slow down") as raised:
                await agent.generate("Hello")
            assert raised.value.status == 429
            await agent.aclose()
            asked = len(server.requests)
        assert asked == Retries().attempts_max


async def test_another_request_is_refused_with_its_difference(tmp_path: Path) -> None:
    """A silent wrong reply would make a test pass for no reason."""
    path = tmp_path / "talk.yaml"
    await Agent(recorded(ScriptedModel([LOOK, "Fog."]), path), tools=[look]).generate("Weather?")
    changed = Agent(recorded("openai:m", path), tools=[look], temperature=0.0)

    with pytest.raises(ScriptError, match="was recorded, found another") as raised:
        await changed.generate("What weather?")

    assert "-- 'user: Weather?'\n+- 'user: What weather?'" in str(raised.value)
    assert "+settings:\n+  temperature: 0.0" in str(raised.value)


async def test_an_earlier_message_that_differs_is_noticed(tmp_path: Path) -> None:
    """The conversation before the last reply is kept as a digest."""
    path = tmp_path / "talk.yaml"
    history = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}]
    asked = {"role": "user", "content": "Weather?"}
    await Agent(recorded(ScriptedModel(["Fog."]), path)).generate(messages=[*history, asked])
    history[0]["content"] = "Hello"

    with pytest.raises(ScriptError, match=r"-before: \w+"):
        await Agent(recorded("openai:m", path)).generate(messages=[*history, asked])


async def test_equal_requests_get_their_replies_in_order_and_then_the_last(tmp_path: Path) -> None:
    """Runs side by side, and a run that is resumed, ask the same more than once."""
    path = tmp_path / "talk.yaml"
    agent = Agent(recorded(ScriptedModel(["a", "b"]), path))
    for _ in range(2):
        await agent.generate("Hello")
    replayed = Agent(recorded("openai:m", path, mode="replay"))

    assert ["a", "b", "b"] == [(await replayed.generate("Hello")).text for _ in range(3)]


async def test_child_runs_are_replayed_in_any_order(tmp_path: Path) -> None:
    """The request decides, not the order, so a script of several agents needs no `to`."""
    path = tmp_path / "talk.yaml"

    def boss(model: Any) -> Agent:
        worker = Agent(model, name="worker")
        return Agent(model, tools=[worker.as_tool()])

    calls = [{"name": "worker", "arguments": {"prompt": word}} for word in ("one", "two")]
    script = ScriptedModel([{"calls": calls}, "1", "2", "Done."])
    first = await boss(recorded(script, path)).generate("Go")
    again = await boss(recorded("openai:m", path)).generate("Go")

    assert [message.text for message in first.messages if message.role == "tool"] == ["1", "2"]
    assert [message.text for message in again.messages if message.role == "tool"] == ["1", "2"]
    assert again.text == "Done."


async def test_a_recording_replaces_the_file_with_its_first_reply(tmp_path: Path) -> None:
    """A recording that fails before any reply keeps the earlier one."""
    path = tmp_path / "talk.yaml"
    await Agent(recorded(ScriptedModel(["old"]), path)).generate("Hello")
    newer = recorded(ScriptedModel(["new"]), path, mode="record")
    assert "old" in path.read_text("utf-8")

    await Agent(newer).generate("Hello")

    assert "new" in path.read_text("utf-8")
    assert "old" not in path.read_text("utf-8")


def test_what_cannot_work_is_refused_at_once(tmp_path: Path) -> None:
    mode: Any = "once"
    with pytest.raises(ConfigError, match="`mode`: expected auto, record, append or replay"):
        recorded(ScriptedModel(()), tmp_path / "a.yaml", mode=mode)
    with pytest.raises(ConfigError, match="expected a folder"):
        recorded(ScriptedModel(()), tmp_path / "b" / "a.yaml")
    with pytest.raises(ScriptError, match="cannot be read"):
        recorded("openai:m", tmp_path / "a.yaml", mode="replay")
    (tmp_path / "c.yaml").write_text("- error: {type: Oops, message: x}", "utf-8")
    with pytest.raises(ScriptError, match="name of a ProviderError"):
        recorded("openai:m", tmp_path / "c.yaml")
    with pytest.raises(ConfigError, match="another file, which would be lost"):
        recorded("openai:m", tmp_path / "c.yaml", mode="record")


def test_a_recording_refuses_what_its_model_refuses(tmp_path: Path) -> None:
    """When the agent is made, as without the recording: not in the middle of its first run."""
    model = recorded("anthropic:m", tmp_path / "talk.yaml", api_key="k")

    with pytest.raises(ConfigError, match="wire 'google'"):
        Agent(model, tools=[google_search()])
    with pytest.raises(ConfigError, match="has no seed"):
        Agent(model, seed=3)
