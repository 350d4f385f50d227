"""retrying: a bounded number of attempts, each counted before it is made."""

from __future__ import annotations

import asyncio

import pytest

from graphloop import END, Graph, node
from graphloop.contract import contract_of
from graphloop.effects import CallModel, StartRun
from graphloop.errors import ConfigError
from graphloop.events import Cancelled, ChildEnded, EffectFailed, Event, Failure, ModelReplied
from graphloop.node_protocol import Leave, Node, Reaction, Wait
from graphloop.nodes import Child, Critique, Execute, ModelCall
from graphloop.nodes.retrying import Retrying
from graphloop.outcomes import Aborted, Accepted, Answered, Empty, Failed, Outcome, Rejected
from graphloop.own_nodes import Asking, ask_model, fallback, retry, tell
from graphloop.run import EndReason, Run, evolve
from graphloop.spending import Budget, Spent
from graphloop.testing import ScriptedModel
from graphloop.values import Message, SystemMessage, Usage, UserMessage
from tests.strategies import SETUP, call, fresh, reply

WRITER: Retrying[None] = Retrying(Child("writer"), 2)
BROKE = ChildEnded(1.0, 1, "broke", "error")


def again(node: Node[None, Outcome], run: Run[None], event: Event) -> Reaction[None, Outcome]:
    """Have a node react to an event that answers all that it waits for."""
    return node.on(evolve(run, pending={}, next_effect=run.next_effect + 1), event, None)


def waits(reaction: Reaction[None, Outcome]) -> Run[None]:
    """Return the run that waits."""
    assert isinstance(reaction, Wait)
    return reaction.run


def test_it_stands_in_the_place_of_its_node() -> None:
    """The same name, kind and outcomes: a table need not be written anew."""
    child = Child("writer")

    assert (child.name, child.kind, child.outcomes) == (WRITER.name, WRITER.kind, WRITER.outcomes)
    assert "other" == Retrying(child, 1, name="other").name
    assert hash(WRITER) == hash(Retrying(child, 2))


def test_a_failure_is_tried_again_as_a_new_run_until_the_bound() -> None:
    """Then it stands."""
    reaction = WRITER.enter(fresh())
    keys: list[str] = []
    for _ in range(3):
        assert isinstance(reaction, Wait)
        (effect,) = reaction.effects
        assert isinstance(effect, StartRun)
        keys.append(effect.key)
        reaction = again(WRITER, reaction.run, BROKE)

    assert ["writer.1", "writer.2", "writer.3"] == keys
    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Failed)
    assert reaction.run.ending is not None
    assert EndReason.ERROR is reaction.run.ending.reason


def test_a_good_attempt_ends_the_trying() -> None:
    """The failure before it is forgotten."""
    run = waits(again(WRITER, waits(WRITER.enter(fresh())), BROKE))

    reaction = again(WRITER, run, ChildEnded(1.0, 2, "fine"))

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Answered)
    assert reaction.run.ending is None


def test_an_abort_is_passed_on() -> None:
    """Whoever stops the run does not want it tried again."""
    reaction = again(WRITER, waits(WRITER.enter(fresh())), Cancelled(1.0))

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Aborted)


def test_a_spent_budget_ends_the_trying() -> None:
    """A failed attempt has cost what it has cost."""
    run = evolve(fresh(), setup=evolve(SETUP, budget=Budget(tokens=5)))
    run = evolve(waits(WRITER.enter(run)), spent=Spent(usage=Usage(5)))

    assert isinstance(again(WRITER, run, BROKE), Leave)


def test_an_agent_that_would_be_too_deep_is_not_tried_again() -> None:
    """It would be as deep the next time; nothing has happened in between."""
    deep = evolve(fresh(), setup=evolve(SETUP, depth=2, depth_max=2))

    reaction = WRITER.enter(deep)

    assert isinstance(reaction, Leave)
    assert {"retry:writer": 0} == reaction.run.counters.by_node


def test_other_outcomes_may_be_tried_again_too() -> None:
    """A model that says nothing is asked once more, and says what it then says."""
    node: Retrying[None] = Retrying(ModelCall(), 1, frozenset({Empty, Failed}))
    run = waits(node.enter(fresh()))

    reaction = again(node, run, ModelReplied(1.0, 1, reply()))
    assert isinstance(reaction, Wait)
    (effect,) = reaction.effects
    assert isinstance(effect, CallModel)
    assert reaction.run.turn.reply is None

    last = again(node, reaction.run, EffectFailed(1.0, 2, Failure("E", "m")))
    assert isinstance(last, Leave)
    assert isinstance(last.outcome, Failed)


