"""attempts: what may be tried again, what an attempt leaves behind, and what it all promises."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from graphloop.attempts import attempted, check_attempts, either, may_try_again, repeated
from graphloop.contract import Cap, ChildContract, Contract
from graphloop.errors import ConfigError
from graphloop.node_protocol import Node
from graphloop.nodes import (
    Append,
    Approve,
    Child,
    Critique,
    Execute,
    Gate,
    Limit,
    ModelCall,
    PrepareStep,
    StopCheck,
)
from graphloop.outcomes import Aborted, Accepted, Answered, Calls, Failed, Go, Outcome, Rejected
from graphloop.run import Ending, EndReason, Turn, evolve
from graphloop.spending import Budget, Spent
from graphloop.values import Usage, UserMessage
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
def test_only_ways_that_a_node_is_left_by_and_that_may_be_undone_are_taken(
    on: Sequence[type[Outcome]],
) -> None:
    """Calls have to be answered, and who stops a run wants it stopped."""
    with pytest.raises(ConfigError, match="found"):
        check_attempts("retry", (ModelCall(),), on)


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
    assert not may_try_again(evolve(fresh(), stopping=""))


def test_an_attempt_forgets_what_the_last_one_left_behind() -> None:
    """Its failure, its own notes and its fallbacks; what others have noted stays."""
    notes = (UserMessage("bad", "critique"), UserMessage("other", "x"))
    run = evolve(
        replied(reply("a")),
        turn=Turn(notes=notes, fallbacks=2, reply=reply("a")),
        ending=Ending(EndReason.ERROR),
    )

    after = attempted(run, "n", 2, Critique("?"))

    assert ({"n": 2}, None, 0) == (after.counts, after.ending, after.turn.fallbacks)
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
        children=(ChildContract(name="a"), ChildContract(name="b", runs=None)),
    )

    promised = repeated(one, 3, frozenset({Failed}))

    assert (6, [3, None]) == (promised.model_calls, [one.runs for one in promised.children])
    assert frozenset({"turn"}) == promised.moves
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
