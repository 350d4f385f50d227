"""A key that a function gives: when it is asked for, and that no text of ours ever holds it."""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from graphloop import Agent
from graphloop.errors import ProviderError
from graphloop.providers.retries import Retries
from tests.sizes import sized
from tests.wire_server import Answer, WireServer, json_answer, sse

ATTEMPTS_MAX = 3
DONE = Answer(sse('{"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}', "[DONE]"))

# Each is a key that a server would take. Hypothesis also draws words of the code, such as
# `parallel_too`, which stand in any journal; no word of ours begins with the sign.
secrets = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=12, max_size=40).map(
    "~{}".format
)
statuses = st.lists(st.sampled_from([401, 403, 529, 200]), max_size=6)


def requests_for(statuses: list[int]) -> int:
    """Return how many requests a call sends to a server that answers so, and then for ever 200."""
    attempts, renewed = 0, False
    for sent, status in enumerate([*statuses, 200], 1):
        attempts += 1
        if status == 401 and not renewed:
            renewed, attempts = True, attempts - 1
        elif status in {200, 401, 403} or attempts == ATTEMPTS_MAX:
            return sent
    raise AssertionError("200 ends a call")


@contextmanager
def heard() -> Generator[list[str]]:
    """Collect all log messages of the process."""
    said: list[str] = []

    class Listening(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(self.format(record))

    root, handler = logging.getLogger(), Listening()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield said
    finally:
        root.setLevel(level)
        root.removeHandler(handler)


async def told(statuses: list[int], key: str, folder: Path, said: list[str]) -> tuple[int, int]:
    """Ask once; append all that a person could read, and return the requests and questions."""
    asked: list[str] = []

    async def ask_key() -> str:
        await asyncio.sleep(0)
        asked.append(f"{key}.{len(asked)}")
        return asked[-1]

    # A server that quotes the key, as some do.
    quoting = json.dumps({"error": {"message": f"no: {key}.0, {key[:-2]}…, {key}.1"}})
    answers = [DONE if one == 200 else json_answer(one, quoting) for one in statuses]
    async with WireServer([*answers, DONE]) as server:
        agent = Agent(
            "openai:m",
            base_url=server.url,
            api_key=ask_key,
            retries=Retries(attempts_max=ATTEMPTS_MAX, delay_s=0),
            store=str(folder),
        )
        try:
            said.append(repr(await agent.generate("Hello")))
        except ProviderError as error:
            said += traceback.format_exception(error)
            said.append(repr(error))
        said += map(repr, (agent, agent.options, agent.graph))
        await agent.aclose()
        sent = [one.headers["authorization"] for one in server.requests]
    assert sent == [f"Bearer {one}" for one in asked]
    return len(sent), len(asked)


@given(statuses, secrets)
@settings(max_examples=sized(20, 1_000))
def test_a_key_is_asked_for_once_an_attempt_and_never_told(statuses: list[int], key: str) -> None:
    """Once more after one 401; no repr, no journal, no log and no error holds it."""
    with tempfile.TemporaryDirectory() as place, heard() as said:
        sent, asked = asyncio.run(told(statuses, key, Path(place) / "runs", said))
        journal = [file.read_text("utf-8") for file in (Path(place) / "runs").iterdir()]

    assert requests_for(statuses) == sent == asked
    assert journal
    escaped = json.dumps(key)[1:-1]
    for text in (*said, *journal):
        assert key not in text
        assert escaped not in text


@given(secrets)
@settings(max_examples=sized(20, 1_000))
def test_a_function_that_fails_with_a_secret_in_its_words_is_not_quoted(secret: str) -> None:
    """A vault's error names the token that it refused; a journal would keep it for years."""

    async def ask_key() -> str:
        raise PermissionError(f"the vault refuses {secret}")

    async def main(folder: Path, said: list[str]) -> None:
        async with WireServer([DONE]) as server:
            agent = Agent(
                "openai:m",
                base_url=server.url,
                api_key=ask_key,
                store=str(folder),
            )
            try:
                await agent.generate("Hello")
            except ProviderError as error:
                said += traceback.format_exception(error)
            await agent.aclose()
            assert not server.requests

    with tempfile.TemporaryDirectory() as place, heard() as said:
        asyncio.run(main(Path(place) / "runs", said))
        said += [file.read_text("utf-8") for file in (Path(place) / "runs").iterdir()]

    assert any("PermissionError" in text for text in said)
    for text in said:
        assert secret not in text
        assert json.dumps(secret)[1:-1] not in text
