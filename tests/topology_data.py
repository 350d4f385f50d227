"""Topologies as data: the corpus's form, the graphs it stands for, safe ones, and mutants of them.

A topology is a JSON object: `name`, `start`, `nodes` (by name: `type` and the options of that
type), `edges` (by node: by outcome, the target or END), and what is `expected` of a checker.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from graphloop.contract import Cap, ChildContract, Contract
from graphloop.conversation.compaction import Compaction
from graphloop.effects import Effect
from graphloop.events import Event
from graphloop.graph import END, Edges, NodeGraph
from graphloop.node_protocol import Kind, Leave, Node, Reaction
from graphloop.nodes import (
    AnswerCheck,
    Append,
    Child,
    Compact,
    Critique,
    Execute,
    Extend,
    Gate,
    Limit,
    ModelCall,
    PrepareStep,
    StopCheck,
    Verify,
)
from graphloop.outcomes import Outcome, outcome_name
from graphloop.policy.policy import Rule
from graphloop.run import Run
from graphloop.spending import Budget
from graphloop.topology.document import with_graphs

__all__ = ["MUTANTS", "Mutant", "Promising", "Topology", "graph_of", "standard"]

Topology: TypeAlias = dict[str, Any]
"""JSON has no narrower type that is worth writing down."""


@dataclass(frozen=True, eq=False)
class Promising:
    """A node of one's own that promises what the data say, and leaves by its first outcome."""

    name: str
    outcomes: frozenset[type[Outcome]]
    contract: Contract | None
    kind: Kind = "pure"

    def enter(self, run: Run[Any], /) -> Reaction[Any, Outcome]:
        return Leave(run, min(self.outcomes, key=outcome_name)())

    def on(self, run: Run[Any], event: Event, answered: Effect | None, /) -> Reaction[Any, Outcome]:
        return self.enter(run)


@dataclass
class Essay:
    """A state: `draft` is not written when a run begins."""

    topic: str = ""
    draft: str | None = None
    score: int = 0


@dataclass
class Guarded:
    """A state that no journal can hold."""

    lock: threading.Event


@dataclass
class Anything:
    """A state of which nobody can tell whether a journal can hold it."""

    payload: Any = None


STATES: Final[Mapping[str, type[object]]] = {
    "Essay": Essay,
    "Guarded": Guarded,
    "Anything": Anything,
}
BY_WORD: Final[Mapping[str, type[Outcome]]] = {
    outcome_name(one): one for one in Outcome.__subclasses__() if one.__module__.startswith("graph")
}


def _compaction(given: Mapping[str, Any]) -> Compaction | None:
    window = given.get("context_window")
    return None if window is None else Compaction(window)


def _budget(given: Mapping[str, Any] | None) -> Budget | None:
    return None if given is None else Budget(**given)


def _fields(given: object) -> frozenset[str] | None:
    return None if given is None else frozenset(given)  # type: ignore[call-overload]


def _written(
    given: object, outcomes: frozenset[type[Outcome]]
) -> Mapping[type[Outcome], frozenset[str]] | None:
    fields = _fields(given)
    return dict.fromkeys(outcomes, fields) if fields else None if fields is None else {}


def _child(name: str, given: Mapping[str, Any]) -> ChildContract:
    rules = given.get("gate_rules")
    return ChildContract(
        name,
        graph=None if "graph" not in given else graph_of(given["graph"]),
        reads=_fields(given.get("reads", ())),
        writes=_fields(given.get("writes", ())),
        gate_rules=None if rules is None else _rules(rules),
        budget=_budget(given.get("budget")),
        many=given.get("many", False),
        runs=given.get("runs", 1),
        needs=given.get("needs", 0),
    )


def _agent(node: Child, given: Mapping[str, Any]) -> Node[Any, Outcome]:
    return with_graphs(node, {node.agent: graph_of(given["graph"])} if "graph" in given else {})


def _rules(given: list[Mapping[str, Any]]) -> tuple[Rule, ...]:
    return tuple(Rule(one["verdict"], tuple(one["tools"])) for one in given)


