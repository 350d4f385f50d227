"""PendingTurn: one turn of an iterated run, which the caller can read and change.

The changes become one event (`Steered`) when the run goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Unpack, final

from ..conversation import open_calls, repaired
from ..effects import AwaitCaller
from ..errors import ConfigError, nearest
from ..events import Setup, Steered
from ..providers import Provider
from ..run import Run
from ..tools import ToolOutcome
from ..values import (
    AssistantMessage,
    FinishReason,
    Message,
    Settings,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
    call_key,
    evolve,
)
from .answers import outcome_of
from .inputs import ChoiceInput, MessageInput, choice_from_now, messages_of
from .options import Options, RunOptions

if TYPE_CHECKING:
    from .tool_runner import ToolRunner

__all__ = ["FAILED", "OVER", "WAITS", "PendingTurn"]

SKIPPED: Final = "Not run: the caller has skipped it."
OVER: Final = "this turn is over. Fix: change a turn before the next turn begins"
WAITS: Final = (
    "the run is parked and takes no more changes. Fix: answer its questions with "
    "`agent.resume_iter(await runner.until_done(), approvals=…, tool_results=…)`"
)
FAILED: Final = (
    "the run has failed, or was left, and takes no more changes. `runner.until_done()` raises the "
    "error"
)

SETTINGS: Final = frozenset(
    {"max_tokens", "temperature", "top_p", "stop_sequences", "seed", "provider_options"}
)
"""The names of the sampling settings, which can change during a run."""


@final
class PendingTurn:
    """A turn of an iterated run, after the model's reply and before its tools run.

    The caller can read the turn, change it by the methods below, or leave it unchanged.

    Attributes:
        index: the turn's index, from 0.
        message: the model's reply, which is already part of the history.
        finish_reason: the reason that the model stopped.
        usage: the tokens of this turn.
    """

    def __init__(self, runner: ToolRunner[Any], run: Run[None], *, tools_ran: bool = False) -> None:
        turn, reply = run.turn, run.turn.reply
        assert reply is not None, "a turn is handed over with its reply"
        self.index: int = turn.number
        self.message: AssistantMessage = reply.message
        self.finish_reason: FinishReason = reply.finish_reason
        self.usage: Usage = turn.usage
        self._runner = runner
        self._history: tuple[Message, ...] = tuple(run.messages)
        self._given: Setup = run.setup
        self._setup: Setup = run.setup
        self._calls = turn.calls
        self._results: dict[str, ToolResult] = {}
        self._ran: tuple[ToolResult, ...] | None = None
        if tools_ran:
            self._ran = tuple(result for result in turn.results if result is not None)
        self._append: list[Message] = []
        self._messages: tuple[Message, ...] | None = None
        self._running = asyncio.Lock()
        self._tools_started = tools_ran
        self._over = ""

    def __repr__(self) -> str:
        calls = ", ".join(call.name for call in self._calls) or "none"
        return f"<PendingTurn {self.index}: {self.finish_reason}, calls: {calls}>"

    @property
    def text(self) -> str:
        """The text of the model's reply in this turn."""
        return self.message.text

    @property
    def calls(self) -> Mapping[str, ToolCall]:
        """The calls of the turn by their keys, in request order."""
        return {call_key(self.index, place): call for place, call in enumerate(self._calls)}

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation, including this turn's message."""
        return (*self._history, self.message)

    def append_messages(self, *messages: MessageInput | str) -> None:
        """Add messages after this turn's tool results; a string becomes a user message.

        The first message may be the turn's own message, which is not added twice. Tool results
        (`ToolResult`, or messages of role tool) at the beginning answer calls of this turn; the
        tools of these calls do not run. If the turn is a final answer, the run takes another turn
        to read the messages, within its limits.

        Raises:
            ConfigError: a message has the wrong form, or a result answers none of the calls.
        """
        self._check_not_over()
        given = list(messages_of([_as_steering(message) for message in messages]))
        if given and _is_same(given[0], self.message):
            given.pop(0)
        answers: dict[str, ToolResult] = {}
        while given and isinstance(first := given[0], ToolResult):
            result = self._with_key(first, answers)
            answers[result.key] = result
            given.pop(0)
        for message in given:
            if isinstance(message, ToolResult) or (
                isinstance(message, AssistantMessage) and message.calls
            ):
                raise ConfigError(
                    "append_messages: calls and results of another turn cannot follow this turn. "
                    "Fix: give the whole conversation to `replace_messages`."
                )
        self._results |= answers
        self._append += given

    def replace_messages(self, messages: Sequence[MessageInput]) -> None:
        """Replace the whole conversation, including this turn's message.

        The open calls at the end of the new conversation run, except calls of this turn that have
        run or were answered. Then the model is called.

        Raises:
            ConfigError: the messages have the wrong form.
        """
        self._check_not_over()
        self._messages = repaired(messages_of(messages), keep_open=True).messages

    def set_params(
        self,
        *,
        model: str | Provider | None = None,
        tool_choice: ChoiceInput | None = None,
        **settings: Unpack[RunOptions],
    ) -> None:
        """Change the model, the tool choice, or sampling settings, from the next turn on.

        Raises:
            ConfigError: an option is invalid, or cannot change during a run.
        """
        self._check_not_over()
        setup = self._setup
        if settings:
            setup = evolve(setup, settings=_settings_with(setup.settings, settings))
        if model is not None:
            setup = evolve(setup, model=self._runner.add_model(model))
        if tool_choice is not None:
            setup = evolve(setup, tool_choice=choice_from_now(tool_choice, setup.tools))
        self._setup = setup

    def override_tool_results(self, results: Mapping[str, object]) -> None:
        """Set the results of calls by key: a call does not run, or its result is replaced.

        A value is text, JSON or a `ToolResult`, like the return value of a tool. An exception as
        value means that the tool failed.

        Raises:
            ConfigError: the turn has no call with this key.
        """
        self._check_not_over()
        for key, value in results.items():
            self._results[key] = self._make_result(key, value)

    def skip_tools(self, reason: str = SKIPPED) -> None:
        """Answer each call that has no result yet as not run; the model reads `reason`.

        Raises:
            ConfigError: the tools have started, and their results are not known yet.
        """
        self._check_not_over()
        if self._tools_started and self._ran is None and self._messages is None:
            raise ConfigError(
                "skip_tools comes too late: the turn's tools have begun. Fix: go on with them by "
                "`generate_tool_response`, or answer them by `override_tool_results`."
            )
        ran = {result.key for result in self._ran or ()}
        for key in self.calls:
            if key not in ran and key not in self._results:
                self._results[key] = self._make_result(key, ToolOutcome(reason, "not_run"))
        if self._messages is not None:
            self._messages = _skip_open_calls(self._messages, self._calls, reason)

    async def generate_tool_response(self) -> tuple[ToolResult, ...] | None:
        """Run the turn's tools now and return their results; None if the turn calls no tool.

        Later calls of this method return the same results: a tool runs at most once. The method
        also returns None if the conversation was replaced, or if the run stops or parks. After a
        stop or a park, the turn accepts no more changes.

        If the caller is cancelled, for example by a time limit, the running tools are cancelled,
        too. The next call of this method, or the next turn, runs a cancelled tool again if its
        effect policy allows a second run. Otherwise the model reads that the outcome is unknown.
        """
        self._check_not_over()
        async with self._running:
            if self._ran is None and self._calls and self._messages is None and not self._over:
                self._tools_started = True
                self._ran = await self._runner.run_tools(self)
        return self._ran

    def steered(self, at: float, effect: AwaitCaller) -> Steered:
        """Return the caller's changes as the `Steered` event that lets the run continue."""
        appended = tuple(self._append)
        results = tuple(self._results.values())
        changed = None if self._setup is self._given else self._setup
        return Steered(at, effect.id, self._messages, appended, results, changed)

    def ahead(self, at: float, effect: AwaitCaller) -> Steered:
        """Return the changes so far as the `Steered` event after which the tools run.

        Appended messages and new settings are not sent again by the next `steered`.
        """
        steered = self.steered(at, effect)
        self._append, self._given = [], self._setup
        return steered

    def close(self, why: str = OVER) -> None:
        """Refuse later changes with the message `why`; the first message given stays."""
        self._over = self._over or why

    def _check_not_over(self) -> None:
        if self._over:
            raise ConfigError(self._over)

    def _with_key(self, result: ToolResult, answered: Mapping[str, ToolResult]) -> ToolResult:
        """Return the result with the key of its call: the first unanswered call with that id."""
        waiting = {key: call for key, call in self.calls.items() if key not in answered}
        own = waiting.get(result.key)
        if own is not None:
            return evolve(result, call_id=own.id, name=own.name)
        for key, call in waiting.items():
            if result.call_id == call.id:
                return evolve(result, key=key, name=call.name)
        raise ConfigError(
            f"append_messages: a result answers call {result.call_id!r}, which this turn does not "
            f"make; its calls are {', '.join(repr(call.id) for call in self._calls) or 'none'}. "
            "Fix: leave the result out, or give the whole conversation to `replace_messages`."
        )

    def _make_result(self, key: str, value: object) -> ToolResult:
        call = self.calls.get(key)
        if call is None:
            raise ConfigError(
                f"turn {self.index} has no call {key!r}; it has "
                f"{', '.join(self.calls) or 'none'}.{nearest(key, self.calls)} Fix: take a key of "
                "`turn.calls`."
            )
        if isinstance(value, ToolResult):
            return evolve(value, key=key, call_id=call.id, name=call.name)
        outcome = outcome_of(value)
        told, status = outcome.content, outcome.status
        return ToolResult(key, call.id, call.name, told, status, outcome.data)


