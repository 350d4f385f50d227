"""Repair: whatever is handed in, calls and results pair one to one, and little is lost."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphloop.conversation.repair import UNKNOWN, Repaired, open_calls, repaired
from graphloop.run import History
from graphloop.values import (
    AssistantMessage,
    Message,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
    evolve,
)

ids = st.sampled_from(["", "", "a", "a", "b", "c"])
names = st.sampled_from(["", "read", "read", "write"])
turns = st.lists(st.builds(ToolCall, ids, names, st.just("{}")), min_size=1, max_size=4)
results = st.builds(ToolResult, st.sampled_from(["", "c0.0"]), ids, names, st.text(max_size=3))
histories = st.lists(
    st.one_of(
        turns.map(lambda calls: AssistantMessage(tuple(calls))),
        results,
        results,
        st.builds(UserMessage, st.text(max_size=3)),
        st.builds(SystemMessage, st.text(max_size=3)),
        st.builds(AssistantMessage, st.just((TextPart("so"),))),
    ),
    max_size=12,
)
"""Any order of anything: most of these no wire would take."""

USER, LATER = UserMessage("go"), UserMessage("any news?")


def calling(*calls: ToolCall) -> AssistantMessage:
    return AssistantMessage((TextPart("let me see"), *calls))


def call(call_id: str = "", name: str = "read") -> ToolCall:
    return ToolCall(call_id, name, "{}")


def result(call_id: str = "", content: str = "fine", name: str = "read") -> ToolResult:
    return ToolResult("", call_id, name, content)


def unknown(call_id: str = "", name: str = "read") -> ToolResult:
    return ToolResult("", call_id, name, UNKNOWN, "unknown")


@st.composite
def paired(draw: st.DrawFn) -> list[Message]:
    """Return a history as graphloop writes it, under any ids."""
    history: list[Message] = []
    for calls in draw(st.lists(turns, max_size=4)):
        history.append(UserMessage(draw(st.text(max_size=3))))
        history.append(AssistantMessage(tuple(calls)))
        history.extend(result(each.id, draw(st.text(max_size=3)), each.name) for each in calls)
    return history


def left_open(messages: Sequence[Message]) -> list[ToolCall]:
    """Return the calls of the last turn beyond its results; fail if anything else is unpaired."""
    awaited: list[ToolCall] = []
    for message in messages:
        if isinstance(message, ToolResult):
            assert message.call_id in [each.id for each in awaited]
            while awaited[0].id != message.call_id:
                awaited.append(awaited.pop(0))
            awaited.pop(0)
        else:
            assert not awaited
            awaited = list(message.calls) if isinstance(message, AssistantMessage) else []
    return awaited


@given(history=histories)
def test_every_call_has_its_one_result_right_behind_it_in_order(history: list[Message]) -> None:
    """CONTRACT property 1, for histories that come from anywhere; wires refuse all others."""
    mended = list(repaired(history).messages)

    while mended:
        message = mended.pop(0)
        assert not isinstance(message, ToolResult)
        if isinstance(message, AssistantMessage):
            answers = [mended.pop(0) for _ in message.calls]
            found = [each.call_id for each in answers if isinstance(each, ToolResult)]
            assert [each.id for each in message.calls] == found


@given(history=histories, keep_open=st.booleans())
@example(
    # Results whose names fit no call together: sorting them by name would swap them every time.
    [
        calling(call("", "read"), call("", "write")),
        result("", "1", "write"),
        result("", "2", "write"),
    ],
    True,
)
@example(
    # The third result is dropped, so only the first two may decide whether the names fit.
    [
        calling(call("", "read"), call("", "write")),
        result("", "1", "write"),
        result("", "2", "read"),
        result("", "3", "read"),
    ],
    False,
)
def test_what_is_repaired_stays_as_it_is(history: list[Message], keep_open: bool) -> None:
    """A history is handed in again every turn; a second repair would change the prompt's past."""
    once = repaired(history, keep_open=keep_open).messages

    twice = repaired(once, keep_open=keep_open)

    assert Repaired(once) == twice
    assert twice.messages is once


@given(history=histories, keep_open=st.booleans())
def test_only_results_are_moved_dropped_or_added(history: list[Message], keep_open: bool) -> None:
    """What people and models said is nobody's to change; no result is told twice."""
    mended = repaired(history, keep_open=keep_open).messages

    others = [id(each) for each in history if not isinstance(each, ToolResult)]
    told = [id(each) for each in mended if isinstance(each, ToolResult) and each.text != UNKNOWN]
    assert others == [id(each) for each in mended if not isinstance(each, ToolResult)]
    assert set(told) <= {id(each) for each in history}
    assert len(told) == len(set(told))


@given(history=histories, keep_open=st.booleans())
def test_a_history_changes_exactly_if_there_are_findings(
    history: list[Message], keep_open: bool
) -> None:
    """Whoever refuses instead of repairing looks at the findings alone."""
    mended = repaired(history, keep_open=keep_open)

    assert (mended.messages == tuple(history)) == (not mended.findings)


@given(history=paired())
def test_a_paired_history_is_left_alone_whatever_its_ids(history: list[Message]) -> None:
    """Ids repeat between turns, within a turn, or are empty (CONTRACT §5.3, property 3)."""
    messages = tuple(history)

    assert Repaired(messages) == repaired(messages)
    assert repaired(messages).messages is messages
    assert messages == repaired(History(messages)).messages


@given(history=histories)
def test_repair_keeps_exactly_the_open_calls(history: list[Message]) -> None:
    """A client tool's call is handed in without its result on purpose."""
    mended = repaired(history, keep_open=True).messages
    awaited = open_calls(history)

    assert awaited == open_calls(mended)
    assert len(awaited) == len(left_open(mended))
    assert () == open_calls(repaired(history).messages)


