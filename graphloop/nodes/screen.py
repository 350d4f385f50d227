"""screen: nodes that judge what the user says, before a model reads it or while it answers.

Functions judge first, because they cost nothing; agents judge after them, as child runs. The first
screen that blocks decides: its refusal becomes the reply. A screen that raises, or that gives no
verdict, ends the run: no answer to an unjudged message counts.

`Screen` stands before the first turn. `Screened` asks a model at the same time, and its reply waits
for the verdict: until then no call of it runs, and no listener sees it. If the screens block the
messages, the driver ends the model call.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Final, Generic, Literal, TypeAlias, TypeVar, final

from msgspec import Struct

from ..contract import BROKEN, ChildContract, Contract, Moves, contract_of
from ..conversation import (
    apply_steering,
    mark_screened,
    open_calls,
    unscreened,
    with_screens,
    withhold,
)
from ..effects import CallModel, Effect, Invoke, StartRun
from ..errors import ConfigError
from ..events import (
    AnswerChecked,
    CallbackReturned,
    Cancelled,
    ChildEnded,
    EffectFailed,
    Event,
    Failure,
    ModelReplied,
)
from ..limits import budget_remaining, no_start
from ..node_protocol import Leave, Node, Reaction, Wait, outcomes_of, wrong_answer
from ..outcomes import Aborted, Blocked, Failed, Outcome, Passed
from ..run import Ending, EndReason, History, Run, ended_by, evolve
from ..turn import SCREEN, Screening, Turn
from ..values import AssistantMessage, FinishReason, Message, Reply, TextPart, Usage
from .frozen_fields import FrozenFields

__all__ = ["Screen", "ScreenOutcome", "Screened"]

S = TypeVar("S")

ScreenOutcome: TypeAlias = Passed | Blocked | Failed | Aborted

REFUSAL: Final = "I cannot help with that."
"""The answer to a blocked message, if the screen gives no other."""


class _Verdict(Struct, frozen=True):
    """The end of the screens' work: without an `ending` and a `refusal`, the messages passed.

    `ending` is that of a run whose screens failed. `refusal` is the reply if a screen blocked.
    """

    ending: Ending | None = None
    refusal: Reply | None = None


@final
@dataclass(frozen=True)
class _Screens:
    """The functions and agents that judge messages of the user; `name` is their node's."""

    functions: tuple[str, ...]
    agents: tuple[str, ...]
    name: str

    def check(self) -> None:
        """Raise an error for screens that judge nothing, or that judge the same twice."""
        names = [*self.functions, *self.agents]
        if not names or len(names) > len({*names}):
            raise ConfigError(
                f"screen {self.name!r}: expected functions or agents, each once, found {names!r}. "
                "Fix: name at least one, and none twice"
            )

    @property
    def children(self) -> tuple[ChildContract, ...]:
        """The agents, each of which runs at most once in a visit."""
        return tuple([ChildContract(agent) for agent in self.agents])

    def asked(self, run: Run[S], place: int, number: int) -> Effect | _Verdict:
        """Return the effect that asks the screen at `place`, or the verdict after the last one.

        Args:
            run: the run, with messages that this node has not judged yet.
            place: the screen's place among the functions and, after them, the agents.
            number: the id of the effect.
        """
        if place < len(self.functions):
            return Invoke(number, self.functions[place])
        if place == len(self.functions) + len(self.agents):
            return _Verdict()
        agent = self.agents[place - len(self.functions)]
        if (ending := no_start(run, [agent])) is not None:
            return _Verdict(ending)
        said: History[Message] = History(unscreened(run, self.name))
        key, left = f"{self.name}.{number}", budget_remaining(run, 0)
        return StartRun(number, key, agent, "", said, left)

    def judged(
        self, run: Run[S], event: Event, answered: Effect | None
    ) -> Effect | _Verdict | None:
        """Return the next effect or the verdict after an answer; None if the run was stopped."""
        found: AnswerChecked | Failure
        match event, answered:
            case CallbackReturned(answer=AnswerChecked() as checked), Invoke(callback=by):
                found, place = checked, self.functions.index(by)
            case CallbackReturned(answer=answer), Invoke(callback=by):
                found, place = wrong_answer(by, AnswerChecked, answer), 0
            case ChildEnded(status=status, content=content), StartRun(agent=by):
                found, place = _answer_of(by, content), len(self.functions) + self.agents.index(by)
                if status != "ok":
                    found = Failure("RunFailed", f"screen {by!r}: {content}")
            case EffectFailed(failure=failure), _:
                found, by, place = failure, "", 0
            case _:
                return None
        if isinstance(found, Failure):
            return _Verdict(Ending(EndReason.ERROR, failure=found))
        if found.accepted:
            return self.asked(run, place + 1, run.next_effect)
        name = by.removeprefix(f"{SCREEN}:")
        message = AssistantMessage((TextPart(found.feedback or REFUSAL),))
        reply = Reply(message, FinishReason.REFUSAL, Usage(), f"{SCREEN}:{name}", SCREEN)
        return _Verdict(refusal=reply)


