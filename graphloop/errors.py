"""Every error graphloop raises, split by who can mend it.

    GraphloopError
    ├── ConfigError            the caller: an option, a key, a file or a message is wrong
    │   ├── GraphError         … the table of a graph is wrong (`problems` lists all of it)
    │   ├── NodeDefinitionError… a function cannot be a node as it is defined
    │   ├── ToolDefinitionError… a tool's name, signature or schema is wrong
    │   └── ScriptError        … a script of recorded replies is malformed
    ├── ProviderError          the model server, or the way to it
    │   ├── ConnectionFailed   no answer at all, or the line broke before the first content
    │   ├── ProviderTimeout    a layer of the time limit ran out (`layer` says which)
    │   ├── RequestRejected    4xx: this request will never be accepted
    │   │   ├── AuthenticationFailed
    │   │   └── ContextOverflow    the conversation is longer than the model's window
    │   ├── RateLimited        429 (`retry_after_s` when the server said)
    │   ├── Overloaded         5xx and 529
    │   ├── BadReply           what came is not the wire: unparsable, or an error object
    │   ├── StreamTruncated    the stream ended before its terminal marker
    │   └── ScriptExhausted    a scripted model was asked once too often
    ├── OutputInvalid          the model: its final answer does not have the form asked for
    ├── ToolError              a tool: raise it in a tool to choose the text the model reads
    ├── AskFailed              a node's generator: what it asked for could not be had
    ├── NotDeterministic       … it asked for something else when it was run again
    ├── RunFailed              a run that ended in `error`, seen from another process
    ├── StoreError             the journal: unreadable, out of order, or of a newer version
    │   ├── UnknownRun         … there is no such run
    │   ├── Fenced             … another driver has taken the run over: this one must stop
    │   └── RunBusy            … another driver is at work on the run: wait for it
    └── IllegalEvent           the driver: an event no effect was waiting for (a bug)

Inside a run the world's failures are events; these exceptions leave only at the front door.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

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
    "OutputInvalid",
    "Overloaded",
    "Problem",
    "ProviderError",
    "ProviderTimeout",
    "RateLimited",
    "RequestRejected",
    "RunBusy",
    "RunFailed",
    "ScriptError",
    "ScriptExhausted",
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
    """Root of everything graphloop raises on purpose."""


class ConfigError(GraphloopError):
    """The caller asked for something that cannot work; nothing was sent."""


class NodeDefinitionError(ConfigError):
    """A function cannot be a node of a graph as it is defined."""


class ToolDefinitionError(ConfigError):
    """A tool cannot be offered to a model as it is defined."""


class ScriptError(ConfigError):
    """A file or list of recorded replies does not have the form of a script."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a graph: where it is, what it is, and how to mend it."""

    place: str
    found: str
    fix: str
    code: str = "GL5"

    def __str__(self) -> str:
        return f"{self.place}: {self.found} Fix: {self.fix}"


class GraphError(ConfigError):
    """A graph's nodes and table do not fit together.

    `problems` holds every finding; `written` is the `file:line` of a program that made the graph.
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
        """Tell pickle what to build it from: process pools send errors home that way."""
        return GraphError, (self.graph, self.problems, self.written)


_MISTAKES: Final = (
    ConfigError,
    GraphError,
    NodeDefinitionError,
    ScriptError,
    ToolDefinitionError,
)

MISTAKES: Final = frozenset(one.__name__ for one in _MISTAKES)
"""What a failure is called that is the caller's to mend, in whatever process it is read."""


class ProviderError(GraphloopError):
    """The model could not be asked, or what it answered is not an answer.

    `retryable` says whether the same request may succeed later; `status` is the HTTP status, or 0
    where there was none; `retry_after_s` is the delay in seconds that the server asks for.
    """

    retryable = False

    def __init__(
        self, message: str, *, status: int = 0, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s


class ConnectionFailed(ProviderError):
    """The server could not be reached, or the line broke."""

    retryable = True


class ProviderTimeout(ProviderError):
    """A time limit ran out; `layer` is one of connect, first_content, silence, total."""

    retryable = True

    # The default is for unpickling, which knows the message only.
    def __init__(self, message: str, *, layer: str = "total") -> None:
        super().__init__(message)
        self.layer = layer


class RequestRejected(ProviderError):
    """The server refuses this request and would refuse it again."""


class AuthenticationFailed(RequestRejected):
    """The key is missing, wrong, or not allowed to do this."""


class ContextOverflow(RequestRejected):
    """The conversation does not fit into the model's context window."""


class RateLimited(ProviderError):
    """Too many requests."""

    retryable = True


class Overloaded(ProviderError):
    """The server is overloaded or failed by itself."""

    retryable = True


class BadReply(ProviderError):
    """The server sent something that is not its wire."""


class StreamTruncated(ProviderError):
    """The stream ended before its terminal marker: what came is not an answer."""

    retryable = True


class ScriptExhausted(ProviderError):
    """A scripted model was asked for more replies than its script holds."""


class OutputInvalid(GraphloopError):
    """A model's final answer does not have the form asked for.

    `text` is what the model said.
    """

    def __init__(self, message: str, *, text: str = "") -> None:
        super().__init__(message)
        self.text = text


class ToolError(GraphloopError):
    """Raise in a tool: the model reads exactly this message, marked as an error."""


class AskFailed(GraphloopError):
    """Raised in a node's generator where it asked: what it asked for could not be had.

    `error` is the class name of what went wrong, such as `Overloaded`.
    """

    # The default is for unpickling, which knows the message only.
    def __init__(self, message: str, *, error: str = "") -> None:
        super().__init__(message)
        self.error = error


class NotDeterministic(GraphloopError):
    """A node's generator, fed the same answers, asked for something else than before."""


class RunFailed(GraphloopError):
    """A run ended in `error`; the message is the journal's record of the failure."""


class StoreError(GraphloopError):
    """A journal cannot be read or continued."""


class UnknownRun(StoreError):
    """There is no such run in the store."""


class Fenced(StoreError):
    """Another driver has claimed the run: what this one appends is refused from now on."""


class RunBusy(StoreError):
    """The run has a live driver; the message says where, and until when its lease runs."""


class IllegalEvent(GraphloopError):
    """The kernel was handed an event that no pending effect explains: a driver's bug."""


_OURS: Final[Mapping[str, type[GraphloopError]]] = {
    name: one
    for name, one in list(globals().items())
    if isinstance(one, type) and issubclass(one, GraphloopError)
}


def known_name(error: BaseException) -> str:
    """Return the name of a failure: a mistake's is that of a class which all processes know.

    A caller's own kind of `ConfigError` is a mistake as well. A foreign error that only bears the
    name of one of graphloop's keeps its module in its name.
    """
    kind = type(error)
    mistake = next((one for one in kind.__mro__ if one in _MISTAKES), None)
    if mistake is not None:
        return mistake.__name__
    ours = _OURS.get(kind.__name__)
    is_foreign = ours is not None and not isinstance(error, ours)
    return f"{kind.__module__}.{kind.__qualname__}" if is_foreign else kind.__name__


def not_among(unknown: Iterable[str], known: Iterable[str]) -> str:
    """Return unknown names as a sentence, with the closest of those that are known."""
    found, names = [*unknown], [*known]
    return f"{', '.join(map(repr, found))}.{''.join(nearest(name, names) for name in found)}"


def nearest(name: str, names: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the closest of `names`, or nothing."""
    close = get_close_matches(name, list(names), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
