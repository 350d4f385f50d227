"""Nodes in a file: read by their models, and written so that they are read as equal."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from graphloop import nodes as library
from graphloop.conversation.compaction import Compaction
from graphloop.errors import ConfigError
from graphloop.limits import stop
from graphloop.node_protocol import Node
from graphloop.nodes import (
    AnswerCheck,
    Append,
    Approve,
    Branch,
    Child,
    Compact,
    Critique,
    Execute,
    Fallback,
    Function,
    Gate,
    Limit,
    ModelCall,
    Parallel,
    PrepareStep,
    Retrying,
    Router,
    StopCheck,
    Verify,
)
from graphloop.outcomes import Failed, Outcome
from graphloop.own_nodes.route_outcomes import route_outcome
from graphloop.policy.policy import Rule
from graphloop.topology.node_models import NodeKind, meaning_of
from graphloop.topology.registration import LIBRARY, Registry
from graphloop.topology.writer import UnwritableError, node_data
from graphloop.values import ToolChoice
from tests.strategies import wrong
from tests.topology_forms import NAMES, REGISTRY, read, refusal, written


@dataclass(frozen=True)
class Level:
    """How polite."""

    words: tuple[str, ...] = ()
    most: int | None = None


@dataclass(frozen=True)
class Polite(Append):
    """Append, and say please.

    Args:
        word: what to say.
    """

    word: str = "please"
    level: Level = Level()
    moods: frozenset[Literal["calm", "glad"]] = frozenset()


class Own(Outcome):
    """A class of one's own."""


REGISTRY.node(Polite, name="polite")
REGISTRY.node(Append("closing"))

CONDITION = stop.any_of(
    stop.all_of(stop.step_count_is(5), stop.not_(stop.has_tool_call("done"))),
    stop.total_tokens_exceed(9),
    stop.cost_exceeds(0.5),
    stop.duration_exceeds(60),
)
SALES = route_outcome("sales")
RULES = (
    Rule("ask", ("pay",), "over", ttl_s=60),
    Rule("allow", ("a", "b*")),
    Rule("deny", ("*",), reason="never"),
)
FULL: tuple[tuple[str, Node[Any, Any]], ...] = (
    ("use: limit, times: 3", Limit(3, "a")),
    ("use: approve, ttl_s: 0.5", Approve("a", 0.5)),
    ("use: approve, ttl_s: null", Approve("a")),
    ("use: model_call, model: m, fallbacks: [n]", ModelCall("a", "m", ("n",))),
    ("use: execute, max_tool_concurrency: 2, hold: false", Execute("a", 2, hold=False)),
    ("use: polite, word: now", Polite("a", word="now")),
    (
        "use: polite, level: {words: [x, y], most: 3}, moods: [glad]",
        Polite("a", level=Level(("x", "y"), 3), moods=frozenset({"glad"})),
    ),
    ("use: retrying, node: {use: model_call}, times: 2", Retrying(ModelCall(), 2, name="a")),
    (
        "use: retrying, node: {use: model_call, name: b}, times: 2, after: failed",
        Retrying(ModelCall("b"), 2, name="a"),
    ),
    (
        "use: fallback, first: {use: child, agent: w}, second: {use: child, agent: w, name: b}",
        Fallback(Child("w"), Child("w", "b"), name="a"),
    ),
    ("use: router, prompt: to, routes: {sales: to buy}", Router({SALES: "to buy"}, "to", "a")),
    (
        "use: function, leaves_by: [sales], callback: helps, caps: {sales: 3}, kind: act",
        Function("a", frozenset({SALES}), "helps", "act", ((SALES, 3),)),
    ),
    (
        "use: function, leaves_by: [failed], callback: helps, reads: [b, c], capped: sales",
        Function("a", frozenset({Failed}), "helps", reads=frozenset({"b", "c"}), capped=SALES),
    ),
    (
        "use: gate, rules: [{ask: pay, when: over, ttl_s: 60}, {allow: [a, 'b*']}, "
        "{deny: '*', reason: never}]",
        Gate("a", RULES),
    ),
    (
        "use: stop_check, max_steps: 3, conditions: [{any_of: [{all_of: [{step_count_is: 5}, "
        "{not: {has_tool_call: done}}]}, {total_tokens_exceed: 9}, {cost_exceeds: 0.5}, "
        "{duration_exceeds: 60}]}]",
        StopCheck("a", 3, conditions=(CONDITION,)),
    ),
    (
        "use: prepare_step, active_tools: [x], tool_choice: required, "
        "compaction: {context_window: 2000, target: 1, layers: [summarize]}",
        PrepareStep(
            "a",
            ("x",),
            ToolChoice("required"),
            compaction=Compaction(2000, target=1, layers=("summarize",)),
        ),
    ),
    (
        "use: prepare_step, tool_choice: {mode: tool, name: x}",
        PrepareStep("a", tool_choice=ToolChoice("tool", "x")),
    ),
    ("use: compact, compaction: null, callback: helps", Compact("a", None, "helps")),
    (
        "use: verify, checks: [{callback: helps, retries: 0, given_up: x}]",
        Verify((AnswerCheck("helps", 0, "x"),), "a"),
    ),
    (
        "use: parallel, branches: [w, {agent: w, prompt: go}], join: first",
        Parallel((Branch("w"), Branch("w", "go")), "first", name="a"),
    ),
)


