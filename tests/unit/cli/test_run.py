"""`graphloop run`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphloop import Agent
from graphloop.cli.errors import Status
from graphloop.codec import Codec
from graphloop.replay import replay
from graphloop.testing import ScriptedModel
from graphloop.values import AssistantMessage, ToolResult
from tests.endless_graphs import POLLS
from tests.unit.cli.command_line import here, printed, refused, started
from tests.unit.cli.pay_desk import GATED, run_ids

WAITING = """
import asyncio
from graphloop import Agent, tool

@tool
async def wait(number: int) -> str:
    "Wait."
    await asyncio.Event().wait()
    return ""

@tool(thread=True)
def block(path: str) -> str:
    "Read a pipe without a writer."
    with open(path) as pipe:
        return pipe.read()

def build(model):
    return Agent(model, tools=[wait, block])

PROMPT = "Wait."
"""


@pytest.fixture
def gated(pay_desk: Path) -> str:
    return "pay"


def scripted(desk: Path, *texts: str) -> str:
    path = desk / "own.yaml"
    path.write_text("".join(f"- text: {text}\n" for text in texts), encoding="utf-8")
    return str(path)


def test_a_bare_question_is_asked_without_tools(desk: Path) -> None:
    """No file needed; the question is not repeated, for a pipe wants the answer."""
    done = here("run", "Hello there", "--script", scripted(desk, "Hi."))

    assert done.returncode == Status.OK
    assert (done.stdout, done.stderr) == ("Hi.\ncompleted · 1 step · 11 tokens\n", "")


def test_a_question_that_is_asked_here_beats_the_files_prompt(gated: str, desk: Path) -> None:
    """And the file's own is shown, since it was not typed."""
    script = scripted(desk, "Hi.")

    assert here("run", gated, "Hello", "--script", script).stdout.startswith("Hi.\n")
    assert here("run", gated, "--script", script).stdout.startswith("> Pay 5.\nHi.\n")


def test_a_parked_run_tells_how_to_go_on(gated: str) -> None:
    """In commands that are typed as they stand; without a store, what would be needed."""
    done = here("run", gated, "--store", "runs.db", "--max-steps", "4")
    bare = here("run", gated)

    (run_id,) = run_ids("runs.db")
    assert done.returncode == bare.returncode == Status.PARKED
    assert done.stdout.endswith(f" · run {run_id} in runs.db\n")
    assert f"  graphloop approve {run_id} c0.0 --store runs.db\n" in done.stderr
    assert f"  graphloop resume {run_id} --store runs.db\n" in done.stderr
    assert "run it with --store runs.db" in bare.stderr


def test_a_store_without_notes_is_told_the_target_again(gated: str) -> None:
    """A directory of JSON lines keeps no answers for later: a terminal asks."""
    done = here("run", gated, "--store", "runs")

    (run_id,) = run_ids("runs")
    target = Path(gated).absolute()
    assert f"  graphloop resume {run_id} --target {target} --store runs\n" in done.stderr
    assert "graphloop approve" not in done.stderr


def test_a_store_of_the_agents_own_is_told_of_as_well(gated: str) -> None:
    """It need not be named to be where the run is kept; another store may be."""
    own = GATED.replace("tools=[pay]", "tools=[pay], store='own.db'")
    Path(gated, "agent.py").write_text(own, encoding="utf-8")

    told = here("run", gated).stderr
    (run_id,) = run_ids("own.db")
    assert f"graphloop approve {run_id} c0.0 --store own.db\n" in told
    here("run", gated, "--store", "other.db")
    assert len(run_ids("own.db")) == len(run_ids("other.db")) == 1


def test_a_store_object_of_the_agents_own_is_answered_from_python(gated: str) -> None:
    """No command could open it."""
    own = GATED.replace("tools=[pay]", "tools=[pay], store=MemoryStore()").replace(
        "from graphloop import",
        "from graphloop.stores.memory import MemoryStore\nfrom graphloop import",
    )
    Path(gated, "agent.py").write_text(own, encoding="utf-8")

    told = here("run", gated).stderr

    assert "Go on from Python, by the keys above:\n  await agent.resume(" in told
    assert "graphloop approve" not in told


