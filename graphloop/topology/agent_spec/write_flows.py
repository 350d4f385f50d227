"""Graphs of a topology as flows of Open Agent Spec.

Agents become agents, choices of a model become an agent's branches. A node that only graphloop has
becomes a tool of its name, which answers with the outcome, and a branching node behind it: others
see where its outcomes lead, and have to supply the tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

from ...errors import GraphError, Problem
from ...graph import Graph
from ...nodes.append import Append
from ...nodes.approve import Approve
from ...nodes.child import Child
from ...nodes.critique import Critique
from ...nodes.map_over import MapOver
from ...nodes.parallel import Parallel
from ...nodes.router import Router
from ...outcomes import outcome_name
from ..document import AgentEntry, Document
from ..forms import Data, Writing
from ..included import Included
from ..node_forms import write_node, write_part
from ..registration import Names
from .loop_data import GO_ON
from .sheet import OUTCOME, Sheet, literal, reference, references, text_property
from .write_agents import AgentWriter, is_loop

__all__ = ["FlowWriter"]

END: Final = "END"
MAPPING_KEY: Final = "branching_mapping_key"


@final
@dataclass
class _Flow:
    """One flow, while it is written."""

    document: Document
    place: str
    start: str
    end: str
    ids: dict[str, str] = field(default_factory=dict[str, str])
    nodes: list[str] = field(default_factory=list[str])
    edges: list[tuple[str, str, str]] = field(default_factory=list["tuple[str, str, str]"])
    data: list[tuple[str, str, str, str]] = field(default_factory=list["tuple[str, str, str, str]"])
    waiting: list[tuple[str, str, str]] = field(default_factory=list["tuple[str, str, str]"])

    @property
    def graph(self) -> Graph[Any]:
        return self.document.graph


@final
class FlowWriter:
    """Writes graphs that are not the loop of one agent."""

    def __init__(self, sheet: Sheet, names: Names, agents: AgentWriter) -> None:
        self._sheet = sheet
        self._names = names
        self._agents = agents
        self._add = sheet.findings.add

    def any(self, document: Document, own: str) -> str:
        """Write an agent or a flow, and return its id."""
        if is_loop(document.graph):
            return self._agents.agent(document, own, document.graph.name)
        return self.flow(document, own)

    def flow(self, document: Document, own: str) -> str:
        """Write a flow, and return its id.

        Raises:
            GraphError: no way leads to its end but a failure.
        """
        sheet, graph = self._sheet, document.graph
        start = sheet.keep("StartNode", f"{own}/(start)", "start", **_io(), branches=["next"])
        end = sheet.keep("EndNode", f"{own}/(end)", "end", **_io(), branches=[], branch_name="next")
        flow = _Flow(document, own, start, end, nodes=[start])
        if document.instructions:
            said = "the instructions of a flow's own models are lost"
            self._add("refused", "instructions", own, said)
        if document.tools:
            said = f"{', '.join(document.tools)}: a flow has no tools of its own: they are lost"
            self._add("refused", "tools", own, said)
        flow.waiting.append((start, "next", self._target(flow, "", "", graph.start)))
        while flow.waiting:
            source, branch, name = flow.waiting.pop(0)
            flow.edges.append((source, branch, flow.end if name == END else self._id(flow, name)))
        if not any(to == flow.end for _, _, to in flow.edges):
            found = "no way leads to its end but a failure, which is none in Agent Spec"
            raise GraphError(graph.name, [Problem(own, found, "give it a bound, such as a limit.")])
        flow.nodes.append(end)
        return self._written(flow)

    def _written(self, flow: _Flow) -> str:
        document, own = flow.document, flow.place
        said: dict[str, Data] = {
            **_io(),
            "start_node": reference(flow.start),
            "nodes": references(flow.nodes),
            "control_flow_connections": [
                _edge(f"{own}/edge {number}", source, branch, to)
                for number, (source, branch, to) in enumerate(flow.edges, 1)
            ],
            "data_flow_connections": [
                {
                    "component_type": "DataFlowEdge",
                    "id": f"{own}/data {number}",
                    "name": f"data {number}",
                    "source_node": reference(source),
                    "source_output": output,
                    "destination_node": reference(to),
                    "destination_input": taken,
                }
                for number, (source, output, to, taken) in enumerate(flow.data, 1)
            ],
        }
        if document.description:
            said["description"] = document.description
        return self._sheet.keep("Flow", own, document.graph.name, **said)

    def _id(self, flow: _Flow, name: str) -> str:
        """Return the id of a node, which is written when it is first led to."""
        if name not in flow.ids:
            flow.ids[name] = ""
            node = flow.graph.nodes[name]
            plain = node.node if isinstance(node, Included) else node
            self._node(flow, name, plain)
        return flow.ids[name]

    def _node(self, flow: _Flow, name: str, node: object) -> None:
        match node:
            case Child():
                self._child(flow, name, node)
            case Parallel() if not node.callback:
                self._parallel(flow, name, node)
            case Router():
                routes = {outcome_name(one): said for one, said in node.routes.items()}
                self._choice(flow, name, node.prompt, routes, node.model)
            case Critique():
                words = {"accepted": "the answer is good", "rejected": "it is not"}
                self._choice(flow, name, node.prompt, words, node.model)
            case _:
                self._own(flow, name, node)

    def _child(self, flow: _Flow, name: str, node: Child) -> None:
        entry = flow.document.agents.get(node.agent, AgentEntry())
        place = f"{flow.place}/{name}"
        if entry.document is None:
            why = "its agent is handed to each run: a tool stands for it"
            self._add("refused", "agent", place, why)
            self._own(flow, name, node)
            return
        prompt = "" if node.prompt == GO_ON else node.prompt
        if is_loop(entry.document.graph):
            agent = self._agents.agent(entry.document, f"{place}.agent", node.agent, prompt)
            said: dict[str, Data] = {**_io(), "agent": reference(agent), "branches": ["next"]}
            self._keep(flow, name, "AgentNode", said)
            words = "an AgentNode; its prompt is the end of the agent's system prompt"
            if prompt:
                self._add("approximated", "node", place, words)
            else:
                self._add("exact", "node", place, "an AgentNode")
        else:
            inner = self.flow(entry.document, f"{place}.flow")
            said = {**_io(), "subflow": reference(inner), "branches": ["next"]}
            self._keep(flow, name, "FlowNode", said)
            lost = "a FlowNode; what it is told is lost" if prompt else "a FlowNode"
            self._add("refused" if prompt else "exact", "node", place, lost)
        self._go_on(flow, name, "answered")

    def _parallel(self, flow: _Flow, name: str, node: Parallel) -> None:
        place = f"{flow.place}/{name}"
        entries = [flow.document.agents.get(one.agent, AgentEntry()) for one in node.branches]
        documents = [one.document for one in entries if one.document is not None]
        if len(documents) < len(entries) or not all(is_loop(one.graph) for one in documents):
            self._own(flow, name, node)
            return
        subflows: list[str] = []
        for branch, document in zip(node.branches, documents, strict=True):
            own = f"{place}/{branch.name}"
            prompt = "" if branch.prompt == GO_ON else branch.prompt
            agent = self._agents.agent(document, f"{own}.agent", branch.agent, prompt)
            subflows.append(self._single(own, branch.name, agent))
        said: dict[str, Data] = {
            **_io(),
            "subflows": references(subflows),
            "branches": ["next"],
        }
        self._keep(flow, name, "ParallelFlowNode", said)
        words = "a ParallelFlowNode; the answers are not joined to one, nor is it told how many run"
        self._add("approximated", "node", place, words)
        if node.join != "fail_fast" or node.reducer != "concat":
            lost = f"join {node.join!r} with the reducer {node.reducer!r} is lost"
            self._add("refused", "join", place, lost)
        self._go_on(flow, name, "answered")

    def _single(self, own: str, name: str, agent: str) -> str:
        """Write a flow of one agent, and return its id."""
        keep = self._sheet.keep
        start = keep("StartNode", f"{own}/(start)", "start", **_io(), branches=["next"])
        end = keep("EndNode", f"{own}/(end)", "end", **_io(), branches=[], branch_name="next")
        said: dict[str, Data] = {**_io(), "agent": reference(agent), "branches": ["next"]}
        node = keep("AgentNode", f"{own}/node", name, **said)
        edges: list[Data] = [
            _edge(f"{own}/edge 1", start, "next", node),
            _edge(f"{own}/edge 2", node, "next", end),
        ]
        return keep(
            "Flow",
            own,
            name,
            **_io(),
            start_node=reference(start),
            nodes=references([start, node, end]),
            control_flow_connections=edges,
            data_flow_connections=[],
        )

    def _choice(
        self, flow: _Flow, name: str, prompt: str, routes: Mapping[str, str], model: str
    ) -> None:
        """Write a choice of a model as an agent that is prompted to select a branch."""
        place = f"{flow.place}/{name}"
        listed = "\n".join(f"- {one}: {said}" for one, said in routes.items())
        agent: dict[str, Data] = {
            **_io(),
            "llm_config": reference(self._agents.model(model)),
            "system_prompt": literal(f"{prompt}\n\nSelect the branch:\n{listed}"),
            "tools": [],
            "human_in_the_loop": False,
        }
        own = self._sheet.keep("Agent", f"{place}.agent", name, **agent)
        row = self._row(flow, name)
        said: dict[str, Data] = {**_io(), "agent": reference(own), "branches": [*sorted(routes)]}
        self._keep(flow, name, "AgentNode", said)
        words = "an AgentNode with branches: it says something, too, and has to choose one"
        self._add("approximated", "node", place, words)
        for one in sorted(routes):
            flow.waiting.append((flow.ids[name], one, self._target(flow, name, one, row[one])))
        lost = {one: to for one, to in row.items() if one not in routes and to != END}
        self._lost(place, lost)

    def _own(self, flow: _Flow, name: str, node: object) -> None:
        """Write a node that only graphloop has as a tool, and its outcomes as branches."""
        place = f"{flow.place}/{name}"
        use = str(write_node(node, Writing(self._names, write_part))["use"])
        outputs: list[Data] = [text_property(OUTCOME, "The outcome that the node is left by.")]
        asks = isinstance(node, Approve)
        io: dict[str, Data] = {"inputs": [], "outputs": outputs}
        tool = self._sheet.keep(
            "ServerTool",
            f"{place}.tool",
            f"graphloop_{use}",
            **io,
            description=f"The node {name!r} of graphloop (use: {use}).",
            requires_confirmation=asks,
        )
        said: dict[str, Data] = {**io, "tool": reference(tool), "branches": ["next"]}
        self._keep(flow, name, "ToolNode", said)
        what = "a person confirms the tool" if asks else f"whoever runs it supplies graphloop_{use}"
        self._add("refused", "node", place, f"only graphloop has it; a tool stands for it: {what}")
        row = {one: self._target(flow, name, one, to) for one, to in self._row(flow, name).items()}
        own = flow.ids[name]
        if len({*row.values()}) == 1:
            flow.waiting.append((own, "next", next(iter(row.values()))))
            return
        kept = {one: to for one, to in row.items() if to != END}
        branching = self._sheet.keep(
            "BranchingNode",
            f"{place}.leaves",
            f"{name}.leaves",
            inputs=[text_property(MAPPING_KEY, "Next branch name in the flow")],
            outputs=[],
            branches=[*sorted({*kept, "default"})],
            mapping={one: one for one in kept},
        )
        flow.nodes.append(branching)
        flow.edges.append((own, "next", branching))
        flow.data.append((own, OUTCOME, branching, MAPPING_KEY))
        for one, to in kept.items():
            flow.waiting.append((branching, one, to))
        flow.waiting.append((branching, "default", END))

    def _keep(self, flow: _Flow, name: str, kind: str, said: dict[str, Data]) -> None:
        flow.ids[name] = self._sheet.keep(kind, f"{flow.place}/{name}", name, **said)
        flow.nodes.append(flow.ids[name])

    def _go_on(self, flow: _Flow, name: str, outcome: str) -> None:
        """Lead a node with one way on to where its good outcome leads."""
        row = self._row(flow, name)
        to = self._target(flow, name, outcome, row[outcome])
        flow.waiting.append((flow.ids[name], "next", to))
        self._lost(
            f"{flow.place}/{name}",
            {one: target for one, target in row.items() if one != outcome and target != END},
        )

    def _lost(self, place: str, ways: Mapping[str, str]) -> None:
        for outcome, to in ways.items():
            said = f"that it is left by `{outcome}` to {to!r} is lost: the flow fails there"
            self._add("refused", "way", place, said)

    def _row(self, flow: _Flow, name: str) -> dict[str, str]:
        return {outcome_name(one): to for one, to in flow.graph.table[name].items()}

    def _target(self, flow: _Flow, source: str, outcome: str, to: str) -> str:
        """Return where a way leads, past the nodes that append what agents answered."""
        passed: set[str] = set()
        first = source
        while to not in passed and to != END and self._appends(flow, to):
            passed.add(to)
            place = f"{flow.place}/{to}"
            self._add("approximated", "node", place, "an AgentNode appends its answer itself")
            row = self._row(flow, to)
            answers = isinstance(_plain(flow, source), Child | Parallel | MapOver)
            kept = row["final" if answers and outcome == "answered" else "resend"]
            shown = self._followed(flow, to)
            # Text is appended by one of the two; a failure goes on by neither.
            shown |= {one for one in ("final", "resend") if row[one] == kept}
            lost = {one: way for one, way in row.items() if one not in shown and way != END}
            self._lost(place, lost)
            source, to = to, kept
        if passed or to == END or outcome != "answered":
            return to
        if isinstance(_plain(flow, first), Child | Parallel | MapOver):
            said = f"that its answer is not appended to what {to!r} reads is lost"
            self._add("refused", "way", f"{flow.place}/{first}", said)
        return to

    def _followed(self, flow: _Flow, name: str) -> set[str]:
        """Return the outcomes of a node that appends by which somebody's answer goes on."""
        found: set[str] = set()
        for one in self._before(flow, name):
            answers = isinstance(_plain(flow, one), Child | Parallel | MapOver)
            ways = [outcome for outcome, to in self._row(flow, one).items() if to == name]
            found |= {"final" if answers and way == "answered" else "resend" for way in ways}
        return found

    def _appends(self, flow: _Flow, name: str) -> bool:
        """Whether a node appends nothing but what agents answered, or what was sent back."""
        node = flow.graph.nodes[name]
        before = [_plain(flow, one) for one in self._before(flow, name)]
        told = (Child, Parallel, MapOver, Approve, Critique)
        return isinstance(node, Append) and all(isinstance(one, told) for one in before)

    def _before(self, flow: _Flow, name: str) -> set[str]:
        return {one for one, row in flow.graph.table.items() if name in row.values()}


def _plain(flow: _Flow, name: str) -> object:
    node = flow.graph.nodes.get(name)
    return node.node if isinstance(node, Included) else node


def _io() -> dict[str, Data]:
    return {"inputs": [], "outputs": []}


def _edge(own: str, source: str, branch: str, to: str) -> dict[str, Data]:
    said: dict[str, Data] = {
        "component_type": "ControlFlowEdge",
        "id": own,
        "name": own.rpartition("/")[2],
        "from_node": reference(source),
    }
    said |= {"from_branch": branch} if branch != "next" else {}
    return {**said, "to_node": reference(to)}
