"""The model's server of the streaming benchmark: a process of its own, with nothing but asyncio.

Whole answers are made before the first request, HTTP chunks included: a request costs this process
one write, so that on a small machine the client is what is measured. Run as a script with the
number of text deltas; prints its port.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable, Iterator, Mapping

__all__ = ["PIECE_BYTES", "WORD"]

WORD = " word"
PIECE_BYTES = 16_384
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def _chat(deltas: int) -> Iterator[bytes]:
    """Yield the events of an answer as OpenAI writes them."""
    yield _chat_chunk({"role": "assistant", "content": "", "refusal": None})
    for _ in range(deltas):
        yield _chat_chunk({"content": WORD})
    yield _chat_chunk({}, "stop")
    usage = {"prompt_tokens": 10, "completion_tokens": deltas, "total_tokens": 10 + deltas}
    yield _data({**_envelope(), "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def _chat_chunk(delta: Mapping[str, object], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return _data({**_envelope(), "choices": [choice], "usage": None})


def _envelope() -> dict[str, object]:
    return {
        "id": "chatcmpl-BenchBenchBenchBenchBenchBen",
        "object": "chat.completion.chunk",
        "created": 1_760_000_000,
        "model": "bench-2026-01-01",
        "service_tier": "default",
        "system_fingerprint": "fp_0123456789",
    }


def _messages(deltas: int) -> Iterator[bytes]:
    """Yield the events of an answer as Anthropic writes them."""
    message: dict[str, object] = {
        "id": "msg_BenchBenchBenchBenchBench",
        "type": "message",
        "role": "assistant",
        "model": "bench",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 1},
    }
    block = {"type": "text", "text": ""}
    yield _event("message_start", message=message)
    yield _event("content_block_start", index=0, content_block=block)
    for _ in range(deltas):
        yield _event("content_block_delta", index=0, delta={"type": "text_delta", "text": WORD})
    yield _event("content_block_stop", index=0)
    end = {"stop_reason": "end_turn", "stop_sequence": None}
    yield _event("message_delta", delta=end, usage={"output_tokens": deltas})
    yield _event("message_stop")


def _event(name: str, **fields: object) -> bytes:
    return f"event: {name}\n".encode() + _data({"type": name, **fields})


def _data(value: object) -> bytes:
    return f"data: {json.dumps(value, separators=(',', ':'))}\n\n".encode()


def _answer(chunks: Iterable[bytes]) -> bytes:
    """Return a whole HTTP answer with these HTTP chunks."""
    return HEAD + b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in chunks) + b"0\r\n\r\n"


def _pieces(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), PIECE_BYTES):
        yield body[start : start + PIECE_BYTES]


def _answers(deltas: int) -> dict[str, bytes]:
    """Return the answer to each path: how the events are cut, then the wire's own path."""
    chat, messages = list(_chat(deltas)), list(_messages(deltas))
    return {
        "/events/chat/completions": _answer(chat),
        "/pieces/chat/completions": _answer(_pieces(b"".join(chat))),
        "/events/v1/messages": _answer(messages),
        "/pieces/v1/messages": _answer(_pieces(b"".join(messages))),
    }


async def _serve(answers: Mapping[str, bytes]) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:  # The client ends it, by closing the connection.
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                _, _, length = head.partition(b"content-length:")
                await reader.readexactly(int(length.split(b"\r\n", 1)[0]))
                writer.write(answers[head.split(b" ", 2)[1].decode()])
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(_answers(int(sys.argv[1]))))
