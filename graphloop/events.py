"""Everything that can have happened to a run: past tense, frozen, journaled before it counts.

Time enters a run only here: every event has `at`, in seconds since the epoch, as its driver's
clock told. `effect` is the id of the effect that the event answers.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from .effects import Ask, Note
from .policy import Rule
from .rules import TemporalRule
from .spending import Budget, Spent
from .values import (
    Message,
    OutputSpec,
    Reply,
    ResultStatus,
    Settings,
    ToolChoice,
    ToolResult,
    ToolSpec,
    ToolSpecs,
    UserMessage,
    UserPart,
)

__all__ = [
    "Answer",
    "AnswerChecked",
    "Answering",
    "BranchesJoined",
    "CallCheck",
    "CallbackReturned",
    "CallsChecked",
    "Cancelled",
    "Changes",
    "ChildEnded",
    "Decided",
    "EffectFailed",
    "EffectsStarted",
    "Event",
    "Failure",
    "ModelReplied",
    "NodeReturned",
    "Queued",
    "RequestYielded",
    "Resumed",
    "Setup",
    "Started",
    "Steered",
    "StopRequested",
    "ToolReturned",
]


class Setup(Struct, frozen=True, gc=False):
    """The means of a run, and the bounds it cannot leave.

    Args:
        model: the label of the default model.
        tools: the tools on offer.
        settings: sampling settings of every model call.
        tool_choice: how freely the model may choose, where the run says so and not a node.
        budget: what the run and its children may spend.
        output: the form of the final answer, where the model's wire can be told it.
        rules: the rules of the gates of the agents above this run, outermost first; each must
            let a call through.
        depth: how many agents are above this run.
        depth_max: how many there may be above a child.
        attended: whether the caller iterates the run, and has a say in every turn.
        signed: whether an approval must be signed.
        approval_ttl_s: for how many seconds an approval may be given; None for ever.
        watch: the temporal rules of the run, every word looked up.
        own: the names of the loop's own tools, of which no temporal rule speaks.
    """

    model: str = ""
    tools: tuple[ToolSpec, ...] = ()
    settings: Settings = Settings()
    tool_choice: ToolChoice | None = None
    budget: Budget = Budget()
    output: OutputSpec | None = None
    rules: tuple[tuple[Rule, ...], ...] = ()
    depth: int = 0
    depth_max: int = 2
    attended: bool = False
    signed: bool = False
    approval_ttl_s: float | None = None
    watch: tuple[TemporalRule, ...] = ()
    own: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Give the tools their look-ups, once for all turns."""
        if type(self.tools) is not ToolSpecs:
            force_setattr(self, "tools", ToolSpecs(self.tools))


class Started(Struct, frozen=True, omit_defaults=True, tag=True):
    """A run began with these messages and this state of the user's.

    `steering` was said before: it comes into the conversation when the first turn is opened.
    """

    at: float
    run_id: str
    graph: str
    messages: tuple[Message, ...]
    setup: Setup
    state: object = None
    steering: tuple[UserMessage, ...] = ()


