"""gate: the only way to a tool. Every call leaves with a verdict; only `run` is ever executed.

The order is fixed: known and offered, then valid, then allowed by the rules, then approved. So no
person is asked about a call that could not run. Nor is a person asked about a call that would be
beyond the bounds of the run if all calls before it were approved. The gate fails closed: a call
runs only if a check has cleared it, and the rules allow it or a person has approved it.

This gate checks a call that another gate has let through by its own rules as well: of several gates
in a row the strictest word counts, and a person is asked about one call once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar, cast

from ..contract import BROKEN, Contract
from ..effects import AskHuman, CheckCalls, Effect
from ..errors import IllegalEvent
from ..events import CallCheck, CallsChecked, Decided, EffectFailed, Event
from ..limits import CallOverLimit, note_limits, queued, refusals
from ..node_protocol import Leave, Reaction, Wait, outcomes_of
from ..outcomes import Aborted, Settled
from ..policy import Rule, decide, denial, refuse_shadowed, rule_text, untold
from ..rules import Wanted, describe_rule, foreseen, refusal
from ..run import Run, evolve
from ..turn import CallVerdict, Turn
from ..values import ToolCall, call_key, call_place
from .frozen_fields import FrozenFields

__all__ = ["Gate", "GateOutcome"]

S = TypeVar("S")

GateOutcome: TypeAlias = Settled | Aborted

RUN: Final = CallVerdict("run")
ANSWERED: Final = CallVerdict("answered")
CLEAR: Final = CallCheck()
SETTLED: Final = Settled()
TOO_LATE: Final = denial("the approval had expired.")


@dataclass(frozen=True)
class Gate(FrozenFields):
    """Check every call of the batch, apply the rules, and ask a human where one is needed.

    The rules of the agents above a run (`Setup.rules`) are applied as well as the gate's own: the
    strictest word counts, so no child can do what its parent may not.

    Args:
        rules: who may call what; the first that matches decides, and what none matches is denied.
            Without rules, a call needs a human only if its tool says so.
        hold: whether the whole batch waits for the human. Otherwise the calls that need none run
            first, and the human is asked afterwards.

    Raises:
        ConfigError: a rule before another decides all its calls.
    """

    name: str = "gate"
    rules: tuple[Rule, ...] = ()
    hold: bool = True
    kind: Literal["gate"] = "gate"
    outcomes = outcomes_of(GateOutcome)

    def __post_init__(self) -> None:
        """Refuse rules that look like a protection, and are none."""
        super().__post_init__()
        given = cast("object", self.rules)  # A graph says what is wrong with what is no rule.
        if isinstance(given, tuple) and {type(one) for one in self.rules} <= {Rule}:
            refuse_shadowed(self.rules)

    @property
    def contract(self) -> Contract:
        """It may wait for a person, and runs nothing."""
        return Contract(moves={Aborted: BROKEN}, asks=True)

    def enter(self, run: Run[S], /) -> Reaction[S, GateOutcome]:
        """Refuse what is not on offer, and have the rest checked; or ask about what was held."""
        turn, offered = run.turn, _callable(run.turn)
        unknown = [call for call in turn.calls if call.name not in offered]
        places = tuple(range(len(turn.calls)))
        calls = turn.calls
        if unknown or turn.verdicts or turn.results:
            held = [one for one in turn.verdicts if one is not None and one.kind == "held"]
            if any(one.gate == self.name for one in held):
                return _ask(run)
            run, places = _open_places(run, offered)
            turn = run.turn
            # Without verdicts, each call is open as the model made it.
            said = turn.verdicts or (None,) * len(calls)
            calls = tuple([_as_decided(turn.calls[at], said[at]) for at in places])
        if not places:
            return Leave(run, SETTLED)
        if self.rules and self.rules not in turn.gated:
            run = evolve(run, turn=evolve(turn, gated=(*turn.gated, self.rules)))
        return Wait(run, (CheckCalls(run.next_effect, turn.number, calls, places),))

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
                return Leave(run, Aborted())
        if answered.key:
            verdict = self._rejudge(run, answered, checks[0])
            return _settled(_decided(run, answered.key, verdict))
        turn = run.turn
        is_gated = run.setup.rules or turn.gated or turn.verdicts or run.watch.monitor.automata
        if is_gated or checks.count(CLEAR) < len(turn.calls):
            return self._judged(run, checks)
        return Leave(evolve(run, turn=evolve(turn, verdicts=(RUN,) * len(checks))), SETTLED)

    def _judged(self, run: Run[S], checks: tuple[CallCheck, ...]) -> Reaction[S, GateOutcome]:
        """Turn the checks of calls that are still open into verdicts, and ask about the rest."""
        turn, remaining = run.turn, iter(checks)
        verdicts: list[CallVerdict] = []
        for call, decided in zip(
            turn.calls, turn.verdicts or (None,) * len(turn.calls), strict=True
        ):
            if decided is None:
                verdicts.append(self._judge(run, call, next(remaining)))
            elif _is_open(decided):
                verdicts.append(self._judge_again(run, call, next(remaining), decided))
            else:
                verdicts.append(decided)
        if run.watch.monitor.automata:
            verdicts = _foreseen(run, verdicts)
        turn = evolve(turn, verdicts=tuple(verdicts))
        run = evolve(run, turn=turn)
        if all(one.kind != "held" for one in verdicts) or (not self.hold and _runs_first(turn)):
            return Leave(run, SETTLED)
        return _ask(run)

    def _rejudge(self, run: Run[S], edited: CheckCalls, check: CallCheck) -> CallVerdict:
        """Return the verdict on a call that a human has edited: the rules may still deny it."""
        call, said = edited.calls[0], run.turn.verdicts[call_place(edited.key)]
        verdict = self._judge(run, call, check)
        if verdict.kind in {"deny", "invalid"}:
            return verdict
        took_s = None if said is None else said.took_s
        return CallVerdict("run", arguments=call.arguments, asked=True, took_s=took_s)

    def _judge_again(
        self, run: Run[S], call: ToolCall, check: CallCheck, said: CallVerdict
    ) -> CallVerdict:
        """Return the verdict on a call that another gate would let run, or ask about."""
        verdict = self._judge(run, call, check)
        if verdict.kind in {"deny", "invalid"}:
            return verdict
        if said.kind == "held":
            limits = [one for one in (said.ttl_s, verdict.ttl_s) if one is not None]
            return evolve(said, gate=self.name, ttl_s=min(limits, default=None))
        if not said.asked or verdict.kind == "run":
            return said if verdict.kind == "run" else verdict
        if said.took_s is None or verdict.ttl_s is None or said.took_s < verdict.ttl_s:
            return said
        return CallVerdict("deny", TOO_LATE, by="the time limit of the approval")

    def _judge(self, run: Run[S], call: ToolCall, check: CallCheck) -> CallVerdict:
        """Return the strictest verdict on a call."""
        if check.problem:
            return CallVerdict("invalid", check.problem)
        above, rules = run.setup.rules, list[Rule]()
        if call.name not in run.setup.own:
            rules += [_rule(one, call.name, check, level) for level, one in enumerate(above)]
            rules += check.added
        # The conditions of all gates of one run are looked at together, below those of its parents.
        rules += [_rule(one, call.name, check, len(above)) for one in run.turn.gated]
        if not rules:
            return CallVerdict("held", gate=self.name) if check.needs_approval else RUN
        for rule in rules:
            if rule.verdict == "deny":
                by = f"{self.name}: {rule_text(rule)}"
                return CallVerdict("deny", denial(rule.reason), by=by)
        asking = [rule for rule in rules if rule.verdict == "ask"]
        if not asking and not check.needs_approval:
            return RUN
        limits = [rule.ttl_s for rule in asking if rule.ttl_s is not None]
        return CallVerdict("held", ttl_s=min(limits, default=None), gate=self.name)


def _open_places(run: Run[S], offered: Collection[str]) -> tuple[Run[S], tuple[int, ...]]:
    """Return the run with a verdict on each call that needs no check, and the other places."""
    turn, verdicts, places = run.turn, list[CallVerdict | None](), list[int]()
    nothing = (None,) * len(turn.calls)
    for at, (call, result, said) in enumerate(
        zip(turn.calls, turn.results or nothing, turn.verdicts or nothing, strict=True)
    ):
        if result is not None:
            verdicts.append(ANSWERED)
        elif not _is_open(said):
            verdicts.append(said)
        elif call.name in offered:
            verdicts.append(said)
            places.append(at)
        else:
            verdicts.append(_unknown(call, offered))
    if len(places) < len(verdicts):
        run = evolve(run, turn=evolve(turn, verdicts=tuple(verdicts)))
    return run, tuple(places)


def _is_open(said: CallVerdict | None) -> bool:
    """Whether a gate has still to speak of a call: no other has refused it."""
    return said is None or said.kind in {"run", "held"}


def _runs_first(turn: Turn) -> bool:
    """Whether a call can run before people decide about others: an agent that takes over waits.

    Whatever can has run when the calls that are held come back, so they are held back but once,
    whichever of several gates held them.
    """
    running = [at for at, one in enumerate(turn.verdicts) if one is not None and one.kind == "run"]
    return any(not queue.tool.takes_over for queue in queued(turn, running))


def _as_decided(call: ToolCall, said: CallVerdict | None) -> ToolCall:
    """Return a call as it would run: a human may have edited it at another gate."""
    if said is None or not said.arguments:
        return call
    return evolve(call, arguments=said.arguments)


def _callable(turn: Turn) -> Collection[str]:
    """Return the tools that this turn may call; not every server honours a tool choice."""
    offered, choice = turn.tools.callable, turn.tool_choice
    match choice.mode:
        case "none":
            return ()
        case "tool":
            return (choice.name,) if choice.name in offered else ()
        case _:
            return offered


def _rule(rules: tuple[Rule, ...], tool: str, check: CallCheck, level: int) -> Rule:
    """Return a level's rule about a call; conditions that were not looked at have failed."""
    known = level < min(len(check.held), len(check.unmet))
    held, unmet = (check.held[level], check.unmet[level]) if known else ((), ())
    return decide(rules, tool, held, untold(rules, held, unmet))


