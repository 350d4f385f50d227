"""Flows of Open Agent Spec as topologies.

Agents and flows become agents that a node runs; what they answered stands in the conversation,
which is the only way by which data flows here.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import final

from ..forms import Data, put_off
from .components import Component, defaults_of, word
from .findings import AgentSpecFinding
from .flow_parts import NEXT, SPEAKING, Flow, Made, branches_of, listed, pruned, row_data
from .read_agents import AgentReader, Context
from .read_nodes import NodeReader

__all__ = ["FlowReader"]


@final
class FlowReader:
    """Reads flows; `agents` reads the agents in them."""

    def __init__(self, context: Context, agents: AgentReader) -> None:
        self._context = context
        self._components = context.components
        self._agents = agents
        self._add = context.findings.add
        self._reader = NodeReader(context, agents, self.flow)

    def flow(self, one: Component) -> dict[str, Data] | None:
        """Return the topology that a flow is; None if it is refused.

        Raises:
            Misread: the document is wrong about it; why, is among the complaints.
        """
        self._context.opened(one)
        try:
            return self._flow(Flow(one))
        finally:
            self._context.closed()

    def any(self, one: Component) -> dict[str, Data] | None:
        """Return the topology of an agent or of a flow; None if it is refused."""
        return self.flow(one) if one.kind == "Flow" else self._agents.agent(one)

    def _flow(self, flow: Flow) -> dict[str, Data] | None:
        own = flow.own
        self._context.metadata(own)
        name = self._context.named(own)
        start = self._nodes(flow)
        flow.start = start.id
        self._edges(flow)
        reached = self._reached(flow, start)
        made: dict[str, Made | None] = {}
        told: dict[str, tuple[AgentSpecFinding, ...]] = {}
        for id_ in reached:
            self._context.findings.begin()
            made[id_] = self._reader.node(flow, flow.nodes[id_])
            told[id_] = self._context.findings.end()
        ends = {id_: "END" for id_, one in flow.nodes.items() if one.kind == "EndNode"}
        entries = ends | {id_: one.entry if one else "END" for id_, one in made.items()}
        self._data_edges(flow)
        put_off(failed=bool(self._context.to.complaints.problems))
        begin = entries[flow.ways[start.id][NEXT]]
        if begin == "END":
            self._tell(flow, told, {})
            self._add("refused", own.kind, own.id, "nothing of it can be run", own.mark)
            return None
        nodes: dict[str, Data] = {}
        edges: dict[str, Data] = {}
        for id_, one in made.items():
            if one is not None:
                nodes |= one.nodes
                ways = {way: entries[to] for way, to in flow.ways[id_].items()}
                edges |= {name: row_data(row, ways) for name, row in one.rows.items()}
        data: dict[str, Data] = {"name": name}
        description = self._components.text(own, "description", "")
        data |= {"description": description} if description.strip() else {}
        data |= self._start(start)
        data["start"] = begin
        data |= {"agents": flow.agents} if flow.agents else {}
        data = pruned({**data, "nodes": nodes, "edges": edges})
        kept = data["nodes"]
        assert isinstance(kept, dict)
        self._tell(
            flow, told, {id_: None for id_, one in made.items() if one and one.entry in kept}
        )
        return data

    def _tell(
        self,
        flow: Flow,
        told: Mapping[str, tuple[AgentSpecFinding, ...]],
        kept: Container[str],
    ) -> None:
        """Keep what was found of the nodes that are kept; of others, what was refused of them."""
        for id_, found in told.items():
            one = flow.nodes[id_]
            refused = [finding for finding in found if finding.verdict == "refused"]
            self._context.findings.keep(found if id_ in kept else refused)
            if id_ not in kept and not refused:
                said = "only what is refused leads to it; it is left out"
                self._add("approximated", one.kind, id_, said, one.mark)

    def _nodes(self, flow: Flow) -> Component:
        """Keep the nodes, and return the one that the flow starts at."""
        own = flow.own
        for one in self._components.every(own, "nodes"):
            if one.id in flow.nodes:
                fix = "remove one of the two."
                self._context.note(one.mark, f"the node {one.id!r:.80} stands here twice.", fix)
            flow.nodes[one.id] = one
            self._branches(one)
        start = self._components.at(own, "start_node")
        if start.kind != "StartNode" or start.id not in flow.nodes:
            found = f"`start_node` is a StartNode among the `nodes`; found {start.id!r:.80}."
            raise self._context.to.complaints.misread(start.mark, found, "name that one.")
        self._add("exact", own.kind, own.id, "a graph", own.mark)
        return start

    def _branches(self, one: Component) -> None:
        """Note branches that a node of its kind does not have."""
        given = {word(value) for value in self._components.items(one, "branches")}
        has = branches_of(one, self._components)
        if given and given != {*has}:
            found = f"the branches of {one.kind} {one.id!r:.80} are {listed(has)}"
            fix = "write these, or leave `branches` out."
            self._context.note(one.mark, f"{found}; found {listed(sorted(given))}.", fix)

    def _edges(self, flow: Flow) -> None:
        for edge in self._components.every(flow.own, "control_flow_connections"):
            self._control(flow, edge)
        for edge in self._components.every(flow.own, "data_flow_connections"):
            self._data(flow, edge)

    def _control(self, flow: Flow, edge: Component) -> None:
        self._context.metadata(edge)
        source, to = [self._components.at(edge, key) for key in ("from_node", "to_node")]
        branch = self._components.text(edge, "from_branch", NEXT)
        for one in (source, to):
            self._among(flow, edge, one)
        known = branches_of(source, self._components)
        if to.kind == "StartNode":
            found = f"the edge {edge.id!r:.80} leads back to the start, where flows only begin."
            self._context.note(edge.mark, found, "let it lead to the node after the start.")
        if branch not in known:
            found = f"{source.kind} {source.id!r:.80} has no branch {branch!r:.80}."
            fix = f"its branches are {listed(known)}."
            self._context.note(edge.mark, found, fix)
        elif branch in flow.ways.get(source.id, {}):
            found = f"two edges leave {source.id!r:.80} by {branch!r:.80}."
            self._context.note(edge.mark, found, "remove one of the two.")
        flow.ways.setdefault(source.id, {})[branch] = to.id
        if source.kind != "StartNode":
            flow.told.add(to.id)

    def _data(self, flow: Flow, edge: Component) -> None:
        source = self._components.at(edge, "source_node")
        target = self._components.at(edge, "destination_node")
        output = self._components.text(edge, "source_output")
        taken = self._components.text(edge, "destination_input")
        flow.sources[target.id, taken] = (source.id, output)
        for one, key, title in ((source, "outputs", output), (target, "inputs", taken)):
            if not self._among(flow, edge, one):
                continue
            if one.says(key) and title not in self._components.titles(one, key):
                found = f"{one.kind} {one.id!r:.80} has no {key[:-1]} {title!r:.80}."
                self._context.note(edge.mark, found, f"name one of its `{key}`.")

    def _among(self, flow: Flow, edge: Component, one: Component) -> bool:
        """Whether a node is one of the flow's; note if not."""
        if one.id not in flow.nodes:
            found = f"the edge {edge.id!r:.80} names {one.id!r:.80}, no node of this flow."
            self._context.note(edge.mark, found, "add the node to `nodes`.")
        return one.id in flow.nodes

    def _reached(self, flow: Flow, start: Component) -> list[str]:
        """Return the nodes that are reached, but for the start and the ends; note open ways."""
        reached: dict[str, None] = {start.id: None}
        waiting = [start.id]
        while waiting:
            one = flow.nodes.get(waiting.pop())
            if one is None:
                continue
            for branch in branches_of(one, self._components):
                if branch not in flow.ways.get(one.id, {}):
                    found = f"{one.kind} {one.id!r:.80} leads nowhere by {branch!r:.80}."
                    self._context.note(one.mark, found, "add a ControlFlowEdge.")
                    continue
                to = flow.ways[one.id][branch]
                if to not in reached:
                    reached[to] = None
                    waiting.append(to)
        for id_, one in flow.nodes.items():
            if id_ not in reached:
                said = "nothing leads to it; it is left out"
                self._add("approximated", one.kind, id_, said, one.mark)
        del reached[start.id]
        ends = [id_ for id_, one in flow.nodes.items() if id_ in reached and one.kind == "EndNode"]
        for id_ in ends:
            self._end(flow.nodes[id_], alone=len(ends) == 1)
            del reached[id_]
        return [id_ for id_ in flow.nodes if id_ in reached]

    def _start(self, start: Component) -> dict[str, Data]:
        inputs = self._components.titles(start, "inputs")
        self._context.metadata(start)
        if not inputs:
            self._add("exact", start.kind, start.id, "the start", start.mark)
            return {}
        given = defaults_of(inputs)
        only = next(iter(given.values())) if len(inputs) == len(given) == 1 else ""
        said = f"its inputs ({', '.join(inputs)}) stand in what the run is asked"
        said += f"; the defaults of {', '.join(given)} are left out" if given and not only else ""
        self._add("approximated", start.kind, start.id, said, start.mark)
        return {"prompt": only} if only else {}

    def _end(self, end: Component, *, alone: bool) -> None:
        self._context.metadata(end)
        outputs = self._components.titles(end, "outputs")
        lost = [] if alone else ["which of the ends was reached is not told"]
        lost += [f"its outputs ({', '.join(outputs)}) are the run's last answer"] if outputs else []
        said = f"END: {'; '.join(lost)}" if lost else "END"
        self._add("approximated" if lost else "exact", end.kind, end.id, said, end.mark)

    def _data_edges(self, flow: Flow) -> None:
        for edge in self._components.every(flow.own, "data_flow_connections"):
            self._context.metadata(edge)
            source = self._components.at(edge, "source_node")
            target = self._components.at(edge, "destination_node")
            said = "what it passes on stands in the conversation"
            passed = source.kind in (*SPEAKING, "StartNode")
            if passed and target.kind in (*SPEAKING, "EndNode", "BranchingNode"):
                self._add("approximated", edge.kind, edge.id, said, edge.mark)
            else:
                said = f"no value is passed from a {source.kind} to a {target.kind}"
                self._add("refused", edge.kind, edge.id, said, edge.mark)
