"""A node of one's own that ends cycles: its contract says so, and no list names its class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pytest

from graphloop import END, Graph, check
from graphloop.contract import Cap, Contract
from graphloop.driver import counted_limits
from graphloop.effects import Effect
from graphloop.events import Cancelled, Event, Setup, Started
from graphloop.limits import CountedLimit
from graphloop.node_protocol import Leave, Reaction, outcomes_of
from graphloop.nodes import Append, Critique, Limit, ModelCall, PrepareStep, Retrying
from graphloop.outcomes import Aborted, Answered, Go, Ready, Rejected, Stop
from graphloop.proofs import Bound, bound
from graphloop.run import Ending, EndReason, Run, ended_by, with_count
from graphloop.spending import Budget
from graphloop.step import begin, step
from graphloop.testing.fuzzing import fuzz
from graphloop.values import UserMessage

Rounds: TypeAlias = Go | Stop


@dataclass(frozen=True)
class Patience:
    """Goes on `times` times; a lazy one does not look at the budget, nor at a stop."""

    times: int = 2
    lazy: bool = False
    believed: bool = True
    name: str = "patience"
    kind: Literal["stop"] = "stop"
    outcomes = outcomes_of(Rounds)

    @property
    def contract(self) -> Contract:
        cap = Cap(self.times, instead=Stop if self.believed else None)
        return Contract(caps={Go: cap}, moves={Stop: frozenset({"end", "perhaps"})})

    @property
    def counted_limits(self) -> tuple[CountedLimit, ...]:
        return ((True, "patience"),)

    def enter(self, run: Run[Any], /) -> Reaction[Any, Rounds]:
        count = run.counters.by_node.get(self.name, 0)
        over = run.was_stopped or run.setup.budget.tripped(run.spent)
        if count < self.times and (self.lazy or not over):
            return Leave(with_count(run, self.name, count + 1), Go())
        return Leave(ended_by(run, Ending(EndReason.STOP_CONDITION, (self.name,))), Stop())

    def on(self, run: Run[Any], event: Event, answered: Effect | None, /) -> Reaction[Any, Rounds]:
        raise AssertionError(f"{self.name!r} waits for nothing")


def critic_before(node: Patience | Limit | Retrying[Any], after_stop: Any = END) -> Graph[None]:
    """Return a loop whose only bound is this node; a stopped run comes to it."""
    prepare, model, critic, append = PrepareStep(), ModelCall(), Critique("Good?"), Append()
    return Graph(
        "patient",
        prepare,
        {
            prepare: {Ready: model, ...: END},
            model: {Answered: append, Aborted: node, ...: append},
            append: {...: critic, Aborted: END},
            critic: {Rejected: node, Aborted: node, ...: END},
            node: {Go: prepare, Stop: after_stop or append},
        },
    )


def bounded(node: Patience | Limit) -> Bound:
    """Return the bound of the loop, with all numbers given."""
    graph, budget = critic_before(node), Budget(tokens=100)
    return bound(graph, max_tokens=10, context_window=100, budget=budget)


def test_it_is_believed_as_a_limit_is() -> None:
    """The bounds of both are the same, to the number."""
    own, limit = bounded(Patience()), bounded(Limit(2, "patience"))

    assert own.ends
    assert (own.model_calls, own.tokens, own.visits) == (
        limit.model_calls,
        limit.tokens,
        limit.visits,
    )
    assert {"GL4", "GL13"} <= {*check(critic_before(Patience())).proven}


def test_one_that_promises_no_look_at_the_budget_is_bounded_by_its_number_alone() -> None:
    """What it does not say, nothing believes."""
    own, kept = bounded(Patience(believed=False)), bounded(Patience())

    assert own.tokens is not None
    assert kept.tokens is not None
    assert kept.tokens < own.tokens


def test_the_way_of_a_stopped_run_through_it_is_known() -> None:
    """GL13 warns of a circle that leads through it, and a run takes that circle."""
    graph = critic_before(Patience(), after_stop=PrepareStep())

    assert [one.node for one in check(graph).findings if one.code == "GL13"]
    question = (UserMessage("Hi"),)
    run = begin(graph, Started(0.0, "r", "patient", question, Setup()), None).run
    stopped = step(graph, run, Cancelled(1.0, "enough")).run
    assert stopped.was_stopped
    assert stopped.turn.number > 100


def test_its_limits_on_costs_are_warned_about_when_no_price_is_known() -> None:
    """As those of a StopCheck are."""
    assert ((True, "patience"),) == counted_limits(critic_before(Patience()))


@pytest.mark.parametrize("lazy", [False, True])
def test_a_node_that_breaks_its_word_is_found_by_the_fuzzer(lazy: bool) -> None:
    """It says that it looks at the budget."""
    report = fuzz(critic_before(Patience(lazy=lazy)), seeds=100)

    told = [one for each in report.failing for one in each.violations if one.code == "bound"]
    assert lazy == any("'patience' left by 'go', although" in one.what for one in told)


@pytest.mark.parametrize("instead", [Go, Answered, Stop()])
def test_a_cap_names_another_outcome_of_its_node(instead: Any) -> None:
    """Otherwise bounds would believe that a stopped run leaves by it."""

    @dataclass(frozen=True)
    class Odd(Patience):
        @property
        def contract(self) -> Contract:
            return Contract(caps={Go: Cap(2, instead=instead)})

    (error,) = [one for one in check(critic_before(Odd())).findings if one.code == "GL5"]

    assert "contract of 'patience'" == error.place
    assert "'go'" in error.message


def test_limits_of_a_nested_node_are_counted_as_its_own() -> None:
    """A run warns of a cost limit that cannot count, also if the node is tried again."""

    @dataclass(frozen=True)
    class Checked(Patience):
        kind: Any = "check"

    (limit,) = counted_limits(critic_before(Retrying(Checked(), 1, after=frozenset({Stop}))))

    assert (True, "patience") == limit
