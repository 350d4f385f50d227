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
from tests.unit.cli.command_line import STORE, graphloop, here, refused, shown, started, write
from tests.unit.cli.pay_desk import parked, run_ids

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
PAY = """
@tool(needs_approval=True)
async def pay(amount: int) -> str:
    "Pay."
    return f"{amount} paid"
"""
GRAPH = f"""
from graphloop import Graph, tool
from graphloop.loop import Standard, standard_edges
nodes = Standard()
graph = Graph("desk", nodes.prepare, standard_edges(nodes))
{PAY}
TOOLS = [pay]
PROMPT = "Pay 5."
"""
READY = f"""
from graphloop import Agent, tool
from graphloop.testing import ScriptedModel
{PAY}
PAYS = {{"calls": [{{"name": "pay", "arguments": {{"amount": 5}}}}]}}
agent = Agent(ScriptedModel([PAYS, "Done."], label="own", restart=True), tools=[pay])
PROMPT = "Pay 5."
"""
OWN_PROVIDER = """
from pathlib import Path
from graphloop import Agent, tool
from graphloop.testing import ScriptedModel

@tool(needs_approval=True)
async def pay(amount: int) -> str:
    "Pay."
    Path("paid").write_text(f"{amount}\\n")
    return f"{amount} paid"

PAYS = {"calls": [{"name": "pay", "arguments": {"amount": 5}}]}

def build(model):
    own = ScriptedModel([PAYS, "Done."], label="acme-gateway", restart=True)
    return Agent(own, tools=[pay])

PROMPT = "Pay 5."
"""
OWN_PARENT = """
from graphloop import Agent
from graphloop.testing import ScriptedModel

ASKS = {"calls": [{"name": "child", "arguments": {"prompt": "Say hi."}}]}

def build(model):
    own = ScriptedModel([ASKS, "Done."], label="acme-gateway", restart=True)
    child = Agent(model, name="child").as_tool(description="Talks.", needs_approval=True)
    return Agent(own, tools=[child])

PROMPT = "Ask."
"""
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


def test_a_run_goes_on_in_three_processes(pay_desk: Path) -> None:
    """Only the last process runs the tool, once."""
    first = graphloop("run", "pay", *STORE, cwd=pay_desk)
    (run_id,) = (word for word in first.stdout.split() if len(word) == 32)
    second = graphloop("approve", run_id[:8], "pay", *STORE, cwd=pay_desk)
    assert not (pay_desk / "paid").exists()

    third = graphloop("resume", run_id[:8], *STORE, cwd=pay_desk)

    statuses = [done.returncode for done in (first, second, third)]
    assert statuses == [Status.PARKED, Status.OK, Status.OK]
    assert third.stdout.startswith("✓ pay(amount=5): 5 paid\nDone.\ncompleted · 2 steps · ")
    assert third.stdout.endswith(f" · run {run_id} in runs.db\n")
    assert (pay_desk / "paid").read_text(encoding="utf-8") == "5\n"
    journal = shown("replay", run_id, "--json", *STORE).splitlines()
    kinds = [json.loads(line).get("event", {}).get("type") for line in journal]
    assert [kinds.count(kind) for kind in ("ToolReturned", "EffectsStarted", "Decided")] == [1] * 3


@pytest.mark.usefixtures("pay_desk")
def test_a_call_without_an_answer_parks_again() -> None:
    run_id = parked()

    done = here("resume", run_id, "--max-steps", "3", *STORE)

    assert done.returncode == Status.PARKED
    assert f"  graphloop approve {run_id} c0.0 --store runs.db\n" in done.stderr
    assert f"  graphloop resume {run_id} --store runs.db\n" in done.stderr


@pytest.mark.usefixtures("pay_desk")
def test_approve_answers_the_calls_of_a_jsonl_store() -> None:
    run_id = parked(store="runs")

    approved = ("--target", "pay", "--approve", "always")

    assert "✓ pay(amount=5): 5 paid\nDone.\n" in shown(
        "resume", run_id, "--store", "runs", *approved
    )


@pytest.mark.usefixtures("pay_desk")
def test_a_run_that_is_over_shows_its_answer_again() -> None:
    shown("run", "pay", "--approve", "always", *STORE)
    (run_id,) = run_ids("runs.db")

    assert shown("resume", run_id, *STORE).startswith("Done.\ncompleted · 2 steps · ")
    assert Path("paid").read_text(encoding="utf-8") == "5\n"


@pytest.mark.usefixtures("pay_desk")
def test_a_child_run_and_an_option_without_effect_are_refused() -> None:
    run_id = parked("team")

    child = refused("resume", f"{run_id}/c0.0", *STORE)
    url = refused("resume", run_id, "--base-url", "http://localhost", *STORE)

    assert f"goes on with it. Fix: graphloop resume {run_id}" in child
    assert "--base-url would have no effect" in url


@pytest.mark.usefixtures("pay_desk")
def test_a_graph_is_resumed_with_its_tools() -> None:
    write({"pay/agent.py": GRAPH})
    run_id = parked()

    steps = refused("resume", run_id, "--max-steps", "3", *STORE)

    assert "--max-steps would have no effect: the stop node of graph 'desk' bounds it" in steps
    resumed = shown("resume", run_id, "--approve", "always", *STORE)
    assert "✓ pay(amount=5): 5 paid\nDone.\n" in resumed


