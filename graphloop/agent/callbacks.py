"""callbacks: an agent's own functions, as the callbacks that the nodes of its loop invoke.

The answer of a function is checked here and becomes an `Answer`, a fact of the journal: a replay
never calls a function of the caller again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, cast

from ..conversation import latest_answer, repaired
from ..driver import Callback
from ..errors import ConfigError, OutputInvalid
from ..events import Answer, AnswerChecked, Changes, StopRequested
from ..limits import StopInfo
from ..nodes import PrepareStep
from ..run import Run
from ..tools import Toolbox, awaited, yes_or_no
from ..values import Message
from .final_answer import OUTPUT, FinalAnswer
from .inherited_limits import added_under
from .inputs import AnswerInfo, MessageInput, Review, StepChanges, StepInfo, messages_of
from .options import AgentOptions, Predicate
from .world import (
    AgentResources,
    active_names,
    checked_tool_names,
    choice_from_now,
    choice_of,
    offered,
)

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
            # `messages_of` checks its members.
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
        if not isinstance(verdict, Review) or not isinstance(verdict.feedback, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(
                f"`{name}` returns True, False or a Review; found {type(verdict).__name__}"
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
