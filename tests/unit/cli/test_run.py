"""`graphloop run`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphloop import Agent
from graphloop.cli.errors import Status
from graphloop.replay import replay
from graphloop.stores.codec import Codec
from graphloop.testing import ScriptedModel
from graphloop.values import AssistantMessage, ToolResult
from tests.endless_graphs import POLLS
from tests.unit.cli.command_line import STORE, here, printed, refused, shown, started, write
from tests.unit.cli.pay_desk import GATED, run_ids

HI = {"own.yaml": "- text: Hi.\n"}
SCRIPT = ("--script", "own.yaml")


@pytest.mark.usefixtures("desk")
def test_a_question_without_target_is_asked_without_tools() -> None:
    """The question is not printed, because the user typed it."""
    write(HI)

    done = here("run", "Hello there", *SCRIPT)

    assert done.returncode == Status.OK
    assert (done.stdout, done.stderr) == ("Hi.\ncompleted · 1 step · 11 tokens\n", "")


@pytest.mark.usefixtures("desk")
def test_a_recorded_talk_is_replayed_and_answers_no_other_question() -> None:
    """The talk is a script like any other, and knows what it was asked."""
    write(HI)

    asked = shown("run", "Hello there", *SCRIPT, "--record", "talk.yaml")

    assert shown("run", "Hello there", "--script", "talk.yaml") == asked
    other = here("run", "Hello you", "--script", "talk.yaml")
    assert other.returncode != Status.OK
    assert "-- 'user: Hello there'\n+- 'user: Hello you'" in other.stderr


@pytest.mark.usefixtures("pay_desk")
def test_the_model_sees_the_files_of_a_question() -> None:
    """A recorded talk holds what the model was asked; a file that cannot be read is refused."""
    write(HI)
    Path("scan.pdf").write_bytes(b"%PDF-1.7")

    shown("run", "What is it?", "--file", "scan.pdf", *SCRIPT, "--record", "talk.yaml")
    absent = here("run", "What is it?", "--file", "absent.pdf", *SCRIPT)

    assert "scan.pdf" in Path("talk.yaml").read_text()
    assert absent.returncode == Status.USAGE
    assert "expected a file that can be read, found 'absent.pdf'" in absent.stderr


@pytest.mark.usefixtures("pay_desk")
def test_a_question_of_the_command_line_replaces_the_prompt() -> None:
    """The PROMPT of the file is printed."""
    write(HI)

    assert shown("run", "pay", "Hello", *SCRIPT).startswith("Hi.\n")
    assert shown("run", "pay", *SCRIPT).startswith("> Pay 5.\nHi.\n")


@pytest.mark.usefixtures("pay_desk")
def test_a_parked_run_prints_the_commands_to_go_on() -> None:
    """They differ by store: a JSONL store keeps no answers, and no note of the target."""
    kept = here("run", "pay", *STORE, "--max-steps", "4")
    bare = here("run", "pay")
    jsonl = here("run", "pay", "--store", "runs")

    (run_id,), (jsonl_id,) = run_ids("runs.db"), run_ids("runs")
    assert kept.returncode == bare.returncode == Status.PARKED
    assert kept.stdout.endswith(f" · run {run_id} in runs.db\n")
    assert f"  graphloop approve {run_id} c0.0 --store runs.db\n" in kept.stderr
    assert f"  graphloop resume {run_id} --store runs.db\n" in kept.stderr
    assert "run it with --store runs.db" in bare.stderr
    target = Path("pay").absolute()
    assert f"  graphloop resume {jsonl_id} --target {target} --store runs\n" in jsonl.stderr
    assert "graphloop approve" not in jsonl.stderr


@pytest.mark.usefixtures("pay_desk")
def test_an_agents_own_store_keeps_the_run() -> None:
    """--store replaces it. No command can open a store object, so Python goes on."""
    write({"pay/agent.py": GATED.replace("tools=[pay]", "tools=[pay], store='own.db'")})
    printed_commands = here("run", "pay").stderr
    (run_id,) = run_ids("own.db")
    here("run", "pay", "--store", "other.db")

    memory = GATED.replace("tools=[pay]", "tools=[pay], store=MemoryStore()")
    write({"pay/agent.py": f"from graphloop.stores.memory import MemoryStore\n{memory}"})
    in_memory = here("run", "pay").stderr

    assert f"graphloop approve {run_id} c0.0 --store own.db\n" in printed_commands
    assert len(run_ids("own.db")) == len(run_ids("other.db")) == 1
    assert "Go on from Python, by the keys above:\n  await agent.resume(" in in_memory
    assert "graphloop approve" not in in_memory


@pytest.mark.usefixtures("pay_desk")
def test_an_agents_own_approver_stays_unless_approve_is_given() -> None:
    own = GATED.replace("tools=[pay]", "tools=[pay], approve_tool_call=lambda pending: True")
    write({"pay/agent.py": own})

    assert "✓ pay(amount=5): 5 paid" in shown("run", "pay")
    assert "⊘ pay(amount=5)" in shown("run", "pay", "--approve", "never")


@pytest.mark.usefixtures("pay_desk")
def test_limits_and_instructions_take_effect() -> None:
    options = ("--max-steps", "1", "--instructions", "Be brief.", "--store", "runs")

    run = shown("run", "pay", "--approve", "always", *options, status=Status.STOPPED)

    assert "max_steps · 1 step · 15 tokens · run " in run
    (journal,) = Path("runs").iterdir()
    assert "Be brief." in journal.read_text(encoding="utf-8").splitlines()[0]
    assert "max_steps" in refused("run", "pay", "--max-steps", "0")


HEAD = """
from graphloop import END, Agent, Graph
from graphloop.nodes import PrepareStep
from graphloop.testing import ScriptedModel
prepare = PrepareStep()
"""
PREPARES = "Graph('g', prepare, {prepare: {...: END}}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("graph.py", "Hi?", "--max-steps", "2"), "--max-steps would have no effect: the"),
        (("state.py", "Hi?"), "of type dict, found none. Fix: define it in its file"),
        (("odd.py", "Hi?"), "STATE would have no effect: graph 'g' carries no state"),
        (("ready.py", "Hi?", "--base-url", "u"), "--base-url would have no effect: ready.py has"),
        (("ready.py", "Hi?", "--unbounded", "why"), "--unbounded would have no effect: an agent's"),
        (("ready.py",), "ready.py: expected a question, found no PROMPT in it. Fix: add"),
        (("ready.py:agnet", "Hi?"), "'agnet' in ready.py, found agent. Did you mean 'agent'?"),
        (("Why", "so?"), "Why: expected a directory, a .py file, or"),
        (("Why so?",), "found no API key. Fix: set ANTHROPIC_API_KEY"),
        (("Why so?", "--model", "a:b", *SCRIPT), "--script: expected it or --model, found both"),
        (("Why so?", "--script", "none.yaml"), "cannot be read"),
        (("Why so?", *SCRIPT, "--record", "talk.json"), "expected a .yaml file"),
        (("Why so?", *SCRIPT, "--record", "none/talk.yaml"), "expected a folder"),
        (("Why so?", "--store", "no/runs.db"), "expected a folder at 'no'"),
        (("Why so?", "--model", "opneai:m"), "Did you mean 'openai'?"),
        (("Why so?", "--base-url", "u", *SCRIPT), "base_url would"),
    ],
)
@pytest.mark.usefixtures("desk")
def test_an_option_without_effect_is_refused(arguments: tuple[str, ...], message: str) -> None:
    write(
        {
            **HI,
            "graph.py": f"{HEAD}graph = {PREPARES})\n",
            "state.py": f"{HEAD}graph = {PREPARES}, state_type=dict)\n",
            "odd.py": f"{HEAD}graph = {PREPARES})\nSTATE = 3\n",
            "ready.py": f"{HEAD}agent = Agent(ScriptedModel([]))\n",
        }
    )

    assert message in refused("run", *arguments)


@pytest.mark.usefixtures("desk")
def test_the_error_of_a_failed_run_begins_a_line() -> None:
    """With stdout and stderr in one pipe, it would follow the model's half line."""
    write({"agent.py": TYPED, "script.yaml": "- text: half\n"})

    done = here("run", "agent.py", "Go.")

    assert done.stdout.endswith("half\n")
    assert "error: `output_type`" in done.stderr


