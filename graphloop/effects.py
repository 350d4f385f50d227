"""Effects: frozen requests of a run, such as a model call, which the driver performs.

Each effect has an `id`, unique in its run and counted from 1; the event that answers the effect
names this id. An effect whose answer is in the journal is never performed again.

A node's generator makes requests (`AskModel`, `AskPerson`, `AskAgent`, `Tell`). The driver journals
each request, and the kernel turns the request into an effect. The answer is fed to the generator
when it runs again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Final, Literal, TypeAlias, final, get_args

from msgspec import Meta, Struct

from .errors import ConfigError, nearest
from .spending import Budget
from .values import Message, ModelRequest, Reply, SystemMessage, ToolCall, UserMessage

__all__ = [
    "IN_WORDS",
    "NO_ANSWER",
    "REQUESTS",
    "AskAgent",
    "AskHuman",
    "AskModel",
    "AskPerson",
    "AwaitCaller",
    "CallModel",
    "CallTool",
    "CheckCalls",
    "Effect",
    "Invoke",
    "Note",
    "PersonSaid",
    "Place",
    "Request",
    "RequestAnswer",
    "StartRun",
    "Tell",
    "ToolAnswer",
    "ToolQuestion",
    "check_place",
]

IN_WORDS: Final = (
    '{"additionalProperties":false,"properties":{"answer":{"type":"string"},'
    '"question":{"type":"string"}},"required":["answer"],"type":"object"}'
)
"""The JSON Schema text of a person's answer in words; the answer may repeat the question."""
NO_ANSWER: Final = '{"type":"object","properties":{}}'
"""The JSON Schema text of an answer without words: the person has done it, or has not."""


@final
class CallModel(Struct, frozen=True, gc=False):
    """Ask the model registered under `model`. Answered by `ModelReplied`."""

    id: int
    model: str
    request: ModelRequest


class CheckCalls(Struct, frozen=True, gc=False):
    """Validate calls, and find those that need an approval. Answered by `CallsChecked`.

    Validation and approval predicates are user code, so their answers are journaled and a replay
    never calls them again. Without a `key`, `calls` are the turn's calls at the positions `places`.
    With a `key`, `calls` has only the call with that key, with the arguments that a person edited.
    """

    id: int
    turn: int
    calls: tuple[ToolCall, ...]
    places: tuple[int, ...]
    key: str = ""


class ToolQuestion(Struct, frozen=True, omit_defaults=True, gc=False):
    """A question that a tool asks a person before its call can end.

    `text` is for the person. `takes` is the JSON Schema text of the answer. `state` is the tool's
    own: the call gets it back with the answer, perhaps in another process. Without a `text` the
    question is for no person: the journal keeps the state, and the call goes on with it at once.
    """

    text: str
    takes: str
    state: str = ""


class ToolAnswer(Struct, frozen=True, gc=False):
    """A person's answer to the question of a tool: JSON text that fits `takes`, or a refusal."""

    question: ToolQuestion
    approved: bool
    content: str = ""
    reason: str = ""


class CallTool(Struct, frozen=True, gc=False):
    """Run one tool call that its gate has allowed. Answered by `ToolReturned` or `ToolAsked`.

    A `client` tool runs in the caller's own process: the run parks until the result arrives. With
    `answer`, the call goes on after a question of its tool.
    """

    id: int
    key: str
    call: ToolCall
    client: bool = False
    answer: ToolAnswer | None = None


class AskHuman(Struct, frozen=True, gc=False):
    """Ask a person whether one call may run. The run parks without an approver. `Decided` answers.

    From `expires_at` on (seconds since the epoch), an approval is too late. With `unknown`, the
    call was approved before and may have run: the person decides whether it runs again. `takes` is
    the JSON Schema text for an edited answer to a node's own question; empty for a tool call, whose
    edited arguments must fit the tool's schema. With `question`, the running tool of a call asks.
    """

    id: int
    key: str
    call: ToolCall
    expires_at: float | None = None
    unknown: bool = False
    takes: str = ""
    question: ToolQuestion | None = None


