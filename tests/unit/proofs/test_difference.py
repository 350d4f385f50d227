"""Difference: changes and verdict together, as text and as JSON, children included."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, BaseModel, field_validator
from typing_extensions import Unpack

from graphloop.contract import ChildContract, Contract
from graphloop.front.agent import Agent
from graphloop.front.hooks import AnswerInfo
from graphloop.front.options import AgentOptions
from graphloop.front.topology import load
from graphloop.graph import END, Graph
from graphloop.loop import Standard
from graphloop.nodes import StopCheck
from graphloop.proofs.difference import difference
from graphloop.stop import cost_exceeds
from graphloop.testing import ScriptedModel
from graphloop.tools import Tool
from tests.changed_loop import bypassed, changed
from tests.graphs import OUTCOMES, Place


@dataclass(frozen=True)
class Parent(Place):
    """A node that runs a graph."""

    child: Graph[None] | None = None
    second: Graph[None] | None = None

    @property
    def contract(self) -> Contract:
        both = (self.child, self.second) if self.second else (self.child,)
        return Contract(children=tuple([ChildContract("kid", one) for one in both]))


def parent(child: Graph[None], second: Graph[None] | None = None) -> Graph[None]:
    node = Parent("a", frozenset(OUTCOMES[:1]), child=child, second=second)
    return Graph("g", node, {node: {OUTCOMES[0]: END}})


def test_the_meaning_stands_before_the_changes() -> None:
    """Who reads one line has read the one that counts."""
    found = difference(changed(), changed(bypassed))

    assert found.weaker
    assert str(found).splitlines()[:3] == [
        "graph agent: weaker",
        "  weaker: `execute` becomes reachable without `gate`",
        "    witness: prepare_step -ready-> model_call -calls-> execute",
    ]
    assert "  ~ model_call -calls-> execute (was gate)" == str(found).splitlines()[-1]


def test_json_holds_the_same_and_says_whether_anything_is_weaker() -> None:
    """For whoever reviews by machine."""
    data = json.loads(difference(changed(), changed(bypassed)).to_json())

    assert data["weaker"] is True
    assert data["verdict"][0]["pairs"] == [["gate", "execute"]]
    assert data["changes"]["rewired"][0]["before"] == "gate"
    assert json.loads(difference(changed(), changed()).to_json())["weaker"] is False


def test_no_difference_is_said_in_words() -> None:
    """Empty output could be an error."""
    assert "graph agent: no difference" == str(difference(changed(), changed()))


def test_a_child_that_got_weaker_makes_its_parent_weaker() -> None:
    """The parent's own table is the same."""
    found = difference(parent(changed()), parent(changed(bypassed)))

    assert found.changes.none
    assert found.weaker
    assert "in the child 'kid':" in str(found)
    assert "without `gate`" in str(found)
    assert json.loads(found.to_json())["children"]["kid"]["weaker"] is True


def layered(steps: int, depth: int) -> Graph[None]:
    """Return a graph with two children, which have the same two children, and so on."""
    one, other = (changed(None, Standard(stop=StopCheck(max_steps=steps))) for _ in "ab")
    for _ in range(depth):
        one, other = parent(one, other), parent(one, other)
    return one


def test_a_child_that_many_run_is_told_once() -> None:
    """Else a text would be as long as there are ways to it, which are beyond counting."""
    found = difference(layered(3, 12), layered(4, 12))

    assert found.weaker
    assert len(str(found)) < 20_000
    assert len(found.to_json()) < 60_000
    assert len(repr(found)) < 1_000
    two = difference(layered(3, 2), layered(4, 2))
    lines = str(two).splitlines()
    again = "  in the child 'kid of a': the same as in 'kid/kid of a', above"
    assert 1 == lines.count("in the child 'kid of a':") == lines.count(again)


def test_of_a_child_that_was_told_is_said_where() -> None:
    """So that a reader finds it."""
    loops = (changed(None, Standard(stop=StopCheck(max_steps=steps))) for steps in (3, 4))

    def twice(loop: Graph[None]) -> Graph[None]:
        outer = parent(parent(loop))
        outer.agents = {"worker": loop}
        return outer

    before, after = map(twice, loops)
    found = difference(before, after)
    text, data = str(found).splitlines(), json.loads(found.to_json())

    assert ["kid", "worker"] == [name for name, _ in found.children]
    assert "in the child 'worker': the same as in 'kid/kid', above" == text[-1]
    assert {"weaker": True, "same_as": ["kid", "kid"]} == data["children"]["worker"]


def test_of_two_children_of_one_name_both_are_compared() -> None:
    """One that is told apart by its place alone may not hide behind the other."""
    before = parent(changed(), changed())
    found = difference(before, parent(changed(), changed(bypassed)))

    assert found.weaker
    assert ["kid of a"] == [name for name, _ in found.children]
    assert difference(before, parent(changed(bypassed), changed())).weaker
    assert difference(before, parent(changed(), changed())).none
    twice = difference(before, parent(changed(bypassed), changed(bypassed)))
    assert ["kid", "kid of a"] == [name for name, _ in twice.children]
    assert ["kid", "kid of a"] == list(json.loads(twice.to_json())["children"])
    three = difference(parent(changed()), parent(changed(), changed(bypassed)))
    assert three.weaker, "what comes under a known name is held to what had it"


def test_an_agent_does_not_hide_the_child_of_a_node_that_has_its_name() -> None:
    """Nor the reverse: both are run."""

    def both(child: Graph[None], agent: Graph[None]) -> Graph[None]:
        outer = parent(child)
        outer.agents = {"kid": agent}
        return outer

    before = both(changed(), changed())

    assert difference(before, both(changed(bypassed), changed())).weaker
    assert difference(before, both(changed(), changed(bypassed))).weaker
    assert difference(before, both(changed(), changed())).none


