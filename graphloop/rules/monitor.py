"""The monitor: the immutable state of each temporal rule during a run.

The kernel reports each happening to the monitor, such as a tool call or a node's entry. A gate asks
the monitor about each call before it asks a person, and again before it lets the call run. So a
call that a rule forbids never runs, even if no proof could decide the rule. The monitor performs no
effects and refers to no run: its states are small integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from ..values import evolve
from .automata import Automaton, Happening, approved_call, automaton_of, ran
from .language import Rules, TemporalRule, describe_rule

__all__ = ["Monitor", "Wanted", "foreseen", "judged", "refusal"]


class Monitor(Struct, frozen=True, gc=False):
    """The state of each temporal rule of a run; an empty monitor forbids nothing.

    Attributes:
        automata: the automaton of each rule.
        states: the current state of each automaton, in the same order.
    """

    automata: tuple[Automaton, ...] = ()
    states: tuple[int, ...] = ()

    @classmethod
    def of(cls, rules: Rules) -> Monitor:
        """Return the monitor of these rules at the start of a run.

        Raises:
            ConfigError: a word of a rule was not resolved with `resolve_words`.
        """
        automata = tuple([automaton_of(rule) for rule in rules])
        return cls(automata, tuple([automaton.start for automaton in automata]))

    def continued(self, states: tuple[int, ...]) -> Monitor:
        """Return the monitor with its last automata in the states of an earlier run."""
        kept = len(self.states) - len(states)
        return evolve(self, states=(*self.states[:kept], *states))

    def after(self, happening: Happening) -> Monitor:
        """Return the monitor after a happening; the same monitor if no state changes."""
        states = tuple(
            [automaton.after(state, happening) for automaton, state in self._automata_with_states()]
        )
        return self if states == self.states else evolve(self, states=states)

    def forbids(self, tool: str, *, approved: bool = False) -> TemporalRule | None:
        """Return the first rule that forbids a call of a tool now; None if no rule does.

        Args:
            tool: the tool's name.
            approved: whether a person has approved this call.
        """
        call = Wanted(tool, approved)
        for automaton, state in self._automata_with_states():
            if _after_start(automaton, state, call) is None:
                return automaton.rule
        return None

    def allowed(self, tool: str, *, approved: bool = False) -> Monitor:
        """Return the monitor after a gate lets a call run; `approved` if a person approved it."""
        before = self.after(approved_call(tool)) if approved else self
        return before.after(ran(tool))

    @property
    def broken(self) -> tuple[TemporalRule, ...]:
        """The rules that the run has violated so far."""
        return tuple(
            [
                machine.rule
                for machine, state in self._automata_with_states()
                if state == machine.broken
            ]
        )

    @property
    def owed(self) -> tuple[TemporalRule, ...]:
        """The `always_followed_by` rules that a run violates if it ends now."""
        return tuple(
            [
                machine.rule
                for machine, state in self._automata_with_states()
                if state in machine.owing
            ]
        )

    def _automata_with_states(self) -> Iterator[tuple[Automaton, int]]:
        """Return each automaton with its current state."""
        return zip(self.automata, self.states, strict=True)


class Wanted(Struct, frozen=True, gc=False):
    """A tool call that its gate would let run, before the temporal rules decide.

    Attributes:
        tool: the tool's name.
        asked: whether a person has approved the call, or will be asked.
    """

    tool: str
    asked: bool = False


def judged(monitor: Monitor, calls: Iterable[Wanted]) -> tuple[TemporalRule | None, ...]:
    """Return, for each call in request order, the rule that forbids the call; None if it may run.

    Each allowed call counts before the next call is checked, so two calls cannot share one
    allowance. No call of the batch has ended yet, so no call allows another.
    """
    verdicts: list[TemporalRule | None] = []
    for call in calls:
        verdict = monitor.forbids(call.tool, approved=call.asked)
        verdicts.append(verdict)
        if verdict is None:
            monitor = monitor.allowed(call.tool, approved=call.asked)
    return tuple(verdicts)


def foreseen(monitor: Monitor, calls: Iterable[Wanted]) -> tuple[TemporalRule | None, ...]:
    """Return, for each call in request order, a rule that forbids it whatever people answer.

    A gate does not ask people about such a call. None means only that the call may still be
    allowed: `judged` decides after the answers.
    """
    wanted = tuple(calls)
    verdicts: list[TemporalRule | None] = [None] * len(wanted)
    for automaton, start in zip(monitor.automata, monitor.states, strict=True):
        states = {start}
        for place, call in enumerate(wanted):
            after = {
                end for state in states if (end := _after_start(automaton, state, call)) is not None
            }
            if not after and verdicts[place] is None:
                verdicts[place] = automaton.rule
            # Keep the states without this call too, since a person may deny the call.
            states |= after
    return tuple(verdicts)


def _after_start(automaton: Automaton, state: int, call: Wanted) -> int | None:
    """Return a rule's state after a call starts, with its approval if any; None if forbidden."""
    approved, run = approved_call(call.tool), ran(call.tool)
    if call.asked:
        if automaton.forbids(state, approved):
            return None
        state = automaton.after(state, approved)
    return None if automaton.forbids(state, run) else automaton.after(state, run)


def refusal(rule: TemporalRule) -> str:
    """Return the result text that the model reads for a call that a rule forbids."""
    return f"Tool call denied. Rule: {describe_rule(rule)}."
