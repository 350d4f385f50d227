"""What a run can come to, told before it begins; and graphs that nothing bounds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphloop.cli.bounds import allowed, explain, refuse_unbounded
from graphloop.cli.request import ResumeRequest, RunRequest
from graphloop.cli.resume import resume
from graphloop.cli.run import run
from graphloop.cli.status import Status
from graphloop.errors import ConfigError
from tests.endless_graphs import POLLS, poller, silent

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
TEAM = """
from graphloop import Agent, agent_tool

def build(model):
    helper = agent_tool(model, description="helps", name="helper", max_steps=3)
    return Agent(model, tools=[helper], max_steps=2)

PROMPT = "Hello."
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "poller.py").write_text(POLLER)
    (tmp_path / "team.py").write_text(TEAM)
    (tmp_path / "script.yaml").write_text("- text: Hi.\n")
    monkeypatch.chdir(tmp_path)
    for name in ("GRAPHLOOP_MODEL", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_the_bound_is_told_before_the_answer(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside it: what the run says goes where it always goes."""
    status = run(RunRequest(target="Hello there", script="script.yaml", explain=True))

    out, err = capsys.readouterr()
    assert status is Status.OK
    assert out.startswith("Hi.\n")
    assert "graph 'agent': at most\n  model calls: 40\n" in err
    assert "tool calls: unknown: one reply may ask" in err


def test_agents_that_are_tools_are_told_with_it(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is run is bounded, not the bare loop."""
    run(RunRequest(target="team.py", script="script.yaml", explain=True))

    assert "may call the agent 'helper' any number of times, at up to 6" in capsys.readouterr().err


def test_for_programs_the_bound_is_the_first_line(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every line is one JSON object, as without it."""
    run(RunRequest(target="Hello there", script="script.yaml", explain=True, as_json=True))

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert ["bound", "run-start"] == [one["type"] for one in lines[:2]]
    assert (40, None) == (lines[0]["model_calls"], lines[0]["tool_calls"])
    assert "tool_calls" in lines[0]["missing"]
    assert "finish" == lines[-1]["type"]


def test_a_graph_that_nothing_bounds_runs_for_a_reason_only(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reason lets the bound be told, too: what is unbounded, and why."""
    with pytest.raises(ConfigError, match="nothing bounds the cycle poll -> poll"):
        run(RunRequest(target="poller.py"))

    assert run(RunRequest(target="poller.py", unbounded=POLLS, explain=True)) is Status.OK
    told = capsys.readouterr().err
    assert "graph 'poller': at most\n  model calls: 0\n" in told
    assert "  not bounded: the cycle poll -> poll\n" in told


def test_a_run_without_a_bound_is_taken_up_for_a_reason_only(here: Path) -> None:
    """No journal knows why it ran."""
    run(RunRequest(target="poller.py", unbounded=POLLS, store="runs"))
    (kept,) = (here / "runs").glob("*.jsonl")

    def taken_up(reason: str | None) -> Status:
        given = ResumeRequest(run=kept.stem, store="runs", target="poller.py", unbounded=reason)
        return resume(given)

    with pytest.raises(ConfigError, match="nothing bounds the cycle poll -> poll"):
        taken_up(None)
    with pytest.raises(ConfigError, match="expected --unbounded to say something"):
        taken_up(" ")
    assert taken_up(POLLS) is Status.OK


def test_a_reason_that_says_nothing_is_none(here: Path) -> None:
    """Whoever reads the command later has to know."""
    with pytest.raises(ConfigError, match="expected --unbounded to say something"):
        run(RunRequest(target="poller.py", unbounded="  "))


def test_a_reason_without_need_is_refused(here: Path) -> None:
    """It would hide what comes."""
    with pytest.raises(ConfigError, match="--unbounded would have no effect: graph 'quiet' is bou"):
        allowed(silent(again=False), POLLS)
    with pytest.raises(ConfigError, match="--unbounded would have no effect: an agent's loop"):
        run(RunRequest(target="Hello", script="script.yaml", unbounded=POLLS))
    refuse_unbounded(None)


def test_a_graph_as_it_is_needs_no_reason() -> None:
    """Whether it may run is decided where it runs."""
    graph = poller()

    assert allowed(graph, None) is graph
    assert {("poll", "GL4"): POLLS} == allowed(graph, POLLS).ignore


def test_names_in_a_bound_cannot_play_with_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """They are anybody's."""
    graph = silent(again=False)
    graph.name = "a\x1b[31m"

    explain(graph.bound(), as_json=False)

    assert "\x1b" not in capsys.readouterr().err
