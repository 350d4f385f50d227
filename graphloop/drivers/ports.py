"""What a driver needs of the world, in one value: models, tools, callbacks, a human, a clock."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from pydantic_core import to_json

from ..effects import AskHuman
from ..events import Answer
from ..providers.base import Provider
from ..run import Run
from ..stores.base import Store
from ..tools import Toolbox
from ..values import Reply

__all__ = ["Approval", "Approver", "Callback", "Ports", "Price", "unpriced"]

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Approval:
    """A human's answer about one call.

    `arguments` replaces the call's when not empty: JSON text, or a mapping that becomes it.
    """

    approved: bool
    reason: str = ""
    arguments: str | Mapping[str, object] = ""

    @property
    def edit(self) -> str:
        """The arguments to run instead, as JSON text; empty for the call's own."""
        edit = self.arguments
        if isinstance(edit, str):
            return edit
        return to_json(edit).decode() if edit else ""


Approver: TypeAlias = Callable[[AskHuman, Run[S]], Awaitable[Approval]]
Callback: TypeAlias = Callable[[Run[S]], Awaitable[Answer]]
Price: TypeAlias = Callable[[Reply], float | None]


def unpriced(_: Reply) -> float | None:
    """Price nothing."""
    return None


@dataclass(frozen=True, kw_only=True)
class Ports(Generic[S]):
    """Everything a run reaches through its driver.

    Args:
        store: where the journal goes.
        models: the models by label.
        toolbox: the tools that can run here.
        callbacks: the user's functions, by the name that `Invoke` gives them.
        approve: who answers `AskHuman`; None parks the run instead.
        price: what a reply cost, in US dollars.
        clock: seconds since the epoch; the only time a run ever sees.
    """

    store: Store
    models: Mapping[str, Provider]
    toolbox: Toolbox
    callbacks: Mapping[str, Callback[S]] = field(default_factory=dict[str, Callback[S]])
    approve: Approver[S] | None = None
    price: Price = unpriced
    clock: Callable[[], float] = time.time
