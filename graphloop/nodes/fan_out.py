"""Fan-out: several child runs at once, which answer together in the model's place.

The branches stand in the turn (`Turn.branches`), each with its result, so a run that parks in a
branch keeps the answers of the others. As many run at once as `concurrency` says, each with an
equal share of the remaining budget. The driver stops abandoned branches (`Turn.abandoned`), and
their spending counts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar, final

from ..contract import ChildContract, Contract
from ..conversation import apply_steering, clear_ending
from ..effects import Effect, Invoke, StartRun
from ..errors import MISTAKES
from ..events import BranchesJoined, CallbackReturned, ChildEnded, EffectFailed, Event, Failure
from ..limits import budget_remaining, no_start
from ..node_protocol import Leave, Reaction, Wait
from ..outcomes import Aborted, Answered, Failed
from ..run import Ending, EndReason, History, Run, ended_by, evolve
from ..spending import Budget
from ..turn import BranchRun, Turn
from ..values import AssistantMessage, FinishReason, Message, Reply, TextPart, UserMessage
from .joins import BranchJoin, Reducer, is_decided, joined

__all__ = ["FanOut", "FanOutOutcome"]

S = TypeVar("S")

FanOutOutcome: TypeAlias = Answered | Failed | Aborted

LATE: Final = "Not needed any more: the others had decided."

BY_MISTAKE: Final = tuple([f"{one}: " for one in sorted(MISTAKES)])
"""How begins what is told of a branch that cannot run, or meets a mistake of the developer's."""


