"""Unseen: what may happen to a temporal rule that no graph shows.

Which tools a model calls, and what people say to that, is not in the table; nor is what a
conversation that is handed in says has run before the run began. A proof takes it that any of it
may happen, or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias, final

from ..rules import Automaton, Happening, approved_call, earlier, past_call, ran, returned

__all__ = ["Unseen"]

SOME_TOOL: Final = "\0"
"""A tool that no rule names, for it stands for all of them."""

_Told: TypeAlias = Sequence[Happening]
"""What happens in a row, with nothing in between."""


@final
class Unseen:
    """Where a rule may stand after what nobody sees coming.

    Args:
        automaton: the rule's.
    """

    def __init__(self, automaton: Automaton) -> None:
        kinds = [word.partition(":") for word in automaton.words]
        named = {name for kind, _, name in kinds if kind in {"tool", "approval"}}
        self._automaton = automaton
        self._names = sorted({*named, SOME_TOOL})
        self._tools = [
            (one,)
            for name in self._names
            for one in (ran(name), approved_call(name), *_both(name))
            if automaton.letter(one)
        ]
        self._after: dict[int, frozenset[int]] = {}

    def after(self, state: int) -> frozenset[int]:
        """Return the states that any tools and approvals can lead to from a state."""
        if state not in self._after:
            self._after[state] = self._closed([state], self._tools)
        return self._after[state]

    def before_the_run(self) -> frozenset[int]:
        """Return the states that a run may begin in, for what its conversation says has run.

        What ran before the last question was asked comes first; nothing there was approved.
        """
        long_ago = self._closed([self._automaton.start], [(earlier(one),) for one in self._names])
        since = [past_call(one, well=well) for one in self._names for well in (True, False)]
        return self._closed(long_ago, since)

    def _closed(self, states: Iterable[int], all_told: Sequence[_Told]) -> frozenset[int]:
        """Return the states that lists of happenings, in any order, lead to from some."""
        seen = set(states)
        todo = [*seen]
        while todo:
            here = todo.pop()
            new = {self._told(here, one) for one in all_told} - seen
            seen |= new
            todo += new
        return frozenset(seen)

    def _told(self, state: int, happened: _Told) -> int:
        for one in happened:
            state = self._automaton.after(state, one)
        return state


def _both(tool: str) -> _Told:
    return [returned(tool, well=well) for well in (True, False)]
