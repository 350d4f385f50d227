"""gate: the node that gives every call a verdict; only calls with the verdict `run` are executed.

The order of checks is fixed: the tool is on offer, the arguments are valid, the rules allow the
call, a person approves it. So no person is asked about a call that cannot run. Nor is a person
asked about a call that exceeds the run's limits if all calls before it are approved. The gate fails
closed: a call runs only if a check has cleared it, and the rules or a person allow it.

With several gates in a row, each gate also checks the calls that earlier gates have allowed. The
strictest verdict holds, and a person is asked about each call once.
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
from ..turn import RUN, CallVerdict, Turn
from ..values import ToolCall, call_key, call_place
from .frozen_fields import FrozenFields

__all__ = ["Gate", "GateOutcome"]

S = TypeVar("S")

GateOutcome: TypeAlias = Settled | Aborted

ANSWERED: Final = CallVerdict("answered")
CLEAR: Final = CallCheck()
SETTLED: Final = Settled()
CHOOSING: Final = frozenset({"auto", "required"})
"""The tool choices that leave the model free which tool to call."""
TOO_LATE: Final = denial("the approval had expired.")


@dataclass(frozen=True)
class Gate(FrozenFields):
    """Check every call of the turn, apply the rules, and ask a person where that is required.

    The rules of the run's parents (`Setup.rules`) apply as well as the gate's own. The strictest
    verdict holds, so no child can make a call that its parent may not make.

    Args:
        rules: the rules, in order. The first rule that matches a call decides; a call that no rule
            matches is denied. Without rules, a call needs a person only if its tool says so.
        hold: whether all calls of the turn wait for the person. Otherwise the calls that need no
            approval run first, and the person is asked afterwards.

    Raises:
        ConfigError: a rule has no effect, because an earlier rule decides all its calls.
    """

    name: str = "gate"
    rules: tuple[Rule, ...] = ()
    hold: bool = True
    kind: Literal["gate"] = "gate"
    outcomes = outcomes_of(GateOutcome)

    def __post_init__(self) -> None:
        """Refuse a rule that has no effect because an earlier rule decides all its calls."""
        super().__post_init__()
        given = cast("object", self.rules)  # The graph reports values that are no rules.
        if isinstance(given, tuple) and {type(one) for one in self.rules} <= {Rule}:
            refuse_shadowed(self.rules)

    @property
    def contract(self) -> Contract:
        """Promises for the proofs: the node may wait for a person, and runs no tool."""
        return Contract(moves={Aborted: BROKEN}, asks=True)

    def enter(self, run: Run[S], /) -> Reaction[S, GateOutcome]:
        """Refuse calls of tools not on offer, and judge the others; or ask a person.

        The checks of the calls may have come with the reply; otherwise the node requests them.
        """
        turn = run.turn
        offered = (
            turn.tools.callable if turn.tool_choice.mode in CHOOSING else _callable_tools(turn)
        )
        calls, is_new = turn.calls, not turn.verdicts and not turn.results
        for call in calls:
            is_new = is_new and call.name in offered
        places: tuple[int, ...] = ()  # All of them, if each call is new.
        if not is_new:
            held = [one for one in turn.verdicts if one is not None and one.kind == "held"]
            if any(one.gate == self.name for one in held):
                return _ask_or_leave(run)
            run, places = _open_places(run, offered)
            turn = run.turn
            # Before any verdict, each call has the arguments that the model wrote.
            said = turn.verdicts or (None,) * len(calls)
            calls = tuple([_as_decided(turn.calls[at], said[at]) for at in places])
        if not calls:
            return Leave(run, SETTLED)
        if self.rules and self.rules not in turn.gated:
            run = evolve(run, turn=evolve(turn, gated=(*turn.gated, self.rules)))
        if turn.checks and turn.checked == calls:
            return self._judge_calls(run, turn.checks)
        places = places or tuple(range(len(calls)))
        return Wait(run, (CheckCalls(run.next_effect, turn.number, calls, places),))

    def on(self, run: Run[S], event: Event, answered: Effect | None, /) -> Reaction[S, GateOutcome]:
        """Turn checks into verdicts or approval requests, and people's decisions into verdicts."""
        match event, answered:
            case CallsChecked(), CheckCalls():
                found, expected = len(event.checks), len(answered.calls)
                if found != expected:
                    raise IllegalEvent(f"expected the checks of {expected} call(s), found {found}")
                checks = event.checks
            case ((Decided() | EffectFailed()), AskHuman()):
                return _apply_decision(run, event, answered)
            case EffectFailed(), CheckCalls():
                problem = f"Not run: checking the call failed ({event.failure.message})."
                checks = (CallCheck(problem),) * len(answered.calls)
            case _:
                return Leave(run, Aborted())
        if answered.key:
            verdict = self._rejudge(run, answered, checks[0])
            return _leave_or_wait(_keep_verdict(run, answered.key, verdict))
        return self._judge_calls(run, checks)

    def _judge_calls(self, run: Run[S], checks: tuple[CallCheck, ...]) -> Reaction[S, GateOutcome]:
        """Turn the checks of open calls into verdicts, and ask a person about held calls."""
        turn = run.turn
        is_gated = run.setup.rules or turn.gated or turn.verdicts or run.watch.monitor.automata
        if not is_gated and checks.count(CLEAR) == len(turn.calls):
            return Leave(evolve(run, turn=evolve(turn, verdicts=(RUN,) * len(checks))), SETTLED)
        remaining = iter(checks)
        verdicts: list[CallVerdict] = []
        said = turn.verdicts or (None,) * len(turn.calls)
        for call, decided in zip(turn.calls, said, strict=True):
            if decided is None:
                verdicts.append(self._judge(run, call, next(remaining)))
            elif _is_open(decided):
                verdicts.append(self._judge_again(run, call, next(remaining), decided))
            else:
                verdicts.append(decided)
        if run.watch.monitor.automata:
            verdicts = _foresee_rules(run, verdicts)
        turn = evolve(turn, verdicts=tuple(verdicts))
        run = evolve(run, turn=turn)
        if all(one.kind != "held" for one in verdicts) or (not self.hold and _runs_first(turn)):
            return Leave(run, SETTLED)
        return _ask_or_leave(run)

    def _rejudge(self, run: Run[S], edited: CheckCalls, check: CallCheck) -> CallVerdict:
        """Return the verdict on a call whose arguments a person edited; the rules may deny it."""
        call, said = edited.calls[0], run.turn.verdicts[call_place(edited.key)]
        verdict = self._judge(run, call, check)
        if verdict.kind in {"deny", "invalid"}:
            return verdict
        took_s = None if said is None else said.took_s
        return CallVerdict("run", arguments=call.arguments, asked=True, took_s=took_s)

    def _judge_again(
        self, run: Run[S], call: ToolCall, check: CallCheck, said: CallVerdict
    ) -> CallVerdict:
        """Return the verdict on a call that another gate has allowed or held."""
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
        """Return the strictest verdict on a call from its check and all rules that apply to it."""
        if check.problem:
            return CallVerdict("invalid", check.problem)
        above = run.setup.rules
        rules: list[Rule] = []
        if call.name not in run.setup.own:
            rules += [
                _deciding_rule(one, call.name, check, level) for level, one in enumerate(above)
            ]
            rules += check.added
        # A check has one level of conditions for each parent, then one for all gates of this run.
        rules += [_deciding_rule(one, call.name, check, len(above)) for one in run.turn.gated]
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
    """Return the run with verdicts on calls that need no check, and the other calls' indices."""
    turn = run.turn
    verdicts: list[CallVerdict | None] = []
    places: list[int] = []
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
            verdicts.append(_unknown_tool(call, offered))
    if len(places) < len(verdicts):
        run = evolve(run, turn=evolve(turn, verdicts=tuple(verdicts)))
    return run, tuple(places)


