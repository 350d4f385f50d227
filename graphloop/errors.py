"""Every error that graphloop raises, grouped by who can fix it.

    GraphloopError
    ├── ConfigError            the caller: an option, a key, a file or a message is wrong
    │   ├── GraphError         … the table of a graph is wrong (`problems` lists every fault)
    │   ├── NodeDefinitionError… a function cannot be a node as it is defined
    │   ├── ToolDefinitionError… a tool's name, signature or schema is wrong
    │   └── ScriptError        … a script of recorded replies is malformed
    ├── ProviderError          the model server, or the network
    │   ├── ConnectionFailed   no answer, or the connection broke before the first content
    │   ├── ProviderTimeout    one of the time limits ran out (`layer` names it)
    │   ├── RequestRejected    4xx: this request will never be accepted
    │   │   ├── AuthenticationFailed
    │   │   └── ContextOverflow    the conversation is longer than the model's window
    │   ├── RateLimited        429 (`retry_after_s` if the server sent it)
    │   ├── Overloaded         5xx and 529
    │   ├── BadReply           the response breaks the wire's format, or is an error object
    │   ├── StreamTruncated    the stream ended before its terminal marker
    │   └── ScriptExhausted    a scripted model has no more replies
    ├── OutputInvalid          the model: its final answer does not have the form asked for
    ├── ToolError              a tool: raise it in a tool to choose the text the model reads
    ├── AskFailed              a node's generator: one of its requests failed
    ├── NotDeterministic       … it made a different request when it ran again
    ├── RunFailed              a run that ended in `error`, seen from another process
    ├── StoreError             the journal: unreadable, out of order, or of a newer version
    │   ├── StoreAway          … the database does not answer now, and may be back soon
    │   ├── OtherSchema        … the database has the tables of another version of graphloop
    │   ├── UnknownRun         … there is no such run
    │   ├── Fenced             … another driver holds the run's lease now: this one must stop
    │   └── RunBusy            … another driver is at work on the run: wait for it
    │       └── QueueFull      … as many runs of its queue are under way as may be: wait
    └── IllegalEvent           the driver: an event that answers no pending effect (a bug)

Inside a run, failures of models and tools are events. Only graphloop's public functions raise these
exceptions to the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

from msgspec import Struct

__all__ = [
    "MISTAKES",
    "AskFailed",
    "AuthenticationFailed",
    "BadReply",
    "ConfigError",
    "ConnectionFailed",
    "ContextOverflow",
    "Fenced",
    "GraphError",
    "GraphloopError",
    "IllegalEvent",
    "NodeDefinitionError",
    "NotDeterministic",
    "OtherSchema",
    "OutputInvalid",
    "Overloaded",
    "Problem",
    "ProviderError",
    "ProviderTimeout",
    "QueueFull",
    "RateLimited",
    "RequestRejected",
    "RunBusy",
    "RunFailed",
    "ScriptError",
    "ScriptExhausted",
    "StoreAway",
    "StoreError",
    "StreamTruncated",
    "ToolDefinitionError",
    "ToolError",
    "UnknownRun",
    "known_name",
    "nearest",
    "not_among",
]


class GraphloopError(Exception):
    """The base class of all errors that graphloop raises on purpose."""


class ConfigError(GraphloopError):
    """An option or input of the caller is not valid; no request was sent."""


class NodeDefinitionError(ConfigError):
    """The definition of a function is not valid for a node of a graph."""


class ToolDefinitionError(ConfigError):
    """The definition of a tool is not valid, so the tool cannot be offered to a model."""


class ScriptError(ConfigError):
    """A file or list of recorded replies does not have the form of a script."""


class Problem(Struct, frozen=True):
    """A problem of a graph: its place, its description, and its fix."""

    place: str
    found: str
    fix: str
    code: str = "GL5"

    def __str__(self) -> str:
        return f"{self.place}: {self.found} Fix: {self.fix}"


class GraphError(ConfigError):
    """A graph's nodes and table do not fit together.

    `problems` holds all problems; `written` is the `file:line` where a program made the graph.
    """

    def __init__(self, graph: str, problems: Iterable[Problem], written: str = "") -> None:
        self.graph = graph
        self.problems = tuple(problems)
        self.written = written
        lines = "\n".join(f"  {number}. {one}" for number, one in enumerate(self.problems, 1))
        where = f" ({written})" if written else ""
        named = f"graph {graph!r}" if graph else "the graph"
        super().__init__(f"{named}{where} has {len(self.problems)} problem(s):\n{lines}")

    def __reduce__(self) -> tuple[type[GraphError], tuple[object, ...]]:
        """Return the parts from which pickle rebuilds the error when process pools send it."""
        return GraphError, (self.graph, self.problems, self.written)


_MISTAKES: Final = (
    ConfigError,
    GraphError,
    NodeDefinitionError,
    ScriptError,
    ToolDefinitionError,
)

MISTAKES: Final = frozenset(one.__name__ for one in _MISTAKES)
"""The names of errors that the caller can fix; a journal records such a failure by its name."""


class ProviderError(GraphloopError):
    """A model could not be reached, or its response is not a valid reply.

    `retryable` says whether the same request may succeed later; `status` is the HTTP status, or 0
    without a response; `retry_after_s` is the delay in seconds that the server asks for.
    """

    retryable = False

    def __init__(
        self, message: str, *, status: int = 0, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s


class ConnectionFailed(ProviderError):
    """The server could not be reached, or the connection broke."""

    retryable = True


class ProviderTimeout(ProviderError):
    """A time limit ran out; `layer` is one of connect, first_content, silence, total."""

    retryable = True

    # The default is for unpickling, which knows the message only.
    def __init__(self, message: str, *, layer: str = "total") -> None:
        super().__init__(message)
        self.layer = layer


class RequestRejected(ProviderError):
    """The server rejects this request and would reject it again."""


class AuthenticationFailed(RequestRejected):
    """The API key is missing, wrong, or not allowed to make this request."""


class ContextOverflow(RequestRejected):
    """The conversation does not fit into the model's context window."""


