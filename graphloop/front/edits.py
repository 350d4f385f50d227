"""Arguments in place of a call's own, held against the schema that its run noted of the tool.

Whoever answers by the store alone has no tools; what they take stands in the journal.
"""

from __future__ import annotations

from ..drivers.asks import unfit
from ..errors import ConfigError
from ..events import Started, Steered
from ..stores.base import Ask, Store

__all__ = ["check_edit", "parameters_in"]


def check_edit(name: str, parameters: str, edit: str) -> None:
    """Refuse arguments that a tool does not take.

    The schema that the run noted is enough for it. A schema that is none is left to the run, which
    has the tool itself and checks every edit again.

    Args:
        name: the tool.
        parameters: what it takes, as JSON Schema text; empty if that is not known.
        edit: the arguments, as JSON text.

    Raises:
        ConfigError: they do not fit; the message says where, and that an edit is all arguments.
    """
    problem = unfit(name, parameters, edit)
    if problem is not None:
        raise ConfigError(problem)


async def parameters_in(store: Store, run_id: str, ask: Ask) -> str:
    """Return what an edit has to be, as what is asked says, or the journal of the run that asks.

    Empty if neither tells.
    """
    if ask.takes:
        return ask.takes
    path = ask.key.rpartition("/")[0]
    events = await store.load(f"{run_id}/{path}" if path else run_id)
    setups = [
        event.setup
        for event in events
        if isinstance(event, Started | Steered) and event.setup is not None
    ]
    tools = setups[-1].tools if setups else ()
    return next((one.parameters for one in tools if one.name == ask.name), "")
