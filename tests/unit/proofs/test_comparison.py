"""compare: how two graphs differ, and what the later one promises less."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from typing_extensions import Unpack

from graphloop import Agent, budget, tool
from graphloop.agent.hooks import AnswerInfo
from graphloop.agent.options import AgentOptions
from graphloop.contract import ChildContract, Contract
from graphloop.errors import ConfigError
from graphloop.graph import END, NodeGraph, Surroundings
from graphloop.limits.stop import cost_exceeds, step_count_is
from graphloop.loop import Standard
from graphloop.node_protocol import Kind, Node
from graphloop.nodes import (
    AnswerCheck,
    Append,
    Approve,
    Child,
    Critique,
    Execute,
    Function,
    Gate,
    Limit,
    ModelCall,
    PrepareStep,
    Router,
    StopCheck,
    Verify,
)
from graphloop.outcomes import Answered, Done, Outcome
from graphloop.own_nodes import sub_graph
from graphloop.policy.policy import Policy, Rule, allow, ask, deny
from graphloop.proofs.comparison import compare
from graphloop.proofs.guards import gate_changes
from graphloop.proofs.parameter_changes import node_changes, written
from graphloop.rules import Rules, at_most, never, only_after
from graphloop.testing import ScriptedModel
from graphloop.topology.document import with_graphs
from graphloop.topology.loaded import load
from tests.changed_loop import bypassed, changed, gateless, unbounded
from tests.graphs import OUTCOMES, Place, build
from tests.varied_graphs import Onward

MODEL = ScriptedModel(())
KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("triage", "think"), "model"),
    **dict.fromkeys(("small", "big", "last"), "human"),
    **dict.fromkeys(("deploy", "revise"), "execute"),
    **dict.fromkeys(("judge", "audit"), "check"),
}


def made(**table: list[str]) -> NodeGraph[None]:
    """Return the graph whose n-th outcome of each node leads to the n-th name in its row."""
    return build(table, {name: KINDS[name] for name in table if name in KINDS})


def losses(before: NodeGraph[Any], after: NodeGraph[Any]) -> list[str]:
    """Return what the later graph promises less."""
    return [one.message for one in compare(before, after).changes if one.effect == "weaker"]


def test_tools_reached_past_their_gate_are_weaker() -> None:
    """The sentence that a reviewer reads first."""
    found = compare(changed(), changed(bypassed))

    assert found.weaker
    assert str(found).splitlines()[:3] == [
        "graph agent: weaker",
        "  weaker: `execute` becomes reachable without `gate`",
        "    witness: prepare_step -ready-> model_call -calls-> execute",
    ]
    assert str(found).splitlines()[-1] == "  ~ model_call -calls-> execute (was gate)"
    assert "GL2" in {one.subject for one in found.changes}
    gone = str(compare(changed(), changed(gateless)))
    assert "`execute` becomes reachable without `gate`" in gone
    assert "- node gate\n  - gate -settled-> execute" in gone


def test_the_same_graph_has_no_difference_and_says_so() -> None:
    """Empty output could be an error."""
    found = compare(changed(), changed())

    assert found.none
    assert str(found) == "graph agent: no difference"
    assert json.loads(found.to_json())["weaker"] is False


def test_a_graph_of_another_name_or_start_is_another() -> None:
    """Journals know graphs by their names."""
    one = build({"a": ["b"], "b": ["a", "END"]})
    named = compare(one, build({"a": ["b"], "b": ["a", "END"]}, name="h"))
    begun = compare(one, build({"b": ["a", "END"], "a": ["b"]}))

    assert not named.none
    assert not named.weaker
    assert "graph 'g' -> 'h': not weaker" == str(named)
    assert "the start is `b`, and was `a`" in str(begun)


def test_a_bound_that_grows_or_goes_is_weaker() -> None:
    """A change of one number may cost ten times as much."""
    few, many = (changed(None, Standard(stop=StopCheck(max_steps=most))) for most in (5, 20))

    assert losses(few, many) == [
        "worst-case model calls 10 -> 40",
        "max_steps of `stop_check`: 5 -> 20",
    ]
    assert losses(many, few) == []
    assert "worst-case model calls 40 -> unbounded" in losses(changed(), changed(unbounded))
    assert "GL4" in {one.subject for one in compare(changed(), changed(unbounded)).changes}


def test_an_end_without_its_check_is_weaker() -> None:
    """An audit stands at the end of every run, or of no run."""
    before = made(work=["audit"], audit=["END"])

    assert "a run can end without `audit`" in losses(
        before, made(work=["audit", "END"], audit=["END"])
    )


def test_guards_on_two_ways_guard_together() -> None:
    """None of them is always passed, and one of them always is."""
    rest = {"small": ["deploy", "END"], "big": ["deploy", "END"], "deploy": ["END"]}
    before = made(triage=["small", "big", "small"], **rest)
    after = made(triage=["small", "big", "deploy"], **rest)

    assert "`deploy` becomes reachable without `small` or `big`" in losses(before, after)
    stages = {"small": ["last"], "big": ["last"], "last": ["deploy"], "deploy": ["END"]}
    before = made(triage=["small", "big", "END"], **stages)
    after = made(triage=["small", "big", "last"], **stages)
    assert losses(before, after) == ["`last` becomes reachable without `small` or `big`"]


def test_the_last_guard_of_a_table_counts_where_no_run_ends() -> None:
    """The table may have no row to END; its last node guards as any other does."""
    before, after = (
        made(think=[to], plain=["think"], small=["plain"]) for to in ("small", "plain")
    )

    assert losses(before, after)[0] == "`plain` becomes reachable without `small`"


def test_an_answer_where_no_run_gave_one_is_told_with_words() -> None:
    """Each line of a comparison says something."""
    failing = ["think", "think", "think", "END"]
    answering = ["think", "END", "think", "END"]

    assert "a run can end without a guard" in losses(made(think=failing), made(think=answering))


def test_a_no_that_leads_on_is_a_new_way() -> None:
    """A guard counts by the outcome that it was left by."""
    before, after = (made(small=["deploy", no], deploy=["END"]) for no in ("END", "deploy"))

    assert "`deploy` becomes reachable by a new way, from `small -answered->`" in losses(
        before, after
    )


def test_what_acts_again_without_its_guard_is_weaker() -> None:
    """What was revised is not what was approved."""
    once, again = (made(think=["deploy"], deploy=to) for to in (["END"], ["END", "deploy"]))
    rest = {"small": ["triage", "END"], "triage": ["deploy", "revise"], "deploy": ["END"]}

    assert "`deploy` can be visited again with no guard between" in losses(once, again)
    assert losses(made(**rest, revise=["small"]), made(**rest, revise=["deploy"]))


def test_a_guard_more_on_the_way_is_no_loss() -> None:
    """A reviewer must not be told off for an edit that is stricter."""
    before = made(triage=["small", "END"], small=["deploy", "END"], deploy=["END"])
    behind = made(triage=["small", "END"], small=["last", "END"], last=["deploy"], deploy=["END"])
    ahead = made(triage=["last", "END"], last=["small"], small=["deploy", "END"], deploy=["END"])

    assert losses(before, behind) == []
    assert losses(before, ahead) == []


def test_an_act_that_is_new_is_weaker_and_told_with_its_way() -> None:
    """An approval is not got rid of by calling what it guards something else."""
    before = made(think=["small", "END"], small=["deploy"], deploy=["END"])
    after = made(think=["small", "revise"], small=["deploy"], deploy=["END"], revise=["END"])
    silent = made(think=["small", "END"], small=["deploy"], deploy=["END"], revise=["END"])
    (found,) = [one for one in compare(before, after).changes if one.subject == "acts"]

    assert (found.effect, found.message) == ("weaker", "`revise` is new, and acts")
    assert str(found).endswith("witness: think -answered-> revise")
    assert "`revise` acts, and did not" in losses(silent, after)


def test_a_node_of_another_class_or_kind_is_told() -> None:
    """The name is the same, and what stood there does not stand there any more."""
    guard, plain = (build({"a": ["END"]}, {"a": one}) for one in ("check", "pure"))

    assert "`a` is a Place of kind pure, and was a Place of kind check" in losses(guard, plain)


RULES: list[tuple[Policy, Policy, list[str]]] = [
    (ask("pay"), allow("pay"), ["may allow 'pay', and did ask about it before"]),
    (allow("pay"), deny("pay"), []),
    (allow("a") | ask("b"), ask("a") | allow("b"), ["may allow 'b', and did ask about it before"]),
    (deny("a_*") | allow("*_b"), allow("*_b") | deny("a_*"), ["may allow 'a_x_b'"]),
    (ask("pay", when=bool), allow("pay", when=bool), ["has other rules"]),
    (Policy((Rule("ask", ("pay",), ttl_s=6),)), ask("pay"), ["has other rules"]),
    (Policy((Rule("deny", ("pay",), reason="no"),)), deny("pay"), []),
]


@pytest.mark.parametrize(("old", "new", "weaker"), RULES)
def test_a_gate_is_told_by_what_it_decides(old: Policy, new: Policy, weaker: list[str]) -> None:
    """What it allows that it asked about or denied; what cannot be judged is weaker."""
    found = list(gate_changes("`gate`", old.rules, new.rules))
    told = [one.message for one in found if one.effect == "weaker"]

    assert found
    assert len(told) == len(weaker)
    assert all(said.startswith(f"`gate` {words}") for said, words in zip(told, weaker, strict=True))
    assert not list(gate_changes("`gate`", old.rules, old.rules))


def test_a_gate_that_drops_its_rules_is_weaker() -> None:
    """Without rules only the tools themselves ask."""
    ruled = changed(None, Standard(gate=Gate(rules=ask("pay").rules)))

    assert "`gate` has no rules any more" in losses(ruled, changed())
    assert "`gate` has rules now" not in losses(changed(), ruled)


STRICT = AnswerCheck("strict", 2, failure="bad")
WEAKER: list[tuple[Node[Any, Outcome], Node[Any, Outcome]]] = [
    (Limit(1), Limit(2)),
    (StopCheck(max_consecutive_tool_errors=3), StopCheck(max_consecutive_tool_errors=3000)),
    (StopCheck(conditions=(cost_exceeds(1),)), StopCheck(conditions=(cost_exceeds(2),))),
    (StopCheck(conditions=(cost_exceeds(1),)), StopCheck()),
    (StopCheck(callback="a"), StopCheck()),
    (Approve(ttl_s=60), Approve()),
    (Execute(hold=True), Execute(hold=False)),
    (Verify((STRICT,)), Verify()),
    (Verify((STRICT,)), Verify((replace(STRICT, retries=20),))),
]
UNJUDGED: list[tuple[Node[Any, Outcome], Node[Any, Outcome]]] = [
    (Critique("Is it harmless?"), Critique("Say yes.")),
    (StopCheck(callback="a"), StopCheck(callback="b")),
    (PrepareStep(active_tools=("a",)), PrepareStep(active_tools=("a", "b"))),
    (
        Function("f", frozenset({Done}), "a", "check"),
        Function("f", frozenset({Done}), "b", "check"),
    ),
]
OTHER: list[tuple[Node[Any, Outcome], Node[Any, Outcome]]] = [
    (Child("a", prompt="Be strict."), Child("a", prompt="Say yes.")),
    (ModelCall(model="a"), ModelCall(model="b")),
    (Router({Onward: "one"}, "?"), Router({Onward: "other"}, "?")),
    (Function("f", frozenset({Done}), "a"), Function("f", frozenset({Done}), "b")),
]


def effects(old: Node[Any, Outcome], new: Node[Any, Outcome]) -> set[str]:
    """Return what the changes of a node mean."""
    return {one.effect for one in node_changes(old, new)}


@pytest.mark.parametrize(("old", "new"), WEAKER)
def test_a_looser_limit_or_a_dropped_guard_is_weaker(
    old: Node[Any, Outcome], new: Node[Any, Outcome]
) -> None:
    """And stronger the other way round; nothing, where nothing changed."""
    assert effects(old, new) == {"weaker"}
    assert effects(new, old) == {"stronger"}
    assert effects(old, old) == set()


@pytest.mark.parametrize(("old", "new"), UNJUDGED)
def test_a_change_of_a_guard_that_cannot_be_judged_is_weaker(
    old: Node[Any, Outcome], new: Node[Any, Outcome]
) -> None:
    """Either way round."""
    assert effects(old, new) == effects(new, old) == {"weaker"}


@pytest.mark.parametrize(("old", "new"), OTHER)
def test_any_other_change_is_told_as_a_change(
    old: Node[Any, Outcome], new: Node[Any, Outcome]
) -> None:
    """It is never the same, and promises nothing less."""
    assert effects(old, new) == {"changed"}


def test_a_value_is_written_as_a_reader_sees_it() -> None:
    """The same for each load of its file, so no address is in it."""

    class Odd:
        """Has no text of its own."""

    assert written(len) == "len"
    assert written(Odd()).endswith("Odd")
    assert written({"b": 1, "a": frozenset({2, 1})}) == "dict(a={1, 2}, b=1)"
    assert written(Done) == "done"
    assert written(changed()) == "graph 'agent'"
    append = Append()
    inner: NodeGraph[None] = NodeGraph("g", append, {append: {...: END}})
    assert effects(Child("kid"), with_graphs(Child("kid"), {"kid": inner})) == set()


SAFE = made(a=["review"], review=["deploy"], deploy=["END"])
LED_PAST = made(a=["review", "deploy"], review=["deploy"], deploy=["END"])
REVIEWED = never("node:deploy", before="node:review")


def ruled(before: NodeGraph[None], after: NodeGraph[None], rules: Rules) -> list[tuple[str, str]]:
    """Return what is said about rules that both are given."""
    found = compare(before, after, rules).changes
    return [(one.effect, one.message) for one in found if one.subject == "rule"]


@pytest.mark.parametrize("rule", [REVIEWED, only_after("deploy", "review")], ids=str)
def test_a_rule_that_was_proven_and_can_be_broken_is_weaker(rule: Rules) -> None:
    """With a way that breaks it; and it is stronger the other way round."""
    (found,) = [one for one in compare(SAFE, LED_PAST, rule).changes if one.subject == "rule"]

    assert found.effect == "weaker"
    assert found.message.endswith("can be broken; in the earlier graph it is proven")
    assert str(found).endswith("witness: a -answered-> deploy")
    assert [effect for effect, _ in ruled(LED_PAST, SAFE, rule)] == ["stronger"]
    assert ruled(SAFE, SAFE, rule) == ruled(LED_PAST, LED_PAST, rule) == []


def test_a_rule_that_means_nothing_is_weaker_or_refused() -> None:
    """It would guard nothing, and every change would pass."""
    bare = made(a=["deploy"], deploy=["END"])

    assert [effect for effect, _ in ruled(SAFE, bare, REVIEWED)] == ["weaker"]
    assert [effect for effect, _ in ruled(bare, SAFE, REVIEWED)] == ["stronger"]
    with pytest.raises(ConfigError, match="nosuch"):
        compare(SAFE, bare, never("nosuch"))


def keeping(rules: Rules) -> NodeGraph[None]:
    """Return a loop whose runs keep rules."""
    return Agent(MODEL, tools=[refund], rules=rules).graph


@tool
def refund(amount: int = 1) -> str:
    """Pay back."""
    return str(amount)


def test_a_removed_rule_is_weaker_unless_it_still_holds() -> None:
    """Nothing holds a run to it any more."""
    five, three, none = (
        keeping(one) for one in (at_most("refund", 5), at_most("refund", 3), Rules())
    )

    assert losses(five, none) == ["the rule 'refund at most 5 times' is removed"]
    assert losses(five, three) == []
    assert len(losses(three, five)) == 1
    assert losses(none, five) == []
    assert losses(keeping(only_after("execute", "gate")), none) == []
    a, b = (keeping(at_most("refund", 5, reason=why)) for why in "ab")
    assert [one.effect for one in compare(a, b).changes] == ["changed"]


def asking() -> Any:
    """Return the tool that asks a person."""

    @tool(needs_approval=True)
    def refund(amount: int = 1) -> str:
        """Pay back."""
        return str(amount)

    return refund


def agent(**options: Unpack[AgentOptions]) -> NodeGraph[None]:
    """Return an agent's graph."""
    return Agent(MODEL, **options).graph


