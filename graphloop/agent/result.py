"""RunResult: what a run came to; and RunHandle: a run with everything that drives it."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from operator import sub
from typing import Any, Final, Generic, final

from msgspec import Struct, structs
from typing_extensions import TypeVar

from .. import views
from ..conversation import latest_answer
from ..driver import (
    AsyncDriver,
    DriverState,
    Pending,
    Ports,
    Seen,
    pending_of,
    unseen_costs,
)
from ..effects import AwaitCaller, StartRun
from ..events import Steered
from ..graph import NodeGraph
from ..limits import CountedLimit
from ..rules import TemporalRule, describe_rule
from ..run import EndReason, Run, Spent
from ..stores import Store, typed
from ..tools import AnyTool
from ..turn import SCREEN, StepResult
from ..values import AssistantMessage, FinishReason, MediaPart, Message, Usage, evolve
from .conversation_answers import bind_token, conversation_digest
from .final_answer import FinalAnswer, answers_of, failure_of, output_from

__all__ = [
    "RESTING",
    "OutputT_co",
    "RunHandle",
    "RunResult",
    "log_warnings",
    "shortfalls",
    "spent_by",
]

OutputT_co = TypeVar("OutputT_co", default=str, covariant=True)
S = TypeVar("S", default=None)

LOG: Final = logging.getLogger("graphloop")

RESTING: Final = (DriverState.ENDED, DriverState.PARKED)
"""The run has ended, or waits for an answer from outside: no driver has more to do."""


ANSWERED: Final = {None, EndReason.COMPLETED, EndReason.ERROR, EndReason.REFUSAL}
"""The end reasons without a warning about a missing output; None: no `output_type`, or no end.

