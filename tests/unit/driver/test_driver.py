"""The asynchronous driver: parallel effects, aborts, cancellations, and worlds that misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, final

import pytest

from graphloop import Agent, EndReason, RunResult, Tool, ToolContext
from graphloop.driver.driver import AsyncDriver, Seen
from graphloop.driver.ports import Ports
from graphloop.effects import CallModel, Effect
from graphloop.errors import (
    BadReply,
    ConfigError,
    Fenced,
    IllegalEvent,
    RunBusy,
    RunFailed,
    StoreError,
)
from graphloop.events import Cancelled, Event, Queued, Setup, Started
from graphloop.graph import END, NodeGraph
from graphloop.node_protocol import Kind, Leave, Reaction, Wait
from graphloop.outcomes import Aborted, Done, Outcome
from graphloop.providers.base import Delta, ModelSession, TextDelta
from graphloop.replay import replay
from graphloop.run import Run
from graphloop.stores.base import Store
from graphloop.stores.memory import MemoryStore
from graphloop.stores.sqlite.store import SqliteStore
from graphloop.testing import ScriptedModel
from graphloop.tools import NOT_DONE, UNKNOWN, Found
from graphloop.tools.options import EffectPolicy, Reconcile, Reconciliation
from graphloop.tools.toolbox import Toolbox
from graphloop.values import ModelRequest, Reply, ToolResult, UserMessage
from tests.agent_tree import Ledger, Plans, batch, tree
from tests.mortal_store import Died as Killed
from tests.mortal_store import Fate, MortalStore
from tests.passing_store import PassingStore
from tests.strategies import QUESTION, call, loop, reply, wrong

T = TypeVar("T")

DEADLINE_S = 5.0
"""A driver that hangs fails here instead of holding up the suite."""

Execute = Callable[[dict[str, object]], object]
TWO = reply(call("one"), call("two"))


def tool_of(name: str, execute: Execute, timeout_s: float | None = None) -> Tool:
    """Return a tool that takes anything."""
    return Tool(name=name, parameters={"type": "object"}, execute=execute, timeout_s=timeout_s)


def agent(*tools: Tool, script: Reply = TWO) -> Agent:
    """Return an agent whose model calls the tools once, then is done."""
    return Agent(ScriptedModel([script, "done"]), tools=tools)


async def fine(arguments: dict[str, object]) -> str:
    """Return at once."""
    return "fine"


def within(work: Awaitable[T]) -> T:
    """Run to the end, or fail if it does not come."""

    async def bounded() -> T:
        async with asyncio.timeout(DEADLINE_S):
            return await work

    return asyncio.run(bounded())


def statuses(result: RunResult) -> list[str]:
    """Return how the calls of the first turn ended."""
    return [one.status for one in result.steps[0].tool_results]


def test_tools_of_one_turn_run_at_the_same_time() -> None:
    """Two tools that wait for each other only end if both are under way."""
    meeting = asyncio.Barrier(2)

    async def meet(arguments: dict[str, object]) -> str:
        await meeting.wait()
        return "met"

    result = within(agent(tool_of("one", meet), tool_of("two", meet)).generate("go"))

    assert ["met", "met"] == [one.text for one in result.steps[0].tool_results]


@pytest.mark.parametrize("script", [TWO, reply(call("one"))], ids=["in parallel", "alone"])
def test_a_tool_that_hangs_is_given_up_at_its_time_limit(script: Reply) -> None:
    """One lost connection must not hold up the run for ever."""

    async def hang(arguments: dict[str, object]) -> str:
        await asyncio.Event().wait()
        return "never"

    looped = agent(tool_of("one", hang, timeout_s=0.001), tool_of("two", fine), script=script)

    result = within(looped.generate("go"))

    assert "timeout" == statuses(result)[0]
    assert "done" == result.text


class Unheard(BaseException):
    """What `except Exception` does not catch: pytest's own failures are of this kind."""


