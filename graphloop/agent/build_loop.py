"""Build the standard loop of an agent from its options: nodes, graph, and terms of its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, cast

from .. import nodes as node_room
from ..conversation import Compaction
from ..errors import ConfigError
from ..limits import StopCondition, tools_in
from ..loop import Standard, standard_edges
from ..nodes import (
    AnswerCheck,
    Compact,
    Execute,
    Gate,
    ModelCall,
    PrepareStep,
    StopCheck,
    Verify,
)
from ..values import ToolChoice, ToolSpec, evolve
from .callbacks import (
    COMPACT,
    DONE_WHEN,
    PREPARE_STEP,
    STOP_WHEN,
    VERIFY,
    agent_callbacks,
)
from .child_runs import attach_metadata
from .final_answer import OUTPUT, FinalAnswer
from .graph import Graph
from .hooks import stop_input
from .inputs import Model, checked_tool_names, choice_of, offered
from .options import (
    BY_REQUEST,
    TO_SERVICE,
    EveryAgentOption,
    Options,
    refuse_unknown_options,
)
from .resources import (
    REQUEST_OPTIONS,
    AgentResources,
    active_names,
    check_gate,
    screens_of,
)
from .terms import RunTerms

__all__ = ["agent_terms", "merged_options"]

VARIANTS_MAX: Final = 16
"""How many limits of turns an agent keeps a graph for."""

LONE: Final = {
    "output_mode": "output_type",
    "max_output_retries": "output_type",
    "max_done_retries": "done_when",
    "max_verify_retries": "verify",
    "screen_in_parallel": "screen",
}
"""Maps an option that has no effect alone to the option that it needs."""


def agent_terms(
    model: Model, given: EveryAgentOption, base: RunTerms[None] | None = None
) -> tuple[Graph[None], RunTerms[None], EveryAgentOption]:
    """Return an agent's graph, the terms of its runs, and a copy of its options.

    Args:
        model: the model.
        given: the options.
        base: the terms of another agent, whose store and connections these terms share.

    Raises:
        ConfigError: an option, the model or a tool is not valid.
    """
    refuse_unknown_options(given, EveryAgentOption, "an agent")
    kept = _copy_options(given)
    options = Options.read(kept)
    if options.agents:
        raise ConfigError(
            "`agents` are for the Child nodes of a graph of your own; give an agent the agents "
            "that it may call among its `tools`"
        )
    known = {} if base is None or _has_other_access(kept, base) else base.resources.models
    screens, guards = screens_of(options.screen, kept)
    resources = AgentResources(model, options, guards, screens, known=known)
    fallbacks = tuple([resources.add_model(fallback) for fallback in options.fallback_models])
    final = None
    if options.output_type is not None:
        final = FinalAnswer(
            options.output_type,
            options.output_mode,
            [resources.label, *fallbacks],
            own_server=options.base_url is not None,
        )
        if final.tool is not None:
            resources.answer_by(final.tool)
    conditions, predicates = stop_input(options.stop_when)
    nodes = _make_nodes(options, resources, fallbacks, conditions, has_predicates=bool(predicates))
    if screens or guards:
        nodes = _with_screen(nodes, tuple(screens), tuple(guards), options)
    graph: Graph[None] = Graph(options.name, nodes.start, standard_edges(nodes))
    attach_metadata(graph, resources)
    terms = RunTerms(
        graph,
        options,
        resources,
        callbacks=agent_callbacks(options, resources, nodes.prepare, predicates, final),
        own_gates=options.gate,
        final=final,
        recast=partial(_call_terms, model, kept, {}),
        base=base,
    )
    return graph, terms, kept


def _has_other_access(kept: EveryAgentOption[Any], base: RunTerms[None]) -> bool:
    own, names = base.options.given, (*TO_SERVICE, *BY_REQUEST)
    return any(name in kept and kept.get(name) != own.get(name) for name in names)


def merged_options(
    model: Model, kept: EveryAgentOption[Any], given: Mapping[str, object]
) -> tuple[Model, EveryAgentOption[Any]]:
    """Return a model and options in which the given ones replace those of an agent.

    Access to the agent's model does not apply to a model of another service, or to a provider.

    Args:
        model: the agent's model.
        kept: the agent's options.
        given: the options that replace them, and perhaps `model`.
    """
    changes, now = {**given}, cast("Model | None", given.get("model"))
    changes.pop("model", None)
    before: dict[str, object] = {**kept}
    if now is not None and now is not model:
        ready = not isinstance(now, str) or now.startswith("script:")
        same = (
            isinstance(model, str)
            and isinstance(now, str)
            and _service_of(model) == _service_of(now)
        )
        for name in (*TO_SERVICE, *BY_REQUEST) if ready else () if same else TO_SERVICE:
            before.pop(name, None)
    return now or model, cast("EveryAgentOption[Any]", {**before, **changes})


def _service_of(model: str) -> str:
    return model.partition(":")[0]


def _call_terms(
    model: Model,
    kept: EveryAgentOption[Any],
    known: dict[str, RunTerms[None]],
    own: RunTerms[None],
    given: Mapping[str, object],
) -> RunTerms[None]:
    """Return the terms of one call, whose options replace those of the agent.

    The graph is built again only if it differs: for another limit of turns, and for another model
    or other provider options of an agent with an `output_type`.

    Args:
        model: the agent's model.
        kept: the agent's options.
        known: the terms of earlier calls with a graph of their own, by their limit of turns.
        own: the terms of the agent's runs.
        given: the options of the call.

    Raises:
        ConfigError: an option is invalid.
    """
    now, options = merged_options(model, kept, given)
    terms, most = own, given.get("max_steps", 0)
    output = own.final is not None and (now is not model or "provider_options" in given)
    if output:
        plain: dict[str, object] = {**options}
        for name in REQUEST_OPTIONS & given.keys():
            plain.pop(name)  # `for_call` applies them, to share the connections.
        _, terms, _ = agent_terms(now, cast("EveryAgentOption[Any]", plain), own)
    elif "max_steps" in given:
        limit = repr(most)  # `StopCheck` refuses what is no number.
        if limit not in known:
            limited: dict[str, object] = {**kept, "max_steps": most}
            _, terms, _ = agent_terms(model, cast("EveryAgentOption[Any]", limited), own)
            if len(known) >= VARIANTS_MAX:
                known.clear()
            known[limit] = terms
        terms = known[limit]
    return _with_call_options(terms, own, Options.read(options), given, cast("int", most))


def _with_call_options(
    terms: RunTerms[None],
    own: RunTerms[None],
    options: Options,
    given: Mapping[str, object],
    max_steps: int,
) -> RunTerms[None]:
    """Return terms on the same graph, with other instructions, settings, model or access."""
    prepare = next(one for one in terms.graph.nodes.values() if isinstance(one, PrepareStep))
    resources = terms.resources.for_call(options, given)
    if options.prepare_step is None:
        resources.refuse_unfit()
    _, predicates = stop_input(options.stop_when)
    return RunTerms(
        terms.graph,
        options,
        resources,
        callbacks=agent_callbacks(options, resources, prepare, predicates, terms.final),
        own_gates=options.gate,
        final=terms.final,
        recast=own.recast,
        base=own,
        max_steps=max_steps,
    )


def _copy_options(given: EveryAgentOption) -> EveryAgentOption:
    """Return a copy of the options and of their `tools`, so that later changes have no effect."""
    kept = given.copy()
    tools = given.get("tools")
    if isinstance(tools, Mapping):
        kept["tools"] = dict(tools)
    elif isinstance(tools, Sequence):
        kept["tools"] = tuple(tools)
    return kept


def _make_nodes(
    options: Options,
    resources: AgentResources,
    fallbacks: tuple[str, ...],
    conditions: tuple[StopCondition, ...],
    *,
    has_predicates: bool,
) -> Standard:
    """Return the nodes of the standard loop, with parameters from the agent's options."""
    _refuse_idle(options, resources, conditions)
    gate, active = options.gate, options.active_tools
    compaction = _make_compaction(options.compaction, resources, fallbacks)
    specs, hold = resources.toolbox.specs, not options.run_ungated
    if active is not None:
        active = active_names(active, specs, resources)
    choice = _tool_choice(options, resources, offered(specs, active))
    return Standard(
        PrepareStep(
            active_tools=active,
            tool_choice=choice,
            callback=PREPARE_STEP if options.prepare_step else "",
            compaction=compaction,
        ),
        Compact(compaction=compaction, callback=COMPACT if options.compact else ""),
        ModelCall(fallbacks=fallbacks),
        Gate(rules=() if gate is None else (*resources.allowed, *gate.rules), hold=hold),
        Execute(max_tool_concurrency=options.max_tool_concurrency, hold=hold),
        Verify(_answer_checks(options)),
        StopCheck(
            max_steps=options.max_steps,
            max_consecutive_tool_errors=options.max_consecutive_tool_errors,
            max_consecutive_denials=options.max_consecutive_denials,
            conditions=conditions,
            callback=STOP_WHEN if has_predicates else "",
        ),
    )