A refusal, such as that of a screen, is an answer in place of the output.
"""


@final
class RunResult(Struct, Generic[OutputT_co, S], frozen=True):
    """The result of a run that ended or parked: its `output`, and the user's `state`.

    `RunResult[Person]` is the result of an agent with `output_type=Person`; `RunResult[str, Essay]`
    is the result of a graph with a state of type `Essay`.

    Attributes:
        run: the last state of the run; the properties are read from it.
        store: the store of its journal.
        before: the spending of the run before it was last resumed.
        warnings: options without their full effect, failed listeners, and doubts about the answer.
        children: the child runs at any depth that this process has seen, by run id.
        answers: the answer as a value of the `output_type`, in a tuple that is empty if the run has
            no such answer; None for an agent without an `output_type`, and for a graph.
        secret: the key that signs approval tokens, or None.
        added: the tools that were added during the run.
        opening: the conversation that the run began with.
        instructed: whether the agent's instructions lead that conversation.
        graph: the graph of the run, for its picture in a notebook.
    """

    run: Run[S]
    store: Store
    before: Spent = Spent()
    warnings: tuple[str, ...] = ()
    children: Mapping[str, Run[Any]] = {}
    answers: tuple[OutputT_co, ...] | None = None
    secret: bytes | None = None
    added: tuple[AnyTool, ...] = ()
    opening: Sequence[Message] = ()
    instructed: bool = False
    graph: NodeGraph[S] | None = None

    def __repr__(self) -> str:
        steps = len(self.run.record.steps)
        return f"<RunResult {self.run_id!r}: {self.end_reason}, {steps} step{'s'[: steps != 1]}>"

    def _repr_mimebundle_(self, **_: object) -> Mapping[str, str]:
        """Return the answer, and the run laid over its graph, for notebooks."""
        words = f"{self!r}\n\n{self.text}".strip()
        return views.run_bundle(words, self.graph, self.store, self.run_id, typed)

    @property
    def run_id(self) -> str:
        """The run's id, for stores and `resume`."""
        return self.run.id

    @property
    def output(self) -> OutputT_co:
        """The run's answer: a value of the `output_type`; without an `output_type`, the `text`.

        Raises:
            OutputInvalid: the run ended or parked before it had an answer of its `output_type`.
        """
        return output_from(self.answers, self.text, self.end_reason)

    @property
    def has_output(self) -> bool:
        """Whether there is an `output`; a run that parks or stops may have no typed answer."""
        return self.answers is None or bool(self.answers)

    @property
    def state(self) -> S:
        """The user's state."""
        return self.run.state

    @property
    def steps(self) -> tuple[StepResult, ...]:
        """All turns in order, including the unfinished turn of a parked run.

        The unfinished turn has the results so far, and has the same index after a resume.
        """
        return (*self.run.record.steps, *self._open_turn)

    @property
    def text(self) -> str:
        """The run's answer: the text of the last turn, or the answer after a handoff."""
        return latest_answer(self.run)

    @property
    def media(self) -> tuple[MediaPart, ...]:
        """The pictures and sounds that the model made in this run, in order."""
        replies = [one for one in self.messages if isinstance(one, AssistantMessage)]
        return tuple([part for reply in replies for part in reply.media])

    @property
    def partial_text(self) -> str:
        """The text of a reply that a stop cut off; this text is not in `messages`."""
        return self.run.ending.said if self.run.ending is not None else ""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages that this run added: `history += result.messages`.

        The messages of a parked run end with the reply whose calls wait, and the results so far.
        """
        pending = [message for step in self._open_turn for message in step.messages]
        return (*self.run.record.added, *pending)

    @property
    def conversation(self) -> tuple[Message, ...]:
        """The whole conversation for the next question: the messages handed in, then `messages`.

            result = await agent.generate("And tomorrow?", messages=result.conversation)

        It leaves out the agent's instructions, which each run puts first, and what a screen blocks.
        """
        said = (*self.opening[self.instructed :], *self.messages)
        blocked = any(by.startswith(f"{SCREEN}:") for by in self.stopped_by)
        return tuple(self.run.messages[-len(said) :]) if blocked else said

    @property
    def _open_turn(self) -> tuple[StepResult, ...]:
        """The unfinished turn of a parked run, in a tuple that is empty for other runs."""
        turn, reply = self.run.turn, self.run.turn.reply
        if self.run.ended or reply is None or turn.dropped or turn.number < 0:
            return ()
        finished = tuple([result for result in turn.results if result is not None])
        said: tuple[Message, ...] = (reply.message, *finished)
        return (StepResult(turn.number, reply, turn.calls, finished, turn.usage, said),)

    @property
    def total_usage(self) -> Usage | None:
        """The tokens of the whole run, including retries, checks, summaries and child runs.

        Replies without reported usage are not counted; None if no reply has reported usage.
        """
        return spent_by(self.run, self.children).told_usage

    @property
    def usage(self) -> Usage | None:
        """The tokens since the run was started or last resumed; None if no usage was reported."""
        spent, earlier = spent_by(self.run, self.children), self.before
        total, before = spent.usage, earlier.usage
        unreported = spent.unreported_calls - earlier.unreported_calls
        if unreported and total.total_tokens == before.total_tokens:
            return None
        return Usage(*map(sub, structs.astuple(total), structs.astuple(before)))

    @property
    def cost_usd(self) -> float | None:
        """The cost of the whole run in US dollars; None if no price was known for a call."""
        spent = spent_by(self.run, self.children)
        return None if spent.unpriced_calls else spent.cost_usd

    @property
    def finish_reason(self) -> FinishReason | None:
        """The reason that the model stopped in its last turn; None if there was no turn."""
        return self.steps[-1].finish_reason if self.steps else None

    @property
    def end_reason(self) -> EndReason:
        """The reason that the run ended; `parked` if the run waits for an answer from outside."""
        return self.run.ending.reason if self.run.ending and self.run.ended else EndReason.PARKED

    @property
    def stopped_by(self) -> tuple[str, ...]:
        """The names of all limits and conditions that stopped the run."""
        return self.run.ending.stopped_by if self.run.ending else ()

    @property
    def broken_rules(self) -> tuple[TemporalRule, ...]:
        """The temporal rules that the run broke.

        A forbidden call is denied before it breaks a rule, but a node can still break a rule.
        """
        return self.run.watch.monitor.broken

    @property
    def owed_rules(self) -> tuple[TemporalRule, ...]:
        """The temporal rules that still require an event which has not happened."""
        return self.run.watch.monitor.owed

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The pending questions of a parked run and its child runs, in request order.

        The token of a question is valid for `resume`, and for a new run that gets
        `messages=result.conversation`. Questions of a child run can be answered only by
        `resume`, because a conversation does not record that the child started.
        """
        if self.run.ended:
            return ()
        asked = tuple(pending_of(self.run, self.children, self.secret))
        conversation = conversation_digest(self.conversation) if asked else ""
        return tuple([bind_token(pending, conversation, self.secret) for pending in asked])

    @property
    def provider_metadata(self) -> str:
        """The provider-specific fields of the last reply as JSON text; empty if none."""
        return self.steps[-1].metadata if self.steps else ""


def spent_by(run: Run[Any], children: Mapping[str, Run[Any]]) -> Spent:
    """Return the spending of a run plus the spending of its pending child runs."""
    spent = run.spent
    for effect in run.pending.values():
        if isinstance(effect, StartRun) and (child := children.get(f"{run.id}/{effect.key}")):
            spent += spent_by(child, children)
    return spent