def _is_open(said: CallVerdict | None) -> bool:
    """Whether a gate must still judge a call: the call has no verdict, or `run`, or `held`."""
    return said is None or said.kind in {"run", "held"}


def _runs_first(turn: Turn) -> bool:
    """Whether a call can run before people decide about held calls; a takeover cannot.

    A takeover is a call of an agent that takes over the conversation. When the held calls return
    to a gate, all calls that can run have run. So calls are held back at most once, whichever gate
    held them.
    """
    running = [at for at, one in enumerate(turn.verdicts) if one is not None and one.kind == "run"]
    return any(not queue.tool.takes_over for queue in queued(turn, running))


def _as_decided(call: ToolCall, said: CallVerdict | None) -> ToolCall:
    """Return a call with the arguments that it would run with, perhaps edited at another gate."""
    if said is None or not said.arguments:
        return call
    return evolve(call, arguments=said.arguments)


def _callable_tools(turn: Turn) -> Collection[str]:
    """Return the tools that a strict tool choice allows; some servers do not enforce it."""
    choice = turn.tool_choice
    return (choice.name,) if choice.mode == "tool" and choice.name in turn.tools.callable else ()


def _deciding_rule(rules: tuple[Rule, ...], tool: str, check: CallCheck, level: int) -> Rule:
    """Return the rule of one level that decides a call; unevaluated conditions count as failed."""
    known = level < min(len(check.met), len(check.unmet))
    met, unmet = (check.met[level], check.unmet[level]) if known else ((), ())
    return decide(rules, tool, met, untold(rules, met, unmet))


