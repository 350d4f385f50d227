"""`graphloop resume`."""

from __future__ import annotations

import asyncio
import json
import shlex
import signal
from pathlib import Path

import pytest

from graphloop.cli.request import Approve, ResumeRequest, RunRequest
from graphloop.cli.resume import resume
from graphloop.cli.run import run
from graphloop.cli.status import Status
from graphloop.errors import ConfigError, StoreError
from graphloop.events import Cancelled
from graphloop.stores.jsonl import JsonlStore
from graphloop.testing import ScriptedModel
from tests.unit.cli.command_line import graphloop, started
from tests.unit.cli.pay_desk import GATED, parked, run_ids

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
    assert kinds.count("ToolReturned") == kinds.count("Begun") == kinds.count("Decided") == 1


@pytest.mark.usefixtures("pay_desk")
def test_what_nobody_has_answered_parks_again(capsys: pytest.CaptureFixture[str]) -> None:
    """There is no terminal here; the lines say once more how to go on."""
    run_id = parked()
    capsys.readouterr()

    assert resume(ResumeRequest(run=run_id, store="runs.db", max_steps=3)) is Status.PARKED

    told = capsys.readouterr().err
    assert f"  graphloop approve {run_id} c0.0 --store runs.db\n" in told
    assert f"  graphloop resume {run_id} --store runs.db\n" in told


@pytest.mark.usefixtures("pay_desk")
def test_a_rule_can_answer_what_is_open(capsys: pytest.CaptureFixture[str]) -> None:
    """The only way for a directory of JSON lines where nobody sits at a terminal."""
    run_id = parked(store="runs")

    status = resume(ResumeRequest(run=run_id, store="runs", target="pay", approve=Approve.ALWAYS))

    assert status is Status.OK
    assert "✓ pay(amount=5): 5 paid\nDone.\n" in capsys.readouterr().out


@pytest.mark.usefixtures("pay_desk")
def test_a_run_that_is_over_tells_how_it_ended(capsys: pytest.CaptureFixture[str]) -> None:
    """And what it answered; nothing is asked or run again."""
    run(RunRequest(target="pay", store="runs.db", approve=Approve.ALWAYS))
    (run_id,) = run_ids("runs.db")
    capsys.readouterr()

    assert resume(ResumeRequest(run=run_id, store="runs.db")) is Status.OK

    assert capsys.readouterr().out.startswith("Done.\ncompleted · 2 steps · ")
    assert Path("paid").read_text(encoding="utf-8") == "5\n"


@pytest.mark.usefixtures("pay_desk")
def test_a_child_goes_on_with_its_root() -> None:
    """By itself it would end, and nobody would hear of it."""
    run_id = parked("team")

    with pytest.raises(ConfigError, match=f"goes on with it: graphloop resume {run_id}"):
        resume(ResumeRequest(run=f"{run_id}/c0.0", store="runs.db"))


def test_a_graph_goes_on_with_its_tools(pay_desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A topology of one's own parks as an agent does."""
    (pay_desk / "pay" / "agent.py").write_text(GRAPH, encoding="utf-8")
    run_id = parked()

    with pytest.raises(ConfigError, match="--max-steps would have no effect: the bound of graph"):
        resume(ResumeRequest(run=run_id, store="runs.db", max_steps=3))
    status = resume(ResumeRequest(run=run_id, store="runs.db", approve=Approve.ALWAYS))

    assert status is Status.OK
    assert "✓ pay(amount=5): 5 paid\nDone.\n" in capsys.readouterr().out


@pytest.mark.usefixtures("pay_desk")
def test_a_model_that_would_have_no_effect_is_refused() -> None:
    """A ready agent has its own."""
    with pytest.raises(ConfigError, match="--base-url would have no effect"):
        resume(ResumeRequest(run=parked("team"), store="runs.db", base_url="http://localhost"))


def test_a_bare_question_goes_on_with_the_model_it_was_put_to(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The journal tells the model, and the store that it was the standard loop."""
    (desk / "own.yaml").write_text("- text: Hi.\n", encoding="utf-8")
    run(RunRequest(target="Hello there", script="own.yaml", store="runs.db"))
    (run_id,) = run_ids("runs.db")
    fork = graphloop("fork", run_id, "--at", "1", "--as", "f", "--store", "runs.db", cwd=desk)
    assert fork.returncode == Status.OK
    reached: list[str] = []

    def served(model: str, *, base_url: str | None, **_: object) -> ScriptedModel:
        reached.append(f"{model} at {base_url}")
        return ScriptedModel(["Served."], label=model)

    monkeypatch.setattr("graphloop.cli.resume.resolve", served)
    capsys.readouterr()

    assert resume(ResumeRequest(run="f", store="runs.db", base_url="http://x")) is Status.OK
    assert reached == [f"script:{desk / 'own.yaml'} at http://x"]
    assert capsys.readouterr().out.startswith("Served.\ncompleted · 1 step")


def test_a_files_own_approver_is_not_replaced_unasked(
    pay_desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever wrote the agent has decided who decides; an explicit option still wins."""
    first, second = parked(), parked()
    own = GATED.replace("tools=[pay]", "tools=[pay], approve_tool_call=lambda pending: True")
    (pay_desk / "pay" / "agent.py").write_text(own, encoding="utf-8")

    resume(ResumeRequest(run=first, store="runs.db"))
    assert "✓ pay(amount=5): 5 paid" in capsys.readouterr().out
    resume(ResumeRequest(run=second, store="runs.db", approve=Approve.NEVER))
    assert "⊘ pay(amount=5)" in capsys.readouterr().out


@pytest.mark.usefixtures("pay_desk")
def test_a_journal_that_does_not_begin_is_damaged() -> None:
    """Nothing says which model it asked."""

    async def written() -> None:
        await JsonlStore("runs").append("r", 1, Cancelled(1.0))

    asyncio.run(written())

    with pytest.raises(StoreError, match="begins with Started, found Cancelled"):
        resume(ResumeRequest(run="r", store="runs", target="pay"))


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
from graphloop import node, registry, tool
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


def test_ctrl_c_ends_a_run_that_was_taken_up(pay_desk: Path) -> None:
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
