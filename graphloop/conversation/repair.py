"""Repair of a caller's message history, so that each call has exactly one result.

Callers pass in histories from databases, other libraries and browsers. In these, a crash may have
left a call without a result, a retry may have left two, or a result may follow a later message.
Providers refuse such a history, so it is repaired here before it is sent. A caller who reads
`findings` can refuse the history instead.

The provider's call id matches a result to its call. Ids may repeat or be empty. Among calls with
the same id, graphloop's own keys decide if all fit, else the tool names if all fit, else the order.
A result answers the latest earlier turn that made a call with its id.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from ..values import AssistantMessage, Message, ToolCall, ToolResult

__all__ = ["Repaired", "open_calls", "repaired"]

Results: TypeAlias = Mapping[int, ToolResult]
"""Tool results by their index in the history, in the order of the history."""

Slots: TypeAlias = tuple[int | None, ...]
"""For each call of a turn, the index of its result in the history; None without a result."""

KEY: Final = re.compile(r"c-?\d+\.(\d+)")
"""Matches a key that graphloop made (`values.call_key`); a caller's own key may be any text."""

UNKNOWN = (
    "It is not known whether this call took effect: the conversation has no result of it. Check "
    "before calling it again."
)


class Repaired(Struct, frozen=True):
    """A history with one result for each call, and one finding for each repair."""

    messages: tuple[Message, ...]
    findings: tuple[str, ...] = ()


def repaired(messages: Sequence[Message], *, keep_open: bool = False) -> Repaired:
    """Return the history with exactly one result after each call.

    The results stand in the order of the calls. A call without a result gets a result with the
    status unknown, because the call may have run. A result without a call, or a second result of a
    call, is dropped. A late result moves to its call. All other messages stay the same objects, in
    the same order.

    Args:
        messages: any history; it is not changed.
        keep_open: whether the calls that `open_calls` returns stay without a result.
    """
    history = tuple(messages)
    if _is_paired(history):
        return Repaired(history)
    came = _results_by_turn(history)
    open_turn = _open_turn(history) if keep_open else None
    slots = {
        turn: _result_slots(message.calls, came[turn])
        for turn, message in enumerate(history)
        if turn in came and isinstance(message, AssistantMessage)
    }
    homes = {at: turn for turn, filled in slots.items() for at in filled if at is not None}
    paired: list[Message] = []
    findings: list[str] = []
    previous = -1
    for index, message in enumerate(history):
        if isinstance(message, ToolResult):
            findings.extend(_stray_findings(index, message, homes.get(index), previous))
            continue
        previous = index
        paired.append(message)
        if isinstance(message, AssistantMessage) and index in slots:
            filled = slots[index]
            paired.extend(
                _answers_in_order(message, filled, came[index], keep_open=index == open_turn)
            )
            findings.extend(_gap_findings(index, message, filled, keep_open=index == open_turn))
    return Repaired(tuple(paired) if findings else history, tuple(findings))


def open_calls(messages: Sequence[Message]) -> tuple[tuple[int, ToolCall], ...]:
    """Return the calls of the last turn that have no result, each with its index in the turn.

    The tuple is empty if any message other than a result follows the turn.
    """
    turn = _open_turn(messages)
    if turn is None:
        return ()
    message = messages[turn]
    assert isinstance(message, AssistantMessage)
    ids = {call.id for call in message.calls}
    results = {
        at: result
        for at in range(turn + 1, len(messages))
        if isinstance(result := messages[at], ToolResult) and result.call_id in ids
    }
    filled = _result_slots(message.calls, results)
    return tuple([(place, message.calls[place]) for place, at in enumerate(filled) if at is None])


def _is_paired(history: Sequence[Message]) -> bool:
    """Whether all results follow their calls in order; a fast check that nearly always succeeds."""
    waiting: list[ToolCall] = []
    for message in history:
        if isinstance(message, ToolResult):
            if not waiting:
                return False
            call = waiting.pop()
            if call.id != message.call_id or call.name != message.name:
                return False
        elif waiting:
            return False
        elif isinstance(message, AssistantMessage):
            waiting = [part for part in reversed(message.parts) if isinstance(part, ToolCall)]
    return not waiting


def _open_turn(messages: Sequence[Message]) -> int | None:
    """Return the index of the last assistant message if only results follow it; else None."""
    for index in range(len(messages) - 1, -1, -1):
        if not isinstance(message := messages[index], ToolResult):
            return index if isinstance(message, AssistantMessage) else None
    return None


