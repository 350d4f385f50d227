"""Turn: a reply of a model and the results of its calls, in progress and as reported."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from .effects import CallModel, Request, RequestAnswer
from .events import CallCheck, EffectFailed, Failure, ModelReplied
from .policy import Rule
from .values import (
    NO_USAGE,
    FinishReason,
    Message,
    Reply,
    ResultStatus,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    ToolSpecs,
    Usage,
    call_key,
    call_place,
    evolve,
)

__all__ = [
    "RUN",
    "SCREEN",
    "BranchRun",
    "CallVerdict",
    "Dialogue",
    "Exchange",
    "Queue",
    "Screening",
    "StepResult",
    "Turn",
]


SCREEN: Final = "screen"
"""The `model` of a turn whose reply is the refusal of a screen."""


class CallVerdict(Struct, frozen=True, gc=False):
    """A gate's decision about one call; `arguments`, if not empty, replaces the call's own.

    A `held` call waits for a person; the node named `gate` asks the person. An `answered` call
    already has a result. `asked` says that a person decided. An approval is accepted within `ttl_s`
    seconds after `asked_at`, the time of the question, and came after `took_s` seconds. `by` names
    the rule or the person that denied the call, for reports; the model reads only the `reason`.
    """

    kind: Literal["run", "deny", "invalid", "unknown", "held", "answered"]
    reason: str = ""
    arguments: str = ""
    asked: bool = False
    ttl_s: float | None = None
    gate: str = ""
    asked_at: float | None = None
    took_s: float | None = None
    by: str = ""


RUN: Final = CallVerdict("run")
"""The verdict on a call that may run as the model wrote it, without a person's approval."""


class BranchRun(Struct, frozen=True, gc=False):
    """A child run in a group that a node waits for together, with the child run's result.

    `prompt`, if not empty, is the input of `agent`. `effect` is the id of the effect that started
    the child run, 0 before its start. `status` is None until the child run has ended. `into`, if
    not empty, is the field of the state that gets the result.
    """

    name: str
    agent: str
    prompt: str = ""
    effect: int = 0
    status: ResultStatus | None = None
    content: str = ""
    into: str = ""


class Exchange(Struct, frozen=True, gc=False):
    """A request that a node's generator made, and the answer or failure of the request."""

    ask: Request
    answer: RequestAnswer | Failure = None


class Dialogue(Struct, frozen=True, gc=False):
    """The requests of the current node's generator, whose answers are fed to each rerun of it.

    `at` is the id of the effect that first called the generator. `messages` is the length of the
    conversation at that call, and `usage` the run's usage: each rerun sees the same values.
    `exchanges` are the answered requests. `asked` is the request that waits for its answer.
    """

    at: int
    messages: int
    usage: Usage
    exchanges: tuple[Exchange, ...] = ()
    asked: Request | None = None


class Screening(Struct, frozen=True, gc=False):
    """The judgement of what the user says, in progress beside a model call.

    `answer` is the end of the model call `asked`, which waits for the verdict. `refusal` is the
    reply if the screen has blocked the messages, and the model call has not ended yet.
    """

    asked: CallModel | None = None
    answer: ModelReplied | EffectFailed | None = None
    refusal: Reply | None = None


class StepResult(Struct, frozen=True, gc=False):
    """The report of one turn: the model's reply and the results of its calls.

    `messages` are the messages that this turn added. `usage` is the usage of this turn alone,
    including retried attempts. `tool_results` has the results of `tool_calls` in the same order.
    """

    index: int
    reply: Reply
    tool_calls: tuple[ToolCall, ...]
    tool_results: tuple[ToolResult, ...]
    usage: Usage
    messages: tuple[Message, ...]

    @property
    def text(self) -> str:
        """All text of the reply, without reasoning."""
        return self.reply.message.text

    @property
    def reasoning(self) -> str:
        """All readable reasoning of the reply."""
        return self.reply.message.reasoning

    @property
    def finish_reason(self) -> FinishReason:
        """The reason why the model ended its reply."""
        return self.reply.finish_reason

    @property
    def raw_finish_reason(self) -> str:
        """The finish reason in the provider's own term."""
        return self.reply.raw_finish_reason

    @property
    def model(self) -> str:
        """The name of the model that replied."""
        return self.reply.model

    @property
    def metadata(self) -> str:
        """The provider's data beside the message, as JSON text."""
        return self.reply.metadata


