"""Doors to a run's journal that drive nothing: replay, fork, approve."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from graphloop import END, Agent, Approval, EndReason, Graph, Tool, approve, tool
from graphloop.agent.journals import (
    fork_run,
    opening_of,
    root_of,
    state_after,
)
from graphloop.agent.runs import Runs, parameters_in, recorded_asks
from graphloop.effects import IN_WORDS, AskHuman, CallModel
from graphloop.errors import ConfigError, StoreError, UnknownRun
from graphloop.events import Setup, Started, Steered
from graphloop.loop import Standard, standard_edges
from graphloop.providers.script import Entry
from graphloop.stores.base import Ask, RunRecord, Store
from graphloop.stores.jsonl import JsonlStore
from graphloop.stores.memory import MemoryStore
from graphloop.stores.sqlite import SqliteStore
from graphloop.testing import ScriptedModel
from graphloop.values import Message, ToolSpec, UserMessage
from tests.agents import ticking
from tests.mortal_store import Fate, MortalSqliteStore
from tests.own_nodes import Ticket, route

T = TypeVar("T")

PAY: Entry = {"calls": [{"name": "pay", "arguments": {"amount": 5}, "id": "p"}]}
CLICK = Tool(name="click", description="Clicks.", parameters={"type": "object"})


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"{amount} paid"


def done(work: Coroutine[object, object, T]) -> T:
    async def run() -> T:
        return await work

    return asyncio.run(run())


def payer(store: Store | str, *replies: Entry, secret: str | None = None) -> Agent:
    model = ScriptedModel(replies, label="m")
    return Agent(model, tools=[pay, CLICK], store=store, name="payer", approval_secret=secret)


def team(store: Store, child: Entry, *replies: Entry) -> Agent:
    agent = Agent(ScriptedModel([child], label="c"), tools=[pay], name="payer")
    model = ScriptedModel(replies, label="m")
    return Agent(model, tools=[agent.as_tool(description="Pays.")], store=store)


CALL_PAYER: Entry = {"calls": [{"name": "payer", "arguments": {"prompt": "pay"}, "id": "q"}]}


def test_a_run_is_seen_as_it_stood_after_any_event() -> None:
    """Nothing is performed: the model has no second reply, and is not asked for one."""

    async def seen() -> None:
        store = MemoryStore()
        agent = payer(store, PAY)
        parked = await agent.generate("pay", run_id="r")

        first, last = await agent.runs.replay("r", upto=1), await agent.runs.replay("r")

        assert isinstance(next(iter(first.pending.values())), CallModel)
        assert isinstance(next(iter(last.pending.values())), AskHuman)
        assert last == parked.run
        assert len(await store.load("r")) == 3

    done(seen())


@pytest.mark.parametrize("number", [1.5, True, "1", float("nan")])
def test_an_event_is_named_by_a_whole_number(number: float | str) -> None:
    """`True` is a mistake, not the first event; the same for a copy as for a look."""
    agent = payer(MemoryStore(), PAY)
    upto: int = number  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    done(agent.generate("go", run_id="r"))

    with pytest.raises(ConfigError, match=f"a whole one from 1 to 3; found {number!r}"):
        done(agent.runs.replay("r", upto=upto))
    with pytest.raises(ConfigError, match="a whole one"):
        done(agent.runs.fork("r", at=upto))


@pytest.mark.parametrize("upto", [0, 4, -1])
def test_an_event_that_is_not_there_cannot_be_replayed(upto: int) -> None:
    """A negative number counts from no end."""
    agent = payer(MemoryStore(), PAY)

    async def seen() -> None:
        await agent.generate("pay", run_id="r")
        await agent.runs.replay("r", upto=upto)

    with pytest.raises(StoreError, match=f"has events 1 to 3: .* up to {upto}"):
        done(seen())
    with pytest.raises(UnknownRun):
        done(agent.runs.replay("nowhere"))


def test_a_fork_goes_on_differently() -> None:
    """The original keeps its own end."""

    async def forked() -> None:
        store = MemoryStore()
        agent = payer(store, PAY, "denied", "paid")
        await agent.generate("pay", run_id="r")

        copy = await agent.runs.fork("r", at=3)
        no = await agent.resume("r", approvals={"c0.0": False})
        yes = await agent.resume(copy, approvals={"c0.0": True})

        assert (no.text, no.run_id) == ("denied", "r")
        assert (yes.text, yes.run_id) == ("paid", copy)
        assert yes.steps[0].tool_results[0].text == "5 paid"

    done(forked())


def test_a_fork_has_the_children_that_were_running_then() -> None:
    """One that began later would stand in for the child of a call with other arguments."""

    async def forked() -> None:
        store = MemoryStore()
        agent = team(store, PAY, CALL_PAYER)
        await agent.generate("go", run_id="r")

        for at in (1, 2, 3):
            await agent.runs.fork("r", at=at, new_id=f"f{at}")

        known = await store.runs()
        assert [one for one in known if one.startswith("f")] == ["f1", "f2", "f3", "f3/c0.0"]
        resumed = await team(store, "It is paid.", "All done.").resume(
            "f3", approvals={"c0.0/c0.0": True}
        )
        assert resumed.text == "All done."

    done(forked())


def test_a_run_that_was_aborted_can_be_forked_before_that() -> None:
    """Its child was cancelled with it, and goes on in the fork."""

    async def forked() -> None:
        store = MemoryStore()
        parked = await team(store, PAY, CALL_PAYER).generate("go", run_id="r")
        again = team(store, "It is paid.", "All done.")
        stream = again.resume_stream("r")
        stream.abort("no")
        aborted = await stream.result()
        assert aborted.end_reason is EndReason.ABORTED

        await again.runs.fork("r", at=parked.run.seq, new_id="f")
        resumed = await again.resume("f", approvals={"c0.0/c0.0": True})

        assert resumed.text == "All done."
        assert resumed.steps[0].tool_results[0].text == "It is paid."

    done(forked())


@pytest.mark.parametrize("new_id", ["", "a/b"])
def test_a_fork_has_an_id_that_a_run_can_have(new_id: str) -> None:
    """A slash sets child runs apart."""
    with pytest.raises(ConfigError, match="`new_id`: expected some text without a slash"):
        done(payer(MemoryStore(), PAY).runs.fork("r", at=1, new_id=new_id))


def test_a_fork_is_of_what_the_original_was_started_from() -> None:
    """So that it, too, is resumed without naming its target."""

    async def forked() -> None:
        store = MemoryStore()
        agent = payer(store, PAY)
        await agent.generate("pay", run_id="r")
        await store.set_target("r", "desk.pay:agent")

        await agent.runs.fork("r", at=1, new_id="f")

        assert [one.target for one in await store.overview()] == ["desk.pay:agent"] * 2

    done(forked())


class Crowded(MortalSqliteStore):
    """Has so many runs that nobody may look at all of them."""

    async def runs(self) -> Sequence[str]:
        """Refuse."""
        raise AssertionError("all runs are looked at")

    async def overview(self, root: str | None = None) -> Sequence[RunRecord]:
        """Return what is known of one run, and of those below it."""
        assert root is not None, "all runs are looked at"
        return await super().overview(root)


def test_a_run_is_answered_and_forked_however_many_others_there_are(tmp_path: Path) -> None:
    """A store of twenty thousand runs took a fifth of a second for either."""

    async def scenario() -> tuple[str, str]:
        disk = SqliteStore(tmp_path / "runs.db")
        store = Crowded(disk, Fate())
        agent = team(store, PAY, {"calls": [{"name": "payer", "arguments": {"prompt": "pay"}}]})
        parked = await agent.generate("pay", run_id="r")
        copy = await agent.runs.fork("r", at=parked.run.seq, new_id="f")
        said = await agent.runs.approve("r", parked.pending[0].key)
        await disk.aclose()
        return copy, said

    assert ("f", "accepted") == done(scenario())


def makers(folder: Path) -> tuple[Store, ...]:
    return MemoryStore(), SqliteStore(folder / "runs.db")


@pytest.mark.parametrize("secret", [None, "hush"])
@pytest.mark.parametrize("which", [0, 1])
def test_an_answer_waits_in_the_store(which: int, secret: str | None, tmp_path: Path) -> None:
    """Given to one agent object, taken up by another; with the token that the store keeps."""

    async def approved() -> None:
        store = makers(tmp_path)[which]
        await payer(store, PAY, secret=secret).generate("pay", run_id="r")

        first = await payer(store, secret=secret).runs.approve("r", "c0.0")
        second = await payer(store, secret=secret).runs.approve("r", "c0.0", False)
        resumed = await payer(store, "done", secret=secret).resume("r")

        assert (first, second) == ("accepted", "answered")
        assert resumed.steps[0].tool_results[0].text == "5 paid"
        await payer(store).aclose()
        if isinstance(store, SqliteStore):
            await store.aclose()

    done(approved())


@pytest.mark.parametrize("which", [0, 1])
def test_a_repeated_answer_is_told_from_another(which: int, tmp_path: Path) -> None:
    """Whoever delivers an answer twice, having lost the first receipt, learns that it counts."""

    async def approved() -> None:
        store = makers(tmp_path)[which]
        agent = payer(store, PAY)
        await agent.generate("pay", run_id="r")
        answer = Approval(approved=True, signal_id="mail 7")

        assert await agent.runs.approve("r", "c0.0", answer) == "accepted"
        assert await agent.runs.approve("r", "c0.0", answer) == "duplicate"
        if isinstance(store, SqliteStore):
            await store.aclose()

    done(approved())


@pytest.mark.parametrize("which", [0, 1])
def test_a_call_below_is_answered_at_its_root(which: int, tmp_path: Path) -> None:
    """Under the key that the parked result tells."""

    async def approved() -> None:
        store = makers(tmp_path)[which]
        await team(store, PAY, CALL_PAYER).generate("go", run_id="r")
        again = team(store, "It is paid.", "All done.")

        assert await again.runs.approve("r", "c0.0/c0.0", False) == "accepted"

        assert (await again.resume("r")).text == "All done."
        denied = (await store.load("r/c0.0"))[4]
        assert getattr(denied, "approved", None) is False
        if isinstance(store, SqliteStore):
            await store.aclose()

    done(approved())


@pytest.mark.parametrize("which", [0, 1])
def test_an_answer_that_nobody_waits_for_is_refused(which: int, tmp_path: Path) -> None:
    """It would lie in the store until a later call happens to have its key."""

    async def approved(key: str, run_id: str, reply: Entry) -> None:
        store = makers(tmp_path)[which]
        agent = payer(store, reply, "done")
        try:
            await agent.generate("pay", run_id="r")
            await agent.runs.approve(run_id, key)
        finally:
            if isinstance(store, SqliteStore):
                await store.aclose()
            (tmp_path / "runs.db").unlink(missing_ok=True)

    click: Entry = {"calls": [{"name": "click", "arguments": {"x": 1}}]}
    with pytest.raises(ConfigError, match=r"not wait for 'c0\.1'; it waits for c0\.0\. Did you"):
        done(approved("c0.1", "r", PAY))
    with pytest.raises(ConfigError, match="waits for what the client tool 'click' returns"):
        done(approved("c0.0", "r", click))
    with pytest.raises(UnknownRun):
        done(approved("c0.0", "s", PAY))
    with pytest.raises(ConfigError, match=r"takes no answers: it is over|waits for nothing"):
        done(approved("c0.0", "r", "done at once"))


def test_an_approval_that_comes_too_late_is_refused_and_a_denial_is_not() -> None:
    """Accepted, it would be a denial when the run goes on, and nobody would be told."""
    clock = ticking()

    async def approved() -> None:
        model = ScriptedModel([PAY, "done"])
        agent = Agent(model, tools=[pay], store=MemoryStore(), clock=clock, approval_ttl_s=100.0)
        await agent.generate("pay", run_id="r")
        clock.now += 200.0

        with pytest.raises(ConfigError, match=r"comes too late, by \d+ seconds: deny it"):
            await agent.runs.approve("r", "c0.0")
        assert await agent.runs.approve("r", "c0.0", False) == "accepted"

    done(approved())


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ("running", "is being driven; answer its driver"),
        ("interrupted", "waits for a driver: resume it first"),
        ("ready", "waits for a driver: resume it first"),
        ("failed", r"is over \(failed\)"),
    ],
)
def test_a_run_says_why_it_takes_no_answer(status: str, message: str, tmp_path: Path) -> None:
    """An answer that its driver will not read must not be promised to count."""
    now = 1_000.0

    async def asked() -> None:
        store = SqliteStore(tmp_path / "runs.db", clock=lambda: now)
        driver = SqliteStore(tmp_path / "runs.db", clock=lambda: now, lease_s=10.0)
        agent = payer(driver, PAY)
        await agent.generate("pay", run_id="r")
        try:
            if status == "ready":
                await agent.runs.fork("r", at=2, new_id="f")
                await recorded_asks(store, "f")
            await driver.claim("r")
            if status == "failed":
                await driver.release("r", "failed", ())
            if status == "interrupted":
                await driver.aclose()
            await recorded_asks(store, "r")
        finally:
            await driver.aclose()
            await store.aclose()

    with pytest.raises(ConfigError, match=message):
        done(asked())


def test_a_store_without_a_mailbox_says_what_to_use_instead(tmp_path: Path) -> None:
    """JSON lines keep what happened, and nothing else."""

    async def approved() -> None:
        agent = payer(JsonlStore(tmp_path), PAY)
        await agent.generate("pay", run_id="r")
        await agent.runs.approve("r", "c0.0")

    with pytest.raises(ConfigError, match=r"keeps no answers for later: pass them to resume\("):
        done(approved())


def test_a_childs_call_is_answered_at_its_root() -> None:
    """There is one mailbox for a whole run, and it is the root's."""
    assert root_of("r", "c0.0") == ("r", "c0.0")
    assert root_of("r/c0.1/c2.0", "c1.0") == ("r", "c0.1/c2.0/c1.0")