class RateLimited(ProviderError):
    """The server has received too many requests."""

    retryable = True


class Overloaded(ProviderError):
    """The server is overloaded, or failed with an error of its own."""

    retryable = True


class BadReply(ProviderError):
    """The server's response does not have the format of its wire."""


class StreamTruncated(ProviderError):
    """The stream ended before its terminal marker, so its content is not a complete reply."""

    retryable = True


class ScriptExhausted(ProviderError):
    """A scripted model was asked for more replies than its script holds."""


class OutputInvalid(GraphloopError):
    """A model's final answer does not have the form asked for.

    `text` is the text of that answer.
    """

    def __init__(self, message: str, *, text: str = "") -> None:
        super().__init__(message)
        self.text = text


class ToolError(GraphloopError):
    """An error to raise in a tool: the model reads exactly its message, marked as an error.

        raise ToolError("The page shows an error.", content=[image(screenshot)])

    `content` follows the message for the model, in any form that a tool may return: parts such as
    images, or a value that becomes JSON text.
    """

    def __init__(self, message: str = "", *, content: object = None) -> None:
        super().__init__(*([message] if message else ()))
        self.content = content


class AskFailed(GraphloopError):
    """A request of a node's generator failed; raised inside the generator at that request.

    `error` is the class name of the original failure, such as `Overloaded`.
    """

    # The default is for unpickling, which knows the message only.
    def __init__(self, message: str, *, error: str = "") -> None:
        super().__init__(message)
        self.error = error


class NotDeterministic(GraphloopError):
    """A node's generator made a different request when it ran again with the same answers."""


class RunFailed(GraphloopError):
    """A run ended in `error`; the message is the journal's record of the failure."""


class StoreError(GraphloopError):
    """A journal cannot be read or continued."""


class StoreAway(StoreError):
    """The database does not answer now; what was asked of it may still have been done."""


class OtherSchema(StoreError):
    """The database has the tables of another version of graphloop; a wait does not help."""


class UnknownRun(StoreError):
    """The store has no run with this id."""


class Fenced(StoreError):
    """Another driver now holds the run's lease, so the store refuses events from this driver."""


class RunBusy(StoreError):
    """A live driver holds the run's lease; the message says where, and when the lease ends."""


class QueueFull(RunBusy):
    """The queue of the run has as many runs under way as it may have."""


class IllegalEvent(GraphloopError):
    """The kernel received an event that answers no pending effect: a bug in the driver."""


_OURS: Final[Mapping[str, type[GraphloopError]]] = {
    name: one
    for name, one in list(globals().items())
    if isinstance(one, type) and issubclass(one, GraphloopError)
}


def known_name(error: BaseException) -> str:
    """Return the name under which an error is recorded, so that every process understands it.

    An error of a class in `MISTAKES`, or of a subclass, gets the name of that class. An error from
    another package with the name of a graphloop error gets its module in front of its name.
    """
    kind = type(error)
    mistake = next((one for one in kind.__mro__ if one in _MISTAKES), None)
    if mistake is not None:
        return mistake.__name__
    ours = _OURS.get(kind.__name__)
    is_foreign = ours is not None and not isinstance(error, ours)
    return f"{kind.__module__}.{kind.__qualname__}" if is_foreign else kind.__name__


def not_among(unknown: Iterable[str], known: Iterable[str]) -> str:
    """Return a text that lists unknown names, with the closest known name for each."""
    found, names = [*unknown], [*known]
    return f"{', '.join(map(repr, found))}.{''.join(nearest(name, names) for name in found)}"


def nearest(name: str, names: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the closest of `names`, or an empty string."""
    close = get_close_matches(name, list(names), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
