"""DEPS of a target: an object, or a function that makes it when a run starts or goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop.cli.errors import Status
from tests.unit.cli.command_line import STORE, graphloop, here, refused, shown, write
from tests.unit.cli.pay_desk import parked, run_ids

DESK = """
from dataclasses import dataclass
from graphloop import Agent, ToolContext, tool

@dataclass
class Desk:
    user: str = "canary"

@tool(needs_approval=True)
def pay(amount: int, context: ToolContext[Desk]) -> str:
    "Pay."
    return f"{amount} paid to {len(context.deps.user)}"

def build(model):
    return Agent(model, tools=[pay], deps_type=Desk, instructions=lambda deps: "Pay.")

def other(model):
    return Agent(model)

PROMPT = "Pay 5."
"""
SCRIPT = "- calls: [{name: pay, arguments: {amount: 5}}]\n- text: done\n"


@pytest.mark.parametrize("deps", ["DEPS = Desk()", "DEPS = Desk", "def DEPS(): return Desk()"])
def test_a_run_and_its_resume_in_another_process_get_the_deps_of_the_file(
    deps: str, desk: Path
) -> None:
    write({"pay/agent.py": DESK + deps, "pay/script.yaml": SCRIPT})

    run_id = parked()
    shown("approve", run_id, "c0.0", "--store", "runs.db")
    resumed = graphloop("resume", run_id, "--store", "runs.db", cwd=desk)

    assert 0 == resumed.returncode, resumed.stderr
    assert "5 paid to 6" in resumed.stdout
    assert "canary" not in resumed.stdout + resumed.stderr


def test_a_file_without_its_deps_is_refused_with_what_is_missing(desk: Path) -> None:
    write({"pay/agent.py": DESK, "pay/script.yaml": SCRIPT})

    done = here("run", "pay")

    assert Status.OK != done.returncode
    assert "`deps` of 'agent': expected Desk" in done.stdout + done.stderr
    assert "define DEPS in the target's file" in done.stderr


ASYNC = "async def DEPS(): return Desk()"
OPENED = """
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

@{manager}
{word}def DEPS():
    yield Desk()
    with Path("closed").open("a") as file:
        file.write("x")
"""
MANAGERS = [
    OPENED.format(manager="contextmanager", word=""),
    OPENED.format(manager="asynccontextmanager", word="async "),
]


@pytest.mark.parametrize("deps", [ASYNC, *MANAGERS])
def test_deps_are_made_in_the_run_s_event_loop_and_closed_after_it(deps: str, desk: Path) -> None:
    """A pool of connections belongs to one event loop, and is closed at the end of the run."""
    write({"pay/agent.py": DESK + deps, "pay/script.yaml": SCRIPT})

    run_id = parked()
    resumed = here("resume", run_id, "--approve", "always", *STORE)

    assert (Status.OK, "") == (resumed.returncode, resumed.stderr)
    assert "5 paid to 6" in resumed.stdout
    assert deps == ASYNC or (desk / "closed").read_text() == "xx"


def test_an_error_in_a_function_of_deps_names_its_line(desk: Path) -> None:
    fails = "async def DEPS(): raise KeyError('no pool')"
    write({"pay/agent.py": DESK + fails, "pay/script.yaml": SCRIPT})

    assert "KeyError: 'no pool'" in (error := refused("run", "pay"))
    assert "agent.py, line 21" in error


def test_an_error_while_deps_are_closed_names_its_line(desk: Path) -> None:
    fails = (
        "from contextlib import contextmanager\n@contextmanager\ndef DEPS():\n    yield Desk()\n"
    )
    write({"pay/agent.py": f"{DESK}{fails}    raise KeyError('pool')", "pay/script.yaml": SCRIPT})

    done = here("run", "pay", "--approve", "always")

    assert done.returncode == Status.USAGE
    assert "5 paid to 6" in done.stdout
    assert "found KeyError: 'pool' (pay/agent.py, line 25)" in done.stderr


def test_an_agent_that_reads_no_deps_is_given_none(desk: Path) -> None:
    write({"agent.py": DESK + "DEPS = Desk()", "script.yaml": "- text: hello\n"})

    assert "hello" in shown("run", "agent.py:other")


TOPOLOGY = """
graphloop: 1
name: desk
start: prepare
nodes:
  prepare: {use: prepare_step}
  model: {use: model_call}
  gate: {use: gate, rules: [{ask: pay}]}
  execute: {use: execute}
  append: {use: append}
  stop: {use: stop_check, max_steps: 9}
edges:
  prepare: {ready: model, calls: gate, else: END}
  model: {calls: gate, else: append}
  gate: {settled: execute, else: append}
  execute: {else: append}
  append: {answered_calls: stop, resend: stop, else: END}
  stop: {go: prepare, else: END}
tools: [pay]
prompt: Pay 5.
"""
REGISTERS = """
from dataclasses import dataclass
from graphloop import ToolContext, tool
from graphloop.topology import registry

@dataclass
class Desk:
    user: str = "canary"

@registry.tool
@tool
def pay(amount: int, context: ToolContext[Desk]) -> str:
    "Pay."
    return f"{amount} paid to {len(context.deps.user)}"
