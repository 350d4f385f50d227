"""Executions: whether a tool ran that was not let through, or ran again.

Judged by the journal alone: the checks of the arguments, the rules of the gates, and the decisions
of people. The verdicts of the nodes do not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar, final

from ..effects import AskHuman, CallTool, CheckCalls, Effect, StartRun
from ..events import CallCheck, CallsChecked, Cancelled, Decided, ModelReplied
from ..nodes import Execute
from ..policy import Rule, decide
from ..spending import Budget
from ..turn import Turn
from ..values import ToolCall
from .subject import Subject, rules_of_gate
from .trace import Trace, TraceStep
from .violation import Violation

__all__ = ["crowded", "repeated_calls", "ungated_calls"]

S = TypeVar("S")

Word: TypeAlias = Literal["allow", "ask", "deny", "invalid"]
Same: TypeAlias = tuple[str, str]
"""A tool's name and arguments: calls that are equal in both cannot be told apart."""


def repeated_calls(trace: Trace[S]) -> Iterator[Violation]:
    """Yield each call that runs again unasked, and each effect of a run that was stopped."""
    started, stopped = set[str](), False
    for number, one in enumerate(trace.steps, 1):
        stopped |= isinstance(one.event, Cancelled) and not one.event.after_step
        match one.event, one.answered:
            case Decided(approved=True), AskHuman(unknown=True, key=key):
                started.discard(key)  # A person wants it again: it may have run, or not.
            case _:
                pass
        for effect in one.effects:
            if stopped:
                asked = f"{type(effect).__name__} {effect.id} is asked for"
                yield Violation("stopped", f"{asked} after the run was stopped", number)
            if not isinstance(effect, CallTool | StartRun):
                continue
            if effect.key in started:
                yield Violation("once", f"call {effect.key} is run a second time", number)
            started.add(effect.key)


def crowded(subject: Subject[S], trace: Trace[S]) -> Iterator[Violation]:
    """Yield each time when more is under way than there is room for.

    The calls of a turn wait for its client tools, a node runs so many at once, and child runs share
    what the budget has left.
    """
    for number, one in enumerate(trace.steps, 1):
        new = [effect for effect in one.effects if isinstance(effect, CallTool | StartRun)]
        if not new:
            continue
        run, node = one.run, subject.graph.nodes[one.run.node]
        known = [
            effect for effect in run.pending.values() if isinstance(effect, CallTool | StartRun)
        ]
        ours = [effect for effect in known if not _is_client(effect)]
        if isinstance(node, Execute):
            clients = len(known) - len(ours)
            held = node.hold and clients and not all(map(_is_client, new))
            if held or len(ours) > node.concurrency:
                found = f"node {node.name!r} runs {len(ours)} calls at once, beside {clients}"
                yield Violation("room", f"{found} that a client answers", number)
        left = run.setup.budget.left(run.spent)
        for effect in [*[old for old in known if old not in new], *new]:
            if isinstance(effect, StartRun):
                if effect in new and not _fits(effect.budget, left):
                    found = f"agent {effect.agent!r} may spend more than the budget has left"
                    yield Violation("room", found, number)
                left = left.without(effect.budget)


def ungated_calls(subject: Subject[S], trace: Trace[S]) -> Iterator[Violation]:
    """Yield each tool that ran without the checks, rules and approvals that it needed."""
    desk = _Desk(subject)
    for number, one in enumerate(trace.steps, 1):
        desk.hear(one)
        for effect in one.effects:
            call = _call_of(effect, one.run.turn)
            problem = desk.problem(*call) if call else ""
            if problem:
                yield Violation("gate", problem, number)


