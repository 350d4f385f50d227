"""Performer: performs effects other than model calls and child runs, and returns their answers.

An exception that a user's function raises becomes the event `EffectFailed`, with its traceback. A
cancellation is not a failure, and is raised again.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Final, Generic, TypeAlias, TypeVar

from msgspec import Struct

from ..effects import AskHuman, AwaitCaller, CallTool, CheckCalls, Effect, Invoke, StartRun
from ..errors import ConfigError, NotDeterministic, ProviderError, known_name
from ..events import (
    Answering,
    CallbackReturned,
    CallCheck,
    CallsChecked,
    ChildEnded,
    Decided,
    EffectFailed,
    Failure,
    NodeReturned,
    Steered,
    ToolAsked,
    ToolReturned,
)
from ..policy import Approval, Policy, denial
from ..questions import with_valid_edit, with_valid_token
from ..run import Run
from ..spending import NOTHING_SPENT
from ..stores import check_callback_answer, check_state
from ..tools import (
    NO_GATES,
    REPEATABLE,
    UNREAD,
    AnyTool,
    CallSpending,
    Gates,
    Meter,
    ProgressReports,
    ToolAsks,
    ToolContext,
    ToolOutcome,
    ToolProgress,
    answer_of,
    awaited,
    conditions_of,
    gates_of,
    paid,
    rules_of,
    unknown_outcome,
)
from ..values import ToolCall, call_key, call_place
from .cancellation import cancelled_inside
from .ports import LeftOpen, Ports

__all__ = ["Performed", "Performer", "failed"]

S = TypeVar("S")

Performed: TypeAlias = CheckCalls | CallTool | AskHuman | Invoke | AwaitCaller

UNGATED: Final = CallCheck()
GATED: Final = CallCheck(needs_approval=True)

NOT_READ: Final[tuple[str, object]] = ("", UNREAD)

PARKING: Final = frozenset({CallTool, AskHuman, AwaitCaller})
"""Effect types whose answer may have to come from another process, a person or the caller."""

HANDED_IN: Final = call_key(-1, 0).removesuffix("0")
"""Prefix of the keys of calls that came with the conversation that the caller passed in."""

OF_THE_USER: Final = frozenset({CallTool, AskHuman, Invoke})
"""Effect types that always call a user's function; `CheckCalls` sometimes calls a function."""