def test_a_files_own_approver_is_not_replaced_unasked(gated: str) -> None:
    """The agent's author has chosen what decides; an explicit option still wins."""
    own = GATED.replace("tools=[pay]", "tools=[pay], approve_tool_call=lambda pending: True")
    Path(gated, "agent.py").write_text(own, encoding="utf-8")

    assert "✓ pay(amount=5): 5 paid" in here("run", gated).stdout
    assert "⊘ pay(amount=5)" in here("run", gated, "--approve", "never").stdout


def test_the_options_take_effect(gated: str) -> None:
    """--max-steps ends the run after the first turn, --instructions stand in its journal."""
    limits = ("--max-steps", "1", "--instructions", "Be brief.", "--store", "runs")

    done = here("run", gated, "--approve", "always", *limits)

    assert done.returncode == Status.OK
    assert "max_steps · 1 step · 15 tokens · run " in done.stdout
    (journal,) = Path("runs").iterdir()
    assert "Be brief." in journal.read_text(encoding="utf-8").splitlines()[0]
    assert "max_steps" in refused("run", gated, "--max-steps", "0")


def test_what_cannot_take_effect_is_refused(desk: Path) -> None:
    """An option that is silently ignored is the worst answer."""
    head = (
        "from graphloop import END, Agent, Graph\nfrom graphloop.nodes import PrepareStep\n"
        "from graphloop.testing import ScriptedModel\nprepare = PrepareStep()\n"
    )
    graph = "Graph('g', prepare, {prepare: {...: END}}"
    (desk / "graph.py").write_text(f"{head}graph = {graph})\n", encoding="utf-8")
    (desk / "state.py").write_text(f"{head}graph = {graph}, state_type=dict)\n", encoding="utf-8")
    (desk / "odd.py").write_text(f"{head}graph = {graph})\nSTATE = 3\n", encoding="utf-8")
    (desk / "ready.py").write_text(f"{head}agent = Agent(ScriptedModel([]))\n", encoding="utf-8")
    script = ("--script", scripted(desk, "Hi."))

    for arguments, message in (
        (("graph.py", "Hi?", "--max-steps", "2"), "--max-steps would have no effect: the"),
        (("state.py", "Hi?"), "of type dict, found none. Fix: say it in its file"),
        (("odd.py", "Hi?"), "STATE would have no effect: graph 'g' carries no state"),
        (("ready.py", "Hi?", "--model", "a:b"), "--model would have no effect: ready.py has"),
        (("ready.py", "Hi?", "--base-url", "u", *script), "--script and --base-url would have no"),
        (("ready.py", "Hi?", "--unbounded", "why"), "--unbounded would have no effect: an agent's"),
        (("ready.py",), "ready.py: expected a question, found no PROMPT in it. Fix: add"),
        (("Why", "so?"), "Why: expected a directory, a .py file, or"),
        (("Why so?",), "found no API key. Fix: set ANTHROPIC_API_KEY"),
        (("Why so?", "--model", "a:b", *script), "--script: expected it or --model, found both"),
        (("Why so?", "--script", "none.yaml"), "cannot be read"),
        (("Why so?", "--store", "no/runs.db"), "expected a folder at 'no'"),
        (("Why so?", "--model", "opneai:m"), "Did you mean 'openai'?"),
        (("Why so?", "--base-url", "u", *script), "base_url would"),
    ):
        assert message in refused("run", *arguments), arguments


def test_a_ready_agent_runs_with_the_model_it_has(desk: Path) -> None:
    """No key is looked for: it needs none of ours."""
    text = (
        "from graphloop import Agent\nfrom graphloop.testing import ScriptedModel\n"
        "agent = Agent(ScriptedModel(['Ready.']))\n"
    )
    (desk / "ready.py").write_text(text, encoding="utf-8")

    assert here("run", "ready.py", "Hi?").stdout.startswith("Ready.\n")


def test_a_folder_may_have_the_name_of_the_standard_loop(gated: str) -> None:
    """Its run goes on as what it was started as."""
    Path(gated).rename("agent")

    run = here("run", "agent", "--store", "runs.db")
    (run_id,) = run_ids("runs.db")
    done = here("resume", run_id, "--approve", "always", "--store", "runs.db")

    assert run.returncode == Status.PARKED
    assert "✓ pay(amount=5): 5 paid" in done.stdout


