"""The options of `@node`, checked against the annotations of the function that it decorates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from typing import Final, cast, final, get_args

from msgspec.json import schema

from ..agent import fields_of
from ..effects import AskAgent, AskModel
from ..errors import NodeDefinitionError, nearest
from ..node_protocol import Kind, OwnKind
from ..nodes import ASKS_MAX, Asks
from ..outcomes import Outcome, outcome_name
from ..spending import is_whole, positive_number
from ..tools import is_async
from .node_signature import NodeSignature

__all__ = ["NodeOptions"]

KINDS: Final[tuple[OwnKind, ...]] = get_args(OwnKind)


@final
@dataclass(frozen=True)
class NodeOptions:
    """Checks the options of one function against what it says of itself.

    Args:
        signature: what the function says.
        place: what to call it in errors.
    """

    signature: NodeSignature
    place: str

    def own_kind(self, kind: OwnKind) -> Kind:
        """Return the kind, if a function can be of it."""
        if kind not in KINDS:
            raise self._wrong(
                f"`kind` is one of {', '.join(KINDS)}; found {kind!r}",
                "the other kinds are for nodes of graphloop, which proofs rely on",
                nearest(str(kind), KINDS),
            )
        return kind

    def caps(
        self, cap: Mapping[type[Outcome], int], capped: type[Outcome] | None
    ) -> tuple[tuple[type[Outcome], int], ...]:
        """Return how often the function leaves by what, if it leaves by that at all."""
        for outcome, times in cap.items():
            self._check("cap", outcome)
            if not is_whole(times) or times < 1:
                raise self._wrong(
                    f"`cap` is a whole number of at least 1 for each outcome; found {times!r}",
                    f"write `cap={{{outcome.__name__}: 3}}`",
                )
        if capped is not None:
            self._check("capped", capped, bare=True)
            if not cap or capped in cap:
                found = "no `cap`" if not cap else f"a cap of {capped.__name__} itself"
                raise self._wrong(
                    f"`capped` is what the node leaves by instead; found {found}",
                    "cap another outcome: `cap={Again: 3}, capped=GivenUp`",
                )
        return tuple(cap.items())

    def caught(
        self, raises: Mapping[type[Exception], type[Outcome]]
    ) -> tuple[tuple[type[Exception], type[Outcome]], ...]:
        """Return what the node is left by when the function raises."""
        for error, outcome in raises.items():
            if not isinstance(error, type) or not issubclass(error, Exception):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise self._wrong(
                    f"`raises` names exception types; found {error!r}",
                    "write `raises={TimeoutError: TooSlow}`",
                )
            self._check("raises", outcome, bare=True)
        return tuple(raises.items())

    def known(self, option: str, names: Collection[str] | None) -> frozenset[str] | None:
        """Return names of fields, if the state has them."""
        if names is None:
            return None
        if isinstance(names, str):
            raise self._wrong(
                f"`{option}` is a collection of names; found the text {names!r}",
                f"write `{option}=({names!r},)`",
            )
        there = fields_of(self.signature.state)
        for name in names:
            if there is not None and name not in there:
                raise self._wrong(
                    f"`{option}` names {name!r}, which is no field of the state "
                    f"({', '.join(sorted(there)) or 'it has none'})",
                    "name its fields",
                    nearest(name, there),
                )
        return frozenset(names)

    def written(self, writes: Collection[str] | None) -> frozenset[str] | None:
        """Return the fields that the function may change: none if it returns no state."""
        if self.signature.changes:
            return self.known("writes", writes)
        if writes:
            raise self._wrong(
                "`writes` is for a function that returns a new state, found none in its annotation",
                "write `-> tuple[<outcomes>, <the state's type>]`",
            )
        return frozenset()

    def asks(self, model_calls: int | None, agents: Mapping[str, int] | None) -> Asks | None:
        """Return what the function asks for at most, if it is a generator."""
        kinds = self.signature.asks
        for option, given, kind in (
            ("model_calls", model_calls, AskModel),
            ("agents", agents, AskAgent),
        ):
            if given is not None and kind not in (kinds or ()):
                raise self._wrong(
                    f"`{option}` bounds what a generator asks for, found none of it in its "
                    "annotation",
                    f"write `-> Asking[<outcomes>]` and `yield from ask_{kind.__name__[3:].lower()}"
                    "(…)`, or leave it out",
                )
        if kinds is None:
            return None
        for what, most, least in (("model_calls", model_calls, 0), *_named(agents or {})):
            if most is not None and not (is_whole(most) and least <= most <= ASKS_MAX):
                raise self._wrong(
                    f"`{what}` is a whole number from {least} to {ASKS_MAX}; found {most!r}",
                    "say how often one visit asks at most",
                )
        if AskAgent in kinds and not agents:
            # No agent can be asked: proofs need not reckon with it.
            kinds -= {AskAgent}
        return Asks(kinds, model_calls, tuple(sorted((agents or {}).items())))

    def check_outcomes(self) -> None:
        """Refuse outcomes whose fields no journal can keep."""
        for outcome in self.signature.outcomes:
            if not fields(outcome):
                continue
            try:
                schema(outcome)
            except (TypeError, NameError) as error:
                raise self._wrong(
                    f"outcome {outcome_name(outcome)!r} has fields that cannot be kept: {error}",
                    "give it fields of plain types: str, int, tuple, a dataclass",
                ) from error

    def limit(self, timeout_s: float | None, function: Callable[..., object]) -> float | None:
        """Return the time limit, if the function can be given up."""
        if timeout_s is None:
            return None
        if self.signature.asks is not None:
            raise self._wrong(
                "`timeout_s` cannot interrupt a generator, which runs between its asks alone",
                "leave it out",
            )
        if not is_async(function):
            raise self._wrong("`timeout_s` cannot interrupt a plain function", "make it async")
        return positive_number("timeout_s", timeout_s)

    def _check(self, option: str, outcome: object, *, bare: bool = False) -> None:
        declared = self.signature.outcomes
        if not isinstance(outcome, type) or outcome not in declared:
            words = ", ".join(sorted(one.__name__ for one in declared))
            found = getattr(outcome, "__name__", repr(outcome))
            raise self._wrong(
                f"`{option}` names {found}, which its return annotation does not ({words})",
                f"write `-> … | {found}`, or name one of these",
            )
        if bare:
            try:
                cast("Callable[[], object]", outcome)()
            except TypeError as error:
                raise self._wrong(
                    f"`{option}`: {outcome!r} cannot be made without arguments",
                    "give its fields defaults",
                ) from error

    def _wrong(self, found: str, fix: str, hint: str = "") -> NodeDefinitionError:
        return NodeDefinitionError(f"{self.place}: {found}.{hint} Fix: {fix}.")


def _named(agents: Mapping[str, int]) -> list[tuple[str, int | None, int]]:
    return [(f"agents[{name!r}]", most, 1) for name, most in agents.items()]
