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
from graphloop.cli.replay import replay as replayed
from graphloop.cli.request import Approve, RunRequest
from graphloop.cli.run import run
from graphloop.cli.status import Status
from graphloop.codec import Codec
from graphloop.errors import ConfigError
from graphloop.replay import replay
from graphloop.testing import ScriptedModel
from graphloop.values import AssistantMessage, ToolResult
from tests.unit.cli.command_line import printed, started
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
    "Read a pipe that nobody writes to."
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


def test_a_bare_question_is_asked_without_tools(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No file needed; the question is not repeated, for a pipe wants the answer."""
    status = run(RunRequest(target="Hello there", script=scripted(desk, "Hi.")))

    assert status is Status.OK
    assert capsys.readouterr() == ("Hi.\ncompleted · 1 step · 11 tokens\n", "")


def test_what_is_asked_here_beats_the_files_prompt(
    gated: str, desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the file's own is shown, since nobody typed it."""
    script = scripted(desk, "Hi.")

    run(RunRequest(target=gated, prompt="Hello", script=script))
    assert not capsys.readouterr().out.startswith("> ")

    run(RunRequest(target=gated, script=script))
    assert capsys.readouterr().out.startswith("> Pay 5.\nHi.\n")


@pytest.mark.parametrize(
    ("approve", "line", "status"),
    [
        (Approve.ALWAYS, "✓ pay(amount=5): 5 paid", Status.OK),
        (Approve.NEVER, "⊘ pay(amount=5): Tool call denied. Reason: --approve never", Status.OK),
        (None, "parked · 1 step · 15 tokens", Status.PARKED),
    ],
)
def test_a_gated_call_is_decided_or_parks(
    approve: Approve | None,
    line: str,
    status: Status,
    gated: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """There is no terminal here, so nobody is asked."""
    assert run(RunRequest(target=gated, approve=approve)) is status
    assert line in capsys.readouterr().out.splitlines()


def test_a_parked_run_tells_how_to_go_on(gated: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In commands that are typed as they stand; the target is noted, and need not be named."""
    assert run(RunRequest(target=gated, store="runs.db", max_steps=4)) is Status.PARKED

    told = capsys.readouterr()
    (run_id,) = run_ids("runs.db")
    assert told.out.endswith(f" · run {run_id} in runs.db\n")
    assert f"  graphloop approve {run_id} c0.0 --store runs.db\n" in told.err
    assert f"  graphloop resume {run_id} --store runs.db\n" in told.err


def test_a_store_of_the_agents_own_is_told_of_as_well(
    gated: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It need not be named to be where the run is kept; another one may be."""
    own = GATED.replace("tools=[pay]", "tools=[pay], store='own.db'")
    Path(gated, "agent.py").write_text(own, encoding="utf-8")

    assert run(RunRequest(target=gated)) is Status.PARKED
    (run_id,) = run_ids("own.db")
    assert f"graphloop approve {run_id} c0.0 --store own.db\n" in capsys.readouterr().err
    assert run(RunRequest(target=gated, store="other.db")) is Status.PARKED
    assert len(run_ids("own.db")) == len(run_ids("other.db")) == 1


def test_a_store_object_of_the_agents_own_is_answered_from_python(
    gated: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """No command could open it."""
    own = GATED.replace("tools=[pay]", "tools=[pay], store=MemoryStore()").replace(
        "from graphloop import",
        "from graphloop.stores.memory import MemoryStore\nfrom graphloop import",
    )
    Path(gated, "agent.py").write_text(own, encoding="utf-8")

    assert run(RunRequest(target=gated)) is Status.PARKED
    told = capsys.readouterr().err
    assert "Go on from Python:\n  await agent.resume(" in told
    assert "graphloop approve" not in told


def test_a_files_own_approver_is_not_replaced_unasked(
    gated: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever wrote the agent has decided who decides; an explicit option still wins."""
    own = GATED.replace("tools=[pay]", "tools=[pay], approve_tool_call=lambda pending: True")
    Path(gated, "agent.py").write_text(own, encoding="utf-8")

    assert run(RunRequest(target=gated)) is Status.OK
    assert "✓ pay(amount=5): 5 paid" in capsys.readouterr().out
    run(RunRequest(target=gated, approve=Approve.NEVER))
    assert "⊘ pay(amount=5)" in capsys.readouterr().out


def test_the_options_take_effect(gated: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--max-steps ends the run after the first turn, --instructions stand in its journal."""
    request = RunRequest(
        target=gated, approve=Approve.ALWAYS, max_steps=1, instructions="Be brief.", store="runs"
    )

    assert run(request) is Status.OK
    assert "max_steps · 1 step · 15 tokens · run " in capsys.readouterr().out
    (journal,) = Path("runs").iterdir()
    assert "Be brief." in journal.read_text(encoding="utf-8").splitlines()[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": "graph.py", "max_steps": 2}, "--max-steps would have no effect: the bound of"),
        ({"target": "state.py"}, "carries state of type dict"),
        ({"target": "ready.py", "model": "a:b"}, "--model would have no effect: the agent in"),
        ({"target": "ready.py", "base_url": "u", "script": "s"}, "--script and --base-url would"),
        ({"target": "ready.py", "prompt": None}, "expected a question, found no PROMPT"),
        ({"target": "Why", "prompt": "so?"}, "Why: expected a directory, a .py file, or"),
        ({"target": "Why so?", "prompt": None}, "found no API key"),
        ({"target": "ready.py", "prompt": ""}, "expected PROMPT to say something"),
        ({"target": "", "prompt": None}, "expected FILE_OR_PROMPT to say something"),
        ({"target": "Why so?", "prompt": None, "model": ""}, "expected --model to say something"),
        ({"target": "Why so?", "prompt": None, "script": "none.yaml"}, "cannot be read"),
        ({"target": "Why so?", "prompt": None, "store": "no/runs.db"}, "expected a folder at 'no'"),
        ({"target": "Why so?", "prompt": None, "model": "opneai:m"}, "Did you mean 'openai'?"),
        ({"target": "Why so?", "prompt": None, "script": "s", "base_url": "u"}, "base_url would"),
    ],
)
def test_what_cannot_take_effect_is_refused(
    changes: dict[str, object], message: str, desk: Path
) -> None:
    """An option that is silently ignored is the worst answer."""
    head = (
        "from graphloop import END, Agent, Graph\nfrom graphloop.nodes import PrepareStep\n"
        "from graphloop.testing import ScriptedModel\nprepare = PrepareStep()\n"
    )
    graph = "Graph('g', prepare, {prepare: {...: END}}"
    (desk / "graph.py").write_text(f"{head}graph = {graph})\n", encoding="utf-8")
    (desk / "state.py").write_text(f"{head}graph = {graph}, state_type=dict)\n", encoding="utf-8")
    (desk / "ready.py").write_text(f"{head}agent = Agent(ScriptedModel([]))\n", encoding="utf-8")
    given: dict[str, object] = {"prompt": "Hi?"} | changes
    if given["target"] != "Why so?" and given["target"] != "ready.py":
        given["script"] = scripted(desk, "Hi.")

    with pytest.raises(ConfigError) as raised:
        run(RunRequest(**given))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - a table of arguments

    assert message in str(raised.value)


def test_a_ready_agent_runs_with_the_model_it_has(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No key is looked for: it needs none of ours."""
    text = (
        "from graphloop import Agent\nfrom graphloop.testing import ScriptedModel\n"
        "agent = Agent(ScriptedModel(['Ready.']))\n"
    )
    (desk / "ready.py").write_text(text, encoding="utf-8")

    assert run(RunRequest(target="ready.py", prompt="Hi?")) is Status.OK
    assert capsys.readouterr().out.startswith("Ready.\n")


def test_a_graph_runs_with_its_tools(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """TOOLS are what its model is offered."""
    text = (
        "from graphloop import Graph, tool\nfrom graphloop.loop import Standard, standard_edges\n"
        "nodes = Standard()\ngraph = Graph('g', nodes.prepare, standard_edges(nodes))\n"
        "@tool\nasync def f() -> str:\n    'F.'\n    return 'ok'\nTOOLS = [f]\n"
    )
    (desk / "own.py").write_text(text, encoding="utf-8")
    (desk / "own.yaml").write_text("- calls: [{name: f}]\n- text: Done.\n", encoding="utf-8")

    assert run(RunRequest(target="own.py", prompt="Hi?", script="own.yaml")) is Status.OK
    assert capsys.readouterr().out.startswith("→ f()\n✓ f(): ok\nDone.\ncompleted")


@pytest.mark.usefixtures("desk")
def test_a_server_of_ones_own_is_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """--base-url alone is enough: chat completions are what such servers speak."""
    reached: list[str] = []

    def served(model: str, *, base_url: str | None, **_: object) -> ScriptedModel:
        reached.append(f"{model} at {base_url}")
        return ScriptedModel(["Served."])

    monkeypatch.setattr("graphloop.cli.run.resolve", served)

    assert run(RunRequest(target="Why so?", base_url="http://127.0.0.1:9")) is Status.OK
    assert reached == ["openai:gpt-5 at http://127.0.0.1:9"]
    assert capsys.readouterr().out.startswith("Served.\n")


def test_a_narrow_encoding_does_not_end_a_run(desk: Path) -> None:
    """A pipe on Windows, or LANG=C: what cannot be said becomes a question mark."""
    script = scripted(desk, "72°F")

    out = printed("run", "Why so?", "--script", script, encoding="ascii", cwd=desk)

    assert out.startswith(b"72?F\ncompleted ? 1 step")


@pytest.mark.parametrize("as_json", [False, True])
def test_a_run_that_fails_says_why(
    as_json: bool,
    desk: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On stderr, with status 1; the last JSON line says it, too."""
    (desk / "own.yaml").write_text("- error: out of order\n  text: So\n", encoding="utf-8")

    status = run(RunRequest(target="Why so?", script="own.yaml", as_json=as_json))

    told = capsys.readouterr()
    assert status is Status.FAILED
    assert told.err == "error: out of order\n"
    if as_json:
        last = json.loads(told.out.splitlines()[-1])
        assert last == {"type": "error", "error": "BadReply", "message": "out of order"}


def test_a_wrong_option_of_the_agent_is_a_matter_of_usage(gated: str) -> None:
    """Status 2 comes from every ConfigError, wherever it is found."""
    with pytest.raises(ConfigError, match="max_steps"):
        run(RunRequest(target=gated, max_steps=0))


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
    """Also where a tool hangs in a thread, which nothing can stop."""
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


def test_a_graph_begins_with_the_state_that_its_file_says(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It needs no question and no model, if none of its nodes asks one."""
    monkeypatch.chdir(desk)
    (desk / "own.py").write_text(f"{STATEFUL}STATE = Ticket('x')\n", encoding="utf-8")
    (desk / "bare.py").write_text(STATEFUL, encoding="utf-8")
    (desk / "odd.py").write_text(
        "from graphloop import END, Graph\nfrom graphloop.nodes import PrepareStep\n"
        "prepare = PrepareStep()\ngraph = Graph('g', prepare, {prepare: {...: END}})\nSTATE = 3\n",
        encoding="utf-8",
    )

    assert Status.OK == run(RunRequest(target="own.py"))
    assert "x" == (desk / "noted.txt").read_text(encoding="utf-8")
    with pytest.raises(ConfigError, match=r"begins with, `STATE = Ticket\(…\)`"):
        run(RunRequest(target="bare.py", prompt="Hi?"))
    with pytest.raises(ConfigError, match="STATE would have no effect: graph 'g' carries no state"):
        run(RunRequest(target="odd.py", prompt="Hi?"))
    with pytest.raises(ConfigError, match="--model would have no effect: no node of graph 'desk'"):
        run(RunRequest(target="own.py", model="openai:x"))


@pytest.mark.parametrize("as_json", [False, True])
def test_the_state_that_a_graph_ends_with_is_printed(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    """For a graph that carries a state, the state is the result."""
    monkeypatch.chdir(desk)
    source = STATEFUL.replace("-> Done_", "-> tuple[Done_, Ticket]").replace(
        "return Done_()", 'return Done_(), replace(ticket, text="é\\x9b")'
    )
    (desk / "own.py").write_text(f"{source}STATE = Ticket('x')\n", encoding="utf-8")

    assert Status.OK == run(RunRequest(target="own.py", store="runs", as_json=as_json))

    *_, state, last = capsys.readouterr().out.splitlines()
    if as_json:
        assert state == '{"type":"state","state":{"text":"é\\u009b"}}'
        assert json.loads(last)["type"] == "finish"
    else:
        assert state == "state: Ticket(text='é\\x9b')"
        assert last.startswith("completed")
    (journal,) = (desk / "runs").glob("*.jsonl")
    replayed(journal.stem, store="runs", target="own.py", upto=None, as_json=as_json)
    told = capsys.readouterr().out
    if as_json:
        assert {"text": "é\x9b"} == json.loads(told.splitlines()[-1])["state"]["value"]
    else:
        assert "  state: Ticket(text='é\\x9b')" in told.splitlines()