@final
@dataclass(frozen=True)
class FanOut:
    """The behaviour of a node that waits for several child runs.

    Args:
        name: the node's name.
        join: what to wait for.
        reducer: how the answers become one, or
        callback: the name of the function that is invoked to join them; it finds them in
            `run.turn.branches` and returns `BranchesJoined`.
        concurrency: how many may run at once.
        alone: whether a child reads nothing but its own prompt.
    """

    name: str
    join: BranchJoin
    reducer: Reducer
    callback: str
    concurrency: int
    alone: bool = False

    def contract(self, runs: Mapping[str, int]) -> Contract:
        """Return what such a node promises that begins so many runs of each agent."""
        many = sum(runs.values()) > 1
        # Of several agents, any one may be the one that succeeds; "fail_fast" needs each.
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
        """Open a turn, and start the first branches."""
        if (ending := no_start(run, [one.agent for one in branches])) is not None:
            return Leave(ended_by(run, ending), Failed())
        turn = Turn(number=run.turn.number + 1, branches=branches)
        return self._go_on(apply_steering(evolve(clear_ending(run), turn=turn)))

    def on(self, run: Run[S], event: Event, answered: Effect | None) -> Reaction[S, FanOutOutcome]:
        """Keep what came of a branch, and start the next; or take the joined answer."""
        match event, answered:
            case ChildEnded(), StartRun():
                ended = self._ended(run, event)
                usage = run.turn.usage + event.spent.usage
                return self._go_on(evolve(run, turn=evolve(ended, usage=usage)))
            case EffectFailed(failure=failure), StartRun():
                content = f"{failure.error}: {failure.message}"
                ended = self._ended(run, ChildEnded(event.at, event.effect, content, "error"))
                usage = run.turn.usage + event.spent.usage
                run = evolve(run, turn=evolve(ended, usage=usage))
                return self._broken_off(run) if _is_mistake(ended, event) else self._go_on(run)
            case CallbackReturned(answer=BranchesJoined(text=text)), Invoke():
                return self._answered(run, text)
            case CallbackReturned(answer=answer), Invoke():
                found = (
                    f"{self.callback!r} answers with BranchesJoined; found {type(answer).__name__}"
                )
                return _failed(run, Failure("ConfigError", found))
            case EffectFailed(failure=failure), Invoke():
                return _failed(run, failure)
            case _:
                return Leave(run, Aborted())

    def _ended(self, run: Run[S], event: ChildEnded) -> Turn:
        """Return the turn with what came of one branch; what comes too late has not answered."""
        branches = run.turn.branches
        status, content = event.status, event.content
        if is_decided(branches, self.join):
            status, content = "not_run", LATE
        # They are started in order, so their effects rise.
        at = bisect_left(branches, event.effect, hi=_started_count(branches), key=_effect)
        ended = evolve(branches[at], status=status, content=content)
        return evolve(run.turn, branches=(*branches[:at], ended, *branches[at + 1 :]))

    def _go_on(self, run: Run[S]) -> Reaction[S, FanOutOutcome]:
        """Start as many branches as there is room for, or join what they have answered."""
        branches = run.turn.branches
        if is_decided(branches, self.join):
            if run.pending:
                return Wait(_abandoned(run))
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
                return self._started(run, first, waiting[:room], len(waiting))
        return Wait(run) if run.pending else self._join(run)

    def _broken_off(self, run: Run[S]) -> Reaction[S, FanOutOutcome]:
        """Stop the other branches of a branch that cannot run: a mistake is no answer."""
        branches = [
            one if one.effect else evolve(one, status="not_run", content=LATE)
            for one in run.turn.branches
        ]
        run = evolve(run, turn=evolve(run.turn, branches=tuple(branches)))
        return Wait(_abandoned(run)) if run.pending else self._join(run)

    def _started(
        self, run: Run[S], first: int, starting: Sequence[BranchRun], waiting: int
    ) -> Reaction[S, FanOutOutcome]:
        """Start the first of the branches that wait, each with its share of what is left."""
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
        # An effect's id is its own in the whole run, so no two children share a journal.
        return StartRun(number, f"{self.name}.{number}", branch.agent, "", messages, share)

    def _join(self, run: Run[S]) -> Reaction[S, FanOutOutcome]:
        branches = run.turn.branches
        if run.turn.abandoned:  # None is pending any more; other effects of the turn are.
            run = evolve(run, turn=evolve(run.turn, abandoned=False))
        bad = [one for one in branches if one.status != "ok"]
        for one in bad:
            if one.status == "error" and one.content.startswith(BY_MISTAKE):
                error, _, message = one.content.partition(": ")
                return _failed(run, Failure(error, f"{one.name}: {message}"))
        if len(bad) == len(branches) or (bad and self.join == "fail_fast"):
            bad.sort(key=lambda one: one.status == "not_run")  # What failed says more.
            return _failed(run, Failure("RunFailed", f"{bad[0].name}: {bad[0].content}"))
        if self.callback:
            return Wait(run, (Invoke(run.next_effect, self.callback),))
        return self._answered(run, joined(branches, self.reducer))

    def _answered(self, run: Run[S], text: str) -> Reaction[S, FanOutOutcome]:
        """Take the joined answer as the turn's reply."""
        message = AssistantMessage((TextPart(text),))
        reply = Reply(message, FinishReason.STOP, model=self.name)
        return Leave(evolve(run, turn=evolve(run.turn, reply=reply)), Answered())


def _abandoned(run: Run[S]) -> Run[S]:
    return evolve(run, turn=evolve(run.turn, abandoned=True))


def _effect(branch: BranchRun) -> int:
    return branch.effect


def _is_mistake(turn: Turn, event: EffectFailed) -> bool:
    """Whether a branch cannot run at all, and its answer is still needed."""
    branch = next(one for one in turn.branches if one.effect == event.effect)
    return branch.status == "error" and branch.content.startswith(BY_MISTAKE)


def _started_count(branches: Sequence[BranchRun]) -> int:
    """Return how many branches have started; they start in order, so these come first."""
    return bisect_left(branches, 1, key=_waits)


def _waits(branch: BranchRun) -> int:
    return int(not branch.effect)


def _failed(run: Run[S], failure: Failure) -> Leave[S, FanOutOutcome]:
    return Leave(ended_by(run, Ending(EndReason.ERROR, failure=failure)), Failed())
