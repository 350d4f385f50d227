"""The nodes of a flow of Open Agent Spec as nodes that are left by its branches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, count
from typing import Final, final

from ...errors import ConfigError
from ...route_outcomes import route_outcome
from ..forms import Data
from ..problems import Misread
from .components import Component, defaults_of, word
from .flow_parts import (
    DEFAULT,
    LEAVE,
    NEXT,
    SPEAKING,
    By,
    Flow,
    Made,
    To,
    Way,
    branches_of,
    listed,
)
from .loop_data import GO_ON, answer_data
from .read_agents import AgentReader, Context

__all__ = ["NodeReader"]

ITEMS_MAX: Final = 50
"""How many items a map has: Agent Spec has no bound, and a plan needs one."""

LETTERS_MAX: Final = 40
"""How long the name of a way on is that is made of a branch's."""

NODE_SAID: Final[Mapping[str, str]] = {
    "ApiNode": "a document calls no servers here; register a function instead",
    "InputMessageNode": "no node waits for a message; end the flow there, and run on with it",
    "OutputMessageNode": "no node says a fixed text",
    "CatchExceptionNode": "no node goes on after a flow that failed",
}


class _Refused(Exception):
    """A node has no counterpart; the message says why."""


@final
class NodeReader:
    """Reads nodes.

    Args:
        context: what is known.
        agents: reads the agents that nodes run.
        flow: reads a flow that a node runs.
    """

    def __init__(
        self,
        context: Context,
        agents: AgentReader,
        flow: Callable[[Component], dict[str, Data] | None],
    ) -> None:
        self._context = context
        self._components = context.components
        self._agents = agents
        self._flow = flow
        self._add = context.findings.add
        self._kinds: Mapping[str, Callable[[Flow, Component], Made]] = {
            "AgentNode": self._agent_node,
            "LlmNode": self._llm_node,
            "FlowNode": self._flow_node,
            "ParallelFlowNode": self._parallel,
            "MapNode": self._map,
            "ParallelMapNode": self._map,
            "BranchingNode": self._branching,
            "ToolNode": self._tool_node,
        }

    def node(self, flow: Flow, one: Component) -> Made | None:
        """Return what becomes of a node; None if it is refused, which ends a run there."""
        self._context.metadata(one)
        try:
            return self._kinds.get(one.kind, self._nothing)(flow, one)
        except _Refused as why:
            self._add("refused", one.kind, one.id, f"{why}; a run ends there", one.mark)
            return None
        except Misread:
            return None

    def _nothing(self, flow: Flow, one: Component) -> Made:
        raise _Refused(NODE_SAID.get(one.kind, "nothing does the same"))

    def _agent_node(self, flow: Flow, one: Component) -> Made:
        agent = self._components.at(one, "agent")
        read = self._flow(agent) if agent.kind == "Flow" else self._agents.agent(agent)
        if read is None:
            raise _Refused("its agent is refused")
        made = self._child(flow, one, flow.agent(agent.name, read), self._told(flow, one))
        branches = branches_of(one, self._components)
        again = (
            f"; it is told {GO_ON!r} as it is first come to, too" if self._again(flow, one) else ""
        )
        if [*branches] == [NEXT]:
            self._add(
                "approximated" if again else "exact", one.kind, one.id, f"a child{again}", one.mark
            )
            return made
        last = list(made.rows)[-1]
        route = flow.named(f"{one.name}_route")
        routes = _routes({branch: f"the way on is {branch!r}" for branch in branches})
        made.nodes[route] = {
            "use": "router",
            "routes": {way: said for way, (_, said) in routes.items()},
            "prompt": "Which way does the last answer call for?",
        }
        made.rows[last] = {NEXT: To(route)}
        ways: dict[str, Way] = {way: By(branch) for way, (branch, _) in routes.items()}
        made.rows[route] = ways | {"else": LEAVE}
        said = (
            f"a child, and a router that asks a model for the branch; no branch ends the run{again}"
        )
        self._add("approximated", one.kind, one.id, said, one.mark)
        return made

    def _told(self, flow: Flow, one: Component) -> str:
        """Return what an agent is told: something, where it may come after another's answer."""
        return GO_ON if one.id in flow.told else ""

    def _again(self, flow: Flow, one: Component) -> bool:
        """Whether a node that comes first is told to go on, since others lead back to it."""
        return one.id in flow.told and one.id in flow.ways[flow.start].values()

    def _child(self, flow: Flow, one: Component, agent: str, prompt: str) -> Made:
        name = flow.named(one.name)
        told: dict[str, Data] = {"prompt": prompt} if prompt else {}
        node: dict[str, Data] = {"use": "child", "agent": agent, **told}
        return self._answering(flow, name, node)

    def _answering(self, flow: Flow, name: str, node: dict[str, Data]) -> Made:
        """Return a node whose answer is appended."""
        after = flow.named(f"{name}_append")
        rows: dict[str, dict[str, Way]] = {
            name: {"answered": To(after), "else": LEAVE},
            after: {NEXT: By(NEXT)},
        }
        return Made(name, {name: node, after: {"use": "append"}}, rows)

    def _llm_node(self, flow: Flow, one: Component) -> Made:
        prompt, filled = self._context.told(one, "prompt_template")
        graph: dict[str, Data] = {
            "name": self._context.named(one),
            **answer_data(self._agents.model(one)),
        }
        lost = ["its model reads the conversation as well, to which its answer is added"]
        lost += [f"the placeholders {', '.join(filled)} point to it"] if filled else []
        given = defaults_of(self._components.titles(one, "inputs"))
        lost += [f"the defaults of {', '.join(given)} are left out"] if given else []
        self._add("approximated", one.kind, one.id, f"a child: {'; '.join(lost)}", one.mark)
        return self._child(flow, one, flow.agent(one.name, graph), prompt or GO_ON)

    def _inner(self, flow: Flow, inner: Component) -> str:
        """Return the name of the agent that a flow within this one becomes."""
        if inner.kind != "Flow":
            wrong = f"a Flow is expected here; found {inner.kind!r:.60}."
            raise self._context.to.complaints.misread(inner.mark, wrong, "name a Flow.")
        read = self._flow(inner)
        if read is None:
            raise _Refused(f"its flow {inner.id!r} is refused")
        return flow.agent(inner.name, read)

    def _flow_node(self, flow: Flow, one: Component) -> Made:
        branches = branches_of(one, self._components)
        if len(branches) > 1:
            why = f"a child has one way on, and this one has {listed(branches)}"
            raise _Refused(why)
        agent = self._inner(flow, self._components.at(one, "subflow"))
        made = self._child(flow, one, agent, self._told(flow, one))
        made.rows[list(made.rows)[-1]] = {NEXT: By(next(iter(branches)))}
        self._add("exact", one.kind, one.id, "a child", one.mark)
        return made

    def _parallel(self, flow: Flow, one: Component) -> Made:
        branches: list[Data] = []
        for value in self._components.items(one, "subflows"):
            name = self._inner(flow, self._components.of(value))
            branches.append({"agent": name, "prompt": GO_ON})
        if not branches:
            raise _Refused("it has no parts")
        node: dict[str, Data] = {"use": "parallel", "branches": branches, "join": "fail_fast"}
        said = "parallel: the answers are joined to one text"
        self._add("approximated", one.kind, one.id, said, one.mark)
        return self._answering(flow, flow.named(one.name), node)

    def _map(self, flow: Flow, one: Component) -> Made:
        inputs = self._components.titles(one, "inputs")
        sources = [flow.sources.get((one.id, title)) for title in inputs]
        listed = [title for title, found in zip(inputs, sources, strict=True) if found]
        before = sources[0] if len(listed) == len(inputs) == 1 else None
        others = [
            word(entry.value)
            for entry in self._components.pairs(one, "reducers")
            if word(entry.value) != "append"
        ]
        if before is None or before[0] not in flow.nodes:
            raise _Refused("a map has one list, the answer of the node before it")
        near = flow.ways.get(before[0]) == {NEXT: one.id}
        only = sum(one.id in row.values() for row in flow.ways.values()) == 1
        if flow.nodes[before[0]].kind not in SPEAKING or not (near and only):
            raise _Refused("its list is not the answer of the node before it")
        if others:
            raise _Refused(f"answers are texts, which have no {', '.join(others)}")
        node: dict[str, Data] = {
            "use": "map_over",
            "agent": self._inner(flow, self._components.at(one, "subflow")),
            "max_items": ITEMS_MAX,
            "join": "fail_fast",
            **({"concurrency": 1} if one.kind == "MapNode" else {}),
        }
        said = (
            f"map_over: at most {ITEMS_MAX} items, which the answer before it gives as a JSON "
            "array of texts; the answers are joined to one text"
        )
        self._add("approximated", one.kind, one.id, said, one.mark)
        return self._answering(flow, flow.named(one.name), node)

    def _branching(self, flow: Flow, one: Component) -> Made:
        inputs = [*self._components.titles(one, "inputs")] or ["branching_mapping_key"]
        source = flow.sources.get((one.id, inputs[0]))
        if source is None or source[0] not in flow.nodes:
            raise _Refused("nothing gives it a value")
        before = flow.nodes[source[0]]
        if before.kind not in ("AgentNode", "LlmNode", "FlowNode"):
            raise _Refused(f"its value comes from a {before.kind}, and no model can say")
        values: dict[str, list[str]] = {}
        for entry in self._components.pairs(one, "mapping"):
            values.setdefault(word(entry.value), []).append(entry.key)
        said = {
            branch: f"the {source[1]} is {' or '.join(map(repr, keys))}"
            for branch, keys in values.items()
            if branch != DEFAULT
        }
        if not said:
            raise _Refused("its mapping has no branch beside the default")
        routes = _routes(said)
        name = flow.named(one.name)
        node: dict[str, Data] = {
            "use": "router",
            "routes": {way: words for way, (_, words) in routes.items()},
            "prompt": f"What is the {source[1]} that was answered? Choose none if none is meant.",
        }
        row: dict[str, Way] = {way: By(branch) for way, (branch, _) in routes.items()}
        row |= {"unrouted": By(DEFAULT), "else": LEAVE}
        words = "a router: a model that reads the conversation decides, not a comparison of texts"
        self._add("approximated", one.kind, one.id, words, one.mark)
        return Made(name, {name: node}, {name: row})

    def _tool_node(self, flow: Flow, one: Component) -> Made:
        tool = self._components.at(one, "tool")
        self._context.metadata(tool)
        if tool.kind not in ("ServerTool", "ClientTool"):
            why = f"a {tool.kind} is not called from a document"
            raise _Refused(why)
        if self._components.flag(tool, "requires_confirmation", missing=False):
            why = "its tool requires a confirmation, and no gate stands before a function"
            raise _Refused(why)
        if tool.says("inputs") or one.says("inputs"):
            raise _Refused("its tool has inputs, and no values are passed to a function")
        self._context.uses("function", tool.name, tool.mark)
        name = flow.named(one.name)
        node: dict[str, Data] = {"use": "function", "callback": tool.name, "leaves_by": ["ran"]}
        said = "a function that is registered by the tool's name, and leaves by `ran`"
        self._add("approximated", one.kind, one.id, said, one.mark)
        return Made(name, {name: node}, {name: {"ran": By(NEXT), "else": LEAVE}})


def _routes(said: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return for each outcome's name the branch that it stands for, and its words."""
    routes: dict[str, tuple[str, str]] = {}
    for number, (branch, words) in enumerate(said.items(), 1):
        own = [*_ways(branch)]
        numbered = [f"{one}_way{number}" for one in own]
        names = chain(own, numbered, (f"way{one}" for one in count(number)))
        name = next(one for one in names if one not in routes and _is_route(one))
        routes[name] = (branch, words)
    return routes


def _ways(branch: str) -> Iterator[str]:
    """Yield names like that of a branch, the nearest first; they may be no outcomes' names."""
    words = [one for one in re.split(r"[^a-z0-9]+", branch.lower()) if one]
    joined: list[str] = []
    for one in words:
        # Outcomes are classes, too, in whose names a letter alone is no word: "e-mail", "don't".
        if joined and 1 in {len(joined[-1]), len(one)}:
            joined[-1] += one
        else:
            joined.append(one)
    for parts in (words, joined):
        own = "_".join(one if one[0].isalpha() else f"n{one}" for one in parts)
        yield f"to_{own[:LETTERS_MAX].strip('_')}"


def _is_route(name: str) -> bool:
    try:
        route_outcome(name)
    except ConfigError:
        return False
    return True
