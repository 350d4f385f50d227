"""router: one clear choice, or none; never a guess."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from graphloop.contract import BROKEN, Contract
from graphloop.effects import CallModel
from graphloop.errors import ConfigError
from graphloop.events import Cancelled, EffectFailed, Event, Failure, ModelReplied
from graphloop.node_protocol import Leave, Wait
from graphloop.nodes.router import Router
from graphloop.outcomes import Aborted, Failed, Outcome, Settled, Unrouted
from graphloop.own_nodes.route_outcomes import route_outcome
from graphloop.run import Ending, EndReason, Run, evolve
from graphloop.values import AssistantPart, FinishReason, Reply, ToolChoice
from tests.strategies import call, fresh, reply, wrong


class Billing(Outcome):
    """Money."""


class Technical(Outcome):
    """Outages."""


@dataclass(frozen=True)
class Rated(Outcome):
    """A route that would need a number."""

    stars: int


class SettledBill(Settled):
    """A route that would pass for a gate's word."""


class Done(Outcome):
    """A route that would be named like what ran the tools."""


DESK = Router({Billing: "invoices", Technical: "outages"}, "Which desk?")


def left(event: Event) -> tuple[Run[None], type[Outcome]]:
    """Return how the router is left after an event."""
    reaction = DESK.on(evolve(fresh(), ending=Ending(EndReason.COMPLETED)), event, None)
    assert isinstance(reaction, Leave)
    return reaction.run, type(reaction.outcome)


def route(name: object) -> AssistantPart:
    """Return the choice of a route."""
    return call("route", arguments=json.dumps({"route": name}))


def test_the_model_chooses_by_what_the_routes_are_for() -> None:
    """Through a tool that it must call, after the whole conversation."""
    reaction = DESK.enter(fresh())

    assert isinstance(reaction, Wait)
    (effect,) = reaction.effects
    assert isinstance(effect, CallModel)
    assert ToolChoice("tool", "route") == effect.request.tool_choice
    (tool,) = effect.request.tools
    assert "- billing: invoices\n- technical: outages" in tool.description
    assert ["billing", "technical"] == json.loads(tool.parameters)["properties"]["route"]["enum"]
    assert ["go", "Which desk?"] == [getattr(one, "content", "") for one in effect.request.messages]


def test_a_clear_choice_is_taken_and_the_run_goes_on() -> None:
    """The answer before it was not the run's last."""
    run, outcome = left(ModelReplied(1.0, 1, reply("So:", route("technical"))))

    assert (Technical, None) == (outcome, run.ending)


@pytest.mark.parametrize(
    "answer",
    [
        reply("billing"),
        reply(),
        reply(call("other", arguments='{"route": "billing"}')),
        reply(route("nowhere")),
        reply(route("Billing")),
        reply(route("")),
        reply(route(None)),
        reply(route(["billing"])),
        reply(route("billing"), route("technical")),
        reply(route("billing"), call("route", arguments="{")),
        reply(call("route", arguments='"billing"')),
        reply(route("unrouted")),
        reply(route("billing"), finish=FinishReason.LENGTH),
        reply(route("billing"), finish=FinishReason.REFUSAL),
    ],
    ids=range(14),
)
def test_everything_but_a_clear_choice_is_unrouted(answer: Reply) -> None:
    """A router that fails must not take just any way."""
    assert Unrouted is left(ModelReplied(1.0, 1, answer))[1]


def test_a_model_that_cannot_be_asked_fails_the_run() -> None:
    """Its failure is kept."""
    failure = Failure("Overloaded", "later")

    run, outcome = left(EffectFailed(1.0, 1, failure))

    assert (Failed, Ending(EndReason.ERROR, (), failure)) == (outcome, run.ending)
    assert Aborted is left(Cancelled(1.0))[1]


@pytest.mark.parametrize(
    ("routes", "found"),
    [
        ({}, "to map outcome types"),
        ([Billing], "to map outcome types"),
        ({"billing": "x"}, "to be a type derived from Outcome, found 'billing'"),
        ({int: "x"}, "to be a type derived from Outcome"),
        ({Billing: " "}, "what route 'billing' is for"),
        ({Billing: "x", route_outcome("billing"): "y"}, "'billing', which is another route"),
        ({Failed: "x"}, "'failed', which is an outcome of graphloop's own nodes"),
        ({Unrouted: "x"}, "'unrouted', which is an outcome of graphloop's own nodes"),
        ({Settled: "x"}, "'settled', which is an outcome of graphloop's own nodes"),
        ({SettledBill: "x"}, "'settled', which is an outcome of graphloop's own nodes"),
        ({Done: "x"}, "'done', which is an outcome of graphloop's own nodes"),
        ({Rated: "x"}, "an outcome without fields"),
    ],
)
def test_routes_that_could_not_be_chosen_are_refused(
    routes: Mapping[type[Outcome], str], found: str
) -> None:
    """Each with what is wrong with it."""
    with pytest.raises(ConfigError, match=found):
        Router(wrong(routes), "?")


def test_a_router_is_a_value() -> None:
    """What its maker does to the mapping later changes nothing; it can stand in a table."""
    routes: dict[type[Outcome], str] = {Billing: "x"}
    one = Router(routes, "?")
    routes[Technical] = "y"

    assert {Billing, Unrouted, Failed, Aborted} == one.outcomes
    assert one == Router({Billing: "x"}, "?") != Router({Billing: "y"}, "?")
    assert hash(one) == hash(Router({Billing: "x"}, "?"))
    assert one == pickle.loads(pickle.dumps(one)) == copy.deepcopy(one)  # noqa: S301 - our own
    assert one.contract == Contract(moves={Failed: BROKEN, Aborted: BROKEN}, model_calls=1)


def test_equal_routers_ask_in_equal_words() -> None:
    """A mapping has no order, whatever wrote it down; a fingerprint tells what is sent."""
    other = Router({Technical: "outages", Billing: "invoices"}, "Which desk?")

    assert DESK == other
    assert DESK.tool == other.tool
