"""Calling a node's function, once, and checking what it answered before that becomes a fact."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, fields
from typing import Any, cast, final

from msgspec.json import encode

from ..asks import Note
from ..drivers.callback_results import check_kind
from ..errors import ConfigError, NotDeterministic
from ..events import Asked, Left
from ..outcomes import Outcome, outcome_name
from ..run import Run
from ..tool_execution import TooLate, within
from .differences import changed_fields, same_state
from .generator_call import Returned, played
from .node_context import NodeContext
from .node_signature import NodeSignature
from .states import lent

__all__ = ["NodeCall"]


@final
@dataclass(frozen=True)
class NodeCall:
    """How a node's function is called.

    Args:
        function: the function.
        signature: what it takes and returns.
        writes: the fields of the state that it may change; None for any.
        timeout_s: after how many seconds it is given up; None for never.
        raises: what the node is left by when the function raises one of these.
    """

    function: Callable[..., object]
    signature: NodeSignature
    writes: frozenset[str] | None = None
    timeout_s: float | None = None
    raises: tuple[tuple[type[Exception], type[Outcome]], ...] = ()

    async def __call__(self, run: Run[Any]) -> Left | Asked:
        """Call the function in the run as it stands.

        Raises:
            ConfigError: it answered what its annotations do not say.
            NotDeterministic: a generator does not ask what it asked before.
            TimeoutError: it took too long.
            Exception: what the function raised, unless an outcome was declared for it.
        """
        state: object = run.state
        given = lent(state)
        context = NodeContext.of(run, run.node)
        arguments = (given, context) if self.signature.context else (given,)
        try:
            answer = await self._answer(run, arguments)
        except NotDeterministic:
            raise
        except Exception as error:
            outcome = next((one for kind, one in self.raises if isinstance(error, kind)), None)
            if outcome is None:
                raise
            return Left(outcome.__name__, notes=tuple(context.notes or ()))
        if isinstance(answer, Asked):
            # What will be returned may be changed on the way: each time it is lent anew.
            if not self.signature.changes:
                self._check_untouched(given, state)
            return answer
        return self._left(answer, state, given, tuple(context.notes or ()))

    async def _answer(self, run: Run[Any], given: tuple[object, ...]) -> object:
        name = self.signature.name
        if self.signature.asks is not None:
            exchanges = run.turn.dialogue.exchanges if run.turn.dialogue is not None else ()
            found = played(self.function(*given), exchanges, name)
            return found.value if isinstance(found, Returned) else found
        try:
            return await within(self.timeout_s, self._called(given), f"node {name!r}")
        except TooLate as error:
            seconds = f"{self.timeout_s:g}"
            raise TimeoutError(f"node {name!r} gave no answer within {seconds} seconds") from error

    async def _called(self, given: tuple[object, ...]) -> object:
        answer = self.function(*given)
        if isinstance(answer, Awaitable):
            return await cast("Awaitable[object]", answer)  # isinstance cannot tell of what
        return answer

    def _left(self, answer: object, state: object, given: object, notes: tuple[Note, ...]) -> Left:
        """Return the answer as a fact."""
        # isinstance cannot tell what is in it.
        pair = cast("tuple[object, ...]", answer) if isinstance(answer, tuple) else (answer,)
        outcome = pair[0] if len(pair) in (1, 2) else pair
        if not isinstance(outcome, Outcome) or type(outcome) not in self.signature.outcomes:
            raise self._unfit(outcome)
        own = encode(outcome).decode() if fields(outcome) else ""
        if len(pair) == 1:
            self._check_untouched(given, state)
            return Left(type(outcome).__name__, None, own, notes=notes)
        self._check_state(pair[1], state)
        return Left(type(outcome).__name__, pair[1], own, changed=True, notes=notes)

    def _check_untouched(self, given: object, state: object) -> None:
        if not same_state(given, state):
            raise ConfigError(
                f"node {self.signature.name!r} changed its state in place, where no journal "
                "sees it: return it with the outcome, and write "
                "`-> tuple[<outcomes>, <its type>]`"
            )

    def _check_state(self, new: object, old: object) -> None:
        place, kind = f"node {self.signature.name!r}", self.signature.state
        if not self.signature.changes:
            raise ConfigError(
                f"{place} returned a new state, which its annotation does not say: write "
                "`-> tuple[<outcomes>, <the state's type>]`"
            )
        check_kind(new, kind, f"{place} returns")
        if self.writes is None:
            return
        changed = changed_fields(kind, old, new, self.writes)
        if changed:
            raise ConfigError(
                f"{place} writes {_listed(self.writes)}, as it declares; it changed "
                f"{_listed(changed)}: add it to `writes=`, or leave it as it is"
            )

    def _unfit(self, found: object) -> ConfigError:
        place = f"node {self.signature.name!r}"
        words = ", ".join(sorted(one.__name__ for one in self.signature.outcomes))
        if isinstance(found, type) and issubclass(found, Outcome):
            return ConfigError(
                f"{place} returned the class {found.__name__}: return one, `{found.__name__}()`"
            )
        if isinstance(found, Outcome):
            return ConfigError(
                f"{place} returned {outcome_name(type(found))!r}, which its annotation does not "
                f"name: add {type(found).__name__} to it, or return one of {words}"
            )
        none = ": is there a way through it without a `return`?" if found is None else ""
        return ConfigError(f"{place} returns one of {words}; found {found!r:.80}{none}")


def _listed(names: Collection[str]) -> str:
    return ", ".join(map(repr, sorted(names))) or "nothing"