def keyed(content: str, key: str) -> ToolResult:
    return evolve(result("", content, "pay"), key=key)


A, ABC = calling(call("a")), calling(call("a"), call("b"), call("c"))
READ_WRITE = calling(call("", "read"), call("", "write"))
PAY_PAY = calling(call("", "pay"), call("", "pay"))
READ, WRITE = result("", "1", "read"), result("", "2", "write")
UNNAMED = (result("", "1", ""), result("", "2", ""))
ODD_KEYS = (keyed("1", "c0.7"), keyed("2", "c0.0"))
WAITING = AssistantMessage((TextPart("still waiting"),))
FIRST, SECOND = result("a", "first"), result("a", "second")
AGAIN = calling(call("call_0"))

# Each history, the history after its repair, and the number of its findings.
HISTORIES: dict[str, tuple[list[Message], list[Message], int]] = {
    # langgraph #6726, pydantic-ai #4728, vercel/ai #12709
    "a crash between call and result": ([USER, A, LATER], [USER, A, unknown("a"), LATER], 1),
    "the same without an id": (
        [USER, calling(call()), LATER],
        [USER, calling(call()), unknown(), LATER],
        1,
    ),
    # openai-agents-python #4827
    "the second of three results is missing": (
        [ABC, result("a"), result("c")],
        [ABC, result("a"), unknown("b"), result("c")],
        1,
    ),
    "results in the order in which they finished": (
        [calling(call("a"), call("b")), result("b"), result("a")],
        [calling(call("a"), call("b")), result("a"), result("b")],
        1,
    ),
    "shared ids: the tools' names tell": ([READ_WRITE, WRITE, READ], [READ_WRITE, READ, WRITE], 1),
    "shared ids, no names: the position tells (CONTRACT §9 #12)": (
        [READ_WRITE, *UNNAMED],
        [READ_WRITE, *UNNAMED],
        0,
    ),
    "shared ids: keys that do not all fit tell nothing": (
        [PAY_PAY, *ODD_KEYS],
        [PAY_PAY, *ODD_KEYS],
        0,
    ),
    # Its call was compacted away: langgraph #4289, vercel/ai #14428
    "a result that no call waits for": ([USER, result("gone"), LATER], [USER, LATER], 1),
    "a result before its call": ([result("a"), A], [A, unknown("a")], 2),
    # A retry wrote its result again: crush #529
    "of two results the first counts": ([A, FIRST, SECOND], [A, FIRST], 1),
    # The user went on while a browser's tool ran: CopilotKit/OpenBot PR #333
    "a late result moves to its call": ([A, LATER, FIRST], [A, FIRST, LATER], 1),
    "a very late one, too": ([A, LATER, WAITING, FIRST], [A, FIRST, LATER, WAITING], 1),
    "a turn without calls between": ([A, calling(), FIRST], [A, FIRST, calling()], 1),
    # `call_0` in every turn (CONTRACT §5.3)
    "an id that is used again does not reach back": (
        [AGAIN, LATER, AGAIN, result("call_0", "1"), result("call_0", "2")],
        [AGAIN, unknown("call_0"), LATER, AGAIN, result("call_0", "1")],
        2,
    ),
}


@pytest.mark.parametrize(("history", "mended", "count"), HISTORIES.values(), ids=list(HISTORIES))
def test_a_broken_history_is_mended(
    history: list[Message], mended: list[Message], count: int
) -> None:
    """Each is what some library, browser or crash has made of a conversation."""
    found = repaired(history)

    assert tuple(mended) == found.messages
    assert count == len(found.findings)
    assert all("messages[" in finding for finding in found.findings)


def test_results_under_shared_ids_are_found_by_their_keys() -> None:
    """Where neither ids nor names tell calls apart: the first of two waits, the second is done."""
    turn = calling(call("", "pay"), call("", "pay"))
    second = evolve(result("", "2", "pay"), key="c0.1")
    first = evolve(result("", "1", "pay"), key="c0.0")

    assert [0] == [place for place, _ in open_calls([turn, second])]
    assert (turn, unknown("", "pay"), second) == repaired([turn, second]).messages
    assert (turn, first, second) == repaired([turn, UserMessage("and?"), second, first]).messages[
        :3
    ]


def test_open_calls_are_of_the_last_turn() -> None:
    """What a stateless resume has to settle (CONTRACT §3.5, §9 #45)."""
    turn = calling(call("a"), call("b"), call("a"))

    assert ((0, call("a")), (1, call("b")), (2, call("a"))) == open_calls([USER, turn])
    assert ((1, call("b")), (2, call("a"))) == open_calls([turn, result("x"), result("a")])
    assert ((0, call("a")), (2, call("a"))) == open_calls(History([turn, result("b")]))
    assert () == open_calls([turn, result("b"), result("a"), result("a")])


@pytest.mark.parametrize(
    "history",
    [
        [],
        [USER],
        [result("a")],
        [calling()],
        [calling(call("a")), LATER],
        [calling(call("a")), SystemMessage("be brief")],
        [calling(call("a")), calling()],
    ],
)
def test_nothing_is_open_once_the_conversation_went_on(history: list[Message]) -> None:
    """Only tool messages may follow the turn that is resumed (CONTRACT §3.5)."""
    assert () == open_calls(history)


def test_a_turn_left_open_still_loses_what_is_no_result_of_it() -> None:
    """And its results come in order; only the gaps stay."""
    first, turn = calling(call("z")), calling(call("a"), call("b"), call("c"))

    mended = repaired([first, turn, result("c"), result("x"), result("a")], keep_open=True)

    assert (first, unknown("z"), turn, result("a"), result("c")) == mended.messages
    assert 3 == len(mended.findings)
