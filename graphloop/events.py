"""The events of a run: frozen, named in the past tense, journaled before they take effect.

`at` is a run's only source of time, in seconds since the epoch; `effect` is the effect answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from .effects import Note, Request, ToolQuestion
from .policy import Rule
from .rules import TemporalRule
from .spending import NOTHING_SPENT, Budget, ChatSoFar, Spent
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
    "AnswerChecked",
    "Answering",
    "BranchesJoined",
    "CallCheck",
    "CallbackAnswer",
    "CallbackReturned",
    "CallsChecked",
    "Cancelled",
    "Changes",
    "ChatSoFar",
    "ChildEnded",
    "Decided",
    "EffectFailed",
    "EffectsStarted",
    "Event",
    "Failure",
    "ItemsListed",
    "ModelReplied",
    "NodeReturned",
    "Queued",
    "RequestYielded",
    "Resumed",
    "Setup",
    "Started",
    "Steered",
    "StopRequested",
    "ToolAsked",
    "ToolReturned",
]


class Setup(Struct, frozen=True, gc=False):
    """The model, tools, settings, budget and rules of a run.

    Args:
        model: the label of the default model.
        tools: the tools on offer.
        settings: sampling settings of every model call.
        tool_choice: the run's tool choice, used instead of a node's; None to use the node's.
        budget: the limits on the spending of the run and its children.
        output: the schema of the final answer, sent on wires that have a field for it.
        rules: the gate rules of the parent agents, outermost first; a call must pass each set.
        depth: the number of parent agents of this run.
        depth_max: the highest `depth` that a child run may have.
        attended: whether the caller iterates the run and may change every turn.
        signed: whether an approval must be signed.
        approval_ttl_s: the number of seconds in which an approval is accepted; None for no limit.
        watch: the temporal rules of the run, with their names resolved.
        own: the names of the loop's own tools, which temporal rules ignore.
        max_steps: the caller's limit on the turns of this run; 0 leaves the limit to the nodes.
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
    max_steps: int = 0

    def __post_init__(self) -> None:
        """Index the tools by name, once for all turns."""
        if type(self.tools) is not ToolSpecs:
            force_setattr(self, "tools", ToolSpecs(self.tools))