@final
@dataclass
class _Desk:
    """The words on the calls of the latest reply: of each gate with its rules, and of people."""

    subject: Subject[Any]
    words: dict[str, dict[Same, list[Word]]] = field(
        default_factory=dict[str, dict[Same, list[Word]]]
    )
    approvals: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    ran: dict[Same, dict[str, bool]] = field(default_factory=dict[Same, dict[str, bool]])

    def hear(self, taken: TraceStep[Any]) -> None:
        """Keep what an event says."""
        match taken.event, taken.answered:
            case ModelReplied(), _ if self._is_turn(taken.node):
                self.words, self.approvals, self.ran = {}, {}, {}
            case CallsChecked(checks=checks), CheckCalls(calls=calls, key=edited):
                self.words.setdefault(taken.node, {})
                # Edited arguments need the word of every gate that the call has passed.
                for gate in self.words if edited else (taken.node,):
                    own = rules_of_gate(self.subject.graph.nodes[gate])
                    for call, check in zip(calls, checks, strict=False):
                        word = _word((*taken.run.setup.rules, own), call, check)
                        said = self.words[gate].setdefault((call.name, call.arguments), [])
                        said.append(word)
            case Decided() as decided, AskHuman() as asked:
                given_at = decided.at if decided.given_at is None else decided.given_at
                in_time = asked.expires_at is None or given_at < asked.expires_at
                if decided.approved and in_time:
                    self.approvals[asked.key] = decided.arguments or None
            case _:
                pass

    def problem(self, key: str, call: ToolCall) -> str:
        """Return why a call that runs now must not; empty if it may."""
        same, place = (call.name, call.arguments), f"tool {call.name!r} runs ({key})"
        edit = self.approvals.get(key, "")
        approved = edit is None or (edit != "" and edit == call.arguments)
        ran = self.ran.setdefault(same, {})
        ran[key] = approved
        heard = [said[same] for said in self.words.values() if same in said]
        if not heard:
            return f"{place}, and no gate has checked this call"
        # A call that has passed several gates needs what each of them says.
        problems = (self._lacking(words, ran) for words in heard)
        return next((f"{place}, {problem}" for problem in problems if problem), "")

    @staticmethod
    def _lacking(words: list[Word], ran: dict[str, bool]) -> str:
        """Return what a gate has said that does not let all of these equal calls run."""
        free = words.count("allow")
        asked = words.count("ask")
        if sum(not one for one in ran.values()) > free:
            if asked:
                return "and no person has approved it"
            if "invalid" in words:
                return "although its check found it invalid"
            return "although its gate's rules deny it"
        if len(ran) > free + asked:
            return f"and only {free + asked} such call(s) were let through"
        return ""

    def _is_turn(self, node: str) -> bool:
        return self.subject.graph.nodes[node].kind == "model"


def _word(levels: tuple[tuple[Rule, ...], ...], call: ToolCall, check: CallCheck) -> Word:
    """Return the word of the rules on a call: the strictest of all levels."""
    if check.problem:
        return "invalid"
    verdicts: list[str] = ["ask"] if check.needs_approval else []
    for level, rules in enumerate(one for one in levels if one):
        known = level < min(len(check.held), len(check.unmet))
        held, unmet = (check.held[level], check.unmet[level]) if known else ((), ())
        # A condition without an answer has failed.
        failed = {one.condition for one in rules if one.condition not in {"", *held, *unmet}}
        verdicts.append(decide(rules, call.name, held, failed).verdict)
    return "deny" if "deny" in verdicts else "ask" if "ask" in verdicts else "allow"


def _call_of(effect: Effect, turn: Turn) -> tuple[str, ToolCall] | None:
    """Return the key and the call of an effect that runs a tool, or an agent for a call."""
    match effect:
        case CallTool(key=key, call=call):
            return key, call
        case StartRun(key=key, agent=agent, arguments=arguments) if turn.has_call(key):
            return key, ToolCall("", agent, arguments)
        case _:
            return None


def _is_client(effect: CallTool | StartRun) -> bool:
    return isinstance(effect, CallTool) and effect.client


def _fits(share: Budget, left: Budget) -> bool:
    """Whether a share is no more than what is left, limit by limit."""
    limits = [(getattr(share, name), getattr(left, name)) for name in Budget.__struct_fields__]
    return all(most is None or (one is not None and one <= most + 1e-9) for one, most in limits)
