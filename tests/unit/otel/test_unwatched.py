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
    calls = []
    def seen(frame, event, _):
        calls[-1] += event == "call" and "graphloop" in frame.f_code.co_filename
    for _ in range(12):
        calls.append(0)
        sys.setprofile(seen)
        await agent.generate("x")
        sys.setprofile(None)
    # The interpreter now and then collects garbage, which calls functions, too.
    print(min(calls))

asyncio.run(count())
"""


def calls_of(imports: str) -> int:
    """Return how many Python functions a run calls in a new process with these imports."""
    program = COUNT.format(imports=imports)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    return int(done.stdout)


def test_an_unwatched_run_makes_the_same_calls_with_and_without_opentelemetry() -> None:
    """Counted and not timed: the same calls cost the same."""
    never = calls_of("")

    assert 0 < never == calls_of("import graphloop.otel\ngraphloop.otel.otel()")


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
