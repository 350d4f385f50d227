"""The automaton of a temporal rule: a few states, and their transitions by happenings.

The proof walks it beside the graph, the monitor beside the run; both read the same automaton, so
the watched rule is the proven rule. The state before a happening judges it; only then does the
happening count: a happening that is two words of a rule does not allow itself. It allows nothing
either if it is, by the narrower word, the subject of the rule or the word that undoes the
allowance.

A tool happens twice: it is let through, and it returns. A restrained tool counts from the first,
so that no two calls share an allowance; an awaited tool counts from the second, and only if all
went well, so that unfinished work allows nothing.
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

_WHAT, _SECOND, _THIRD, _STARTED = 1, 2, 4, 8
_ALLOWS: Final = _SECOND | _STARTED
_NOT_YET, _STARTS, _ALLOWED = 0, 1, 2
_OWED, _FOLLOWING = 1, 2


@final
class Happening(Struct, frozen=True, gc=False):
    """An occurrence that a rule may name, with all the words that mean it.

    A `past` happening came before the run: it counts, and breaks no rule.
    """

    words: tuple[str, ...]
    past: bool = False

    def __str__(self) -> str:
        return self.words[0]


def entered(node: str) -> Happening:
    """Return the entry into a node; a run enters `END` when it is over."""
    return Happening((f"node:{node}",))


def taken(node: str, outcome: str) -> Happening:
    """Return the exit from a node by an outcome, both by name."""
    return Happening((f"outcome:{node}.{outcome}", f"outcome:{outcome}"))


def ran(tool: str) -> Happening:
    """Return the start of a tool's call, which was let through."""
    return Happening((f"tool:{tool}", "tool:*"))


def returned(tool: str, *, well: bool) -> Happening:
    """Return the end of a tool's call that was let through, `well` or not."""
    ended = (f"ended:{tool}", "ended:*")
    return Happening((*ended, f"well:{tool}", "well:*") if well else ended)


def earlier(tool: str) -> Happening:
    """Return a tool's call before the question that the run answers.

    It uses up an allowance and undoes one, but it allows nothing and owes nothing.
    """
    return Happening((f"earlier:{tool}", "earlier:*"), past=True)


def past_call(tool: str, *, well: bool) -> tuple[Happening, Happening]:
    """Return the start and the end of a tool's call since the question that the run answers."""
    return evolve(ran(tool), past=True), evolve(returned(tool, well=well), past=True)


def approved_call(tool: str) -> Happening:
    """Return a person's approval of a tool's call, which is about to run."""
    return Happening((f"approval:{tool}", "approval:*"))


@final
class Automaton(Struct, frozen=True):
    """A rule as a machine whose states are small numbers: it counts allowances.

    A letter has a bit for each part that a happening plays in the rule. In the state `broken` the
    rule is violated for good; in the states `owing` a run must not end. Words `apart` allow
    nothing, although the allowing word is wide enough for them.
    """

    rule: TemporalRule
    words: tuple[str, str, str]
    start: int
    broken: int = -1
    owing: tuple[int, ...] = ()
    meant: tuple[tuple[int, tuple[str, ...]], ...] = ()
    apart: tuple[str, ...] = ()

    def letter(self, happening: Happening) -> int:
        """Return the parts that a happening plays in the rule; 0 for none."""
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
            # It uses up an allowance, but no gate of this run has let it through.
            return _next(self.rule, state, letter & ~_WHAT)
        return after

    def forbids(self, state: int, happening: Happening) -> bool:
        """Whether this happening, now, violates the rule, or violates it once more."""
        is_subject = bool(self.letter(happening) & _WHAT)
        return is_subject and self.after(state, happening) == self.broken


def automaton_of(rule: TemporalRule) -> Automaton:
    """Return the automaton of a rule whose words have been looked up.

    Raises:
        ConfigError: a word has no kind, so that no happening would ever match it.
    """
    words = words_of(rule)
    for word in filter(None, words):
        if word.partition(":")[0] not in KINDS or not word.partition(":")[2]:
            raise ConfigError(
                f"rule {describe_rule(rule)!r}: the word {word!r} has not been looked up in a "
                "graph. Fix: pass the rules through `resolve_words` first."
            )
    start, broken, owing = _shape(rule)
    meant, apart = tuple(_meant(rule)), tuple(_apart(words))
    return Automaton(rule, words, start, broken, owing, meant, apart)


def _shape(rule: TemporalRule) -> tuple[int, int, tuple[int, ...]]:
    """Return the first state of a rule, its broken state, and its owing states."""
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
    """Yield each bit with the words of the happenings that it stands for.

    A restrained tool counts as soon as it is let through; an enabling tool, when it has returned
    well; a tool that undoes the allowance, at both moments, however it ended.
    """
    what, second, third = words_of(rule)
    yield _WHAT, _also("ended" if isinstance(rule, Followed) else "earlier", what)
    if second:
        yield _SECOND, (_of_kind("well", second),)
        yield _STARTED, (second,)
    if third:
        yield _THIRD, _also("ended", third) + _also("earlier", third)


def _apart(words: tuple[str, str, str]) -> Iterator[str]:
    """Yield the words that are cases of the second word, but stand elsewhere in the rule."""
    what, second, third = words
    kind, _, name = second.partition(":")
    for word in (what, third):
        other, _, narrower = word.partition(":")
        if other != kind or narrower == name:
            continue
        if name == "*" or (kind == "outcome" and narrower.endswith(f".{name}")):
            yield from _also("ended", word)


def _of_kind(kind: str, word: str) -> str:
    """Return the word for a later moment of a tool; any other word as it is."""
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
            if second and (state == _FOLLOWING or letter & _STARTED):
                return 0
            return _FOLLOWING if letter & _STARTED and state == _OWED else state
        case _:
            assert_never(rule)


def _since(state: int, letter: int) -> int:
    """Return the state of an `only_after`: whether `after` has started and ended since the last."""
    if letter & _WHAT and state != _ALLOWED:
        return 3
    if letter & _SECOND and (state != _NOT_YET or letter & _STARTED):
        # By the narrower word: a happening that is `since` itself has happened since.
        return _ALLOWED
    if letter & _THIRD:
        state = _NOT_YET
    return _STARTS if letter & _STARTED and state == _NOT_YET else state