def test_a_question_without_target_is_resumed_with_its_model(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write({"own.yaml": "- text: Hi.\n"})
    shown("run", "Hello there", "--script", "own.yaml", *STORE)
    (run_id,) = run_ids("runs.db")
    shown("fork", run_id, "--at", "1", "--as", "f", *STORE)
    asked: list[str] = []

    def served(model: str, *, base_url: str | None, **_: object) -> ScriptedModel:
        asked.append(f"{model} at {base_url}")
        return ScriptedModel(["Served."], label=model)

    monkeypatch.setattr("graphloop.cli.resume.resolve", served)

    resumed = shown("resume", "f", "--base-url", "http://x", *STORE)

    assert resumed.startswith("Served.\ncompleted · 1 step")
    assert asked == [f"script:{desk / 'own.yaml'} at http://x"]


@pytest.mark.usefixtures("pay_desk")
def test_a_journal_without_a_start_is_refused() -> None:
    asyncio.run(JsonlStore("runs").append("r", 1, Cancelled(1.0)))

    done = here("resume", "r", "--store", "runs", "--target", "pay")

    assert done.returncode == Status.FAILED
    assert "first event, found Cancelled" in done.stderr


def test_the_printed_commands_work_as_printed(pay_desk: Path) -> None:
    """The store notes the files of --with and the reason of --unbounded."""
    write({"desk.yaml": TOPOLOGY, "own desk.py": REGISTERS})
    options = ("--unbounded", "it's asked for", "--script", "pay/script.yaml", *STORE)

    first = graphloop("run", "desk.yaml", "--with", "own desk.py", *options, cwd=pay_desk)
    approve, resume, *_ = (
        shlex.split(line)[1:]
        for line in first.stderr.splitlines()
        if line.startswith("  graphloop")
    )
    second = graphloop(*approve, cwd=pay_desk)
    printed = shlex.split(second.stderr.partition("go on with: graphloop ")[2])
    replayed = graphloop("replay", resume[1], *STORE, cwd=pay_desk)
    third = graphloop(*printed, cwd=pay_desk)

    assert resume == printed
    assert replayed.stderr == ""
    assert "5 paid" in third.stdout, third.stderr
    again = graphloop(*resume, "--with", "own desk.py", cwd=pay_desk)
    assert (again.stderr, again.returncode) == ("", Status.OK)


@pytest.mark.parametrize("store", ["runs.db", "runs"])
def test_the_printed_command_resumes_an_agent_with_its_own_provider(
    pay_desk: Path, store: str
) -> None:
    """No label tells a provider that `build` makes, so only the target can make it again."""
    write({"own.py": OWN_PROVIDER})
    first = here("run", "own.py", "--script", "pay/script.yaml", "--store", store)
    words = next(line for line in first.stderr.splitlines() if "graphloop resume" in line)

    done = here(*shlex.split(words)[1:], "--approve", "always")

    assert (done.returncode, done.stderr) == (Status.OK, "")
    assert "5 paid\nDone.\n" in done.stdout
    assert (pay_desk / "paid").read_text(encoding="utf-8") == "5\n"


@pytest.mark.usefixtures("pay_desk")
def test_an_agent_beside_its_own_provider_keeps_the_model_of_the_environment() -> None:
    """A child run of the resumed run asks the model that `build` is given."""
    write({"own.py": OWN_PARENT, "script.yaml": "- text: Child says hi.\n"})
    first = here("run", "own.py", *STORE)
    words = next(line for line in first.stderr.splitlines() if "graphloop resume" in line)

    done = here(*shlex.split(words)[1:], "--approve", "always")

    assert "Child says hi." in done.stdout
    assert done.returncode == Status.OK


@pytest.mark.usefixtures("pay_desk")
def test_an_unknown_model_is_refused_if_the_target_has_no_other() -> None:
    write({"own.py": OWN_PROVIDER})
    shown("run", "own.py", "--script", "pay/script.yaml", *STORE, status=Status.PARKED)
    (run_id,) = run_ids("runs.db")

    assert "acme-gateway" in refused("resume", run_id, "--target", "pay", *STORE)


@pytest.mark.parametrize("agent", ["", READY])
def test_a_talk_is_recorded_over_its_park(agent: str, pay_desk: Path) -> None:
    """The file has the replies before and after, and replays the whole run."""
    if agent:
        write({"pay/agent.py": agent})
    record = ("--record", "talk.yaml")
    shown("run", "pay", *STORE, *record, status=Status.PARKED)
    (run_id,) = run_ids("runs.db")

    shown("resume", run_id, "--approve", "always", *STORE, *record)

    talk = (pay_desk / "talk.yaml").read_text("utf-8")
    assert (talk.count("Recorded by"), talk.count("asked:")) == (1, 2)
    replayed = shown("run", "pay", "--script", "talk.yaml", "--approve", "always")
    assert "5 paid\nDone.\n" in replayed


def test_ctrl_c_aborts_a_resumed_run_for_good(pay_desk: Path) -> None:
    """A later resume shows the aborted run, and fails: there is no answer."""
    script = "- calls: [{name: hang, arguments: {number: 1}}]\n"
    write({"pay/agent.py": HANGING, "pay/script.yaml": script})
    run_id = parked()

    with started("resume", run_id, "--approve", "always", *STORE, cwd=pay_desk) as process:
        assert process.stdout is not None
        assert next(iter(process.stdout)) == "hanging\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    again = here("resume", run_id, *STORE)

    assert process.returncode == Status.INTERRUPTED
    assert "aborted (interrupted) · 1 step" in out.splitlines()[-1]
    assert "interrupted: ending the run" in err
    assert "cancelled" in shown("runs", "--all", *STORE)
    assert again.returncode == Status.FAILED
    assert "aborted (interrupted)" in again.stdout
    assert again.stderr.splitlines() == [
        "the run is over. To go on from an earlier event N, copy it:",
        f"  graphloop fork {run_id} --at N --store runs.db",
    ]
