"""Safe graphs of every kind of node, put together at random: what a proof of them has to hold for.

A graph is a row of stretches, each of which leads on to the next: a loop of an agent, a router,
agents side by side, somebody's approval, a function of one's own. What leads back is bounded.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import EllipsisType
from typing import Any, Final, TypeAlias

from graphloop.agent.graph import Graph
from graphloop.conversation.compaction import Compaction
from graphloop.events import Setup
from graphloop.graph import END, Edges
from graphloop.node_protocol import Node
from graphloop.nodes import (
    AnswerCheck,
    Append,
    Approve,
    Child,
    Compact,
    Critique,
    Execute,
    Extend,
    Function,
    Gate,
    Limit,
    ModelCall,
    PrepareStep,
    Router,
    Screen,
    Screened,
    StopCheck,
    Verify,
)
from graphloop.outcomes import Outcome, outcome_name
from graphloop.own_nodes.compose import fallback, loop_until, map_over, parallel, retry
from graphloop.own_nodes.sub_graphs import sub_graph
from graphloop.policy.policy import Policy, Rule
from graphloop.proofs.call_bounds import Bound
from graphloop.providers.script import ScriptedModel
from graphloop.spending import Budget
from graphloop.testing.subject import Subject, invented_tools
from graphloop.values import Message, ToolResult, UserMessage
from tests.strategies import call, said

__all__ = ["AGENTS", "AGENT_CALLS", "Again", "Detour", "Onward", "Varied", "seeded", "varied"]

AGENT_CALLS: Final = 2
"""How many models an agent of these graphs asks, in the adversary's world."""

AGENTS: Final = tuple(f"agent-{letter}" for letter in "abc")
NEXT: Final = "<next>"
BACK: Final = "<back>"
CONVERSATIONS: Final[tuple[tuple[Message, ...], ...]] = (
    (UserMessage("Go."),),
    (UserMessage("Go."), said(call("read", "a"))),
    (UserMessage("Go."), said("so", call("read", "a"), call("write", "a"))),
    (UserMessage("x" * 9_000),),
    (
        UserMessage("Go."),
        *(said(call()), ToolResult("", "", "read", "x" * 9_000), said("y" * 9_000)),
        *(UserMessage("On."), said(call()), ToolResult("", "", "read", "x" * 9_000), said("z")),
        UserMessage("And on."),
    ),
)
WINDOWS: Final = (
    Compaction(2_000, keep_recent_turns=1),
    Compaction(200_000, keep_recent_turns=1),
    Compaction(2_000, keep_recent_turns=1, layers=("prune_tool_results",)),
)
RULES: Final = (
    (),
    (),
    (Rule("allow", ("*",)),),
    (Rule("deny", ("write",)), Rule("ask", ("read",)), Rule("allow", ("*",))),
    (Rule("allow", ("read",), "office hours"), Rule("ask", ("*",), ttl_s=4.0)),
)

Rows: TypeAlias = dict[Node[Any, Outcome], dict[str, str]]


class Onward(Outcome):
    """A function of one's own is done."""


class Detour(Outcome):
    """A function of one's own goes another way."""


class Again(Outcome):
    """A function of one's own goes back."""


@dataclass(frozen=True)
class Varied:
    """A graph that is safe by the way it was put together, and what its runs begin with."""

    graph: Graph[None]
    subject: Subject[None]
    agents: Mapping[str, Bound]


