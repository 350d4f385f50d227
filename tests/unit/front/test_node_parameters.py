"""Parameters of the library's nodes: what Python hands over is looked at as a graph is made."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any

import pytest

from graphloop import nodes, stop
from graphloop.effects import Effect
from graphloop.errors import ConfigError, GraphError
from graphloop.events import Event
from graphloop.front.graph import Graph
from graphloop.graph import END
from graphloop.node_protocol import Kind, Leave, Node, Reaction, outcomes_of
from graphloop.nodes.append import Append
from graphloop.nodes.critique import Critique
from graphloop.nodes.execute import Execute
from graphloop.nodes.gate import Gate
from graphloop.nodes.limit import Limit
from graphloop.nodes.model_call import ModelCall
from graphloop.nodes.prepare_step import PrepareStep
from graphloop.nodes.retrying import Retrying
from graphloop.nodes.stop_check import StopCheck
from graphloop.nodes.verify import AnswerCheck, Verify
from graphloop.outcomes import Go, Outcome
from graphloop.policy import Rule, allow, deny
from graphloop.providers.script import ScriptedModel
from graphloop.run import Run
from graphloop.values import ToolChoice
from tests.strategies import wrong


def graph_of(*given: Node[None, Outcome]) -> Graph[None]:
    """Return a graph of these nodes, each of which leads nowhere else."""
    return Graph("desk", given[0], {one: {...: END} for one in given})


def told(*given: Node[None, Outcome]) -> list[str]:
    """Return what a graph of these nodes is refused for."""
    with pytest.raises(GraphError) as refused:
        graph_of(*given)
    return [str(one) for one in refused.value.problems]


def gate(rules: object) -> Gate:
    return Gate(rules=wrong(rules))


RULES = "node 'gate': `rules` is a tuple[Rule, ...]; found"
FIX = (
    "Fix: write `rules=(allow(…) | deny(…)).rules`; a policy with `when` is given to the runs "
    "(`gate=`)."
)


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (gate(allow("search")), [RULES, "Policy(", FIX]),
        (gate((deny("search"),)), [RULES, "Policy(", "in it", FIX]),
        (gate(("search",)), [RULES, "'search' in it", FIX]),
        (
            gate((Rule(wrong("alow"), ("a",)),)),
            ["`rules[0].verdict` is one of 'allow', 'ask', 'deny'; found 'alow'. Did you mean"],
        ),
        (
            gate((Rule("allow", wrong("search")),)),
            ["`rules[0].tools` is a tuple[str, ...]; found 'search'", "`tools=('search',)`"],
        ),
        (
            StopCheck(conditions=wrong(stop.step_count_is(2))),
            ["node 'stop_check': `conditions` is a tuple[Condition, ...]", "`conditions=(…,)`."],
        ),
        (
            StopCheck(conditions=(wrong(stop.step_count_is),)),
            ["found <function step_count_is", "a function is invoked by its name (`callback=`)"],
        ),
        (
            StopCheck(callback=wrong(len)),
            ["`callback` is a str; found <built-in function len>", "(`callbacks=`)"],
        ),
        (
            PrepareStep(active_tools=wrong("search")),
            ["found 'search'. Fix: write `active_tools=('search',)`."],
        ),
        (
            PrepareStep(tool_choice=wrong("required")),
            ["is a ToolChoice; found 'required'. Fix: write `ToolChoice('required')`."],
        ),
        (
            PrepareStep(tool_choice=wrong("requird")),
            ["is a ToolChoice; found 'requird'. Fix: write `ToolChoice(…)`."],
        ),
        (
            PrepareStep(tool_choice=ToolChoice(wrong("requird"))),
            ["`tool_choice.mode` is one of 'auto', ", "Did you mean 'required'?"],
        ),
        (
            PrepareStep(compaction=wrong(1_000)),
            ["is a Compaction | None; found 1000. Fix: write `Compaction(…)`."],
        ),
        (
            ModelCall(model=wrong(ScriptedModel(["hi"]))),
            ["`model` is a str;", "the model's label, 'script', and give the model to the runs"],
        ),
        (ModelCall(fallbacks=wrong("a:b")), ["Fix: write `fallbacks=('a:b',)`."]),
        (ModelCall(model=wrong(5)), ["`model` is a str; found 5. Fix: write a text, in quotes."]),
        (ModelCall(fallbacks=wrong(5)), ["`fallbacks` is a tuple[str, ...]; found 5. Fix: give"]),
        (ModelCall(fallbacks=wrong(range(3))), ["found range(0, 3). Fix: give what is of this"]),
        (ModelCall(fallbacks=("a", wrong(5))), ["found 5 in it. Fix: write a text, in quotes."]),
        (Critique(wrong(len)), ["found <built-in function len>. Fix: write a text, in quotes."]),
        (Execute(hold=wrong("no")), ["`hold` is a bool; found 'no'. Fix: write True or False."]),
        (Execute(kind=wrong("pure")), ["`kind` is one of 'execute'; found 'pure'. Fix: leave"]),
        (ModelCall(kind=wrong("gate")), ["`kind` is one of 'model'; found 'gate'. Fix: leave"]),
        (Verify((AnswerCheck(wrong(5), 2),)), ["`checks[0].callback` is a str; found 5."]),
        (Verify(wrong("judge")), ["`checks` is a tuple[AnswerCheck, ...]; found 'judge'."]),
        (
            Retrying(ModelCall(model=wrong(b"x")), 2),
            ["node 'model_call': `model` is a str; found b'x'."],
        ),
    ],
)
def test_what_is_not_of_its_type_is_refused_with_a_fix(
    node: Node[None, Outcome], words: list[str]
) -> None:
    """It was told in the middle of a run, once a model had been paid for, or never."""
    (problem,) = told(node)

    assert not [one for one in words if one not in problem], problem


def test_all_are_told_at_once_and_with_what_is_wrong_with_the_table() -> None:
    """Each with its node and its parameter."""
    check, execute = StopCheck(conditions=wrong(5), callback=wrong(5)), Execute(hold=wrong(1))

    with pytest.raises(GraphError) as refused:
        Graph("", check, {check: {...: execute}, execute: {}})

    found = [str(one) for one in refused.value.problems]
    assert "the graph: has no name." in found[0]
    assert 3 == sum("row of 'execute'" in one and "leads nowhere" in one for one in found)
    assert ["`conditions`", "`callback`", "`hold`"] == [one.split()[2] for one in found[-3:]]


@pytest.mark.parametrize("junk", [object(), 5, -1, 0.5, "x", "", b"", None, True, len, str, ("x",)])
@pytest.mark.parametrize("made", [getattr(nodes, name) for name in nodes.__all__])
def test_no_parameter_raises_anything_else(made: Any, junk: object) -> None:
    """Whatever is given: a node or its graph refuses it, or it is of its type."""
    # A function is made by `@node`, which looks at all of it.
    if not hasattr(made, "enter") or made is nodes.Function:
        return
    needed = {
        "agent": "writer",
        "branches": ("a", "b"),
        "first": ModelCall(),
        "leaves_by": frozenset({Go}),
        "max_items": 3,
        "name": "node",
        "node": ModelCall(),
        "prompt": "Which?",
        "routes": {Go: "go on"},
        "second": ModelCall("other"),
        "times": 2,
    }
    names = [one.name for one in dataclasses.fields(made)]
    given = {name: one for name, one in needed.items() if name in names}
    for name in set(names) - {"first", "second", "node"}:
        try:
            graph_of(made(**{**given, name: junk}))
        except ConfigError:
            continue


def test_what_is_of_its_type_is_taken() -> None:
    """Conditions of one's own as well: a protocol says what they are."""

    @dataclass(frozen=True)
    class Late:
        name: str = "late"

        def holds(self, info: stop.StopInfo, /) -> bool:
            return info.step_count > 3

    conditions = (Late(), stop.any_of(stop.has_tool_call("a"), stop.not_(stop.cost_exceeds(1))))
    graph = graph_of(
        StopCheck(conditions=conditions),
        Gate(rules=(allow("a") | deny("*")).rules),
        PrepareStep(active_tools=("a",), tool_choice=ToolChoice("tool", "a", "first_step")),
        Append(),
    )

    assert 4 == len(graph.nodes)