def good(answer: AnswerInfo) -> bool:
    """Say whether there is an answer."""
    return bool(answer.text)


GIVEN: list[tuple[Callable[[], NodeGraph[None]], Callable[[], NodeGraph[None]], bool]] = [
    (lambda: agent(instructions="a"), lambda: agent(instructions="b"), False),
    (lambda: agent(tools=[refund]), agent, False),
    (agent, lambda: agent(tools=[refund]), True),
    (lambda: agent(tools=[asking()]), lambda: agent(tools=[refund]), True),
    (lambda: agent(tools=[refund]), lambda: agent(tools=[asking()]), False),
    (lambda: agent(budget=budget(usd=1)), lambda: agent(budget=budget(usd=2)), True),
    (lambda: agent(budget=budget(usd=2)), lambda: agent(budget=budget(usd=1)), False),
    (lambda: agent(verify=good), agent, True),
    (agent, lambda: agent(verify=good), False),
    (agent, lambda: agent(done_when=good), False),
    (agent, lambda: agent(stop_when=cost_exceeds(1)), False),
    (lambda: agent(stop_when=step_count_is(3)), lambda: agent(stop_when=step_count_is(2)), False),
    (
        lambda: agent(tools=[asking()], approval_ttl_s=3),
        lambda: agent(tools=[asking()]),
        True,
    ),
    (
        lambda: agent(tools=[asking()], approval_secret="a" * 32),
        lambda: agent(tools=[asking()]),
        True,
    ),
    (
        lambda: agent(tools=[refund], gate=ask("refund")),
        lambda: agent(tools=[refund], gate=allow("refund")),
        True,
    ),
]