class Invoke(Struct, frozen=True, gc=False):
    """Call the user function registered as `callback`. Answered by `CallbackReturned`."""

    id: int
    callback: str


Place: TypeAlias = Literal["here", "anywhere"]
"""Where a child run is driven: in its parent's process, or by whichever worker is free."""


@final
class StartRun(Struct, frozen=True, gc=False):
    """Run a child agent or graph to its end, with its own journal. Answered by `ChildEnded`.

    `agent` is the name under which the driver knows the child. `key` identifies the child run in
    its parent: the key of a call or of a node. The child's input is `arguments` (JSON text), and it
    may read `messages`, the parent's conversation. `budget` limits the child's spending. A parked
    child parks its parent. With `place` "anywhere", another worker may drive the child.
    """

    id: int
    key: str
    agent: str
    arguments: str
    messages: Sequence[Message]
    budget: Budget = Budget()
    place: Place = "here"


def check_place(place: object, owner: str) -> None:
    """Refuse a `place` that is none; `owner` names what has it.

    Raises:
        ConfigError: the place is neither "here" nor "anywhere".
    """
    known: tuple[str, ...] = get_args(Place)
    if place not in known:
        raise ConfigError(
            f"`place` of {owner}: expected 'here' or 'anywhere', found {place!r:.80}. Fix: give "
            f"'anywhere' if another worker may drive the child run.{nearest(str(place), known)}"
        )


class AwaitCaller(Struct, frozen=True, gc=False):
    """Let the caller of an iterated run inspect and change the turn. Answered by `Steered`.

    A run requests it after each reply of the model. It requests it again, with `tools_ran`, after
    the results of the reply's calls.
    """

    id: int
    tools_ran: bool = False


Effect: TypeAlias = CallModel | CheckCalls | CallTool | AskHuman | Invoke | StartRun | AwaitCaller


Note: TypeAlias = UserMessage | SystemMessage
"""A message that a node may add to the conversation; a node never writes a model's message."""


class AskModel(Struct, frozen=True, tag_field="kind", tag="model", gc=False):
    """Ask a model without offering tools. Answered with the model's `Reply`.

    `model` is the label of the model; empty for the run's own model. With `conversation`, the model
    reads the run's conversation before the prompt. `max_tokens` limits the reply in addition to the
    run's own limit: the stricter limit holds.
    """

    prompt: str
    system: str = ""
    model: str = ""
    conversation: bool = False
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    kind: ClassVar[Literal["model"]] = "model"


class AskPerson(Struct, frozen=True, tag_field="kind", tag="person", gc=False):
    """Ask a person a question. Answered with `PersonSaid`; without an approver, the run parks."""

    question: str
    kind: ClassVar[Literal["person"]] = "person"


class AskAgent(Struct, frozen=True, tag_field="kind", tag="agent", gc=False):
    """Run an agent as a child run. Answered with the final text of the child run."""

    agent: str
    prompt: str
    conversation: bool = False
    kind: ClassVar[Literal["agent"]] = "agent"


class Tell(Struct, frozen=True, tag_field="kind", tag="tell", gc=False):
    """Add a message to the conversation. The answer is None, and comes without a wait."""

    message: Note
    kind: ClassVar[Literal["tell"]] = "tell"


class PersonSaid(Struct, frozen=True, gc=False):
    """A person's answer: approved or denied, with a reason and perhaps an answer in words.

    Attributes:
        approved: whether the person approved, and in time.
        reason: the reason that the person gave.
        answer: the answer in words, given by `approve(edit={"answer": …})`.
    """

    approved: bool
    reason: str = ""
    answer: str = ""


Request: TypeAlias = AskModel | AskPerson | AskAgent | Tell
RequestAnswer: TypeAlias = Reply | PersonSaid | str | None
"""The possible answers to a request; each helper, such as `ask_model`, returns its own type."""

REQUESTS: Final[frozenset[type[Request]]] = frozenset({AskModel, AskPerson, AskAgent, Tell})
