"""Beginnings: a store keeps the messages that many runs begin with once."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphloop.errors import StoreError
from graphloop.events import Setup, Started
from graphloop.media import Inline, MediaPart
from graphloop.stores.beginnings import PART_BYTES, Beginnings
from graphloop.stores.blobs import INLINE_BYTES_MAX
from graphloop.stores.codec import Codec
from graphloop.values import (
    AssistantMessage,
    Message,
    SystemMessage,
    TextPart,
    ToolResult,
    UserMessage,
)

PDF = MediaPart("application/pdf", Inline(b"%" * (INLINE_BYTES_MAX + 1)), "a.pdf")
KINDS: tuple[Message, ...] = (
    UserMessage("short"),
    AssistantMessage((TextPart("abc" * 500),)),
    ToolResult("k1", "c1", "t", "b" * (PART_BYTES + 1)),
    UserMessage((TextPart("look"), PDF)),
    UserMessage("half of a pair: \ud83d"),
    SystemMessage("a summary"),
)
conversations = st.lists(st.sampled_from(KINDS), max_size=30)


def started(*messages: Message) -> Started:
    return Started(1.0, "r", "g", messages, Setup())


class Kept:
    """A store in small: blobs and lines."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.codec, self.beginnings = Codec(), Beginnings()

    def write(self, messages: Sequence[Message]) -> tuple[bytes, dict[str, bytes]]:
        """Return the line of a run's first event, and the blobs that it brought."""
        brought: dict[str, bytes] = {}
        line = self.codec.encode(1, started(*messages), brought, self.beginnings)
        self.blobs |= brought
        self.beginnings.saved(brought)
        return line, brought

    def read(self, line: bytes) -> Started:
        event = self.codec.decode(line, self.blobs.__getitem__, self.beginnings)[1]
        assert isinstance(event, Started)
        return event


@given(conversations, conversations, st.booleans())
@example([], [], True)
@example([*KINDS, *KINDS], [KINDS[2], KINDS[1], *KINDS], True)
def test_a_run_has_the_messages_that_it_began_with(
    first: list[Message], more: list[Message], anew: bool
) -> None:
    """Whatever they are, whatever run began likewise, and in whatever process."""
    store = Kept()
    one, _ = store.write(first)
    if anew:
        store.beginnings = Beginnings()
    two, _ = store.write([*first, *more])
    other, _ = store.write([SystemMessage("Now it is five."), *first[1:], *more])

    assert started(*first) == store.read(one)
    assert started(*first, *more) == store.read(two)
    assert [SystemMessage("Now it is five."), *first[1:], *more] == [*store.read(other).messages]


def talk(count: int) -> list[Message]:
    said: list[Message] = []
    for number in range(count):
        said += [UserMessage(f"question {number}"), AssistantMessage((TextPart("answer " * 40),))]
    return said


def test_each_message_is_written_once_in_a_part() -> None:
    """A conversation of 200 questions, each a run: the parts together are as large as it."""
    store, said = Kept(), talk(200)
    sizes = [
        len(line) + sum(map(len, brought.values()))
        for line, brought in (store.write(said[: 2 * at + 1]) for at in range(200))
    ]
    texts = b"".join(store.blobs.values())
    assert all(1 == texts.count(b'"question %d"' % at) for at in range(180))
    assert sum(sizes[180:]) <= sum(sizes[20:40]) * 1.1


def test_a_conversation_read_from_the_store_is_not_written_again() -> None:
    """Another process continues the chat: it has other objects, but the parts are known."""
    store, said = Kept(), talk(60)
    line, _ = store.write(said)
    store.beginnings = Beginnings()
    messages = store.read(line).messages

    _, brought = store.write([*messages, UserMessage("more"), UserMessage("again")])

    assert len(brought) <= 1


def test_other_instructions_leave_the_parts_as_they_are() -> None:
    """The instructions may name the time, and are first in the conversation."""
    store, said = Kept(), talk(60)
    store.write([SystemMessage("It is five."), *said])

    line, brought = store.write([SystemMessage("It is six."), *said, UserMessage("more")])

    assert len(brought) <= 1
    assert SystemMessage("It is six.") == store.read(line).messages[0]


def test_parts_of_a_failed_write_are_written_again() -> None:
    """The disk was full: the store never said that it has them."""
    codec, beginnings, said = Codec(), Beginnings(), talk(60)
    lost: dict[str, bytes] = {}
    codec.encode(1, started(*said), lost, beginnings)

    again: dict[str, bytes] = {}
    codec.encode(1, started(*said), again, beginnings)

    assert lost == again
    assert lost


def test_a_changed_beginning_is_written_anew() -> None:
    """A compaction has replaced an old message; those after it are the same objects."""
    store, said = Kept(), talk(60)
    store.write(said)
    changed = [said[0], AssistantMessage((TextPart("shorter"),)), *said[2:]]

    line, _ = store.write(changed)

    assert changed == [*store.read(line).messages]


def test_one_question_has_no_parts() -> None:
    """A run of its own is one file that a person can read, however long its prompt is."""
    line, brought = Kept().write([SystemMessage("s" * 9000), UserMessage("q" * 9000)])
    assert not brought
    assert "beginning" not in json.loads(line)


def test_a_missing_part_is_told_with_what_it_was() -> None:
    """A person has copied a journal without its blobs."""
    store = Kept()
    line, _ = store.write(talk(60))
    with pytest.raises(StoreError, match=r"conversation that .*: sha256.*: expected its data"):
        store.codec.decode(line)


def test_only_the_latest_conversations_are_remembered() -> None:
    """A server with many chats does not keep all of them in memory; each stays readable."""
    store = Kept()
    lines = [store.write([UserMessage(f"chat {n}"), *talk(20)])[0] for n in range(100)]
    assert [f"chat {n}" for n in range(100)] == [
        one.content
        for line in lines
        if isinstance(one := store.read(line).messages[0], UserMessage)
    ]
