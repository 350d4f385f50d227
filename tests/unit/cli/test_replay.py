"""`graphloop replay`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from graphloop import Agent, tool
from graphloop.cli.errors import Status
from graphloop.media import MediaPart, image
from graphloop.stores.codec import Codec
from graphloop.testing import ScriptedModel
from tests.unit.cli.command_line import STORE, graphloop, here, refused, shown, write
from tests.unit.cli.pay_desk import parked, timeless

pytestmark = pytest.mark.usefixtures("pay_desk")

DENYING = """
from graphloop import Agent, allow, ask, deny, tool

@tool
async def pay(amount: int) -> str:
    "Pay."
    return f"{amount} paid"

@tool
async def drop(table: str) -> str:
    "Drop."
    return "gone"

def build(model):
    return Agent(model, tools=[pay, drop], gate=deny("drop") | ask("pay") | allow("*"))

PROMPT = "Pay 5."
"""
DENIED_SCRIPT = """
- calls: [{name: drop, arguments: {table: users}}, {name: pay, arguments: {amount: 5}}]
- calls: [{name: fly, arguments: {}}, {name: pay, arguments: {amount: much}}]
- text: Done.
"""


def replayed(run_id: str, *options: str, store: str = "runs.db") -> str:
    """Return what a replay without warnings prints."""
    done = here("replay", run_id, "--store", store, *options)
    assert (done.returncode, done.stderr) == (Status.OK, "")
    return timeless(done.stdout)


def test_a_replay_prints_the_events_and_the_last_state() -> None:
    run_id = parked()
    shown("resume", run_id, "--approve", "always", *STORE)

    events, _, state = replayed(run_id[:8]).partition("\n\n")

    assert [line.split()[2] for line in events.splitlines()] == [
        "Started",
        "ModelReplied",
        "Resumed",
        "Decided",
        "EffectsStarted",
        "ToolReturned",
        "ModelReplied",
    ]
    assert f"agent, script:{Path('pay/script.yaml').absolute()}: Pay 5.\n" in events
    assert "→ pay(amount=5) · tool_calls, 15 tokens · needs approval\n" in events
    assert "c0.0 pay approved=true, reason=--approve always" in events
    assert "c0.0 pay content=5 paid\n" in events
    assert state == (
        "after event 7: ended, completed · 2 steps · 4 messages · 26 tokens\n"
        "  user: Pay 5.\n"
        "  assistant: → pay(amount=5)\n"
        "  tool: 5 paid\n"
        "  assistant: Done.\n"
    )
    assert Path("paid").read_text(encoding="utf-8") == "5\n"


def test_media_are_named_and_not_printed(tmp_path: Path) -> None:
    """Their bytes say nothing to a reader, and may be millions."""
    model = ScriptedModel([{"calls": [{"name": "look", "arguments": {}}]}, "A cat."])
    picture = image(b"\x89PNG\r\n\x1a\n", name="a.png")

    @tool
    async def look() -> MediaPart:
        """Look."""
        return picture

    agent = Agent(model, tools=[look], store=str(tmp_path / "media.db"))
    agent.generate_sync(["What is it?", picture], run_id="r")

    text = replayed("r", store=str(tmp_path / "media.db"))

    assert "What is it? [image 'a.png' of type 'image/png']" in text
    assert "content=[image 'a.png' of type 'image/png']" in text


def test_upto_prints_an_earlier_state() -> None:
    run_id = parked()
    shown("resume", run_id, "--approve", "always", *STORE)

    assert replayed(run_id, "--upto", "2").splitlines()[2:] == [
        "",
        "after event 2: at gate · 0 steps · 1 message · 15 tokens",
        "  waits for c0.0: approval of pay(amount=5)",
        "  user: Pay 5.",
    ]
    assert "has events 1 to 7, found 9" in refused("replay", run_id, "--upto", "9", *STORE)


def test_a_child_run_has_a_replay_of_its_own() -> None:
    run_id = parked("team")

    child = replayed(f"{run_id}/c0.0")

    assert f"  waits for c0.0: agent payer, run {run_id}/c0.0\n" in replayed(run_id)
    assert child.splitlines()[0] == "1  TIME  Started       payer, pay: Pay 5"
    assert "after event" not in child


def test_a_missing_noted_target_leaves_the_events() -> None:
    """A missing or wrong --target is an error."""
    run_id = parked()
    shutil.rmtree("pay")

    done = here("replay", run_id, *STORE)
    missing = refused("replay", run_id, "--target", "pay", *STORE)
    other = here("replay", run_id, "--target", "team", *STORE)

    assert len(done.stdout.splitlines()) == 2
    assert done.stderr.startswith("the state is not shown: ")
    assert "expected a directory, a .py file" in missing
    assert "is of graph 'agent', not of 'desk'" in other.stderr


def test_json_is_the_journal_then_the_state() -> None:
    run_id = parked(store="runs")

    bare = replayed(run_id, "--json", store="runs")
    out = replayed(run_id, "--json", "--target", "pay", store="runs")

    assert bare == Path("runs", f"{run_id}.jsonl").read_text(encoding="utf-8")
    *events, state = out.splitlines()
    assert [Codec().decode(line.encode())[0] for line in events] == [1, 2]
    assert json.loads(state) == {
        "state": {
            "seq": 2,
            "node": "gate",
            "end_reason": None,
            "steps": 0,
            "messages": 1,
            "total_tokens": 15,
            "denied": [],
            "pending": ["c0.0"],
            "value": None,
        }
    }
    shown("resume", run_id, "--target", "pay", "--approve", "never", "--store", "runs")
    end = replayed(run_id, "--json", "--target", "pay", store="runs").splitlines()[-1]
    assert json.loads(end)["state"]["end_reason"] == "completed"


HOSTILE = """
from graphloop import Agent, tool

