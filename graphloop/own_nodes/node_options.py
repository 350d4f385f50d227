"""NodeOptions: check the options of `@node` against the annotations of the function."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from typing import TypeAlias, TypeVar, cast, final

from msgspec.json import schema

from ..effects import AskAgent, AskModel
from ..errors import NodeDefinitionError, nearest
from ..nodes import REQUESTS_MAX, RequestLimits
from ..outcomes import Outcome, outcome_name
from ..spending import is_whole, positive_number
from ..states import fields_of
from ..tools import is_async
from .node_signature import NodeSignature

__all__ = ["NodeOptions"]

K = TypeVar("K")
V = TypeVar("V")

Caps: TypeAlias = tuple[tuple[type[Outcome], int], ...]
Caught: TypeAlias = tuple[tuple[type[Exception], type[Outcome]], ...]


@final
@dataclass(frozen=True)
class NodeOptions:
    """Checks the `@node` options of one function against the function's signature."""

    signature: NodeSignature

    def caps(self, cap: Mapping[type[Outcome], int] | None, capped: type[Outcome] | None) -> Caps:
        """Return pairs of an outcome and its cap, after checking that the function declares it."""
        cap = self._mapping_option("cap", cap, "cap={Again: 3}")
        for outcome in cap:
            self._check_declared("cap", outcome)
        if capped is not None:
            self._check_bare("capped", capped)
            if not cap or capped in cap:
                found = f"a cap of {capped.__name__} itself" if cap else "no `cap`"
                raise self._definition_error(
                    f"`capped`: expected a cap of another outcome, found {found}",
                    "write `cap={Again: 3}, capped=GivenUp`",
                )
        return tuple(cap.items())

    def caught(self, raises: Mapping[type[Exception], type[Outcome]] | None) -> Caught:
        """Return pairs of an exception type and the outcome for it, after checking the outcome."""
        raises = self._mapping_option("raises", raises, "raises={KeyError: Missing}")
        for outcome in raises.values():
            self._check_bare("raises", outcome)
        return tuple(raises.items())

    def known(self, option: str, names: Collection[str] | None) -> frozenset[str] | None:
        """Return an option's field names; raise an error if the state lacks one of them."""
        known = fields_of(self.signature.state)
        for name in names or ():
            if known is not None and name not in known:
                listed = ", ".join(sorted(known)) or "none"
                raise self._definition_error(
                    f"`{option}`: expected fields of the state ({listed}), found {name!r}."
                    f"{nearest(name, known)}",
                    "name its fields",
                )
        return None if names is None else frozenset(names)

    def written(self, writes: Collection[str] | None) -> frozenset[str] | None:
        """Return the state fields that the function may change; None for all fields."""
        if self.signature.changes:
            return self.known("writes", writes)
        if writes:
            raise self._definition_error(
                "`writes`: expected a function that returns a new state, found none in its "
                "annotation",
                "write `-> tuple[<outcomes>, <the state's type>]`",
            )
        return frozenset()

    def asks(
        self, model_calls: int | None, agents: Mapping[str, int] | None
    ) -> RequestLimits | None:
        """Return a generator's limits on model calls and agent runs; None for a plain function."""
        agents = self._mapping_option("agents", agents, 'agents={"writer": 2}')
        kinds = self.signature.asks
        for option, is_set, kind in (
            ("model_calls", model_calls is not None, AskModel),
            ("agents", bool(agents), AskAgent),
        ):
            if is_set and kind not in (kinds or ()):
                raise self._definition_error(
                    f"`{option}`: expected a generator that yields {kind.__name__}, found none in "
                    "its annotation",
                    "write `-> Asking[<outcomes>]` and `yield from "
                    f"ask_{kind.__name__[3:].lower()}(…)`, or leave it out",
                )
        if kinds is None:
            return None
        limits = [(f"agents[{name!r}]", times, 1) for name, times in agents.items()]
        if model_calls is not None:
            limits.append(("model_calls", model_calls, 0))
        for option, times, least in limits:
            if not is_whole(times) or not least <= times <= REQUESTS_MAX:
                raise self._definition_error(
                    f"`{option}`: expected a whole number from {least} to {REQUESTS_MAX}, found "
                    f"{times!r}",
                    "say how often one visit asks at most",
                )
        if not agents:
            kinds -= {AskAgent}  # Without names, the proofs count no agent.
        return RequestLimits(kinds, model_calls, tuple(sorted(agents.items())))

    def check_outcomes(self) -> None:
        """Raise an error if an outcome has fields that a journal cannot store."""
        for outcome in self.signature.outcomes:
            if not fields(outcome):
                continue
            try:
                schema(outcome)
            except (TypeError, NameError) as error:
                raise self._definition_error(
                    f"outcome {outcome_name(outcome)!r} has fields that no journal can keep: "
                    f"{error}",
                    "give it fields of plain types: str, int, tuple, a dataclass",
                ) from error

    def limit(self, timeout_s: float | None, function: Callable[..., object]) -> float | None:
        """Return the time limit; raise an error if the function is not asynchronous."""
        if timeout_s is None:
            return None
        if not is_async(function):
            raise self._definition_error(
                "`timeout_s`: expected an asynchronous function, found one that cannot be "
                "interrupted",
                "make it async, or leave the limit out",
            )
        return positive_number("timeout_s", timeout_s)

    def _mapping_option(
        self, option: str, value: Mapping[K, V] | None, example: str
    ) -> Mapping[K, V]:
        """Return an option's mapping; empty for None."""
        if value is not None and not isinstance(cast("object", value), Mapping):
            raise self._definition_error(
                f"`{option}`: expected a mapping such as {example}, found {value!r:.80}",
                f"write `{example}`",
            )
        return value or {}

    def _check_declared(self, option: str, outcome: type[Outcome]) -> None:
        declared = self.signature.outcomes
        if outcome not in declared:
            words, found = ", ".join(sorted(map(_outcome_label, declared))), _outcome_label(outcome)
            raise self._definition_error(
                f"`{option}`: expected an outcome of the return annotation ({words}), found "
                f"{found}",
                f"write `-> … | {found}`, or name one of these",
            )

    def _check_bare(self, option: str, outcome: type[Outcome]) -> None:
        """Raise an error if an outcome is not declared, or needs constructor arguments."""
        self._check_declared(option, outcome)
        try:
            cast("Callable[[], object]", outcome)()
        except TypeError as error:
            raise self._definition_error(
                f"`{option}`: {_outcome_label(outcome)} cannot be made without arguments",
                "give its fields defaults",
            ) from error

    def _definition_error(self, problem: str, fix: str) -> NodeDefinitionError:
        name = self.signature.name
        end = "" if problem.endswith("?") else "."
        return NodeDefinitionError(f"node function {name!r}: {problem}{end} Fix: {fix}.")


def _outcome_label(outcome: object) -> str:
    return getattr(outcome, "__name__", repr(outcome))
