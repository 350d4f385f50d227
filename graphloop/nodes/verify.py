"""verify: a node that runs the user's checks on a final answer, each with its own retry limit.

A rejected answer stays in the history, and the feedback is noted for the next turn. An accepted
answer ends the run, unless the caller has queued a message. Each answer is checked before the model
reads such a message. Hard limits apply to these turns as well, because they pass the stop check.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar

from ..contract import Cap, Contract, Moves
from ..effects import Effect, Invoke
from ..errors import ConfigError
from ..events import AnswerChecked, CallbackReturned, EffectFailed, Event, Failure
from ..node_protocol import Leave, Reaction, Wait, outcomes_of, wrong_answer
from ..outcomes import Aborted, Accepted, Failed, FollowUp, Rejected
from ..run import Ending, EndReason, Run, ended_by, evolve
from ..spending import whole_number
from ..values import UserMessage
from .frozen_fields import FrozenFields

__all__ = ["AnswerCheck", "Verify", "VerifyOutcome"]

S = TypeVar("S")

VerifyOutcome: TypeAlias = Accepted | FollowUp | Rejected | Failed | Aborted

ANSWERS: Final = frozenset(
    {EndReason.COMPLETED, EndReason.LENGTH, EndReason.EMPTY_RESPONSE, EndReason.INCOMPLETE}
)
"""End reasons after which a queued message may continue the run: the model can still reply."""


@dataclass(frozen=True)
class AnswerCheck:
    """A check of the final answer.

    Args:
        callback: the name of the function that checks the answer, and the origin of its feedback.
        retries: the most times that the model is asked again after a rejection.
        given_up: the name to add to `stopped_by` when a rejected answer is accepted after all.
        failure: the error that ends the run instead; empty to accept the answer.

    Raises:
        ConfigError: `retries` is not a whole number of at least 0.
    """

    callback: str
    retries: int
    given_up: str = ""
    failure: str = ""

    def __post_init__(self) -> None:
        """Check that `retries` is a whole number of at least 0."""
        whole_number(f"retries of {self.callback}", self.retries, least=0)


@dataclass(frozen=True)
class Verify(FrozenFields):
    """Run the checks on a completed answer; without checks, every answer is accepted.

    Raises:
        ConfigError: two checks have the same callback name.
    """

    checks: tuple[AnswerCheck, ...] = ()
    name: str = "verify"
    kind: Literal["check"] = "check"
    outcomes = outcomes_of(VerifyOutcome)

    @property
    def contract(self) -> Contract:
        """Promises for the proofs: at most the sum of all `retries` rejections for one question."""
        asked: frozenset[Moves] = frozenset({"question"})
        most = sum(one.retries for one in self.checks)
        return Contract(
            caps={Rejected: Cap(most, resets=asked)},
            moves={FollowUp: asked, Rejected: frozenset({"note"})},
            functions=tuple([one.callback for one in self.checks]),
        )

    def __post_init__(self) -> None:
        """Refuse two checks with the same callback name, because rejections are counted by name."""
        super().__post_init__()
        # The graph refuses values of other types when it is made.
        checks = self.checks if isinstance(self.checks, tuple) else ()  # pyright: ignore[reportUnnecessaryIsInstance] - no type checker has to have seen the caller's code.
        names = [one.callback for one in checks if isinstance(one, AnswerCheck)]  # pyright: ignore[reportUnnecessaryIsInstance] - no type checker has to have seen the caller's code.
        if len(names) > len(set(names)):
            raise ConfigError(
                f"expected a different name for each check of an answer, found {names!r}"
            )

    def enter(self, run: Run[S], /) -> Reaction[S, VerifyOutcome]:
        """Request the first check; accept at once if the run did not end by a complete answer."""
        if not self.checks or run.ending is None or run.ending.reason is not EndReason.COMPLETED:
            return _leave_accepted(run)
        return self._ask_check(run, 0)

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, VerifyOutcome]:
        """Request the next check, or leave by `Accepted`, `FollowUp`, `Rejected` or `Failed`."""
        match event, answered:
            case CallbackReturned(answer=AnswerChecked() as judged), Invoke(callback=callback):
                place = next(at for at, one in enumerate(self.checks) if one.callback == callback)
                return self._take_review(run, place, judged)
            case CallbackReturned(answer=answer), Invoke(callback=callback):
                failure = wrong_answer(callback, AnswerChecked, answer)
            case EffectFailed(), _:
                failure = event.failure
            case _:
                return Leave(run, Aborted())
        return Leave(ended_by(run, Ending(EndReason.ERROR, failure=failure)), Failed())

    def _ask_check(self, run: Run[S], place: int) -> Reaction[S, VerifyOutcome]:
        if place == len(self.checks):
            return _leave_accepted(run)
        return Wait(run, (Invoke(run.next_effect, self.checks[place].callback),))

    def _take_review(
        self, run: Run[S], place: int, judged: AnswerChecked
    ) -> Reaction[S, VerifyOutcome]:
        check, ending = self.checks[place], run.ending or Ending(EndReason.COMPLETED)
        if judged.accepted:
            return self._ask_check(run, place + 1)
        sent_back = run.counters.rejections.get(check.callback, 0)
        if judged.retry and sent_back < check.retries:
            note = UserMessage(judged.feedback, origin=check.callback)
            rejections = {**run.counters.rejections, check.callback: sent_back + 1}
            counters = evolve(run.counters, rejections=rejections)
            again = evolve(run, turn=evolve(run.turn, notes=(note,)), counters=counters)
            return Leave(ended_by(again, None), Rejected())
        if check.failure:
            failure = Failure(check.failure, judged.feedback)
            return Leave(ended_by(run, Ending(EndReason.ERROR, failure=failure)), Failed())
        if judged.retry and check.given_up:
            ending = evolve(ending, stopped_by=(*ending.stopped_by, check.given_up))
        return self._ask_check(ended_by(run, ending), place + 1)


def _leave_accepted(run: Run[S]) -> Reaction[S, VerifyOutcome]:
    """End the run with its answer, or continue it with queued messages, one follow-up at a time.

    A follow-up is a new question: its answer may be rejected as often as the first one.
    """
    queued = bool(run.inbox.steering or run.inbox.follow_ups)
    if not queued or run.ending is None or run.ending.reason not in ANSWERS:
        return Leave(run, Accepted())
    if not run.inbox.steering:
        first, *rest = run.inbox.follow_ups
        run = evolve(run, inbox=evolve(run.inbox, steering=(first,), follow_ups=tuple(rest)))
    counters = evolve(run.counters, rejections={})
    return Leave(ended_by(evolve(run, counters=counters), None), FollowUp())