@pytest.mark.parametrize("script", [TWO, reply(call("one"))], ids=["in parallel", "alone"])
def test_what_no_boundary_catches_reaches_the_caller(script: Reply) -> None:
    """A `pytest.fail` inside a tool must fail the test, not hang it."""

    async def explode(arguments: dict[str, object]) -> str:
        raise Unheard

    looped = agent(tool_of("one", explode), tool_of("two", fine), script=script)

    with pytest.raises(Unheard):
        within(looped.generate("go"))


def test_an_abort_during_tools_answers_every_call() -> None:
    """Stop while two tools run: both are answered, and the history can be used again."""

    async def scenario() -> RunResult:
        under_way = asyncio.Event()

        async def hang(arguments: dict[str, object]) -> str:
            under_way.set()
            await asyncio.Event().wait()
            return "never"

        stream = agent(tool_of("one", hang), tool_of("two", fine)).stream("go")
        async with asyncio.TaskGroup() as group:
            running = group.create_task(stream.result())
            await under_way.wait()
            stream.abort("enough")
            stream.abort("again")
        return running.result()

    result = within(scenario())

    assert EndReason.ABORTED is result.end_reason
    assert ("enough",) == result.stopped_by
    assert ["c0.0", "c0.1"] == [one.key for one in result.steps[0].tool_results]
    assert "unknown" == statuses(result)[0]


async def aborted_alone(hang: Execute, waiting: asyncio.Event) -> int:
    """Abort while one tool runs; return how often the driving task is still being cancelled."""
    stream = agent(tool_of("one", hang), script=reply(call("one"))).stream("go")

    async def drive() -> int:
        result = await stream.result()
        assert EndReason.ABORTED is result.end_reason
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    async with asyncio.TaskGroup() as group:
        driving = group.create_task(drive())
        await waiting.wait()
        stream.abort()
        stream.abort()
    return driving.result()


@pytest.mark.parametrize("stubborn", [False, True])
def test_an_abort_leaves_no_cancellation_behind(stubborn: bool) -> None:
    """A task that counts as cancelled breaks every later timeout of its owner."""

    async def scenario() -> int:
        waiting = asyncio.Event()

        async def hang(arguments: dict[str, object]) -> str:
            waiting.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if not stubborn:
                    raise
            return "I do not care"

        async with asyncio.timeout(DEADLINE_S):
            return await aborted_alone(hang, waiting)

    assert 0 == asyncio.run(scenario())


@pytest.mark.parametrize("aborted", [False, True])
async def test_a_cancellation_from_outside_is_never_swallowed(aborted: bool) -> None:
    """Who cancels a task waits for it to end; an abort at the same time changes nothing."""

    waiting = asyncio.Event()

    async def hang(arguments: dict[str, object]) -> str:
        waiting.set()
        await asyncio.Event().wait()
        return "never"

    stream = agent(tool_of("one", hang), script=reply(call("one"))).stream("go")
    driving = asyncio.ensure_future(stream.result())
    await waiting.wait()
    if aborted:
        stream.abort()
    driving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await driving
    with pytest.raises(RunFailed):
        await stream.result()


@final
class Raw:
    """A provider that yields what it is given, right or wrong."""

    label = "raw"

    def __init__(self, *items: object) -> None:
        self.items = items

    def session(self) -> ModelSession:
        """Return itself."""
        return self

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """Yield the items."""
        for item in self.items:
            if isinstance(item, BaseException):
                raise item
            yield wrong(item)

    async def aclose(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    "items",
    [(), (TextDelta("half"),), ("text",), (None,), (42, reply("done"))],
    ids=["nothing", "no reply", "a string", "none", "a number first"],
)
def test_a_provider_that_breaks_its_promise_is_a_bad_reply(items: tuple[object, ...]) -> None:
    """Users write providers; what they get wrong must be said, not stored."""
    store = MemoryStore()

    with pytest.raises(BadReply):
        within(Agent(Raw(*items), store=store).generate("go", run_id="r"))

    journal = asyncio.run(store.load("r"))
    assert ["Started", "EffectFailed"] == [type(event).__name__ for event in journal]


def test_a_provider_that_cancels_itself_has_failed() -> None:
    """A cancelled connection pool must not look like the user's own cancellation."""
    with pytest.raises(Exception, match="cancelled"):
        within(Agent(Raw(asyncio.CancelledError())).generate("go"))


