"""Write a first agent, its test, and a topology into a directory.

  graphloop init desk
  graphloop run desk
  graphloop check desk/review

The files run without a network: script.yaml gives the replies until you name a model. No existing
file is overwritten, and nothing is written if one is in the way.

Exit status: 0 the files are written, 2 wrong usage, or a file is in the way.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from ..errors import ConfigError
from .errors import Status
from .text import wrapped

__all__ = ["init_command"]

AGENT: Final = '''\
"""A tool, an agent, a question."""

from graphloop import Agent, Model, tool

PROMPT = "What's the weather in NYC and London?"
WEATHER = {"NYC": "72°F and sunny", "London": "55°F and rainy"}


@tool
async def get_weather(city: str) -> str:
    """Return the current weather of a city."""
    return WEATHER.get(city, f"no weather station in {city}")


def build(model: Model) -> Agent:
    """Return the agent, asking `model`."""
    return Agent(model, tools=[get_weather], max_steps=5)
'''
SCRIPT: Final = """\
# The replies of a model, in order; graphloop run uses them while no API key is set.
- calls:
    - name: get_weather
      arguments: {city: NYC}
    - name: get_weather
      arguments: {city: London}
- NYC is 72°F and sunny; London is 55°F and rainy.
"""
TEST: Final = '''\
"""The agent is safe, and does its work with the replies of the script."""

from pathlib import Path

from agent import PROMPT, build
from graphloop.testing import ScriptedModel, assert_safe

SCRIPT = Path(__file__).with_name("script.yaml")


def test_the_agent_is_safe() -> None:
    assert_safe(build(ScriptedModel([])).graph)


def test_the_agent_asks_for_both_cities() -> None:
    result = build(ScriptedModel.from_file(SCRIPT)).generate_sync(PROMPT)

    assert [call.name for call in result.steps[0].tool_calls] == ["get_weather"] * 2
    assert "London is 55°F" in result.text
'''
TOPOLOGY: Final = """\
# A draft that a person approves, or sends back twice at most. No code is needed.
graphloop: 1
name: review
prompt: Write a haiku about bees.
start: prepare
nodes:
  prepare: {use: prepare_step}
  draft: {use: model_call}
  written: {use: append}
  review: {use: approve}
  again: {use: limit, times: 2}
edges:
  prepare: {ready: draft, calls: written, else: END}
  draft: {else: written}
  written: {final: review, else: END}
  review: {accepted: END, rejected: again, else: END}
  again: {go: prepare, else: END}
"""
HAIKU: Final = """\
- Bees hum in the thyme.
- Bees hum in the thyme; the garden leans in to hear.
- A hum in the thyme; the garden leans in to hear what summer will be.
"""
FILES: Final[Mapping[str, str]] = {
    "agent.py": AGENT,
    "script.yaml": SCRIPT,
    "test_agent.py": TEST,
    "review/topology.yaml": TOPOLOGY,
    "review/script.yaml": HAIKU,
}

Folder: TypeAlias = Annotated[
    Path, typer.Argument(metavar="DIR", help="The directory; it is created if it is missing.")
]


def init_command(folder: Folder = Path()) -> Status:
    """Write the files, and print the commands to try."""
    taken = [name for name in FILES if (folder / name).exists()]
    if taken:
        raise ConfigError(
            f"{folder}: expected none of the files to exist, found {', '.join(taken)}. Fix: name "
            "another directory: graphloop init DIR"
        )
    try:
        for name, text in FILES.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise ConfigError(f"{folder}: expected a directory to write to, found: {error}") from error
    here = shlex.quote(str(folder))
    text = (
        f"{folder}: {', '.join(FILES)}\n"
        "Try, without an API key:\n"
        f"  graphloop run {here}\n"
        f"  graphloop run {here}/review\n"
        f"  graphloop check {here}/review\n"
        f"  python -m pytest {here}\n"
    )
    sys.stdout.write(wrapped(text, sys.stdout))
    return Status.OK