"""
COUNTED = """
graphloop: 1
name: counter
start: count
nodes:
  count: {use: count}
edges:
  count: {else: END}
"""
NOTES = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Notes:
    items: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

STATE = Notes(("wax",))
"""
COUNTS = """
from dataclasses import dataclass
from graphloop import node
from graphloop.outcomes import Outcome
from graphloop.topology import registry

@dataclass(frozen=True)
class Counter:
    number: int = 0

class Counted(Outcome): "It is counted."

@registry.node
@node
async def count(state: Counter) -> tuple[Counted, Counter]:
    "Count."
    return Counted(), Counter(state.number + 1)
"""


@pytest.mark.parametrize("deps", ["DEPS = Desk()", "DEPS = Desk", "def DEPS(): return Desk()"])
def test_a_file_of_with_gives_a_topology_its_deps(deps: str, desk: Path) -> None:
    """A topology file is data and names no code: its deps stand with the tools that read them."""
    files = {"desk.yaml": TOPOLOGY, "script.yaml": SCRIPT, "tools.py": f"{REGISTERS}\n{deps}\n"}
    write(files)
    start = ("--script", "script.yaml", "--with", "tools.py", *STORE)

    parked = graphloop("run", "desk.yaml", *start, cwd=desk)
    assert Status.PARKED == parked.returncode, parked.stderr
    (run_id,) = run_ids("runs.db")
    resumed = graphloop("resume", run_id, "--approve", "always", *STORE, cwd=desk)

    assert Status.OK == resumed.returncode, resumed.stderr
    assert "5 paid to 6" in resumed.stdout
    assert "canary" not in resumed.stdout + resumed.stderr


def test_a_topology_without_its_deps_is_refused_with_what_is_missing(desk: Path) -> None:
    write({"desk.yaml": TOPOLOGY, "script.yaml": SCRIPT, "tools.py": REGISTERS})

    start = ("--with", "tools.py", "--script", "script.yaml")
    done = graphloop("run", "desk.yaml", *start, cwd=desk)

    assert "`deps` of 'desk': expected Desk" in done.stderr
    assert Status.USAGE == done.returncode


def test_two_files_with_deps_are_refused(desk: Path) -> None:
    """No order of options decides whose account is charged."""
    write({"desk.yaml": TOPOLOGY, "tools.py": f"{REGISTERS}\nDEPS = 1\n", "b.py": "DEPS = 2\n"})

    done = graphloop("run", "desk.yaml", "--with", "tools.py", "--with", "b.py", cwd=desk)

    assert "DEPS: expected one file of --with to define it, found tools.py and b.py" in done.stderr


def test_a_file_of_with_gives_a_topology_its_first_state(desk: Path) -> None:
    state = "\nSTATE = Counter(7)\n"
    write({"counter.yaml": COUNTED, "bare.py": COUNTS, "counts.py": f"{COUNTS}{state}"})

    done = graphloop("run", "counter.yaml", "--with", "counts.py", cwd=desk)
    bare = graphloop("run", "counter.yaml", "Go.", "--with", "bare.py", cwd=desk)

    assert "Counter(number=8)" in done.stdout, done.stderr
    assert "STATE: expected the first state of graph 'counter', of type Counter" in bare.stderr
    assert "or in a file of --with" in bare.stderr


def test_the_state_of_with_types_a_topology_whose_nodes_declare_no_state(desk: Path) -> None:
    """Nodes of the library name fields alone, so only the state tells whether they fit."""
    mapped = COUNTED.replace(
        "{use: count}", "{use: map_over, agent: a, max_items: 2, items: FIELD, into: notes}"
    )
    mapped = mapped.replace("nodes:", "agents: {a: {given: true}}\nnodes:")
    write(
        {
            "good.yaml": mapped.replace("FIELD", "items"),
            "bad.yaml": mapped.replace("FIELD", "itms"),
            "notes.py": NOTES,
        }
    )

    good, bad, untyped = (
        graphloop("check", *words, cwd=desk)
        for words in (
            ("good.yaml", "--with", "notes.py"),
            ("bad.yaml", "--with", "notes.py"),
            ("bad.yaml",),
        )
    )

    assert Status.OK == good.returncode == untyped.returncode, good.stdout + untyped.stdout
    assert Status.FAILED == bad.returncode
    found = (
        "`items`: expected a field of the state (items, notes), found 'itms'. Did you mean 'items'?"
    )
    assert found in bad.stdout.replace("\n", " ")


def test_a_file_that_another_file_imports_is_executed_once(desk: Path) -> None:
    """Both orders, since either file may be the first to be executed."""
    write(
        {
            "desk.yaml": TOPOLOGY,
            "tools.py": REGISTERS,
            "base.py": "print('base is executed')\n",
            "user.py": "import base\n",
        }
    )
    for first, second in (("base.py", "user.py"), ("user.py", "base.py")):
        done = graphloop(
            *("run", "desk.yaml", "--script", "script.yaml", "--with", "tools.py"),
            *("--with", first, "--with", second),
            cwd=desk,
        )

        assert done.stdout.count("base is executed") == 1, done