def driver(models: ScriptedModel | None = None) -> AsyncDriver[None]:
    """Return a driver of the standard loop."""
    given = {} if models is None else {"model": models}
    ports: Ports[None] = Ports(
        store=MemoryStore(), models=given, toolbox=Toolbox(()), clock=lambda: 0.0
    )
    return AsyncDriver(loop(), ports, None)


async def drive(seen: AsyncGenerator[Seen[None], None]) -> int:
    """Exhaust a driver; return how much was to be seen."""
    return len([one async for one in seen])


STARTED = Started(0.0, "r", "agent", QUESTION, Setup("model"))


@dataclass(frozen=True)
class TwoMinds:
    """Asks two models at the same time, and leaves when both have answered."""

    name: str = "two_minds"
    kind: Kind = "model"
    outcomes: frozenset[type[Outcome]] = frozenset({Done, Aborted})

    def enter(self, run: Run[None], /) -> Reaction[None, Outcome]:
        """Ask both."""
        request, first = ModelRequest(run.messages), run.next_effect
        return Wait(
            run, (CallModel(first, "left", request), CallModel(first + 1, "right", request))
        )

    def on(
        self, run: Run[None], event: Event, answered: Effect | None, /
    ) -> Reaction[None, Outcome]:
        """Wait for the other."""
        if answered is None:
            return Leave(run, Aborted())
        return Wait(run) if run.pending else Leave(run, Done())


async def two_minds(*, abort: bool) -> tuple[list[object], AsyncDriver[None]]:
    """Return what is seen of two models that talk at once."""
    node = TwoMinds()
    graph: NodeGraph[None] = NodeGraph("agent", node, {node: {...: END}})
    models = {"left": ScriptedModel(["a b c"]), "right": ScriptedModel(["x y z"])}
    ports: Ports[None] = Ports(store=MemoryStore(), models=models, toolbox=Toolbox(()))
    one = AsyncDriver(graph, ports, None)
    seen: list[object] = []
    async for item in one.start(STARTED):
        seen.append(item)
        if abort and isinstance(item, TextDelta):
            one.abort()
    return seen, one


def test_an_abort_stops_models_that_talk_at_the_same_time() -> None:
    """Both, at the next word of either."""
    seen, one = asyncio.run(two_minds(abort=True))

    assert 1 == sum(isinstance(item, TextDelta) for item in seen)
    assert one.run is not None
    assert one.run.ending is not None
    assert EndReason.ABORTED is one.run.ending.reason


def test_a_model_that_was_not_given_is_named() -> None:
    """The message says which label is missing, and which are there."""
    one = driver()

    asyncio.run(drive(one.start(STARTED)))

    assert one.run is not None
    assert one.run.ending is not None
    assert EndReason.ERROR is one.run.ending.reason
    assert isinstance(one.exception, ConfigError)
    assert "no models" in str(one.exception)


def test_a_driver_without_a_run_says_so() -> None:
    """Answers alone drive nothing."""
    one = driver()

    with pytest.raises(IllegalEvent, match="starts with Started"):
        asyncio.run(drive(one._drive("r", ())))  # pyright: ignore[reportPrivateUsage]


def test_what_is_seen_is_every_step_and_every_delta() -> None:
    """The generator is the only window: what it does not show has not happened."""
    one = driver(ScriptedModel(["two words"]))

    count = asyncio.run(drive(one.start(STARTED)))

    assert 4 == count
    assert one.exception is None


class Died(BaseException):
    """The process dies here: no boundary catches it, and nothing more is journaled."""


class Fatal:
    """A tool whose first executions kill the process; it notes each under its idempotency key."""

    def __init__(self, deaths: int = 1) -> None:
        self.deaths = deaths
        self.keys: list[str] = []

    async def execute(self, arguments: dict[str, object], context: ToolContext) -> str:
        """Note that it began, then die or return."""
        self.keys.append(context.idempotency_key)
        if len(self.keys) <= self.deaths:
            raise Died
        return f"done at attempt {len(self.keys)}"


