"""A run with one large document: its journal holds it once, and a resume sends the same bytes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from graphloop import Agent, approve, tool
from graphloop.media import Inline, MediaPart, file
from graphloop.providers.anthropic.wire import AnthropicMessages
from graphloop.providers.base import Wire
from graphloop.providers.google.wire import GoogleGemini
from graphloop.providers.openai_chat.wire import OpenAIChat
from graphloop.providers.openai_responses.wire import OpenAIResponses
from graphloop.stores.base import Store
from graphloop.stores.jsonl import JsonlStore
from graphloop.stores.memory import MemoryStore
from graphloop.stores.sqlite.store import SqliteStore
from graphloop.testing import ScriptedModel
from graphloop.values import ModelRequest

TURNS = 20
PDF_BYTES = 5_000_000
BYTES_MAX = 5_500_000
PDF = b"%PDF-1.7\n" + bytes(range(256)) * (PDF_BYTES // 256)
WIRES: tuple[Wire, ...] = (
    AnthropicMessages("m"),
    GoogleGemini("m"),
    OpenAIChat("m"),
    OpenAIResponses("gpt-5"),
)


@tool
async def read(page: int) -> str:
    """Read a page."""
    return f"page {page}"


@tool(needs_approval=True)
async def sign() -> str:
    """Sign the document."""
    return "signed"


def agent(replies: list[object], store: Store) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel(replies)
    return Agent(model, tools=[read, sign], store=store, max_steps=TURNS + 2), model


def plan() -> list[object]:
    """Return the replies of a run of 20 turns that parks in its 20th."""
    pages: list[object] = [
        {"calls": [{"name": "read", "arguments": {"page": n}}]} for n in range(TURNS - 1)
    ]
    return [*pages, {"calls": [{"name": "sign", "arguments": {}}]}]


def bytes_in(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def sent(request: ModelRequest) -> list[bytes]:
    """Return the body of a request on each wire."""
    return [b"".join(wire.encoder().encode(request)) for wire in WIRES]


@pytest.mark.parametrize("kind", ["jsonl", "sqlite"])
async def test_twenty_turns_with_one_document_keep_it_once(tmp_path: Path, kind: str) -> None:
    """Each turn that held it again would cost the disk 100 MB, and a resume as much memory."""

    def opened() -> JsonlStore | SqliteStore:
        if kind == "jsonl":
            return JsonlStore(tmp_path / "runs")
        return SqliteStore(tmp_path / "runs.db")

    prompt: list[str | MediaPart] = ["Read it, and sign it.", file(PDF, name="contract.pdf")]
    undisturbed, seen = agent([*plan(), "Done."], MemoryStore())
    parked = await undisturbed.generate(prompt, run_id="contract")
    await undisturbed.resume(parked, approvals={parked.pending[0].key: approve()})
    store = opened()
    first, _ = agent(plan(), store)
    await first.generate(prompt, run_id="contract")
    if isinstance(store, SqliteStore):
        await store.aclose()

    second, model = agent(["Done."], opened())
    key = (await second.pending("contract"))[0].key
    result = await second.resume("contract", approvals={key: approve()})
    await second.aclose()

    assert "Done." == result.text
    assert TURNS + 1 == len(result.steps)
    assert sent(seen.requests[-1]) == sent(model.requests[-1])
    assert PDF_BYTES < bytes_in(tmp_path) <= BYTES_MAX


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_a_document_is_as_private_as_the_journal_that_names_it(
    tmp_path: Path, kind: str, umask: int
) -> None:
    """Both hold what people said, whatever the rights that this process gives new files."""
    store: Store = (
        SqliteStore(tmp_path / "runs.db") if kind == "sqlite" else JsonlStore(tmp_path / "runs")
    )
    before = os.umask(umask)
    try:
        small = MediaPart("application/pdf", Inline(PDF[:20_000]))
        Agent(ScriptedModel(["Fine."]), store=store).generate_sync(["Look.", small])
    finally:
        os.umask(before)

    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {0o600} == {path.stat().st_mode & 0o777 for path in files}
    assert len(files) > 1
