"""Checks that every tool call that ran was allowed to run, and that it ran only once.

The checks work from the journal: argument checks, policy rules of the gates, and people's
approvals. They compute their own verdicts, because a faulty gate may record false verdicts.
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

Verdict: TypeAlias = Literal["allow", "ask", "deny", "invalid"]
CallContent: TypeAlias = tuple[str, str]
"""The name and the arguments of a call; a check answers all calls with equal content alike."""


def repeated_calls(trace: Trace[S]) -> Iterator[Violation]:
    """Yield a violation for each call that runs twice, and each effect requested after a stop."""
    started, stopped = set[str](), False
    for number, step in enumerate(trace.steps, 1):
        stopped |= isinstance(step.event, Cancelled) and not step.event.after_step
        match step.event, step.answered:
            case Decided(approved=True), AskHuman(unknown=True, key=key):
                started.discard(key)  # A person allowed the interrupted call to run again.
            case _:
                pass
        for effect in step.effects:
            if stopped:
                text = f"{type(effect).__name__} {effect.id} is asked for after the run was stopped"
                yield Violation("stopped", text, number)
            if isinstance(effect, CallTool | StartRun):
                if effect.key in started:
                    yield Violation("once", f"call {effect.key} is run a second time", number)
                started.add(effect.key)


def crowded(subject: Subject[S], trace: Trace[S]) -> Iterator[Violation]:
    """Yield a violation for each event that starts more calls or child runs than the limits allow.

    With `hold`, an `Execute` starts no other call while client tools of the turn are pending. At
    most `max_tool_concurrency` other calls run at once. Child runs share the remaining budget.
    """
    for number, step in enumerate(trace.steps, 1):
        new = [effect for effect in step.effects if isinstance(effect, CallTool | StartRun)]
        if not new:
            continue
        run, node = step.run, subject.graph.nodes[step.run.node]
        pending = run.pending.values()
        calls = [effect for effect in pending if isinstance(effect, CallTool | StartRun)]
        local = [effect for effect in calls if not _is_client(effect)]
        if isinstance(node, Execute):
            clients = len(calls) - len(local)
            waits = node.hold and clients and not all(map(_is_client, new))
            if waits or len(local) > node.max_tool_concurrency:
                text = f"node {node.name!r} runs {len(local)} calls at once, beside {clients}"
                yield Violation("room", f"{text} that a client answers", number)
        remaining = run.setup.budget.remaining(run.spent)
        for effect in [*[call for call in calls if call not in new], *new]:
            if isinstance(effect, StartRun):
                if effect in new and not _fits_in(effect.budget, remaining):
                    text = f"agent {effect.agent!r} may spend more than the budget has left"
                    yield Violation("room", text, number)
                remaining = remaining.without(effect.budget)


def ungated_calls(subject: Subject[S], trace: Trace[S]) -> Iterator[Violation]:
    """Yield a violation for each call that ran without the required check, rule or approval."""
    desk = _Desk(subject)
    for number, step in enumerate(trace.steps, 1):
        desk.hear(step)
        for effect in step.effects:
            call = _call_of(effect, step.run.turn)
            problem = desk.problem(*call) if call else ""
            if problem:
                yield Violation("gate", problem, number)


@final
@dataclass
class _Desk:
    """The gates' verdicts and people's approvals for the calls of the latest model reply.

    Args:
        subject: the graph.
        verdicts: maps the name of a gate to its verdicts, grouped by the content of the calls.
        approvals: maps the key of an approved call to its edited arguments; None without an edit.
        ran: maps the content of calls to the keys of the calls that ran, and whether a person
            approved each of them.
    """

    subject: Subject[Any]
    verdicts: dict[str, dict[CallContent, list[Verdict]]] = field(
        default_factory=dict[str, dict[CallContent, list[Verdict]]]
    )
    approvals: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    ran: dict[CallContent, dict[str, bool]] = field(
        default_factory=dict[CallContent, dict[str, bool]]
    )

    def hear(self, step: TraceStep[Any]) -> None:
        """Record the verdicts or the approval of a step's event; a model's reply clears them."""
        nodes = self.subject.graph.nodes
        match step.event, step.answered:
            case ModelReplied(), _ if nodes[step.node].kind == "model":
                self.verdicts, self.approvals, self.ran = {}, {}, {}
            case CallsChecked(checks=checks), CheckCalls(calls=calls, key=edited):
                self.verdicts.setdefault(step.node, {})
                # After an edit, every gate that the call had passed must judge the new arguments.
                for gate in self.verdicts if edited else (step.node,):
                    levels = (*step.run.setup.rules, rules_of_gate(nodes[gate]))
                    for call, check in zip(calls, checks, strict=False):
                        content = (call.name, call.arguments)
                        verdict = _strictest(levels, call, check)
                        self.verdicts[gate].setdefault(content, []).append(verdict)
            case Decided() as decided, AskHuman() as asked:
                given_at = decided.at if decided.given_at is None else decided.given_at
                in_time = asked.expires_at is None or given_at < asked.expires_at
                if decided.approved and in_time:
                    self.approvals[asked.key] = decided.arguments or None
            case _:
                pass

    def problem(self, key: str, call: ToolCall) -> str:
        """Return the reason why this call must not run; empty if the call is allowed."""
        content, text = (call.name, call.arguments), f"tool {call.name!r} runs ({key})"
        edit = self.approvals.get(key, "")
        ran = self.ran.setdefault(content, {})
        ran[key] = edit is None or (edit != "" and edit == call.arguments)
        by_gate = [known[content] for known in self.verdicts.values() if content in known]
        if not by_gate:
            return f"{text}, and no gate has checked this call"
        # Every gate that the call passed must allow it.
        problems = (self._why_not_allowed(verdicts, ran) for verdicts in by_gate)
        return next((f"{text}, {problem}" for problem in problems if problem), "")

    @staticmethod
    def _why_not_allowed(verdicts: list[Verdict], ran: dict[str, bool]) -> str:
        """Return why a gate did not allow all the equal calls that ran; empty if it did."""
        if sum(not approved for approved in ran.values()) <= verdicts.count("allow"):
            return ""
        if "ask" in verdicts:
            return "and no person has approved it"
        if "invalid" in verdicts:
            return "although its check found it invalid"
        return "although its gate's rules deny it"


def _strictest(levels: tuple[tuple[Rule, ...], ...], call: ToolCall, check: CallCheck) -> Verdict:
    """Return the strictest verdict on a call that any level of policy rules gives."""
    if check.problem:
        return "invalid"
    verdicts: list[str] = ["ask"] if check.needs_approval else []
    for level, rules in enumerate(rules for rules in levels if rules):
        known = level < min(len(check.met), len(check.unmet))
        met, unmet = (check.met[level], check.unmet[level]) if known else ((), ())
        # A condition that is neither met nor unmet has raised an error.
        failed = {rule.condition for rule in rules if rule.condition not in {"", *met, *unmet}}
        verdicts.append(decide(rules, call.name, met, failed).verdict)
    return "deny" if "deny" in verdicts else "ask" if "ask" in verdicts else "allow"


def _call_of(effect: Effect, turn: Turn) -> tuple[str, ToolCall] | None:
    """Return the key and the call that an effect runs; None if it runs no call of a model."""
    match effect:
        case CallTool(key=key, call=call):
            return key, call
        case StartRun(key=key, agent=agent, arguments=arguments) if turn.has_call(key):
            return key, ToolCall("", agent, arguments)
        case _:
            return None


def _is_client(effect: CallTool | StartRun) -> bool:
    return isinstance(effect, CallTool) and effect.client


def _fits_in(share: Budget, remaining: Budget) -> bool:
    """Whether every limit of `share` is at most the same limit of `remaining`."""
    limits = [(getattr(share, name), getattr(remaining, name)) for name in share.__struct_fields__]
    return all(most is None or (part is not None and part <= most + 1e-9) for part, most in limits)