EFFECTS: tuple[EffectPolicy, ...] = ("pure", "idempotent", "at_least_once", "at_most_once")


def resumed(
    fatal: Fatal,
    effect: EffectPolicy,
    store: Store,
    reconcile: Reconcile | None = None,
    *,
    gated: bool = False,
) -> tuple[RunResult, list[Event]]:
    """Start a run that dies in its tool, resume it, and return it with its journal."""

    async def scenario() -> tuple[RunResult, list[Event]]:
        options = {} if reconcile is None else {"reconcile": reconcile}
        tool = Tool(
            name="one",
            parameters={"type": "object"},
            execute=fatal.execute,
            effect=effect,
            needs_approval=gated,
            **wrong(options),
        )
        one = Agent(ScriptedModel([reply(call("one")), "done"]), tools=[tool], store=store)
        try:
            if gated:
                await one.generate("go", run_id="r")
                await one.resume("r", approvals={"c0.0": True})
            else:
                await one.generate("go", run_id="r")
        except Died:
            result = await one.resume("r")
        else:
            raise AssertionError("it was to die")
        return result, list(await store.load("r"))

    return within(scenario())


def names(journal: Iterable[Event]) -> list[str]:
    """Return the names of events."""
    return [type(event).__name__ for event in journal]


@pytest.mark.parametrize("effect", EFFECTS)
def test_a_call_that_may_not_repeat_is_journaled_before_it_begins(
    effect: EffectPolicy, tmp_path: Path
) -> None:
    """DURABLE §6.4: the others need no such event, and no wait for the disk."""
    _, journal = resumed(Fatal(), effect, SqliteStore(tmp_path / "r.db", durability="process"))

    begun = names(journal).index("EffectsStarted") if "EffectsStarted" in names(journal) else None
    assert (effect == "at_most_once") is (begun is not None)
    if begun is not None:
        assert "ModelReplied" == names(journal)[begun - 1]
        assert "Resumed" == names(journal)[begun + 1]


@pytest.mark.parametrize("effect", EFFECTS[:3])
def test_a_call_that_may_repeat_runs_again_under_the_same_key(
    effect: EffectPolicy, tmp_path: Path
) -> None:
    """The service that is called can tell that it is the same call."""
    fatal = Fatal()

    result, _ = resumed(fatal, effect, SqliteStore(tmp_path / "r.db", durability="process"))

    assert ["done at attempt 2"] == [one.content for one in result.steps[0].tool_results]
    assert 2 == len(fatal.keys)
    assert 1 == len(set(fatal.keys))


def test_a_call_that_may_not_repeat_stays_unknown(tmp_path: Path) -> None:
    """The model is told so; the tool does not run again."""
    fatal = Fatal()

    result, _ = resumed(fatal, "at_most_once", SqliteStore(tmp_path / "r.db", durability="process"))

    assert ["unknown"] == statuses(result)
    assert 1 == len(fatal.keys)
    assert "done" == result.text


@pytest.mark.parametrize(
    ("answer", "status", "content", "runs"),
    [
        (Found("receipt 7"), "ok", "receipt 7", 1),
        (NOT_DONE, "ok", "done at attempt 2", 2),
        (UNKNOWN, "unknown", "", 1),
        ("yes", "unknown", "", 1),
        (OSError("down"), "unknown", "", 1),
    ],
)
def test_a_call_that_can_be_looked_up_is_looked_up(
    answer: object, status: str, content: str, runs: int, tmp_path: Path
) -> None:
    """And runs again only if the lookup says that it has not happened."""
    fatal = Fatal()

    def reconcile(arguments: object, context: ToolContext) -> Reconciliation:
        assert [context.idempotency_key] == fatal.keys
        if isinstance(answer, Exception):
            raise answer
        given: Reconciliation = wrong(answer)
        return given

    store = SqliteStore(tmp_path / "r.db", durability="process")
    result, _ = resumed(fatal, "reconcile", store, reconcile)

    (found,) = result.steps[0].tool_results
    assert status == found.status
    assert content in found.text
    assert runs == len(fatal.keys)


