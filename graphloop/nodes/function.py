"""function: a node that calls one function of the user's as an effect.

The function returns an outcome and perhaps a new state. The journal keeps both, so a replay never
calls the function again. Users write such a node with `@graphloop.node`, which registers the
function. Without the decorator, the node names a function among the run's `callbacks`. A generator
function makes requests before its outcome; the journal keeps each request and each answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar, cast

from msgspec import DecodeError, ValidationError
from msgspec.json import decode

from ..contract import BROKEN, Cap, ChildContract, Contract, Moves
from ..conversation import add_notes, unanswered
from ..effects import AskPerson, Effect, Invoke, Request
from ..events import CallbackReturned, EffectFailed, Event, Failure, NodeReturned, RequestYielded
from ..node_protocol import Kind, Leave, Reaction, Wait, wrong_answer
from ..outcomes import Aborted, Failed, Outcome, outcome_name
from ..run import Ending, EndReason, Run, ended_by, evolve, with_count
from ..spending import whole_number
from .dialogue import RequestLimits, heard_back, over, requested, with_dialogue

__all__ = ["Function"]

S = TypeVar("S")


@dataclass(frozen=True)
class Function:
    """Call a function, and leave by the outcome that it returns.

    Besides its own outcomes the node has `Aborted`, and `Failed` for a function that raises or
    returns an undeclared outcome.

    Args:
        name: the node's name.
        leaves_by: the outcomes that the function returns.
        callback: the name under which the function is invoked; by default the node's name.
        kind: the kind of the node, as for any node.
        caps: pairs of an outcome and the most times that the node leaves by it in a whole run; a
            node that wraps this one has its own count.
        capped: the outcome to leave by instead of an outcome whose cap is reached; if None, the
            run ends in an error.
        reads: the fields of the state that the function reads; None if that is not known.
        writes: the fields of the state that the function writes; None if that is not known.
        stateless: the outcomes, besides failures, that may come without a new state.
        asks: the requests that a generator may make; None for a plain function.

    Raises:
        ConfigError: a cap is not a whole number of at least 0.
    """

    name: str
    leaves_by: frozenset[type[Outcome]]
    callback: str = ""
    kind: Kind = "pure"
    caps: tuple[tuple[type[Outcome], int], ...] = ()
    capped: type[Outcome] | None = None
    reads: frozenset[str] | None = None
    writes: frozenset[str] | None = None
    asks: RequestLimits | None = None
    stateless: frozenset[type[Outcome]] = frozenset()

    def __post_init__(self) -> None:
        """Set the default callback name, sort the caps, and check their numbers."""
        object.__setattr__(self, "callback", self.callback or self.name)
        caps = sorted(self.caps, key=lambda cap: outcome_name(cap[0]))
        object.__setattr__(self, "caps", tuple(caps))
        for outcome, times in caps:
            whole_number(f"the cap of {outcome_name(outcome)!r}", times, least=0)

    @property
    def outcomes(self) -> frozenset[type[Outcome]]:
        """The function's own outcomes, plus `Failed` and `Aborted`."""
        return self.leaves_by | {Failed, Aborted}

    @property
    def contract(self) -> Contract:
        """Promises for the proofs: no tools, the caps, and only the declared requests."""
        asks, writing = self.asks, self.leaves_by - self.stateless - {Failed, Aborted}
        # A function may declare `Failed` or `Aborted` itself; then the run continues after it.
        breaking = frozenset({Failed, Aborted}) - self.leaves_by
        promised = Contract(
            caps={outcome: Cap(times) for outcome, times in self.caps},
            moves=dict.fromkeys(breaking, BROKEN),
            reads=self.reads,
            writes=self.writes if self.writes is None else dict.fromkeys(writing, self.writes),
            functions=(self.callback,),
        )
        if asks is None:
            return promised
        told: frozenset[Moves] = frozenset({"note", "perhaps"})
        return replace(
            promised,
            moves=dict.fromkeys(self.outcomes, told),
            model_calls=asks.models,
            children=tuple([ChildContract(name, runs=most) for name, most in asks.agents]),
            asks=AskPerson in asks.kinds,
        )

    def enter(self, run: Run[S], /) -> Reaction[S, Outcome]:
        """Request the call of the function; a generator starts with an empty dialogue."""
        return self._call_function(run if self.asks is None else with_dialogue(run))

    def on(self, run: Run[S], event: Event, answered: Effect | None, /) -> Reaction[S, Outcome]:
        """Leave by the function's outcome, or make the request that its generator yielded."""
        match event:
            case CallbackReturned(answer=NodeReturned() as returned):
                return self._leave_by(over(run), returned)
            case CallbackReturned(answer=RequestYielded(ask=ask)) if self.asks is not None:
                return self._make_request(run, ask, self.asks)
            case CallbackReturned(answer=answer):
                return _fail(run, wrong_answer(self.callback, NodeReturned, answer))
            case EffectFailed() if isinstance(answered, Invoke):
                return _fail(run, event.failure)
            case _:
                heard = heard_back(run, event, answered) if run.turn.dialogue is not None else None
                return Leave(over(run), Aborted()) if heard is None else self._call_function(heard)

    def _call_function(self, run: Run[S]) -> Wait[S]:
        return Wait(run, (Invoke(run.next_effect, self.callback),))

    def _make_request(self, run: Run[S], ask: Request, asks: RequestLimits) -> Reaction[S, Outcome]:
        """Make the generator's request, if the node's declared requests and the budget allow it."""
        assert run.turn.dialogue is not None, "a node that may ask enters with a dialogue"
        refused = asks.refusal(ask, run.turn.dialogue.exchanges)
        if refused is not None:
            return self._refuse(run, refused)
        if spent := run.setup.budget.tripped(run.spent):
            return Leave(ended_by(over(run), Ending(EndReason.BUDGET, spent)), Failed())
        request = requested(run, ask, self.name)
        if isinstance(request, Failure):
            return self._refuse(run, request)
        waiting, effect = request
        return self._call_function(waiting) if effect is None else Wait(waiting, (effect,))

    def _refuse(self, run: Run[S], failure: Failure) -> Reaction[S, Outcome]:
        return _fail(run, evolve(failure, message=f"node {self.name!r}: {failure.message}"))

    def _leave_by(self, run: Run[S], returned: NodeReturned) -> Reaction[S, Outcome]:
        kind = next((one for one in self.leaves_by if one.__name__ == returned.outcome), None)
        if kind is None:
            known = ", ".join(sorted(one.__name__ for one in self.leaves_by))
            found = f"{self.callback!r} left by {returned.outcome!r}; the outcomes are {known}"
            return _fail(run, Failure("ConfigError", found))
        try:
            # An outcome class without fields need not be a dataclass, so it is not decoded.
            outcome = decode(returned.fields, type=kind) if returned.fields else kind()
        except (DecodeError, ValidationError, TypeError) as error:
            found = (
                f"{self.callback!r} left by {returned.outcome!r}, whose fields do not fit: {error}"
            )
            return _fail(run, Failure("ConfigError", found))
        if returned.notes:
            if why := unanswered(run):
                return self._refuse(run, Failure("ConfigError", why))
            run = add_notes(run, returned.notes)
        if returned.changed:
            # The codec, or the function's annotation, has checked the state's type.
            run = evolve(run, state=cast("S", returned.state))
        return self._count_outcome(run, outcome)

    def _count_outcome(self, run: Run[S], outcome: Outcome) -> Reaction[S, Outcome]:
        times = dict(self.caps).get(type(outcome))
        if times is None:
            return Leave(run, outcome)
        word = outcome_name(type(outcome))
        # Each node of the table has its own cap, even if several wrap the same function.
        within = "" if run.node == self.name else f"{run.node}/"
        key = f"outcome:{within}{self.name}.{word}"
        taken = run.counters.by_node.get(key, 0)
        if taken < times:
            return Leave(with_count(run, key, taken + 1), outcome)
        if self.capped is not None:
            return Leave(run, self.capped())
        found = f"node {run.node!r} may leave by {word!r} {times} times in a run, and did"
        return _fail(run, Failure("CapReached", f"{found}: raise its cap, or give it `capped`"))


def _fail(run: Run[S], failure: Failure) -> Reaction[S, Outcome]:
    return Leave(ended_by(over(run), Ending(EndReason.ERROR, failure=failure)), Failed())