def topology() -> Graph[None]:
    nodes = Standard()
    return Graph("desk", nodes.prepare, standard_edges(nodes))


def test_an_edit_of_a_call_that_may_have_run_is_not_accepted(tmp_path: Path) -> None:
    """It could never run: accepted, it would be a denial that nobody was told of."""

    async def approved(store: MemoryStore | SqliteStore) -> None:
        agent = payer(store, PAY)
        await agent.generate("pay", run_id="r")
        await store.claim("r")
        await store.release(
            "r", "suspended", [Ask("c0.0#7", "approval", "pay", "{}", unknown=True)]
        )

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


def test_a_graph_accepts_no_edit_that_the_tool_would_refuse() -> None:
    """It has no tools before it runs, but the journal notes what they take."""

    async def approved() -> str:
        store = MemoryStore()
        model = ScriptedModel([PAY, "done"], label="m")
        graph = topology()
        await graph.run(None, model=model, prompt="pay", run_id="r", tools=[pay], store=store)
        wrong = Approval(approved=True, arguments={"amount": "lots"})
        with pytest.raises(ConfigError, match=r"amount: .*An edit replaces all arguments"):
            await Runs(store, graph).approve("r", "c0.0", wrong)
        fitting = Approval(approved=True, arguments={"amount": 2})
        assert await Runs(store, graph).approve("r", "c0.0", fitting) == "accepted"
        resumed = await graph.resume("r", model=model, tools=[pay], store=store)
        return resumed.steps[0].tool_results[0].text

    assert done(approved()) == "2 paid"


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("edit", ['{"amount": "much"}', "{", "[]", {"amount": None}])
def test_an_edit_that_does_not_fit_is_not_accepted_and_can_be_mended(
    which: int, edit: str | dict[str, object], tmp_path: Path
) -> None:
    """Accepted, it would be a denial when the run goes on, and the right answer came too late."""

    async def approved() -> None:
        store = makers(tmp_path)[which]
        agent = payer(store, PAY, "done")
        pending = (await agent.generate("pay", run_id="r")).pending[0]

        for given in (approve(edit=edit), pending.approve(edit=edit)):
            with pytest.raises(ConfigError, match=r"approvals\['c0\.0'\]: the edited arguments"):
                await agent.runs.approve("r", "c0.0", given)
        assert await agent.runs.approve("r", "c0.0", approve(edit={"amount": 6})) == "accepted"
        assert (await agent.resume("r")).steps[0].tool_results[0].text == "6 paid"
        if isinstance(store, SqliteStore):
            await store.aclose()

    done(approved())


