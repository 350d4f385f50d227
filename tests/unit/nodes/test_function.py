"""function: one function of the user's, whose answer is a fact, counted where it is capped."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from graphloop.contract import BROKEN
from graphloop.effects import REQUESTS, AskModel, CallModel, Invoke, Request
from graphloop.errors import ConfigError
from graphloop.events import (
    CallbackReturned,
    Cancelled,
    Changes,
    EffectFailed,
    Event,
    Failure,
    ModelReplied,
    NodeReturned,
    RequestYielded,
)
from graphloop.graph import END, Edges, NodeGraph
from graphloop.node_protocol import Leave, Wait
from graphloop.nodes.dialogue import RequestLimits
from graphloop.nodes.function import Function
from graphloop.nodes.retrying import Retrying
from graphloop.outcomes import Aborted, Failed, Go, Outcome, Stop
from graphloop.run import EndReason, Run, Spent, evolve
from graphloop.spending import Budget
from graphloop.testing.sim import World, simulate
from graphloop.turn import Dialogue, Exchange
from graphloop.values import Usage, UserMessage
from tests.runs import changed
from tests.strategies import QUESTION, SETUP, call, fresh, reply, said, wrong


class Good(Outcome):
    """A way to leave."""


@dataclass(frozen=True)
class Bad(Outcome):
    """Another, that says why."""

    reason: str = ""
    lines: tuple[int, ...] = ()


NODE = Function("judge", frozenset({Good, Bad}))
CAPPED = Function("judge", frozenset({Good, Bad}), caps=((Bad, 2),))


def told(left: NodeReturned) -> Event:
    """Return the event of a function that answered."""
    return CallbackReturned(1.0, 1, left)


def left(node: Function, event: Event, run: Run[None] | None = None) -> tuple[Run[None], Outcome]:
    """Return how the node is left after an event."""
    run = evolve(fresh(), node=node.name) if run is None else run
    reaction = node.on(run, event, Invoke(1, "judge"))
    assert isinstance(reaction, Leave)
    return reaction.run, reaction.outcome


def failure(run: Run[None]) -> str:
    """Return the failure that a run ends in."""
    assert run.ending is not None
    assert run.ending.failure is not None
    return f"{run.ending.failure.error}: {run.ending.failure.message}"


def test_every_function_may_fail_and_be_stopped() -> None:
    """Without saying so; a row needs `...` for them, or their names."""
    assert {Good, Bad, Failed, Aborted} == NODE.outcomes
    assert "Boom: oh" == failure(left(NODE, EffectFailed(1.0, 1, Failure("Boom", "oh")))[0])
    assert isinstance(left(NODE, EffectFailed(1.0, 1, Failure("Boom", "oh")))[1], Failed)
    assert isinstance(left(NODE, Cancelled(1.0))[1], Aborted)


def test_a_state_changes_only_where_the_answer_says_so() -> None:
    """No state is a state, too."""
    run: Run[object] = wrong(evolve(fresh(), state=wrong("old")))

    def after(answer: NodeReturned) -> object:
        reaction = NODE.on(run, told(answer), Invoke(1, "judge"))
        assert isinstance(reaction, Leave)
        return reaction.run.state

    assert "old" == after(NodeReturned("Good", "new"))
    assert "new" == after(NodeReturned("Good", "new", changed=True))
    assert after(NodeReturned("Good", None, changed=True)) is None


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (told(NodeReturned("Ugly")), "'judge' left by 'Ugly'; the outcomes are Bad, Good"),
        (told(NodeReturned("Bad", None, '{"reason":3}')), "whose fields do not fit"),
        (told(NodeReturned("Bad", None, "{")), "whose fields do not fit"),
        (CallbackReturned(1.0, 1, Changes()), "expected NodeReturned, found Changes"),
    ],
)
def test_an_answer_that_is_none_ends_the_run(event: Event, words: str) -> None:
    """Its journal tells the same, whatever has become of the code."""
    run, outcome = left(NODE, event)

    assert isinstance(outcome, Failed)
    assert words in failure(run)


def test_an_outcome_is_taken_as_often_as_its_cap_says() -> None:
    """Then the run ends in an error that says what to do."""
    run, event = evolve(fresh(), node="judge"), told(NodeReturned("Bad"))

    for _ in range(2):
        run, outcome = left(CAPPED, event, run)
        assert isinstance(outcome, Bad)
    assert isinstance(left(CAPPED, told(NodeReturned("Good")), run)[1], Good)
    run, outcome = left(CAPPED, event, run)

    assert isinstance(outcome, Failed)
    assert "CapReached: node 'judge' may leave by 'bad' 2 times" in failure(run)


def test_each_node_that_wraps_a_capped_function_counts_for_itself() -> None:
    """Its promise is a promise about the node of the table, and the proofs count on it."""
    once = Function("judge", frozenset({Good, Bad}), caps=((Bad, 1),))
    first: Retrying[None] = Retrying(once, 1, name="first")
    second: Retrying[None] = Retrying(once, 1, name="second")
    edges: Edges[None] = {
        first: {Bad: second, ...: END},
        second: {Bad: once, ...: END},
        once: {Bad: first, ...: END},
    }
    graph = NodeGraph("thrice", first, edges)
    world = World(
        model=wrong(None),
        tool=wrong(None),
        callback=lambda _: NodeReturned("Bad", None, '{"reason":""}'),
    )

    run = simulate(graph, QUESTION, world, None, setup=SETUP).run

    assert 3 == len([key for key in run.counters.by_node if key.startswith("outcome:")])
    assert "CapReached: node 'first' may leave by 'bad' 1 times" in failure(run)


def test_another_outcome_may_stand_for_the_capped_one() -> None:
    """For a loop that has its own way out."""
    node = evolve_capped(CAPPED, Good)
    run = left(node, told(NodeReturned("Bad")))[0]
    run = left(node, told(NodeReturned("Bad")), run)[0]

    assert isinstance(left(node, told(NodeReturned("Bad")), run)[1], Good)


def evolve_capped(node: Function, capped: type[Outcome]) -> Function:
    """Return the node with a way out of its cap."""
    return Function(node.name, node.leaves_by, caps=node.caps, capped=capped)


def test_a_failure_that_the_function_tells_itself_ends_nothing() -> None:
    """And what asks may tell, or be stopped, in the midst of it."""
    own = Function("a", frozenset({Good, Failed})).contract
    asking = Function("a", frozenset({Good}), asks=RequestLimits(frozenset({AskModel}))).contract

    assert {Aborted: BROKEN} == own.moves
    assert own.keeps(Good)
    assert not asking.keeps(Good)
    assert not any(map(asking.moved, (Good, Failed, Aborted)))


def test_a_cap_is_a_number() -> None:
    """Anything else would cap nothing."""
    with pytest.raises(ConfigError, match="the cap of 'bad'"):
        Function("judge", frozenset({Bad}), caps=((Bad, -1),))


ASKING = Function("judge", frozenset({Good, Bad}), asks=RequestLimits(REQUESTS, model_calls=1))


def asked(ask: Request, run: Run[None]) -> Wait[None] | Leave[None, Outcome]:
    """Return how a generator's node reacts to what it asks."""
    return ASKING.on(run, CallbackReturned(1.0, 1, RequestYielded(ask)), Invoke(1, "judge"))