TYPED = """
from graphloop import Agent

def build(model):
    return Agent(model, output_type=int, max_output_retries=0)
"""


@pytest.mark.usefixtures("desk")
def test_a_ready_agent_runs_with_its_own_model() -> None:
    write({"ready.py": f"{HEAD}agent = Agent(ScriptedModel(['Ready.']))\n"})

    assert shown("run", "ready.py", "Hi?").startswith("Ready.\n")
    assert shown("run", "ready.py:agent", "Hi?").startswith("Ready.\n")


@pytest.mark.usefixtures("pay_desk")
def test_a_folder_may_be_called_agent() -> None:
    Path("pay").rename("agent")

    shown("run", "agent", *STORE, status=Status.PARKED)
    (run_id,) = run_ids("runs.db")

    resumed = shown("resume", run_id, "--approve", "always", *STORE)
    assert "✓ pay(amount=5): 5 paid" in resumed


@pytest.mark.usefixtures("desk")
def test_a_graph_runs_with_the_tools_of_its_file() -> None:
    text = (
        "from graphloop import Graph, tool\nfrom graphloop.loop import Standard, standard_edges\n"
        "nodes = Standard()\ngraph = Graph('g', nodes.prepare, standard_edges(nodes))\n"
        "@tool\nasync def f() -> str:\n    'F.'\n    return 'ok'\nTOOLS = [f]\n"
    )
    write({"own.py": text, "own.yaml": "- calls: [{name: f}]\n- text: Done.\n"})

    run = shown("run", "own.py", "Hi?", *SCRIPT)

    assert run.startswith("→ f()\n✓ f(): ok\nDone.\ncompleted")


