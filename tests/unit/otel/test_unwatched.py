"""A run that nothing watches pays nothing for observers, whether they are imported or not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from graphloop import Agent, tool
from graphloop.testing import ScriptedModel

OTEL = {"otel/__init__.py", "otel/attributes.py", "otel/observer.py", "otel/span_tree.py"}

COUNT = """\
import asyncio, sys
{imports}
from graphloop import Agent, tool
from graphloop.testing import ScriptedModel

@tool
async def look(word: str) -> str:
    return word

CALL = {{"calls": [{{"name": "look", "arguments": {{"word": "x"}}}}]}}

agent = Agent(ScriptedModel([CALL, "done"] * 20), tools=[look])

async def count():
    done = []
    def seen(frame, event, _):
        if "graphloop" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        done[-1] += event == "opcode"
        return seen
    for _ in range(12):
        done.append(0)
        sys.settrace(seen)
        await agent.generate("x")
        sys.settrace(None)
    # The interpreter now and then collects garbage, which calls functions, too.
    print(min(done))

asyncio.run(count())
"""


def opcodes_of(imports: str) -> int:
    """Return how many opcodes of graphloop a run executes in a process with these imports."""
    program = COUNT.format(imports=imports)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    return int(done.stdout)


def test_an_unwatched_run_does_the_same_with_and_without_opentelemetry() -> None:
    """Counted and not timed: the same opcodes cost the same.

    A timer that ends meanwhile is some thirty opcodes of ten thousand, so 2 % may differ.
    """
    never = opcodes_of("")
    beside = opcodes_of("import graphloop.otel\ngraphloop.otel.otel()")

    assert never > 1_000
    assert abs(never - beside) <= never * 0.02


@tool
async def look(word: str) -> str:
    """Look something up."""
    return word


async def test_an_unwatched_run_enters_no_code_of_observers() -> None:
    """Neither their own, nor the driver's that calls them."""
    call = {"calls": [{"name": "look", "arguments": {"word": "x"}}]}
    agent = Agent(ScriptedModel([call, "done"] * 2), tools=[look])
    await agent.generate("warm")
    entered: set[str] = set()
    sys.setprofile(lambda frame, event, _: entered.add(frame.f_code.co_filename))
    try:
        await agent.generate("again")
    finally:
        sys.setprofile(None)

    names = {f"{Path(one).parent.name}/{Path(one).name}" for one in entered}
    assert "driver/driver.py" in names
    assert not [one for one in names if "observ" in one or one in OTEL]
