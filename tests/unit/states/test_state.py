"""The user's state: its type, its fields, how it is kept, and whether it has changed."""

from __future__ import annotations

import asyncio
import copy
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, TypedDict, TypeVar, cast

import pytest
from msgspec import Struct
from pydantic import BaseModel, ConfigDict, PrivateAttr

from graphloop import END, Agent, EndReason, Graph, RunResult, Runs, Tool, node
from graphloop import graph as kernel
from graphloop.effects import Effect
from graphloop.errors import ConfigError, GraphError, GraphloopError
from graphloop.events import Event
from graphloop.graph import Edges
from graphloop.node_protocol import Kind, Leave, Node, Reaction
from graphloop.nodes import Append, Execute, ModelCall, PrepareStep
from graphloop.nodes.gate import Gate
from graphloop.outcomes import Answered, AnsweredCalls, Calls, Outcome, Ready, Settled
from graphloop.providers.script import Entry
from graphloop.run import Run, evolve
from graphloop.states.state import (
    changed_fields,
    fields_of,
    is_frozen,
    known_state_type,
    lent,
    same_state,
)
from graphloop.stores.base import Store
from graphloop.stores.opening import open_store
from graphloop.stores.sqlite.store import SqliteStore
from graphloop.testing import ScriptedModel
from tests.for_each import for_each
from tests.own_nodes import Billing, Open, Ticket, judge, route
from tests.strategies import call, reply, wrong


class Changing(BaseModel):
    """A model that can be changed."""

    x: int = 0


@dataclass
class Nothing:
    """A state without fields."""


class Pair(NamedTuple):
    """A named tuple."""

    x: int = 0


class Table(TypedDict):
    """A typed mapping."""

    x: int


class Tight(Struct, frozen=True):
    """One that cannot."""

    x: int = 0


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (Ticket, {"text", "team", "tries"}),
        (Changing, {"x"}),
        (Tight, {"x"}),
        (Pair, {"x"}),
        (Table, {"x"}),
        (Nothing, set[str]()),
        (dict, None),
        (str, None),
        (dict[str, int], None),
    ],
)
def test_a_type_tells_its_fields_if_it_has_any(kind: object, names: set[str] | None) -> None:
    assert names == fields_of(kind)


class Fixed(BaseModel):
    """One that cannot."""

    model_config = ConfigDict(frozen=True)
    x: int = 0


@dataclass(frozen=True)
class Noted:
    """A frozen state, which may hold objects that can change."""

    notes: Collection[object] = ()


@pytest.mark.parametrize(
    "state",
    [
        *(None, 1, "x", (1,), ("x", (2, frozenset({3}))), date(2026, 11, 22), EndReason.ERROR),
        *(Ticket("x"), Fixed(), Tight(), Pair(), Noted(), Noted((Ticket("x"),))),
    ],
)
def test_what_cannot_change_is_given_as_it_is(state: object) -> None:
    assert is_frozen(state)
    assert lent(state) is state


class Loose(Struct):
    """A struct that can be changed."""

    x: int = 0


@pytest.mark.parametrize(
    "state",
    [
        *(Open("x"), Changing(), Loose(), {"x": 1}, [1], ([1],), bytearray(b"x")),
        *(Noted([]), Noted((Noted({}),)), Pair(wrong([]))),
    ],
)
def test_what_can_change_is_lent_as_a_copy(state: object) -> None:
    assert not is_frozen(state)
    assert lent(state) is not state
    assert lent(state) == state


class Seen(Outcome):
    """The only way on."""


def test_what_a_frozen_state_holds_is_protected_too() -> None:
    state = Noted([])

    @node
    async def note(given: Noted) -> Seen:
        cast("list[object]", given.notes).append("seen")
        return Seen()

    graph = Graph("g", note, {note: {...: END}})

    with pytest.raises(GraphloopError, match="changed its state in place"):
        asyncio.run(graph.run(state))
    assert [] == state.notes


def test_what_cannot_be_copied_is_no_state() -> None:
    with pytest.raises(ConfigError, match=r"type Noted cannot be copied.*Fix: keep"):
        lent(Noted(wrong(Lock())))


class Array:
    """One whose comparison is no yes or no, as that of an array."""

    def __init__(self, x: object = 0) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        raise ValueError("the truth of an array is not known")

    def __hash__(self) -> int:
        return 1


class Circle:
    """One that holds itself."""

    def __init__(self, x: object = 0) -> None:
        self.x = x
        self.own = self


class Extra(BaseModel):
    """A model that keeps what it does not know."""

    model_config = ConfigDict(extra="allow")
    x: object = 0
    _seen: object = PrivateAttr(0)

    def look(self) -> Extra:
        """Change what is no field."""
        self._seen = 1
        return self


class Free(Struct):
    """A struct."""

    x: object = 0


@dataclass
class Hidden:
    """A field that `==` does not look at."""

    x: object = field(default=0, compare=False)