@pytest.mark.parametrize("approved", [True, False])
def test_an_approved_call_that_may_have_happened_is_asked_about_again(
    approved: bool, tmp_path: Path
) -> None:
    """The first approval is used up, in the store's mailbox too; only a new one runs it again."""
    fatal = Fatal()
    store = SqliteStore(tmp_path / "r.db", durability="process")

    parked, _ = resumed(fatal, "at_most_once", store, gated=True)

    assert EndReason.PARKED is parked.end_reason
    assert [True] == [one.unknown for one in parked.pending]

    async def answered() -> RunResult:
        tool = Tool(
            name="one", parameters={"type": "object"}, execute=fatal.execute, needs_approval=True
        )
        one = Agent(ScriptedModel(["done"]), tools=[tool], store=store)
        still = await one.resume("r")
        assert EndReason.PARKED is still.end_reason
        with pytest.raises(ConfigError, match="does not wait"):
            await one.resume("r", approvals={"c0.0": True})
        key = still.pending[0].key
        return await one.resume("r", approvals={key: approved})

    result = within(answered())

    assert ["ok" if approved else "unknown"] == statuses(result)
    assert (2 if approved else 1) == len(fatal.keys)


@pytest.mark.parametrize("way", ["generate", "iter"])
def test_a_turn_that_takes_too_long_ends_the_run_as_timeout(way: str) -> None:
    """Its tools included, also while somebody iterates; the history stays paired."""

    async def hang(arguments: dict[str, object]) -> str:
        await asyncio.Event().wait()
        return "never"

    one = Agent(
        ScriptedModel([TWO, "done"]),
        tools=[tool_of("one", hang), tool_of("two", fine)],
        step_timeout_s=0.2,
    )

    result = within(one.generate("go") if way == "generate" else one.iter("go").until_done())

    assert EndReason.TIMEOUT is result.end_reason
    assert ("step_timeout_s",) == result.stopped_by
    assert "unknown" == statuses(result)[0]
    assert 2 == len(statuses(result))


def test_what_is_said_while_a_tool_runs_is_read_in_the_next_turn() -> None:
    """R12: it is a fact of the journal, and comes after the results."""
    store = MemoryStore()

    async def scenario() -> RunResult:
        async def talk(arguments: dict[str, object]) -> str:
            stream.steer("hurry")
            stream.follow_up("and then?")
            return "fine"

        looped = Agent(
            ScriptedModel([reply(call("one")), "done", "more"]),
            tools=[tool_of("one", talk)],
            store=store,
        )
        stream = looped.stream("go", run_id="r")
        return await stream.result()

    result = within(scenario())

    assert ["tool", "user", "assistant", "user", "assistant"] == [
        one.role for one in result.messages[1:]
    ]
    assert 2 == names(asyncio.run(store.load("r"))).count("Queued")


def test_what_is_said_while_the_last_answer_is_under_way_is_not_lost() -> None:
    """Once the answer is in, the run is over: what was said before must come before it."""

    async def scenario() -> RunResult:
        asked, answering = asyncio.Event(), asyncio.Event()

        async def think(arguments: dict[str, object]) -> str:
            asked.set()
            await answering.wait()
            return "thought"

        ends = Tool(name="one", parameters={"type": "object"}, execute=think, ends_run=True)
        stream = Agent(ScriptedModel([reply(call("one")), "done"]), tools=[ends]).stream("go")
        async with asyncio.TaskGroup() as group:
            running = group.create_task(stream.result())
            await asked.wait()
            stream.steer("wait")
            answering.set()
        return running.result()

    result = within(scenario())

    assert "done" == result.text
    assert UserMessage("wait", origin="steering") in result.messages


def test_an_abort_after_the_step_lets_its_tools_end() -> None:
    """And asks no model again."""

    async def scenario() -> RunResult:
        async def stop(arguments: dict[str, object]) -> str:
            stream.abort("enough", after_step=True)
            stream.abort("again", after_step=True)
            await asyncio.sleep(0)
            return "ended"

        looped = agent(tool_of("one", stop), tool_of("two", fine))
        stream = looped.stream("go")
        return await stream.result()

    result = within(scenario())

    assert EndReason.ABORTED is result.end_reason
    assert ("enough",) == result.stopped_by
    assert ["ok", "ok"] == statuses(result)