@tool
async def pay(amount: str) -> str:
    "Pay."
    raise ValueError(amount)

def build(model):
    return Agent(model, tools=[pay])

PROMPT = "Pay 5."
"""
HOSTILE_SCRIPT = r"""
- calls: [{name: "fly\e[31m\nout", arguments: {}}, {name: pay, arguments: {amount: "\e]0;x\a"}}]
- text: Done.
"""


def test_a_model_cannot_write_to_the_terminal() -> None:
    """Neither by the name of a call, nor through the traceback of a tool in the log."""
    write({"desk.py": HOSTILE, "script.yaml": HOSTILE_SCRIPT})

    run = graphloop("run", "desk.py", "--script", "script.yaml", *STORE, cwd=Path.cwd())
    run_id = json.loads(here("runs", "--all", "--json", *STORE).stdout)["run_id"]
    replay = here("replay", run_id, *STORE)

    assert "ValueError" in run.stderr
    assert "c0.0 fly[31m out denied" in replay.stdout
    for text in (run.stdout, run.stderr, replay.stdout, replay.stderr):
        assert text.replace("\n", "").isprintable()


def test_a_denied_call_has_the_rule_or_person_that_denied_it() -> None:
    write({"pay/agent.py": DENYING, "pay/script.yaml": DENIED_SCRIPT})
    run_id = parked()
    shown("resume", run_id, "--approve", "never", *STORE)

    lines = [line.strip() for line in replayed(run_id).splitlines() if " denied" in line]
    state = json.loads(replayed(run_id, "--json").splitlines()[-1])["state"]

    assert lines[:2] == [
        "c0.0 drop denied by gate: deny drop: Tool call denied.",
        "c0.1 pay denied by the approver: Tool call denied. Reason: --approve never",
    ]
    assert lines[2].startswith('c1.0 fly denied: No such tool: "fly".')
    assert lines[3].startswith("c1.1 pay denied: ")
    assert [(call["key"], call["by"]) for call in state["denied"]] == [
        ("c0.0", "gate: deny drop"),
        ("c0.1", "the approver"),
        ("c1.0", ""),
        ("c1.1", ""),
    ]


def test_the_end_of_a_child_shows_its_tokens_in_words() -> None:
    """The whole account of a child is in --json; in a line it hides what the child said."""
    run_id = parked("team")
    shown("resume", run_id, "--approve", "always", *STORE)

    (line,) = [one for one in shown("replay", run_id, *STORE).splitlines() if "ChildEnded" in one]

    assert line.endswith("payer content=It is paid., end_reason=completed · 28 tokens"), line
    assert '"spent":' in shown("replay", run_id, *STORE, "--json")