@dataclass(frozen=True)
class Own:
    """A node of somebody's own, which keeps its annotations as it likes."""

    name: str = "own"
    size: int = 3
    of: Nowhere = None  # type: ignore[name-defined] # noqa: F821 # pyright: ignore[reportUndefinedVariable]
    kind: Kind = "pure"
    outcomes = outcomes_of(Go)

    def enter(self, run: Run[None], /) -> Reaction[None, Go]:
        """Go on."""
        return Leave(run, Go())

    def on(self, run: Run[None], event: Event, answered: Effect | None, /) -> Reaction[None, Go]:
        """Go on."""
        return Leave(run, Go())


@dataclass(frozen=True)
class Counting(Limit):
    """A node of the library, with more to it."""

    label: str = ""
    wide: Nowhere = None  # type: ignore[name-defined] # noqa: F821 # pyright: ignore[reportUndefinedVariable]


@dataclass(frozen=True)
class Labelled(Limit):
    """A node of the library, with more to it."""

    label: str = ""


def test_nodes_of_ones_own_are_left_alone() -> None:
    """What they do with their fields is theirs; those derived from the library's keep to them."""
    assert graph_of(Own(size=wrong("three")))
    assert graph_of(Counting(2, label=wrong(5)))
    assert ["node 'limit': `label` is a str; found 5. Fix: write a text, in quotes."] == told(
        Labelled(2, label=wrong(5))
    )


@dataclass(frozen=True)
class Inner:
    """A value whose class says what it holds by a name that only type checkers know."""

    of: Nowhere = None  # type: ignore[name-defined] # noqa: F821 # pyright: ignore[reportUndefinedVariable]


@dataclass(frozen=True, kw_only=True)
class Derived(Gate):
    """A gate with fields of every sort."""

    level: InitVar[int]
    compiled: tuple[str, ...] = field(init=False, compare=False)
    names: list[str] = field(default_factory=list[str])
    several: Sequence[str] = ()
    inner: Inner | None = None

    def __post_init__(self, level: int) -> None:
        """Need the level for something, and what is compiled for nothing."""
        super().__post_init__()
        assert level


def test_what_a_derived_node_does_with_its_fields_is_its_own() -> None:
    """What is not set, what only the making needs, and what a class alone knows is passed over."""
    assert graph_of(Derived(level=1, inner=Inner()))


def test_a_list_is_taken_as_a_tuple_where_a_list_is_expected_as_well() -> None:
    """Nobody wrote the tuple that was found."""
    assert graph_of(Derived(level=1, names=["a"], several=["b"]))
    (problem,) = told(Derived(level=1, names=["a", wrong(5)]))
    assert "`names` is a list[str]; found 5 in it. Fix: write a text, in quotes." in problem
