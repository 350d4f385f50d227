"""attempts: what may be tried again, what an attempt leaves behind, and what it all promises."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from graphloop.contract import Cap, ChildContract, Contract
from graphloop.errors import ConfigError
from graphloop.node_protocol import Node
from graphloop.nodes import (
    AnswerCheck,
    Append,
    Approve,
    Child,
    Critique,
    Execute,
    Fallback,
    Gate,
    Limit,
    ModelCall,
    PrepareStep,
    Retrying,
    StopCheck,
    Verify,
)
from graphloop.nodes.attempts import (
    attempted,
    check_attempts,
    counter_of,
    either,
    may_try_again,
    repeated,
)
from graphloop.outcomes import Aborted, Accepted, Answered, Calls, Failed, Go, Outcome, Rejected
from graphloop.run import Ending, EndReason, evolve
from graphloop.spending import Budget, Spent
from graphloop.turn import Turn
from graphloop.values import Usage, UserMessage
from tests.runs import changed
from tests.strategies import SETUP, call, fresh, replied, reply


@pytest.mark.parametrize(
    "node",
    [Append(), Approve(), Execute(), Gate(), Limit(1), PrepareStep(), StopCheck()],
    ids=lambda node: str(getattr(node, "kind", "")),
)
def test_what_has_happened_is_never_tried_again(node: Node[None, Outcome]) -> None:
    """A tool that ran would run twice."""
    with pytest.raises(ConfigError, match="must not happen twice"):
        check_attempts("retry", (node,), tuple(node.outcomes)[:1])


@pytest.mark.parametrize("node", [Child("a"), Critique("?"), ModelCall()])
def test_what_only_asks_may_be_tried_again(node: Node[None, Outcome]) -> None:
    """It has said nothing yet."""
    assert frozenset({Failed}) == check_attempts("retry", (node,), (Failed,))


@pytest.mark.parametrize("on", [(), (Rejected,), (Aborted,), (Calls,), (Failed, Aborted)])
def test_only_outcomes_that_may_be_undone_can_be_tried_again(
    on: Sequence[type[Outcome]],
) -> None:
    """Calls have to be answered, and who stops a run wants it stopped."""
    with pytest.raises(ConfigError, match="found"):
        check_attempts("retry", (ModelCall(),), on)


def test_a_node_within_is_not_called_as_the_calls_of_a_turn_are() -> None:
    """It is in no table, where such a name is refused, and its run's key begins with it."""
    with pytest.raises(ConfigError, match="'c1' is not a node's name: the calls of a turn"):
        Retrying[None](Child("v", name="c1"), 2, name="again")


@pytest.mark.parametrize("reason", EndReason)
def test_a_run_that_ends_for_another_reason_tries_nothing(reason: EndReason) -> None:
    """Time, money and people outweigh a second try."""
    run = evolve(fresh(), ending=Ending(reason))

    assert (reason in {EndReason.ERROR, EndReason.COMPLETED}) == may_try_again(run)


def test_a_run_out_of_budget_or_about_to_stop_tries_nothing() -> None:
    """Even if nothing has ended it yet."""
    spent = evolve(
        fresh(), setup=evolve(SETUP, budget=Budget(tokens=5)), spent=Spent(usage=Usage(5))
    )

    assert may_try_again(fresh())
    assert not may_try_again(spent)
    assert not may_try_again(changed(fresh(), stopping=""))


def test_an_attempt_forgets_what_the_last_one_left_behind() -> None:
    """Its failure, its own notes and its fallbacks; what others have noted stays."""
    notes = (UserMessage("bad", "critique"), UserMessage("other", "x"))
    run = evolve(
        replied(reply("a")),
        turn=Turn(notes=notes, fallbacks=2, reply=reply("a")),
        ending=Ending(EndReason.ERROR),
    )

    after = attempted(run, "n", 2, Critique("?"))

    assert ({"n": 2}, None, 0) == (after.counters.by_node, after.ending, after.turn.fallbacks)
    assert (notes[1:], run.turn.reply) == (after.turn.notes, after.turn.reply)
    assert run.ending == attempted(run, "n", 0, None).ending