def _unknown(call: ToolCall, offered: Collection[str]) -> CallVerdict:
    names = ", ".join(offered) or "none"
    return CallVerdict("unknown", f'No such tool: "{call.name}". Available tools: {names}.')


def _foreseen(run: Run[S], verdicts: list[CallVerdict]) -> list[CallVerdict]:
    """Deny the calls that a temporal rule forbids whatever people say, without a question.

    A call that needs no approval here may need it at another gate; the rules judge it when the
    run leaves the last gate.
    """
    calls, own = run.turn.calls, run.setup.own
    open_at = [
        at
        for at, one in enumerate(verdicts)
        if one.kind in {"run", "held"} and calls[at].name not in own
        # Another gate may have let it through, and it has counted then.
        if call_key(run.turn.number, at) not in run.watch.counted
    ]
    wanted = [
        Wanted(calls[at].name, asked=verdicts[at].kind == "held" or verdicts[at].asked)
        for at in open_at
    ]
    denied = {
        at: CallVerdict("deny", refusal(rule), by=describe_rule(rule))
        for at, rule in zip(open_at, foreseen(run.watch.monitor, wanted), strict=True)
        if rule is not None and verdicts[at].kind == "held"
    }
    return [denied.get(at, one) for at, one in enumerate(verdicts)]


