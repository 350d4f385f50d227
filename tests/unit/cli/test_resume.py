"""`graphloop resume`."""

from __future__ import annotations

import asyncio
import json
import shlex
import signal
from pathlib import Path

import pytest

from graphloop.cli.errors import Status
from graphloop.events import Cancelled
from graphloop.stores.jsonl import JsonlStore
from graphloop.testing import ScriptedModel
from tests.unit.cli.command_line import graphloop, here, refused, started
from tests.unit.cli.pay_desk import parked, run_ids

STORE = ("--store", "runs.db")
HANGING = """
import asyncio
from graphloop import Agent, tool

@tool(needs_approval=True)
async def hang(number: int) -> str:
    "Hang."
    print("hanging", flush=True)
    await asyncio.Event().wait()
    return ""

def build(model):
    return Agent(model, tools=[hang])

PROMPT = "Hang."
"""
GRAPH = """
from graphloop import Graph, tool
from graphloop.loop import Standard, standard_edges
nodes = Standard()
graph = Graph("desk", nodes.prepare, standard_edges(nodes))
@tool(needs_approval=True)
async def pay(amount: int) -> str:
    "Pay."
    return f"{amount} paid"
TOOLS = [pay]
PROMPT = "Pay 5."
"""


def test_a_run_parks_is_approved_and_goes_on_in_three_processes(pay_desk: Path) -> None:
    """The whole of it: no process but the last runs the tool, and it runs once."""
    first = graphloop("run", "pay", "--store", "runs.db", cwd=pay_desk)
    (run_id,) = (one for one in first.stdout.split() if len(one) == 32)
    second = graphloop("approve", run_id[:8], "pay", "--store", "runs.db", cwd=pay_desk)
    assert not (pay_desk / "paid").exists()

    third = graphloop("resume", run_id[:8], "--store", "runs.db", cwd=pay_desk)

    statuses = [one.returncode for one in (first, second, third)]
    assert statuses == [Status.PARKED, Status.OK, Status.OK]
    assert third.stdout.startswith("✓ pay(amount=5): 5 paid\nDone.\ncompleted · 2 steps · ")
    assert third.stdout.endswith(f" · run {run_id} in runs.db\n")
    assert (pay_desk / "paid").read_text(encoding="utf-8") == "5\n"
    journal = graphloop("replay", run_id, "--json", "--store", "runs.db", cwd=pay_desk).stdout
    kinds = [json.loads(line).get("event", {}).get("type") for line in journal.splitlines()]
    assert (
        kinds.count("ToolReturned") == kinds.count("EffectsStarted") == kinds.count("Decided") == 1
    )


@pytest.mark.usefixtures("pay_desk")
def test_a_call_without_an_answer_parks_again() -> None:
    """There is no terminal here; the lines say once more how to go on."""
    run_id = parked()

    done = here("resume", run_id, "--max-steps", "3", *STORE)

    assert done.returncode == Status.PARKED
    assert f"  graphloop approve {run_id} c0.0 --store runs.db\n" in done.stderr
    assert f"  graphloop resume {run_id} --store runs.db\n" in done.stderr


@pytest.mark.usefixtures("pay_desk")
def test_an_option_can_answer_an_open_call() -> None:
    """The only way for a directory of JSON lines without a terminal."""
    run_id = parked(store="runs")

    done = here("resume", run_id, "--store", "runs", "--target", "pay", "--approve", "always")

    assert done.returncode == Status.OK
    assert "✓ pay(amount=5): 5 paid\nDone.\n" in done.stdout


@pytest.mark.usefixtures("pay_desk")
def test_a_run_that_is_over_tells_how_it_ended() -> None:
    """And what it answered; nothing is asked or run again."""
    here("run", "pay", "--approve", "always", *STORE)
    (run_id,) = run_ids("runs.db")

    done = here("resume", run_id, *STORE)

    assert done.returncode == Status.OK
    assert done.stdout.startswith("Done.\ncompleted · 2 steps · ")
    assert Path("paid").read_text(encoding="utf-8") == "5\n"


@pytest.mark.usefixtures("pay_desk")
def test_what_cannot_take_effect_is_refused() -> None:
    """A child goes on with its root, and a ready agent has its model."""
    run_id = parked("team")

    child = refused("resume", f"{run_id}/c0.0", *STORE)
    assert f"goes on with it. Fix: graphloop resume {run_id}" in child
    url = refused("resume", run_id, "--base-url", "http://localhost", *STORE)
    assert "--base-url would have no effect" in url


def test_a_graph_goes_on_with_its_tools(pay_desk: Path) -> None:
    """A topology of one's own parks as an agent does."""
    (pay_desk / "pay" / "agent.py").write_text(GRAPH, encoding="utf-8")
    run_id = parked()

    steps = refused("resume", run_id, "--max-steps", "3", *STORE)
    done = here("resume", run_id, "--approve", "always", *STORE)

    assert "--max-steps would have no effect: the stop node of graph 'desk' bounds it" in steps
    assert done.returncode == Status.OK
    assert "✓ pay(amount=5): 5 paid\nDone.\n" in done.stdout


