"""Several gates in a row, in real runs: the strictest word counts, in whatever order they stand."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import permutations

import pytest

from graphloop import (
    END,
    Approval,
    Edges,
    Graph,
    Node,
    Pending,
    Policy,
    RunResult,
    allow,
    approve,
    ask,
    deny,
    tool,
)
from graphloop.nodes import Append, Execute, Gate, ModelCall, PrepareStep, StopCheck
from graphloop.outcomes import (
    AnsweredCalls,
    ApprovalNeeded,
    Calls,
    Go,
    Outcome,
    Ready,
    Resend,
    Settled,
)
from graphloop.rules import Rules, at_most_once, never
from graphloop.testing import ScriptedModel
from graphloop.topology import Registry, load
from graphloop.values import ToolResult

FREE, STRICT, ASKING = allow("*"), deny("pay") | allow("*"), ask("pay") | allow("*")
TWO = """
graphloop: 1
name: two
start: prepare_step
nodes:
  prepare_step: {use: prepare_step}
  model_call: {use: model_call}
  limits: {use: gate, rules: [{deny: pay, when: large, reason: too much}, {allow: '*'}]}
  people: {use: gate, rules: [{ask: pay}, {allow: '*'}]}
  execute: {use: execute}
  append: {use: append}
edges:
  prepare_step: {ready: model_call, calls: limits, else: END}
  model_call: {calls: limits, failed: END, aborted: END, else: append}
  limits: {settled: people, else: append}
  people: {settled: execute, else: append}
  execute: {approval_needed: limits, else: append}
  append: {else: END}
tools: [pay]
"""


class Till:
    """A tool that counts what it paid."""

    def __init__(self) -> None:
        self.paid: list[int] = []
        self.tool = tool(self._pay, name="pay")

    async def _pay(self, amount: int) -> str:
        """Pay."""
        self.paid.append(amount)
        return "paid"


@tool
async def read() -> str:
    """Read."""
    return "read"


def gated(*gates: Gate) -> Graph[None]:
    """Return a loop whose calls pass these gates."""
    prepare, model, append = PrepareStep(), ModelCall(), Append()
    execute, stop = Execute(), StopCheck(max_steps=3)
    edges: Edges[None] = {
        prepare: {Ready: model, Calls: gates[0], ...: END},
        model: {Calls: gates[0], ...: append},
        execute: {ApprovalNeeded: gates[0], ...: append},
        append: {AnsweredCalls: stop, Resend: stop, ...: END},
        stop: {Go: prepare, ...: END},
    }
    targets: list[Node[None, Outcome]] = [*gates[1:], execute]
    for gate, after in zip(gates, targets, strict=True):
        edges = {**edges, gate: {Settled: after, ...: append}}
    return Graph("gates", prepare, edges)


def asked(amount: int) -> ScriptedModel:
    """Return a model that wants so much paid, and is done then."""
    return ScriptedModel([{"calls": [{"name": "pay", "arguments": {"amount": amount}}]}, "done"])


def statuses(result: RunResult) -> list[str]:
    """Return what became of the calls."""
    return [one.status for one in result.messages if isinstance(one, ToolResult)]


@pytest.mark.parametrize("hold", [True, False])
@pytest.mark.parametrize("order", list(permutations((0, 1, 2), 2)))
def test_the_strictest_of_two_gates_decides_in_a_real_run(
    order: Sequence[int], *, hold: bool
) -> None:
    """One call in three: let through, denied, or asked about once, whichever gate comes first."""
    policies = [(FREE, STRICT, ASKING)[at] for at in order]
    gates = [Gate(f"gate_{at}", rules=one.rules, hold=hold) for at, one in enumerate(policies)]
    questions: list[str] = []

    def person(pending: Pending) -> Approval:
        questions.append(pending.key)
        return approve()

    till = Till()
    result = asyncio.run(
        gated(*gates).run(
            None, model=asked(5), prompt="Pay.", tools=[till.tool], approve_tool_call=person
        )
    )

    strict = STRICT in policies
    assert ([] if strict else [5]) == till.paid
    assert ["denied" if strict else "ok"] == statuses(result)
    first = policies.index(ASKING) if ASKING in policies else None
    expected = first is not None and not (strict and policies.index(STRICT) < first)
    assert int(expected) == len(questions)


@pytest.mark.parametrize("order", [(ASKING, FREE), (FREE, ASKING), (FREE, FREE)])
@pytest.mark.parametrize(
    ("rule", "needs"),
    [
        (at_most_once("pay"), "nothing"),
        (at_most_once("pay", per="approval"), "a word"),
        (never("pay", before="read"), "a reading"),
    ],
)
def test_a_rule_counts_a_call_once_whichever_gate_asked(
    order: Sequence[Policy], rule: Rules, needs: str
) -> None:
    """The last gate lets it through: before that, nobody knows who has still to be asked."""
    till = Till()
    gates = [Gate(f"gate_{at}", rules=one.rules) for at, one in enumerate(order)]
    result = asyncio.run(
        gated(*gates).run(
            None,
            model=asked(5),
            prompt="Pay.",
            tools=[till.tool, read],
            rules=rule,
            approve_tool_call=lambda _: approve(),
        )
    )

    paid = needs == "nothing" or (needs == "a word" and ASKING in order)
    assert ([5] if paid else []) == till.paid
    assert ["ok" if paid else "denied"] == statuses(result)


@pytest.mark.parametrize(("edit", "paid"), [(60, [60]), (5_000, [])])
def test_no_edit_at_the_second_gate_gets_past_the_first(edit: int, paid: Sequence[int]) -> None:
    """The first denies large sums; a person at the second raises a small one."""
    till, names = Till(), Registry()
    names.tool(till.tool)

    @names.predicate
    def large(arguments: Mapping[str, object], _: object) -> bool:
        """Tell whether it is a large sum."""
        return int(str(arguments["amount"])) > 100

    graph = load(TWO, registry=names)
    result = asyncio.run(
        graph.run(
            None,
            model=asked(50),
            prompt="Pay.",
            approve_tool_call=lambda _: approve(edit={"amount": edit}),
        )
    )

    assert paid == till.paid
    assert ["ok" if paid else "denied"] == statuses(result)