def _ask(run: Run[S]) -> Reaction[S, GateOutcome]:
    run = _bounded(run)
    verdicts = [
        evolve(one, asked_at=run.at) if one is not None and one.kind == "held" else one
        for one in run.turn.verdicts
    ]
    run = evolve(run, turn=evolve(run.turn, verdicts=tuple(verdicts)))
    questions = tuple(_questions(run))
    return Wait(run, questions) if questions else Leave(run, SETTLED)


def _bounded(run: Run[S]) -> Run[S]:
    """Return the run with each call refused that could not run even if a person approved it."""
    turn = run.turn
    places = [
        place
        for place, verdict in enumerate(turn.verdicts)
        if verdict is not None and verdict.kind in {"run", "held"} and not _has_result(turn, place)
    ]
    results = list(turn.results or (None,) * len(turn.calls))
    verdicts = list(turn.verdicts)
    answered: list[CallOverLimit] = []
    for place, one in refusals(run, queued(turn, places)).items():
        verdict = verdicts[place]
        # A call without a question runs if another is denied: the node that runs it will know.
        if verdict is not None and verdict.kind == "held":
            results[place], verdicts[place] = one.result, ANSWERED
            answered.append(one)
    if not answered:
        return run
    turn = evolve(turn, results=tuple(results), verdicts=tuple(verdicts))
    return evolve(run, turn=note_limits(turn, answered))


def _has_result(turn: Turn, place: int) -> bool:
    return bool(turn.results) and turn.results[place] is not None


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
        reason = f"{denial()} The approver failed: {event.failure.message}"
        denied = CallVerdict("deny", reason, by="the approver")
        return _settled(_decided(run, asked.key, denied))
    verdict = _timed(run, event, asked)
    if verdict.arguments:
        held = run.turn.verdicts[call_place(asked.key)]
        if held is not None:
            run = _decided(run, asked.key, evolve(held, took_s=verdict.took_s))
        return _recheck(run, asked, verdict.arguments)
    return _settled(_decided(run, asked.key, verdict))


def _recheck(run: Run[S], asked: AskHuman, arguments: str) -> Reaction[S, GateOutcome]:
    """Have edited arguments checked like the model's own: an approver is no way around a gate."""
    call = evolve(asked.call, arguments=arguments)
    place = call_place(asked.key)
    check = CheckCalls(run.next_effect, run.turn.number, (call,), (place,), asked.key)
    return Wait(run, (check,))


def _timed(run: Run[S], decided: Decided, asked: AskHuman) -> CallVerdict:
    """Return what a decision comes to, and how long it took: the next gate may be stricter."""
    verdict, held = _verdict(decided, asked), run.turn.verdicts[call_place(asked.key)]
    if verdict.kind != "run" or held is None or held.asked_at is None:
        return verdict
    given_at = decided.at if decided.given_at is None else decided.given_at
    return evolve(verdict, took_s=given_at - held.asked_at)


def _verdict(decided: Decided, asked: AskHuman) -> CallVerdict:
    if not decided.approved:
        return CallVerdict("deny", denial(decided.reason), by="the approver")
    given_at = decided.at if decided.given_at is None else decided.given_at
    if asked.expires_at is not None and not given_at < asked.expires_at:
        return CallVerdict("deny", TOO_LATE, by="the time limit of the approval")
    return CallVerdict("run", decided.reason, decided.arguments, asked=True)


def _decided(run: Run[S], key: str, verdict: CallVerdict) -> Run[S]:
    turn, place = run.turn, call_place(key)
    verdicts = (*turn.verdicts[:place], verdict, *turn.verdicts[place + 1 :])
    return evolve(run, turn=evolve(turn, verdicts=verdicts))


def _settled(run: Run[S]) -> Reaction[S, GateOutcome]:
    return Wait(run) if run.pending else Leave(run, SETTLED)
