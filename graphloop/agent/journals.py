"""Journals: read and fork stored runs, and load them for a resume, without a driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from uuid import uuid4

from .. import views
from ..driver import ChildRun, Elsewhere, Pending, Ports, Resumption, pending_of
from ..effects import AskHuman, CallModel, StartRun
from ..errors import ConfigError, IllegalEvent, StoreError, UnknownRun
from ..events import Decided, Event, Resumed, Started
from ..graph import NodeGraph
from ..replay import replay, replay_steps
from ..run import Run
from ..spending import is_whole
from ..states import known_state_type
from ..stores import Catalog, Mailbox, Store, fork, those_within, typed_events
from ..tools import Toolbox
from ..values import Message, SystemMessage, evolve
from .answers import RESULT, Answers, with_commands
from .inputs import check_run_id

__all__ = [
    "children_at",
    "first_misfit",
    "fork_run",
    "not_over",
    "opened_child",
    "opening_of",
    "other_revision",
    "path_of",
    "refuse_edits",
    "resumption",
    "root_of",
    "run_display",
    "state_after",
    "typed",
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
    told = [event.revision for event in events if isinstance(event, Resumed) and event.revision]
    return "" if told[-1:] == [revision] else revision


def state_after(graph: NodeGraph[S], events: Sequence[Event], upto: int | None = None) -> Run[S]:
    """Replay a journal, and return the run after event `upto` or after the last event.

    Raises:
        ConfigError: `upto` is not a whole number.
        StoreError: the journal has no event `upto`, belongs to another graph, or has a state of
            another type than the graph's state.
        IllegalEvent: an event is not possible in this graph, because the graph has changed.
    """
    number = len(events) if upto is None else _whole(upto, events)
    if not 1 <= number <= len(events):
        raise StoreError(
            f"the journal has events 1 to {len(events)}: it cannot be replayed up to {upto}"
        )
    return replay(graph, typed(graph, events[:number]))


def run_display(
    words: str, graph: NodeGraph[S] | None, store: Store, run_id: str
) -> Mapping[str, str]:
    """Return words and the picture of a run over its graph, by MIME type, for notebooks."""
    return views.run_bundle(words, graph, store, run_id, typed)


def children_at(graph: NodeGraph[S], events: Sequence[Event], at: int) -> tuple[str, ...]:
    """Return the keys of the child runs that were pending after event `at`."""
    pending = state_after(graph, events, at).pending.values()
    return tuple(effect.key for effect in pending if isinstance(effect, StartRun))


async def fork_run(
    graph: NodeGraph[Any] | None,
    store: Store,
    run_id: str,
    at: int,
    new_id: str | None = None,
    *,
    share: bool = False,
) -> str:
    """Copy a run up to event `at`, with child runs that were pending then; return the copy's id.

    Args:
        graph: the run's graph; may be None only for a run without child runs.
        store: the store of the run.
        run_id: the id of the run.
        at: the number of the last event to copy.
        new_id: the copy's id; by default a random id.
        share: whether the copy may act on approvals that the original run got.

    Raises:
        StoreError: the store has no such run or event, or the new id is taken.
        ConfigError: the new id is invalid, `at` is not a whole number, the run has child runs but
            `graph` is None, or the copy would act on an approval without `share`.
    """
    copy = uuid4().hex if new_id is None else new_id
    check_run_id("new_id", copy)
    events, known = await store.load(run_id), await those_within(store, run_id)
    if graph is None and len(known) > 1:
        raise ConfigError(
            f"run {run_id!r} has child runs, and only its graph tells which of them were running "
            f"after event {at}. Fix: give the graph."
        )
    within = 1 <= _whole(at, events) <= len(events)  # If not, `fork` raises the error.
    children = children_at(graph, events, at) if graph is not None and within else ()
    if within and not share:
        _refuse_approved(run_id, graph, events[:at])
        for child in known:
            key = child.removeprefix(f"{run_id}/").partition("/")[0]
            if graph is not None and key in children:
                begun = _begun(graph, events[:at], key)
                _refuse_approved(child, None, await store.load(child), begun)
    await fork(store, run_id, at=at, new_id=copy, children=children)
    if isinstance(store, Catalog) and (target := (await store.record(run_id)).target):
        await store.set_target(copy, target)
    return copy


def _begun(graph: NodeGraph[Any], events: Sequence[Event], key: str) -> int:
    """Return the number of the last event after which the child run `key` was not yet pending."""
    before = range(len(events) - 1, 0, -1)
    return next((at for at in before if key not in children_at(graph, events, at)), 1)


def _refuse_approved(
    run_id: str, graph: NodeGraph[Any] | None, events: Sequence[Event], begun: int = 0
) -> None:
    """Raise an error if the copy of a run would act on an approval that the run got.

    An approval does no harm if its call already has a result, or if the copied run is over.

    Args:
        run_id: the id of the run to copy.
        graph: the run's graph; None for a child run, where every approval counts.
        events: the events to copy.
        begun: for a child run, the forked run's last event before the child started.
    """
    given = {
        at: event.effect
        for at, event in enumerate(events)
        if isinstance(event, Decided) and event.approved
    }
    if not given:
        return
    runs = [] if graph is None else [step.run for step in replay_steps(graph, typed(graph, events))]
    if runs and runs[-1].ending is not None:
        return
    for at, effect in given.items():
        what = ""
        if runs:
            asked = runs[at - 1].pending[effect]
            assert isinstance(asked, AskHuman), "a decision answers a question"
            if runs[at - 1].turn.has_call(asked.key) and not runs[-1].turn.waits_for(asked.key):
                continue
            what = f" ({asked.key} {asked.call.name})"
        raise ConfigError(
            f"event {at + 1} of run {run_id!r} approved what the copy would do again{what}. Fix: "
            f"fork at={begun or at} or before, and the person is asked again; or say "
            "share_approvals=True (--share-approvals)."
        )


def path_of(run_id: str) -> tuple[str, ...]:
    """Return the keys of the calls and nodes that lead from the root run to a run."""
    return tuple(run_id.split("/")[1:])


def root_of(run_id: str, key: str) -> tuple[str, str]:
    """Return the id of a run's root run, and the key under which that run takes a call's answer."""
    root, slash, path = run_id.partition("/")
    return root, f"{path}/{key}" if slash else key


def typed(graph: NodeGraph[S], events: Sequence[Event]) -> Sequence[Event]:
    """Convert the states in a graph's events from plain JSON to the graph's state type."""
    return typed_events(known_state_type(graph), events)


def _whole(number: int, events: Sequence[Event]) -> int:
    if not is_whole(number):
        raise ConfigError(
            f"expected the number of an event, from 1 to {len(events)}, found {number!r}"
        )
    return number


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
        raise ConfigError(f"run {run.id!r} takes no answers: {_over(run)}")
    _check_resumable(run, ports)
    tree, toolboxes = await _tree(run, ports)
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
            await _forward(tree, posted, ports.elsewhere)
        answers = Answers.of_posts(posted)
        tree = evolve(tree, seen=len(posted))
    return with_commands(_answered(tree, answers, toolboxes, ports), posted, ports.clock())


async def _forward(tree: Resumption[Any], posted: Mapping[str, str], elsewhere: Elsewhere) -> None:
    """Put each answer to a placed child run, or to one below it, into the child's mailbox."""
    for child in tree.children.values():
        if not child.is_placed:
            await _forward(child, posted, elsewhere)
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
    run, later = state_after(graph, events), "it waits further on. Fix: use its id or latest result"
    raise ConfigError(
        f"run {run.id!r} was resumed from this result before: {_over(run) if run.ended else later}"
    )