def test_what_a_rejected_attempt_has_noted_is_not_told() -> None:
    """A judge that is asked again has not judged before."""
    node: Retrying[None] = Retrying(Critique("?"), 1, frozenset({Rejected}))
    no = reply(call("verdict", arguments='{"accepted": false, "feedback": "x"}'))
    yes = reply(call("verdict", arguments='{"accepted": true}'))

    run = waits(again(node, waits(node.enter(fresh())), ModelReplied(1.0, 1, no)))
    reaction = again(node, run, ModelReplied(1.0, 2, yes))

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Accepted)
    assert not [one for one in reaction.run.turn.notes if isinstance(one, UserMessage)]


@pytest.mark.parametrize(
    ("node", "times", "found"),
    [
        (Execute(), 1, "must not happen twice"),
        (Child("a"), 0, "`times` to be a whole number of at least 1"),
        (Retrying(Child("a"), 1), 1, "is tried again already"),
    ],
)
def test_what_must_not_be_tried_again_is_refused(
    node: Node[None, Outcome], times: int, found: str
) -> None:
    """At construction."""
    with pytest.raises(ConfigError, match=found):
        Retrying(node, times)


def test_its_promises_are_the_node_s_so_many_times() -> None:
    """A node that promises nothing still promises nothing."""
    contract = contract_of(Retrying(Critique("?"), 2))

    assert contract is not None
    assert 3 == contract.model_calls


class Told(Outcome):
    """It has told what it had to tell."""


@node(model_calls=1)
def teller(state: None) -> Asking[Told]:
    """Tell, in the conversation and for the models, and fail unless the model says so."""
    yield from tell("NOTE")
    yield from tell(SystemMessage("SYSTEM"))
    heard = yield from ask_model("how?", conversation=True)
    if heard.message.text != "well":
        raise ValueError(heard.message.text)
    return Told()


@node(model_calls=1)
def quiet(state: None) -> Asking[Told]:
    """Ask a model and tell nothing."""
    yield from ask_model("how?", conversation=True)
    return Told()


def heard_of(wrapped: Node[None, Outcome], *replies: str) -> tuple[list[int], list[Message]]:
    """Return how long each request was, and the conversation at the end."""
    graph: Graph[None] = Graph("g", wrapped, {wrapped: {...: END}})
    model = ScriptedModel([*replies])
    result = asyncio.run(graph.run(None, model=model, prompt="hi"))
    return [len(one.messages) for one in model.requests], list(result.run.messages)


def test_what_a_failed_attempt_told_is_taken_back() -> None:
    """No model reads it twice, and the conversation holds it once."""
    told: list[Message] = [UserMessage("NOTE", origin="teller"), SystemMessage("SYSTEM")]

    assert ([4, 4, 4], [UserMessage("hi"), *told]) == heard_of(
        retry(teller, 2), "badly", "badly", "well"
    )


def test_what_the_first_of_two_told_is_taken_back() -> None:
    """The second stands in its place."""
    assert ([4, 2], [UserMessage("hi")]) == heard_of(fallback(teller, quiet), "badly", "well")
    inner = fallback(teller.renamed("a"), teller)
    assert [4, 4, 4] == heard_of(retry(inner, 1), "badly", "badly", "well")[0]


ASKED: list[int] = []


@node
def misread(state: None) -> Told:
    """Find that it was set up wrongly."""
    ASKED.append(1)
    raise ConfigError("no such table")


@node
def instead(state: None) -> Told:
    """Do it in another way."""
    return Told()


def test_what_was_set_up_wrongly_is_not_tried_again() -> None:
    """It would be as wrong the next time, and somebody has to hear of it."""
    for wrapped in (retry(misread, 2), fallback(misread, instead)):
        ASKED.clear()
        graph: Graph[None] = Graph("g", wrapped, {wrapped: {...: END}})

        with pytest.raises(ConfigError, match="no such table"):
            asyncio.run(graph.run(None, prompt="hi"))

        assert [1] == ASKED
