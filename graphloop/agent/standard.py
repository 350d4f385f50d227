"""The standard loop of one agent: the nodes that its options make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from ..conversation import Compaction
from ..errors import ConfigError
from ..limits import Condition, HasToolCall, parts_of
from ..loop import Standard
from ..nodes import AnswerCheck, Compact, Execute, Gate, ModelCall, PrepareStep, StopCheck, Verify
from ..values import ToolChoice, ToolSpec, evolve
from .callbacks import COMPACT, DONE_WHEN, PREPARE_STEP, STOP_WHEN, VERIFY
from .final_answer import OUTPUT
from .options import AgentOptions, Checks, Limits, Permissions, Predicate, StopInput, group
from .world import AgentResources, active_names, checked_tool_names, choice_of, offered

__all__ = ["standard_nodes", "stop_input"]

LONE: Final = {
    "output_mode": "output_type",
    "max_output_retries": "output_type",
    "max_done_retries": "done_when",
    "max_verify_retries": "verify",
}
"""Options that mean something beside another one, and nothing alone."""


def standard_nodes(
    options: AgentOptions,
    world: AgentResources,
    conditions: tuple[Condition, ...],
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
    if options.get("prepare_step") is None:  # It may add the tool that is waited for.
        checked_tool_names("stop.has_tool_call", watched, specs)
    world.check_gate(gate)
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


def stop_input(given: StopInput) -> tuple[tuple[Condition, ...], tuple[Predicate, ...]]:
    """Part pure conditions, which the graph evaluates, from functions, which it invokes."""
    # isinstance cannot tell the item type.
    every = cast("Sequence[object]", given) if isinstance(given, Sequence) else (given,)
    conditions: list[Condition] = []
    predicates: list[Predicate] = []
    for one in every:
        if isinstance(one, Condition) and not isinstance(one, type):
            conditions.append(one)
        elif callable(one) and not isinstance(one, type):
            # What a function takes and returns shows only when it is called.
            predicates.append(cast("Predicate", one))
        else:
            raise ConfigError(
                "`stop_when` takes conditions (graphloop.limits.stop) and functions of StopInfo; "
                f"found {one!r}"
            )
    return tuple(conditions), tuple(predicates)