def _results_by_turn(history: Sequence[Message]) -> dict[int, dict[int, ToolResult]]:
    """Return the results of each turn with calls, by the turn's index in the history.

    Results that belong to no turn are under the index -1.
    """
    came: dict[int, dict[int, ToolResult]] = {}
    latest: dict[str, int] = {}
    for index, message in enumerate(history):
        if isinstance(message, ToolResult):
            came.setdefault(latest.get(message.call_id, -1), {})[index] = message
        elif isinstance(message, AssistantMessage):
            for call in message.calls:
                latest[call.id] = index
                came.setdefault(index, {})
    return came


def _result_slots(calls: Sequence[ToolCall], results: Results) -> Slots:
    """Return, for each call of a turn, the index of its result in the history, or None."""
    slots: list[int | None] = [None] * len(calls)
    wanted: dict[str, list[int]] = {}
    for place, call in enumerate(calls):
        wanted.setdefault(call.id, []).append(place)
    came: dict[str, list[int]] = {}
    for at, result in results.items():
        came.setdefault(result.call_id, []).append(at)
    for call_id, places in wanted.items():
        indexes = came.get(call_id, [])[: len(places)]
        own = _places_by_key(places, results, indexes)
        meant = _places_by_name(calls, places, results, indexes) if own is None else own
        for place, at in zip(meant, indexes, strict=True):
            slots[place] = at
    return tuple(slots)


def _places_by_key(
    places: Sequence[int], results: Results, indexes: Sequence[int]
) -> Sequence[int] | None:
    """Return the index of each result's call, as the result's key states it.

    None unless each result has a graphloop key, and the keys name different calls in `places`.
    """
    keys = [KEY.fullmatch(results[at].key) for at in indexes]
    named = [int(key[1]) for key in keys if key is not None]
    all_fit = len(named) == len(indexes) == len({*named} & {*places})
    return named if all_fit else None


def _places_by_name(
    calls: Sequence[ToolCall], places: Sequence[int], results: Results, indexes: Sequence[int]
) -> Sequence[int]:
    """Return the index of each result's call, for calls and results with the same id.

    Tool names decide if all of them fit, else the order decides. Names never decide for only some
    of the results, because a second repair must change nothing.
    """
    places_by_name: dict[str, list[int]] = {}
    for place in places:
        places_by_name.setdefault(calls[place].name, []).append(place)
    free = {name: iter(same) for name, same in places_by_name.items()}
    named: list[int] = []
    for at in indexes:
        fits = next(free.get(results[at].name, iter(())), None)
        if fits is None:
            return places[: len(indexes)]
        named.append(fits)
    return named


def _answers_in_order(
    message: AssistantMessage, filled: Slots, results: Results, *, keep_open: bool
) -> Iterator[ToolResult]:
    """Yield a turn's results in call order; a missing result is `unknown` unless `keep_open`."""
    for call, at in zip(message.calls, filled, strict=True):
        if at is not None:
            yield results[at]
        elif not keep_open:
            yield ToolResult("", call.id, call.name, UNKNOWN, "unknown")


def _gap_findings(
    turn: int, message: AssistantMessage, filled: Slots, *, keep_open: bool
) -> Iterator[str]:
    """Yield a finding for each missing result of a turn, and one for a wrong order."""
    for place, (call, at) in enumerate(zip(message.calls, filled, strict=True)):
        if at is None and not keep_open:
            finding = f"messages[{turn}]: call {place} ({_name_call(call.name, call.id)})"
            yield f"{finding} has no result; it is answered as unknown"
    came = [at for at in filled if at is not None]
    if came != sorted(came):
        yield f"messages[{turn}]: the results of its calls are not in their order; they are sorted"


def _stray_findings(
    index: int, result: ToolResult, home: int | None, previous: int
) -> Iterator[str]:
    """Yield a finding about a result that has no call, or does not follow its call's turn."""
    finding = f"messages[{index}]: a result ({_name_call(result.name, result.call_id)})"
    if home is None:
        yield f"{finding} that no call is waiting for; it is dropped"
    elif home != previous:
        place = f"after messages[{previous}]"
        yield f"{finding} came {place}; it is moved to its call in messages[{home}]"


def _name_call(name: str, call_id: str) -> str:
    return f"tool {name!r}, id {call_id!r}"