def _unknown_tool(call: ToolCall, offered: Collection[str]) -> CallVerdict:
    names = ", ".join(offered) or "none"
    return CallVerdict("unknown", f'No such tool: "{call.name}". Available tools: {names}.')


def _foresee_rules(run: Run[S], verdicts: list[CallVerdict]) -> list[CallVerdict]:
    """Deny the held calls that a temporal rule forbids even if a person approves.

    A call that needs no approval here may need approval at another gate; the temporal rules judge
    such a call when the run leaves the last gate.
    """
    calls, own = run.turn.calls, run.setup.own
    open_at = [
        at
        for at, one in enumerate(verdicts)
        if one.kind in {"run", "held"} and calls[at].name not in own
        # The monitor has already counted a call that another gate allowed.
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


def _ask_or_leave(run: Run[S]) -> Reaction[S, GateOutcome]:
    run = _refuse_over_limit(run)
    verdicts = [
        evolve(one, asked_at=run.at) if one is not None and one.kind == "held" else one
        for one in run.turn.verdicts
    ]
    run = evolve(run, turn=evolve(run.turn, verdicts=tuple(verdicts)))
    questions = tuple(_questions(run))
    return Wait(run, questions) if questions else Leave(run, SETTLED)


def _refuse_over_limit(run: Run[S]) -> Run[S]:
    """Return the run with a refusal for each held call that could not run even if approved."""
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
        # A call that needs no approval may run if a held call is denied: Execute checks it later.
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


def _apply_decision(
    run: Run[S], event: Decided | EffectFailed, asked: AskHuman
) -> Reaction[S, GateOutcome]:
    """Turn a person's decision about one call into a verdict, or request a check of the edit."""
    if isinstance(event, EffectFailed):
        reason = f"{denial()} The approver failed: {event.failure.message}"
        denied = CallVerdict("deny", reason, by="the approver")
        return _leave_or_wait(_keep_verdict(run, asked.key, denied))
    verdict = _timed_verdict(run, event, asked)
    if verdict.arguments:
        held = run.turn.verdicts[call_place(asked.key)]
        if held is not None:
            run = _keep_verdict(run, asked.key, evolve(held, took_s=verdict.took_s))
        return _recheck(run, asked, verdict.arguments)
    return _leave_or_wait(_keep_verdict(run, asked.key, verdict))


def _recheck(run: Run[S], asked: AskHuman, arguments: str) -> Reaction[S, GateOutcome]:
    """Request a check of edited arguments: an approver's edit must pass the gate like any call."""
    call = evolve(asked.call, arguments=arguments)
    place = call_place(asked.key)
    check = CheckCalls(run.next_effect, run.turn.number, (call,), (place,), asked.key)
    return Wait(run, (check,))


def _timed_verdict(run: Run[S], decided: Decided, asked: AskHuman) -> CallVerdict:
    """Return a decision's verdict and the seconds it took; a later gate may allow fewer seconds."""
    verdict, held = _verdict_of(decided, asked), run.turn.verdicts[call_place(asked.key)]
    if verdict.kind != "run" or held is None or held.asked_at is None:
        return verdict
    given_at = decided.at if decided.given_at is None else decided.given_at
    return evolve(verdict, took_s=given_at - held.asked_at)


def _verdict_of(decided: Decided, asked: AskHuman) -> CallVerdict:
    if not decided.approved:
        return CallVerdict("deny", denial(decided.reason), by="the approver")
    given_at = decided.at if decided.given_at is None else decided.given_at
    if asked.expires_at is not None and not given_at < asked.expires_at:
        return CallVerdict("deny", TOO_LATE, by="the time limit of the approval")
    return CallVerdict("run", decided.reason, decided.arguments, asked=True)


def _keep_verdict(run: Run[S], key: str, verdict: CallVerdict) -> Run[S]:
    turn, place = run.turn, call_place(key)
    verdicts = (*turn.verdicts[:place], verdict, *turn.verdicts[place + 1 :])
    return evolve(run, turn=evolve(turn, verdicts=verdicts))


def _leave_or_wait(run: Run[S]) -> Reaction[S, GateOutcome]:
    return Wait(run) if run.pending else Leave(run, SETTLED)