def test_a_run_is_driven_by_one_driver_at_a_time(tmp_path: Path) -> None:
    """The other is refused, told who drives it, and has changed nothing."""
    path = str(tmp_path / "r.db")

    async def scenario() -> RunResult:
        async def resume_meanwhile(arguments: dict[str, object]) -> str:
            other = Agent(ScriptedModel(["not me"]), tools=[tool_of("one", fine)], store=path)
            with pytest.raises(RunBusy, match="is being driven by"):
                await other.resume("r")
            await other.aclose()
            return "fine"

        looped = Agent(
            ScriptedModel([reply(call("one")), "done"]),
            tools=[tool_of("one", resume_meanwhile)],
            store=path,
        )
        result = await looped.generate("go", run_id="r")
        await looped.aclose()
        return result

    result = within(scenario())

    assert ["ok"] == statuses(result)
    assert "done" == result.text


def test_a_driver_that_lost_its_run_stops_its_tools(tmp_path: Path) -> None:
    """Whoever was thought dead and is not must not go on beside its successor."""
    path, clock = tmp_path / "r.db", [0.0]
    cancelled: list[str] = []

    def store() -> SqliteStore:
        return SqliteStore(path, durability="process", lease_s=10.0, clock=lambda: clock[0])

    async def scenario() -> None:
        mine, theirs = store(), store()

        async def take_over(arguments: dict[str, object]) -> str:
            clock[0] = 1_000.0
            await theirs.claim("r")
            return "fine"

        async def hang(arguments: dict[str, object]) -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append("hang")
                raise
            return "never"

        tools = [tool_of("one", take_over), tool_of("two", hang)]
        with pytest.raises(Fenced):
            await Agent(ScriptedModel([TWO]), tools=tools, store=mine).generate("go", run_id="r")
        await theirs.release("r", "parked", ())
        await mine.aclose()
        await theirs.aclose()

    within(scenario())

    assert ["hang"] == cancelled


GO: Plans = {"go": [batch("kid")], "kid": [batch("leaf")], "leaf": [batch("client"), "deep"]}


async def test_a_driver_takes_up_the_children_that_it_has_driven_itself() -> None:
    """The same driver may go on with a parked run, and cancel it: at any depth."""

    store = MemoryStore()
    runner = tree(Ledger(), GO)._terms  # pyright: ignore[reportPrivateUsage]
    one: AsyncDriver[None] = AsyncDriver(runner.graph, runner.ports(store), None)
    await drive(one.start(Started(0.0, "r", "agent", QUESTION, runner.setup)))
    assert ["c0.0/c0.0/c0.0"] == [asked.key for asked in one.pending]
    assert one.run is not None
    await drive(one.resume(one.run, at_once=True))
    assert ["c0.0/c0.0/c0.0"] == [asked.key for asked in one.pending]
    one.abort("enough")
    await drive(one.resume(one.run, at_once=True))
    await one.cancelled(Cancelled(0.0), unless_busy=False)
    last = [names(await store.load(run))[-1] for run in await store.runs()]

    assert ["Cancelled"] * 3 == last
    assert () == one.pending
    assert one.run is not None
    assert 3 == one.run.spent.model_calls


async def test_a_run_that_is_left_stands_where_its_journal_is() -> None:
    """Nothing is cancelled, nothing is noted; whoever comes next goes on."""

    store = MemoryStore()
    runner = tree(Ledger(), {"go": [batch("note"), "done"]})._terms  # pyright: ignore[reportPrivateUsage]
    one: AsyncDriver[None] = AsyncDriver(runner.graph, runner.ports(store), None)
    async for seen in one.start(Started(0.0, "r", "agent", QUESTION, runner.setup)):
        if isinstance(seen, TextDelta):
            one.leave()
    assert ["Started"] == names(await store.load("r"))


