"""The automaton of a temporal rule: a few states, and what each happening makes of them.

The proof walks it beside the graph, the monitor beside the run; both read the same table, so what
is proven is what is watched. A happening is judged by what came strictly before it, and only then
counts itself: one that is two words of a rule at once does not allow itself.
"""

from __future__ import annotations

from typing import Final, assert_never, final

from msgspec import Struct

from .errors import ConfigError
from .temporal import AtMost, Followed, Never, OnlyAfter, TemporalRule, describe_rule, words_of

__all__ = [
    "KINDS",
    "Automaton",
    "Happening",
    "approval_of",
    "automaton_of",
    "entered",
    "ran",
    "taken",
]

KINDS: Final = ("node", "outcome", "tool", "approval")
"""The kinds of happenings, as words begin."""

_WHAT, _SECOND, _THIRD = 1, 2, 4
_LETTERS: Final = range(8)


@final
class Happening(Struct, frozen=True, gc=False):
    """Something that a rule may speak of, as all the words that mean it."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        return self.words[0]


def entered(node: str) -> Happening:
    """Return that a node was entered; `END` is entered when the run is over."""
    return Happening((f"node:{node}",))


def taken(node: str, outcome: str) -> Happening:
    """Return that a node was left by an outcome, both by name."""
    return Happening((f"outcome:{node}.{outcome}", f"outcome:{outcome}"))


def ran(tool: str) -> Happening:
    """Return that a call of a tool was let through to run."""
    return Happening((f"tool:{tool}", "tool:*"))


def approval_of(tool: str) -> Happening:
    """Return that a person approved a call of a tool, which is about to run."""
    return Happening((f"approval:{tool}", "approval:*"))


@final
class Automaton(Struct, frozen=True):
    """A rule as a table: `table[state][letter]` is the next state.

    A letter says which of the rule's words a happening is, one bit for each. `broken` is the state
    in which the rule is violated, which nothing leaves; `owing` the one in which a run must not
    end; -1 where the rule has no such state.
    """

    rule: TemporalRule
    words: tuple[str, str, str]
    start: int
    table: tuple[tuple[int, ...], ...]
    broken: int = -1
    owing: int = -1

    def letter(self, happening: Happening) -> int:
        """Return which words of the rule a happening is."""
        what, second, third = self.words
        said = happening.words
        return (
            (_WHAT if what in said else 0)
            | (_SECOND if second in said else 0)
            | (_THIRD if third in said else 0)
        )

    def after(self, state: int, happening: Happening) -> int:
        """Return the state that a happening leads to."""
        return self.table[state][self.letter(happening)]

    def forbids(self, state: int, happening: Happening) -> bool:
        """Whether the rule is violated if this happens now, once more perhaps."""
        letter = self.letter(happening)
        return bool(letter & _WHAT) and self.table[state][letter] == self.broken


def automaton_of(rule: TemporalRule) -> Automaton:
    """Return the automaton of a rule whose words have been looked up.

    Raises:
        ConfigError: a word has no kind, so that no happening would ever be it.
    """
    words = words_of(rule)
    for word in filter(None, words):
        if word.partition(":")[0] not in KINDS or not word.partition(":")[2]:
            raise ConfigError(
                f"rule {describe_rule(rule)!r}: the word {word!r} has not been looked up in a "
                "graph. Fix: pass the rules through `resolve` first."
            )
    match rule:
        case Never(before=""):
            start, broken, owing = 0, 1, -1
        case Never() | OnlyAfter():
            start, broken, owing = 0, 2, -1
        case AtMost(times=times, per=per):
            start, broken, owing = 0 if per else times, times + 1, -1
        case Followed():
            start, broken, owing = 0, -1, 1
        case _:
            assert_never(rule)
    states = range(max(broken, owing) + 1)
    table = tuple(
        [
            tuple([state if state == broken else _next(rule, state, letter) for letter in _LETTERS])
            for state in states
        ]
    )
    return Automaton(rule, words, start, table, broken, owing)


def _next(rule: TemporalRule, state: int, letter: int) -> int:
    """Return the state after a letter, from a state in which the rule is not violated."""
    what, second, third = letter & _WHAT, letter & _SECOND, letter & _THIRD
    match rule:
        case Never(before=""):
            return 1 if what else 0
        case Never() | OnlyAfter():
            if what and state == 0:
                return 2
            # What is since itself has happened since: the second word wins.
            return 1 if second else 0 if third else state
        case AtMost(times=times):
            if what and state == 0:
                return times + 1
            return times if second else state - 1 if what else state
        case Followed():
            return 1 if what else 0 if second else state
        case _:
            assert_never(rule)