def _over(run: Run[Any]) -> str:
    how = run.ending.reason.value if run.ending is not None else "ended"
    return (
        f"it is over ({how}). To go on with the conversation, start a run with "
        "messages=result.conversation"
    )


async def refuse_edits(run: Run[S], ports: Ports[S], answers: Answers) -> None:
    """Raise an error if edited arguments do not fit a tool of a run or of its child runs.

    Raises:
        ConfigError: edited arguments are invalid; the message names the approval and the mistake.
        StoreError: a journal cannot be read.
    """
    tree, toolboxes = await _tree(run, ports)
    for each in (run, *tree.descendants.values()):
        answers.refuse_bad_edits(each, toolboxes[each.id])


async def waiting(run: Run[S], ports: Ports[S]) -> tuple[Pending, ...]:
    """Return the pending questions of a run and its child runs, read from their journals."""
    tree, _ = await _tree(run, ports)
    return tuple(pending_of(run, tree.descendants, ports.secret))


async def _tree(run: Run[Any], ports: Ports[Any]) -> tuple[Resumption[Any], dict[str, Toolbox]]:
    """Load the started child runs of a run at any depth, and the toolbox of each run by run id."""
    children: dict[str, Resumption[Any]] = {}
    toolboxes = {run.id: ports.toolbox}
    for effect in run.pending.values():
        if not isinstance(effect, StartRun):
            continue
        opened = opened_child(effect, run, ports)
        try:
            events = await ports.store.load(opened.run_id)
        except UnknownRun:
            continue
        below = state_after(opened.graph, events)
        _check_resumable(below, opened.ports)
        child, boxes = await _tree(below, opened.ports)
        children[effect.key] = evolve(child, is_placed=opened.is_placed)
        toolboxes |= boxes
    return Resumption(run, (), children), toolboxes


def opened_child(effect: StartRun, run: Run[Any], ports: Ports[Any]) -> ChildRun[Any]:
    """Return the child run that an effect of a run starts or has started.

    Raises:
        ConfigError: the child's agent is not here, or the arguments do not fit it.
    """
    plan = ports.children.get(effect.agent)
    if plan is None:
        raise ConfigError(
            f"run {run.id!r} waits for agent {effect.agent!r}, which is not here. Fix: resume "
            "it with the agents that it was started with."
        )
    return plan.open(effect, run, ports)


def _answered(
    tree: Resumption[Any], answers: Answers, toolboxes: Mapping[str, Toolbox], ports: Ports[Any]
) -> Resumption[Any]:
    run = tree.run
    events = tuple(answers.events(run, toolboxes[run.id], ports.secret, ports.clock))
    children = {
        key: _answered(child, answers, toolboxes, ports) for key, child in tree.children.items()
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