@dataclass(frozen=True)
class Screen(FrozenFields):
    """Let what the user says pass, or block it with a refusal as the run's answer.

    The node judges each message once: at its first visit what the user said since the last answer,
    then each message that the caller adds to the run. No other node reads such a message, so lead
    every way to a `prepare_step` through the screen. Lead `Blocked` to an `append` node, which adds
    the refusal. The run then ends by `refusal`, and `stopped_by` names the screen.

    Args:
        functions: the names of the functions that judge, in order; each returns `AnswerChecked`.
        agents: the names of the agents that judge after the functions, in order. An agent answers
            `true` or `false`, or an object with `passed` and perhaps `answer`, the refusal.
        name: the node's name.

    Raises:
        ConfigError: there is neither a function nor an agent, or a name stands twice.
    """

    functions: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    name: str = "screen"
    kind: Literal["check"] = "check"
    outcomes = outcomes_of(ScreenOutcome)

    def __post_init__(self) -> None:
        """Refuse a screen that judges nothing, or that judges the same twice."""
        super().__post_init__()
        self._screens.check()

    @property
    def contract(self) -> Contract:
        """Promises for the proofs: a visit runs each agent at most once."""
        refused: frozenset[Moves] = frozenset({"turn", "reply"})
        return Contract(
            moves={Blocked: refused, Failed: BROKEN, Aborted: BROKEN},
            children=self._screens.children,
            functions=self.functions,
        )

    @property
    def _screens(self) -> _Screens:
        return _Screens(self.functions, self.agents, self.name)

    def enter(self, run: Run[S], /) -> Reaction[S, ScreenOutcome]:
        """Ask the first screen about the new messages; leave by `Passed` if there is none.

        From now on only screens read the inbox: a message that comes while the screens judge waits
        for the next visit. Calls without results come before any message, so they pass as well.
        """
        run = with_screens(run)
        if run.turn.calls or open_calls(run.messages):
            return Leave(run, Passed())
        run = apply_steering(run, screens=True)
        if not unscreened(run, self.name):
            return Leave(run, Passed())
        return self._next_screen(run, self._screens.asked(run, 0, run.next_effect))

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, ScreenOutcome]:
        """Ask the next screen, or leave by the verdict."""
        judged = self._screens.judged(run, event, answered)
        return Leave(run, Aborted()) if judged is None else self._next_screen(run, judged)

    def _next_screen(self, run: Run[S], asked: Effect | _Verdict) -> Reaction[S, ScreenOutcome]:
        if not isinstance(asked, _Verdict):
            return Wait(run, (asked,))
        if asked.ending is not None:
            return Leave(ended_by(run, asked.ending), Failed())
        if asked.refusal is not None:
            return _block(run, self.name, Turn(run.turn.number + 1, reply=asked.refusal))
        return Leave(mark_screened(run, self.name), Passed())


