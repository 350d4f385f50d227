"""Results of the user's functions, checked before they become facts of the journal.

A run whose journal cannot be read back could never be resumed, with all that it has done and paid
for. So answers of callbacks and states are checked for that.

Conditions of gates answer yes or no. The journal keeps the rules that a run began under; the
functions of their conditions are known to this process alone. A gate is found by its rules: a
condition without a function counts as failed, and a gate that is new holds as well.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Iterable, Sequence
from functools import lru_cache
from inspect import isawaitable
from typing import Final, NamedTuple, cast

from msgspec import ValidationError
from msgspec.json import Decoder, Encoder
from pydantic.errors import PydanticUserError

from ..errors import ConfigError, known_name
from ..events import (
    Answer,
    AnswerChecked,
    BranchesJoined,
    Changes,
    NodeReturned,
    RequestYielded,
    StopRequested,
)
from ..policy import Condition, Policy, Rule, policy_of, untold
from ..stores import Codec
from ..tools import AnyTool, ToolContext
from ..values import ToolCall, evolve

__all__ = [
    "NO_GATES",
    "Gates",
    "answer_of",
    "check_callback_answer",
    "check_state",
    "conditions_of",
    "gates_of",
    "rules_of",
]

ENCODER: Final = Encoder()
DECODER: Final = Decoder(Answer)


class Gates(NamedTuple):
    """The gates of the runs above, and of the caller, outermost first.

    Args:
        recorded: those that the run began under, as its journal has them.
        added: those that hold as well since the run was resumed.
    """

    recorded: tuple[Policy, ...]
    added: tuple[Policy, ...]


NO_GATES: Final = Gates((), ())


def check_callback_answer(answer: object, callback: str) -> Answer:
    """Return the answer of a callback if a journal can hold it; `check_state` sees a state in it.

    Raises:
        ConfigError: it is no answer, or a field of it is of another type.
    """
    if not isinstance(
        answer,
        Changes | StopRequested | NodeReturned | AnswerChecked | BranchesJoined | RequestYielded,
    ):
        raise ConfigError(
            f"callback {callback!r} returns Changes, StopRequested, NodeReturned, AnswerChecked, "
            "BranchesJoined or RequestYielded; "
            f"found {type(answer).__name__}"
        )
    bare = evolve(answer, state=None) if isinstance(answer, NodeReturned) else answer
    try:
        DECODER.decode(ENCODER.encode(bare))
    except UnicodeEncodeError:
        pass  # Half of a surrogate pair: it is escaped when it is written.
    except (TypeError, ValueError, ValidationError) as error:
        raise ConfigError(
            f"callback {callback!r} returned {type(answer).__name__} with what no journal can "
            f"hold: {error}. Fix: give it what its fields say; found {answer!r:.200}"
        ) from error
    return answer


def check_state(state: object, kind: object, made: str, *, kept: bool = False) -> None:
    """Refuse a state that is not of the graph's type, or would be read back as another one.

    Args:
        state: the state.
        kind: the type of the graph's state; None where it is not known.
        made: its maker, as a sentence begins: "node 'n' returns".
        kept: whether the journal is kept, so that it may be read.

    Raises:
        ConfigError: the state is to be awaited, or it or a part of it is of another type.
    """
    if isawaitable(state):
        raise _unawaited(state, made)
    if isinstance(kind, type) and not _is_a(state, kind):
        raise ConfigError(f"{made} a state of type {kind.__name__}; found {type(state).__name__}")
    if not kept or kind is None or state is None:
        return
    try:
        problem = _codec_of(kind).misfit(state)
    except (PydanticUserError, NameError) as error:
        problem = f"its type has no written form: {error}"
    if problem:
        raise ConfigError(f"{made} a state that no journal could be read back with: {problem}")


def _unawaited(answer: Awaitable[object], made: str) -> ConfigError:
    """Return the refusal of an asynchronous function where a plain one is called."""
    if isinstance(answer, Coroutine):
        answer.close()  # It is never awaited.
    found = type(cast("object", answer)).__name__
    return ConfigError(
        f"{made} a value, at once; found {found}, which has to be awaited. Fix: "
        "write a plain `def` that maps values; what takes time is for a node"
    )


def gates_of(rules: Sequence[tuple[Rule, ...]], given: Sequence[Policy]) -> Gates:
    """Return the gates that a run is held to.

    Args:
        rules: what the run began under (`Setup.rules`).
        given: the gates that this process knows, with their functions.
    """
    added, recorded = [*given], list[Policy]()
    for each in rules:
        known = next((gate for gate in added if gate.rules == each), None)
        if known is not None:
            added.remove(known)
        recorded.append(policy_of(each, {}) if known is None else known)
    return Gates(tuple(recorded), tuple(added))


async def answer_of(
    name: str,
    condition: Condition | bool,  # noqa: FBT001 - a tool may always ask, or never
    tool: AnyTool,
    call: ToolCall,
    context: ToolContext,
    wrong: dict[str, None],
) -> bool | None:
    """Return the answer of a function about a call; None, with a note in `wrong`, if it fails."""
    if isinstance(condition, bool):
        return condition
    try:
        return await tool.holds(condition, call.arguments, context)
    except Exception as error:  # noqa: BLE001 - the effect boundary: it counts against the call.
        raised = "" if isinstance(error, ConfigError) else f"raised {known_name(error)}: "
        wrong[f"`{name}`: {raised}{error} It counted against a call of {call.name!r}."] = None
        return None


async def conditions_of(
    gate: Policy, tool: AnyTool, call: ToolCall, context: ToolContext, wrong: dict[str, None]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the conditions of a gate that hold for a call, and those that do not."""
    held, unmet = list[str](), list[str]()
    for name in gate.asked(call.name):
        answer = await answer_of(name, gate.conditions[name], tool, call, context, wrong)
        if answer is not None:
            (held if answer else unmet).append(name)
    return tuple(held), tuple(unmet)


async def rules_of(
    gates: Iterable[Policy],
    tool: AnyTool,
    call: ToolCall,
    context: ToolContext,
    wrong: dict[str, None],
) -> tuple[Rule, ...]:
    """Return the rule by which each gate decides a call."""
    rules: list[Rule] = []
    for gate in gates:
        held, unmet = await conditions_of(gate, tool, call, context, wrong)
        rules.append(gate.decide(call.name, held, untold(gate.rules, held, unmet)))
    return tuple(rules)


@lru_cache(maxsize=64)
def _codec_of(kind: object) -> Codec:
    return Codec(cast("type[object]", kind))


def _is_a(state: object, kind: type) -> bool:
    try:
        return isinstance(state, kind)
    except TypeError:  # A typed mapping, or a protocol: what it is does not show.
        return True
