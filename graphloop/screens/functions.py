"""Functions: the verdict of a user's function on what the user of an agent says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeAlias, cast, final

from typing_extensions import TypeVar

from ..conversation import unscreened
from ..errors import ConfigError
from ..events import AnswerChecked
from ..outcomes import Blocked, Passed
from ..run import Run
from ..tools import accepts, awaited, deps_wanted
from ..values import Message, TextPart, UserMessage

__all__ = ["ScreenCallback", "ScreenFunction", "ScreenInfo", "ScreenVerdict", "screen_callback"]


DepsT_co = TypeVar("DepsT_co", default=object, covariant=True)


@dataclass(frozen=True)
class ScreenInfo(Generic[DepsT_co]):
    """Data about what a user says, passed to a screen function as its second argument.

    Attributes:
        said: the messages to judge, with their images and files.
        messages: the conversation, which ends in these messages.
        run_id: the run's id.
        deps: the object that the caller gave this run, for `ScreenInfo[Deps]`.
    """

    said: Sequence[UserMessage]
    messages: Sequence[Message]
    run_id: str
    deps: DepsT_co = field(default=cast("DepsT_co", None), repr=False)


ScreenVerdict: TypeAlias = bool | str | Passed | Blocked
ScreenFunction: TypeAlias = (
    Callable[[str], ScreenVerdict | Awaitable[ScreenVerdict]]
    | Callable[[str, ScreenInfo[Any]], ScreenVerdict | Awaitable[ScreenVerdict]]
)
"""A function of the text of the new messages, and perhaps of a `ScreenInfo`.

It returns True to let the messages pass, False to block them, or the refusal that the user reads
as the answer.
"""


@final
@dataclass(frozen=True)
class ScreenCallback:
    """The callback by which a `Screen` node asks a function of the user.

    Callbacks of one function are equal, so that several nodes can ask the function.
    """

    function: Callable[..., object]
    takes_info: bool
    deps_type: object = object
    deps: object = field(default=None, repr=False, compare=False)

    def with_deps(self, deps: object) -> ScreenCallback:
        """Return the same callback for a run with these dependencies."""
        return replace(self, deps=deps)

    async def __call__(self, run: Run[Any]) -> AnswerChecked:
        """Return the event of the function's verdict on the messages that are not judged yet.

        Raises:
            ConfigError: the function returned no verdict.
        """
        said = unscreened(run, run.node)
        text = "\n\n".join([_text_of(message) for message in said])
        info = (ScreenInfo(said, run.messages, run.id, self.deps),) if self.takes_info else ()
        verdict = await awaited(self.function(text, *info))
        if isinstance(verdict, bool | Passed | Blocked):
            return AnswerChecked(verdict is True or isinstance(verdict, Passed))
        if isinstance(verdict, str) and verdict.strip():
            return AnswerChecked(accepted=False, feedback=verdict)
        raise ConfigError(
            f"screen {_name_of(self.function)!r}: expected True to pass, False to block, or the "
            f"refusal as a text, found {verdict!r:.80}. Fix: return one of them on every path"
        )


def screen_callback(function: ScreenFunction) -> ScreenCallback:
    """Return the callback by which a `Screen` node asks a function of the user.

        def on_topic(text: str) -> bool | str:
            return "cook" in text or "I can only speak about cooking."

        registry.function(screen_callback(on_topic), name="on_topic")

    Args:
        function: takes the text of the new messages and perhaps a `ScreenInfo`. It returns True to
            let the messages pass, False to block them, or the refusal that the user reads instead.

    Raises:
        ConfigError: the function takes neither one nor two positional arguments.
    """
    takes_info = accepts(function, 2)
    if not takes_info and not accepts(function, 1):
        raise ConfigError(
            f"screen {_name_of(function)!r}: expected a function of the user's text and perhaps a "
            f"ScreenInfo, found {function!r:.80}. Fix: give it one or two positional parameters"
        )
    return ScreenCallback(function, takes_info, deps_wanted(function, ScreenInfo, 1))


def _name_of(function: Callable[..., object]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _text_of(message: UserMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    return "\n".join([part.text for part in message.content if isinstance(part, TextPart)])
