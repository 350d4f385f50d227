"""The words a chat server ends its answers with, over real sockets, and what each comes to.

`docs/finish-words.md` holds the outcomes that these tests measure, and the words of each wire.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Final

import pytest

from graphloop import Agent, tool
from graphloop.errors import ProviderError
from graphloop.providers.anthropic.wire import ANTHROPIC_WORDS
from graphloop.providers.finish_words import FinishWord
from graphloop.providers.google.wire import GOOGLE_WORDS
from graphloop.providers.http import Endpoint, HttpProvider, Retries
from graphloop.providers.openai_chat.wire import CHAT_WORDS, OpenAIChat
from graphloop.providers.openai_responses.wire import RESPONSES_WORDS
from tests.wire_server import Answer, WireServer, sse

PAGE: Final = Path(__file__).parents[2] / "docs" / "finish-words.md"
WORDS: Final = (
    *("error", "abort", "insufficient_system_resource", "model_length", "max_tokens"),
    *("MAX_TOKENS", "refusal", "safety", "a_word_of_tomorrow", ""),
)
HEADER: Final = "| word | answer | ends | tool ran |"


def answer(word: str, *, call: bool) -> Answer:
    """Return half an answer, or a call, that ends by a word; the empty word is `[DONE]` alone."""
    function = {"name": "pay", "arguments": '{"amount":1}'}
    calls = [{"index": 0, "id": "a", "type": "function", "function": function}]
    delta = {"role": "assistant", **({"tool_calls": calls} if call else {"content": "The answer"})}
    chunks: list[object] = [
        {"id": "x", "model": "m", "choices": [{"index": 0, "delta": delta}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": word or None}]},
        {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}},
    ]
    return Answer(sse(*map(json.dumps, chunks), "[DONE]"))


def outcome(word: str, *, call: bool, streamed: bool) -> tuple[str, str]:
    """Return how a run ends whose server says this and nothing else, and whether its tool ran."""
    paid: list[int] = []

    @tool
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    async def main() -> str:
        async with WireServer([answer(word, call=call)] * 4) as server:
            model = HttpProvider(
                OpenAIChat("m"), Endpoint(server.url), retries=Retries(attempts_max=1)
            )
            agent = Agent(model, tools=[pay], max_steps=2)
            try:
                if streamed:
                    stream = agent.stream("Go.")
                    _ = [part async for part in stream.full_stream]
                    result = await stream.result()
                else:
                    result = await agent.generate("Go.")
            except ProviderError as error:
                return f"error `{type(error).__name__}`"
            finally:
                await model.aclose()
            told = ", with a warning" if any("finish" in one for one in result.warnings) else ""
            return f"`{result.end_reason}`{told}"

    return asyncio.run(main()), "yes" if paid else "no"


def row(word: str, *, call: bool, ends: str, ran: str) -> str:
    """Return a line of the table of outcomes."""
    named = f"`{word}`" if word else "none"
    return f"| {named} | {'call' if call else 'text'} | {ends} | {ran} |"


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "buffered"])
@pytest.mark.parametrize("call", [True, False], ids=["call", "text"])
@pytest.mark.parametrize("word", WORDS)
def test_a_finish_word_comes_to_what_the_page_says(word: str, call: bool, streamed: bool) -> None:
    """Half an answer must not look whole, and a call that may be cut must not run."""
    ends, ran = outcome(word, call=call, streamed=streamed)

    assert row(word, call=call, ends=ends, ran=ran) in PAGE.read_text(encoding="utf-8")
    assert ran == "no"
    assert (ends == "`completed`") is False


def listed(words: dict[str, FinishWord]) -> list[str]:
    """Return the lines of a table of words."""
    return [
        f"| `{name}` | {word.means or 'broken off'} | {word.services} |"
        for name, word in words.items()
    ]


def test_the_page_lists_every_word_of_every_wire() -> None:
    """A word that is added without its line would be known to nobody."""
    page = PAGE.read_text(encoding="utf-8")

    for words in (CHAT_WORDS, ANTHROPIC_WORDS, RESPONSES_WORDS, GOOGLE_WORDS):
        head = "| word | means | said by |\n| --- | --- | --- |\n"
        assert head + "\n".join(listed(dict(words))) in page
    assert HEADER in page