def _as_steering(message: MessageInput | str) -> MessageInput:
    return UserMessage(message, origin="steering") if isinstance(message, str) else message


def _is_same(given: Message, own: AssistantMessage) -> bool:
    """Whether a message has the same parts as the turn's own message."""
    return isinstance(given, AssistantMessage) and given.parts == own.parts


def _skip_open_calls(
    messages: tuple[Message, ...], own: tuple[ToolCall, ...], reason: str
) -> tuple[Message, ...]:
    """Answer the open calls of a conversation as not run, unless they are the calls in `own`."""
    waiting = open_calls(messages)
    replies = [message for message in messages if isinstance(message, AssistantMessage)]
    last = replies[-1] if replies else None
    if not waiting or last is None or last.calls == own:
        return messages
    skipped = [ToolResult("", call.id, call.name, reason, "not_run") for _, call in waiting]
    return repaired((*messages, *skipped)).messages


def _settings_with(settings: Settings, given: RunOptions) -> Settings:
    """Return settings in which the given options replace the earlier values.

    Raises:
        ConfigError: an option is not a sampling setting, or has a value that no server accepts.
    """
    unknown = sorted(given.keys() - SETTINGS)
    if unknown:
        raise ConfigError(
            f"expected settings among {', '.join(sorted(SETTINGS))}, found {', '.join(unknown)}"
        )
    changed = Options.read(given).settings()
    names = ["options" if name == "provider_options" else name for name in given]
    return evolve(settings, **{name: getattr(changed, name) for name in names})
