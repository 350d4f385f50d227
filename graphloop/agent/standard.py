"""The standard loop of one agent: the nodes and callbacks that its options make.

What a function returns is checked here and becomes an `Answer`, a fact of the journal: a replay
never calls a user's function again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

from ..conversation import Compaction, latest_answer, repaired
from ..driver import Callback
from ..errors import ConfigError, OutputInvalid
from ..events import Answer, AnswerChecked, Changes, StopRequested
from ..limits import Condition, HasToolCall, StopInfo, parts_of
from ..loop import Standard
from ..nodes import AnswerCheck, Compact, Execute, Gate, ModelCall, PrepareStep, StopCheck, Verify
from ..run import Run
from ..tools import Toolbox, awaited, yes_or_no
from ..values import Message, ToolChoice, ToolSpec, evolve
from .final_answer import FinalAnswer
from .hooks import AnswerInfo, StepChanges, StepInfo, Verdict
from .inherited_limits import added_under
from .inputs import MessageInput, messages_of
from .options import AgentOptions, Checks, Limits, Permissions, Predicate, StopInput, group
from .world import AgentResources, checked_tool_names, choice_from_now, choice_of, offered

__all__ = [
    "COMPACT",
    "DONE_WHEN",
    "OUTPUT",
    "PREPARE_STEP",
    "STOP_WHEN",
    "VERIFY",
    "active_names",
    "agent_callbacks",
    "standard_nodes",
    "stop_input",
]

LONE: Final = {
    "output_mode": "output_type",
    "max_output_retries": "output_type",
    "max_done_retries": "done_when",
    "max_verify_retries": "verify",
}
"""Options that say something about another, and nothing alone."""


def standard_nodes(
    options: AgentOptions,
    world: AgentResources,
    conditions: tuple[Condition, ...],
    *,
    predicates: bool,
) -> Standard:
    """Return the nodes of the standard loop as the options want them."""
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
    """Refuse options about approvals that nobody can ever be asked for."""
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


T = TypeVar("T")

COMPACT: Final = "compact"
DONE_WHEN: Final = "done_when"
OUTPUT: Final = "output"
PREPARE_STEP: Final = "prepare_step"
STOP_WHEN: Final = "stop_when"
VERIFY: Final = "verify"

NOT_DONE: Final = (
    "The work is not done yet. Go on with it, and answer only when nothing is left to do."
)
NOT_GOOD: Final = "The answer was not accepted. Improve it."


def agent_callbacks(
    options: AgentOptions,
    world: AgentResources,
    every_turn: PrepareStep,
    predicates: Sequence[Predicate],
    final: FinalAnswer | None,
) -> Callable[[Toolbox], Mapping[str, Callback[None]]]:
    """Return what makes the callbacks of a run, by the names that the agent's nodes give.

    A run has a toolbox of its own, so that no tool that is added to it is called by another run.
    """
    callbacks: dict[str, Callback[None]] = {}
    if predicates:
        callbacks[STOP_WHEN] = _stop(predicates)
    if (compact := options.get("compact")) is not None:
        callbacks[COMPACT] = _compact(compact)
    if final is not None:
        callbacks[OUTPUT] = _output(final)
    if (done_when := options.get("done_when")) is not None:
        callbacks[DONE_WHEN] = _judge(DONE_WHEN, done_when, final, NOT_DONE)
    if (verify := options.get("verify")) is not None:
        callbacks[VERIFY] = _judge(VERIFY, verify, final, NOT_GOOD)
    if (prepare := options.get("prepare_step")) is None:
        return lambda _: callbacks
    return lambda box: {**callbacks, PREPARE_STEP: _prepare(prepare, world, every_turn, box)}


def active_names(
    given: Sequence[str], tools: Sequence[ToolSpec], world: AgentResources
) -> tuple[str, ...]:
    """Return the names of the active tools, and of those without which no answer can be given.

    Raises:
        ConfigError: one does not exist.
    """
    known = checked_tool_names("active_tools", given, tools)
    return (*known, *(name for name in world.own if name not in known))


def _prepare(
    prepare: Callable[[StepInfo], object],
    world: AgentResources,
    every_turn: PrepareStep,
    box: Toolbox,
) -> Callback[None]:
    async def callback(run: Run[None]) -> Answer:
        info = StepInfo(run.turn.number, run.messages, run.spent.usage)
        changes = await awaited(prepare(info))
        if changes is None:
            return Changes()
        if not isinstance(changes, StepChanges):
            raise ConfigError(
                f"`prepare_step` returns StepChanges or None; found {type(changes).__name__}"
            )
        return _changes(changes, run, world, every_turn, box)

    return callback


def _changes(
    changes: StepChanges,
    run: Run[None],
    world: AgentResources,
    every_turn: PrepareStep,
    box: Toolbox,
) -> Changes:
    before = run.setup.tools
    gone = checked_tool_names("withdraw_tools", changes.withdraw_tools, before)
    added = added_under(run.setup, Toolbox(changes.add_tools).specs)
    names = {*gone, *(one.name for one in added)}
    if not names.isdisjoint(world.own):
        raise ConfigError(f"{world.own[0]!r} takes the answer: it is not added or withdrawn")
    specs = (*(one for one in before if one.name not in names), *added)
    given, model = changes.active_tools, changes.model
    active = None if given is None else active_names(given, specs, world)
    there = offered(specs, every_turn.active_tools if active is None else active)
    if changes.tool_choice is None:
        # The agent's own choice, too, may be impossible among the tools of this turn.
        choice_of(run.turn.tool_choice, there)
        choice = None
    else:
        choice = choice_from_now(changes.tool_choice, there)
    messages = None if changes.messages is None else _whole(changes.messages)
    if added:
        box.add(changes.add_tools)
    return Changes(
        messages=messages,
        active_tools=active,
        tool_choice=choice,
        model=None if model is None else world.add_model(model),
        add_tools=added,
        withdraw_tools=gone,
    )


def _stop(predicates: Sequence[Predicate]) -> Callback[None]:
    async def callback(run: Run[None]) -> Answer:
        info = StopInfo.of(run)
        tripped: list[str] = []
        for one in predicates:
            said = await awaited(one(info))
            try:
                if yes_or_no(said):
                    tripped.append(_name_of(one))
            except ConfigError as error:
                # A bound that does not say no holds: the turn is complete, and nothing is lost.
                tripped.append(f"{_name_of(one)}: {error}")
        return StopRequested(tuple(tripped))

    return callback


def _compact(compact: Callable[[StepInfo], object]) -> Callback[None]:
    async def callback(run: Run[None]) -> Answer:
        info = StepInfo(run.turn.number, run.messages, run.spent.usage)
        shorter = await awaited(compact(info))
        found = type(shorter).__name__
        if isinstance(shorter, str | bytes | Mapping) or not isinstance(shorter, Iterable):
            raise ConfigError(
                f"`compact` returns the list of messages to go on with; found {found}"
            )
        try:
            # What its members are shows in `messages_of`.
            return Changes(messages=_whole(cast("Sequence[Any]", shorter)))
        except ConfigError as error:
            raise ConfigError(f"`compact` returned no conversation: {error}") from error

    return callback


def _output(final: FinalAnswer) -> Callback[None]:
    async def callback(run: Run[None]) -> Answer:
        try:
            final.answer(run)
        except OutputInvalid as error:
            return AnswerChecked(accepted=False, feedback=str(error))
        return AnswerChecked(accepted=True)

    return callback


def _judge(
    name: str,
    judge: Callable[[AnswerInfo], object],
    final: FinalAnswer | None,
    feedback: str,
) -> Callback[None]:
    async def callback(run: Run[None]) -> Answer:
        info = AnswerInfo(
            text=latest_answer(run) if final is None else final.said(run),
            output=None if final is None else final.answer(run),
            messages=run.messages,
            usage=run.spent.usage,
            step_index=run.turn.number,
            attempt=run.counters.rejections.get(name, 0),
        )
        verdict = await awaited(judge(info))
        if isinstance(verdict, bool):
            return AnswerChecked(verdict, "" if verdict else feedback)
        if not isinstance(verdict, Verdict) or not isinstance(verdict.feedback, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(
                f"`{name}` returns True, False or a Verdict; found {type(verdict).__name__}"
            )
        return AnswerChecked(
            verdict.ok is True, verdict.feedback or feedback, verdict.retry is not False
        )

    return callback


def _whole(messages: Sequence[MessageInput]) -> tuple[Message, ...]:
    """Return a conversation of the user's making, in which every call is answered."""
    return repaired(messages_of(messages)).messages


def _name_of(predicate: Predicate) -> str:
    """Return a function's own name; a lambda and a partial have none."""
    name = getattr(predicate, "__name__", "")
    return name if isinstance(name, str) and name.isidentifier() else "custom"
