"""Chat: a conversation with an agent that lasts over many questions and many processes.

    chat = agent.chat("user-42", store="chats.db")
    result = await chat.send("What's the weather in NYC?")
    async for text in chat.stream("And tomorrow?").text_stream: ...

Each question is a run of its own, and the store keeps the chain of these runs (`chain.py`). A
question is refused while another process answers one. A crash leaves at most one interrupted run,
and the next question finishes that run first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, Generic, Self, TypedDict, Unpack, final
from uuid import uuid4

from msgspec.structs import replace
from typing_extensions import TypeVar

from ...errors import ConfigError, StoreError
from ...rules import Rules, TemporalRule
from ...spending import Budget, Spent
from ...stores import MemoryStore, Store, check_run_id
from ...values import Message
from ..inherited_limits import inherited_rules
from ..inputs import ChatInput
from ..options import refuse_unknown_options
from ..result import OutputT_co, RunHandle, RunResult
from ..resumption import waiting
from ..runs import Questions, StoreInput
from ..stream import RunStream
from ..terms import RunTerms, SharedResources
from .chain import Chain, Question
from .next_question import Asked, Asking, ChatPrompt

__all__ = ["Chat", "ChatOptions"]

DepsT_contra = TypeVar("DepsT_contra", default=None, contravariant=True)
T = TypeVar("T")

ID_CHARS_MAX: Final = 180
"""The ids of runs are longer by the number of their question."""

LENGTHS_MAX: Final = 10_000
"""The most chats whose lengths an agent remembers; it then forgets them all, and looks again."""


class ChatOptions(TypedDict, total=False):
    """The options of a chat.

    `store`: the place of the chat: a `Store`, a database file (`chats.db`), or a directory for
    JSON-lines files. The default is the agent's own store, or else memory.
    `budget`: what all questions of the chat may spend together (`graphloop.budget`). The agent's
    own budget still limits each question.
    `rules`: temporal rules that count over all questions (`at_most_once("refund")`). The agent's
    own rules still count in each question.
    """

    store: StoreInput | None
    budget: Budget | None
    rules: Rules | Sequence[Rules]


@final
class Chat(Generic[DepsT_contra, OutputT_co]):
    """A conversation with an agent; `agent.chat` makes it.

    Several objects, also in several processes, can be the same chat: they have the same id and
    store. Only one at a time can ask a question.

    Args:
        terms: the terms of the agent's runs.
        chat_id: the chat's id; None for a new one.
        options: see `ChatOptions`.

    Attributes:
        id: the id of the chat.

    Raises:
        ConfigError: an option is invalid, or a chat with an id has no store.
    """

    def __init__(self, terms: RunTerms[None], chat_id: str | None, options: ChatOptions) -> None:
        refuse_unknown_options(options, ChatOptions, "a chat")
        store = options.get("store")
        if chat_id is not None:
            _check_id(chat_id)
            if store is None and not terms.shared.is_given:
                raise ConfigError(
                    f"`store`: expected the place of chat {chat_id!r}, found none. Fix: give it "
                    "(agent.chat('user-42', store='chats.db')), or leave out the id for a chat in "
                    "memory."
                )
        self.id = uuid4().hex if chat_id is None else chat_id
        self._chain = Chain(self.id, terms.graph)
        self._owns_store = store is not None or not terms.shared.is_given
        self._shared = (
            SharedResources(MemoryStore() if store is None else store, {}, ())
            if self._owns_store
            else terms.shared
        )
        self._terms = terms.evolved(shared=self._shared)
        rules: tuple[TemporalRule, ...] = ()
        if "rules" in options:
            # The graph of an agent has no rules of its own: these are the rules of the chat alone.
            given = replace(terms.options, rules=options["rules"])
            rules = inherited_rules(given, terms.graph, terms.resources)
        self._asking = Asking(self._chain, self._terms, options.get("budget"), rules)
        self._options = options
        # Journals of ended runs never change, so a chat reads each of them once at most.
        self._last: Question | None = None
        self._said: tuple[Message, ...] = ()
        self._told = 0

    def __repr__(self) -> str:
        return f"<Chat {self.id!r} with {self._terms.graph.name!r}>"

    async def send(
        self, prompt: ChatPrompt = None, **answers: Unpack[ChatInput[DepsT_contra]]
    ) -> RunResult[OutputT_co]:
        """Ask the next question, and return the result of its run.

            result = await chat.send("Refund order 7")
            if result.pending:
                (call,) = result.pending
                result = await chat.send(approvals={call.key: call.approve()})

        If a crash has interrupted the last question, its run is finished first.

        Args:
            prompt: the question: text, a list of texts and media, or a user's message in any form
                that `load_messages` reads. Without it, the run of the last question goes on, and
                its result is returned; the result of a finished run is only read.
            answers: answers to the calls that the last question waits for, which are applied before
                the prompt is asked; the `deps` of both questions; and the options of the new
                question's run, such as `model` or `instructions` (`ChatInput`).

        Raises:
            ConfigError: the question or an answer is invalid, the last question waits for a person,
                or the chat's budget is spent. Nothing was asked.
            RunBusy: another driver answers a question of this chat. Nothing was asked.
            ProviderError: a model request failed, or its reply was incomplete.
        """
        stream = self._open_stream(prompt, answers, keep=False)
        try:
            return await stream.result()
        except StoreError as error:
            if prompt is not None and stream.run is None:
                error.add_note(
                    f"chat {self.id!r}: the question was not asked. If another process asks one "
                    "now, send yours again after its answer."
                )
            raise

    def send_sync(
        self, prompt: ChatPrompt = None, **answers: Unpack[ChatInput[DepsT_contra]]
    ) -> RunResult[OutputT_co]:
        """Run `send` in a new event loop and return its result, for synchronous callers."""
        return self._run_sync(partial(self.send, prompt, **answers), "Chat.send")

    def stream(
        self, prompt: ChatPrompt = None, **answers: Unpack[ChatInput[DepsT_contra]]
    ) -> RunStream[OutputT_co]:
        """Return the stream of the next question; the arguments are those of `send`.

        The question is asked when the stream is first read.
        """
        return self._open_stream(prompt, answers, keep=True)

    async def messages(self) -> tuple[Message, ...]:
        """Return all messages of the chat in order, also those that a compaction has left out.

        The agent's instructions are left out. The first call reads the journals of all questions;
        a later call reads only those of new questions.

        Raises:
            StoreError: a journal cannot be read.
        """
        store, said = self._shared.store(), self._said
        for number in range(self._told + 1, await self._count_questions(store) + 1):
            question = await self._chain.question(store, number)
            said += (*question.new, *RunResult(question.run, store).messages)
            if question.run.ended:
                self._said, self._told = said, number
        return said

    def messages_sync(self) -> tuple[Message, ...]:
        """Run `messages` in a new event loop and return its result, for synchronous callers."""
        return self._run_sync(self.messages, "Chat.messages")

    async def run_ids(self) -> tuple[str, ...]:
        """Return the ids of the runs of all questions, for `agent.runs`, in order."""
        length = await self._count_questions(self._shared.store())
        return tuple(self._chain.run_id(number) for number in range(1, length + 1))

    async def pending(self) -> Questions:
        """Return the calls that the last question waits for, without driving its run."""
        store = self._shared.store()
        last = await self._last_question(store)
        return () if last is None else await waiting(last.run, self._terms.ports(store))

    async def spent(self) -> Spent:
        """Return what all questions of the chat have spent: tokens, US dollars, time and calls."""
        last = await self._last_question(self._shared.store())
        return Spent() if last is None else last.spent

    async def fork(
        self, chat_id: str | None = None, *, at: int | None = None
    ) -> Chat[DepsT_contra, OutputT_co]:
        """Copy the chat, and return the copy; the two go on independently.

        A store of JSON-lines files may keep a part of the copy if the process dies meanwhile; other
        stores keep all of it or nothing.

        Args:
            chat_id: the id of the copy; by default a random one.
            at: the number of questions to copy; by default all that are answered.

        Raises:
            ConfigError: `at` is no number of an answered question, or the id is taken.
            StoreError: a journal cannot be read or written.
        """
        store = self._shared.store()
        answered = await self._count_questions(store)
        if answered and (at is None or at >= answered):
            last = await self._last_question(store)
            answered -= last is None or not last.run.ended
        questions = answered if at is None else at
        if questions not in range(answered + 1):
            raise ConfigError(f"`at`: expected a number from 0 to {answered}, found {at!r}")
        # The terms have the store of the chat.
        copy: Chat[DepsT_contra, OutputT_co] = Chat(
            self._terms, chat_id, {**self._options, "store": None}
        )
        await self._chain.copy(store, copy.id, questions)
        return copy

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the store that the chat has opened; a later question opens it again."""
        if self._owns_store:
            await self._shared.aclose()

    def _run_sync(self, work: Callable[[], Awaitable[T]], instead: str) -> T:
        async def closing() -> T:
            try:
                return await work()
            finally:
                await self.aclose()

        return self._terms.run_sync(closing, instead)

    def _open_stream(
        self, prompt: ChatPrompt, answers: ChatInput[Any], *, keep: bool
    ) -> RunStream[OutputT_co]:
        opened: list[Asked] = []

        async def open_run() -> RunHandle[None]:
            last = await self._last_question(self._shared.store())
            asked = await self._asking.open(last, prompt, answers, keep=keep)
            opened.append(asked)
            return asked.handle

        async def note() -> None:
            run = stream.run
            if opened and run is not None and run.ended:
                self._last = Question(opened[0].number, run, opened[0].before)

        has_objects = self._terms.final is not None
        stream: RunStream[OutputT_co] = RunStream(
            open_run, self._terms.graph, keep=keep, has_objects=has_objects
        )
        stream.on_over = note
        return stream

    async def _last_question(self, store: Store) -> Question | None:
        """Return the last question of the chat; None if the chat has none."""
        last, number = self._last, await self._count_questions(store)
        if last is None or number > last.number:
            last = await self._chain.question(store, number) if number else None
            self._last = last if last is not None and last.run.ended else self._last
        return last

    async def _count_questions(self, store: Store) -> int:
        """Return the number of questions in the store."""
        lengths = self._shared.lengths
        length = await self._chain.length(store, lengths.get(self.id, 0))
        if len(lengths) >= LENGTHS_MAX:
            lengths.clear()
        lengths[self.id] = length
        return length


def _check_id(chat_id: str) -> None:
    """Raise an error for an id that cannot begin the ids of runs.

    Raises:
        ConfigError: the id is not text, is empty or too long, or has a slash.
    """
    if not isinstance(chat_id, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"`chat_id`: expected text, found {chat_id!r:.80}. Fix: str(…).")
    if len(chat_id) > ID_CHARS_MAX:
        raise ConfigError(
            f"`chat_id`: expected at most {ID_CHARS_MAX} characters, found {len(chat_id)}"
        )
    check_run_id("chat_id", chat_id)