def _promising(name: str, given: Mapping[str, Any]) -> Promising:
    outcomes = frozenset(
        BY_WORD[word] if word in BY_WORD else _own_outcome(word) for word in given["outcomes"]
    )
    contract = Contract(
        caps={BY_WORD[word]: Cap(times) for word, times in given.get("caps", {}).items()},
        moves={BY_WORD[word]: frozenset(moved) for word, moved in given.get("moves", {}).items()},
        model_calls=given.get("model_calls", 0),
        tools=given.get("tools", False),
        asks=given.get("asks", False),
        reads=_fields(given.get("reads", ())),
        writes=_written(given.get("writes", ()), outcomes),
        children=tuple(_child(one, said) for one, said in given.get("children", {}).items()),
    )
    silent = given.get("silent", False)
    return Promising(name, outcomes, None if silent else contract, given.get("kind", "pure"))


OWN: Final[dict[str, type[Outcome]]] = {}


def _own_outcome(word: str) -> type[Outcome]:
    return OWN.setdefault(word, type(word.title().replace("_", ""), (Outcome,), {}))


TYPES: Final[Mapping[str, Callable[[str, Mapping[str, Any]], Node[Any, Outcome]]]] = {
    "append": lambda name, _: Append(name),
    "child": lambda name, said: _agent(Child(said["agent"], name), said),
    "compact": lambda name, said: Compact(name, _compaction(said)),
    "critique": lambda name, said: Critique(said.get("prompt", "Good?"), name),
    "execute": lambda name, said: Execute(name, hold=said.get("hold", True)),
    "extend": lambda name, _: Extend(name),
    "gate": lambda name, said: Gate(
        name, _rules(said.get("rules", [])), hold=said.get("hold", True)
    ),
    "limit": lambda name, said: Limit(said["times"], name),
    "model_call": lambda name, said: ModelCall(name, fallbacks=tuple(said.get("fallbacks", ()))),
    "own": _promising,
    "prepare_step": lambda name, said: PrepareStep(name, compaction=_compaction(said)),
    "stop_check": lambda name, said: StopCheck(name, max_steps=said.get("max_steps", 20)),
    "verify": lambda name, said: Verify(
        tuple(AnswerCheck(f"{name}-{at}", one) for at, one in enumerate(said.get("retries", ()))),
        name,
    ),
}


class _Stated(NodeGraph[Any]):
    """A graph that knows the type of its state, as those of the front do."""

    state_type: type[object] | None = None


def graph_of(topology: Mapping[str, Any]) -> NodeGraph[Any]:
    """Return the graph that a topology stands for."""
    nodes = {name: TYPES[said["type"]](name, said) for name, said in topology["nodes"].items()}
    edges: Edges[Any] = {
        nodes[name]: {
            _outcome(nodes[name], word): END if target == "END" else nodes[target]
            for word, target in row.items()
        }
        for name, row in topology["edges"].items()
    }
    graph = _Stated(topology["name"], nodes[topology["start"]], edges)
    graph.state_type = STATES.get(topology.get("state", ""))
    for name, row in topology.get("tampered", {}).items():
        table = dict(graph.table)
        table[name] = {BY_WORD[word]: target for word, target in row.items()}
        graph.table = table
    return graph


def _outcome(node: Node[Any, Outcome], word: str) -> type[Outcome]:
    return next(one for one in node.outcomes if outcome_name(one) == word)


def standard(
    name: str = "safe",
    *,
    max_steps: int = 4,
    retries: tuple[int, ...] = (),
    context_window: int | None = None,
    hold: bool = True,
    critic: bool = False,
    fallbacks: tuple[str, ...] = (),
    prefix: str = "",
) -> Topology:
    """Return the standard loop as data, varied; every name begins with `prefix`."""
    window = {} if context_window is None else {"context_window": context_window}
    nodes: dict[str, dict[str, Any]] = {
        "prepare": {"type": "prepare_step", **window},
        "compact": {"type": "compact", **window},
        "model": {"type": "model_call", "fallbacks": list(fallbacks)},
        "extend": {"type": "extend"},
        "gate": {"type": "gate", "hold": hold},
        "execute": {"type": "execute", "hold": hold},
        "append": {"type": "append"},
        "verify": {"type": "verify", "retries": list(retries)},
        "stop": {"type": "stop_check", "max_steps": max_steps},
    }
    edges: dict[str, dict[str, str]] = {
        "prepare": {
            "ready": "model",
            "overflow": "compact",
            "calls": "gate",
            "failed": "END",
            "aborted": "END",
        },
        "compact": {
            "compacted": "prepare",
            "cannot": "append",
            "failed": "END",
            "aborted": "append",
        },
        "model": {
            "calls": "gate",
            "answered": "append",
            "paused": "append",
            "truncated": "extend",
            "empty": "extend",
            "context_full": "compact",
            "refused": "append",
            "failed": "END",
            "aborted": "append",
        },
        "extend": {"retry": "model", "give_up": "append"},
        "gate": {"settled": "execute", "aborted": "append"},
        "execute": {"done": "append", "approval_needed": "gate", "aborted": "append"},
        "append": {
            "answered_calls": "stop",
            "resend": "stop",
            "final": "verify",
            "refused": "END",
            "aborted": "END",
        },
        "verify": {"accepted": "END", "rejected": "append", "failed": "END", "aborted": "END"},
        "stop": {"go": "prepare", "stop": "END", "failed": "END", "aborted": "END"},
    }
    if critic:
        nodes["critic"] = {"type": "critique"}
        edges["critic"] = dict(edges["verify"])
        edges["verify"]["accepted"] = "critic"
    edges["verify"]["follow_up"] = "stop"
    topology = {"name": name, "start": "prepare", "nodes": nodes, "edges": edges}
    return _renamed(topology, prefix) if prefix else topology