@pytest.mark.parametrize(("before", "after", "weaker"), GIVEN)
def test_what_runs_are_given_is_compared(
    before: Callable[[], NodeGraph[None]], after: Callable[[], NodeGraph[None]], weaker: bool
) -> None:
    """The table may be the same, and nothing asks a person any more."""
    found = compare(before(), after())

    assert not found.none
    assert found.weaker is weaker
    assert compare(before(), before()).none


def test_what_check_sets_aside_is_compared() -> None:
    """A finding that nothing tells any more is a promise less."""
    text = "graphloop: 1\nname: g\nstart: a\nnodes: {a: {use: append}}\nedges: {a: {else: END}}\n"
    ignored = load(f"{text}ignore: [{{node: a, code: GL6, reason: So.}}]")

    assert losses(load(text), ignored) == ["GL6 of 'a' is set aside: None -> 'So.'"]
    assert losses(ignored, load(text)) == []


@dataclass(frozen=True)
class Parent(Place):
    """A node that runs graphs under one name."""

    graphs: tuple[NodeGraph[None] | None, ...] = ()
    rules: tuple[Rule, ...] | None = None

    @property
    def contract(self) -> Contract:
        kids = [ChildContract("kid", one, gate_rules=self.rules) for one in self.graphs]
        return Contract(children=tuple(kids))