@pytest.mark.parametrize("which", [0, 1])
def test_an_edit_for_a_call_below_is_checked_by_the_tool_below(which: int, tmp_path: Path) -> None:
    """The agent above has no such tool, and would take anything."""

    async def approved() -> None:
        store = makers(tmp_path)[which]
        await team(store, PAY, CALL_PAYER).generate("go", run_id="r")
        again = team(store, "It is paid.", "All done.")

        with pytest.raises(ConfigError, match=r"approvals\['c0\.0/c0\.0'\]: the edited"):
            await again.runs.approve("r", "c0.0/c0.0", approve(edit={"amount": "much"}))
        assert await again.runs.approve("r", "c0.0/c0.0", approve(edit={"amount": 6})) == "accepted"
        assert (await again.resume("r")).text == "All done."
        if isinstance(store, SqliteStore):
            await store.aclose()

    done(approved())


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("secret", [None, "hush"])
def test_a_token_of_another_question_is_not_accepted_and_the_right_one_is(
    which: int, secret: str | None, tmp_path: Path
) -> None:
    """Of another run, another secret, or no question at all."""

    async def approved() -> None:
        store = makers(tmp_path)[which]
        agent = payer(store, PAY, PAY, "done", secret=secret)
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
                await Runs(store).approve("r", "c0.0", given)
        assert await agent.runs.approve("r", "c0.0", pending.approve()) == "accepted"
        assert (await agent.resume("r")).steps[0].tool_results[0].text == "5 paid"
        if isinstance(store, SqliteStore):
            await store.aclose()

    done(approved())


