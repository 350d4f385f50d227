"""Everything that can have happened to a run: past tense, frozen, journaled before it counts.

Time enters a run only here: every event has `at`, in seconds since the epoch, as its driver's
clock told. `effect` is the id of the effect that the event answers.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct

from .values import (
    Message,
    Reply,
    ResultStatus,
    Settings,
    ToolChoice,
    ToolSpec,
    UserPart,
)

__all__ = [
    "Answer",
    "CallCheck",
    "CallbackReturned",
    "CallsChecked",
    "Cancelled",
    "Changes",
    "Decided",
    "EffectFailed",
    "Event",
    "Failure",
    "Left",
    "ModelReplied",
    "Setup",
    "Started",
    "ToolReturned",
    "Tripped",
]


class Setup(Struct, frozen=True, gc=False):
    """What a run works with: the default model's label, the tools on offer, the settings."""

    model: str = ""
    tools: tuple[ToolSpec, ...] = ()
    settings: Settings = Settings()


class Started(Struct, frozen=True, tag=True):
    """A run began with these messages and this state of the user's."""

    at: float
    run_id: str
    graph: str
    messages: tuple[Message, ...]
    setup: Setup
    state: object = None


class ModelReplied(Struct, frozen=True, tag=True, gc=False):
    """A model answered completely. `cost_usd` is None where no price is known."""

    at: float
    effect: int
    reply: Reply
    cost_usd: float | None = None


class CallCheck(Struct, frozen=True, gc=False):
    """What checking one call found: a `problem` for the model to read, or none."""

    problem: str = ""
    needs_approval: bool = False


class CallsChecked(Struct, frozen=True, tag=True, gc=False):
    """The calls of a turn were checked, one `CallCheck` each, in request order."""

    at: float
    effect: int
    checks: tuple[CallCheck, ...]


class ToolReturned(Struct, frozen=True, tag=True, gc=False):
    """A tool ended, well or badly; `content` is what the model will read."""

    at: float
    effect: int
    content: str | tuple[UserPart, ...]
    status: ResultStatus = "ok"


class Decided(Struct, frozen=True, tag=True, gc=False):
    """A human (or a policy in a human's place) approved or denied one call.

    `arguments` replaces the call's arguments when it is not empty.
    """

    at: float
    effect: int
    approved: bool
    reason: str = ""
    arguments: str = ""


class Changes(Struct, frozen=True, tag_field="kind", tag="changes", gc=False):
    """What a `prepare_step` function changes: None leaves a thing as it is.

    `messages` becomes the history of this and all later turns; the rest holds for this turn.
    """

    messages: tuple[Message, ...] | None = None
    active_tools: tuple[str, ...] | None = None
    tool_choice: ToolChoice | None = None
    model: str | None = None
    kind: ClassVar[Literal["changes"]] = "changes"


class Tripped(Struct, frozen=True, tag_field="kind", tag="tripped", gc=False):
    """Which of the user's stop conditions held; empty when the run goes on."""

    names: tuple[str, ...] = ()
    kind: ClassVar[Literal["tripped"]] = "tripped"


class Left(Struct, frozen=True, tag_field="kind", tag="left"):
    """A function node left by the outcome of this class name, with the state it returned."""

    outcome: str
    state: object = None
    kind: ClassVar[Literal["left"]] = "left"


Answer: TypeAlias = Changes | Tripped | Left


class CallbackReturned(Struct, frozen=True, tag=True):
    """A function of the user's answered."""

    at: float
    effect: int
    answer: Answer


class Failure(Struct, frozen=True, gc=False):
    """What went wrong outside: the exception's class name and message, for people."""

    error: str
    message: str
    traceback: str = ""


class EffectFailed(Struct, frozen=True, tag=True, gc=False):
    """An effect could not be performed; retrying is over."""

    at: float
    effect: int
    failure: Failure


class Cancelled(Struct, frozen=True, tag=True, gc=False):
    """Somebody stopped the run; whatever was pending is void."""

    at: float
    reason: str = ""


Event: TypeAlias = (
    Started
    | ModelReplied
    | CallsChecked
    | ToolReturned
    | Decided
    | CallbackReturned
    | EffectFailed
    | Cancelled
)
