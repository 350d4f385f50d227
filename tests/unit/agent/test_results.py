"""Results: the outcome and the cost of a run, and the calls of its listeners."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from graphloop import Agent, EndReason, FinishReason, Graph, Pending, RunResult, Usage, budget
from graphloop.agent.conversation_answers import conversation_digest
from graphloop.agent.hooks import inform
from graphloop.agent.result import shortfalls
from graphloop.driver import counted_limits, unseen_costs
from graphloop.effects import AskHuman, CallTool, Effect
from graphloop.limits import stop
from graphloop.limits.stop import StopCondition
from graphloop.loop import Standard, standard_edges
from graphloop.nodes import StopCheck
from graphloop.policy.approvals import Capability, digest, issue
from graphloop.rules import Followed, Never, always_followed_by, never
from graphloop.rules.automata import entered, ran
from graphloop.rules.monitor import Monitor
from graphloop.run import Ending, RuleState, Run, Spent, evolve
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.turn import StepResult
from tests.runs import changed
from tests.strategies import Adversary, call, fresh, loop, reply

DONE = Adversary((reply("done"), reply(call()))).run(loop()).run


def result(run: Run[None], before: Spent | None = None) -> RunResult:
    """Return the result of a run."""
    return RunResult(run, MemoryStore(), before or Spent(), ("careful",))


def test_a_result_reads_the_last_turn_and_the_whole_run() -> None:
    one = result(DONE)

    assert (DONE.id, None, ("careful",)) == (one.run_id, one.state, one.warnings)
    assert one.text == one.steps[-1].text
    assert tuple(DONE.record.added) == one.messages
    assert (one.finish_reason, one.end_reason) == (FinishReason.STOP, EndReason.COMPLETED)
    assert ((), (), "") == (one.stopped_by, one.pending, one.provider_metadata)


def test_a_result_names_broken_and_owed_rules() -> None:
    rules = always_followed_by("tool:x", "node:b") & never("node:a")
    broken, owed = Never("node:a"), Followed("tool:x", "node:b")
    watch = RuleState(Monitor.of(rules).after(ran("x")).after(entered("a")))
    over, open_ = evolve(DONE, watch=watch), evolve(DONE, watch=watch, node="gate")

    assert ((broken,), (owed,)) == (result(over).broken_rules, result(over).owed_rules)
    said = "the rule 'never node:a' was broken"
    assert (said,) == shortfalls(open_)
    expected = "the rule 'tool:x always followed by node:b' is still owed, and the run is over"
    assert (said, expected) == shortfalls(over)
    assert () == shortfalls(DONE)


def test_usage_is_this_leg_s_and_total_usage_the_run_s() -> None:
    before, leg = Usage(1, 2, 3, 4, 5), Usage(10, 20, 30, 40, 50)
    resumed = result(evolve(DONE, spent=Spent(2, 0, before + leg)), Spent(1, 0, before))

    assert (leg, before + leg) == (resumed.usage, resumed.total_usage)
    assert DONE.spent.usage == result(DONE).usage == result(DONE).total_usage


@pytest.mark.parametrize(
    ("conditions", "unpriced", "warnings"),
    [
        ((stop.cost_exceeds(1.5), stop.step_count_is(3)), 2, 1),
        ((stop.cost_exceeds(1.5),), 0, 0),
        ((stop.step_count_is(3),), 2, 0),
    ],
)
def test_a_bound_on_the_cost_tells_what_it_could_not_see(
    conditions: tuple[StopCondition, ...], unpriced: int, warnings: int
) -> None:
    nodes = Standard(stop=StopCheck(conditions=conditions))
    run = evolve(DONE, spent=Spent(3, 0, Usage(), 0.5, unpriced))

    found = unseen_costs(counted_limits(Graph("agent", nodes.prepare, standard_edges(nodes))), run)

    assert warnings == len(found)
    assert all(one.startswith("stop.cost_exceeds(1.5) cannot count all") for one in found)


@pytest.mark.parametrize("refused", [True, False])
def test_a_warning_does_not_advise_what_the_run_has_already(refused: bool) -> None:
    nodes, limit = Standard(), budget(tokens=9, refuse_uncounted=refused)
    setup = evolve(DONE.setup, budget=limit)
    run = evolve(DONE, setup=setup, spent=Spent(1, unreported_calls=1))

    (found,) = unseen_costs(
        counted_limits(Graph("agent", nodes.prepare, standard_edges(nodes))), run
    )

    assert ("refuse_uncounted=True" in found) is not refused
    assert found.startswith("budget(tokens=9) cannot count all model calls: a server told no usage")


def test_a_budget_in_dollars_tells_what_it_could_not_see() -> None:
    one = Agent(ScriptedModel(["hi"]), budget=budget(usd=2)).generate_sync("go")

    assert 1 == len(one.warnings)
    assert one.warnings[0].startswith("budget(usd=2) cannot count all model calls")


def test_pending_calls_have_keys_in_request_order() -> None:
    asked, theirs = call("write", "w", '{"x": 1}'), call("client", "w")
    conversation = conversation_digest(())
    capability = Capability(
        "r", "c0.0", "write", digest('{"x": 1}'), None, conversation=conversation
    )
    token = issue(capability, None)
    pending: dict[int, Effect] = {
        4: AskHuman(4, "c0.0", asked),
        5: CallTool(5, "c0.1", theirs, client=True),
    }

    assert (
        Pending("approval", "c0.0", "w", "write", '{"x": 1}', token=token),
        Pending("client_tool", "c0.1", "w", "client", "{}"),
    ) == result(evolve(fresh(), pending=pending)).pending


def run(text: str, ending: Ending) -> Run[None]:
    """Return a run of one turn with this ending."""
    step = StepResult(0, reply(text), (), (), Usage(), ())
    begun = fresh()
    return changed(begun, steps=begun.record.steps.append(step), ending=ending, node="END")


def failing(error: BaseException) -> list[Callable[[int], object]]:
    """Return listeners that fail so: at once, and later."""

    def now(number: int) -> None:
        raise error

    async def later(number: int) -> None:
        await asyncio.sleep(0)
        raise error

    return [now, later]


@pytest.mark.parametrize("listener", failing(OSError("full")))
def test_a_listener_that_fails_is_a_warning_that_names_it(
    listener: Callable[[int], object],
) -> None:
    assert ("on_part raised OSError: full",) == asyncio.run(inform("on_part", listener, 3))


@pytest.mark.parametrize("listener", failing(asyncio.CancelledError("lost")))
def test_a_listener_cancelled_inside_does_not_cancel_the_run(
    listener: Callable[[int], object],
) -> None:
    (warning,) = asyncio.run(inform("on_part", listener, 3))

    assert warning.startswith("on_part was ")
    assert "cancelled" in warning


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1)])
def test_what_ends_the_process_is_no_failure_of_a_listener(error: BaseException) -> None:
    coroutine = inform("on_part", failing(error)[0], 3)

    with pytest.raises(type(error)):
        coroutine.send(None)