def _with_screen(
    nodes: Standard, functions: tuple[str, ...], agents: tuple[str, ...], options: Options
) -> Standard:
    """Return the nodes with a screen before the first turn, or beside the model call."""
    if options.screen_in_parallel:
        return nodes._replace(model=node_room.Screened(nodes.model, functions, agents))
    return nodes._replace(screen=node_room.Screen(functions, agents))


def _refuse_idle(
    options: Options, resources: AgentResources, conditions: tuple[StopCondition, ...]
) -> None:
    """Refuse options that have no effect, or that name a tool that does not exist.

    Raises:
        ConfigError: an option is refused; the message names it and the fix.
    """
    # With `prepare_step` no check: the function may add the tool that `has_tool_call` names, and
    # offer a server's tool to the models of its wire alone.
    if options.prepare_step is None:
        checked_tool_names("stop.has_tool_call", tools_in(conditions), resources.toolbox.specs)
        resources.refuse_unfit()
    if options.gate is not None:
        check_gate(options.gate, resources.callable_names)
    active = options.active_tools
    if active is not None and not active and resources.given and not resources.own:
        raise ConfigError(
            "`active_tools`: expected a tool, found none, so no tool could ever run. Fix: leave it "
            "out to offer all, or say tool_choice='none'."
        )
    if options.compact and options.compaction is None:
        raise ConfigError(
            "`compact` has no effect without `compaction`, which says when a conversation is too "
            "long. Fix: give `compaction=Compaction()`."
        )
    for option in ("approval_ttl_s", "approval_secret"):
        if options.given.get(option) is not None and not _may_ask(options, resources):
            raise ConfigError(
                f"`{option}` has no effect: no tool needs approval, and no rule of a gate asks for "
                "one. Fix: say needs_approval=True of a tool, or give gate=ask(…)."
            )


