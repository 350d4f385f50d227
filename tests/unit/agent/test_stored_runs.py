"""Stored runs: listed, replayed, forked and answered by their ids."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from graphloop import Agent, Approval, EndReason, Graph, Tool, approve, tool
from graphloop.agent.runs import Runs
from graphloop.agent.stored_runs import parameters_in
from graphloop.effects import IN_WORDS, AskHuman, CallModel
from graphloop.errors import ConfigError, StoreError, UnknownRun
from graphloop.events import Setup, Started, Steered
from graphloop.loop import Standard, standard_edges
from graphloop.providers.script import Entry
from graphloop.stores.base import Ask, RunRecord, Store
from graphloop.stores.forking import fork_run
from graphloop.stores.jsonl import JsonlStore
from graphloop.stores.memory import MemoryStore
from graphloop.stores.sqlite.store import SqliteStore
from graphloop.testing import ScriptedModel
from graphloop.values import ToolSpec
from tests.agents import ticking
from tests.mortal_store import Fate, MortalSqliteStore

PAY: Entry = {"calls": [{"name": "pay", "arguments": {"amount": 5}, "id": "p"}]}


CLICK = Tool(name="click", description="Clicks.", parameters={"type": "object"})


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"{amount} paid"


def payer(store: Store | str, *replies: Entry, secret: str | None = None) -> Agent:
    model = ScriptedModel(replies, label="m")
    return Agent(model, tools=[pay, CLICK], store=store, name="payer", approval_secret=secret)


async def test_a_run_is_seen_as_it_stood_after_any_event() -> None:
    store = MemoryStore()
    agent = payer(store, PAY)
    parked = await agent.generate("pay", run_id="r")

    first, last = await agent.runs.replay("r", upto=1), await agent.runs.replay("r")

    assert isinstance(next(iter(first.pending.values())), CallModel)
    assert isinstance(next(iter(last.pending.values())), AskHuman)
    assert last == parked.run
    assert len(await store.load("r")) == 2


T = TypeVar("T")


def done(work: Coroutine[object, object, T]) -> T:
    async def run() -> T:
        return await work

    return asyncio.run(run())


@pytest.mark.parametrize("number", [1.5, True, "1", float("nan")])
def test_an_event_is_named_by_a_whole_number(number: float | str) -> None:
    agent = payer(MemoryStore(), PAY)
    upto: int = number  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    done(agent.generate("go", run_id="r"))

    with pytest.raises(ConfigError, match=f"of an event, from 1 to 2, found {number!r}"):
        done(agent.runs.replay("r", upto=upto))
    with pytest.raises(ConfigError, match="expected the number of an event"):
        done(agent.runs.fork("r", at=upto))


@pytest.mark.parametrize("upto", [0, 3, -1])
def test_an_event_that_is_not_there_cannot_be_replayed(upto: int) -> None:
    agent = payer(MemoryStore(), PAY)

    async def seen() -> None:
        await agent.generate("pay", run_id="r")
        await agent.runs.replay("r", upto=upto)

    with pytest.raises(StoreError, match=f"has events 1 to 2: .* up to {upto}"):
        done(seen())
    with pytest.raises(UnknownRun):
        done(agent.runs.replay("nowhere"))


async def test_a_fork_goes_on_differently() -> None:
    store = MemoryStore()
    agent = payer(store, PAY, "denied", "paid")
    await agent.generate("pay", run_id="r")

    copy = await agent.runs.fork("r", at=2)
    no = await agent.resume("r", approvals={"c0.0": False})
    yes = await agent.resume(copy, approvals={"c0.0": True})

    assert (no.text, no.run_id) == ("denied", "r")
    assert (yes.text, yes.run_id) == ("paid", copy)
    assert yes.steps[0].tool_results[0].text == "5 paid"


CALL_PAYER: Entry = {"calls": [{"name": "payer", "arguments": {"prompt": "pay"}, "id": "q"}]}


def team(store: Store, child: Entry, *replies: Entry) -> Agent:
    agent = Agent(ScriptedModel([child], label="c"), tools=[pay], name="payer")
    model = ScriptedModel(replies, label="m")
    return Agent(model, tools=[agent.as_tool(description="Pays.")], store=store)


async def test_a_fork_has_the_children_that_were_running_then() -> None:
    store = MemoryStore()
    agent = team(store, PAY, CALL_PAYER)
    await agent.generate("go", run_id="r")

    for at in (1, 2):
        await agent.runs.fork("r", at=at, new_id=f"f{at}")

    known = await store.runs()
    assert [one for one in known if one.startswith("f")] == ["f1", "f2", "f2/c0.0"]
    resumed = await team(store, "It is paid.", "All done.").resume(
        "f2", approvals={"c0.0/c0.0": True}
    )
    assert resumed.text == "All done."


@pytest.mark.parametrize("new_id", ["", "a/b"])
def test_a_fork_has_an_id_that_a_run_can_have(new_id: str) -> None:
    with pytest.raises(ConfigError, match="`new_id`: expected some text without a slash"):
        done(payer(MemoryStore(), PAY).runs.fork("r", at=1, new_id=new_id))


async def test_a_fork_is_of_what_the_original_was_started_from() -> None:
    store = MemoryStore()
    agent = payer(store, PAY)
    await agent.generate("pay", run_id="r")
    await store.set_target("r", "desk.pay:agent")

    await agent.runs.fork("r", at=1, new_id="f")

    assert [one.target for one in await store.overview()] == ["desk.pay:agent"] * 2


class Crowded(MortalSqliteStore):
    """A store that refuses to list all of its runs."""

    async def runs(self) -> Sequence[str]:
        """Refuse."""
        raise AssertionError("all runs are looked at")

    async def overview(self, root: str | None = None) -> Sequence[RunRecord]:
        """Return the records of one run and its children."""
        assert root is not None, "all runs are looked at"
        return await super().overview(root)


async def test_other_runs_do_not_disturb_an_answer_or_a_fork(tmp_path: Path) -> None:
    disk = SqliteStore(tmp_path / "runs.db")
    store = Crowded(disk, Fate())
    agent = team(store, PAY, {"calls": [{"name": "payer", "arguments": {"prompt": "pay"}}]})
    parked = await agent.generate("pay", run_id="r")
    copy = await agent.runs.fork("r", at=parked.run.seq, new_id="f")
    said = await agent.runs.approve("r", parked.pending[0].key)
    await disk.aclose()
    assert ("f", "accepted") == (copy, said)


@pytest.fixture(params=["memory", "sqlite"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryStore | SqliteStore]:
    """Return a store that keeps answers."""
    if request.param == "memory":
        yield MemoryStore()
        return
    store = SqliteStore(tmp_path / "runs.db")
    yield store
    asyncio.run(store.aclose())


@pytest.mark.parametrize("secret", [None, "hush"])
async def test_an_answer_waits_in_the_store(
    secret: str | None, stored: MemoryStore | SqliteStore
) -> None:
    await payer(stored, PAY, secret=secret).generate("pay", run_id="r")

    first = await payer(stored, secret=secret).runs.approve("r", "c0.0")
    second = await payer(stored, secret=secret).runs.approve("r", "c0.0", False)
    resumed = await payer(stored, "done", secret=secret).resume("r")

    assert (first, second) == ("accepted", "answered")
    assert resumed.steps[0].tool_results[0].text == "5 paid"
    await payer(stored).aclose()
    if isinstance(stored, SqliteStore):
        await stored.aclose()


async def test_an_answer_is_accepted_once(
    stored: MemoryStore | SqliteStore,
) -> None:
    agent = payer(stored, PAY)
    await agent.generate("pay", run_id="r")
    answer = Approval(approved=True, signal_id="mail 7")

    with pytest.raises(ConfigError, match=r"not wait for 'c0\.1'; it waits for c0\.0\. Did you"):
        await agent.runs.approve("r", "c0.1")
    with pytest.raises(UnknownRun):
        await agent.runs.approve("s", "c0.0")
    assert await agent.runs.approve("r", "c0.0", answer) == "accepted"
    assert await agent.runs.approve("r", "c0.0", answer) == "duplicate"
    clicker = payer(stored, {"calls": [{"name": "click", "arguments": {"x": 1}}]})
    await clicker.generate("click", run_id="t")
    with pytest.raises(ConfigError, match=r"waits for the result.*'click'"):
        await clicker.runs.approve("t", "c0.0")


async def test_an_approval_too_late_is_refused_and_a_denial_is_not() -> None:
    clock = ticking()

    model = ScriptedModel([PAY, "done"])
    agent = Agent(model, tools=[pay], store=MemoryStore(), clock=clock, approval_ttl_s=100.0)
    await agent.generate("pay", run_id="r")
    clock.now += 200.0

    with pytest.raises(ConfigError, match=r"comes too late, by \d+ seconds. Fix: decline it"):
        await agent.runs.approve("r", "c0.0")
    assert await agent.runs.approve("r", "c0.0", False) == "accepted"


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ("running", "is being driven. Answer its driver"),
        ("interrupted", "waits for a driver. Resume it first"),
        ("ready", "waits for a driver. Resume it first"),
        ("failed", r"is over \(failed\)"),
    ],
)
def test_a_run_says_why_it_takes_no_answer(status: str, message: str, tmp_path: Path) -> None:
    now = 1_000.0

    async def asked() -> None:
        store = SqliteStore(tmp_path / "runs.db", clock=lambda: now)
        driver = SqliteStore(tmp_path / "runs.db", clock=lambda: now, lease_s=10.0)
        agent = payer(driver, PAY)
        await agent.generate("pay", run_id="r")
        try:
            if status == "ready":
                await agent.runs.fork("r", at=2, new_id="f")
                await Runs(store).pending("f")
            if status == "running":
                await agent.runs.submit("pay", run_id="new")
                await driver.claim("new")
                await Runs(store).pending("new")
            await driver.claim("r")
            if status == "failed":
                await driver.release("r", "failed", ())
            if status == "interrupted":
                await driver.aclose()
            await Runs(store).pending("r")
        finally:
            await driver.aclose()
            await store.aclose()

    with pytest.raises(ConfigError, match=message):
        done(asked())


def test_a_store_without_a_mailbox_says_what_to_use_instead(tmp_path: Path) -> None:
    async def approved() -> None:
        agent = payer(JsonlStore(tmp_path), PAY)
        await agent.generate("pay", run_id="r")
        await agent.runs.approve("r", "c0.0")

    with pytest.raises(ConfigError, match=r"keeps no answers for later.*resume\("):
        done(approved())


def topology() -> Graph[None]:
    nodes = Standard()
    return Graph("desk", nodes.prepare, standard_edges(nodes))


def test_an_edit_of_a_call_that_may_have_run_is_not_accepted(tmp_path: Path) -> None:
    async def approved(store: MemoryStore | SqliteStore) -> None:
        agent = payer(store, PAY)
        await agent.generate("pay", run_id="r")
        await store.claim("r")
        await store.release("r", "parked", [Ask("c0.0#7", "approval", "pay", "{}", unknown=True)])

        edit = Approval(approved=True, arguments={"amount": 2})
        with pytest.raises(
            ConfigError, match=r"'c0\.0#7' of run 'r': it may have run already.*deny"
        ):
            await agent.runs.approve("r", "c0.0#7", edit)
        with pytest.raises(ConfigError, match="it may have run already"):
            await Runs(store, topology()).approve("r", "c0.0#7", edit)
        assert await agent.runs.approve("r", "c0.0#7") == "accepted"
        if isinstance(store, SqliteStore):
            await store.aclose()

    done(approved(MemoryStore()))
    done(approved(SqliteStore(tmp_path / "runs.db")))


async def test_a_graph_accepts_no_edit_that_the_tool_would_refuse() -> None:
    store = MemoryStore()
    model = ScriptedModel([PAY, "done"], label="m")
    graph = topology()
    await graph.run(None, model=model, prompt="pay", run_id="r", tools=[pay], store=store)
    wrong = Approval(approved=True, arguments={"amount": "lots"})
    with pytest.raises(ConfigError, match=r"amount: .*Fix: give every argument"):
        await Runs(store, graph).approve("r", "c0.0", wrong)
    fitting = Approval(approved=True, arguments={"amount": 2})
    assert await Runs(store, graph).approve("r", "c0.0", fitting) == "accepted"
    resumed = await graph.resume("r", model=model, tools=[pay], store=store)
    assert resumed.steps[0].tool_results[0].text == "2 paid"


@pytest.mark.parametrize("edit", ['{"amount": "much"}', "{", "[]", {"amount": None}])
async def test_an_edit_that_does_not_fit_can_be_mended(
    edit: str | dict[str, object], stored: MemoryStore | SqliteStore
) -> None:
    agent = payer(stored, PAY, "done")
    pending = (await agent.generate("pay", run_id="r")).pending[0]

    for given in (approve(edit=edit), pending.approve(edit=edit)):
        with pytest.raises(ConfigError, match=r"approvals\['c0\.0'\]: the edited arguments"):
            await agent.runs.approve("r", "c0.0", given)
    assert await agent.runs.approve("r", "c0.0", approve(edit={"amount": 6})) == "accepted"
    assert (await agent.resume("r")).steps[0].tool_results[0].text == "6 paid"
    if isinstance(stored, SqliteStore):
        await stored.aclose()


async def test_an_edit_for_a_call_below_is_checked_by_the_tool_below(
    stored: MemoryStore | SqliteStore,
) -> None:
    await team(stored, PAY, CALL_PAYER).generate("go", run_id="r")
    again = team(stored, "It is paid.", "All done.")

    with pytest.raises(ConfigError, match=r"approvals\['c0\.0/c0\.0'\]: the edited"):
        await again.runs.approve("r", "c0.0/c0.0", approve(edit={"amount": "much"}))
    assert await again.runs.approve("r", "c0.0/c0.0", approve(edit={"amount": 6})) == "accepted"
    assert (await again.resume("r")).text == "All done."
    if isinstance(stored, SqliteStore):
        await stored.aclose()


@pytest.mark.parametrize("secret", [None, "hush"])
async def test_a_token_of_another_question_is_not_accepted(
    secret: str | None, stored: MemoryStore | SqliteStore
) -> None:
    agent = payer(stored, PAY, PAY, "done", secret=secret)
    pending = (await agent.generate("pay", run_id="r")).pending[0]
    other = (await agent.generate("pay", run_id="s")).pending[0]
    elsewhere = payer(MemoryStore(), PAY, secret="rush" if secret else None)
    foreign = (await elsewhere.generate("pay", run_id="r" if secret else "t")).pending[0]

    for token in (other.token, foreign.token, "nonsense"):
        with pytest.raises(ConfigError, match=r"'c0\.0' has a token that is "):
            await agent.runs.approve("r", "c0.0", Approval(approved=True, token=token))
    for token in (other.token, "nonsense"):  # Who does not know the secret can tell as much.
        given = Approval(approved=True, token=token)
        with pytest.raises(ConfigError, match=r"'c0\.0' has a token that is "):
            await Runs(stored).approve("r", "c0.0", given)
    assert await agent.runs.approve("r", "c0.0", pending.approve()) == "accepted"
    assert (await agent.resume("r")).steps[0].tool_results[0].text == "5 paid"
    if isinstance(stored, SqliteStore):
        await stored.aclose()


async def test_an_answer_to_a_run_that_is_over_says_so(stored: MemoryStore | SqliteStore) -> None:
    agent = payer(stored, PAY, "done")
    parked = await agent.generate("pay", run_id="r")
    yes = {"c0.0": parked.pending[0].approve()}
    last = await agent.resume(parked, approvals=yes)
    journal = await stored.load("r")

    assert await agent.runs.approve("r", "c0.0", yes["c0.0"]) == "answered"
    with pytest.raises(ConfigError, match=r"'r' takes no answers: it is over \(done\)"):
        await agent.runs.approve("r", "c1.0")
    for run in ("r", last):
        with pytest.raises(ConfigError, match=r"takes no answers: it is over \(completed\)"):
            await agent.resume(run, approvals=yes)
    with pytest.raises(ConfigError, match=r"takes no answers: it is over \(completed\)"):
        await agent.resume("r", tool_results={"c0.0": "x"})
    with pytest.raises(ConfigError, match=r"it is over \(completed\)"):
        await agent.resume(parked, approvals=yes)
    assert journal == await stored.load("r")
    if isinstance(stored, SqliteStore):
        await stored.aclose()


async def test_a_graph_has_the_same_doors(tmp_path: Path) -> None:
    graph, path = topology(), str(tmp_path / "runs.db")

    model = ScriptedModel([PAY, "done"], label="m")
    await graph.run(None, model=model, prompt="pay", run_id="r", tools=[pay], store=path)
    store = SqliteStore(path)

    assert (await Runs(path, graph).replay("r", upto=2)).seq == 2
    assert await Runs(store, graph).replay(await store.load("r")) == await Runs(
        store, graph
    ).replay("r")
    assert await Runs(path, graph).fork("r", at=2, new_id="f") == "f"
    assert await Runs(store, graph).approve("r", "c0.0") == "accepted"
    assert await Runs(path, graph).approve("r", "c0.0", False) == "answered"
    resumed = await graph.resume("r", model=model, tools=[pay], store=store)

    assert resumed.steps[0].tool_results[0].text == "5 paid"
    with pytest.raises(ConfigError, match="expected the store of the runs"):
        await Runs(None, graph).replay("r")
    with pytest.raises(ConfigError, match="JsonlStore does not keep the questions"):
        await Runs(JsonlStore(tmp_path / "lines"), graph).approve("r", "c0.0")
    await store.aclose()


async def test_a_run_with_children_is_not_forked_without_its_graph() -> None:
    store = MemoryStore()
    await team(store, PAY, CALL_PAYER).generate("go", run_id="r")
    before = await store.runs()

    with pytest.raises(ConfigError, match="'r' has child runs, and"):
        await fork_run(None, store, "r", at=2, new_id="f")
    assert before == await store.runs()


async def test_what_a_tool_takes_stands_in_its_run_s_journal() -> None:
    store = MemoryStore()
    old, new = (Setup(tools=(ToolSpec("pay", "", text),)) for text in ("old", "new"))
    await store.append("r", 1, Started(1.0, "r", "g", (), old))
    await store.append("r/c0.0", 1, Started(1.0, "r/c0.0", "g", (), old))
    await store.append("r/c0.0", 2, Steered(2.0, 1, setup=new))
    asks = [
        Ask("c0.0", "approval", "pay", "{}"),
        Ask("c0.0/c0.0", "approval", "pay", "{}"),
        Ask("c0.0", "approval", "other", "{}"),
        Ask("pay.2", "approval", "pay", "{}", takes=IN_WORDS),
    ]
    assert [await parameters_in(store, "r", ask) for ask in asks] == ["old", "new", "", IN_WORDS]


def ann(store: Store | str) -> Agent:
    """Return an agent that pays on approval."""
    return Agent(ScriptedModel([PAY, "done"]), tools=[pay], store=store, name="ann")


async def test_a_store_lists_its_runs_and_the_calls_that_wait(tmp_path: Path) -> None:
    path = f"{tmp_path}/runs.db"
    async with ann(path) as agent:
        await agent.generate("go", run_id="r")
    runs = Runs[None](path)
    assert [("r", "ann", "parked")] == [
        (one.run_id, one.graph, one.status) for one in await runs.list()
    ]
    assert ["c0.0"] == [one.key for one in await runs.pending("r")]
    assert "accepted" == await runs.decline("r", "c0.0", "too much")
    result = await ann(path).runs.resume("r")
    assert "too much" in str(result.messages)
    with pytest.raises(UnknownRun):
        await runs.pending("s")


async def test_a_run_is_cancelled_by_its_id() -> None:
    agent = ann(MemoryStore())
    await agent.generate("go", run_id="r")
    result = await agent.runs.cancel("r", "nobody wants it")
    assert EndReason.ABORTED is result.end_reason
    assert "5 paid" not in str(result.messages)
    assert ["cancelled"] == [one.status for one in await agent.runs.list()]


async def test_what_only_an_agent_can_do_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected the agent that"):
        await Runs[None](MemoryStore()).resume("r")
    with pytest.raises(ConfigError, match="expected the runs' graph"):
        await Runs[None](MemoryStore()).replay("r")
    with pytest.raises(ConfigError, match="keeps no catalog"):
        await Runs[None](JsonlStore(tmp_path)).list()
    with pytest.raises(ConfigError, match="does not keep the questions"):
        await Runs[None](JsonlStore(tmp_path)).pending("r")
    with pytest.raises(ConfigError, match="expected the store of the runs"):
        await Runs[None](None).list()