class Performer(Struct, Generic[S], eq=False):
    """Performs effects with the tools and functions of `ports`; keeps the last exception raised.

    `hear` takes the reports of running tools; None if no stream could show them.
    """

    _ports: Ports[S]
    exception: Exception | None = None
    hear: Callable[[ToolProgress], bool] | None = None
    spendings: dict[int, CallSpending] = {}
    _started: frozenset[int] = frozenset()
    _first_id: int = 0
    _values: dict[tuple[int, int], tuple[str, object]] = {}

    def performable(self, effects: Iterable[Effect], run: Run[S]) -> list[Effect]:
        """Return the effects that this process can answer; the run parks with any others."""
        found: list[Effect] = []
        for effect in effects:
            is_tool = type(effect) is CallTool and not effect.client
            if is_tool or type(effect) not in PARKING or self._is_answered_here(effect, run):
                found.append(effect)
        return found

    def _is_answered_here(self, effect: Effect, run: Run[S]) -> bool:
        match effect:
            case CallTool(client=True):
                # A gate that was added on resume may still deny the call.
                new = effect.id >= self._first_id and bool(self._gates_of_run(run).added)
                return new or self._is_handed_in(effect.key)
            case AskHuman():
                return self._ports.approve is not None or self._is_handed_in(effect.key)
            case AwaitCaller():
                return not self._ports.attended
            case _:
                return True

    def _is_handed_in(self, key: str) -> bool:
        return self._ports.given_answer is not None and key.startswith(HANDED_IN)

    def risky(self, todo: Iterable[Effect], run: Run[S]) -> tuple[int, ...]:
        """Return the ids of calls that must not be repeated and whose start is not journaled."""
        found: list[int] = []
        for effect in todo:
            if type(effect) is CallTool and not effect.client and effect.id not in run.started:
                tool = self._ports.toolbox.get(effect.call.name)
                if tool is not None and tool.effect not in REPEATABLE:
                    found.append(effect.id)
        return tuple(found)

    def resume(self, run: Run[S]) -> None:
        """Record which effects another process may have started before this one resumes a run."""
        self._started, self._first_id = run.started, run.next_effect

    def not_started(
        self, todo: Iterable[Effect], run: Run[S], children: Container[str]
    ) -> tuple[int, ...]:
        """Return the ids of the pending calls that surely have not started.

        A client tool's call may have started if the run was parked with the call, and then resumed.

        Args:
            todo: the effects that this process has not started.
            run: the run with its current pending effects.
            children: the keys of the child runs that may have started, here or elsewhere.
        """
        todo = tuple(todo)
        # The journal names each started call that must not be repeated (`EffectsStarted`).
        recorded = self.risky(todo, run) if self._ports.resumable else ()
        here = {effect.id for effect in todo}
        return tuple(
            [
                effect.id
                for effect in run.pending.values()
                if (isinstance(effect, StartRun) and effect.key not in children)
                or (
                    isinstance(effect, CallTool)
                    and (effect.client or effect.id in here)
                    and (effect.id >= self._first_id or effect.id in recorded)
                )
            ]
        )

    def calls_user(self, effect: Performed, run: Run[S]) -> bool:
        """Whether an effect calls a user's function, which may ignore its cancellation."""
        if type(effect) is not CheckCalls:
            return type(effect) in OF_THE_USER
        own, given = self._ports.own, self._gates_of_run(run)
        gates: Sequence[Policy] = ()
        if own is not None or given is not NO_GATES:
            known = (*given.recorded, *given.added, own)
            gates = [gate for gate in known if gate is not None and gate.conditions]
        for call in effect.calls:
            tool = self._ports.toolbox.get(call.name)
            if tool is not None and (
                callable(tool.needs_approval)
                or (gates and any(gate.asked(tool.name) for gate in gates))
            ):
                return True
        return False

    async def perform(self, effect: Performed, run: Run[S]) -> Answering:
        """Perform one effect and return the event that answers it.

        Raises:
            LeftOpen: a person or a client tool gives the answer later.
            NotDeterministic: the code has changed since the run started. Since this is not an event
                of the run, it is raised and not journaled.
        """
        try:
            match effect:
                case CallTool():
                    event = await self._call_tool(effect, run)
                case CheckCalls():
                    event = await self._check_calls(effect, run)
                case AskHuman():
                    event = await self._ask_human(effect, run)
                case Invoke():
                    event = await self._invoke(effect, run)
                case AwaitCaller():
                    event = Steered(self._ports.clock(), effect.id)
        except asyncio.CancelledError as error:
            return self.fail(effect, cancelled_inside(error))
        except Exception as error:
            left_open = isinstance(error, LeftOpen) and isinstance(effect, AskHuman | CallTool)
            if left_open or (isinstance(error, NotDeterministic) and self._first_id):
                raise
            return self.fail(effect, error)
        return event

    def fail(self, effect: Effect, error: Exception) -> EffectFailed:
        """Return the `EffectFailed` of an effect that raised, and keep the exception."""
        self.exception = error
        return failed(self._ports.clock(), effect, error)

    def exception_behind(self, run: Run[S]) -> Exception | None:
        """Return the exception of a run's failure if it is the last one raised here; else None."""
        raised, failure = self.exception, None if run.ending is None else run.ending.failure
        if raised is None or failure is None:
            return None
        is_it = (failure.error, failure.message) == (known_name(raised), str(raised))
        return raised if is_it else None

    def _handed_in(self, effect: CallTool, run: Run[S]) -> Answering:
        """Return the result of a client tool's call that came with the conversation."""
        given = None if self._ports.given_answer is None else self._ports.given_answer(effect)
        assert isinstance(given, ToolOutcome), "a client tool is answered with an outcome"
        content = self._ports.sendable(given.content, effect.call.name, run)
        return ToolReturned(self._ports.clock(), effect.id, content, given.status, given.data)

    async def _call_tool(self, effect: CallTool, run: Run[S]) -> Answering:
        call, ports, key, turn = effect.call, self._ports, effect.key, run.turn
        if effect.client and self._is_handed_in(key):
            return self._handed_in(effect, run)
        tool, number, place = ports.toolbox.get(call.name), turn.number, call_place(key)
        verdict = turn.verdicts[place] if turn.verdicts else None
        if tool is None or verdict is None or verdict.kind != "run":
            raise _cannot_run(tool, effect)
        reports = None if self.hear is None else ProgressReports(self.hear, key, call.name)
        spent, said, path, deps = self.spendings, run.messages, ports.path, ports.deps
        meter, answer, called = Meter(spent, effect.id, run, ports.price), effect.answer, call.id
        context = ToolContext(run.id, key, called, number, said, path, deps, reports, answer, meter)
        outcome: ToolOutcome | None = None
        if effect.id in self._started or ports.gates:
            outcome = await self._outcome_before(tool, effect, run, context)
        if outcome is None:
            if effect.client:
                raise LeftOpen
            try:
                read, value = self._values.pop((number, place), NOT_READ)
                value = value if read == call.arguments else UNREAD
                outcome = await tool.run(call.arguments, context, value)
            except ToolAsks as asks:
                return ToolAsked(ports.clock(), effect.id, asks.question, paid(spent, effect.id))
            finally:
                if reports is not None:
                    reports.close()
        own = paid(spent, effect.id) if spent else NOTHING_SPENT
        if isinstance(content := outcome.content, tuple):
            content = ports.sendable(content, call.name, run)
        return ToolReturned(ports.clock(), effect.id, content, outcome.status, outcome.data, own)

    async def _outcome_before(
        self, tool: AnyTool, effect: CallTool, run: Run[S], context: ToolContext[object]
    ) -> ToolOutcome | None:
        """Return the outcome of a call that must not run now; None if it may run."""
        if effect.id in self._started:
            # The process that started the call stopped before it had the result.
            found = await tool.reconciled(effect.call.arguments, context)
            if found != "not_done":
                return unknown_outcome(tool.name) if found == "unknown" else found
        refused = await self._refusal_by_added_gates(effect.key, effect.call, run)
        return ToolOutcome(refused, "denied") if refused else None

    def _tool_context(self, key: str, call: ToolCall, run: Run[S]) -> ToolContext[object]:
        turn, path, deps = run.turn.number, self._ports.path, self._ports.deps
        return ToolContext(run.id, key, call.id, turn, run.messages, path, deps=deps)

    async def refused_child(self, effect: StartRun, run: Run[S]) -> ChildEnded | None:
        """Return the end of an unstarted child run if a gate added on resume denies its call."""
        call = ToolCall("", effect.agent, effect.arguments)
        refused = await self._refusal_by_added_gates(effect.key, call, run)
        return ChildEnded(self._ports.clock(), effect.id, refused, "denied") if refused else None

    async def _refusal_by_added_gates(self, key: str, call: ToolCall, run: Run[S]) -> str:
        """Return the denial of a call by gates that were added on resume; "" if none denies it."""
        added, tool = self._gates_of_run(run).added, self._ports.toolbox.get(call.name)
        if not added or tool is None or call.name in run.setup.own or not run.turn.has_call(key):
            return ""
        verdict, context = run.turn.verdicts[call_place(key)], self._tool_context(key, call, run)
        for rule in await rules_of(added, tool, call, context, self._ports.wrong):
            if rule.verdict == "deny":
                return denial(rule.reason)
            if rule.verdict == "ask" and not (verdict is not None and verdict.asked):
                return denial("a person is to be asked about it now; call it again.")
        return ""

    def checks_of(self, calls: Sequence[ToolCall], run: Run[S]) -> tuple[CallCheck, ...]:
        """Check the calls of a reply; return () if a condition or an approval function decides.

        The check only parses the arguments, which may call the user's parsers.
        """
        ports = self._ports
        if ports.own is not None or run.setup.rules or ports.gates or len(run.pending) > 1:
            return ()
        for call in calls:
            tool = ports.toolbox.get(call.name)
            if tool is not None and callable(tool.policy.needs_approval):
                return ()
        self._values.clear()  # The values of the last turn.
        checks: list[CallCheck] = []
        for at, call in enumerate(calls):  # A reply may hold one call object twice.
            checks.append(self._parse_call((run.turn.number, at), call))
        return tuple(checks)

    async def _check_calls(self, effect: CheckCalls, run: Run[S]) -> Answering:
        checks: list[CallCheck] = []
        if not effect.key:
            self._values.clear()
        for at, call in zip(effect.places, effect.calls, strict=True):
            check = self._parse_call((effect.turn, at), call)
            if not check.problem:
                check = await self._check_rules(call_key(effect.turn, at), call, run)
            checks.append(check)
        return CallsChecked(self._ports.clock(), effect.id, tuple(checks))

    def _parse_call(self, place: tuple[int, int], call: ToolCall) -> CallCheck:
        """Check a call by its tool alone, without gates, and keep its parsed arguments in memory.

        `place` is the call's turn and its position there. The parsed arguments are never journaled:
        a process that resumes the run parses the text again.
        """
        tool = self._ports.toolbox.get(call.name)
        if tool is None:
            return CallCheck(f"Not run: tool {call.name!r} is not available in this process.")
        value, problem = tool.read(call.arguments)
        if problem is not None:
            return CallCheck(problem)
        self._values[place] = call.arguments, value
        return UNGATED if tool.policy.needs_approval is False else GATED

    def _gates_of_run(self, run: Run[S]) -> Gates:
        rules, given = run.setup.rules, self._ports.gates
        return gates_of(rules, given) if rules or given else NO_GATES

    async def _check_rules(self, key: str, call: ToolCall, run: Run[S]) -> CallCheck:
        """Ask the tool and all gates about a call with valid arguments; return their answers."""
        tool = self._ports.toolbox.get(call.name)
        assert tool is not None, "it has parsed the arguments"
        own, needed = self._ports.own, tool.policy.needs_approval
        gates, added = self._gates_of_run(run)
        gates = gates if own is None else (*gates, own)
        wrong, context = self._ports.wrong, self._tool_context(key, call, run)
        asked = await answer_of("needs_approval", needed, tool, call, context, wrong)
        answers = [await conditions_of(gate, tool, call, context, wrong) for gate in gates]
        met, unmet = tuple([met for met, _ in answers]), tuple([failed for _, failed in answers])
        rules = await rules_of(added, tool, call, context, wrong)
        return CallCheck("", asked is not False, met, unmet, rules)

    async def _ask_human(self, effect: AskHuman, run: Run[S]) -> Answering:
        approve, given_answer = self._ports.approve, self._ports.given_answer
        if given_answer is not None and self._is_handed_in(effect.key):
            given = given_answer(effect)
            assert isinstance(given, Approval), "a question is answered with an approval"
        else:
            assert approve is not None, "performable has been asked"
            given, secret = await approve(effect, run), self._ports.secret
            given = with_valid_token(effect, given, run, secret, self._ports.clock)
        said = with_valid_edit(effect, given, self._ports.toolbox)
        return Decided(self._ports.clock(), effect.id, said.approved, said.reason, said.edit)

    async def _invoke(self, effect: Invoke, run: Run[S]) -> Answering:
        callback = self._ports.callbacks.get(effect.callback)
        if callback is None:
            raise ConfigError(
                f"the graph calls {effect.callback!r}, which this driver was not given; "
                f"it has {sorted(self._ports.callbacks) or 'no callbacks'}"
            )
        answer = check_callback_answer(await awaited(callback(run)), effect.callback)
        if isinstance(answer, NodeReturned) and (answer.changed or answer.state is not None):
            made = f"callback {effect.callback!r} returns"
            check_state(answer.state, self._ports.state_type, made, kept=self._ports.kept)
        return CallbackReturned(self._ports.clock(), effect.id, answer)


def _cannot_run(tool: AnyTool | None, effect: CallTool) -> ConfigError:
    """Return the error for a call whose tool is not here, or that no gate has let through."""
    called = f"call {effect.key} of tool {effect.call.name!r}"
    if tool is None:
        fix = "resume with the tools that the run was started with"
        return ConfigError(f"this driver has no tool for {called}. Fix: {fix}.")
    return ConfigError(f"no gate has let {called} through. Fix: lead every way to it by a Gate.")


def failed(at: float, effect: Effect, error: Exception) -> EffectFailed:
    """Return the `EffectFailed` of an effect, with the exception's message and traceback."""
    trace = "".join(traceback.format_exception(error))
    retryable = isinstance(error, ProviderError) and error.retryable
    return EffectFailed(at, effect.id, Failure(known_name(error), str(error), trace, retryable))
