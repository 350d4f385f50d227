"""A run whose process is killed for good goes on in another one, from its journal alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from graphloop import Agent, EndReason
from graphloop.stores.jsonl import JsonlStore
from graphloop.tools.execution import run_sync
from graphloop.values import Message
from tests.sim.killed_agent import build


def undisturbed(directory: Path) -> tuple[Message, ...]:
    return build(directory, 0, block=False).generate_sync("Note both.").messages


def killed_in_the_second_tool(directory: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.sim.killed_agent", str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "blocked\n"
        process.kill()


def resume(agent: Agent) -> tuple[EndReason, tuple[Message, ...]]:
    result = run_sync(agent.resume("killed"), "resume")
    return result.end_reason, result.messages


def test_a_killed_run_resumes_to_the_undisturbed_history(tmp_path: Path) -> None:
    """This is what a journal is for; nothing of the dead process is needed but its file."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    killed_in_the_second_tool(tmp_path / "a")

    end_reason, messages = resume(build(tmp_path / "a", 2, block=False))

    assert end_reason is EndReason.COMPLETED
    assert messages == undisturbed(tmp_path / "b")


def test_a_tool_whose_result_was_journaled_does_not_run_again(tmp_path: Path) -> None:
    """Only the call that was under way when the process died is tried again."""
    killed_in_the_second_tool(tmp_path)

    resume(build(tmp_path, 2, block=False))

    ran = (tmp_path / "ran").read_text(encoding="utf-8").split()
    assert ran == ["first", "second", "second"]


def test_a_line_torn_by_the_kill_is_no_damage(tmp_path: Path) -> None:
    """A process can die in the middle of a write; what was acknowledged before it counts."""
    killed_in_the_second_tool(tmp_path)
    journal = tmp_path / "runs" / "killed.jsonl"
    with journal.open("ab") as file:
        file.write(b'{"v":1,"seq":99,"event":{"type":"Too')

    end_reason, _ = resume(build(tmp_path, 2, block=False))

    assert end_reason is EndReason.COMPLETED
    events = run_sync(_load(JsonlStore(tmp_path / "runs")), "load")
    assert events > 0


async def _load(store: JsonlStore) -> int:
    return len(await store.load("killed"))