def given(name: str = "g", **facts: object) -> Graph[None]:
    """Return a graph of which something is known beside its table."""
    node = Place("a", frozenset(OUTCOMES[:1]))
    graph: Graph[None] = Graph(name, node, {node: {OUTCOMES[0]: END}})
    graph.facts = facts
    return graph


def test_graphs_of_two_names_are_two() -> None:
    """Journals know them by these."""
    found = difference(given("one"), given("two"))

    assert not found.none
    assert not found.weaker
    assert "graph 'one' -> 'two': not weaker" == str(found)


def test_what_runs_are_given_is_part_of_the_difference() -> None:
    """The tables are the same."""
    found = difference(given(instructions="Never."), given(instructions="Always."))

    assert not found.none
    assert "changed: instructions of what runs are given" in str(found)
    assert "~ instructions: - 'Never.', + 'Always.'" in str(found)


def test_an_agent_whose_graph_nobody_knows_any_more_is_weaker() -> None:
    """What was compared cannot be."""
    before, after = given(), given()
    before.agents, after.agents = {"kid": changed()}, {"kid": None}

    assert difference(before, after).weaker
    assert not difference(after, before).weaker
    assert not difference(after, before).none


def test_a_graph_that_is_used_in_many_places_is_compared_once() -> None:
    """Uses of uses are beyond counting."""

    def deep() -> Graph[None]:
        inner = given()
        for _ in range(15):
            outer = given()
            outer.agents = {"left": inner, "right": inner}
            inner = outer
        return inner

    assert difference(deep(), deep()).none


def test_what_is_too_deep_to_be_compared_is_never_no_difference() -> None:
    """Unless it is the same graph."""

    def deep(inner: Graph[None]) -> Graph[None]:
        for _ in range(20):
            outer = given()
            outer.agents = {"kid": inner}
            inner = outer
        return inner

    lowest = given()
    found = difference(deep(lowest), deep(changed()))

    assert found.weaker
    assert "more than 16 graphs deep, and was not compared" in str(found)
    same = deep(lowest)
    assert difference(same, same).none


def limited(most: int | None) -> Graph[None]:
    """Return the graph of an agent whose tool refuses what is too much, by a validator."""

    def within(amount: int) -> int:
        if most is not None and amount > most:
            raise ValueError(amount)
        return amount

    class Plain(BaseModel):
        amount: int

    class Checked(BaseModel):
        amount: Annotated[int, AfterValidator(within)]

    payment = Plain if most is None else Checked
    payment.__qualname__ = "Payment"

    def pay(payment: BaseModel) -> str:
        return str(payment)

    made = Tool(name="pay", parameters=payment, execute=pay)
    return given(tools={"pay": made})


def test_the_validators_of_arguments_are_guards() -> None:
    """The schemas are the same, and the gate refuses what a validator refuses."""
    assert difference(limited(100), limited(100)).none
    assert difference(limited(100), limited(1000)).weaker
    assert difference(limited(100), limited(None)).weaker
    assert not difference(limited(None), limited(100)).weaker
    assert not difference(limited(None), limited(100)).none


def test_the_validators_of_an_answer_are_compared() -> None:
    """A class of the same name and fields may take what the first refused."""

    def answer(least: int) -> type[BaseModel]:
        class Answer(BaseModel):
            score: int

            @field_validator("score")
            @classmethod
            def enough(cls, value: int) -> int:
                assert value >= least
                return value

        return Answer

    assert difference(given(output_type=answer(1)), given(output_type=answer(1))).none
    assert difference(given(output_type=answer(1)), given(output_type=answer(0))).weaker


JUDGED = """
graphloop: 1
name: essay
start: writer
nodes:
  writer: {{use: child, agent: writer, prompt: write}}
  said: {{use: append}}
  log: {{use: approve}}
  judge: {{use: approve}}
agents:
  writer: {{given: true}}
edges:
  writer: {{answered: said, else: END}}
  said: {{final: {first}, else: END}}
  judge: {{rejected: END, accepted: END, else: END}}
  log: {{accepted: judge, {no}, aborted: END}}
"""


def test_that_somebody_may_break_off_what_comes_before_a_check_is_no_loss() -> None:
    """Nobody takes an answer from a run that was aborted; the check was aborted like that, too."""
    before, after = (
        load(JUDGED.format(first=one, no="rejected: judge")) for one in ("judge", "log")
    )

    assert not [one for one in difference(before, after).verdict if one.subject == "guards"]
    ended = load(JUDGED.format(first="log", no="rejected: END"))
    (one,) = [one for one in difference(before, ended).verdict if one.subject == "guards"]
    assert "weaker" == one.effect
    assert one.path.endswith("log -rejected-> END")


def test_a_check_or_a_stop_where_none_was_is_no_loss() -> None:
    """It is the most usual stricter edit; to drop it again is one."""

    def agent(**options: Unpack[AgentOptions]) -> Graph[None]:
        return Agent(ScriptedModel(()), **options).graph

    def good(answer: AnswerInfo) -> bool:
        return bool(answer.text)

    for more in (
        agent(verify=good),
        agent(done_when=good),
        agent(stop_when=cost_exceeds(1)),
    ):
        assert "stronger" in {one.effect for one in difference(agent(), more).verdict}
        assert not difference(agent(), more).weaker
        assert difference(more, agent()).weaker
