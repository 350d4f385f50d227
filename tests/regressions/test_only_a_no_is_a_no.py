"""What a function of the user's answers is a yes, a no, or an error that counts against the call.

`ask(when=…)` and `deny(when=…)` took None, "" and 0 for a no: a forgotten `return` let calls run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from graphloop import Agent, Policy, RunResult, Tool, allow, ask, deny, tool
from graphloop.providers.script import Entry
from graphloop.run import EndReason
from graphloop.testing import ScriptedModel
from tests.strategies import wrong
from tests.topology_files import desk

PAID: list[str] = []
NEITHER: list[object] = [None, "", 0, 0.0, (), [], {}, "no", 1, "yes", object()]
CALL: Entry = {"calls": [{"name": "pay"}]}


@tool
def pay() -> str:
    """Pay."""
    PAID.append("paid")
    return "paid"


def pay_out() -> str:
    """Pay, by another tool."""
    PAID.append("paid")
    return "paid"


def says(answer: object, *, later: bool = False) -> Callable[..., Any]:
    """Return a condition that answers this."""

    async def over_limit(_arguments: object, _context: object) -> object:
        return answer

    def at_once(_arguments: object, _context: object) -> object:
        return answer

    at_once.__name__ = "over_limit"
    return over_limit if later else at_once


def gated(gate: Policy | None, tools: Tool[..., Any] = pay) -> RunResult:
    """Return the result of a run that calls `pay` once."""
    PAID.clear()
    agent = Agent(ScriptedModel([CALL, "done"]), tools=[tools], max_steps=4)
    return (agent if gate is None else agent.with_options(gate=gate)).generate_sync("go")


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("answer", NEITHER)
def test_a_condition_without_yes_or_no_counts_against_the_call(answer: object, later: bool) -> None:
    """It asks, it denies, and it allows nothing; and the result says which function it was."""
    when = says(answer, later=later)

    asked = gated(ask("pay", when=when) | allow("pay"))
    denied = gated(deny("pay", when=when) | allow("pay"))
    allowed = gated(allow("pay", when=when))

    assert ([], ["pay"]) == (PAID, [one.name for one in asked.pending])
    assert ["denied", "denied"] == [
        one.steps[0].tool_results[0].status for one in (denied, allowed)
    ]
    for one in (asked, denied, allowed):
        (warning,) = one.warnings
        assert "`over_limit`: expected True or False, found " in warning


def test_a_clear_yes_and_a_clear_no_are_told_without_a_word() -> None:
    """And nothing is held that need not be."""
    no = gated(ask("pay", when=says(False)) | allow("pay"))
    assert (["paid"], ()) == (PAID, no.warnings)

    yes = gated(ask("pay", when=says(True)) | allow("pay"))
    assert ([], ()) == (PAID, yes.warnings)


def test_a_condition_that_raises_is_told_as_well() -> None:
    """The call is held, and the developer learns why."""

    def over_limit(_arguments: object, _context: object) -> bool:
        raise KeyError("amount")

    result = gated(ask("pay", when=over_limit) | allow("pay"))

    assert ([], ["pay"]) == (PAID, [one.name for one in result.pending])
    (warning,) = result.warnings
    assert "KeyError: 'amount'" in warning


@pytest.mark.parametrize("answer", NEITHER)
def test_a_tool_asks_unless_its_predicate_says_no(answer: object) -> None:
    """By the same rule, and with the same words."""
    held: Tool[..., str] = tool(name="pay", needs_approval=says(answer))(pay_out)

    result = gated(None, held)

    assert ([], ["pay"]) == (PAID, [one.name for one in result.pending])
    (warning,) = result.warnings
    assert "`needs_approval`: expected True or False, found " in warning


def test_the_conditions_of_a_child_are_told_with_its_parent() -> None:
    """Its runs have no result of their own."""
    PAID.clear()
    gate = ask("pay", when=says(None)) | allow("pay")
    payer = Agent(ScriptedModel([CALL, "done"]), name="payer", tools=[pay], gate=gate)
    calls: Any = {"calls": [{"name": "payer", "arguments": {"prompt": "go"}}]}
    top = Agent(ScriptedModel([calls, "done"]), tools=[payer.as_tool(description="pays")])

    result = top.generate_sync("go")

    assert ([], 1) == (PAID, len(result.pending))
    assert "`over_limit`: expected True or False, found None" in result.warnings[0]


@pytest.mark.parametrize("answer", NEITHER)
def test_a_stop_predicate_that_says_neither_stops_and_says_so(answer: object) -> None:
    """A bound that cannot say no holds; the turn is complete, and nothing of it is lost."""
    PAID.clear()
    model = ScriptedModel([CALL, "done"])
    agent = Agent(model, tools=[pay], stop_when=lambda _: wrong(answer))

    result = agent.generate_sync("go")

    assert (["paid"], EndReason.STOP_CONDITION) == (PAID, result.end_reason)
    assert ["ok"] == [one.status for one in result.steps[0].tool_results]
    (why,) = result.stopped_by
    assert why.startswith("custom: expected True or False, found ")


@pytest.mark.parametrize("answer", [None, 1, "yes", 0])
def test_an_approver_without_yes_or_no_denies_and_says_why(answer: object) -> None:
    """The reason shows in the run."""
    PAID.clear()
    agent = Agent(
        ScriptedModel([CALL, "done"]),
        tools=[pay],
        gate=ask("pay"),
        approve_tool_call=lambda _: wrong(answer),
    )

    (result,) = agent.generate_sync("go").steps[0].tool_results

    assert ([], "denied") == (PAID, result.status)
    assert f"the approver answered {answer!r}, neither a yes nor a no" in result.text


def test_the_conditions_of_a_file_are_read_by_the_same_rule() -> None:
    """A file names the function; what it answers is judged in one place."""
    PAID.clear()
    graph = desk("[{ask: pay, when: over_limit}, {allow: pay}]", pay, when=says(None))

    result = asyncio.run(graph.run(None, model=ScriptedModel([CALL, "done"]), prompt="go"))

    assert ([], ["pay"]) == (PAID, [one.name for one in result.pending])
    assert "found None" in result.warnings[0]
