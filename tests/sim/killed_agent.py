"""A process to be killed: two calls, the second of which never ends by itself.

Run by `test_killed_process.py`. Every execution of a tool leaves a line in the file `ran`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from graphloop import Agent, tool
from graphloop.providers.script import Entry
from graphloop.testing import ScriptedModel

SCRIPT: list[Entry] = [
    {"calls": [{"name": "note", "arguments": {"text": "first"}}]},
    {"calls": [{"name": "note", "arguments": {"text": "second"}}]},
    "Both are noted.",
]


def build(directory: Path, replies: int, *, block: bool) -> Agent:
    """Return an agent whose model has given `replies` replies already."""

    @tool(effect="at_least_once")
    def note(text: str) -> str:
        """Note a text down."""
        with (directory / "ran").open("a", encoding="utf-8") as ran:
            ran.write(f"{text}\n")
        if block and text == "second":
            print("blocked", flush=True)  # noqa: T201 - the sign to kill this process
            sys.stdin.read()
        return f"noted {text}"

    model = ScriptedModel(SCRIPT[replies:])
    return Agent(model, tools=[note], store=str(directory / "runs"))


if __name__ == "__main__":
    build(Path(sys.argv[1]), 0, block=True).generate_sync("Note both.", run_id="killed")