def parent(*graphs: NodeGraph[None] | None, gate: Policy | None = None) -> NodeGraph[None]:
    """Return a graph of a node that runs others."""
    rules = None if gate is None else gate.rules
    node = Parent("a", frozenset(OUTCOMES[:1]), graphs=graphs, rules=rules)
    return NodeGraph("g", node, {node: {OUTCOMES[0]: END}})


def test_an_agent_that_got_weaker_makes_its_parent_weaker() -> None:
    """The parent's own table is the same."""
    found = compare(parent(parent(changed())), parent(parent(changed(bypassed))))

    assert found.weaker
    assert "in the agent 'kid/kid':" in str(found)
    assert "`execute` becomes reachable without `gate`" in str(found)
    assert json.loads(found.to_json())["children"]["kid/kid"]["changes"]
    assert compare(parent(changed()), parent(changed())).none


def test_several_agents_of_one_name_are_compared_in_their_order() -> None:
    """None of them hides behind another."""
    before = parent(changed(), changed())

    assert [*compare(before, parent(changed(), changed(bypassed))).children] == ["kid (2)"]
    assert compare(before, parent(changed(bypassed), changed())).weaker
    assert compare(parent(changed()), parent(changed(), changed(bypassed))).weaker


def test_a_new_unknown_or_softer_agent_is_weaker() -> None:
    """What cannot be compared is never taken for the same."""
    assert "the agent 'kid' is new" in losses(parent(), parent(changed()))
    assert losses(parent(changed()), parent()) == []
    assert "nothing compares the agent 'kid'" in losses(parent(changed()), parent(None))
    softer = losses(parent(None, gate=ask("pay")), parent(None, gate=allow("pay")))
    assert "the gate of the agent 'kid' may allow 'pay', and did ask about it before" in softer