@dataclass(frozen=True)
class Screened(FrozenFields, Generic[S]):
    """Ask a model and a screen side by side; the reply counts only once the screen let all pass.

    The table holds this node in the model's place. The node leaves by the outcomes of the model
    node, and by `Blocked`, which leads to an `append` node. A turn without a new message of the
    user asks the model alone. The run pays for a call whose reply is dropped.

    Args:
        node: the node that asks the model.
        functions: the names of the functions that judge, as for `Screen`.
        agents: the names of the agents that judge after the functions, as for `Screen`.
        name: the name in the table; by default the name of `node`.

    Raises:
        ConfigError: `node` asks no model, or the screens are not allowed.
    """

    node: Node[S, Outcome]
    functions: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    name: str = ""
    kind: Literal["model"] = "model"

    def __post_init__(self) -> None:
        """Check the node and the screens; use the name of the model node if none is given."""
        super().__post_init__()
        if self.node.kind != "model":
            raise ConfigError(
                f"screened: expected a node that asks a model, found {self.node.name!r}, of the "
                f"kind {self.node.kind!r}. Fix: put a Screen before it"
            )
        object.__setattr__(self, "name", self.name or self.node.name)
        self._screens.check()

    @property
    def outcomes(self) -> frozenset[type[Outcome]]:
        """The outcomes of the model node, and `Blocked`."""
        return self.node.outcomes | {Blocked}

    @property
    def contract(self) -> Contract | None:
        """Promises for the proofs: those of the model node, and the screens; None without these."""
        asked = contract_of(self.node)
        if asked is None:
            return None
        refused: frozenset[Moves] = frozenset({"reply"})
        return replace(
            asked,
            moves={**asked.moves, Blocked: refused},
            children=(*asked.children, *self._screens.children),
            functions=(*asked.functions, *self.functions),
        )

    @property
    def _screens(self) -> _Screens:
        return _Screens(self.functions, self.agents, self.name)

    def enter(self, run: Run[S], /) -> Reaction[S, Outcome]:
        """Request the model's reply, and the first verdict if the user said anything new."""
        asked = self.node.enter(run)
        if not isinstance(asked, Wait) or not unscreened(run, self.name):
            return asked
        judging = self._screens.asked(run, 0, run.next_effect + len(asked.effects))
        if isinstance(judging, _Verdict):  # No limit of the run lets an agent judge.
            return Leave(ended_by(run, judging.ending), Failed())
        return Wait(_with_screening(asked.run, Screening()), (*asked.effects, judging))

    def on(self, run: Run[S], event: Event, answered: Effect | None, /) -> Reaction[S, Outcome]:
        """Keep the model's reply until the verdict; then leave by its outcome, or by `Blocked`."""
        screening = run.turn.screening
        if screening is None or isinstance(event, Cancelled):
            return self.node.on(_with_screening(run, None), event, answered)
        if isinstance(event, ModelReplied | EffectFailed) and isinstance(answered, CallModel):
            if run.turn.abandoned:
                return self._drop_answer(run, event, screening.refusal)
            return Wait(_with_screening(run, Screening(answered, event)))
        judged = self._screens.judged(run, event, answered)
        assert judged is not None, "the other effect of this node is the screen's"
        if not isinstance(judged, _Verdict):
            return Wait(run, (judged,))
        return self._take_verdict(run, screening, judged)

    def _take_verdict(
        self, run: Run[S], screening: Screening, verdict: _Verdict
    ) -> Reaction[S, Outcome]:
        """Go on with the model's answer if the messages passed; else drop it, or have it ended."""
        answer = screening.answer
        if verdict.ending is None and verdict.refusal is None:
            run = _with_screening(mark_screened(run, self.name), None)
            return Wait(run) if answer is None else self.node.on(run, answer, screening.asked)
        run = run if verdict.ending is None else ended_by(run, verdict.ending)
        if answer is not None:
            return self._drop_answer(run, answer, verdict.refusal)
        run = _with_screening(run, Screening(refusal=verdict.refusal))
        return Wait(evolve(run, turn=evolve(run.turn, abandoned=True)))

    def _drop_answer(
        self, run: Run[S], answer: ModelReplied | EffectFailed, refusal: Reply | None
    ) -> Leave[S, Outcome]:
        """Leave with the refusal as the reply, or by `Failed` if the screens have failed."""
        used = answer.reply.usage if isinstance(answer, ModelReplied) else answer.spent.usage
        if refusal is None:
            return Leave(
                _with_screening(evolve(run, turn=evolve(run.turn, abandoned=False)), None), Failed()
            )
        turn = Turn(run.turn.number, reply=refusal, usage=run.turn.usage + used)
        return _block(run, self.name, turn)


def _with_screening(run: Run[S], screening: Screening | None) -> Run[S]:
    if run.turn.screening is screening:
        return run
    return evolve(run, turn=evolve(run.turn, screening=screening))


def _block(run: Run[S], screen: str, turn: Turn) -> Leave[S, Blocked]:
    """Leave with the refusal in `turn` as the reply, and without the blocked messages."""
    return Leave(evolve(withhold(run, screen), turn=turn), Blocked())


def _answer_of(agent: str, content: str) -> AnswerChecked | Failure:
    """Return the verdict that an agent gave as JSON, or the failure to read one."""
    try:
        value: object = json.loads(content)
    except (ValueError, RecursionError):
        value = content
    match value:
        case bool(passed):
            return AnswerChecked(passed)
        case {"passed": bool(passed), "answer": str(refusal)}:
            return AnswerChecked(passed, refusal)
        case {"passed": bool(passed), "answer": None} | {"passed": bool(passed)}:
            return AnswerChecked(passed)
        case _:
            pass
    expected = "an answer of True or False, or with `passed` (bool) and perhaps `answer` (text)"
    found = f"screen {agent!r}: expected {expected}, found {content!r:.80}"
    return Failure("ConfigError", f"{found}. Fix: give the agent output_type=bool")
