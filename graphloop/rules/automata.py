"""The automaton of a temporal rule: a few states, and what each happening makes of them.

The proof walks it beside the graph, the monitor beside the run; both ask the same one, so what is
proven is what is watched. A happening is judged by what came strictly before it, and only then
counts itself: one that is two words of a rule at once does not allow itself. Nor does it allow
anything if it is what the rule is about, or what undoes the allowance, by the narrower word.

A tool happens twice: it is let through, and it returns. What a rule restrains counts from the
first, so that no two calls share what is allowed once; what it waits for counts from the second,
and only if all went well, so that nothing is allowed by what has not been done.
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
"""The kinds of happenings, as words begin."""

_WHAT, _SECOND, _THIRD, _BEGUN = 1, 2, 4, 8
_ALLOWS: Final = _SECOND | _BEGUN
_NOT_YET, _BEGINS, _ALLOWED = 0, 1, 2
_OWED, _FOLLOWING = 1, 2


@final
class Happening(Struct, frozen=True, gc=False):
    """Something that a rule may speak of, as all the words that mean it.

    What is `past` happened before the run: it counts, and breaks no rule.
    """

    words: tuple[str, ...]
    past: bool = False

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


def returned(tool: str, *, well: bool) -> Happening:
    """Return that a call of a tool that was let through has ended, `well` or not."""
    ended = (f"ended:{tool}", "ended:*")
    return Happening((*ended, f"well:{tool}", "well:*") if well else ended)


def earlier(tool: str) -> Happening:
    """Return that a tool has run before the question that the run is to answer.

    It uses up what is allowed and undoes what was, but nothing is allowed or owed by it.
    """
    return Happening((f"earlier:{tool}", "earlier:*"), past=True)


def past_call(tool: str, *, well: bool) -> tuple[Happening, Happening]:
    """Return that a tool has run, and ended, since the question that the run is to answer."""
    return evolve(ran(tool), past=True), evolve(returned(tool, well=well), past=True)


def approved_call(tool: str) -> Happening:
    """Return that a person approved a call of a tool, which is about to run."""
    return Happening((f"approval:{tool}", "approval:*"))


@final
class Automaton(Struct, frozen=True):
    """A rule as a machine whose states are small numbers; what it allows is counted, not listed.

    A letter says what a happening is to the rule, one bit for each. `broken` is the state in which
    the rule is violated, which nothing leaves; `owing` are those in which a run must not end. What
    is `apart` allows nothing, though the word for what does is wide enough for it.
    """

    rule: TemporalRule
    words: tuple[str, str, str]
    start: int
    broken: int = -1
    owing: tuple[int, ...] = ()
    meant: tuple[tuple[int, tuple[str, ...]], ...] = ()
    apart: tuple[str, ...] = ()

    def letter(self, happening: Happening) -> int:
        """Return what a happening is to the rule; 0 for nothing."""
        letter = 0
        for bit, words in self.meant:
            for word in words:
                if word in happening.words:
                    letter |= bit
        if letter & _ALLOWS and any(word in happening.words for word in self.apart):
            letter &= ~_ALLOWS
        return letter

    def after(self, state: int, happening: Happening) -> int:
        """Return the state that a happening leads to."""
        letter = self.letter(happening)
        if not letter or state == self.broken:
            return state
        after = _next(self.rule, state, letter)
        if after == self.broken and happening.past:
            # It uses up what is allowed, and nobody can be told to have let it through.
            return _next(self.rule, state, letter & ~_WHAT)
        return after

    def forbids(self, state: int, happening: Happening) -> bool:
        """Whether the rule is violated if this happens now, once more perhaps."""
        is_what = bool(self.letter(happening) & _WHAT)
        return is_what and self.after(state, happening) == self.broken


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
    start, broken, owing = _shape(rule)
    meant, apart = tuple(_meant(rule)), tuple(_apart(words))
    return Automaton(rule, words, start, broken, owing, meant, apart)


def _shape(rule: TemporalRule) -> tuple[int, int, tuple[int, ...]]:
    """Return where a rule begins, where it is broken, and where it is owed."""
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


def _meant(rule: TemporalRule) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield each bit with the words that a happening has that is meant by it.

    What is restrained counts as soon as a tool is let through; what enables, when it has returned
    well; what undoes that, from the one to the other, however it ended.
    """
    what, second, third = words_of(rule)
    yield _WHAT, _also("ended" if isinstance(rule, Followed) else "earlier", what)
    if second:
        yield _SECOND, (_of_kind("well", second),)
        yield _BEGUN, (second,)
    if third:
        yield _THIRD, _also("ended", third) + _also("earlier", third)


def _apart(words: tuple[str, str, str]) -> Iterator[str]:
    """Yield what is meant by the second word, and by another that is narrower."""
    what, second, third = words
    kind, _, name = second.partition(":")
    for word in (what, third):
        other, _, narrower = word.partition(":")
        if other != kind or narrower == name:
            continue
        if name == "*" or (kind == "outcome" and narrower.endswith(f".{name}")):
            yield from _also("ended", word)


def _of_kind(kind: str, word: str) -> str:
    """Return the word for what comes of a tool; any other word as it is."""
    found, _, name = word.partition(":")
    return f"{kind}:{name}" if found == "tool" else word


def _also(kind: str, word: str) -> tuple[str, ...]:
    return (word, _of_kind(kind, word))


def _next(  # noqa: PLR0911 - one way out for each form
    rule: TemporalRule, state: int, letter: int
) -> int:
    """Return the state after a letter, from a state in which the rule is not violated."""
    what, second = letter & _WHAT, letter & _SECOND
    match rule:
        case Never(before=""):
            return 1 if what else 0
        case Never() | OnlyAfter(since=""):
            return 2 if what and state == 0 else 1 if second else state
        case OnlyAfter():
            return _since(state, letter)
        case AtMost(times=times):
            if what and state == 0:
                return times + 1
            return times if second else state - 1 if what else state
        case Followed():
            if what:
                return _OWED
            if second and (state == _FOLLOWING or letter & _BEGUN):
                return 0
            return _FOLLOWING if letter & _BEGUN and state == _OWED else state
        case _:
            assert_never(rule)


def _since(state: int, letter: int) -> int:
    """Return the state of an `only_after`: whether `after` has begun and ended since the last."""
    if letter & _WHAT and state != _ALLOWED:
        return 3
    if letter & _SECOND and (state != _NOT_YET or letter & _BEGUN):
        # By the narrower word: what is since itself has happened since.
        return _ALLOWED
    if letter & _THIRD:
        state = _NOT_YET
    return _BEGINS if letter & _BEGUN and state == _NOT_YET else state
