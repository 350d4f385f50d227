"""Resumption: load a stored run with its child runs, and assign answers to the runs that wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

from ..driver import NOT_NEEDED, ChildRun, Elsewhere, Pending, Ports, Resumption, pending_of
from ..effects import CallModel, StartRun
from ..errors import ConfigError, IllegalEvent, UnknownRun
from ..events import Event, Started
from ..graph import NodeGraph
from ..replay import replay_steps
from ..rules import TemporalRule, describe_rule
from ..run import Run
from ..stores import Mailbox, Store, path_of, revisions_in, root_of, state_after, typed
from ..tools import Toolbox
from ..values import Message, SystemMessage, evolve
from .answers import RESULT, Answers, with_commands

__all__ = [
    "child_resumption",
    "first_misfit",
    "not_over",
    "opening_of",
    "other_revision",
    "refuse_edits",
    "refuse_other_model",
    "refuse_other_rules",
    "refuse_unattended",
    "resumption",
    "waiting",
]

S = TypeVar("S")


def opening_of(events: Sequence[Event], *, instructed: bool) -> tuple[Sequence[Message], bool]:
    """Return the initial conversation of a journal, and whether the agent's instructions lead it.

    The conversation is empty if the journal's `Started` event is missing.

    Args:
        events: the journal.
        instructed: whether the agent has instructions.
    """
    messages = events[0].messages if events and isinstance(events[0], Started) else ()
    return messages, instructed and isinstance(next(iter(messages), None), SystemMessage)


def first_misfit(graph: NodeGraph[Any], events: Sequence[Event], ports: Ports[Any]) -> int:
    """Return the number of the first event after which a run does not fit this code; 0 for none.

    The graph does not allow the event, or the run needs a model or a tool from then on that is not
    among the `ports`.
    """
    steps, number = replay_steps(graph, typed(graph, events)), 0
    while number < len(events):
        number += 1
        try:
            _check_resumable(next(steps).run, ports)
        except (ConfigError, IllegalEvent):
            return number
    return 0


def other_revision(events: Sequence[Event], revision: str) -> str:
    """Return the revision of the code, unless it is the last one that the events tell; else ""."""
    return "" if [*revisions_in(events)][-1:] == [revision] else revision


async def resumption(run: Run[S], ports: Ports[S], answers: Answers) -> Resumption[S]:
    """Load the child runs of a run, and assign each answer to the run that waits for it.

    The answers pass through the store's mailbox, if the store has one. Of two answers to one call,
    the first counts. Those for a placed child run pass on to its own mailbox, for its own driver. A
    worker's answer counts only if the run still waits for it.

    Raises:
        ConfigError: an answer, a model or a tool does not fit the run; the store is unchanged.
        StoreError: a journal or an answer cannot be read.
    """
    answers.refuse_wrong_types()
    for key in (*answers.approvals, *answers.tool_results):
        root, path = root_of(run.id, key)
        if root != run.id and ports.elsewhere is None:
            raise ConfigError(
                f"run {run.id!r} is a part of run {root!r}, which takes its answers. Fix: answer "
                f"{path!r} of run {root!r}."
            )
    if run.ended and (answers.approvals or answers.tool_results):
        raise ConfigError(f"run {run.id!r} takes no answers: {_is_over_text(run)}")
    _check_resumable(run, ports)
    tree, toolboxes = await _load_tree(run, ports)
    below = tree.descendants
    asked = {one.key: one.kind for one in pending_of(run, below, None, path_of(run.id))}
    if ports.elsewhere is not None:
        answers = answers.only(asked)
    answers.check(asked)
    if ports.secret is not None:
        answers.refuse_unsigned()
    for each in (run, *below.values()):
        answers.refuse_bad_edits(each, toolboxes[each.id])
    posted: Mapping[str, str] = {}
    if isinstance(ports.store, Mailbox):
        for key, data in answers.posts(ports.clock()):
            await ports.store.post(run.id, key, uuid4().hex, data)
        posted = await ports.store.posted(run.id)
        if ports.elsewhere is not None:
            await _forward_answers(tree, posted, ports.elsewhere)
        answers = Answers.of_posts(posted)
        tree = evolve(tree, seen=len(posted))
    return with_commands(_answer_tree(tree, answers, toolboxes, ports), posted, ports.clock())


async def child_resumption(
    run_id: str, graph: NodeGraph[Any], ports: Ports[Any], answers: Answers
) -> tuple[ChildRun[Any], Resumption[Any]]:
    """Load a child run that a worker drives, in its own name, through the runs above it.

    Each run down to the child is opened as its parent's driver would open it. So the child's gates,
    rules, secrets, budget and `deps` are those that it has beside its parent. A child run for which
    its parent does not wait any more is cancelled.

    Args:
        run_id: the id of the child run.
        graph: the graph of the root run.
        ports: the ports of the root run.
        answers: answers to the child's questions.

    Raises:
        ConfigError: a parent's journal starts no such child, or an answer does not fit.
        StoreError: a journal or an answer cannot be read.
    """
    opened: ChildRun[Any] | None = None
    events, is_awaited = await ports.store.load(run_id.partition("/")[0]), True
    for key in path_of(run_id):
        start = _start_of(graph, events, key)
        opened = ports.open_child(start.effect, start.parent)
        graph, ports, is_awaited = opened.graph, opened.ports, is_awaited and start.is_awaited
        events = await ports.store.load(opened.run_id)
    assert opened is not None, "the id of a child run has a path"
    tree = await resumption(state_after(graph, events), ports, answers)
    if not is_awaited and tree.cancelled is None:
        tree = evolve(tree, cancelled=NOT_NEEDED)
    return opened, tree


class _Start(NamedTuple):
    """The start of a child run: its effect, the parent, and whether the parent waits for it."""

    effect: StartRun
    parent: Run[Any]
    is_awaited: bool


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


async def _forward_answers(
    tree: Resumption[Any], posted: Mapping[str, str], elsewhere: Elsewhere
) -> None:
    """Put each answer to a placed child run, or to one below it, into the child's mailbox."""
    for child in tree.children.values():
        if not child.is_placed:
            await _forward_answers(child, posted, elsewhere)
            continue
        run_id, below = child.run.id, child.descendants
        asked = {one.key for one in pending_of(child.run, below, None, path_of(run_id))}
        for key, text in posted.items():
            if key.removesuffix(RESULT) in asked:
                await elsewhere.post(run_id, key, key, text)


