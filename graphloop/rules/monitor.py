"""The monitor: temporal rules at run time, as a value that happenings change.

A gate asks it about every call before a person is asked and before the call is let through; the
kernel reports each happening to it. So no forbidden call ever runs, and a rule that no proof can
decide is still kept. It performs nothing and knows no run: its states are small numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from ..values import evolve
from .automata import Automaton, Happening, approved_call, automaton_of, ran
from .language import Rules, TemporalRule, describe_rule

__all__ = ["Monitor", "Wanted", "foreseen", "judged", "refusal"]


class Monitor(Struct, frozen=True):
    """The state of each rule of a run. The empty monitor watches nothing."""

    automata: tuple[Automaton, ...] = ()
    states: tuple[int, ...] = ()

    @classmethod
    def of(cls, rules: Rules) -> Monitor:
        """Return the monitor of a run in which nothing has happened.

        Raises:
            ConfigError: a word is not resolved (`resolve_words`).
        """
        automata = tuple([automaton_of(rule) for rule in rules])
        return cls(automata, tuple([automaton.start for automaton in automata]))

    def after(self, happening: Happening) -> Monitor:
        """Return the monitor after a happening; itself if no rule names it."""
        states = tuple([automaton.after(state, happening) for automaton, state in self._each()])
        return self if states == self.states else evolve(self, states=states)

    def forbids(self, tool: str, *, approved: bool = False) -> TemporalRule | None:
        """Return the first rule that running a tool now would violate.

        Args:
            tool: the tool's name.
            approved: whether a person has approved this very call.
        """
        call = Wanted(tool, approved)
        for automaton, state in self._each():
            if _let(automaton, state, call) is None:
                return automaton.rule
        return None

    def allowed(self, tool: str, *, approved: bool = False) -> Monitor:
        """Return the monitor after a call was let through, perhaps by a person's approval."""
        before = self.after(approved_call(tool)) if approved else self
        return before.after(ran(tool))

    @property
    def broken(self) -> tuple[TemporalRule, ...]:
        """The rules that have been violated."""
        return tuple([machine.rule for machine, state in self._each() if state == machine.broken])

    @property
    def owed(self) -> tuple[TemporalRule, ...]:
        """The rules that are violated if the run ends now."""
        return tuple([machine.rule for machine, state in self._each() if state in machine.owing])

    def _each(self) -> Iterator[tuple[Automaton, int]]:
        return zip(self.automata, self.states, strict=True)


class Wanted(Struct, frozen=True, gc=False):
    """A call that its gate would let through: `asked` if a person approved it, or is to."""

    tool: str
    asked: bool = False


def judged(monitor: Monitor, calls: Iterable[Wanted]) -> tuple[TemporalRule | None, ...]:
    """Return, for calls in request order, the rule that forbids each, or None to let it run.

    A call counts from the moment it is let through, so two calls of a batch never share an
    allowance. No call of the batch has returned yet, so none allows another.
    """
    verdicts: list[TemporalRule | None] = []
    for call in calls:
        verdict = monitor.forbids(call.tool, approved=call.asked)
        verdicts.append(verdict)
        if verdict is None:
            monitor = monitor.allowed(call.tool, approved=call.asked)
    return tuple(verdicts)


def foreseen(monitor: Monitor, calls: Iterable[Wanted]) -> tuple[TemporalRule | None, ...]:
    """Return, for calls in request order, the rule that forbids each whatever people answer.

    A question about such a call would be in vain. None promises nothing: `judged` decides.
    """
    wanted = tuple(calls)
    verdicts: list[TemporalRule | None] = [None] * len(wanted)
    for automaton, start in zip(monitor.automata, monitor.states, strict=True):
        states = {start}
        for place, call in enumerate(wanted):
            after = {end for state in states if (end := _let(automaton, state, call)) is not None}
            if not after and verdicts[place] is None:
                verdicts[place] = automaton.rule
            # The call may run, or a person may deny it after all.
            states |= after
    return tuple(verdicts)


def _let(automaton: Automaton, state: int, call: Wanted) -> int | None:
    """Return the state after a call was let through, or None if the rule forbids that."""
    approved, run = approved_call(call.tool), ran(call.tool)
    if call.asked:
        if automaton.forbids(state, approved):
            return None
        state = automaton.after(state, approved)
    return None if automaton.forbids(state, run) else automaton.after(state, run)


def refusal(rule: TemporalRule) -> str:
    """Return the text for the model in place of the result of a call that a rule stopped."""
    return f"Tool call denied. Rule: {describe_rule(rule)}."
