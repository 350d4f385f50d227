"""Turn: a reply of a model and the results of its calls, in progress and as reported."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .effects import Answer, Ask
from .events import Failure
from .policy import Rule
from .values import (
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
    call_place,
    evolve,
)

__all__ = [
    "BranchRun",
    "CallVerdict",
    "Dialogue",
    "Exchange",
    "Queue",
    "StepResult",
    "Turn",
]


class CallVerdict(Struct, frozen=True, gc=False):
    """The decision of a gate about one call; `arguments` replaces the call's when not empty.

    `held` waits for a human, whom the node named `gate` asks; `answered` has a result already.
    `asked` says that a human decided, `ttl_s` for how long an approval may be given. The gate asked
    at `asked_at`, and the approval came `took_s` seconds later. `by` names the rule, or the person,
    that denied it, for those who look into the run: a model reads only the `reason`.
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


class BranchRun(Struct, frozen=True, gc=False):
    """A child run of several that a node waits for together, and its result.

    `agent` is told `prompt`, if there is one. `effect` started it, 0 if nothing has yet; `status`
    is None until it has ended.
    """

    name: str
    agent: str
    prompt: str = ""
    effect: int = 0
    status: ResultStatus | None = None
    content: str = ""


class Exchange(Struct, frozen=True, gc=False):
    """A request of a node's generator, and its answer or failure."""

    ask: Ask
    answer: Answer | Failure = None


class Dialogue(Struct, frozen=True, gc=False):
    """The requests of the current node's generator, with which it is run again.

    `at` is the id of the effect that first called it. `messages` is the length of the conversation
    then, and `usage` the usage of the run: the generator sees the run as it was. `asked` waits for
    its answer.
    """

    at: int
    messages: int
    usage: Usage
    exchanges: tuple[Exchange, ...] = ()
    asked: Ask | None = None


class StepResult(Struct, frozen=True, gc=False):
    """A turn as it is reported: the model's reply and the results of its calls.

    `messages` are the messages this turn added; `usage` is this turn alone, retried attempts
    included; `tool_results` are aligned with `tool_calls`.
    """

    index: int
    text: str
    reasoning: str
    tool_calls: tuple[ToolCall, ...]
    tool_results: tuple[ToolResult, ...]
    finish_reason: FinishReason
    raw_finish_reason: str
    usage: Usage
    model: str
    messages: tuple[Message, ...]
    metadata: str = ""


class Queue(Struct, frozen=True, gc=False):
    """The calls of one tool that wait for room: their places in the turn, in request order."""

    tool: ToolSpec
    places: tuple[int, ...]


class Turn(Struct, frozen=True, gc=False):
    """The turn in progress: the tools on offer, the reply, and the fate of its calls.

    Attributes:
        number: counts from 0; -1 stands for "before the first turn".
        retries: how often the turn was asked again.
        fallbacks: how many models have failed in it.
        asked: whether a model has answered, or failed for good.
        cut: the reply that was cut at its token limit, while the turn is asked again for more.
        compacted: whether the history was made shorter for it.
        dropped: whether the caller put a conversation of its own in place of the reply.
        beyond_budget: the limits of the budget that a call was refused for, with no call left.
        given: places of the calls that were answered in a conversation that was handed in.
        results: one slot a call.
        started: the places of the calls that the kernel has let start, one bit a place.
        waiting: the calls that wait for room.
        again: places of the calls that are to run once more, and may have run already.
        gated: the rules of the gates that have spoken of the calls; they hold of edits, too.
        notes: messages to append after the reply and its results (feedback, what a caller adds).
        branches: the child runs that answer together in the model's place.
        abandoned: whether the run waits for the pending branches no longer: the driver ends them.
        dialogue: the requests of the current node's generator.
    """

    number: int = -1
    tools: ToolSpecs = ToolSpecs()
    tool_choice: ToolChoice = ToolChoice()
    model: str = ""
    max_tokens: int | None = None
    retries: int = 0
    fallbacks: int = 0
    asked: bool = False
    compacted: bool = False
    dropped: bool = False
    beyond_budget: tuple[str, ...] = ()
    given: frozenset[int] = frozenset()
    reply: Reply | None = None
    calls: tuple[ToolCall, ...] = ()
    verdicts: tuple[CallVerdict | None, ...] = ()
    results: tuple[ToolResult | None, ...] = ()
    started: int = 0
    waiting: tuple[Queue, ...] = ()
    again: frozenset[int] = frozenset()
    gated: tuple[tuple[Rule, ...], ...] = ()
    notes: tuple[Message, ...] = ()
    branches: tuple[BranchRun, ...] = ()
    usage: Usage = Usage()
    cut: Reply | None = None
    abandoned: bool = False
    dialogue: Dialogue | None = None

    def place_of(self, key: str) -> int | None:
        """Return the place of the call with this key; None for an effect of a node's own."""
        turn, _, tail = key.rpartition(".")
        if turn != f"c{self.number}" or not tail.isdecimal():
            return None
        place = int(tail)
        return place if place < len(self.calls) and tail == str(place) else None

    def has_call(self, key: str) -> bool:
        """Whether this is the key of one of the turn's calls."""
        return self.place_of(key) is not None

    def without_reply(self) -> Turn:
        """Return the turn as if its model had said nothing: without calls and results."""
        return evolve(self, reply=None, calls=(), verdicts=(), results=())

    def waits_for(self, key: str) -> bool:
        """Whether this is the key of one of the turn's calls, which has no result yet."""
        return self.has_call(key) and not (self.results and self.results[call_place(key)])
