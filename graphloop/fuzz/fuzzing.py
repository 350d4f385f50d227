"""fuzz: run a graph in hundreds of hostile worlds, and tell the simplest one in which it fails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..errors import ConfigError
from ..events import Setup
from ..front.agent import Agent
from ..front.graph import Graph as FrontGraph
from ..front.options import Tools
from ..front.runner import Runner
from ..front.topology import Topology
from ..front.world import split_tools
from ..graph import Graph
from ..limits import whole_number
from ..proofs.arguments import graph_given
from ..temporal import Rules, rules_of
from ..temporal_names import names_of, resolve
from ..tools import Toolbox
from ..values import evolve
from .choices import from_token
from .furnished import furnished
from .fuzzer import EVENTS_MAX, Fuzzer
from .report import FuzzReport
from .subject import Subject, invented_tools

__all__ = ["EVENTS_MAX", "Fuzzer", "fuzz", "replay_token", "subject_of"]


def fuzz(  # noqa: PLR0913 - each keyword is one dial
    subject: Agent | Graph[Any],  # The state may be of any type.
    *,
    seeds: int = 200,
    first_seed: int = 0,
    rules: Rules | Iterable[Rules] = (),
    tools: Tools = (),
    state: object = None,
    events_max: int = EVENTS_MAX,
) -> FuzzReport:
    """Run a graph in many simulated worlds, and return what went wrong, made as simple as it goes.

    The model, the tools, the people, the child runs and your own functions are all played by an
    adversary; processes die, and runs are stopped, at any moment. Nothing real is called. A seed
    always makes the same world.

    Args:
        subject: a graph, or an agent; one without tools gets some (`furnished`).
        seeds: how many worlds.
        first_seed: the first of the seeds, which follow one another.
        rules: temporal rules that must hold as well (`graphloop.temporal`).
        tools: the tools on offer, for a graph; some are made up if none are given.
        state: the state that each run begins with; what its type is without arguments, if not
            given.
        events_max: after how many events a run counts as endless; more where more are proven.

    Raises:
        ConfigError: a rule, a tool or a number cannot work.
    """
    rules = rules_of(rules)
    fuzzer = Fuzzer(subject_of(subject, tools, state, rules), events_max)
    report = fuzzer.search(first_seed, whole_number("seeds", seeds))
    return replace(report, given=_given(rules, tools, state, events_max))


def replay_token(
    subject: Agent | Graph[Any],
    token: str,
    *,
    rules: Rules | Iterable[Rules] = (),
    tools: Tools = (),
    state: object = None,
    events_max: int = EVENTS_MAX,
) -> FuzzReport:
    """Run the one world of a token again; the arguments are those of `fuzz`.

    Raises:
        ConfigError: it is no token, or an argument cannot work.
    """
    values, mark = from_token(token)
    rules = rules_of(rules)
    fuzzer = Fuzzer(subject_of(subject, tools, state, rules), events_max)
    return replace(fuzzer.again(values, mark), given=_given(rules, tools, state, events_max))


def _given(rules: Rules, tools: Tools, state: object, events_max: int) -> tuple[str, ...]:
    """Return the arguments that make the same world together with a token."""
    words = {
        "rules=…": bool(rules),
        "tools=…": bool(tools),
        "state=…": state is not None,
        f"events_max={events_max}": events_max != EVENTS_MAX,
    }
    return tuple([word for word, matters in words.items() if matters])


def subject_of(
    subject: Agent | Graph[Any],
    tools: Tools = (),
    state: object = None,
    rules: Rules | Iterable[Rules] = (),
) -> Subject[Any]:
    """Return what is fuzzed; the arguments are those of `fuzz`.

    Raises:
        ConfigError: a rule, a tool or the state cannot work, or it is no graph.
    """
    given = rules_of(rules)
    if isinstance(subject, Agent):
        if tools:
            raise ConfigError("`tools` are for a graph; an agent has its own")
        agent = furnished(subject)
        graph: Graph[Any] = agent.graph
        opener = agent.as_tool(name="fuzzed").opener
        assert isinstance(opener, Runner), "an agent's runs are opened by its runner"
        setup, toolbox = opener.setup, opener.world.toolbox
    else:
        graph = graph_given("fuzz", subject)
        brought = graph.with_tools(tools) if isinstance(graph, Topology) else tools
        toolbox = Toolbox(split_tools(brought)[0])
        invented = () if tools else invented_tools(graph, graph.rules & given)
        others = [one for one in invented if toolbox.get(one.name) is None]
        setup = Setup("model", (*toolbox.specs, *others))
    names = names_of(graph, [one.name for one in setup.tools])
    kept = resolve(graph.rules, names)
    setup = evolve(setup, watch=(Rules(setup.watch) & kept).rules)
    known = resolve(given, names) & kept
    iterated = isinstance(subject, Agent)
    state, approvals = _state(graph, state), _approvals(toolbox)
    return Subject(graph, state, setup, known, iterated=iterated, approvals=approvals)


def _approvals(toolbox: Toolbox) -> Mapping[str, bool]:
    """Return whether a person is asked about each tool's calls, where no predicate decides it."""
    tools = [tool for one in toolbox.specs if (tool := toolbox.get(one.name))]
    return {one.name: asks for one in tools if isinstance(asks := one.needs_approval, bool)}


def _state(graph: Graph[Any], given: object) -> object:
    kind = graph.state_type if isinstance(graph, FrontGraph) else None
    if given is not None or not isinstance(kind, type):
        return given
    try:
        made: object = kind()
    except TypeError as error:
        raise ConfigError(
            f"graph {graph.name!r} carries a state of type {kind.__name__}, which cannot be made "
            f"without arguments ({error}): give one with `state=`"
        ) from error
    return made