def test_a_generator_is_called_again_with_each_answer() -> None:
    """Its asks and its answers are kept while the node is in hand, and no longer."""
    entered = ASKING.enter(fresh())
    assert isinstance(entered, Wait)
    waiting = asked(AskModel("?"), entered.run)
    assert isinstance(waiting, Wait)
    assert isinstance(waiting.effects[0], CallModel)

    again = ASKING.on(waiting.run, ModelReplied(1.0, 1, reply("x")), waiting.effects[0])

    assert isinstance(again, Wait)
    assert (Invoke(1, "judge"),) == again.effects
    assert again.run.turn.dialogue is not None
    assert (Exchange(AskModel("?"), reply("x")),) == again.run.turn.dialogue.exchanges
    run, outcome = left(ASKING, told(NodeReturned("Good")), again.run)
    assert (None, Good()) == (run.turn.dialogue, outcome)


def test_one_ask_too_many_is_not_sent() -> None:
    """The proofs count on it."""
    run = changed(fresh(), dialogue=Dialogue(1, 1, Usage(), (Exchange(AskModel("?"), reply("x")),)))

    reaction = asked(AskModel("?"), run)

    assert isinstance(reaction, Leave)
    assert Failed() == reaction.outcome
    assert "CapReached: node 'judge': one visit asks 1 models at most" in failure(reaction.run)
    assert None is reaction.run.turn.dialogue


def test_a_budget_that_is_spent_lets_nothing_more_be_asked() -> None:
    """As between turns."""
    run = changed(fresh(), dialogue=Dialogue(1, 1, Usage()))
    run = evolve(run, setup=evolve(run.setup, budget=Budget(tokens=5)), spent=Spent(1, 0, Usage(9)))

    reaction = asked(AskModel("?"), run)

    assert isinstance(reaction, Leave)
    assert reaction.run.ending is not None
    assert (EndReason.BUDGET, Failed()) == (reaction.run.ending.reason, reaction.outcome)


def test_what_a_function_tells_comes_into_the_conversation() -> None:
    """Unless calls wait there for their results."""
    note = UserMessage("listen", "judge")
    run, _ = left(NODE, told(NodeReturned("Good", notes=(note,))))
    assert (*QUESTION, note) == tuple(run.messages)

    waiting = fresh(messages=(*QUESTION, said(call("read"))))
    run, outcome = left(NODE, told(NodeReturned("Good", notes=(note,))), waiting)

    assert Failed() == outcome
    assert "node 'judge': the conversation ends in calls without results ('read')" in failure(run)


def test_a_generator_that_is_cancelled_leaves_nothing_behind() -> None:
    """Whatever it had asked."""
    run, outcome = left(ASKING, Cancelled(1.0), changed(fresh(), dialogue=Dialogue(1, 1, Usage())))

    assert (None, Aborted()) == (run.turn.dialogue, outcome)


def test_caps_have_no_order() -> None:
    """They are a mapping: which of them was written first says nothing."""
    leaves_by = frozenset({Go, Stop})
    one = Function("a", leaves_by, caps=((Go, 1), (Stop, 2)))

    assert one == Function("a", leaves_by, caps=((Stop, 2), (Go, 1)))
    assert ((Go, 1), (Stop, 2)) == one.caps