@final
class FullStore(PassingStore):
    """A journal in memory that refuses what people say."""

    def __init__(self, *, refuses: bool) -> None:
        super().__init__()
        self.refuses = refuses

    async def append(self, run_id: str, seq: int, *events: Event) -> None:
        """Keep events, or not."""
        if self.refuses and any(isinstance(event, Queued) for event in events):
            raise StoreError("the disk is full")
        await super().append(run_id, seq, *events)


@pytest.mark.parametrize("refuses", [False, True], ids=["kept", "refused"])
async def test_what_was_said_is_kept_when_the_driver_is_closed(refuses: bool) -> None:
    """Where that cannot be, the run is as if the process had died: nothing is raised any more."""

    store = FullStore(refuses=refuses)
    runner = tree(Ledger(), {"go": [batch("note"), "done"]})._terms  # pyright: ignore[reportPrivateUsage]
    one: AsyncDriver[None] = AsyncDriver(runner.graph, runner.ports(store), None)
    driving = one.start(Started(0.0, "r", "agent", QUESTION, runner.setup))
    await anext(driving)
    one.queue(UserMessage("hurry"), follow_up=False)
    one.queue(UserMessage("and then?"), follow_up=True)
    await driving.aclose()
    assert ["Started", *(() if refuses else ("Queued", "Queued"))] == names(await store.load("r"))


@pytest.mark.parametrize("noted", [False, True])
async def test_an_abort_counts_no_call_that_never_began_elsewhere(noted: bool) -> None:
    """A call that must not repeat is noted before it begins; so it is known where it was not."""
    plan: Plans = {"go": [batch("kid")], "kid": [batch("note", "note")]}

    expected = (2, ["unknown"] * 2) if noted else (0, ["not_run"] * 2)
    disk = MemoryStore()
    for moment in range(40):
        disk = MemoryStore()
        with suppress(Killed):
            await tree(Ledger(), plan, MortalStore(disk, Fate(moment))).generate("go", run_id="r")
        journals = await disk.runs()
        if "r/c0.0" in journals and names(await disk.load("r/c0.0"))[-1] == "EffectsStarted":
            break
    if not noted:  # As where a file has kept the first half of an append.
        torn = MemoryStore()
        for run_id in await disk.runs():
            events = await disk.load(run_id)
            await torn.append(run_id, 1, *(events[:-1] if "/" in run_id else events))
        disk = torn
    stream = tree(Ledger(), plan, disk).resume_stream("r")
    stream.abort("enough")
    result = await stream.result()
    kid = replay(Agent(ScriptedModel([]), name="kid").graph, await disk.load("r/c0.0"))
    assert result.run.spent.tool_calls == kid.spent.tool_calls
    statuses = [str(one.status) for one in kid.record.added if isinstance(one, ToolResult)]
    assert expected == (kid.spent.tool_calls, statuses)


def first_result(execute: Execute) -> ToolResult:
    """Return the result of a call that is alone in a run that could be stopped."""

    async def scenario() -> RunResult:
        looped = agent(tool_of("one", execute), script=reply(call("one")))
        return await looped.stream("go").result()

    return within(scenario()).steps[0].tool_results[0]


def test_a_tool_that_is_alone_stays_in_the_task_of_its_first_step() -> None:
    """Time limits and cancel scopes hold on to the task that they are entered in."""

    async def limited(arguments: dict[str, object]) -> str:
        before = asyncio.current_task()
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.sleep(0)
        return "same" if before is asyncio.current_task() else "other"

    async def late(arguments: dict[str, object]) -> str:
        async with asyncio.timeout(0.001):
            await asyncio.Event().wait()
        return "never"

    assert "same" == first_result(limited).text
    assert "TimeoutError" == first_result(late).text


@pytest.mark.parametrize("ever", [False, True], ids=["for the loop", "for ever"])
def test_a_tool_that_cancels_its_task_in_the_first_step_has_failed(ever: bool) -> None:
    """As one does that cancels it later: the run goes on."""

    async def cancelling(arguments: dict[str, object]) -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await (asyncio.Event().wait() if ever else asyncio.sleep(0))
        return "never"

    result = first_result(cancelling)

    assert "error" == result.status
    assert "cancelled from inside" in result.text