@dataclass(frozen=True)
class Keeping:
    """A state whose field stays the object that it is."""

    x: object = 0


@dataclass(eq=False)
class Own:
    """A class whose `==` compares identities."""

    x: object = 0


class Plain:
    """A class that does not say when two of its objects are alike."""

    def __init__(self, x: object = 0) -> None:
        self.x = x

    @cached_property
    def length(self) -> int:
        """Something that is kept once it was asked for."""
        return len(str(self.x))


class Slotted:
    """One without a dictionary."""

    __slots__ = ("x", "y")

    def __init__(self, x: object = 0) -> None:
        self.x = x


class Two(NamedTuple):
    """A named tuple."""

    x: object = 0


HOLDERS: tuple[Callable[[object], object], ...] = (
    *(Plain, Slotted, Array, Hidden, Own, Circle, Two, Keeping, Free),
    lambda x: Extra(x=x),
    lambda x: Extra.model_validate({"other": x}),
    lambda x: {"x": x},
    lambda x: [x],
    lambda x: deque([x]),
    lambda x: (x, 1),
    lambda x: Plain(Own(x)),
    lambda x: {Plain(x), Plain(0)},
)


@for_each("holder", HOLDERS)
@pytest.mark.parametrize(
    "value", [1, [1], Plain(1), {Plain(1)}, {Plain(1): 2}, float("nan"), Path("a")]
)
def test_an_untouched_copy_is_alike(holder: Callable[[object], object], value: object) -> None:
    state = holder(value)

    assert same_state(copy.deepcopy(state), state)


@for_each("holder", HOLDERS)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        *[(1, 2), ([1], [1, 2]), ({1}, {2}), ({"a": 1}, {"a": 2}), ({"a": 1}, {"b": 1})],
        *[(Plain(1), Plain(2)), ({Plain(1)}, {Plain(2)}), (1, True), (Path("a"), Path("b"))],
        *[(len, repr), (int, str), (str.upper, str.lower)],
    ],
)
def test_what_was_changed_is_not_alike(
    holder: Callable[[object], object], old: object, new: object
) -> None:
    assert not same_state(holder(old), holder(new))