def _renamed(topology: Topology, prefix: str) -> Topology:
    def new(name: str) -> str:
        return name if name == "END" else prefix + name

    return {
        **topology,
        "start": new(topology["start"]),
        "nodes": {new(name): said for name, said in topology["nodes"].items()},
        "edges": {
            new(name): {word: new(target) for word, target in row.items()}
            for name, row in topology["edges"].items()
        },
    }


@dataclass(frozen=True)
class Mutant:
    """One way to spoil a safe topology, and the property that is lost with it.

    `walks` says whether the witness is a path that a run can take, `warns` that it is no error.
    """

    name: str
    code: str
    spoil: Callable[[Topology], None]
    walks: bool = True
    warns: bool = False

    def of(self, topology: Topology) -> Topology:
        """Return the spoilt copy of a topology."""
        spoilt = copy.deepcopy(topology)
        self.spoil(spoilt)
        spoilt["name"] = f"{topology['name']}: {self.name}"
        return spoilt


def _p(topology: Topology, name: str) -> str:
    """Return the name of a node of the (last) standard loop in a topology."""
    names: list[str] = list(topology["nodes"])
    return next(one for one in reversed(names) if one.endswith(name))


def _lead(topology: Topology, name: str, word: str, target: str) -> None:
    to = target if target == "END" else _p(topology, target)
    topology["edges"][_p(topology, name)][word] = to


def _no_gate(topology: Topology) -> None:
    _lead(topology, "prepare", "calls", "execute")
    _lead(topology, "model", "calls", "execute")
    _lead(topology, "execute", "approval_needed", "append")
    gate = _p(topology, "gate")
    del topology["nodes"][gate], topology["edges"][gate]


def _twice(topology: Topology) -> None:
    again = _p(topology, "execute") + "-again"
    topology["nodes"][again] = {"type": "execute"}
    topology["edges"][again] = dict(topology["edges"][_p(topology, "execute")])
    topology["edges"][_p(topology, "execute")]["done"] = again


def _unstopped(topology: Topology) -> None:
    _lead(topology, "append", "answered_calls", "prepare")
    _lead(topology, "append", "resend", "prepare")
    _lead(topology, "verify", "follow_up", "prepare")
    stop = _p(topology, "stop")
    del topology["nodes"][stop], topology["edges"][stop]


def _unreachable(topology: Topology) -> None:
    _lead(topology, "model", "truncated", "append")
    _lead(topology, "model", "empty", "append")


def _trap(topology: Topology) -> None:
    for name, other in (("trap-a", "trap-b"), ("trap-b", "trap-a")):
        topology["nodes"][name] = {"type": "model_call"}
        row = topology["edges"][_p(topology, "model")]
        topology["edges"][name] = dict.fromkeys(row, other)
    topology["edges"][_p(topology, "model")]["refused"] = "trap-a"


def _inserted(topology: Topology, said: dict[str, Any], name: str = "own") -> None:
    """Put a node of one's own before the first loop."""
    topology["nodes"][name] = {"type": "own", "outcomes": ["ready"], **said}
    topology["edges"][name] = {"ready": topology["start"]}
    topology["start"] = name


def _child_budget(topology: Topology) -> None:
    topology["budget"] = {"tokens": 1_000}
    child = {"graph": standard("child"), "budget": {"tokens": 2_000}}
    _inserted(topology, {"kind": "graph", "children": {"child": child}})


