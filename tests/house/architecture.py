"""Print docs/architecture.md from the code: the rooms, their files, the walk of one tool call.

Run `python -m tests.house.architecture` to write the page again.
"""

# ruff: noqa: E501 - a line of the page is a line here

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path
from types import FrameType

import graphloop
from graphloop import Agent, tool
from graphloop.testing import ScriptedModel

__all__ = ["PACKAGE", "PAGE", "ROOMS", "page"]

PACKAGE = Path(graphloop.__file__).parent
PAGE = PACKAGE.parent / "docs" / "architecture.md"

LAYERS = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text("utf-8"))["tool"][
    "importlinter"
]["contracts"][0]["layers"]

ROOMS = tuple(
    name for layer in reversed(LAYERS) for name in layer.split(" | ") if (PACKAGE / name).is_dir()
)
"""The folders of the package, lowest first; `lint-imports` refuses a folder without a layer."""

INTRODUCTION = """\
# The house, printed

Printed from the code by `python -m tests.house.architecture`; a test keeps it as the code is.

The package's root is the kernel: values, events, effects, the graph, the run, and `step`.
Read `step.py` first, then `loop.py`: the standard loop as a table.
Four files of the root are not the kernel: `loop.py` imports the nodes of its table, `lazy.py` loads
public names, `__init__.py` lists them, and `__main__.py` starts the command line.
Each folder is a room. It imports from the kernel and from rooms above it in this list; `media`,
`policy` and `rules` hold values that the kernel carries, so the kernel imports them.
"""

VALUES = """\
## The values of a run

Four values stand between an agent and the kernel. Each is complete when it is made.

| value | who makes it | who reads it | in the journal |
|---|---|---|---|
| `Options` (`agent/options.py`) | `Agent(…)`, once | `agent/build_loop.py`, which builds the loop from it | no |
| `RunTerms` (`agent/terms.py`) | an agent, or a graph with its options | each start and each resume (`agent/start_and_resume.py`) | no |
| `Setup` (`events.py`) | the terms, for one run | the kernel and its nodes: model, tools, settings, budget, rules | in `Started` |
| `Ports` (`driver/ports.py`) | the terms, for one start or resume | the driver: store, models, functions, clock, `deps` | no |

A child run begins so. `Execute` or a `Child` node asks for it by the effect `StartRun`.
`ChildRuns.drive` (`driver/children.py`) performs the effect, and asks the agent's plan (`agent/sub_agents.py`) for the child.
`ChildOpener.child` (`agent/child_runs.py`) makes the child's terms, and another `AsyncDriver` drives it.
Its end comes back as `ChildEnded`.
"""

WALK = """\
## The walk of one tool call

An agent with one tool is asked, its model calls the tool, and answers.

1. `start_run` makes the stream. Its `open_run` runs at the first read, and opens the driver.
2. The loop of `AsyncDriver` takes the next event, records it, steps the run, and starts its effects.
3. `ModelCallInFlight` turns the model's stream into `ModelReplied`. The checks of its calls ride in that event, so `Gate` asks for none.
4. `Gate` judges, `Execute` asks for the calls, and the performer runs the user's function.
5. The result comes back as `ToolReturned`. `Execute` keeps it in the turn; `Append` moves the turn into the conversation.
6. `StopCheck` goes on to the next turn, or `Verify` ends the run. `RunHandle` makes the `RunResult`.

A run parks when no pending effect can be performed here (`Performer.performable`), such as a question to a person.
The driver then rests, and the recorder releases the run in the store.

A delta goes from the decoder of the wire to `ModelCallInFlight`, and from there to the `async for` of the caller.
While the model alone is awaited, `RunStream` takes it there directly; else it passes through the driver's loop.

The table lists the files that a warm run enters, in order of first entry, with their functions.
"""


@tool
async def read(x: int) -> str:
    """Read something."""
    return f"read {x}"


def page() -> str:
    """Return the page as it should stand."""
    kernel = sorted(PACKAGE.glob("*.py"))
    parts = [INTRODUCTION, VALUES, WALK, _walk(), "\n## Root\n", _files(kernel)]
    for room in ROOMS:
        files = sorted((PACKAGE / room).rglob("*.py"))
        opening = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text("utf-8")))
        assert opening is not None, f"{room} says what it owns"
        own = [path for path in files if path.name != "__init__.py"]
        parts += [f"## `{room}/`\n", opening + "\n", _files(own)]
    return "\n".join(parts)


def _files(paths: list[Path]) -> str:
    rows = [f"| `{path.relative_to(_room(path))}` | {_first_line(path)} |" for path in paths]
    return "\n".join(["| file | owns |", "|---|---|", *rows]) + "\n"


def _room(path: Path) -> Path:
    parts = path.relative_to(PACKAGE).parts
    return PACKAGE if len(parts) == 1 else PACKAGE / parts[0]


def _first_line(path: Path) -> str:
    doc = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return doc.partition("\n")[0].replace("|", "\\|")


def _walk() -> str:
    entered: dict[str, list[str]] = {}

    def seen(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        path = Path(code.co_filename)
        names_above = {code.co_name, frame.f_back.f_code.co_name if frame.f_back else ""}
        skipped = code.co_name[0] == "<" or "__repr__" in names_above  # Debuggers print values.
        if event != "call" or skipped or PACKAGE not in path.parents:
            return
        names = entered.setdefault(path.relative_to(PACKAGE).as_posix(), [])
        if code.co_qualname not in names:
            names.append(code.co_qualname)

    calls = [{"name": "read", "arguments": {"x": 1}}]
    agent = Agent(ScriptedModel([{"calls": calls}, "Done."] * 2), tools=[read])
    agent.generate_sync("warm")
    sys.setprofile(seen)
    try:
        agent.generate_sync("again")
    finally:
        sys.setprofile(None)
    rows = [
        f"| `{path}` | {', '.join(f'`{_short(name)}`' for name in names)} |"
        for path, names in entered.items()
    ]
    return "\n".join(["| file | functions |", "|---|---|", *rows]) + "\n"


def _short(name: str) -> str:
    return name.replace(".<locals>", "").removesuffix(".__init__")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