def test_a_graph_runs_with_its_tools(desk: Path) -> None:
    """TOOLS are what its model is offered."""
    text = (
        "from graphloop import Graph, tool\nfrom graphloop.loop import Standard, standard_edges\n"
        "nodes = Standard()\ngraph = Graph('g', nodes.prepare, standard_edges(nodes))\n"
        "@tool\nasync def f() -> str:\n    'F.'\n    return 'ok'\nTOOLS = [f]\n"
    )
    (desk / "own.py").write_text(text, encoding="utf-8")
    (desk / "own.yaml").write_text("- calls: [{name: f}]\n- text: Done.\n", encoding="utf-8")

    done = here("run", "own.py", "Hi?", "--script", "own.yaml")

    assert done.stdout.startswith("→ f()\n✓ f(): ok\nDone.\ncompleted")


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize(
    ("options", "variables", "reached"),
    [
        (("--base-url", "http://x"), {}, "openai:gpt-5 at http://x"),
        (("--base-url", "http://x"), {"ANTHROPIC_API_KEY": "k"}, "openai:gpt-5 at http://x"),
        (
            (),
            {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"},
            "anthropic:claude-opus-4-8 at None",
        ),
        ((), {"OPENAI_BASE_URL": "http://y"}, "openai:gpt-5 at None"),
        ((), {"GRAPHLOOP_MODEL": "a:b", "ANTHROPIC_API_KEY": "k"}, "a:b at None"),
        (("--model", "c:d"), {"GRAPHLOOP_MODEL": "a:b"}, "c:d at None"),
    ],
)
def test_a_model_is_named_or_the_environment_decides(
    options: tuple[str, ...],
    variables: dict[str, str],
    reached: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """--base-url alone is enough: chat completions are what such servers speak."""
    asked: list[str] = []

    def served(model: str, *, base_url: str | None, **_: object) -> ScriptedModel:
        asked.append(f"{model} at {base_url}")
        return ScriptedModel(["Served."])

    monkeypatch.setattr("graphloop.cli.run.resolve", served)
    monkeypatch.setattr("tests.unit.cli.command_line.environment", lambda: variables)

    assert here("run", "Why so?", *options).stdout.startswith("Served.\n")
    assert asked == [reached]


def test_a_replay_is_announced(gated: str) -> None:
    """A person who has no key should know that no model was asked."""
    told = here("run", gated, "--approve", "never").stderr

    assert told.startswith(f"no API key found: replaying {Path(gated, 'script.yaml')}; set ANTH")


def test_a_narrow_encoding_does_not_end_a_run(desk: Path) -> None:
    """A pipe on Windows, or LANG=C: what cannot be said becomes a question mark."""
    script = scripted(desk, "72°F")

    out = printed("run", "Why so?", "--script", script, encoding="ascii", cwd=desk)

    assert out.startswith(b"72?F\ncompleted ? 1 step")


def test_a_run_without_a_whole_answer_is_a_failure_to_a_shell(desk: Path) -> None:
    """A script that goes on would work with half an answer."""
    (desk / "own.yaml").write_text("- {text: Half, finish_reason: length}\n", encoding="utf-8")

    done = here("run", "Why so?", "--script", "own.yaml")

    assert done.returncode == Status.FAILED
    assert "\nlength · 1 step" in done.stdout


def test_a_run_that_has_not_kept_a_rule_is_told_and_is_no_success(desk: Path) -> None:
    """A pipeline reads the status, and people the line."""
    text = (
        "from graphloop import Agent\nfrom graphloop.temporal import never\n"
        "from graphloop.testing import ScriptedModel\n"
        "agent = Agent(ScriptedModel(['Hi.']), rules=never('node:append', before='node:gate'))\n"
    )
    (desk / "ruled.py").write_text(text, encoding="utf-8")

    done = here("run", "ruled.py", "Hi?")

    assert done.returncode == Status.FAILED
    assert done.stdout.endswith("completed · 1 rule broken · 1 step · 11 tokens\n")
    assert done.stderr.startswith("warning: the rule 'never node:append before node:gate' was bro")


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_run_that_fails_says_why(options: tuple[str, ...], desk: Path) -> None:
    """On stderr, with status 1; the last JSON line says it, too."""
    (desk / "own.yaml").write_text("- error: out of order\n  text: So\n", encoding="utf-8")

    done = here("run", "Why so?", "--script", "own.yaml", *options)

    assert done.returncode == Status.FAILED
    assert done.stderr == "error: out of order\n"
    if options:
        last = json.loads(done.stdout.splitlines()[-1])
        assert last == {"type": "error", "error": "BadReply", "message": "out of order"}


def test_the_bound_is_told_before_the_answer(desk: Path) -> None:
    """On stderr; for programs it is the first line."""
    script = ("--script", scripted(desk, "Hi."))

    done = here("run", "Hello there", "--explain", *script)
    as_json = here("run", "Hello there", "--explain", "--json", *script)

    assert done.stdout.startswith("Hi.\n")
    assert "graph 'agent': at most\n  model calls: 40\n" in done.stderr
    assert "tool calls: unknown: one reply may ask" in done.stderr
    lines = [json.loads(line) for line in as_json.stdout.splitlines()]
    assert ["bound", "run-start"] == [line["type"] for line in lines[:2]]
    assert (40, None) == (lines[0]["model_calls"], lines[0]["tool_calls"])
    assert "finish" == lines[-1]["type"]


POLLER = """
from graphloop import END, Graph, node
from graphloop.outcomes import Outcome

class Empty(Outcome):
    "Nothing there."

class Found(Outcome):
    "Something there."

QUEUE = [True, False]

@node
def poll(state: None) -> Empty | Found:
    return Found() if QUEUE.pop() else Empty()

graph = Graph("poller", poll, {poll: {Empty: poll, ...: END}})
PROMPT = "Look."
"""


def test_a_graph_without_a_bound_runs_for_a_reason_only(desk: Path) -> None:
    """The reason lets the bound be told, too; a resumed run needs it again."""
    (desk / "poller.py").write_text(POLLER, encoding="utf-8")
    reason = ("--unbounded", POLLS)

    told = refused("run", "poller.py")
    done = here("run", "poller.py", "--explain", "--store", "runs", *reason)

    assert "the cycle poll -> poll" in told
    assert done.returncode == Status.OK
    assert "graph 'poller': at most\n  model calls: 0\n" in done.stderr
    assert "  not bounded: the cycle poll -> poll\n" in done.stderr
    (kept,) = (desk / "runs").glob("*.jsonl")
    again = ("resume", kept.stem, "--store", "runs", "--target", "poller.py")
    assert "the cycle poll -> poll" in refused(*again)
    assert here(*again, *reason).returncode == Status.OK


def paired(journal: Path) -> bool:
    """Whether the run in this journal has ended with one result for each call, in order."""
    lines = journal.read_bytes().splitlines()
    state = replay(Agent(ScriptedModel(())).graph, [Codec().decode(line)[1] for line in lines])
    asked = [
        call.id
        for message in state.messages
        if isinstance(message, AssistantMessage)
        for call in message.calls
    ]
    answered = [one.call_id for one in state.messages if isinstance(one, ToolResult)]
    return state.ended and bool(asked) and asked == answered


@pytest.fixture
def waiting(desk: Path) -> Path:
    (desk / "wait").mkdir()
    (desk / "wait" / "agent.py").write_text(WAITING, encoding="utf-8")
    os.mkfifo(desk / "pipe")
    return desk


def until(process: subprocess.Popen[str], marker: str) -> Iterator[str]:
    """Yield the lines of stdout up to the one that begins with `marker`."""
    assert process.stdout is not None
    for line in process.stdout:
        yield line
        if line.startswith(marker):
            return


@pytest.mark.parametrize(
    "calls",
    [
        "{name: wait, arguments: {number: 1}}, {name: wait, arguments: {number: 2}}",
        "{name: block, arguments: {path: pipe}}",
    ],
)
def test_ctrl_c_ends_the_run_with_every_call_answered(calls: str, waiting: Path) -> None:
    """Also where a tool hangs in a thread, which cannot be stopped."""
    (waiting / "wait" / "script.yaml").write_text(f"- calls: [{calls}]\n", encoding="utf-8")

    with started("run", "wait", "--store", "runs", cwd=waiting) as process:
        assert list(until(process, "→ "))[-1].startswith("→ ")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()

    assert process.returncode == Status.INTERRUPTED
    assert "aborted (interrupted) · 1 step" in out.splitlines()[-1]
    assert "interrupted: ending the run" in err
    (journal,) = (waiting / "runs").iterdir()
    assert paired(journal)


def test_a_second_ctrl_c_ends_the_process_at_once(waiting: Path) -> None:
    """A tool that blocks the event loop keeps the first one from being heard."""
    blocking = WAITING.replace("@tool(thread=True)", "@tool").replace(
        "    with open(path)", "    print('blocked', flush=True)\n    with open(path)"
    )
    (waiting / "wait" / "agent.py").write_text(blocking, encoding="utf-8")
    script = "- calls: [{name: block, arguments: {path: pipe}}]\n"
    (waiting / "wait" / "script.yaml").write_text(script, encoding="utf-8")

    with started("run", "wait", cwd=waiting) as process:
        assert list(until(process, "blocked"))[-1] == "blocked\n"
        while process.poll() is None:
            process.send_signal(signal.SIGINT)

    assert process.returncode == -signal.SIGINT


def test_ctrl_c_during_a_tool_that_blocks_the_loop_is_heeded_when_it_returns(waiting: Path) -> None:
    """The model is not asked again, and status 130 says that the run did not complete."""
    blocking = WAITING.replace("@tool(thread=True)", "@tool").replace(
        "    with open(path)", "    print('blocked', flush=True)\n    with open(path)"
    )
    (waiting / "wait" / "agent.py").write_text(blocking, encoding="utf-8")
    script = "- calls: [{name: block, arguments: {path: pipe}}]\n- text: Too far.\n"
    (waiting / "wait" / "script.yaml").write_text(script, encoding="utf-8")

    with started("run", "wait", "--store", "runs", cwd=waiting) as process:
        assert list(until(process, "blocked"))[-1] == "blocked\n"
        process.send_signal(signal.SIGINT)
        (waiting / "pipe").write_text("read", encoding="utf-8")
        out, err = process.communicate()

    assert process.returncode == Status.INTERRUPTED
    assert "aborted (interrupted) · 1 step" in out.splitlines()[-1]
    assert "Too far." not in out
    assert err.count("interrupted: ending the run") == 1
    (journal,) = (waiting / "runs").iterdir()
    assert paired(journal)


STATEFUL = """\
from dataclasses import dataclass, replace
from graphloop import END, Graph, node
from graphloop.outcomes import Outcome

@dataclass(frozen=True)
class Ticket:
    text: str

class Done_(Outcome):
    pass

@node
def note(ticket: Ticket) -> Done_:
    with open("noted.txt", "a") as file:
        file.write(ticket.text)
    return Done_()

graph = Graph("desk", note, {note: {...: END}})
"""


def test_a_graph_begins_with_the_state_that_its_file_says(desk: Path) -> None:
    """It needs no question and no model, if none of its nodes asks one."""
    (desk / "own.py").write_text(f"{STATEFUL}STATE = Ticket('x')\n", encoding="utf-8")
    (desk / "bare.py").write_text(STATEFUL, encoding="utf-8")

    assert here("run", "own.py").returncode == Status.OK
    assert "x" == (desk / "noted.txt").read_text(encoding="utf-8")
    assert "say it in its file, `STATE = Ticket(…)`" in refused("run", "bare.py", "Hi?")
    assert "--model would have no effect" in refused("run", "own.py", "--model", "openai:x")


def test_the_state_that_a_graph_ends_with_is_printed(desk: Path) -> None:
    """For a graph that carries a state, the state is the result."""
    source = STATEFUL.replace("-> Done_", "-> tuple[Done_, Ticket]").replace(
        "return Done_()", 'return Done_(), replace(ticket, text="é\\x9b")'
    )
    (desk / "own.py").write_text(f"{source}STATE = Ticket('x')\n", encoding="utf-8")

    *_, state, last = here("run", "own.py", "--store", "runs").stdout.splitlines()
    *_, json_state, json_last = here("run", "own.py", "--json").stdout.splitlines()

    assert state == "state: Ticket(text='é\\x9b')"
    assert last.startswith("completed")
    assert json_state == '{"type":"state","state":{"text":"é\\u009b"}}'
    assert json.loads(json_last)["type"] == "finish"
    (journal,) = (desk / "runs").glob("*.jsonl")
    known = ("replay", journal.stem, "--store", "runs", "--target", "own.py")
    assert "  state: Ticket(text='é\\x9b')" in here(*known).stdout.splitlines()
    told = json.loads(here(*known, "--json").stdout.splitlines()[-1])
    assert {"text": "é\x9b"} == told["state"]["value"]
