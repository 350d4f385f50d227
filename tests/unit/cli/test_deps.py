"""DEPS of a target: an object, or a function that makes it when a run starts or goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop.cli.errors import Status
from tests.unit.cli.command_line import graphloop, here, shown, write
from tests.unit.cli.pay_desk import parked

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


def test_an_agent_that_reads_no_deps_is_given_none(desk: Path) -> None:
    write({"agent.py": DESK + "DEPS = Desk()", "script.yaml": "- text: hello\n"})

    assert "hello" in shown("run", "agent.py:other")
