"""Fan-out: the shared behaviour of nodes that run several child runs and join their answers.

The turn holds the branches with their results (`Turn.branches`), so a run that parks for one branch
keeps the answers of the others. At most `concurrency` branches run at once, each with an equal
share of the remaining budget. The driver stops the abandoned branches of a turn (`Turn.abandoned`);
their spending counts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar, cast, final

from ..contract import ChildContract, Contract
from ..conversation import apply_steering, clear_ending
from ..effects import Effect, Invoke, Place, StartRun
from ..errors import MISTAKES
from ..events import (
    BranchesJoined,
    CallbackAnswer,
    CallbackReturned,
    ChildEnded,
    EffectFailed,
    Event,
    Failure,
    NodeReturned,
)
from ..limits import budget_remaining, no_start
from ..node_protocol import Leave, Reaction, Wait, wrong_answer
from ..outcomes import Aborted, Answered, Failed
from ..run import Ending, EndReason, History, Run, ended_by, evolve
from ..spending import Budget
from ..turn import BranchRun, Turn
from ..values import AssistantMessage, FinishReason, Message, Reply, TextPart, UserMessage
from .joins import BranchJoin, JoinForm, is_decided, joined

__all__ = ["FanOut", "FanOutOutcome"]

S = TypeVar("S")

FanOutOutcome: TypeAlias = Answered | Failed | Aborted

LATE: Final = "Not needed any more: the others had decided."

BY_MISTAKE: Final = tuple([f"{one}: " for one in sorted(MISTAKES)])
"""The prefixes of a branch's error text that show a developer's mistake (`MISTAKES`)."""


@final
@dataclass(frozen=True)
class FanOut:
    """The behaviour of a node that waits for several child runs.

    Args:
        name: the node's name.
        join: the answers to wait for.
        reducer: the rule that joins the answers into one text, if there is no callback.
        callback: the name of a function that joins the answers instead. It reads
            `run.turn.branches` and returns `BranchesJoined`, or `NodeReturned` with a new state;
            then the reducer makes the text.
        concurrency: the most branches that run at once.
        alone: whether a child reads only its own prompt, without the conversation.
        place: whether workers may drive the children without their parent.
    """

    name: str
    join: BranchJoin
    reducer: JoinForm
    callback: str
    concurrency: int
    alone: bool = False
    place: Place = "here"

    def contract(self, runs: Mapping[str, int]) -> Contract:
        """Return the contract of the node.

        Args:
            runs: for each agent, the most child runs of it that the node starts.
        """
        many = sum(runs.values()) > 1
        # With several agents, the success of any one is enough; "fail_fast" needs all.
        needs = int(len(runs) == 1 or self.join == "fail_fast")
        children = [
            ChildContract(agent, many=many, runs=most, needs=needs) for agent, most in runs.items()
        ]
        return Contract(
            moves={Answered: frozenset({"turn", "close"})},
            children=tuple(children),
            functions=(self.callback,) if self.callback else (),
        )

    def start(self, run: Run[S], branches: tuple[BranchRun, ...]) -> Reaction[S, FanOutOutcome]:
        """Open a turn with these branches, and request the runs of the first ones."""
        if (ending := no_start(run, [one.agent for one in branches])) is not None:
            return Leave(ended_by(run, ending), Failed())
        turn = Turn(number=run.turn.number + 1, branches=branches)
        return self._go_on(apply_steering(evolve(clear_ending(run), turn=turn)))

    def on(self, run: Run[S], event: Event, answered: Effect | None) -> Reaction[S, FanOutOutcome]:
        """Store a branch's result and start the next branch; after the last, join all answers."""
        match event, answered:
            case ChildEnded(), StartRun():
                ended = self._end_branch(run, event)
                usage = run.turn.usage + event.spent.usage
                return self._go_on(evolve(run, turn=evolve(ended, usage=usage)))
            case EffectFailed(failure=failure), StartRun():
                content = f"{failure.error}: {failure.message}"
                ended = self._end_branch(run, ChildEnded(event.at, event.effect, content, "error"))
                usage = run.turn.usage + event.spent.usage
                run = evolve(run, turn=evolve(ended, usage=usage))
                return self._broken_off(run) if _is_mistake(ended, event) else self._go_on(run)
            case CallbackReturned(answer=answer), Invoke():
                return self._take_joined(run, answer)
            case EffectFailed(failure=failure), Invoke():
                return _fail(run, failure)
            case _:
                return Leave(run, Aborted())

    def _take_joined(self, run: Run[S], answer: CallbackAnswer) -> Reaction[S, FanOutOutcome]:
        """Leave with the text, or with the new state, that the callback made of the answers."""
        match answer:
            case BranchesJoined(text=text):
                return self._answer(run, text)
            case NodeReturned(state=state, changed=changed):
                branches = run.turn.branches
                text = joined(branches, self.reducer) if branches else ""
                # The driver has checked the state's type.
                run = evolve(run, state=cast("S", state)) if changed else run
                return self._answer(run, text)
            case _:
                return _fail(run, wrong_answer(self.callback, BranchesJoined, answer))

    def _end_branch(self, run: Run[S], event: ChildEnded) -> Turn:
        """Return the turn with a branch's result; a result after the decision counts as not run."""
        branches = run.turn.branches
        status, content = event.status, event.content
        if is_decided(branches, self.join):
            status, content = "not_run", LATE
        # Branches start in order, so their effect ids are sorted.
        at = bisect_left(branches, event.effect, hi=_started_count(branches), key=_effect_of)
        ended = evolve(branches[at], status=status, content=content)
        return evolve(run.turn, branches=(*branches[:at], ended, *branches[at + 1 :]))

    def _go_on(self, run: Run[S]) -> Reaction[S, FanOutOutcome]:
        """Start further branches up to `concurrency`; when no more are needed, join the answers."""
        branches = run.turn.branches
        if is_decided(branches, self.join):
            if run.pending:
                return Wait(_abandon(run))
            return self._join(run)
        first = _started_count(branches)
        waiting = branches[first:]
        if waiting and waiting[0].status is None:
            if spent := run.setup.budget.tripped(run.spent):
                refused = f"Not run: {', '.join(spent)} of the run is spent."
                unused = [evolve(one, status="not_run", content=refused) for one in waiting]
                branches = (*branches[:first], *unused)
                return self._go_on(evolve(run, turn=evolve(run.turn, branches=branches)))
            room = self.concurrency - len(run.pending)
            if room > 0:
                return self._start_branches(run, first, waiting[:room], len(waiting))
        return Wait(run) if run.pending else self._join(run)

    def _broken_off(self, run: Run[S]) -> Reaction[S, FanOutOutcome]:
        """Stop all other branches after one failed by a developer's mistake; then fail the node."""
        branches = [
            one if one.effect else evolve(one, status="not_run", content=LATE)
            for one in run.turn.branches
        ]
        run = evolve(run, turn=evolve(run.turn, branches=tuple(branches)))
        return Wait(_abandon(run)) if run.pending else self._join(run)

    def _start_branches(
        self, run: Run[S], first: int, starting: Sequence[BranchRun], waiting: int
    ) -> Reaction[S, FanOutOutcome]:
        """Request the runs of `starting`, each with an equal share of the remaining budget."""
        left, number = budget_remaining(run, 0), run.next_effect
        effects = tuple(
            [
                self._started_branch(run, one, number + at, left.share(waiting, at))
                for at, one in enumerate(starting)
            ]
        )
        started = [evolve(one, effect=number + at) for at, one in enumerate(starting)]
        branches = run.turn.branches
        branches = (*branches[:first], *started, *branches[first + len(started) :])
        return Wait(evolve(run, turn=evolve(run.turn, branches=branches)), effects)

    def _started_branch(
        self, run: Run[S], branch: BranchRun, number: int, share: Budget
    ) -> StartRun:
        messages: History[Message] = History() if self.alone else run.messages
        if branch.prompt:
            messages = messages.append(UserMessage(branch.prompt, origin=self.name))
        # The effect's id is unique in the run, so no two children share a journal.
        key = f"{self.name}.{number}"
        return StartRun(number, key, branch.agent, "", messages, share, self.place)

    def _join(self, run: Run[S]) -> Reaction[S, FanOutOutcome]:
        branches = run.turn.branches
        if run.turn.abandoned:  # All branches have ended; the driver must not end later effects.
            run = evolve(run, turn=evolve(run.turn, abandoned=False))
        bad = [one for one in branches if one.status != "ok"]
        for one in bad:
            if one.status == "error" and one.content.startswith(BY_MISTAKE):
                error, _, message = one.content.partition(": ")
                return _fail(run, Failure(error, f"{one.name}: {message}"))
        if bad and (len(bad) == len(branches) or self.join == "fail_fast"):
            bad.sort(key=lambda one: one.status == "not_run")  # Report failures first.
            return _fail(run, Failure("RunFailed", f"{bad[0].name}: {bad[0].content}"))
        if self.callback:
            return Wait(run, (Invoke(run.next_effect, self.callback),))
        return self._answer(run, joined(branches, self.reducer))

    def _answer(self, run: Run[S], text: str) -> Reaction[S, FanOutOutcome]:
        """Store the joined answer as the turn's reply, and leave by `Answered`."""
        message = AssistantMessage((TextPart(text),))
        reply = Reply(message, FinishReason.STOP, model=self.name)
        return Leave(evolve(run, turn=evolve(run.turn, reply=reply)), Answered())


def _abandon(run: Run[S]) -> Run[S]:
    return evolve(run, turn=evolve(run.turn, abandoned=True))


def _effect_of(branch: BranchRun) -> int:
    return branch.effect


def _is_mistake(turn: Turn, event: EffectFailed) -> bool:
    """Whether a branch failed by a developer's mistake while its answer was still needed."""
    branch = next(one for one in turn.branches if one.effect == event.effect)
    return branch.status == "error" and branch.content.startswith(BY_MISTAKE)


def _started_count(branches: Sequence[BranchRun]) -> int:
    """Return the number of started branches; branches start in order, so these are the first."""
    return bisect_left(branches, 1, key=_waits)


def _waits(branch: BranchRun) -> int:
    return int(not branch.effect)


def _fail(run: Run[S], failure: Failure) -> Leave[S, FanOutOutcome]:
    return Leave(ended_by(run, Ending(EndReason.ERROR, failure=failure)), Failed())