def test_a_model_s_reply_is_forgotten_with_its_attempt() -> None:
    """Nobody has appended it; another node's reply stays, for its calls must be answered."""
    run = replied(reply(call()))

    model = attempted(run, "n", 1, ModelCall())

    assert (None, ()) == (model.turn.reply, model.turn.calls)
    assert run.turn.calls == attempted(run, "n", 1, Critique("?")).turn.calls != ()


def test_promises_are_multiplied() -> None:
    """What may happen each time may happen so often."""
    one = Contract(
        moves_by={Failed: frozenset({"turn"})},
        model_calls=2,
        keeps=frozenset({Failed}),
        children=(ChildContract(name="a"), ChildContract(name="b", runs=None)),
    )

    promised = repeated(one, 3, frozenset({Failed}))

    assert (6, [3, None]) == (promised.model_calls, [one.runs for one in promised.children])
    assert frozenset({"turn"}) == promised.moves
    assert frozenset() == promised.keeps
    assert repeated(Contract(model_calls=None), 3, frozenset()).model_calls is None


def test_promises_of_two_are_added_and_doubts_are_kept() -> None:
    """What one of them does not promise, the pair does not."""
    first = Contract(
        caps={Accepted: Cap(1), Go: Cap(1), Rejected: Cap(1, frozenset({"turn"}))},
        surely={Answered: frozenset({"turn", "step"})},
        moves_by={Failed: frozenset({"close"})},
        model_calls=1,
        agents=("a",),
        reads=frozenset({"x"}),
        tools=True,
    )
    second = Contract(
        caps={Accepted: Cap(2), Rejected: Cap(1)},
        surely={Answered: frozenset({"turn"})},
        model_calls=2,
        agents=("b",),
        reads=None,
        asks=True,
        join="first",
    )

    pair = either(first, second, frozenset({Failed}))

    assert {Accepted: Cap(3)} == pair.caps
    assert frozenset({"turn"}) == pair.moved(Answered)
    assert "step" in pair.may_move(Answered)
    assert frozenset({"close"}) == pair.moves
    assert (3, ("a", "b"), None) == (pair.model_calls, pair.agents, pair.reads)
    assert (True, True, "first", frozenset()) == (pair.tools, pair.asks, pair.join, pair.writes)
    assert either(first, Contract(model_calls=None), frozenset()).model_calls is None


def test_what_goes_by_how_the_run_ended_is_never_tried_again() -> None:
    """The failure is an ending: entered with it, such a check lets every answer through."""
    judge = Verify((AnswerCheck("judge", 0),))

    with pytest.raises(ConfigError, match="'verify' goes by how the run has ended"):
        check_attempts("retry", (judge,), (Failed,))


def test_wrappers_in_each_other_count_apart() -> None:
    """One that set back the counter of the one around it would try for ever."""
    inner: Retrying[None] = Retrying(ModelCall("writer"), 1)
    middle: Fallback[None] = Fallback(inner, ModelCall("backup"), name="writer")
    counters = [counter_of("retry", "writer", one) for one in (ModelCall("writer"), inner, middle)]

    assert ["retry:writer", "retry+:writer", "retry++:writer"] == counters


@pytest.mark.parametrize("within", ["writer", "writer+", "writer++"])
def test_no_name_makes_an_inner_wrapper_count_with_an_outer_one(within: str) -> None:
    """A name may hold any sign, so how deep a wrapper stands is told before its name."""
    inner: Retrying[None] = Retrying(ModelCall("model"), 1, name=within)
    middle: Fallback[None] = Fallback(inner, ModelCall("backup"), name="either")

    assert counter_of("retry", within, inner.node) != counter_of("retry", "writer", middle)


def test_agents_are_started_as_often_as_it_is_tried() -> None:
    """Each start asks models anew; and a number of them is a number, however large it is."""
    once = Contract(agents=("writer", "judge"), children=(ChildContract("judge", runs=2),))
    often = repeated(once, 10**12, frozenset())

    assert once.agents == often.agents
    assert {"writer": 10**12, "judge": 2 * 10**12} == {one.name: one.runs for one in often.children}
