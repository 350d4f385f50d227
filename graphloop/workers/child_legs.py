"""Child legs: opens a child run that a worker drives, in its own name, through the runs above it.

The worker reads the root run, finds in it the start of the child, and opens the child as the root's
driver would; and so on, down to the child. So the child's gates, rules, secrets, budget and `deps`
are those that it has beside its parent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ..agent import (
    Answers,
    RunHandle,
    RunStream,
    RunTerms,
    opened_child,
    path_of,
    resumption,
    spent_by,
    state_after,
    typed,
)
from ..driver import AsyncDriver, ChildRun
from ..effects import StartRun
from ..errors import ConfigError
from ..events import Event
from ..graph import NodeGraph
from ..replay import replay_steps
from ..run import Run

__all__ = ["resume_child"]

UNWANTED: Final = "not needed any more"


class _Start(NamedTuple):
    """The start of a child run: its effect, the parent, and whether the parent waits for it."""

    effect: StartRun
    parent: Run[Any]
    is_awaited: bool


def resume_child(
    terms: RunTerms[Any], run_id: str, approvals: Mapping[str, object], **deps: object
) -> RunStream[Any, Any]:
    """Return the stream of a child run that its worker resumes without its parent.

    A child run for which its parent does not wait any more is ended.

    Args:
        terms: the terms that the root run was started on.
        run_id: the id of the child run.
        approvals: denials of the child's expired questions.
        deps: the `deps` of the root run; nothing for an agent without.
    """

    async def open_run() -> RunHandle[Any]:
        if terms.deps_needs or deps:
            terms.check_deps(deps)
        opened, events, is_awaited = await _opened(terms, run_id, deps.get("deps"))
        known = state_after(opened.graph, events)
        tree = await resumption(known, opened.ports, Answers(approvals))
        driver, below = AsyncDriver(opened.graph, opened.ports, known.state), tree.descendants
        if not is_awaited or tree.cancelled is not None:
            driver.abort(UNWANTED if tree.cancelled is None else tree.cancelled)
        return RunHandle(
            opened.graph,
            opened.ports,
            driver,
            driver.resume(tree.run, tree.answers, tree.children, seen=tree.seen),
            known.id,
            spent_by(tree.run, below),
            len(tree.run.record.steps),
            children=below,
        )

    return RunStream(open_run)


async def _opened(
    terms: RunTerms[Any], run_id: str, deps: object
) -> tuple[ChildRun[Any], Sequence[Event], bool]:
    """Return a child run as its parent opens it, its events, and whether it is waited for."""
    store = terms.shared.stored()
    graph, ports = terms.graph, terms.ports(store, (), deps)
    events = await store.load(run_id.partition("/")[0])
    opened: ChildRun[Any] | None = None
    is_awaited = True
    for key in path_of(run_id):
        start = _start_of(graph, events, key)
        opened = opened_child(start.effect, start.parent, ports)
        graph, ports, is_awaited = opened.graph, opened.ports, is_awaited and start.is_awaited
        events = await store.load(opened.run_id)
    assert opened is not None, "the id of a child run has a path"
    return opened, events, is_awaited


def _start_of(graph: NodeGraph[Any], events: Sequence[Event], key: str) -> _Start:
    """Return the start of the child run `key`, from the last time at which it was pending.

    Raises:
        ConfigError: the parent's journal starts no such child run.
    """
    steps = [*replay_steps(graph, typed(graph, events))]
    for taken in reversed(steps):
        run = taken.run
        for effect in run.pending.values():
            if isinstance(effect, StartRun) and effect.key == key:
                return _Start(effect, run, taken is steps[-1] and effect.id not in run.abandoned)
    raise ConfigError(
        f"run '{steps[0].run.id}/{key}': expected a child run that its parent starts, found no "
        "start in the parent's journal. Fix: delete the run."
    )