async def not_over(known: Run[S], store: Store, graph: NodeGraph[S]) -> None:
    """Raise an error if the run has events after this result, so the result is out of date.

    Raises:
        ConfigError: the run was resumed after this result.
        StoreError: the run's journal cannot be read.
    """
    events = await store.load(known.id)
    if len(events) == known.seq:
        return
    run, found = state_after(graph, events), "it waits further on. Fix: use its id or latest result"
    if run.ended:
        found = _is_over_text(run)
    raise ConfigError(f"run {run.id!r} was resumed from this result before: {found}")


def _is_over_text(run: Run[Any]) -> str:
    how = run.ending.reason.value if run.ending is not None else "ended"
    return (
        f"it is over ({how}). To go on with the conversation, start a run with "
        "messages=result.conversation"
    )


def refuse_other_rules(run: Run[S], rules: tuple[TemporalRule, ...]) -> None:
    """Raise an error if a run would be resumed under rules that it did not start with.

    Raises:
        ConfigError: `rules` has new rules; the message names them.
    """
    others = [describe_rule(rule) for rule in rules if rule not in run.setup.watch]
    if others and not run.ended:
        kept = "; ".join(map(describe_rule, run.setup.watch)) or "none"
        raise ConfigError(
            f"run {run.id!r} began under other rules: expected {kept}, found {'; '.join(others)}. "
            "A rule holds for a whole run. Fix: resume it under the rules that it began with, or "
            "start a new run."
        )


