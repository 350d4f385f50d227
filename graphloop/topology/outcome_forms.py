"""Outcomes by name: those of the library, and routes, which are made of their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, cast, final

from ..errors import ConfigError
from ..outcomes import LIBRARY_OUTCOMES, Outcome, outcome_name
from ..route_outcomes import route_outcome
from .forms import Data, Reading, Schema, Text, Unwritable, Whole, Writing, put_off
from .problems import Misread
from .record import mapping_of
from .table import ELSE
from .tree import Value

__all__ = [
    "NAME",
    "CapsForm",
    "LeftByForm",
    "OutcomeForm",
    "RoutesForm",
    "outcome_of",
]

Caps: TypeAlias = tuple[tuple[type[Outcome], int], ...]

NAME: Final[Schema] = {"type": "string", "pattern": "^[a-z][a-z0-9]*(_[a-z][a-z0-9]*)*$"}


def outcome_of(name: str) -> type[Outcome]:
    """Return the outcome type of a name.

    Raises:
        ConfigError: the name is not in snake case, or means all others.
    """
    return LIBRARY_OUTCOMES[name] if name in LIBRARY_OUTCOMES else _route_of(name)


def _route_of(name: str) -> type[Outcome]:
    if name == ELSE:
        raise ConfigError(f"{name!r} stands for the rest of a row, no outcome: name it otherwise")
    return route_outcome(name)


@final
@dataclass(frozen=True)
class OutcomeForm:
    """The name of an outcome."""

    def read(self, value: Value, to: Reading) -> type[Outcome]:
        """Return the type."""
        name = Text().read(value, to)
        try:
            return outcome_of(name)
        except ConfigError as error:
            fix = "write a name like 'technical_support'."
            raise to.complaints.misread(value.mark, f"{error}.", fix) from error

    def write(self, value: object, to: Writing) -> Data:
        """Return the name."""
        if isinstance(value, type) and issubclass(value, Outcome):
            name = outcome_name(value)
            try:
                if outcome_of(name) is value:
                    return name
            except ConfigError:
                pass
        raise Unwritable(
            f"the outcome {value!r:.80} is a class of your own, which no file can name: name the "
            "route with a text, or register the node"
        )

    @property
    def schema(self) -> Schema:
        """The JSON Schema of a name."""
        return NAME


@final
@dataclass(frozen=True)
class LeftByForm:
    """The name of an outcome of a node that stands beside it, which knows the type."""

    def read(self, value: Value, to: Reading) -> str:
        """Return the name."""
        return Text(filled=True).read(value, to)

    def write(self, value: object, to: Writing) -> Data:
        """Return the name."""
        if isinstance(value, type) and issubclass(value, Outcome):
            return outcome_name(value)
        raise Unwritable(f"{value!r:.80} is no outcome type")

    @property
    def schema(self) -> Schema:
        """The JSON Schema of a name."""
        return {"type": "string", "pattern": r"\S"}


@final
@dataclass(frozen=True)
class RoutesForm:
    """Outcomes, and what each is for."""

    def read(self, value: Value, to: Reading) -> dict[type[Outcome], str]:
        """Return the routes."""
        routes: dict[type[Outcome], str] = {}
        failed = False
        for entry in mapping_of(value, "`routes`", to):
            try:
                words = Text(filled=True).read(entry.value, to)
                routes[_route_of(entry.key)] = words
            except Misread:
                failed = True
            except ConfigError as error:
                fix = "write a name like 'technical_support'."
                to.complaints.note(entry.mark, f"{error}.", fix)
                failed = True
        put_off(failed=failed)
        return routes

    def write(self, value: object, to: Writing) -> Data:
        """Return the routes by name."""
        # The node has looked at what is in it.
        routes = cast("Mapping[type[Outcome], str]", value)
        return {
            str(OutcomeForm().write(route, to)): Text(filled=True).write(words, to)
            for route, words in routes.items()
        }

    @property
    def schema(self) -> Schema:
        """The JSON Schema of the routes."""
        return {
            "type": "object",
            "propertyNames": NAME,
            "additionalProperties": Text(filled=True).schema,
            "minProperties": 1,
        }


@final
@dataclass(frozen=True)
class CapsForm:
    """Outcomes, and how often each is taken at most."""

    def read(self, value: Value, to: Reading) -> Caps:
        """Return the caps."""
        caps: dict[type[Outcome], int] = {}
        failed = False
        for entry in mapping_of(value, "`caps`", to):
            try:
                caps[outcome_of(entry.key)] = Whole(0).read(entry.value, to)
            except Misread:
                failed = True
            except ConfigError as error:
                to.complaints.note(entry.mark, f"{error}.", "write a name like 'rejected'.")
                failed = True
        put_off(failed=failed)
        return tuple(caps.items())

    def write(self, value: object, to: Writing) -> Data:
        """Return the caps by name."""
        caps = cast("Caps", value)  # The node has looked at what is in it.
        return {str(OutcomeForm().write(one, to)): Whole(0).write(most, to) for one, most in caps}

    @property
    def schema(self) -> Schema:
        """The JSON Schema of the caps."""
        return {
            "type": "object",
            "propertyNames": NAME,
            "additionalProperties": Whole(0).schema,
        }
