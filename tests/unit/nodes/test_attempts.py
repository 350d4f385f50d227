"""attempts: what may be tried again, what an attempt leaves behind, and what it all promises."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from graphloop.contract import BROKEN, Cap, ChildContract, Contract
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
from tests.topology_data import Promising


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
    with pytest.raises(ConfigError, match="'c1' is not a node's"):
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
    """What may happen each time may happen so often; what an attempt moved is not sure."""
    one = Contract(
        moves={Failed: frozenset({"broken"}), Answered: frozenset({"turn"})},
        model_calls=2,
        children=(ChildContract(name="a"), ChildContract(name="b", runs=None)),
    )
    node = Promising("a", frozenset({Answered, Go, Failed}), one)

    promised = repeated(one, node, 10**12, frozenset({Failed}))

    calls, runs = promised.model_calls, [one.runs for one in promised.children]
    assert (2 * 10**12, [10**12, None]) == (calls, runs)
    assert {"turn"} == promised.moved(Answered) == promised.may_move(Go)
    assert not promised.moved(Go) | promised.moved(Failed)
    assert not promised.keeps(Go)
    assert repeated(Contract(model_calls=None), node, 3, frozenset()).model_calls is None


def test_promises_of_two_are_added_and_doubts_are_kept() -> None:
    """What one of them does not promise, the pair does not."""
    first = Contract(
        caps={Accepted: Cap(1), Go: Cap(1), Rejected: Cap(1, frozenset({"turn"}))},
        moves={Answered: frozenset({"turn"}), Go: frozenset({"turn"}), Failed: BROKEN},
        model_calls=1,
        children=(ChildContract("a"),),
        reads=frozenset({"x"}),
        tools=True,
        writes={Answered: frozenset({"x", "y"}), Go: frozenset({"x"})},
    )
    second = Contract(
        caps={Accepted: Cap(2), Rejected: Cap(1)},
        moves={Answered: frozenset({"turn"}), Failed: BROKEN},
        model_calls=2,
        children=(ChildContract("b"),),
        reads=None,
        asks=True,
        writes={Answered: frozenset({"x"})},
    )
    outcomes = frozenset({Accepted, Answered, Go, Rejected, Failed})
    one = Promising("one", outcomes, first)
    other = Promising("other", outcomes, second)

    pair = either(one, other, frozenset({Failed}))

    assert pair is not None
    assert {Accepted: Cap(3)} == pair.caps
    assert frozenset({"turn"}) == pair.moved(Answered) == pair.may_move(Go)
    assert not pair.moved(Go)
    assert (3, ["a", "b"], None) == (pair.model_calls, [c.name for c in pair.children], pair.reads)
    assert (True, True) == (pair.tools, pair.asks)
    assert {"x"} == pair.written(Answered) != pair.written(Go) == frozenset()
    assert either(one, Promising("silent", outcomes, None), frozenset({Failed})) is None


def test_where_another_node_may_answer_no_child_need_succeed() -> None:
    """The proofs must not count on it; a join that waits for too many runs they still learn."""
    outcomes = frozenset({Answered, Failed})
    met = Promising("met", outcomes, Contract(children=(ChildContract("a", needs=1),)))
    hopeless = Promising("hopeless", outcomes, Contract(children=(ChildContract("b", needs=2),)))

    pair = either(met, hopeless, frozenset({Failed}))

    assert pair is not None
    assert [0, 2] == [child.needs for child in pair.children]


def test_what_goes_by_how_the_run_ended_is_never_tried_again() -> None:
    """The failure is an ending: entered with it, such a check lets every answer through."""
    judge = Verify((AnswerCheck("judge", 0),))

    with pytest.raises(ConfigError, match="'verify' goes by"):
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