def test_what_an_object_keeps_of_its_own_is_no_change() -> None:
    asked = Plain(1)
    assert 1 == asked.length
    assert same_state(Plain(1), asked)
    assert same_state(object(), object())
    assert same_state({"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert not same_state(Extra(), Extra().look())


class Typed(TypedDict):
    """A typed mapping."""

    x: int


def test_changed_fields_are_those_that_differ() -> None:
    assert ["team"] == changed_fields(Ticket, Ticket("x"), Ticket("x", "b"), {"text"})
    assert [] == changed_fields(Ticket, Ticket("x"), Ticket("x", "b"), {"team"})
    assert ["x"] == changed_fields(Typed, {"x": 1}, {"x": 2}, ())
    assert [] == changed_fields(str, "x", "y", ())
    assert [] == changed_fields(Keeping, Keeping(Plain()), Keeping(Plain()), ())


@node
def stateless(_: None) -> Billing:
    """Take no state."""
    return Billing()


@node
def texts(text: str) -> Billing:
    """Take another state."""
    return Billing()


def test_functions_of_different_states_are_named() -> None:
    edges = {route: {Billing: texts, ...: END}, texts: {...: stateless}, stateless: {...: END}}

    with pytest.raises(GraphError, match="2 problem") as raised:
        Graph("a", route, wrong(edges))

    assert "node 'texts': takes a state of type str, and the graph's is of type Ticket" in str(
        raised.value
    )
    with pytest.raises(GraphError, match="the graph's is of type str"):
        Graph("a", judge, wrong({judge: {...: END}}), state_type=wrong(str))


def test_a_run_begins_with_a_state_of_its_graph_s_type() -> None:
    graph = Graph("desk", route, {route: {...: END}})
    bare = kernel.NodeGraph("bare", route, {route: {...: END}})

    assert (Ticket, None) == (known_state_type(graph), known_state_type(bare))
    with pytest.raises(ConfigError, match=r"graph 'desk' .* type Ticket"):
        asyncio.run(graph.run(wrong("x")))


@dataclass(frozen=True)
class Essay:
    """A state of the user's."""

    topic: str
    drafts: int = 0


class Begun(Outcome):
    """The only way on."""


@dataclass(frozen=True)
class Begin:
    """A node of the user's that counts in the state."""

    name: str = "begin"
    kind: Kind = "pure"
    outcomes = frozenset({Begun})

    def enter(self, run: Run[Essay], /) -> Reaction[Essay, Begun]:
        """Count, and go on."""
        drafts = run.state.drafts + 1
        return Leave(evolve(run, state=replace(run.state, drafts=drafts)), Begun())

    def on(
        self, run: Run[Essay], event: Event, answered: Effect | None, /
    ) -> Reaction[Essay, Begun]:
        """Never asked."""
        raise NotImplementedError


ASKED = reply(call("child", "k", '{"prompt": "look"}'))


@dataclass(frozen=True)
class Count(Begin):
    """The same node, once more: what it counts in is a state of its type."""

    name: str = "count"


class Report(BaseModel):
    """A state of another type than an essay's, which takes none of its fields."""

    model_config = ConfigDict(extra="forbid")

    title: str = "untitled"
    pages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Page:
    """A node of the user's that adds a page to a report."""

    name: str = "page"
    kind: Kind = "pure"
    outcomes = frozenset({Begun})

    def enter(self, run: Run[Report], /) -> Reaction[Report, Begun]:
        """Add, and go on."""
        state = Report(title=run.state.title, pages=(*run.state.pages, "page"))
        return Leave(evolve(run, state=state), Begun())

    def on(
        self, run: Run[Report], event: Event, answered: Effect | None, /
    ) -> Reaction[Report, Begun]:
        """Never happens."""
        raise AssertionError


S = TypeVar("S")


def stateful(name: str, first: Node[S, Outcome], last: Node[S, Outcome], kind: type[S]) -> Graph[S]:
    """Return a loop in which nodes of the user's stand before and after what waits."""
    prepare: Node[Any, Outcome] = PrepareStep()
    model: Node[Any, Outcome] = ModelCall()
    gate: Node[Any, Outcome] = Gate()
    execute: Node[Any, Outcome] = Execute()
    append: Node[Any, Outcome] = Append()
    edges: Edges[Any] = {
        first: {Begun: prepare},
        prepare: {Ready: model, ...: END},
        model: {Calls: gate, ...: append},
        gate: {Settled: execute, ...: append},
        execute: {...: append},
        append: {AnsweredCalls: last, ...: END},
        last: {Begun: prepare},
    }
    # Nothing bounds it but its script; the nodes of the user's promise nothing.
    reasons = {("model_call", "GL4"): "the script ends it"}
    return Graph(name, first, edges, state_type=kind, ignore=reasons)


@pytest.mark.parametrize("file", ["runs.db", "journals"])
@pytest.mark.parametrize("given", [False, True])
def test_a_child_s_state_has_the_type_of_its_own_graph(
    tmp_path: Path, file: str, given: bool
) -> None:
    essay = stateful("essay", Begin(), Count(), Essay)
    report = stateful("report", Page(), Page(name="last"), Report)

    def model(*script: Entry) -> ScriptedModel:
        return ScriptedModel(script, label="same")

    def tree(store: Store | str, *scripts: tuple[Entry, ...]) -> Agent:
        inner = essay.as_tool(
            Essay("graphs"),
            model=model(*scripts[2]),
            description="d",
            name="child",
            tools=[Tool(name="client", parameters={"type": "object"})],
        )
        middle = report.as_tool(
            Report(), model=model(*scripts[1]), description="d", name="child", tools=[inner]
        )
        return Agent(model(*scripts[0]), tools=[middle], store=store, max_agent_depth=3)

    def opened() -> Store | str:
        return open_store(tmp_path / file) if given else str(tmp_path / file)

    async def scenario() -> None:
        first = tree(opened(), (ASKED,), (ASKED,), (reply(call("client", "c")),))
        parked = await first.generate("go", run_id="r")
        key = "c0.0/c0.0/c0.0"
        assert [key] == [one.key for one in parked.pending]
        await closed(first, parked)
        second = tree(opened(), ("done",), ("reported",), ("written",))
        result = await second.resume("r", tool_results={key: "theirs"})
        states = [result.children[one].state for one in ("r/c0.0", "r/c0.0/c0.0")]
        assert ["done", Report(pages=("page", "page")), Essay("graphs", 2)] == [
            result.text,
            *states,
        ]
        await closed(second, result)

    async def closed(agent: Agent, result: RunResult) -> None:
        await agent.aclose()
        if isinstance(result.store, SqliteStore):
            await result.store.aclose()

    asyncio.run(scenario())


@dataclass(frozen=True)
class Note:
    """A state."""

    text: str = ""


@node
def jot(note: Note) -> tuple[Answered, Note]:
    """Return a note with a field of the wrong type."""
    return Answered(), replace(note, text=wrong(5))


def test_a_state_that_no_journal_can_hold_is_refused(tmp_path: Path) -> None:
    store = str(tmp_path / "runs.db")
    graph = Graph("jots", jot, {jot: {...: END}})

    with pytest.raises(ConfigError, match=r"graph 'jots' .* no journal"):
        asyncio.run(graph.run(Note(wrong(5)), store=store))
    with pytest.raises(ConfigError, match=r"graph 'jots' .* type Note, found s"):
        asyncio.run(graph.run(wrong("x")))
    with pytest.raises(
        ConfigError, match=r"'jot' returns a state that no journal.*`text`: Input sh"
    ):
        asyncio.run(graph.run(Note(), store=store, run_id="r"))

    assert Note() == asyncio.run(Runs(store, graph).replay("r")).state
    assert Note(wrong(5)) == asyncio.run(graph.run(Note())).state
