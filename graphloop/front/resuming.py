"""Taking a run up again: the run, its children at any depth, and the answers that came for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar
from uuid import uuid4

from ..drivers.pending import Pending, pending_of
from ..drivers.ports import Ports, Resumption
from ..effects import CallModel, StartRun
from ..errors import ConfigError, UnknownRun
from ..graph import Graph
from ..run import Run
from ..stores.base import Mailbox, Store
from ..tools import Toolbox
from .answers import Answers
from .journals import root_of, state_after

__all__ = [
    "descendants",
    "not_over",
    "refuse_edits",
    "refuse_unattended",
    "resumption",
    "waiting",
]

S = TypeVar("S")


async def resumption(run: Run[S], ports: Ports[S], answers: Answers) -> Resumption[S]:
    """Return a run with its children, and every answer at the run that waits for it.

    What is answered is first put into the store's mailbox, if it has one: of two answers to one
    call, whoever gives them, the first counts.

    Raises:
        ConfigError: an answer, a model or a tool does not fit; nothing has changed.
        StoreError: a journal or an answer cannot be read.
    """
    answers.refuse_wrong_types()
    for key in (*answers.approvals, *answers.tool_results):
        root, path = root_of(run.id, key)
        if root != run.id:
            raise ConfigError(
                f"run {run.id!r} is a part of run {root!r}, which takes its answers. Fix: answer "
                f"{path!r} of run {root!r}."
            )
    if run.ended and (answers.approvals or answers.tool_results):
        raise ConfigError(f"run {run.id!r} takes no answers: {_over(run)}")
    _check_resumable(run, ports)
    tree, toolboxes = await _tree(run, ports)
    below = descendants(tree)
    answers.check({one.key: one.kind for one in pending_of(run, below, None)})
    if ports.secret is not None:
        answers.refuse_unsigned()
    for one in (run, *below.values()):
        answers.refuse_bad_edits(one, toolboxes[one.id])
    if isinstance(ports.store, Mailbox):
        for key, data in answers.posts(ports.clock()):
            await ports.store.post(run.id, key, uuid4().hex, data)
        answers = Answers.of_posts(await ports.store.posted(run.id))
    return _answered(tree, answers, toolboxes, ports)


def refuse_unattended(run: Run[Any]) -> None:
    """Refuse to iterate a run that does not stop at its turns.

    Raises:
        ConfigError: it was begun by a call that does not iterate it.
    """
    if not (run.setup.attended or run.ended):
        raise ConfigError(
            f"run {run.id!r} was not begun by `iter`, so it hands no turn over: take it up by "
            "`resume` or `resume_stream`"
        )


async def not_over(known: Run[S], store: Store, graph: Graph[S]) -> None:
    """Refuse a result from which the run has gone on already.

    Raises:
        ConfigError: saying how far the run is, and what to do.
        StoreError: its journal cannot be read.
    """
    events = await store.load(known.id)
    if len(events) == known.seq:
        return
    run = state_after(graph, events)
    raise ConfigError(
        f"run {run.id!r} was resumed from this result before: "
        + (
            _over(run)
            if run.ended
            else "it waits further on. Resume it by the result that this gave, or by its id"
        )
    )


def _over(run: Run[Any]) -> str:
    how = run.ending.reason.value if run.ending is not None else "ended"
    return (
        f"it is over ({how}). Go on with the conversation by messages=[*history, *result.messages, "
        "…], of its last result"
    )


async def refuse_edits(run: Run[S], ports: Ports[S], answers: Answers) -> None:
    """Refuse edited arguments that a tool of the run, or of one below it, would not take.

    Raises:
        ConfigError: naming the approval, and what its tool says.
        StoreError: a journal cannot be read.
    """
    tree, toolboxes = await _tree(run, ports)
    for one in (run, *descendants(tree).values()):
        answers.refuse_bad_edits(one, toolboxes[one.id])


def descendants(tree: Resumption[Any]) -> dict[str, Run[Any]]:
    """Return all runs below the root of a tree, by their ids."""
    found: dict[str, Run[Any]] = {}
    for child in tree.children.values():
        found[child.run.id] = child.run
        found |= descendants(child)
    return found


async def waiting(run: Run[S], ports: Ports[S]) -> tuple[Pending, ...]:
    """Return what a run and its children wait for, as their journals tell.

    Raises:
        ConfigError: an agent that the run waits for is not here.
        StoreError: a journal cannot be read.
    """
    tree, _ = await _tree(run, ports)
    return tuple(pending_of(run, descendants(tree), ports.secret))


async def _tree(run: Run[Any], ports: Ports[Any]) -> tuple[Resumption[Any], dict[str, Toolbox]]:
    """Load the children that have begun, and the tools of each run."""
    children: dict[str, Resumption[Any]] = {}
    toolboxes = {run.id: ports.toolbox}
    for effect in run.pending.values():
        if not isinstance(effect, StartRun):
            continue
        plan = ports.children.get(effect.agent)
        if plan is None:
            raise ConfigError(
                f"run {run.id!r} waits for agent {effect.agent!r}, which is not here: resume it "
                "with the agents that it was started with"
            )
        opened = plan.open(effect, run, ports)
        try:
            events = await ports.store.load(opened.run_id)
        except UnknownRun:
            continue
        below = state_after(opened.graph, events)
        _check_resumable(below, opened.ports)
        child, boxes = await _tree(below, opened.ports)
        children[effect.key] = child
        toolboxes |= boxes
    return Resumption(run, (), children), toolboxes


def _answered(
    tree: Resumption[Any], answers: Answers, toolboxes: Mapping[str, Toolbox], ports: Ports[Any]
) -> Resumption[Any]:
    run = tree.run
    events = tuple(answers.events(run, toolboxes[run.id], ports.secret, ports.clock))
    children = {
        key: _answered(child, answers, toolboxes, ports) for key, child in tree.children.items()
    }
    return replace(tree, answers=events, children=children)


def _check_resumable(run: Run[Any], ports: Ports[Any]) -> None:
    """Refuse before anything is journaled: a run must not end over a forgotten tool."""
    if run.ended:
        return
    if run.setup.signed and ports.secret is None:
        raise ConfigError(
            f"run {run.id!r} takes signed approvals only, and there is no `approval_secret` here: "
            "resume it with the secret that it was started with"
        )
    labels = {run.setup.model} | {
        one.model for one in run.pending.values() if isinstance(one, CallModel)
    }
    for label in sorted(labels - ports.models.keys() - {""}):
        raise ConfigError(
            f"run {run.id!r} asks model {label!r}, which is not here "
            f"(here: {', '.join(map(repr, ports.models))}): resume it with that model"
        )
    missing = [
        repr(spec.name)
        for spec in run.setup.tools
        if spec.kind in {"function", "agent"} and ports.toolbox.get(spec.name) is None
    ]
    if missing:
        raise ConfigError(
            f"run {run.id!r} offers tools that are not here: {', '.join(missing)}. Resume it with "
            "them among `tools`: those that it was started with, and those that its `prepare_step` "
            "has added since"
        )
