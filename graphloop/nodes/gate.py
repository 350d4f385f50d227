"""gate: the only way to a tool. Every call leaves with a verdict; only `run` is ever executed.

The order is fixed: known and offered, then valid, then allowed by the rules, then approved
(CONTRACT §9 #15), so nobody is asked about a call that could not run: nor about one for which the
bounds of the run have no room, were all those before it approved. Everything fails closed: a call
that no check has cleared, no rule allows or no decision has approved does not run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from ..allowance import beyond, lacks_calls, specs_of
from ..contract import Contract
from ..effects import AskHuman, CheckCalls, Effect
from ..errors import IllegalEvent
from ..events import CallCheck, CallsChecked, Decided, EffectFailed, Event
from ..node_protocol import Kind, Leave, Reaction, Wait, outcomes_of
from ..outcomes import Aborted, Settled
from ..policy import Rule, decide
from ..run import Run, Turn, Verdict, evolve
from ..temporal_monitor import Wanted, foreseen, refusal
from ..values import ToolCall, call_key

__all__ = ["Gate", "GateOutcome"]

S = TypeVar("S")

GateOutcome: TypeAlias = Settled | Aborted

RUN: Final = Verdict("run")
ANSWERED: Final = Verdict("answered")
DENIED: Final = "Tool call denied."
TOO_LATE: Final = f"{DENIED} Reason: the approval had expired."


@dataclass(frozen=True)
class Gate:
    """Check every call of the batch, apply the rules, and ask a human where one is needed.

    The rules of the agents above a run (`Setup.rules`) are applied as well as the gate's own: the
    strictest word counts, so no child can do what its parent may not.

    Args:
        rules: who may call what; the first that matches decides, and what none matches is denied.
            Without rules, a call needs a human only if its tool says so.
        hold: whether the whole batch waits for the human. Otherwise the calls that need none run
            first, and the human is asked afterwards (CONTRACT §9 #21).
    """

    name: str = "gate"
    rules: tuple[Rule, ...] = ()
    hold: bool = True
    kind: Kind = "gate"
    outcomes = outcomes_of(GateOutcome)

    @property
    def contract(self) -> Contract:
        """It may wait for a person, and runs nothing."""
        return Contract(breaks_by=frozenset({Aborted}), asks=True)

    def enter(self, run: Run[S], /) -> Reaction[S, GateOutcome]:
        """Refuse what is not on offer, and have the rest checked; or ask about what was held."""
        turn = run.turn
        for verdict in turn.verdicts:
            if verdict is not None and verdict.kind == "held":
                return _ask(run)
        offered = _callable(turn)
        verdicts: list[Verdict | None] = []
        known: list[ToolCall] = []
        for call, result in zip(turn.calls, turn.results or (None,) * len(turn.calls), strict=True):
            if result is not None:
                verdicts.append(ANSWERED)
            elif call.name in offered:
                verdicts.append(None)
                known.append(call)
            else:
                verdicts.append(_unknown(call, offered))
        if len(known) < len(verdicts):
            run = evolve(run, turn=evolve(turn, verdicts=tuple(verdicts)))
        if not known:
            return Leave(run, Settled())
        return Wait(run, (CheckCalls(run.next_effect, turn.number, tuple(known)),))

    def on(self, run: Run[S], event: Event, answered: Effect | None, /) -> Reaction[S, GateOutcome]:
        """Turn checks into verdicts or questions, and decisions into verdicts."""
        match event, answered:
            case CallsChecked(), CheckCalls():
                found, expected = len(event.checks), len(answered.calls)
                if found != expected:
                    raise IllegalEvent(f"{expected} call(s) were to be checked; found {found}")
                checks = event.checks
            case ((Decided() | EffectFailed()), AskHuman()):
                return _answered(run, event, answered)
            case EffectFailed(), CheckCalls():
                problem = f"Not run: checking the call failed ({event.failure.message})."
                checks = (CallCheck(problem),) * len(answered.calls)
            case _:
                return _aborted(run)
        if answered.key:
            verdict = self._rejudge(run, answered.calls[0], checks[0])
            return _settled(_decided(run, answered.key, verdict))
        return self._checked(run, checks)

    def _checked(self, run: Run[S], checks: tuple[CallCheck, ...]) -> Reaction[S, GateOutcome]:
        turn = run.turn
        remaining = iter(checks)
        verdicts: list[Verdict] = []
        for call, decided in zip(
            turn.calls, turn.verdicts or (None,) * len(turn.calls), strict=True
        ):
            verdict = self._judge(run, call, next(remaining)) if decided is None else decided
            verdicts.append(verdict)
        if run.watch.automata:
            verdicts = _foreseen(run, verdicts)
        kinds = {one.kind for one in verdicts}
        run = evolve(run, turn=evolve(turn, verdicts=tuple(verdicts)))
        if "held" not in kinds or (not self.hold and "run" in kinds):
            return Leave(run, Settled())
        return _ask(run)

    def _rejudge(self, run: Run[S], call: ToolCall, check: CallCheck) -> Verdict:
        """Return the verdict on a call that a human has edited: the rules may still deny it."""
        verdict = self._judge(run, call, check)
        if verdict.kind in {"deny", "invalid"}:
            return verdict
        return Verdict("run", arguments=call.arguments, asked=True)

    def _judge(self, run: Run[S], call: ToolCall, check: CallCheck) -> Verdict:
        """Return the strictest verdict on a call."""
        if check.problem:
            return Verdict("invalid", check.problem)
        every = (*run.setup.rules, self.rules) if self.rules else run.setup.rules
        if not every:
            return Verdict("held") if check.needs_approval else RUN
        rules = [_rule(one, call.name, check, level) for level, one in enumerate(every)]
        for rule in rules:
            if rule.verdict == "deny":
                return Verdict("deny", f"{DENIED} Reason: {rule.reason}" if rule.reason else DENIED)
        asking = [rule for rule in rules if rule.verdict == "ask"]
        if not asking and not check.needs_approval:
            return RUN
        limits = [rule.ttl_s for rule in asking if rule.ttl_s is not None]
        return Verdict("held", ttl_s=min(limits, default=None))


def _callable(turn: Turn) -> tuple[str, ...]:
    """Return the tools that this turn may call; not every server honours a tool choice."""
    offered = tuple([tool.name for tool in turn.tools if tool.kind != "provider"])
    match turn.tool_choice.mode:
        case "none":
            return ()
        case "tool":
            return tuple([name for name in offered if name == turn.tool_choice.name])
        case _:
            return offered


def _rule(rules: tuple[Rule, ...], tool: str, check: CallCheck, level: int) -> Rule:
    """Return one level's rule about a call; conditions that nobody looked at have failed."""
    if level < min(len(check.held), len(check.failed)):
        return decide(rules, tool, check.held[level], check.failed[level])
    return decide(rules, tool, (), {rule.condition for rule in rules if rule.condition})


def _unknown(call: ToolCall, offered: tuple[str, ...]) -> Verdict:
    names = ", ".join(offered) or "none"
    return Verdict("unknown", f'No such tool: "{call.name}". Available tools: {names}.')


def _foreseen(run: Run[S], verdicts: list[Verdict]) -> list[Verdict]:
    """Deny the calls that a temporal rule will forbid whatever people say: nobody is asked."""
    open_at = [at for at, one in enumerate(verdicts) if one.kind in {"run", "held"}]
    wanted = [Wanted(run.turn.calls[at].name, asked=verdicts[at].kind == "held") for at in open_at]
    denied = {
        at: Verdict("deny", refusal(rule))
        for at, rule in zip(open_at, foreseen(run.watch, wanted), strict=True)
        if rule is not None
    }
    return [denied.get(at, one) for at, one in enumerate(verdicts)]


def _ask(run: Run[S]) -> Reaction[S, GateOutcome]:
    run = _bounded(run)
    questions = tuple(_questions(run))
    return Wait(run, questions) if questions else Leave(run, Settled())


def _bounded(run: Run[S]) -> Run[S]:
    """Return the run with what nobody need be asked about answered: it could not run anyway."""
    turn = run.turn
    places = [
        place
        for place, verdict in enumerate(turn.verdicts)
        if verdict is not None and verdict.kind in {"run", "held"} and not _has_result(turn, place)
    ]
    results = list(turn.results or (None,) * len(turn.calls))
    verdicts = list(turn.verdicts)
    specs = specs_of(turn, places)
    answered: list[int] = []
    for place, result in beyond(run, specs).items():
        verdict = verdicts[place]
        # What needs nobody's word runs if another call is denied: whoever runs it will know.
        if verdict is not None and verdict.kind == "held":
            results[place], verdicts[place] = result, ANSWERED
            answered.append(place)
    if not answered:
        return run
    turn = evolve(
        turn,
        results=tuple(results),
        verdicts=tuple(verdicts),
        beyond_budget=turn.beyond_budget or lacks_calls(specs, answered),
    )
    return evolve(run, turn=turn)


def _has_result(turn: Turn, place: int) -> bool:
    return bool(turn.results) and turn.results[place] is not None


def _aborted(run: Run[S]) -> Reaction[S, GateOutcome]:
    """Leave with nothing begun: what has no result by now has not run."""
    turn = run.turn
    unissued = tuple([at for at in range(len(turn.calls)) if not _has_result(turn, at)])
    return Leave(evolve(run, turn=evolve(turn, unissued=unissued)), Aborted())


def _questions(run: Run[S]) -> Iterator[AskHuman]:
    turn, effect_id = run.turn, run.next_effect
    for index, (call, verdict) in enumerate(zip(turn.calls, turn.verdicts, strict=True)):
        if verdict is not None and verdict.kind == "held":
            limits = [one for one in (verdict.ttl_s, run.setup.approval_ttl_s) if one is not None]
            expires_at = run.at + min(limits) if limits else None
            yield AskHuman(effect_id, call_key(turn.number, index), call, expires_at)
            effect_id += 1


def _answered(
    run: Run[S], event: Decided | EffectFailed, asked: AskHuman
) -> Reaction[S, GateOutcome]:
    """Take a human's word for one call."""
    if isinstance(event, EffectFailed):
        denied = Verdict("deny", f"{DENIED} The approver failed: {event.failure.message}")
        return _settled(_decided(run, asked.key, denied))
    verdict = _verdict(event, asked)
    if verdict.arguments:
        return _recheck(run, asked, verdict.arguments)
    return _settled(_decided(run, asked.key, verdict))


def _recheck(run: Run[S], asked: AskHuman, arguments: str) -> Reaction[S, GateOutcome]:
    """Have edited arguments checked like the model's own: an approver is no way around a gate."""
    call = evolve(asked.call, arguments=arguments)
    check = CheckCalls(run.next_effect, run.turn.number, (call,), asked.key)
    return Wait(run, (check,))


def _verdict(decided: Decided, asked: AskHuman) -> Verdict:
    if not decided.approved:
        reason = f"{DENIED} Reason: {decided.reason}" if decided.reason else DENIED
        return Verdict("deny", reason)
    given_at = decided.at if decided.given_at is None else decided.given_at
    if asked.expires_at is not None and not given_at < asked.expires_at:
        return Verdict("deny", TOO_LATE)
    return Verdict("run", decided.reason, decided.arguments, asked=True)


def _decided(run: Run[S], key: str, verdict: Verdict) -> Run[S]:
    turn = run.turn
    verdicts = tuple(
        [
            verdict if call_key(turn.number, index) == key else one
            for index, one in enumerate(turn.verdicts)
        ]
    )
    return evolve(run, turn=evolve(turn, verdicts=verdicts))


def _settled(run: Run[S]) -> Reaction[S, GateOutcome]:
    return Wait(run) if run.pending else Leave(run, Settled())
