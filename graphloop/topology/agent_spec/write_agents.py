"""Agents of a topology as agents of Open Agent Spec: what they are given, and what is lost."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache
from typing import Any, Final, TypeAlias, final

from ...graph import Graph
from ...nodes.append import Append
from ...nodes.compact import Compact
from ...nodes.execute import Execute
from ...nodes.extend import Extend
from ...nodes.gate import Gate
from ...nodes.model_call import ModelCall
from ...nodes.prepare_step import PrepareStep
from ...nodes.stop_check import StopCheck
from ...nodes.verify import Verify
from ...outcomes import outcome_name
from ...policy import Rule, describe
from ..document import Document, document_of
from ..forms import Data
from ..reader import VERSION, read_text
from ..registration import Names, Registry
from ..writer import data_of, yaml_of
from .loop_data import STEPS_MAX, answer_data, loop_data
from .sheet import Sheet, literal, reference, references
from .tool_inputs import input_properties, registered_tool

__all__ = ["AgentWriter", "is_loop"]

RUN: Final = "run"
"""What the model of the run is called in a document."""

LOOP: Final = (
    Append,
    Compact,
    Execute,
    Extend,
    Gate,
    ModelCall,
    PrepareStep,
    StopCheck,
    Verify,
)


def is_loop(graph: Graph[Any]) -> bool:
    """Whether a graph is the loop of one agent: one model call, and at most one gate."""
    nodes = [*graph.nodes.values()]
    calls = sum(isinstance(one, ModelCall) for one in nodes)
    gates = sum(isinstance(one, Gate) for one in nodes)
    return calls == 1 and gates <= 1 and all(type(one) in LOOP for one in nodes)


@final
class AgentWriter:
    """Writes agents."""

    def __init__(self, sheet: Sheet, names: Names) -> None:
        self._sheet = sheet
        self._names = names
        self._add = sheet.findings.add

    def model(self, label: str) -> str:
        """Write the configuration of a model, and return its id."""
        provider, _, name = label.partition(":")
        own = f"model.{label or RUN}"
        if provider == "openai" and name:
            return self._sheet.once("OpenAiConfig", own, label, model_id=name)
        if provider == "anthropic" and name:
            said: dict[str, Data] = {"provider": provider, "api_provider": provider}
            return self._sheet.once("LlmConfig", own, label, model_id=name, **said)
        what = f"the model {label!r}" if label else "the model of the run"
        said_of = "is named in graphloop only: give its configuration a `model_id`"
        self._add("approximated", "model", label or RUN, f"{what} {said_of}")
        if label == RUN:
            # A label like any other: what is shown of it is not the model of the run.
            return self._sheet.once("LlmConfig", f"{own}.label", f"the label {RUN}", model_id=label)
        return self._sheet.once("LlmConfig", own, label or RUN, model_id=label or RUN)

    def agent(self, document: Document, own: str, name: str, prompt: str = "") -> str:
        """Write an agent that is a loop, and return its id.

        Args:
            document: the agent.
            own: the id that it should have.
            name: its name.
            prompt: what it is told besides its instructions.
        """
        graph = document.graph
        place = own
        calls = next(one for one in graph.nodes.values() if isinstance(one, ModelCall))
        asked, free = self._tools(document, place)
        workers = [one for one in free if one in document.agents]
        tools = [one for one in document.tools if one in {*asked, *free}]
        plain = [one for one in tools if one not in document.agents]
        self._lost(document, place)
        told = "\n\n".join(one for one in (document.instructions, prompt) if one)
        said: dict[str, Data] = {
            "llm_config": reference(self.model(calls.model)),
            "system_prompt": literal(told),
            "tools": references([self.tool(one, own, confirmed=one in asked) for one in plain]),
            "human_in_the_loop": True,
            "inputs": [],
            "outputs": [],
        }
        if document.description:
            said["description"] = document.description
        for one in asked:
            if one in document.agents:
                why = "a person is asked before it works here, and not there: it is left out"
                self._add("refused", "agent", f"{place}/{one}", why)
        ids = [self._worker(document, one, f"{own}/{one}") for one in workers]
        held = [one for one in ids if one]
        confirmed = any(one in asked for one in plain)
        self._unlisted(document, place, runs=bool(plain or held) and not confirmed)
        if not held:
            return self._sheet.keep("Agent", own, name, **said)
        manager = self._sheet.keep("Agent", f"{own}.manager", name, **said)
        group: dict[str, Data] = {
            "group_manager": reference(manager),
            "workers": references(held),
            "inputs": [],
            "outputs": [],
        }
        return self._sheet.keep("ManagerWorkers", own, name, **group)

    def tool(self, name: str, place: str, *, confirmed: bool) -> str:
        """Write a tool, and return its id."""
        found = registered_tool(self._names.find("tool", name))
        inputs: list[Data] = []
        said: dict[str, Data] = {"requires_confirmation": confirmed, "outputs": []}
        if found is None:
            self._add("approximated", "tool", f"{place}/{name}", "what it takes is not known")
        else:
            said["description"] = found.spec.description
            inputs = [{**one} for one in input_properties(found)]
        said["inputs"] = inputs
        own = f"tool.{name}" + (".confirmed" if confirmed else "")
        return self._sheet.once("ServerTool", own, name, **said)

    def _tools(self, document: Document, place: str) -> tuple[list[str], list[str]]:
        """Return the tools that a person confirms, and the other ones."""
        gate = next((one for one in document.graph.nodes.values() if isinstance(one, Gate)), None)
        asked: list[str] = []
        free: list[str] = []
        for name in document.tools:
            verdict = "never" if gate is None else self._verdict(gate, name, place)
            if verdict == "never":
                said = "no call of it ever runs: it is left out"
                self._add("refused", "tool", f"{place}/{name}", said)
            else:
                (asked if verdict == "ask" else free).append(name)
        return asked, free

    def _unlisted(self, document: Document, place: str, *, runs: bool) -> None:
        """Say what the gate says of tools that the document does not list, if that is lost.

        Such tools come with a run, or are an agent's below.

        Args:
            document: the agent.
            place: its place.
            runs: whether they run where the document is read.
        """
        gate = next((one for one in document.graph.nodes.values() if isinstance(one, Gate)), None)
        if gate is None:
            return
        said, others = _of_others(gate, document.tools)
        if not others and said == ("allow" if runs else "deny"):
            return
        lines = "; ".join(describe(gate.rules)) if gate.rules else "allow *"
        there = "run" if runs else "never run"
        lost = f"what its gate says of tools that are not listed is lost ({lines})"
        self._add("refused", "gate", f"{place}/{gate.name}", f"{lost}: there, they {there}")

    def _verdict(self, gate: Gate, name: str, place: str) -> str:
        """Return "ask", "free" or "never"; what depends on a call asks."""
        found = registered_tool(self._names.find("tool", name))
        own = False if found is None else found.needs_approval
        verdict, depends = _ruled(gate, name) if gate.rules else ("free", False)
        if verdict == "free" and own is not False:
            # Rules that allow a tool do not set aside what the tool itself says.
            verdict, depends = "ask", own is not True
        if depends:
            said = "the conditions of its rules are lost: a person confirms each call"
            self._add("refused", "condition", f"{place}/{name}", said)
        return verdict

    def _lost(self, document: Document, place: str) -> None:
        """Say what of a loop nobody else will know."""
        graph = document.graph
        bounds = [one for one in graph.nodes.values() if isinstance(one, StopCheck)]
        others = [one for one in bounds if document.tools and one.max_steps != STEPS_MAX]
        usual = bool(document.tools) and not others
        lost = f"; that it has {STEPS_MAX} turns at most is not told" if usual else ""
        self._add("approximated" if lost else "exact", "agent", place, f"an Agent{lost}")
        shapes = _shapes()
        if _shape(graph) not in (shapes[:1] if document.tools else shapes):
            said = "how its loop goes on is lost: it is not the usual one"
            self._add("refused", "loop", place, said)
        for one in others:
            said = f"that it has {one.max_steps} turns at most is lost"
            self._add("refused", "bound", f"{place}/{one.name}", said)
        for name, said in _stricter(graph, self._names):
            self._add("refused", "node", f"{place}/{name}", said)

    def _worker(self, document: Document, name: str, own: str) -> str:
        entry = document.agents[name]
        inner = entry.document
        if entry.takes_over:
            said = "that it takes the conversation over is lost: a worker only answers"
            self._add("refused", "agent", own, said)
        if inner is None or not is_loop(inner.graph):
            why = "handed to each run" if inner is None else "a graph that no worker is"
            self._add("refused", "agent", own, f"it is {why}: it is left out")
            return ""
        described = Document(
            inner.graph,
            description=entry.description or inner.description,
            instructions=inner.instructions,
            tools=inner.tools,
            agents=inner.agents,
            rules=inner.rules,
            ignore=inner.ignore,
        )
        return self.agent(described, own, name)


def _ruled(gate: Gate, name: str) -> tuple[str, bool]:
    """Return what the rules of a gate say of a tool, and whether that depends on the call."""
    depends = False
    for rule in (one for one in gate.rules if one.covers(name)):
        if rule.condition:
            depends = True
        elif rule.verdict == "ask" or depends:
            return "ask", depends
        else:
            return "free" if rule.verdict == "allow" else "never", False
    return "ask" if depends else "never", depends


def _of_others(gate: Gate, listed: Collection[str]) -> tuple[str, list[Rule]]:
    """Return what a gate says of most tools that are not listed, and the rules that say more."""
    if not gate.rules:
        return "allow", []
    others: list[Rule] = []
    said = "deny"
    for rule in gate.rules:
        if "*" in rule.tools and not rule.condition:
            said = rule.verdict
            break
        if not set(rule.tools) <= set(listed):
            others.append(rule)
    return said, [one for one in others if one.condition or one.verdict != said]


_Shape: TypeAlias = "tuple[str, dict[str, dict[str, str]]]"


def _shape(graph: Graph[Any]) -> _Shape | None:
    """Return how a loop goes on, by the kinds of its nodes; None if it has two of a kind."""
    kinds = {name: type(node).__name__ for name, node in graph.nodes.items()}
    if len({*kinds.values()}) < len(kinds):
        return None
    rows = {
        kinds[source]: {outcome_name(one): kinds.get(to, to) for one, to in row.items()}
        for source, row in graph.table.items()
    }
    return kinds[graph.start], rows


@cache
def _shapes() -> list[_Shape | None]:
    """Return how loops go on that are read: with tools, and without."""
    names = Names(Registry(), installed=False)
    texts = [
        yaml_of({"graphloop": VERSION, "name": "usual", **data})
        for data in (loop_data([], [], ""), answer_data(""))
    ]
    return [_shape(read_text(text, names).graph) for text in texts]


def _stricter(graph: Graph[Any], names: Names) -> Iterator[tuple[str, str]]:
    """Yield the nodes of a loop that have parameters nobody else will know."""
    written = data_of(document_of(graph), names)["nodes"]
    assert isinstance(written, dict)
    for name, node in graph.nodes.items():
        told = written[name]
        assert isinstance(told, dict)
        keys = set(told) - {"use"}
        keys -= {"model"} if isinstance(node, ModelCall) else set()
        keys -= {"max_steps"} if isinstance(node, StopCheck) else set()
        keys -= {"rules"} if isinstance(node, Gate) else set()
        if keys:
            yield name, f"its {', '.join(sorted(keys))} are lost"
        if isinstance(node, Gate) and any(one.ttl_s for one in node.rules):
            yield name, "how long its questions stay open is lost"
