"""Callbacks: wrap the functions among an agent's options for the nodes of the standard loop.

A callback checks the return value of the caller's function and converts it to a `CallbackAnswer`.
The journal keeps the answer, so a replay does not call the function again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from ..conversation import latest_answer, repaired
from ..driver import Callback
from ..errors import ConfigError, OutputInvalid
from ..events import AnswerChecked, CallbackAnswer, Changes, StopRequested
from ..nodes import PrepareStep
from ..run import Run
from ..tools import Toolbox, awaited, yes_or_no
from ..values import Message
from .final_answer import OUTPUT, FinalAnswer
from .hooks import AnswerInfo, Predicate, Review, StepChanges, StepInfo, StopContext
from .inherited_limits import added_under
from .inputs import (
    MessageInput,
    checked_tool_names,
    choice_from_now,
    choice_of,
    messages_of,
    offered,
)
from .options import Options
from .resources import AgentResources, active_names

__all__ = [
    "COMPACT",
    "DONE_WHEN",
    "PREPARE_STEP",
    "STOP_WHEN",
    "VERIFY",
    "agent_callbacks",
]

COMPACT: Final = "compact"
DONE_WHEN: Final = "done_when"
PREPARE_STEP: Final = "prepare_step"
STOP_WHEN: Final = "stop_when"
VERIFY: Final = "verify"

NOT_DONE: Final = (
    "The work is not done yet. Go on with it, and answer only when nothing is left to do."
)
NOT_GOOD: Final = "The answer was not accepted. Improve it."


def agent_callbacks(
    options: Options,
    resources: AgentResources,
    every_turn: PrepareStep,
    predicates: Sequence[Predicate[Any]],
    final: FinalAnswer | None,
) -> Callable[[Toolbox, object], Mapping[str, Callback[None]]]:
    """Return a function that builds a run's callbacks by name from the run's toolbox and `deps`.

    Each run has its own toolbox, because `prepare_step` can add tools to it.
    """

    def made(deps: object) -> dict[str, Callback[None]]:
        own = _callbacks(options, predicates, final, deps)
        screens = {name: screen.with_deps(deps) for name, screen in resources.screens.items()}
        return {**screens, **own}

    without, prepare = made(None), options.prepare_step
    if prepare is None:
        return lambda _, deps: without if deps is None else made(deps)
    return lambda box, deps: {
        **made(deps),
        PREPARE_STEP: _prepare_callback(prepare, resources, every_turn, box, deps),
    }


def _callbacks(
    options: Options, predicates: Sequence[Predicate[Any]], final: FinalAnswer | None, deps: object
) -> dict[str, Callback[None]]:
    callbacks: dict[str, Callback[None]] = {}
    if predicates:
        callbacks[STOP_WHEN] = _stop_callback(predicates, deps)
    if options.compact is not None:
        callbacks[COMPACT] = _compact_callback(options.compact, deps)
    if final is not None:
        callbacks[OUTPUT] = _output_callback(final)
    if options.done_when is not None:
        callbacks[DONE_WHEN] = _check_callback(DONE_WHEN, options.done_when, final, NOT_DONE, deps)
    if options.verify is not None:
        callbacks[VERIFY] = _check_callback(VERIFY, options.verify, final, NOT_GOOD, deps)
    return callbacks


def _prepare_callback(
    prepare: Callable[[StepInfo], object],
    resources: AgentResources,
    every_turn: PrepareStep,
    box: Toolbox,
    deps: object,
) -> Callback[None]:
    async def callback(run: Run[None]) -> CallbackAnswer:
        info = StepInfo(run.turn.number, run.messages, run.spent.usage, deps)
        changes = await awaited(prepare(info))
        if changes is None:
            return Changes()
        if not isinstance(changes, StepChanges):
            raise ConfigError(
                f"expected `prepare_step` to return StepChanges or None, found "
                f"{type(changes).__name__}"
            )
        return _read_changes(changes, run, resources, every_turn, box)

    return callback


def _read_changes(
    changes: StepChanges,
    run: Run[None],
    resources: AgentResources,
    every_turn: PrepareStep,
    box: Toolbox,
) -> Changes:
    before = run.setup.tools
    gone = checked_tool_names("withdraw_tools", changes.withdraw_tools, before)
    added = added_under(run.setup, Toolbox(changes.add_tools).specs)
    names = {*gone, *(tool.name for tool in added)}
    if not names.isdisjoint(resources.own):
        raise ConfigError(
            f"`add_tools` and `withdraw_tools`: expected tools of the caller, found "
            f"{resources.own[0]!r}, the tool that takes the final answer. Fix: leave it out."
        )
    tools = (*(tool for tool in before if tool.name not in names), *added)
    given, model = changes.active_tools, changes.model
    active = None if given is None else active_names(given, tools, resources)
    there = offered(tools, every_turn.active_tools if active is None else active)
    if changes.tool_choice is None:
        choice_of(run.turn.tool_choice, there)  # Refuses a choice that is now impossible.
        choice = None
    else:
        choice = choice_from_now(changes.tool_choice, there)
    messages = None if changes.messages is None else _repair_messages(changes.messages)
    if added:
        box.add(changes.add_tools)
    return Changes(
        messages=messages,
        active_tools=active,
        tool_choice=choice,
        model=None if model is None else resources.add_model(model),
        add_tools=added,
        withdraw_tools=gone,
    )


def _stop_callback(predicates: Sequence[Predicate[Any]], deps: object) -> Callback[None]:
    async def callback(run: Run[None]) -> CallbackAnswer:
        info = StopContext(run.record.steps, run.spent, run.spent.seconds, deps)
        tripped: list[str] = []
        for predicate in predicates:
            said = await awaited(predicate(info))
            try:
                if yes_or_no(said):
                    tripped.append(_name_of(predicate))
            except ConfigError as error:
                # A predicate that returns no bool stops the run, which loses no result by an error.
                tripped.append(f"{_name_of(predicate)}: {error}")
        return StopRequested(tuple(tripped))

    return callback


def _compact_callback(compact: Callable[[StepInfo], object], deps: object) -> Callback[None]:
    async def callback(run: Run[None]) -> CallbackAnswer:
        info = StepInfo(run.turn.number, run.messages, run.spent.usage, deps)
        shorter = await awaited(compact(info))
        try:
            return Changes(messages=_repair_messages(cast("Sequence[MessageInput]", shorter)))
        except ConfigError as error:
            raise ConfigError(
                f"expected `compact` to return a conversation, found {error}"
            ) from error

    return callback


def _output_callback(final: FinalAnswer) -> Callback[None]:
    async def callback(run: Run[None]) -> CallbackAnswer:
        try:
            final.answer(run)
        except OutputInvalid as error:
            return AnswerChecked(accepted=False, feedback=str(error))
        return AnswerChecked(accepted=True)

    return callback


def _check_callback(
    name: str,
    check: Callable[[AnswerInfo], object],
    final: FinalAnswer | None,
    feedback: str,
    deps: object,
) -> Callback[None]:
    async def callback(run: Run[None]) -> CallbackAnswer:
        info = AnswerInfo(
            text=latest_answer(run) if final is None else final.said(run),
            output=None if final is None else final.answer(run),
            messages=run.messages,
            usage=run.spent.usage,
            step_index=run.turn.number,
            attempt=run.counters.rejections.get(name, 0),
            deps=deps,
        )
        review = await awaited(check(info))
        if isinstance(review, bool):
            return AnswerChecked(review, "" if review else feedback)
        if not isinstance(review, Review) or not isinstance(review.feedback, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(
                f"expected `{name}` to return True, False or a Review, "
                f"found {type(review).__name__}"
            )
        return AnswerChecked(
            review.ok is True, review.feedback or feedback, review.retry is not False
        )

    return callback


def _repair_messages(messages: Sequence[MessageInput]) -> tuple[Message, ...]:
    """Convert the caller's messages, and repair them so that every call has a result."""
    return repaired(messages_of(messages)).messages


def _name_of(predicate: Predicate[Any]) -> str:
    """Return the function's `__name__`; "custom" for a lambda or a partial."""
    name = getattr(predicate, "__name__", "")
    return name if isinstance(name, str) and name.isidentifier() else "custom"