class Queue(Struct, frozen=True, gc=False):
    """Calls of one tool that cannot start yet: their positions in the turn, in request order."""

    tool: ToolSpec
    places: tuple[int, ...]


class Turn(Struct, frozen=True, gc=False):
    """The turn in progress: the tools on offer, the model's reply, and the state of each call.

    Attributes:
        number: the number of the turn, counted from 0; -1 before the first turn.
        reply: the model's reply, until the turn has ended.
        calls: the tool calls of the reply, in request order; a node may have changed them.
        verdicts: the gates' verdict on each call; empty before the first verdict.
        results: the result of each call; None until the call has a result. Empty until a call has
            one.
        started: the keys of the effects that run calls, of those that nodes have asked for.
        asked: whether a model has answered, or has failed after its last retry.
        checked: the calls that `checks` is about; a node may have changed `calls` since.
        checks: the checks that came with the reply, in request order; empty for none.
        usage: the usage of the turn's model calls, including retried attempts.
        recorded: whether the turn has ended, and the run's record has it.
        notes: messages to append after the results, such as feedback or a caller's messages.
        tools: the tools on offer.
        tool_choice: the tools that the model may or must call.
        model: the label of the model to ask in this turn; empty for the usual one.
        max_tokens: the token limit of this turn's replies; None for that of the settings.
        retries: how often the model was asked again in this turn.
        fallbacks: how many models have failed in this turn.
        cut: the reply that ended at its token limit, while the model is asked for a longer reply.
        compacted: whether the history was made shorter for this turn.
        dropped: whether the caller replaced the conversation, and the reply with it.
        beyond_budget: the names of used-up budget limits because of which calls were refused.
        given: the positions of calls whose results came with the initial conversation.
        waiting: the calls that cannot start yet, by tool.
        again: the positions of calls that run a second time, because the first may have happened.
        gated: the rules of the gates that have decided about the calls; they apply to edited calls
            as well.
        branches: the child runs that answer together in the model's place.
        abandoned: whether no node needs the pending effects any longer; the driver ends them.
        dialogue: the requests of the current node's generator.
        screening: the judgement of what the user says, while a model is asked beside it.
    """

    number: int = -1
    # Set in each turn with calls; first, because msgspec finds the first fields soonest.
    reply: Reply | None = None
    calls: tuple[ToolCall, ...] = ()
    verdicts: tuple[CallVerdict | None, ...] = ()
    results: tuple[ToolResult | None, ...] = ()
    started: tuple[str, ...] = ()
    asked: bool = False
    checked: tuple[ToolCall, ...] = ()
    checks: tuple[CallCheck, ...] = ()
    usage: Usage = NO_USAGE
    recorded: bool = False
    notes: tuple[Message, ...] = ()
    tools: ToolSpecs = ToolSpecs()
    tool_choice: ToolChoice = ToolChoice()
    # Set in few turns.
    model: str = ""
    max_tokens: int | None = None
    retries: int = 0
    fallbacks: int = 0
    cut: Reply | None = None
    compacted: bool = False
    dropped: bool = False
    beyond_budget: tuple[str, ...] = ()
    given: frozenset[int] = frozenset()
    waiting: tuple[Queue, ...] = ()
    again: frozenset[int] = frozenset()
    gated: tuple[tuple[Rule, ...], ...] = ()
    branches: tuple[BranchRun, ...] = ()
    abandoned: bool = False
    dialogue: Dialogue | None = None
    screening: Screening | None = None

    def place_of(self, key: str) -> int | None:
        """Return the position of the call with this key; None if the turn has no such call."""
        digits = key.rpartition(".")[2]
        if not digits.isdecimal():
            return None
        place = int(digits)
        return place if place < len(self.calls) and key == call_key(self.number, place) else None

    def has_call(self, key: str) -> bool:
        """Whether the key belongs to a call of this turn."""
        return self.place_of(key) is not None

    def call_at(self, place: int) -> ToolCall:
        """Return a call with the arguments that a gate allowed: a person may have edited them."""
        call, verdict = self.calls[place], self.verdicts[place]
        if verdict is None or not verdict.arguments:
            return call
        return evolve(call, arguments=verdict.arguments)

    def without_reply(self) -> Turn:
        """Return the turn without its reply, calls, verdicts and results."""
        return evolve(self, reply=None, calls=(), verdicts=(), results=())

    def waits_for(self, key: str) -> bool:
        """Whether the key belongs to a call of this turn that has no result yet."""
        return self.has_call(key) and not (self.results and self.results[call_place(key)])