@pytest.mark.parametrize("which", [0, 1])
def test_an_answer_to_a_run_that_is_over_says_so(which: int, tmp_path: Path) -> None:
    """By whatever door: not that the key is wrong, which would send the approver searching."""

    async def answered() -> None:
        store = makers(tmp_path)[which]
        agent = payer(store, PAY, "done")
        parked = await agent.generate("pay", run_id="r")
        yes = {"c0.0": parked.pending[0].approve()}
        last = await agent.resume(parked, approvals=yes)
        journal = await store.load("r")

        with pytest.raises(ConfigError, match=r"'r' takes no answers: it is over \(done\)"):
            await agent.runs.approve("r", "c0.0", yes["c0.0"])
        for run in ("r", last):
            with pytest.raises(ConfigError, match=r"takes no answers: it is over \(completed\)"):
                await agent.resume(run, approvals=yes)
        with pytest.raises(ConfigError, match=r"takes no answers: it is over \(completed\)"):
            await agent.resume("r", tool_results={"c0.0": "x"})
        with pytest.raises(ConfigError, match=r"from this result before: it is over \(completed\)"):
            await agent.resume(parked, approvals=yes)
        assert journal == await store.load("r")
        if isinstance(store, SqliteStore):
            await store.aclose()

    done(answered())


