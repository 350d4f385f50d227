"""Approve(field=…): a person approves what an agent wrote into the state, and may change it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import BaseModel

from graphloop import END, Agent, Graph, approve, decline, node
from graphloop.errors import GraphError
from graphloop.nodes import Approve
from graphloop.outcomes import Aborted, Accepted, Answered, Outcome, Rejected
from graphloop.own_nodes import sub_graph
from graphloop.replay import replay
from graphloop.stores import SqliteStore, typed_events
from graphloop.testing import ScriptedModel
from graphloop.topology import dump, load


class Plan(BaseModel):
    title: str
    hours: int


class Trip(BaseModel):
    plan: Plan | None = None
    booked: str = ""


class Booked(Outcome):
    """It is booked."""


@node(kind="act", reads={"plan"}, writes={"booked"})
async def book(trip: Trip) -> tuple[Booked, Trip]:
    """Book the plan."""
    assert trip.plan is not None
    return Booked(), trip.model_copy(update={"booked": f"{trip.plan.title}, {trip.plan.hours} h"})


PLAN = '{"title":"Bees","hours":3}'
TEXT = {"calls": [{"name": "final_answer", "arguments": {"title": "Bees", "hours": 3}}]}


def trips(field: str = "plan") -> Graph[Trip]:
    planner = Agent(ScriptedModel([TEXT]), output_type=Plan, name="planner")
    plan = sub_graph(planner, into="plan", prompt=lambda _: "Plan a trip.")
    ask = Approve(field=field)
    return Graph(
        "trip",
        plan,
        {
            plan: {Answered: ask, ...: END},
            ask: {Accepted: book, Rejected: END, Aborted: END},
            book: {...: END},
        },
    )


async def parked(store: SqliteStore) -> tuple[str, str]:
    result = await trips().run(Trip(), store=store)
    (call,) = result.pending
    assert {"answer": PLAN} == json.loads(call.arguments)
    return result.run_id, call.key


async def test_a_person_sees_the_typed_field_and_not_the_last_text(tmp_path: Path) -> None:
    """The next node acts on the field: a person who saw another text approved something else."""
    store = SqliteStore(tmp_path / "runs.db")
    run_id, key = await parked(store)

    result = await trips().resume(run_id, store=store, approvals={key: approve()})

    assert "Bees, 3 h" == result.state.booked
    await store.aclose()


async def test_an_edit_is_the_new_value_of_the_field(tmp_path: Path) -> None:
    """Of the field's own type, also after a replay from the journal."""
    store = SqliteStore(tmp_path / "runs.db")
    run_id, key = await parked(store)
    edit = {"answer": '{"title": "Bees", "hours": 5}'}

    result = await trips().resume(run_id, store=store, approvals={key: approve(edit=edit)})

    assert Plan(title="Bees", hours=5) == result.state.plan
    assert "Bees, 5 h" == result.state.booked
    again = replay(trips(), typed_events(Trip, await store.load(run_id)))
    assert result.state == again.state
    await store.aclose()


@pytest.mark.parametrize("edit", ["five hours", '{"title": "Bees"}'])
async def test_an_edit_of_another_type_is_no_approval(tmp_path: Path, edit: str) -> None:
    """Nothing is booked, and the next turn of a model would read why."""
    store = SqliteStore(tmp_path / "runs.db")
    run_id, key = await parked(store)

    result = await trips().resume(
        run_id, store=store, approvals={key: approve(edit={"answer": edit})}
    )

    assert "" == result.state.booked
    (note,) = result.run.turn.notes
    said = getattr(note, "content", "")
    assert "The edit does not fit: `field` 'plan': expected JSON of type" in said
    await store.aclose()


async def test_a_person_may_decline(tmp_path: Path) -> None:
    """As without a field."""
    store = SqliteStore(tmp_path / "runs.db")
    run_id, key = await parked(store)

    result = await trips().resume(run_id, store=store, approvals={key: decline("no")})

    assert "" == result.state.booked
    await store.aclose()


def test_a_field_that_the_state_has_not_is_refused() -> None:
    """Before a person is asked about nothing."""
    with pytest.raises(GraphError, match=r"found 'plam'\. Did you mean 'plan'\?"):
        trips("plam").run_sync(Trip())


def test_the_node_is_proven_with_the_field_that_it_reads() -> None:
    """`act` lies behind a person, and what is shown has been written."""
    assert trips().check().ok
    assert frozenset({"plan"}) == Approve(field="plan").contract.reads


def test_a_file_names_the_field() -> None:
    """And is read back as it was written."""
    text = """\
graphloop: 1
name: trip
start: approve
nodes:
  approve: {use: approve, field: plan}
edges:
  approve: {else: END}
"""
    graph = load(text)
    (approving,) = graph.nodes.values()

    assert isinstance(approving, Approve)
    assert "plan" == approving.field
    assert "field: plan" in dump(graph)