def _child_gate(topology: Topology) -> None:
    topology["nodes"][_p(topology, "gate")]["rules"] = [{"verdict": "ask", "tools": ["deploy"]}]
    rules = [{"verdict": "allow", "tools": ["deploy"]}]
    child = {"gate_rules": rules, "graph": standard("child")}
    _inserted(topology, {"kind": "graph", "children": {"child": child}})


def _child_ungated(topology: Topology) -> None:
    inner = standard("child")
    _no_gate(inner)
    _inserted(topology, {"kind": "graph", "children": {"child": {"graph": inner}}})


def _writers(topology: Topology) -> None:
    writing = {"writes": ["draft"], "many": True, "graph": standard("child")}
    children = {"left": writing, "right": writing}
    _inserted(topology, {"kind": "graph", "children": children})


def _starved(topology: Topology) -> None:
    child = {"many": True, "graph": standard("child")}
    children = {"left": child | {"needs": 3}, "right": child}
    _inserted(topology, {"kind": "graph", "children": children})


def _read_too_early(topology: Topology) -> None:
    topology["state"] = "Essay"
    _inserted(topology, {"reads": ["draft"]})


def _written_in_vain(topology: Topology) -> None:
    topology["state"] = "Essay"
    _inserted(topology, {"writes": ["score"]}, "second")
    _inserted(topology, {"writes": ["score"]}, "first")


def _extra_row(topology: Topology) -> None:
    gate = _p(topology, "gate")
    topology["tampered"] = {gate: {"settled": topology["edges"][gate]["settled"]}}


def _leads(name: str, word: str, target: str) -> Callable[[Topology], None]:
    return lambda topology: _lead(topology, name, word, target)


MUTANTS: Final = (
    Mutant("gate removed", "GL2", _no_gate),
    Mutant("gate bypassed by the model", "GL2", _leads("model", "calls", "execute")),
    Mutant("gate bypassed by a conversation", "GL2", _leads("prepare", "calls", "execute")),
    Mutant("answer led to the tools", "GL2", _leads("model", "answered", "execute")),
    Mutant("held calls not asked about", "GL2", _leads("execute", "approval_needed", "execute")),
    Mutant("append skipped after running", "GL3", _leads("execute", "done", "stop")),
    Mutant("calls skipped", "GL3", _leads("model", "calls", "END")),
    Mutant("handed-in calls skipped", "GL3", _leads("prepare", "calls", "END")),
    Mutant("calls dropped for another reply", "GL3", _leads("model", "calls", "model")),
    Mutant("results skipped at the end", "GL3", _leads("execute", "done", "END")),
    Mutant("results dropped for another reply", "GL3", _leads("execute", "done", "model")),
    Mutant("calls thrown away", "GL3", _leads("model", "calls", "extend")),
    Mutant("results thrown away", "GL3", _leads("execute", "done", "extend")),
    Mutant("aborted calls not answered", "GL3", _leads("gate", "aborted", "END")),
    Mutant("executed twice", "GL3", _twice),
    Mutant("turn not opened", "GL3", _leads("stop", "go", "model")),
    Mutant("cut calls let through", "GL3", _leads("model", "truncated", "gate")),
    Mutant("bound dropped", "GL4", _unstopped),
    Mutant("cap reset", "GL4", _leads("extend", "retry", "prepare")),
    Mutant("bound bypassed", "GL4", _leads("append", "resend", "prepare")),
    Mutant("loop without a bound", "GL4", _leads("model", "paused", "model")),
    Mutant("node made unreachable", "GL1", _unreachable, walks=False),
    Mutant("trap built", "GL1", _trap),
    Mutant("row tampered with", "GL5", _extra_row, walks=False),
    Mutant("read before it is written", "GL6", _read_too_early),
    Mutant("written in vain", "GL6", _written_in_vain, walks=False, warns=True),
    Mutant("two writers side by side", "GL7", _writers),
    Mutant("join that waits for too many", "GL8", _starved),
    Mutant("child budget raised", "GL9", _child_budget),
    Mutant("child gate weakened", "GL9", _child_gate),
    Mutant("child without a gate", "GL2", _child_ungated, walks=False),
    Mutant(
        "tools run before a park",
        "GL10",
        lambda one: _inserted(one, {"tools": True, "asks": True}),
    ),
    Mutant(
        "state that no file can hold",
        "GL11",
        lambda one: one.update(state="Guarded"),
        walks=False,
    ),
)
"""Every kind of mutant, at least one a property."""