def test_a_graph_has_the_same_doors(tmp_path: Path) -> None:
    """By a store's path or a store; what is opened for the call is closed again."""
    graph, path = topology(), str(tmp_path / "runs.db")

    async def gone_on() -> None:
        model = ScriptedModel([PAY, "done"], label="m")
        await graph.run(None, model=model, prompt="pay", run_id="r", tools=[pay], store=path)
        store = SqliteStore(path)

        assert (await Runs(path, graph).replay("r", upto=2)).seq == 2
        assert await Runs(None, graph).replay(await store.load("r")) == await Runs(
            store, graph
        ).replay("r")
        assert await Runs(path, graph).fork("r", at=3, new_id="f") == "f"
        assert await Runs(store, graph).approve("r", "c0.0") == "accepted"
        assert await Runs(path, graph).approve("r", "c0.0", False) == "answered"
        resumed = await graph.resume("r", model=model, tools=[pay], store=store)

        assert resumed.steps[0].tool_results[0].text == "5 paid"
        with pytest.raises(ConfigError, match="pass the one it is in"):
            await Runs(None, graph).replay("r")
        with pytest.raises(ConfigError, match="JsonlStore does not know what runs wait for"):
            await Runs(JsonlStore(tmp_path / "lines"), graph).approve("r", "c0.0")
        await store.aclose()

    done(gone_on())