ANTHROPIC = "anthropic:claude-opus-4-8 at None"


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize(
    ("options", "variables", "expected"),
    [
        (("--base-url", "http://x"), {}, "openai:gpt-5 at http://x"),
        (("--base-url", "http://x"), {"ANTHROPIC_API_KEY": "k"}, "openai:gpt-5 at http://x"),
        ((), {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, ANTHROPIC),
        ((), {"OPENAI_BASE_URL": "http://y"}, "openai:gpt-5 at None"),
        ((), {"GRAPHLOOP_MODEL": "a:b", "ANTHROPIC_API_KEY": "k"}, "a:b at None"),
        (("--model", "c:d"), {"GRAPHLOOP_MODEL": "a:b"}, "c:d at None"),
    ],
)
def test_an_option_or_the_environment_names_the_model(
    options: tuple[str, ...],
    variables: dict[str, str],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def served(model: str, *, base_url: str | None, **_: object) -> ScriptedModel:
        asked.append(f"{model} at {base_url}")
        return ScriptedModel(["Served."])

    monkeypatch.setattr("graphloop.cli.run.resolve", served)
    monkeypatch.setattr("tests.unit.cli.command_line.environment", lambda: variables)

    assert shown("run", "Why so?", *options).startswith("Served.\n")
    assert asked == [expected]


@pytest.mark.usefixtures("pay_desk")
def test_a_script_in_place_of_a_model_is_announced() -> None:
    notice = here("run", "pay", "--approve", "never").stderr

    assert notice.startswith("no API key found: replaying pay/script.yaml; set ANTHROPIC_API_KEY")


def test_a_narrow_encoding_does_not_end_a_run(desk: Path) -> None:
    write({"own.yaml": "- text: 72°F\n"})

    out = printed("run", "Why so?", *SCRIPT, encoding="ascii", cwd=desk)

    assert out.startswith(b"72?F\ncompleted ? 1 step")


@pytest.mark.usefixtures("desk")
def test_half_an_answer_is_status_1() -> None:
    write({"own.yaml": "- {text: Half, finish_reason: length}\n"})

    assert "\nlength · 1 step" in shown("run", "Why so?", *SCRIPT, status=Status.FAILED)


@pytest.mark.usefixtures("desk")
def test_a_broken_rule_is_a_warning_and_status_1() -> None:
    rule = "from graphloop.rules import never\nRULES = never('node:append', before='node:gate')\n"
    write({"ruled.py": f"{HEAD}{rule}agent = Agent(ScriptedModel(['Hi.']), rules=RULES)\n"})

    done = here("run", "ruled.py", "Hi?")

    assert done.returncode == Status.FAILED
    assert done.stdout.endswith("completed · 1 rule broken · 1 step · 11 tokens\n")
    assert done.stderr.startswith("warning: the rule 'never node:append before node:gate' was bro")


@pytest.mark.usefixtures("desk")
def test_a_failed_run_is_status_1_with_its_error() -> None:
    """The last JSON line has the error, too."""
    write({"own.yaml": "- error: out of order\n  text: So\n"})

    done = here("run", "Why so?", *SCRIPT)
    as_json = here("run", "Why so?", *SCRIPT, "--json")

    assert done.returncode == as_json.returncode == Status.FAILED
    assert done.stderr == as_json.stderr == "error: out of order\n"
    assert json.loads(as_json.stdout.splitlines()[-1]) == {
        "type": "error",
        "error": "BadReply",
        "message": "out of order",
    }


@pytest.mark.usefixtures("desk")
def test_explain_prints_the_bound_before_the_answer() -> None:
    write(HI)

    done = here("run", "Hello there", "--explain", *SCRIPT)
    as_json = shown("run", "Hello there", "--explain", "--json", *SCRIPT)

    assert done.stdout.startswith("Hi.\n")
    assert "graph 'agent': at most\n  model calls: 40\n" in done.stderr
    assert "tool calls: unknown: one reply may ask" in done.stderr
    lines = [json.loads(line) for line in as_json.splitlines()]
    assert [line["type"] for line in lines[:2]] == ["bound", "run-start"]
    assert (lines[0]["model_calls"], lines[0]["tool_calls"]) == (40, None)
    assert lines[-1]["type"] == "finish"


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


def test_an_unbounded_graph_needs_a_reason_to_run(desk: Path) -> None:
    """A resumed run needs it again."""
    write({"poller.py": POLLER})
    reason = ("--unbounded", POLLS)

    error = refused("run", "poller.py")
    done = here("run", "poller.py", "--explain", "--store", "runs", *reason)

    assert "the cycle poll -> poll" in error
    assert done.returncode == Status.OK
    assert "graph 'poller': at most\n  model calls: 0\n" in done.stderr
    assert "  not bounded: the cycle poll -> poll\n" in done.stderr
    (kept,) = (desk / "runs").glob("*.jsonl")
    again = ("resume", kept.stem, "--store", "runs", "--target", "poller.py")
    assert "the cycle poll -> poll" in refused(*again)
    shown(*again, *reason)


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
BLOCKING = WAITING.replace("@tool(thread=True)", "@tool").replace(
    "    with open(path)", "    print('blocked', flush=True)\n    with open(path)"
)
BLOCK = "{name: block, arguments: {path: pipe}}"


def has_all_results(journal: Path) -> bool:
    """Whether a run has ended with one result for each call, in order."""
    lines = journal.read_bytes().splitlines()
    run = replay(Agent(ScriptedModel(())).graph, [Codec().decode(line)[1] for line in lines])
    calls = [
        call.id
        for message in run.messages
        if isinstance(message, AssistantMessage)
        for call in message.calls
    ]
    results = [message.call_id for message in run.messages if isinstance(message, ToolResult)]
    return run.ended and bool(calls) and calls == results


@pytest.fixture
def pipe(desk: Path) -> Path:
    """Make a pipe that blocks a reader until it is written."""
    os.mkfifo(desk / "pipe")
    return desk / "pipe"


def until(process: subprocess.Popen[str], marker: str) -> Iterator[str]:
    """Yield the lines of stdout up to the line that begins with `marker`."""
    assert process.stdout is not None
    for line in process.stdout:
        yield line
        if line.startswith(marker):
            return


@pytest.mark.parametrize(
    "calls",
    ["{name: wait, arguments: {number: 1}}, {name: wait, arguments: {number: 2}}", BLOCK],
)
def test_ctrl_c_ends_a_run_with_all_calls_answered(calls: str, pipe: Path) -> None:
    """A tool may hang in a thread, which Python cannot stop."""
    write({"agent.py": WAITING, "script.yaml": f"- calls: [{calls}]\n"})

    with started("run", ".", "--store", "runs", cwd=pipe.parent) as process:
        assert list(until(process, "→ "))[-1].startswith("→ ")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()

    assert process.returncode == Status.INTERRUPTED
    assert "aborted (interrupted) · 1 step" in out.splitlines()[-1]
    assert "interrupted: ending the run" in err
    (journal,) = Path("runs").iterdir()
    assert has_all_results(journal)


def test_a_second_ctrl_c_kills_the_process(pipe: Path) -> None:
    """A tool that blocks the event loop delays the first one."""
    write({"agent.py": BLOCKING, "script.yaml": f"- calls: [{BLOCK}]\n"})

    with started("run", ".", cwd=pipe.parent) as process:
        assert list(until(process, "blocked"))[-1] == "blocked\n"
        while process.poll() is None:
            process.send_signal(signal.SIGINT)

    assert process.returncode == -signal.SIGINT


def test_ctrl_c_ends_a_run_after_a_tool_that_blocks_the_loop(pipe: Path) -> None:
    """The model is not asked again."""
    write({"agent.py": BLOCKING, "script.yaml": f"- calls: [{BLOCK}]\n- text: Too far.\n"})

    command = "run", ".", "--store", "runs"
    with started(*command, cwd=pipe.parent, python=[sys.executable]) as process:
        assert list(until(process, "blocked"))[-1] == "blocked\n"
        process.send_signal(signal.SIGINT)
        pipe.write_text("read", encoding="utf-8")
        out, err = process.communicate()

    assert process.returncode == Status.INTERRUPTED
    assert "aborted (interrupted) · 1 step" in out.splitlines()[-1]
    assert "Too far." not in out
    assert err.count("interrupted: ending the run") == 1
    (journal,) = Path("runs").iterdir()
    assert has_all_results(journal)


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


def test_a_graph_begins_with_the_state_of_its_file(desk: Path) -> None:
    """It needs no question and no model, if no node asks a model."""
    write({"own.py": f"{STATEFUL}STATE = Ticket('x')\n", "bare.py": STATEFUL})

    shown("run", "own.py")

    assert (desk / "noted.txt").read_text(encoding="utf-8") == "x"
    missing = refused("run", "bare.py", "Hi?")
    assert "define it in its file, or in a file of --with: `STATE = Ticket(…)`" in missing
    assert "--model would have no effect" in refused("run", "own.py", "--model", "openai:x")


@pytest.mark.usefixtures("desk")
def test_the_last_state_of_a_graph_is_printed() -> None:
    source = STATEFUL.replace("-> Done_", "-> tuple[Done_, Ticket]").replace(
        "return Done_()", 'return Done_(), replace(ticket, text="é\\x9b")'
    )
    write({"own.py": f"{source}STATE = Ticket('x')\n"})

    *_, state, last = shown("run", "own.py", "--store", "runs").splitlines()
    *_, json_state, json_last = shown("run", "own.py", "--json").splitlines()

    assert state == "state: Ticket(text='é\\x9b')"
    assert last.startswith("completed")
    assert json_state == '{"type":"state","state":{"text":"é\\u009b"}}'
    assert json.loads(json_last)["type"] == "finish"
    (journal,) = Path("runs").glob("*.jsonl")
    again = ("replay", journal.stem, "--store", "runs", "--target", "own.py")
    assert "  state: Ticket(text='é\\x9b')" in shown(*again).splitlines()
    assert json.loads(shown(*again, "--json").splitlines()[-1])["state"]["value"] == {
        "text": "é\x9b"
    }
