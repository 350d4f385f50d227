"""The automaton of a temporal rule: a few states, and their transitions by happenings.

A happening is an occurrence in a run that a rule can name, such as a tool call or a node's entry.
The proof and the monitor of a run use the same automaton, so both check the same rule.

The state before a happening decides whether the rule forbids the happening. Only then does the
happening change the state, so a happening cannot allow itself. The allowing word of a rule may be
wide, such as `tool:*`. A happening that also matches a narrower word elsewhere in the rule, such as
`tool:deploy`, then allows nothing.

A tool call has two happenings: its start, when a gate lets it through, and its end. A restricted
tool counts at its start, so that two calls cannot share one allowance. A tool that allows other
happenings counts at its end, and only after success, so that an unfinished call allows nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, assert_never, final

from msgspec import Struct

from ..errors import ConfigError
from ..values import evolve
from .language import AtMost, Followed, Never, OnlyAfter, TemporalRule, describe_rule, words_of

__all__ = [
    "KINDS",
    "Automaton",
    "Happening",
    "approved_call",
    "automaton_of",
    "earlier",
    "entered",
    "past_call",
    "ran",
    "returned",
    "taken",
]

KINDS: Final = ("node", "outcome", "tool", "approval")
"""The kinds of happenings; a word of a rule begins with one, as in `tool:deploy`."""

# Bits of a letter: the happening matches the rule's first, second or third word, or starts a tool
# call of the second word.
_WHAT, _SECOND, _THIRD, _STARTED = 1, 2, 4, 8
_ALLOWS: Final = _SECOND | _STARTED
# States of an `only_after` with `since`: since the last `since`, `after` has not happened, has
# started, or has ended well.
_NOT_YET, _STARTS, _ALLOWED = 0, 1, 2
# States of an `always_followed_by`: `by` is owed, or is owed and has started.
_OWED, _FOLLOWING = 1, 2


@final
class Happening(Struct, frozen=True, gc=False):
    """An occurrence in a run that a rule can name, with all words that match the occurrence.

    A `past` happening occurred before the run. It changes the state of a rule, but violates none.
    """

    words: tuple[str, ...]
    past: bool = False

    def __str__(self) -> str:
        return self.words[0]


def entered(node: str) -> Happening:
    """Return the happening that a run enters a node; a run that ends enters `END`."""
    return Happening((f"node:{node}",))


def taken(node: str, outcome: str) -> Happening:
    """Return the happening that a run leaves a node by an outcome."""
    return Happening((f"outcome:{node}.{outcome}", f"outcome:{outcome}"))


def ran(tool: str) -> Happening:
    """Return the happening that a gate lets a call of a tool run."""
    return Happening((f"tool:{tool}", "tool:*"))


def returned(tool: str, *, well: bool) -> Happening:
    """Return the happening that a tool's call ends; `well` says whether the call succeeded."""
    ended = (f"ended:{tool}", "ended:*")
    return Happening((*ended, f"well:{tool}", "well:*") if well else ended)


def earlier(tool: str) -> Happening:
    """Return the happening that a tool ran before the question that the run answers.

    This happening can use up or revoke an allowance, but it allows and requires nothing.
    """
    return Happening((f"earlier:{tool}", "earlier:*"), past=True)


def past_call(tool: str, *, well: bool) -> tuple[Happening, Happening]:
    """Return the past start and end of a call made after the question that the run answers."""
    return evolve(ran(tool), past=True), evolve(returned(tool, well=well), past=True)


def approved_call(tool: str) -> Happening:
    """Return the happening that a person approves a call of a tool, right before it runs."""
    return Happening((f"approval:{tool}", "approval:*"))


@final
class Automaton(Struct, frozen=True):
    """A temporal rule as a finite automaton whose states are small integers.

    Attributes:
        rule: the rule.
        words: the first, second and third word of the rule; empty for none.
        start: the start state.
        broken: the state of a violated rule, which no happening leaves; -1 for none.
        owing: the states in which the end of the run violates the rule.
        meant: the bits of a letter, each with the words that set the bit.
        apart: words that allow nothing, although a wider allowing word of the rule matches them.
    """

    rule: TemporalRule
    words: tuple[str, str, str]
    start: int
    broken: int = -1
    owing: tuple[int, ...] = ()
    meant: tuple[tuple[int, tuple[str, ...]], ...] = ()
    apart: tuple[str, ...] = ()

    def letter(self, happening: Happening) -> int:
        """Return the words of the rule that a happening matches, as bits; 0 for no word."""
        letter = 0
        for bit, words in self.meant:
            for word in words:
                if word in happening.words:
                    letter |= bit
        if letter & _ALLOWS and any(word in happening.words for word in self.apart):
            letter &= ~_ALLOWS
        return letter

    def after(self, state: int, happening: Happening) -> int:
        """Return the state after a happening."""
        letter = self.letter(happening)
        if not letter or state == self.broken:
            return state
        after = _next_state(self.rule, state, letter)
        if after == self.broken and happening.past:
            # A happening before the run uses up an allowance, but cannot violate the rule.
            return _next_state(self.rule, state, letter & ~_WHAT)
        return after

    def forbids(self, state: int, happening: Happening) -> bool:
        """Return whether a happening in this state violates the rule, first or again."""
        is_subject = bool(self.letter(happening) & _WHAT)
        return is_subject and self.after(state, happening) == self.broken


