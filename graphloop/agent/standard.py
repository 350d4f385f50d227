"""The standard loop of one agent: its nodes, its graph, and the terms of its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..conversation import Compaction
from ..errors import ConfigError
from ..limits import HasToolCall, StopCondition, parts_of
from ..loop import Standard, standard_edges
from ..nodes import AnswerCheck, Compact, Execute, Gate, ModelCall, PrepareStep, StopCheck, Verify
from ..values import ToolChoice, ToolSpec, evolve
from .callbacks import COMPACT, DONE_WHEN, PREPARE_STEP, STOP_WHEN, VERIFY, agent_callbacks
from .final_answer import OUTPUT, FinalAnswer
from .graph import Graph
from .inputs import Model
from .known import attach_metadata
from .options import (
    AgentOptions,
    Checks,
    Limits,
    Permissions,
    group,
    reject_unknown_options,
    stop_input,
)
from .terms import RunTerms
from .world import AgentResources, active_names, check_gate, checked_tool_names, choice_of, offered

__all__ = ["agent_terms", "standard_nodes"]

LONE: Final = {
    "output_mode": "output_type",
    "max_output_retries": "output_type",
    "max_done_retries": "done_when",
    "max_verify_retries": "verify",
}
"""Options that mean something beside another one, and nothing alone."""


def agent_terms(
    model: Model, given: AgentOptions
) -> tuple[Graph[None], RunTerms[None], AgentOptions]:
    """Return an agent's graph, the terms of its runs, and its options.

    Raises:
        ConfigError: an option, the model or a tool cannot work.
    """
    reject_unknown_options(given, AgentOptions, "an agent")
    options = _kept(given)
    if options.get("agents"):
        raise ConfigError(
            "`agents` are for the Child nodes of a graph of your own; give an agent the agents "
            "that it may call among its `tools`"
        )
    world = AgentResources(model, options, options.get("tools", ()))
    fallbacks = [world.add_model(one) for one in options.get("fallback_models", ())]
    final = _final_answer(options, [world.label, *fallbacks])
    if final is not None and final.tool is not None:
        world.answer_by(final.tool)
    conditions, predicates = stop_input(options.get("stop_when", ()))
    nodes = standard_nodes(options, world, conditions, predicates=bool(predicates))
    graph: Graph[None] = Graph(options.get("name", "agent"), nodes.prepare, standard_edges(nodes))
    attach_metadata(graph, world, options)
    terms = RunTerms(
        graph,
        options,
        world,
        callbacks=agent_callbacks(options, world, nodes.prepare, predicates, final),
        own_gates=options.get("gate"),
        final=final,
    )
    return graph, terms, options


def standard_nodes(
    options: AgentOptions,
    world: AgentResources,
    conditions: tuple[StopCondition, ...],
    *,
    predicates: bool,
) -> Standard:
    """Return the nodes of the standard loop with the parameters of the options."""
    specs, limits = world.toolbox.specs, group(options, Limits)
    permissions = group(options, Permissions)
    gate = permissions.gate
    fallbacks = tuple([world.add_model(one) for one in options.get("fallback_models", ())])
    compaction = _summarizing(options.get("compaction"), world)
    parts = [part for one in conditions for part in parts_of(one)]
    watched = [one.tool for one in parts if isinstance(one, HasToolCall)]
    if (
        options.get("prepare_step") is None
    ):  # `prepare_step` may add the tool that `has_tool_call` names.
        checked_tool_names("stop.has_tool_call", watched, specs)
    if gate is not None:
        check_gate(gate, world.callable_names)
    _check_approvals(options, world)
    given = options.get("active_tools")
    if given is not None and not given and world.given and not world.own:
        raise ConfigError(
            "`active_tools`: expected a tool, found none, so no tool could ever run. Fix: leave it "
            "out to offer all, or say tool_choice='none'."
        )
    active = None if given is None else active_names(given, specs, world)
    compact = COMPACT if options.get("compact") else ""
    if compact and compaction is None:
        raise ConfigError(
            "`compact` shortens a conversation that is too long, and `compaction` says when that "
            "is: give `compaction=Compaction(context_window=…)`"
        )
    choice = _tool_choice(options, world, offered(specs, active))
    callback = PREPARE_STEP if options.get("prepare_step") else ""
    hold = not permissions.run_ungated
    return Standard(
        PrepareStep(
            active_tools=active, tool_choice=choice, callback=callback, compaction=compaction
        ),
        Compact(compaction=compaction, callback=compact),
        ModelCall(fallbacks=fallbacks),
        Gate(rules=() if gate is None else (*world.allowed, *gate.rules), hold=hold),
        Execute(concurrency=limits.max_tool_concurrency, hold=hold),
        Verify(_checks(options)),
        StopCheck(
            max_steps=limits.max_steps,
            max_tool_errors=limits.max_consecutive_tool_errors,
            max_denials=limits.max_consecutive_denials,
            conditions=conditions,
            callback=STOP_WHEN if predicates else "",
        ),
    )


def _tool_choice(
    options: AgentOptions, world: AgentResources, tools: Sequence[ToolSpec]
) -> ToolChoice:
    """Return how freely the model may choose among these tools."""
    # The tool that takes the answer is the only way to give it; a model that thinks, of those that
    # only such a tool serves, takes no forced choice (Anthropic's page on extended thinking).
    extra = options.get("provider_options")
    forced = world.own and not (isinstance(extra, Mapping) and "thinking" in extra)
    choice = choice_of(options.get("tool_choice", "required" if forced else "auto"), tools)
    if choice.mode == "none" and choice.scope == "every_step" and world.own:
        raise ConfigError(
            "`tool_choice='none'` leaves no way to give an answer of the output_type, which a tool "
            "takes: leave it out, or say output_mode='native'"
        )
    return choice


def _summarizing(compaction: Compaction | None, world: AgentResources) -> Compaction | None:
    """Make the model that summarises known, by its name or as one that is known already."""
    if compaction is None or compaction.summary_model in {"", *world.models}:
        return compaction
    return evolve(compaction, summary_model=world.add_model(compaction.summary_model))


def _check_approvals(options: AgentOptions, world: AgentResources) -> None:
    """Refuse options about approvals where no call can ever need one."""
    gate = options.get("gate")
    tools = [world.toolbox.get(one.name) for one in world.toolbox.specs]
    may_ask = (
        bool(world.children)
        or options.get("prepare_step") is not None
        or any(one is not None and one.needs_approval is not False for one in tools)
        or (gate is not None and any(rule.verdict == "ask" for rule in gate.rules))
    )
    for option in ("approval_ttl_s", "approval_secret"):
        if options.get(option) is not None and not may_ask:
            raise ConfigError(
                f"`{option}` has no effect: no tool needs approval, and no rule of a gate asks for "
                "one. Say needs_approval=True of a tool, or give gate=ask(…)"
            )


def _checks(options: AgentOptions) -> tuple[AnswerCheck, ...]:
    given, checks = group(options, Checks), list[AnswerCheck]()
    if given.output_type is not None:
        checks.append(AnswerCheck(OUTPUT, given.max_output_retries, failure="OutputInvalid"))
    if given.done_when is not None:
        checks.append(AnswerCheck(DONE_WHEN, given.max_done_retries, given_up="false_finish"))
    if given.verify is not None:
        checks.append(AnswerCheck(VERIFY, given.max_verify_retries, given_up="unverified"))
    for option, needed in LONE.items():
        if option in options and options.get(needed) is None:
            raise ConfigError(f"`{option}` has no effect without `{needed}`: give both, or neither")
    return tuple(checks)


def _kept(options: AgentOptions) -> AgentOptions:
    """Return the options with tools that later changes to the caller's list do not reach."""
    kept = options.copy()
    tools = options.get("tools")
    if isinstance(tools, Mapping):
        kept["tools"] = dict(tools)
    elif isinstance(tools, Sequence):
        kept["tools"] = tuple(tools)
    return kept


def _final_answer(options: AgentOptions, labels: Sequence[str]) -> FinalAnswer | None:
    checks = group(options, Checks)
    if checks.output_type is None:
        return None
    own_server = options.get("base_url") is not None
    return FinalAnswer(checks.output_type, checks.output_mode, labels, own_server=own_server)
