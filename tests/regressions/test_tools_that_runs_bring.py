"""A file's rule about a tool that only its runs bring means the same to everybody who reads it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from graphloop import tool
from graphloop.errors import ConfigError
from graphloop.rules import never
from graphloop.testing import ScriptedModel, fuzz
from graphloop.topology import Topology, load
from graphloop.topology.registration import Registry
from graphloop.values import UserMessage
from tests.strategies import call, reply
from tests.topology_files import RIGHT

DESK = RIGHT.partition("rules:\n  - ")[0].replace(
    '[{allow: [search, "read_*"]}, {ask: refund, ttl_s: 3600}]', '[{allow: "*"}]'
)


@tool
def refund(amount: int) -> str:
    """Pay back."""
    return f"{amount} paid back"


@tool
def pay(amount: int) -> str:
    """Pay."""
    return f"{amount} paid"


def desk(folder: Path, rule: str = '{never: "tool:pay", before: "tool:refund"}') -> Topology:
    registry = Registry()
    registry.tool(refund)
    path = folder / "desk.yaml"
    path.write_text(f"{DESK}tools: [refund]\nrules:\n  - {rule}\nprompt: Pay 5.\n")
    return load(path, registry=registry)


def test_it_is_taken_by_all_who_do_not_know_the_run(tmp_path: Path) -> None:
    """A graph that loads can be checked, compared and fuzzed."""
    graph = desk(tmp_path)

    assert graph.check().ok
    assert "no difference" in str(graph.diff(graph))
    assert "nothing found" in str(fuzz(graph, seeds=2))
    assert desk(tmp_path, '{never: refund, before: "approval:pay"}').check().ok


def test_a_rule_that_is_asked_about_is_looked_up_all_the_same(tmp_path: Path) -> None:
    """Nobody has said that runs bring such a tool."""
    graph = desk(tmp_path)

    assert graph.check(rules=never("pay", before="refund"))
    with pytest.raises(ConfigError, match=r"no tool 'refnud'\. Did you mean 'refund'"):
        graph.check(rules=never("tool:refnud", before="tool:pay"))


def test_a_run_without_the_tool_is_refused_at_the_rule_s_line(tmp_path: Path) -> None:
    """The name may be misspelt: the rule would protect nothing."""
    graph, model = desk(tmp_path), ScriptedModel(["hi"])

    with pytest.raises(ConfigError) as refused:
        asyncio.run(graph.run(None, model=model))

    line = f"{tmp_path / 'desk.yaml'}:{len(DESK.splitlines()) + 3}"
    said = f"{line}: rule 'never tool:pay before tool:refund': graph 'support' has no tool 'pay'"
    assert said in str(refused.value)
    assert not model.requests


def test_a_run_that_brings_it_is_held_to_it(tmp_path: Path) -> None:
    """By the prompt of the file, since nobody asks anything else."""
    again = call("pay", "c", '{"amount": 5}')
    paid, back = call("pay", "a", '{"amount": 5}'), call("refund", "b", '{"amount": 5}')
    model = ScriptedModel([reply(paid), reply(back), reply(again), "done"])

    result = asyncio.run(desk(tmp_path).run(None, model=model, tools=[pay]))

    statuses = [one.status for step in result.steps for one in step.tool_results]
    assert (["denied", "ok", "ok"], UserMessage("Pay 5.")) == (
        statuses,
        model.requests[0].messages[-1],
    )
