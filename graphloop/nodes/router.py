"""router: a node that leaves by the outcome that the state names, or that a model chooses.

The model must call the tool `route`, whose one argument is the name of a route. The node leaves by
`Unrouted` if the choice is missing, cut short, unreadable or unknown, or if two choices differ. So
a failed choice never leads to a route at random.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Literal, TypeVar, cast

from ..contract import BROKEN, Contract
from ..conversation import clear_ending
from ..effects import Effect
from ..errors import ConfigError
from ..events import EffectFailed, Event, ModelReplied
from ..node_protocol import Leave, Reaction, Wait
from ..outcomes import LIBRARY_OUTCOMES, Aborted, Failed, Outcome, Unrouted, outcome_name
from ..run import Ending, EndReason, Run, ended_by
from ..values import Reply, ToolSpec
from .forced_choice import choices, forced_choice
from .frozen_fields import FrozenFields

__all__ = ["Router"]

S = TypeVar("S")

OWN: Final = (Unrouted, Failed, Aborted)


@dataclass(frozen=True)
class Router(FrozenFields):
    """Choose one of several outcomes: by a field of the state, or by asking a model once.

    Args:
        routes: the outcomes to choose from, each with a description that the model reads.
        prompt: the question to the model, sent as a user message after the conversation.
        name: the node's name.
        model: the label of the model to ask; empty for the run's own model.
        by: the field of the state whose value is the name of a route (a text, or an enum of texts);
            then no model is asked. Empty to ask the model.

    Raises:
        ConfigError: there is no route; or a route is no outcome type without fields, has no
            description, or has the name of another route or of a library outcome.
    """

    routes: Mapping[type[Outcome], str] = field(hash=False)
    prompt: str = ""
    name: str = "router"
    model: str = ""
    by: str = ""
    kind: Literal["check"] = "check"

    def __post_init__(self) -> None:
        """Check the routes, and copy the mapping, so that later changes of it have no effect."""
        super().__post_init__()
        _check_routes(self.routes)
        if bool(self.prompt) == bool(self.by):
            raise ConfigError(
                f"node {self.name!r}: expected `prompt`, the question to a model, or `by`, a field "
                f"of the state, found {self.prompt!r:.40} and {self.by!r}. Fix: give one of them"
            )
        object.__setattr__(self, "routes", dict(self.routes))

    @property
    def outcomes(self) -> frozenset[type[Outcome]]:
        """The routes, plus `Unrouted`, `Failed` and `Aborted`."""
        return frozenset((*self.routes, *OWN))

    @property
    def contract(self) -> Contract:
        """Promises for the proofs: a visit asks at most one model, and changes nothing."""
        return Contract(
            moves={Failed: BROKEN, Aborted: BROKEN},
            model_calls=0 if self.by else 1,
            reads=frozenset({self.by} if self.by else ()),
        )

    @property
    def tool(self) -> ToolSpec:
        """The tool `route` that the model must call, with the routes in its description."""
        # Sorted, so that equal routers send equal requests, whatever order their routes have.
        named = dict(sorted((outcome_name(route), words) for route, words in self.routes.items()))
        listed = "\n".join(f"- {name}: {words}" for name, words in named.items())
        route = {"type": "string", "enum": list(named), "description": "The route's name."}
        parameters = {
            "type": "object",
            "properties": {"route": route},
            "required": ["route"],
            "additionalProperties": False,
        }
        return ToolSpec("route", f"Choose one route:\n{listed}", json.dumps(parameters))

    def enter(self, run: Run[S], /) -> Reaction[S, Outcome]:
        """Leave by the route that the state names, or request the model's choice of a route."""
        if self.by:
            return Leave(clear_ending(run), self._outcome_named(_value_of(run.state, self.by)))
        asked = forced_choice(run, self.tool, self.prompt, origin=self.name, model=self.model)
        return Wait(run, (asked,))

    def on(self, run: Run[S], event: Event, answered: Effect | None, /) -> Reaction[S, Outcome]:
        """Leave by the route that the model chose, or by `Unrouted`."""
        match event:
            case ModelReplied(reply=reply):
                return Leave(clear_ending(run), self._outcome_of(reply))
            case EffectFailed(failure=failure):
                ending = Ending(EndReason.ERROR, failure=failure)
                return Leave(ended_by(run, ending), Failed())
            case _:
                return Leave(run, Aborted())

    def _outcome_of(self, reply: Reply) -> Outcome:
        chosen: set[str | None] = set()
        for choice in choices(reply, self.tool):
            match choice:
                case {"route": str(name)}:
                    chosen.add(name)
                case _:
                    chosen.add(None)
        return self._outcome_named(chosen.pop() if len(chosen) == 1 else None)

    def _outcome_named(self, name: object) -> Outcome:
        """Return the outcome of the route with this name; `Unrouted` if there is none."""
        named = {outcome_name(route): route for route in self.routes}
        route = named.get(name) if isinstance(name, str) else None
        return Unrouted() if route is None else route()


def _value_of(state: object, name: str) -> object:
    """Return the value of a state's field; that of an enum's member is the text it stands for."""
    if isinstance(state, Mapping):
        # isinstance leaves the types of keys and values open.
        found = cast("Mapping[str, object]", state).get(name)
    else:
        found = cast("object", getattr(state, name, None))
    return cast("object", found.value) if isinstance(found, Enum) else found


def _check_routes(routes: Mapping[type[Outcome], str]) -> None:
    """Raise ConfigError for malformed routes; code without a type checker may pass any value."""
    if not isinstance(routes, Mapping) or not routes:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(
            f"expected `routes` to map outcome types to what each is for, found {routes!r:.80}"
        )
    known = dict.fromkeys(LIBRARY_OUTCOMES, "is an outcome of graphloop's own nodes")
    for route, words in routes.items():
        if not isinstance(route, type) or not issubclass(route, Outcome):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(
                f"expected a route to be a type derived from Outcome, found {route!r:.80}"
            )
        try:
            route()
        except TypeError as error:
            raise ConfigError(f"a route is an outcome without fields to fill: {error}") from error
        name = next((one for one, its in LIBRARY_OUTCOMES.items() if issubclass(route, its)), "")
        name = name or outcome_name(route)
        if name in known:
            raise ConfigError(f"a route is named {name!r}, which {known[name]}: rename the class")
        if not isinstance(words, str) or not words.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(
                f"expected words that say what route {name!r} is for, found {words!r:.80}"
            )
        known[name] = "is another route"