@pytest.mark.parametrize(("text", "node"), FULL, ids=[text[:40] for text, _ in FULL])
def test_a_node_reads_back_as_it_is_written(text: str, node: Node[Any, Outcome]) -> None:
    """The library's, and those that are registered as a class, with all their forms."""
    made = read(f"{{{text}, name: a}}", "w")

    assert made == node
    assert repr(made) == repr(node) or "frozenset" in repr(node)
    assert node == read(written(node), "w")


def test_a_registered_node_is_named_by_its_use() -> None:
    """Under its own name only, if it cannot be renamed."""
    assert Append("closing") == read("{use: closing}")
    assert "under its own name only" in refusal("{use: closing, name: b}")


def test_a_node_within_another_has_its_kinds_name_or_its_own() -> None:
    """It has no key to be named by."""
    assert ModelCall() == read("{use: model_call}")
    assert ModelCall("a") == read("{use: model_call, name: a}")
    function = read("{use: function, leaves_by: [sales], callback: helps}")
    assert "function" == function.name
    outer: Retrying[None] = Retrying(Child("w", "b"), 1, name="a")
    assert {"use": "child", "agent": "w", "name": "b"} == node_data(outer, NAMES)["node"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{use: limt, times: 3}", "Did you mean 'limit'?"),
        ("{times: 3}", "`use`"),
        ("{use: 3}", "a:1:7: `use`: expected text"),
        ("x", "expected a mapping"),
        ("{use: limit, times: 1.0}", "write 1."),
        ("{use: limit, times: true}", "`times`: expected a whole number, found the boolean true"),
        ("{use: limit, times: 0}", "at least 1"),
        ("{use: limit, times: }", "found nothing"),
        ("{use: limit}", "`times`"),
        ("{use: limit, tmes: 1, times: 1}", "Did you mean 'times'?"),
        ("{use: polite, word: 3}", "write '3' in quotes"),
        ("{use: polite, level: {wrods: [a]}}", "Did you mean 'words'?"),
        ("{use: polite, moods: glad}", "expected a list"),
        ("{use: polite, moods: [gald]}", "Did you mean 'glad'?"),
        ("{use: critique, prompt: ' '}", "says something"),
        ("{use: approve, ttl_s: 0}", "above 0"),
        ("{use: approve, ttl_s: true}", "`ttl_s`: expected a number"),
        ("{use: execute, hold: yes}", "yes, no, on and off are text here"),
        ("{use: parallel, branches: [w], join: frist}", "Did you mean 'first'?"),
        ("{use: parallel, branches: w}", "expected a list"),
        ("{use: parallel, branches: []}", "`branches`"),
        ("{use: parallel, branches: [w, w], callback: helps, reducer: first}", "name one of them"),
        ("{use: prepare_step, tool_choice: oddly}", "1:34: `mode`: expected one of auto"),
        ("{use: prepare_step, compaction: {context_window: 999}}", "at least 1000"),
        (
            "{use: prepare_step, compaction: {context_window: 2000, target: 2}}",
            "1:64: `target`: expected a share",
        ),
        ("{use: retrying, node: {use: execute}, times: 2}", "must not happen twice"),
        ("{use: retrying, node: {use: limt}, times: 2}", "a:1:29: there is no kind of node 'limt'"),
        (
            "{use: retrying, node: {use: model_call}, times: 2, after: go}",
            "1:59: `after`: expected outcomes of 'model_call'",
        ),
        ("{use: function, leaves_by: [sales]}", "`callback`"),
        ("{use: function, leaves_by: [], callback: helps}", "something in it"),
        ("{use: function, leaves_by: [else], callback: helps}", "stands for the rest"),
        ("{use: function, leaves_by: [Sales], callback: helps}", "snake case"),
        ("{use: function, leaves_by: [sales], callback: helps, capped: else}", "the rest"),
        ("{use: function, leaves_by: [a_b_c_d], callback: helps}", "one letter"),
        ("{use: function, leaves_by: [sales], callback: helps, caps: {else: 2}}", "1:61: 'else'"),
        ("{use: function, leaves_by: [sales], callback: helps, caps: {sales: -1}}", "at least 0"),
        ("{use: router, prompt: to, routes: {else: x}}", "1:36: 'else' stands for the rest"),
        ("{use: router, prompt: to, routes: {settled: x}}", "is an outcome of graphloop's own"),
        ("{use: router, prompt: to, routes: {}}", "something in it"),
        ("{use: function, leaves_by: [sales], callback: os.system}", "Registered are helps"),
        ("{use: gate, rules: [{allow: a, when: overr}]}", "Did you mean 'over'?"),
        ("{use: gate, rules: [{allow: a, ttl_s: 3}]}", "1:32: `ttl_s`"),
        ("{use: gate, rules: [allow]}", "1:21: `rules`: expected a mapping"),
        ("{use: gate, rules: [{allow: []}]}", "1:29: `allow`: expected something in it"),
        ("{use: gate, rules: []}", "`rules`: expected something in it"),
        ("{use: gate, rules: [{allow: '*'}, {ask: a}]}", "1:35: the rule `ask a` has no effect"),
        ("{use: child, agent: write}", "Did you mean 'writer'?"),
        ("{use: stop_check, conditions: [{step_count: 5}]}", "Did you mean 'step_count_is'?"),
        ("{use: stop_check, conditions: [{step_count_is: 0}]}", "1:48: `step_count_is`"),
        ("{use: stop_check, conditions: [{any_of: []}]}", "1:41: `any_of`"),
        ("{use: stop_check, conditions: [stop]}", "1:32: `conditions`: expected a mapping"),
    ],
)
def test_a_text_of_no_node_is_refused(text: str, said: str) -> None:
    """A message says what was expected, what was found, where, and what to write."""
    assert said in refusal(text, "writer", "w")