def refuse_unattended(run: Run[Any]) -> None:
    """Raise an error if a run was not started by `iter` and so cannot be iterated.

    Raises:
        ConfigError: another method, such as `generate`, has started the run.
    """
    if not (run.setup.attended or run.ended):
        raise ConfigError(
            f"run {run.id!r} was not started by `iter`, so it has no turns to iterate. Fix: use "
            "`resume` or `resume_stream`."
        )


def refuse_other_model(run: Run[Any], label: str) -> None:
    """Raise an error if a run would be resumed with another model than it began with.

    Raises:
        ConfigError: the message names both models.
    """
    if run.setup.model != label and not run.ended:
        raise ConfigError(
            f"`model`: run {run.id!r} began with {run.setup.model!r}, found {label!r}. "
            "Fix: resume it with that model, or start a new run with its messages."
        )


async def refuse_edits(run: Run[S], ports: Ports[S], answers: Answers) -> None:
    """Raise an error if edited arguments do not fit a tool of a run or of its child runs.

    Raises:
        ConfigError: edited arguments are invalid; the message names the approval and the mistake.
        StoreError: a journal cannot be read.
    """
    tree, toolboxes = await _load_tree(run, ports)
    for each in (run, *tree.descendants.values()):
        answers.refuse_bad_edits(each, toolboxes[each.id])


async def waiting(run: Run[S], ports: Ports[S]) -> tuple[Pending, ...]:
    """Return the pending questions of a run and its child runs, read from their journals."""
    tree, _ = await _load_tree(run, ports)
    return tuple(pending_of(run, tree.descendants, ports.secret))


async def _load_tree(
    run: Run[Any], ports: Ports[Any]
) -> tuple[Resumption[Any], dict[str, Toolbox]]:
    """Load the started child runs of a run at any depth, and the toolbox of each run by run id."""
    children: dict[str, Resumption[Any]] = {}
    toolboxes = {run.id: ports.toolbox}
    for effect in run.pending.values():
        if not isinstance(effect, StartRun):
            continue
        opened = ports.open_child(effect, run)
        try:
            events = await ports.store.load(opened.run_id)
        except UnknownRun:
            continue
        below = state_after(opened.graph, events)
        _check_resumable(below, opened.ports)
        child, boxes = await _load_tree(below, opened.ports)
        children[effect.key] = evolve(child, is_placed=opened.is_placed)
        toolboxes |= boxes
    return Resumption(run, (), children), toolboxes


def _answer_tree(
    tree: Resumption[Any], answers: Answers, toolboxes: Mapping[str, Toolbox], ports: Ports[Any]
) -> Resumption[Any]:
    run = tree.run
    events = tuple(answers.events(run, toolboxes[run.id], ports))
    children = {
        key: _answer_tree(child, answers, toolboxes, ports) for key, child in tree.children.items()
    }
    return evolve(tree, answers=events, children=children)


def _check_resumable(run: Run[Any], ports: Ports[Any]) -> None:
    """Raise an error if the secret, a model or a tool that a resumed run needs is missing."""
    if run.ended:
        return
    if run.setup.signed and ports.secret is None:
        raise ConfigError(
            f"run {run.id!r} takes signed approvals only, and there is no `approval_secret` here. "
            "Fix: resume it with the secret that it was started with."
        )
    pending = run.pending.values()
    labels = {run.setup.model, *[call.model for call in pending if isinstance(call, CallModel)]}
    for label in sorted(labels - ports.models.keys() - {""}):
        own = label == run.setup.model and "/" not in run.id
        given = f"with model={label!r} or a provider of that label, or " if own else ""
        raise ConfigError(
            f"run {run.id!r} needs model {label!r}, which this agent lacks "
            f"(it has {', '.join(map(repr, ports.models))}). Fix: resume it {given}by an agent "
            "that has this model, as its own or as a fallback."
        )
    missing = [
        repr(spec.name)
        for spec in run.setup.tools
        if spec.kind in {"function", "agent"} and ports.toolbox.get(spec.name) is None
    ]
    if missing:
        raise ConfigError(
            f"run {run.id!r} offers tools that this agent lacks: {', '.join(missing)}. Fix: resume "
            "it with them among `tools`, also those that its `prepare_step` has added."
        )