class RunHandle(Struct, Generic[S], frozen=True, eq=False):
    """A run with everything that is needed to drive it.

    Args:
        graph: the graph of the run.
        ports: the run's ports: its store, models, tools and functions.
        driver: the driver of the run.
        seen: the steps and deltas of the run; the first read starts the driver.
        run_id: the id of the run.
        before: the spending of the run before it was last resumed.
        reported: the number of turns before the resume, which are not reported again.
        on_step_finish: called with each turn that finishes now.
        warnings: the warnings that are known before the run is driven.
        children: the child runs that existed before the resume, by run id.
        final: reads the final answer of an agent with an `output_type`.
        limits: the limits of the graph's nodes on costs and tokens.
        opening: the conversation that the run began with.
        instructed: whether the agent's instructions lead that conversation.
        reads_steps: whether a limit or a listener reads each step.
    """

    graph: NodeGraph[S]
    ports: Ports[S]
    driver: AsyncDriver[S]
    seen: AsyncGenerator[Seen[S], None]
    run_id: str
    before: Spent = Spent()
    reported: int = 0
    on_step_finish: Callable[[StepResult], object] | None = None
    warnings: tuple[str, ...] = ()
    children: Mapping[str, Run[Any]] = {}
    final: FinalAnswer | None = None
    limits: tuple[CountedLimit, ...] = ()
    opening: Sequence[Message] = ()
    instructed: bool = False
    reads_steps: bool = True

    @property
    def waits(self) -> bool:
        """Whether the run waits for the caller that iterates it to continue it."""
        run = self.driver.run
        pending = () if run is None else run.pending.values()
        return any(isinstance(effect, AwaitCaller) for effect in pending)

    def has_taken(self, answer: Steered | None) -> bool:
        """Whether the run has started, and has taken `answer` for its pending effect."""
        run = self.driver.run
        return run is not None and (answer is None or answer.effect not in run.pending)

    def again(self, answer: Steered | None = None, *, cut: bool = False) -> RunHandle[S]:
        """Return a handle that continues the same run from its current state.

        Args:
            answer: the event that answers the pending effect, or None.
            cut: whether the run's driver was cancelled, so that its effects were interrupted.
        """
        run = self.driver.run
        assert run is not None, "the run has started"
        answers = () if answer is None else (answer,)
        return evolve(self, seen=self.driver.resume(run, answers, at_once=not cut))

    def rest(self) -> None:
        """Tell the observers that the run has ended or parked, or that its stream was closed."""
        run, observers = self.driver.run, self.ports.observers
        if run is not None and observers is not None:
            observers.rest(run, self.ports.wrong)

    def findings(self, run: Run[S]) -> tuple[str, ...]:
        """Return the warnings about a run that ended or parked, and about its child runs."""
        here = self.driver.children
        below = {**self.children, **here.descendants} if here.drivers else self.children
        of_children = [
            f"{key}: {warning}" for key, child in below.items() for warning in shortfalls(child)
        ]
        reason = run.ending.reason if self.final and run.ended and run.ending else None
        lacking = f"there is no `output`: the run ended by `{reason}` before it had one"
        doubts = run.record.warnings if reason in ANSWERED else (lacking, *run.record.warnings)
        return (*doubts, *unseen_costs(self.limits, run), *shortfalls(run), *of_children)

    def ended(self, run: Run[S], warnings: Sequence[str]) -> RunResult[Any, S] | Exception:
        """Return the result of a run that ended or parked, or the exception of a failed run."""
        ports, here = self.ports, self.driver.children
        refused = here.busy if here.drivers or here.refused else ()
        if refused:
            log_warnings(run.id, refused)
        result: RunResult[Any, S] = RunResult(
            run,
            ports.store,
            self.before,
            (*warnings, *refused, *ports.wrong),
            {**self.children, **here.descendants} if here.drivers else self.children,
            secret=ports.secret,
            added=ports.toolbox.added,
            opening=self.opening,
            instructed=self.instructed,
            graph=self.graph,
        )
        reason = run.ending.reason if run.ending is not None and run.ended else None
        if reason is EndReason.ERROR:
            return self.driver.exception or failure_of(run, self.final)
        if self.final is None:
            return result
        return evolve(result, answers=answers_of(self.final, run))


def shortfalls(run: Run[Any]) -> tuple[str, ...]:
    """Return a warning for each rule that a run did not keep, and each unknown finish reason."""
    monitor = run.watch.monitor
    broken = monitor.broken if monitor.automata else ()
    owed = monitor.owed if monitor.automata and run.ended else ()
    cut = [step for step in run.record.steps if step.reply.finish_reason is FinishReason.OTHER]
    return (
        *[f"the rule {describe_rule(rule)!r} was broken" for rule in broken],
        *[f"the rule {describe_rule(rule)!r} is still owed, and the run is over" for rule in owed],
        *[
            f"turn {step.index}: expected a finish reason that the wire knows, found "
            f"{step.raw_finish_reason!r}. The answer may be cut, so its calls did not run"
            for step in cut
        ],
    )


def log_warnings(run_id: str, warnings: Iterable[str]) -> None:
    """Log the warnings of a run, for a developer who does not look at `RunResult.warnings`."""
    for warning in warnings:
        LOG.warning("run %s: %s", run_id, warning)