def _may_ask(options: Options, resources: AgentResources) -> bool:
    """Whether any tool call of such an agent could need an approval."""
    tools = [resources.toolbox.get(spec.name) for spec in resources.toolbox.specs]
    return (
        bool(resources.children)
        or options.prepare_step is not None
        or any(tool is not None and tool.needs_approval is not False for tool in tools)
        or (options.gate is not None and any(rule.verdict == "ask" for rule in options.gate.rules))
    )


def _tool_choice(
    options: Options, resources: AgentResources, tools: Sequence[ToolSpec]
) -> ToolChoice:
    """Return the `tool_choice` option; the default is "required" if the answer is a tool call."""
    # Anthropic's API refuses a forced choice together with extended thinking.
    extra = options.provider_options
    forced = resources.own and not (isinstance(extra, Mapping) and "thinking" in extra)
    choice = choice_of(options.tool_choice or ("required" if forced else "auto"), tools)
    if choice.mode == "none" and choice.scope == "every_step" and resources.own:
        raise ConfigError(
            "`tool_choice='none'` leaves no way to give an answer of the output_type, which a tool "
            "takes. Fix: leave it out, or say output_mode='native'."
        )
    return choice


def _make_compaction(
    compaction: Compaction | None, resources: AgentResources, fallbacks: Sequence[str]
) -> Compaction | None:
    """Return the compaction with a context window, and add its summary model to the runs' models.

    Raises:
        ConfigError: `context_window` is left out, and no published one is known.
    """
    if compaction is None:
        return None
    if compaction.context_window is None:
        compaction = evolve(compaction, context_window=resources.window(fallbacks))
    if compaction.summary_model in {"", *resources.models}:
        return compaction
    return evolve(compaction, summary_model=resources.add_model(compaction.summary_model))


def _answer_checks(options: Options) -> tuple[AnswerCheck, ...]:
    """Return the checks of the final answer in order: `output_type`, `done_when`, `verify`."""
    for option, needed in LONE.items():
        if option in options.given and options.given.get(needed) is None:
            raise ConfigError(f"`{option}` has no effect without `{needed}`: give both, or neither")
    checks: list[AnswerCheck] = []
    if options.output_type is not None:
        checks.append(AnswerCheck(OUTPUT, options.max_output_retries, failure="OutputInvalid"))
    if options.done_when is not None:
        checks.append(AnswerCheck(DONE_WHEN, options.max_done_retries, given_up="false_finish"))
    if options.verify is not None:
        checks.append(AnswerCheck(VERIFY, options.max_verify_retries, given_up="unverified"))
    return tuple(checks)