def automaton_of(rule: TemporalRule) -> Automaton:
    """Return the automaton of a rule whose words `resolve_words` has resolved.

    Raises:
        ConfigError: a word has no kind such as `tool:`, so no happening could match the word.
    """
    words = words_of(rule)
    for word in filter(None, words):
        if word.partition(":")[0] not in KINDS or not word.partition(":")[2]:
            raise ConfigError(
                f"rule {describe_rule(rule)!r}: the word {word!r} has not been looked up in a "
                "graph. Fix: pass the rules through `resolve_words` first."
            )
    start, broken, owing = _states_of(rule)
    meant, apart = tuple(_words_by_bit(rule)), tuple(_covered_words(words))
    return Automaton(rule, words, start, broken, owing, meant, apart)


def _states_of(rule: TemporalRule) -> tuple[int, int, tuple[int, ...]]:
    """Return the start state, the broken state and the owing states of a rule's automaton."""
    match rule:
        case Never(before=""):
            return 0, 1, ()
        case Never() | OnlyAfter(since=""):
            return 0, 2, ()
        case OnlyAfter():
            return _NOT_YET, 3, ()
        case AtMost(times=times, per=per):
            return (0 if per else times), times + 1, ()
        case Followed():
            return 0, -1, (_OWED, _FOLLOWING)
        case _:
            assert_never(rule)


def _words_by_bit(rule: TemporalRule) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield each bit of a letter with the words that set the bit.

    A restricted tool counts at its start, and a tool that allows others at its successful end. A
    tool that revokes an allowance counts at its start and at any end.
    """
    what, second, third = words_of(rule)
    yield _WHAT, _words_with_kinds("ended" if isinstance(rule, Followed) else "earlier", what)
    if second:
        yield _SECOND, (_of_kind("well", second),)
        yield _STARTED, (second,)
    if third:
        yield _THIRD, _words_with_kinds("ended", third) + _words_with_kinds("earlier", third)


def _covered_words(words: tuple[str, str, str]) -> Iterator[str]:
    """Yield the other words of a rule that its wider second word also matches."""
    what, second, third = words
    kind, _, name = second.partition(":")
    for word in (what, third):
        other, _, narrower = word.partition(":")
        if other != kind or narrower == name:
            continue
        if name == "*" or (kind == "outcome" and narrower.endswith(f".{name}")):
            yield from _words_with_kinds("ended", word)


def _of_kind(kind: str, word: str) -> str:
    """Return `tool:x` with another kind, such as `ended:x`; any other word unchanged."""
    found, _, name = word.partition(":")
    return f"{kind}:{name}" if found == "tool" else word


def _words_with_kinds(kind: str, word: str) -> tuple[str, ...]:
    """Return a word and, for a tool, the word with another kind: `tool:x` and `ended:x`."""
    return (word, _of_kind(kind, word))


def _next_state(  # noqa: PLR0911 - one way out for each form
    rule: TemporalRule, state: int, letter: int
) -> int:
    """Return the next state of a rule after a letter (bits of matching words).

    The rule must not be violated in `state`.
    """
    what, second = letter & _WHAT, letter & _SECOND
    match rule:
        case Never(before=""):
            return 1 if what else 0
        case Never() | OnlyAfter(since=""):
            return 2 if what and state == 0 else 1 if second else state
        case OnlyAfter():
            return _next_state_since(state, letter)
        case AtMost(times=times):
            if what and state == 0:
                return times + 1
            return times if second else state - 1 if what else state
        case Followed():
            if what:
                return _OWED
            if second and (state == _FOLLOWING or letter & _STARTED):
                return 0
            return _FOLLOWING if letter & _STARTED and state == _OWED else state
        case _:
            assert_never(rule)


def _next_state_since(state: int, letter: int) -> int:
    """Return the next state of an `only_after` with `since`, after a letter (bits of words)."""
    if letter & _WHAT and state != _ALLOWED:
        return 3
    if letter & _SECOND and (state != _NOT_YET or letter & _STARTED):
        # Checked before `_THIRD`: a happening that also matches a wider `since` still allows. For a
        # narrower `since`, `apart` has cleared the bit.
        return _ALLOWED
    if letter & _THIRD:
        state = _NOT_YET
    return _STARTS if letter & _STARTED and state == _NOT_YET else state