class Started(Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    """A run began; its first turn adds `steering`, queued before the start, to `messages`."""

    at: float
    run_id: str
    graph: str
    messages: Sequence[Message]  # Usually a `History`, which the runs of a chat share.
    setup: Setup
    state: object = None
    steering: tuple[UserMessage, ...] = ()
    chat: ChatSoFar | None = None
    revision: str = ""  # Of its code; empty where a later `Resumed` tells it.


class ModelReplied(Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    """A model sent a complete reply; `cost_usd` is None if the model's price is not known.

    `checks` has a check for each call, in request order. It is empty if a condition or an approval
    function decides about a call: then a gate asks for the checks (`CallsChecked`).
    """

    at: float
    effect: int
    reply: Reply
    cost_usd: float | None = None
    checks: tuple[CallCheck, ...] = ()


class Resumed(Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    """A driver resumed the run; `revision` names its code, unless the journal told it before."""

    at: float  # The time since the last event does not count as working time.
    revision: str = ""


class EffectsStarted(Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    """The driver is about to perform these effects, which may not be safe to repeat.

    This event is journaled first: a started effect without an answer may have happened.
    `spent` is the usage of a failed attempt that may succeed later, when the run is resumed.
    `unstarted` are effects of an earlier `EffectsStarted` that the driver did not start after all.
    """

    at: float
    effects: tuple[int, ...]
    spent: Spent = NOTHING_SPENT
    unstarted: tuple[int, ...] = ()


class CallCheck(Struct, frozen=True, omit_defaults=True, gc=False):
    """The check of one call; `problem` is an error for the model to read, or empty.

    `needs_approval` is the tool's own word. `met` and `unmet` name, for each set of rules
    (outermost first), the conditions that are true and false; one in neither counts against the
    call. `added` are decisions of gates that the code gained before a resume.
    """

    problem: str = ""
    needs_approval: bool = False
    met: tuple[tuple[str, ...], ...] = ()
    unmet: tuple[tuple[str, ...], ...] = ()
    added: tuple[Rule, ...] = ()


class CallsChecked(Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    """The calls of a turn were checked; `checks` has one `CallCheck` per call, in request order."""

    at: float
    effect: int
    checks: tuple[CallCheck, ...]


class ToolReturned(Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    """A tool call ended; the model will read `content`, not `data`. `spent` is the tool's own."""

    at: float
    effect: int
    content: str | tuple[UserPart, ...]
    status: ResultStatus = "ok"
    data: str = ""
    spent: Spent = NOTHING_SPENT


class ToolAsked(Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    """A tool asks a person, or has its state kept: its call goes on in a new effect."""

    at: float
    effect: int
    question: ToolQuestion
    spent: Spent = NOTHING_SPENT


class Decided(Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    """A person, or a policy in a person's place, approved or denied one call.

    `arguments`, if not empty, replace the call's. `given_at` is the time of one before a resume.
    """

    at: float
    effect: int
    approved: bool
    reason: str = ""
    arguments: str = ""
    given_at: float | None = None


class Changes(Struct, frozen=True, tag_field="kind", tag="changes", gc=False):
    """The changes that a `prepare_step` function returned; None leaves a field unchanged.

    `messages`, `add_tools` and `withdraw_tools` also apply to later turns; the others do not.
    """

    messages: tuple[Message, ...] | None = None
    active_tools: tuple[str, ...] | None = None
    tool_choice: ToolChoice | None = None
    model: str | None = None
    add_tools: tuple[ToolSpec, ...] = ()
    withdraw_tools: tuple[str, ...] = ()
    kind: ClassVar[Literal["changes"]] = "changes"


class StopRequested(Struct, frozen=True, tag_field="kind", tag="tripped", gc=False):
    """The names of the user's stop conditions that were true; empty if the run goes on."""

    names: tuple[str, ...] = ()
    kind: ClassVar[Literal["tripped"]] = "tripped"


class NodeReturned(Struct, frozen=True, tag_field="kind", tag="left", gc=False):
    """A function node has chosen an outcome: the name of its class, and its fields as JSON text.

    If `changed`, `state` replaces the run's state. `notes` are added to the conversation.
    """

    outcome: str
    state: object = None
    fields: str = ""
    changed: bool = False
    notes: tuple[Note, ...] = ()
    kind: ClassVar[Literal["left"]] = "left"


class AnswerChecked(Struct, frozen=True, tag_field="kind", tag="judged", gc=False):
    """The result of a check of the final answer, or of a screen of the user's messages.

    The model reads the `feedback` of a check; the user reads that of a screen, as the answer.
    `retry` says whether the model may try again; if not, a rejected answer is kept all the same.
    """

    accepted: bool
    feedback: str = ""
    retry: bool = True
    kind: ClassVar[Literal["judged"]] = "judged"


class BranchesJoined(Struct, frozen=True, tag_field="kind", tag="joined", gc=False):
    """A reducer function has combined the answers of several branches into one `text`."""

    text: str
    kind: ClassVar[Literal["joined"]] = "joined"


class ItemsListed(Struct, frozen=True, tag_field="kind", tag="items", gc=False):
    """The prompts of a map's items, one for each item of the state, in order."""

    items: tuple[str, ...]
    kind: ClassVar[Literal["items"]] = "items"


class RequestYielded(Struct, frozen=True, tag_field="kind", tag="asked", gc=False):
    """A node's generator ran from its start to the request `ask`, and waits for the answer."""

    ask: Request
    kind: ClassVar[Literal["asked"]] = "asked"


CallbackAnswer: TypeAlias = (
    Changes
    | StopRequested
    | NodeReturned
    | AnswerChecked
    | BranchesJoined
    | ItemsListed
    | RequestYielded
)


class CallbackReturned(Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    """A user function that an `Invoke` effect called has returned."""

    at: float
    effect: int
    answer: CallbackAnswer


class Failure(Struct, frozen=True, gc=False):
    """A failure outside the kernel, for people: the exception's class name and message.

    `retryable` says that another attempt at the effect, perhaps with another model, may succeed.
    """

    error: str
    message: str
    traceback: str = ""
    retryable: bool = False


class EffectFailed(Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    """An effect failed after its last retry; `spent` is the usage of the failed attempts.

    `content_seen` says that listeners have already seen a part of the failed reply.
    """

    at: float
    effect: int
    failure: Failure
    spent: Spent = NOTHING_SPENT
    content_seen: bool = False


class ChildEnded(Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    """A child run ended with `status`; `content` is its answer, `spent` its total spending.

    `state`, if `changed`, replaces the parent's state; the child's result is merged into it.
    """

    at: float
    effect: int
    content: str
    status: ResultStatus = "ok"
    spent: Spent = NOTHING_SPENT
    end_reason: str = ""
    state: object = None
    changed: bool = False


class Steered(Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    """The caller of an iterated run has changed the turn, or continues the run without a change.

    Args:
        messages: a new conversation, which also replaces this turn's reply; None for no change.
        append: messages to add after this turn's reply and results.
        results: the results of this turn's calls from now on; a call without one does not run.
        setup: a new setup (model, tools, tool choice, settings) for later turns, or None.
    """

    at: float
    effect: int
    messages: tuple[Message, ...] | None = None
    append: tuple[Message, ...] = ()
    results: tuple[ToolResult, ...] = ()
    setup: Setup | None = None


class Queued(Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    """The caller sent a message for the next turn, or a `follow_up`; a `signal_id` counts once."""

    at: float
    message: UserMessage
    follow_up: bool = False
    signal_id: str = ""


class Cancelled(Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    """A caller, or a time limit (`timeout`), stopped the run; all pending effects are void.

    A stopped run only follows its table to the end. With `after_step`, which only a caller sets,
    the turn in progress finishes first. `spent` is the known usage of the void effects. `unstarted`
    are those that have certainly not started. `said` is the partial text of the reply.
    """

    at: float
    reason: str = ""
    after_step: bool = False
    timeout: bool = False
    spent: Spent = NOTHING_SPENT
    unstarted: tuple[int, ...] = ()
    said: str = ""


Answering: TypeAlias = (
    ModelReplied
    | CallsChecked
    | ToolReturned
    | ToolAsked
    | Decided
    | CallbackReturned
    | EffectFailed
    | ChildEnded
    | Steered
)
"""The events that answer an effect; all other events answer none."""

Event: TypeAlias = Answering | Started | Resumed | EffectsStarted | Queued | Cancelled