def test_all_that_is_wrong_with_a_node_is_told() -> None:
    """Missing, unknown and wrong keys at once, at any depth."""
    found = refusal(
        "{use: fallback, odd: 1, first: {use: limit, times: x}, "
        "second: {use: parallel, branches: [v, {prompt: 3}], join: 1}}"
    )

    places = [line.split(": ")[0] for line in found.splitlines()]
    assert ["a:1:52", "a:1:91", "a:1:94", "a:1:103", "a:1:114", "a:1:17"] == places, found


@pytest.mark.parametrize(
    ("node", "said"),
    [
        (Critique(" "), "`prompt`"),
        (Limit(10**18), "`times`"),
        (StopCheck(conditions=(stop.cost_exceeds(10**18 + 1),)), "`conditions`"),
        (StopCheck(conditions=(stop.StepCountIs(5, "five"),)), "cannot be written"),
        (StopCheck(callback="unknown"), r"register it in Python with @registry\.function"),
        (Gate(rules=(Rule("allow", ("a",), reason="x"),)), "`rules.0.reason"),
        (Gate(rules=(Rule("ask", ("a",), "unknown"),)), r"@registry\.predicate"),
        (Router({Own: "own"}, "to"), "a class of your own"),
        (ModelCall("a", kind=wrong("check")), "cannot be written"),
    ],
)
def test_a_node_without_a_form_cannot_be_written(node: Node[Any, Outcome], said: str) -> None:
    """A file that would not be read again is never written."""
    with pytest.raises(UnwritableError, match=said):
        node_data(node, NAMES)


def test_a_node_of_python_alone_cannot_be_written() -> None:
    """The message says how it could."""

    @dataclass(frozen=True)
    class Unknown(Append):
        """A class that is not registered."""

    with pytest.raises(UnwritableError, match=r"register it with @registry\.node"):
        node_data(Unknown(), NAMES)


@pytest.mark.parametrize(
    ("first", "second"), [(5, 5.0), (10**22, 1e22), (10**15, 1e15), (10**17, 1e17)]
)
def test_equal_numbers_are_written_alike(first: float, second: float) -> None:
    """Or equal graphs would have two fingerprints."""
    assert written(Approve(ttl_s=first)) == written(Approve(ttl_s=second))


@pytest.mark.parametrize("use", LIBRARY)
def test_every_field_of_a_node_is_a_parameter(use: str) -> None:
    """A new option can be written down at once; a kind is not for data to say."""
    kind = meaning_of(use, NAMES)
    assert isinstance(kind, NodeKind)
    fields = {field.name for field in dataclasses.fields(kind.made) if field.init}

    # A generator's own annotations say what it asks for: none is written in a file.
    left_out = {"asks"} if use == "function" else {"kind"}
    assert {"use", "name"} | fields - left_out == set(kind.model.forms)


def test_every_node_of_the_library_can_be_used() -> None:
    """A new node has its name in files, too."""
    promising = {name for name in library.__all__ if hasattr(getattr(library, name), "contract")}
    assert promising == {made.__name__ for made in LIBRARY.values()}


@pytest.mark.parametrize("odd", [Any, int | str, tuple[int, str], dict[str, int], frozenset[Any]])
@pytest.mark.parametrize("name", ["what", "use"])
def test_a_class_that_no_file_can_hold_is_refused(name: str, odd: Any) -> None:
    """By the first file that names the class; `use` is no name for a field."""
    made = dataclasses.make_dataclass("Made", [(name, str if name == "use" else odd)], frozen=True)
    registry = Registry()
    registry.node(made, name="made")

    with pytest.raises(ConfigError, match=f"'{name}' of Made"):
        meaning_of("made", registry)