@dataclass
class Weaver:
    """Puts a graph together."""

    rng: random.Random
    inner: bool = False
    wild: bool = False
    rows: Rows = field(default_factory=Rows)
    entries: list[str] = field(default_factory=list[str])
    made: int = 0

    def chance(self, of: int) -> bool:
        return self.rng.randrange(of) == 0

    def outside(self, of: int) -> bool:
        """Return True at times, for what needs something from outside: an inner graph has none."""
        return not self.inner and self.chance(of)

    def name(self, word: str) -> str:
        self.made += 1
        return f"{word}-{self.made}"

    def put(self, node: Node[Any, Outcome], row: Mapping[str, str]) -> str:
        """Add a node; what its row does not name ends the run."""
        words = [outcome_name(one) for one in node.outcomes]
        self.rows[node] = {word: row.get(word, "END") for word in sorted(words)}
        return node.name

    def away(self) -> str:
        """Return a target that leads on, or ends the run."""
        return self.rng.choice((NEXT, NEXT, "END"))

    def again(self, on: str = NEXT) -> str:
        """Return what leads back so often and no oftener, and then goes on."""
        limit = Limit(self.rng.randint(1, 2), self.name("limit"))
        return self.put(limit, {"go": BACK, "stop": on})

    def tried(self, node: Node[Any, Outcome], other: Node[Any, Outcome]) -> Node[Any, Outcome]:
        """Return a node, perhaps wrapped; `other` may stand in for it."""
        match self.rng.randrange(5):
            case 0:
                return retry(node, self.rng.randint(1, 2), name=self.name("retry"))
            case 1:
                return fallback(node, other, name=self.name("either"))
            case 2:
                inner = fallback(node, other, name=self.name("either"))
                return retry(inner, 1, name=self.name("retry"))
            case _:
                return node

    # The stretches. Each returns the name of the node that it begins with.

    def own(self) -> str:
        leaves = frozenset({Onward, *self.rng.sample((Detour, Again), self.rng.randint(0, 2))})
        caps = ((Again, self.rng.randint(0, 2)),) if Again in leaves else ()
        capped = Onward if self.chance(2) else None

        def made() -> Function:
            # One function may stand under two names: what it is invoked by is its own.
            return Function(self.name("own"), leaves, caps=caps, capped=capped)

        node = self.tried(made(), made())
        return self.put(node, {"onward": NEXT, "detour": self.away(), "again": BACK})

    def agent(self) -> Node[Any, Outcome]:
        """Return a node whose agents answer in the model's place."""
        rng = self.rng
        one, other = (
            Child(rng.choice(AGENTS), self.name("child"), rng.choice(("", "p"))) for _ in "ab"
        )
        several = parallel(
            *rng.choices(AGENTS, k=rng.randint(1, 3)),
            join=rng.choice(("collect", "fail_fast", "first", "majority")),
            concurrency=rng.randint(1, 3),
            name=self.name("parallel"),
        )
        whole = self.whole() if not self.inner else other
        return self.tried(rng.choice((one, several, whole)), other)

    def whole(self) -> Node[Any, Outcome]:
        """Return a whole graph as a node."""
        inner = Weaver(self.rng, inner=True)
        graph = Graph("inner", *inner.woven((inner.loop, inner.approved), self.rng.randint(1, 2)))
        gate = Policy((Rule("deny", ("*",)),))
        gated = any(node.kind == "gate" for node in graph.nodes.values())
        budget = self.rng.choice((None, Budget(tool_calls=1)))
        name = self.name("whole")
        given = gate if gated and self.chance(2) else None
        return sub_graph(graph, name=name, model=ScriptedModel(()), gate=given, budget=budget)

    def answering(self) -> str:
        append = self.put(Append(self.name("append")), {"final": NEXT})
        return self.put(self.agent(), {"answered": append})

    def until(self) -> str:
        name = self.name("check")
        check = self.rng.choice(
            (Critique("Good?", name), Approve(name, 4.0), Verify((AnswerCheck(name, 1),), name))
        )
        onward = Limit(1, NEXT)
        body, times = self.agent(), self.rng.randint(1, 2)
        for node, row in loop_until(
            body, check, times, after=onward, given_up=self.rng.choice((onward, END))
        ).items():
            told = {
                outcome_name(one): "END" if to is END else str(getattr(to, "name", ""))
                for one, to in row.items()
                if isinstance(one, type)
            }
            self.put(node, told)
        return body.name

    def mapped(self) -> str:
        rng = self.rng
        planner = Child(rng.choice(AGENTS), self.name("planner"))
        work = map_over(
            rng.choice(AGENTS),
            max_items=rng.randint(1, 4),
            items=rng.choice(("json", "lines")),
            join=rng.choice(("collect", "fail_fast", "first", "majority")),
            callback=rng.choice(("", "join")),
            concurrency=rng.randint(1, 3),
            conversation=self.chance(2),
            name=self.name("map"),
        )
        if self.made % 3 == 0 and not work.callback and not self.inner:
            work = replace(work, items="questions", into="notes", join=None, reducer="")
        limit, append = Limit(rng.randint(1, 2), self.name("limit")), Append(self.name("append"))
        joined = self.put(Append(self.name("append")), {"final": NEXT})
        self.put(work, {"answered": joined, "unplanned": append.name})
        self.put(append, {"final": work.name, "resend": limit.name})
        self.put(limit, {"go": planner.name, "stop": self.away()})
        return self.put(planner, {"answered": append.name})

    def routed(self) -> str:
        def made() -> Router:
            return Router({Onward: "on", Detour: "round", Again: "back"}, "?", self.name("router"))

        back = self.again(self.away())
        row = {"onward": NEXT, "detour": self.away(), "again": back, "unrouted": self.away()}
        return self.put(self.tried(made(), made()), row)

    def approved(self) -> str:
        append = self.put(Append(self.name("append")), {"resend": self.again("END"), "final": NEXT})
        return self.put(Approve(self.name("approve")), {"accepted": NEXT, "rejected": append})

    def screens(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the functions and the agents of a screen: at least one of them."""
        agents = AGENTS[: self.made % 2]
        return (() if agents and self.made % 3 else (self.name("polite"),)), agents

    def loop(self) -> str:
        """Add the loop of an agent, varied, perhaps with another gate."""
        rng = self.rng
        window = rng.choice((None, *WINDOWS))
        hold = self.chance(2)
        prepare = PrepareStep(
            self.name("prepare"), compaction=window, callback="settle" if self.outside(4) else ""
        )
        compact = Compact(
            self.name("compact"), window, callback="shorten" if self.outside(4) else ""
        )
        fallbacks = ("b",) if self.outside(3) else ()
        model = self.tried(
            ModelCall(self.name("model"), fallbacks=fallbacks), ModelCall(self.name("model"))
        )
        # The choices of the other nodes stay as they are: nothing is drawn for the screens.
        beside = not self.inner and self.made % 7 == 0
        if beside:
            model = Screened(model, *self.screens(), self.name("screened"))
        extend, append = Extend(self.name("extend")), Append(self.name("append"))
        gates = [Gate(self.name("gate"), rng.choice(RULES), hold=hold) for _ in range(2)]
        gates = gates[: 2 if self.chance(4) else 1]
        execute = Execute(self.name("execute"), rng.randint(1, 3), hold=hold)
        checks = [AnswerCheck(self.name("answer"), rng.randint(0, 1), "given up") for _ in "ab"]
        verify = Verify(
            tuple(checks[: 0 if self.inner else rng.randint(0, 2)]), self.name("verify")
        )
        stop = StopCheck(
            self.name("stop"),
            max_steps=rng.randint(1, 3),
            max_pauses=rng.randint(0, 2),
            max_consecutive_denials=rng.randint(1, 5),
            callback="enough" if self.outside(4) else "",
        )
        onward = NEXT
        if self.chance(3):
            critique = Critique("Good?", self.name("critique"))
            onward = self.put(critique, {"accepted": NEXT, "rejected": append.name})
        over = append.name
        start = prepare.name
        if not self.inner and self.made % 7 == 1:
            screen = Screen(*self.screens(), self.name("screen"))
            start = self.put(screen, {"passed": prepare.name, "blocked": over})
        self.put(prepare, {"ready": model.name, "overflow": compact.name, "calls": gates[0].name})
        self.put(compact, {"compacted": start, "cannot": over, "aborted": over})
        asked = dict.fromkeys(("answered", "paused", "refused", "aborted"), over)
        asked |= {"truncated": extend.name, "empty": extend.name, "context_full": compact.name}
        asked |= {"blocked": over} if beside else {}
        self.put(model, {**asked, "calls": gates[0].name})
        self.put(extend, {"retry": model.name, "give_up": over})
        afters: list[Node[Any, Outcome]] = [*gates[1:], execute]
        for gate, after in zip(gates, afters, strict=True):
            self.put(gate, {"settled": after.name, "aborted": over})
        held = rng.choice(gates).name
        self.put(execute, {"done": over, "approval_needed": held, "aborted": over})
        more = {"answered_calls": stop.name, "resend": stop.name}
        self.put(append, {**more, "final": verify.name})
        self.put(verify, {"accepted": onward, "rejected": over, "follow_up": stop.name})
        self.put(stop, {"go": start, "stop": self.away()})
        return start

    def woven(
        self, kinds: Iterable[Callable[[], str]], length: int
    ) -> tuple[Node[None, Outcome], Edges[None]]:
        """Return the start and the table of a row of stretches."""
        every = tuple(kinds)
        stretches: list[tuple[str, Rows]] = []
        for _ in range(length):
            self.rows = {}
            stretches.append((self.rng.choice(every)(), self.rows))
        nodes = {node.name: node for _, rows in stretches for node in rows}
        edges: dict[Node[None, Outcome], dict[type[Outcome] | EllipsisType, Any]] = {}
        for at, (_, rows) in enumerate(stretches):
            onward = stretches[at + 1][0] if at + 1 < length else "END"
            for node, row in rows.items():
                types = {outcome_name(one): one for one in node.outcomes}
                edges[node] = {}
                for word, said_target in row.items():
                    target = self._target(said_target, onward, [one for one, _ in stretches], at)
                    edges[node][types[word]] = END if target == "END" else nodes[target]
        for _ in range(self.rng.randint(1, 2) if self.wild else 0):
            led_row = edges[self.rng.choice(list(edges))]
            led = self.rng.choice(list(led_row))
            led_row[led] = self.rng.choice((*nodes.values(), END))
        return nodes[stretches[0][0]], edges

    def _target(self, target: str, onward: str, entries: list[str], at: int) -> str:
        if target == NEXT:
            return onward
        return self.rng.choice(entries[: at + 1]) if target == BACK else target


def seeded(seed: int) -> random.Random:
    """Return what draws a graph: the same one for a seed, every time."""
    return random.Random(seed)  # noqa: S311 - not for secrets


def varied(rng: random.Random, *, wild: bool = False) -> Varied:
    """Return a graph that is safe, or with `wild` one of which some lines lead anywhere."""
    weaver = Weaver(rng, wild=wild)
    kinds = (
        *(weaver.loop, weaver.own, weaver.answering, weaver.until),
        *(weaver.mapped, weaver.routed, weaver.approved, weaver.loop),
    )
    start, edges = weaver.woven(kinds, rng.randint(1, 4))
    graph = Graph("varied", start, edges)
    setup = Setup(
        "model",
        invented_tools(graph),
        budget=Budget(tool_calls=rng.choice((None, 1, 3)), tokens=rng.choice((None, None, 400))),
    )
    handed_in = CONVERSATIONS if start.kind == "prepare" else CONVERSATIONS[:1]
    subject: Subject[None] = Subject(graph, None, setup, messages=rng.choice(handed_in))
    known = {name: Bound(name, AGENT_CALLS, 1, 30, 0.0, {}, (), {}) for name in AGENTS}
    return Varied(graph, subject, known)