def test_a_graph_that_many_run_is_compared_once() -> None:
    """Else a text would be as long as there are ways to it, which are beyond counting."""

    def layered(steps: int) -> NodeGraph[None]:
        inner = changed(None, Standard(stop=StopCheck(max_steps=steps)))
        for _ in range(12):
            outer = parent(inner)
            outer.surroundings = Surroundings(agents={"left": inner, "right": inner})
            inner = outer
        return inner

    found = compare(layered(3), layered(4))
    assert found.weaker
    assert len(str(found)) < 20_000


def told_of(instructions: str, *, as_node: bool) -> NodeGraph[None]:
    """Return a graph that runs another with these instructions, by a node or as a tool."""
    worker = load(
        "graphloop: 1\nname: w\nstart: m\nnodes: {m: {use: model_call}, a: {use: append}}\n"
        "edges: {m: {answered: a, else: END}, a: {else: END}}"
    )
    if as_node:
        node = sub_graph(worker, model=MODEL, options={"instructions": instructions})
        append = Append()
        return NodeGraph("g", node, {node: {Answered: append, ...: END}, append: {...: END}})
    given = worker.as_tool(None, model=MODEL, description="W.", instructions=instructions)
    return Agent(MODEL, tools=[given]).graph


@pytest.mark.parametrize("as_node", [True, False])
def test_the_options_of_an_agent_are_compared(as_node: bool) -> None:
    """A graph as a node, or as a tool, has options that its table does not know."""
    found = compare(told_of("a", as_node=as_node), told_of("b", as_node=as_node))

    assert "instructions of the runs: 'a' -> 'b'" in str(found)
    assert compare(told_of("a", as_node=as_node), told_of("a", as_node=as_node)).none