def test_a_run_without_children_is_forked_without_its_graph() -> None:
    """The command line need not load a target for that."""

    async def forked() -> None:
        store = MemoryStore()
        await payer(store, PAY).generate("pay", run_id="r")

        assert await fork_run(None, store, "r", at=2, new_id="f") == "f"

        graph = payer(store).graph
        assert state_after(graph, await store.load("f")).seq == 2

    done(forked())


def test_a_run_with_children_is_not_forked_without_its_graph() -> None:
    """A copy without the child that was running would run that child's tools a second time."""

    async def forked() -> None:
        store = MemoryStore()
        await team(store, PAY, CALL_PAYER).generate("go", run_id="r")
        before = await store.runs()

        with pytest.raises(ConfigError, match="'r' has child runs: only its graph tells"):
            await fork_run(None, store, "r", at=3, new_id="f")
        assert before == await store.runs()

    done(forked())


def test_an_ask_says_all_that_an_approver_needs(tmp_path: Path) -> None:
    """Another process has nothing but the record."""

    async def asked() -> tuple[Ask, ...] | None:
        store = SqliteStore(tmp_path / "runs.db")
        clock = ticking()
        agent = Agent(
            ScriptedModel([CALL_PAYER]),
            tools=[
                Agent(ScriptedModel([PAY]), tools=[pay], name="payer").as_tool(description="Pays.")
            ],
            store=store,
            clock=clock,
            approval_ttl_s=100.0,
        )
        await agent.generate("go", run_id="r")
        asks = await recorded_asks(store, "r")
        await store.aclose()
        return asks

    asks = done(asked())
    assert asks is not None
    (ask,) = asks
    assert (ask.key, ask.kind, ask.name, ask.agents) == (
        "c0.0/c0.0",
        "approval",
        "pay",
        ("payer",),
    )
    assert ask.token.startswith("v1.")
    assert ask.expires_at is not None
    assert not ask.unknown


def test_a_journal_tells_what_a_run_began_with() -> None:
    """It is the first event, whatever became of the conversation since."""

    async def scenario() -> tuple[Message, ...]:
        store = MemoryStore()
        await Agent(ScriptedModel(["done"]), store=store).generate("go", run_id="r")
        return opening_of(await store.load("r"))

    assert (UserMessage("go"),) == asyncio.run(scenario())
    assert () == opening_of(())


def test_a_journal_is_read_with_states_of_its_graph_s_type() -> None:
    """Whatever the store was told; one that is of the type already stays the very same object."""
    desk, own = Graph("desk", route, {route: {...: END}}), Ticket("x")

    def state(written: object) -> object:
        return state_after(desk, [Started(1.0, "r", "desk", (), Setup(), written)]).state

    assert own == state({"text": "x"})
    assert own is state(own)
    with pytest.raises(StoreError, match="state is not the graph's"):
        state({"txt": 1})


def test_what_a_tool_takes_stands_in_the_journal_of_the_run_that_called_it() -> None:
    """A child's tools are its own; a later setup replaces the first."""

    async def found() -> list[str]:
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
        return [await parameters_in(store, "r", ask) for ask in asks]

    assert asyncio.run(found()) == ["old", "new", "", IN_WORDS]