class ModelReplied(Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    """A model answered completely. `cost_usd` is None where no price is known."""

    at: float
    effect: int
    reply: Reply
    cost_usd: float | None = None


class Resumed(Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    """A driver resumed the run: the time since the last event is not the run's work."""

    at: float


class EffectsStarted(Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    """The driver is about to perform these effects, which must not be repeated unasked.

    The driver journals it before the effects start. A run that is resumed from a journal in which
    a started effect has no answer does not know whether the effect happened.
    `spent` is the use of an attempt that failed and may pass: the run is interrupted.
    `unbegun` are effects of an earlier such event that have not started: the driver left first.
    """

    at: float
    effects: tuple[int, ...]
    spent: Spent = Spent()
    unbegun: tuple[int, ...] = ()


class CallCheck(Struct, frozen=True, omit_defaults=True, gc=False):
    """The check of one call: a `problem` for the model to read, or none.

    `needs_approval` is the answer of the tool itself. `held` and `unmet` name, for each set of
    rules (outermost first), the conditions that hold for the call and those that do not. A
    condition in neither could not be looked at, and counts against the call. `added` are the
    decisions of gates that are new since the run was resumed: its journal has no rules of them.
    """

    problem: str = ""
    needs_approval: bool = False
    held: tuple[tuple[str, ...], ...] = ()
    unmet: tuple[tuple[str, ...], ...] = ()
    added: tuple[Rule, ...] = ()


class CallsChecked(Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    """The calls of a turn were checked, one `CallCheck` each, in request order."""

    at: float
    effect: int
    checks: tuple[CallCheck, ...]


class ToolReturned(Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    """A tool ended, well or badly; `content` is what the model will read."""

    at: float
    effect: int
    content: str | tuple[UserPart, ...]
    status: ResultStatus = "ok"


class Decided(Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    """A human (or a policy in a human's place) approved or denied one call.

    `arguments` replaces the call's arguments when it is not empty. `given_at` is the time of
    the decision, where it was made before the run was resumed.
    """

    at: float
    effect: int
    approved: bool
    reason: str = ""
    arguments: str = ""
    given_at: float | None = None


class Changes(Struct, frozen=True, tag_field="kind", tag="changes", gc=False):
    """The changes of a `prepare_step` function: None leaves a thing as it is.

    `messages` becomes the history of this and all later turns, and so do the tools that are added
    or withdrawn; the rest holds for this turn.
    """

    messages: tuple[Message, ...] | None = None
    active_tools: tuple[str, ...] | None = None
    tool_choice: ToolChoice | None = None
    model: str | None = None
    add_tools: tuple[ToolSpec, ...] = ()
    withdraw_tools: tuple[str, ...] = ()
    kind: ClassVar[Literal["changes"]] = "changes"


class StopRequested(Struct, frozen=True, tag_field="kind", tag="tripped", gc=False):
    """Which of the user's stop conditions held; empty when the run goes on."""

    names: tuple[str, ...] = ()
    kind: ClassVar[Literal["tripped"]] = "tripped"


class NodeReturned(Struct, frozen=True, tag_field="kind", tag="left"):
    """A function node left by the outcome of this class name.

    `fields` are the outcome's own, as JSON text. `state` is the run's from now on if it is
    `changed`; `notes` are what the function adds to the conversation.
    """

    outcome: str
    state: object = None
    fields: str = ""
    changed: bool = False
    notes: tuple[Note, ...] = ()
    kind: ClassVar[Literal["left"]] = "left"


class AnswerChecked(Struct, frozen=True, tag_field="kind", tag="judged", gc=False):
    """The result of a check of the final answer; `feedback` is for the model to read.

    `retry` is whether the model may try again; without, the answer is taken as it is.
    """

    accepted: bool
    feedback: str = ""
    retry: bool = True
    kind: ClassVar[Literal["judged"]] = "judged"


class BranchesJoined(Struct, frozen=True, tag_field="kind", tag="joined", gc=False):
    """The one answer that a function has made of those of several branches."""

    text: str
    kind: ClassVar[Literal["joined"]] = "joined"


class RequestYielded(Struct, frozen=True, tag_field="kind", tag="asked", gc=False):
    """A node's generator, run from its beginning, has come to this and waits for the answer."""

    ask: Ask
    kind: ClassVar[Literal["asked"]] = "asked"


Answer: TypeAlias = (
    Changes | StopRequested | NodeReturned | AnswerChecked | BranchesJoined | RequestYielded
)


class CallbackReturned(Struct, frozen=True, omit_defaults=True, tag=True):
    """A function of the user's answered."""

    at: float
    effect: int
    answer: Answer


class Failure(Struct, frozen=True, gc=False):
    """A failure outside the kernel: the exception's class name and message, for people.

    `retryable` says that the same effect, of another model perhaps, may succeed.
    """

    error: str
    message: str
    traceback: str = ""
    retryable: bool = False


class EffectFailed(Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    """An effect could not be performed; retrying is over. `spent` is what it used all the same.

    `content_seen` says that listeners have seen a part of the reply that failed.
    """

    at: float
    effect: int
    failure: Failure
    spent: Spent = Spent()
    content_seen: bool = False


class ChildEnded(Struct, frozen=True, omit_defaults=True, tag=True):
    """A child run ended, well or badly; `content` is its answer, `spent` all that it used.

    `state` is what its parent made of it: the parent's own from now on if it is `changed`.
    """

    at: float
    effect: int
    content: str
    status: ResultStatus = "ok"
    spent: Spent = Spent()
    end_reason: str = ""
    state: object = None
    changed: bool = False


class Steered(Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    """The caller of an iterated run had its say; an empty one lets the run go on as it is.

    Args:
        at: when.
        effect: the `AwaitCaller` that this answers.
        messages: replaces the whole conversation, this turn's reply included.
        append: messages to add after this turn's reply and results.
        results: answers to this turn's calls, in place of running them or of their results.
        setup: the model, tools, choice and settings of the later turns.
    """

    at: float
    effect: int
    messages: tuple[Message, ...] | None = None
    append: tuple[Message, ...] = ()
    results: tuple[ToolResult, ...] = ()
    setup: Setup | None = None


class Queued(Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    """The caller said something while the run goes on.

    A steering message is read in the next turn; a `follow_up` once the run would end.
    """

    at: float
    message: UserMessage
    follow_up: bool = False


class Cancelled(Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    """A caller, or a time limit (`timeout`), stopped the run; all pending effects are void.

    A run that was stopped starts nothing more: its table only leads it to its end.

    `after_step` lets the turn in progress come to its end first. Only a caller stops a run so, and
    the run is aborted, unless it ends in that turn by itself. `spent` is the known use of the void
    effects; `unbegun` are those of them that surely have not started. `said` is the text of a reply
    that was cut off.
    """

    at: float
    reason: str = ""
    after_step: bool = False
    timeout: bool = False
    spent: Spent = Spent()
    unbegun: tuple[int, ...] = ()
    said: str = ""


Answering: TypeAlias = (
    ModelReplied
    | CallsChecked
    | ToolReturned
    | Decided
    | CallbackReturned
    | EffectFailed
    | ChildEnded
    | Steered
)
"""The events that answer an effect; every other event stands for itself."""

Event: TypeAlias = Answering | Started | Resumed | EffectsStarted | Queued | Cancelled