def test_a_bare_question_goes_on_with_the_model_it_was_put_to(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal tells the model, and the store that it was the standard loop."""
    (desk / "own.yaml").write_text("- text: Hi.\n", encoding="utf-8")
    here("run", "Hello there", "--script", "own.yaml", *STORE)
    (run_id,) = run_ids("runs.db")
    here("fork", run_id, "--at", "1", "--as", "f", *STORE)
    reached: list[str] = []

    def served(model: str, *, base_url: str | None, **_: object) -> ScriptedModel:
        reached.append(f"{model} at {base_url}")
        return ScriptedModel(["Served."], label=model)

    monkeypatch.setattr("graphloop.cli.resume.resolve", served)

    done = here("resume", "f", "--base-url", "http://x", *STORE)

    assert reached == [f"script:{desk / 'own.yaml'} at http://x"]
    assert done.stdout.startswith("Served.\ncompleted · 1 step")


@pytest.mark.usefixtures("pay_desk")
def test_a_journal_that_does_not_begin_is_damaged() -> None:
    """Nothing says which model it asked."""

    async def written() -> None:
        await JsonlStore("runs").append("r", 1, Cancelled(1.0))

    asyncio.run(written())

    done = here("resume", "r", "--store", "runs", "--target", "pay")
    assert done.returncode == Status.FAILED
    assert "begins with Started, found Cancelled" in done.stderr


TOPOLOGY = """
graphloop: 1
name: desk
start: prepare
nodes:
  prepare: {use: prepare_step}
  model: {use: model_call}
  gate: {use: gate, rules: [{ask: pay, when: is_large}, {allow: pay}]}
  execute: {use: execute}
  append: {use: append}
  again: {use: waiting}
edges:
  prepare: {ready: model, calls: gate, else: END}
  model: {calls: gate, else: append}
  gate: {settled: execute, else: append}
  execute: {else: append}
  append: {answered_calls: again, resend: again, else: END}
  again: {again: prepare, else: END}
tools: [pay]
prompt: Pay 5.
"""
REGISTERS = """
from graphloop import node, tool
from graphloop.topology import registry
from graphloop.outcomes import Outcome

class Again(Outcome): "Once more."

@registry.node
@node
async def waiting(state: None) -> Again:
    "Wait."
    return Again()

@registry.predicate
def is_large(arguments, context):
    return True

@registry.tool
@tool
async def pay(amount: int) -> str:
    "Pay."
    return f"{amount} paid"
"""


def test_the_commands_that_are_printed_work_as_they_stand(pay_desk: Path) -> None:
    """A topology needs what registers its names, and a reason to run without a bound, later too."""
    (pay_desk / "desk.yaml").write_text(TOPOLOGY, encoding="utf-8")
    (pay_desk / "own desk.py").write_text(REGISTERS, encoding="utf-8")
    given = (
        "--with",
        "own desk.py",
        "--unbounded",
        "it's asked for",
        "--script",
        "pay/script.yaml",
    )

    first = graphloop("run", "desk.yaml", *given, "--store", "runs.db", cwd=pay_desk)
    approve, resumed, *_ = (
        shlex.split(line)[1:]
        for line in first.stderr.splitlines()
        if line.startswith("  graphloop")
    )
    second = graphloop(*approve, cwd=pay_desk)
    printed = second.stderr.partition("go on with: graphloop ")[2]
    replayed = graphloop("replay", resumed[1], "--store", "runs.db", cwd=pay_desk)
    third = graphloop(*shlex.split(printed), cwd=pay_desk)

    assert "" == replayed.stderr
    assert "5 paid" in third.stdout, third.stderr
    assert resumed == shlex.split(printed)
    again = graphloop(*resumed, "--with", "own desk.py", cwd=pay_desk)
    assert ("", Status.OK) == (again.stderr, again.returncode)


def test_ctrl_c_ends_a_run_that_was_resumed(pay_desk: Path) -> None:
    """As it ends a new one: every call is answered, and the store says how it stands."""
    (pay_desk / "pay" / "agent.py").write_text(HANGING, encoding="utf-8")
    script = "- calls: [{name: hang, arguments: {number: 1}}]\n"
    (pay_desk / "pay" / "script.yaml").write_text(script, encoding="utf-8")
    run_id = parked()
    options = ("--approve", "always", "--store", "runs.db")

    with started("resume", run_id, *options, cwd=pay_desk) as process:
        assert process.stdout is not None
        assert next(iter(process.stdout)) == "hanging\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()

    assert process.returncode == Status.INTERRUPTED
    assert "aborted (interrupted) · 1 step" in out.splitlines()[-1]
    assert "interrupted: ending the run" in err
    listed = graphloop("runs", "--all", "--store", "runs.db", cwd=pay_desk).stdout
    assert "cancelled" in listed
    again = graphloop("resume", run_id, "--store", "runs.db", cwd=pay_desk)
    assert again.returncode == Status.FAILED
    assert "aborted (interrupted)" in again.stdout
    fork = f"graphloop fork {run_id} --at N --store runs.db"
    assert again.stderr == f"the run is over. Go on from an earlier event with: {fork}\n"
