"""Runner: stores, prices and clocks, as the options say."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Unpack, cast

import pytest

from graphloop import Agent, Approval, EndReason, Pending, RunResult, StepChanges, Tool
from graphloop.agent.inputs import MessageInput
from graphloop.agent.options import AgentOptions
from graphloop.errors import ConfigError, RunFailed, StoreError, ToolError
from graphloop.providers.script import Entry
from graphloop.run import Spent
from graphloop.stores.base import Store
from graphloop.stores.codec import Codec
from graphloop.stores.jsonl import JsonlStore
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.values import Reply, Usage, UserMessage
from tests.agents import ticking
from tests.strategies import call, reply


def agent(kept_in: Store | str | None = None, **options: Unpack[AgentOptions]) -> Agent:
    """Return an agent whose model asks for a tool that is not there, then is done."""
    model = ScriptedModel([reply(call("nowhere")), "done"], restart=True)
    merged: AgentOptions = {**options}
    merged["store"] = kept_in
    return Agent(model, **merged)


def test_a_directory_keeps_runs_as_files(tmp_path: Path) -> None:
    """By the run's id; without an id one is made up."""
    directory = str(tmp_path / "runs")

    agent(directory).generate_sync("go", run_id="mine")
    made_up = agent(directory).generate_sync("go").run_id

    assert sorted(["mine", made_up]) == list(asyncio.run(JsonlStore(directory).runs()))


@pytest.mark.parametrize("name", ["runs.db", "runs.sqlite", "x.sqlite3"])
def test_a_database_file_keeps_runs_too(name: str, tmp_path: Path) -> None:
    """Any other agent that is given the file finds them."""
    file = tmp_path / name

    agent(str(file)).generate_sync("go", run_id="mine")

    async def found() -> str:
        other = agent(str(file))
        try:
            return (await other.resume("mine")).text
        finally:
            await other.aclose()

    assert (True, "done") == (file.is_file(), asyncio.run(found()))


def test_a_clock_that_tells_no_time_is_refused_before_anything_is_sent() -> None:
    """Its first event could never be read again."""
    store = MemoryStore()

    with pytest.raises(ConfigError, match="`clock`: expected seconds since the epoch, found nan"):
        agent(store, clock=lambda: float("nan")).generate_sync("go", run_id="mine")

    assert [] == list(asyncio.run(store.runs()))


def test_a_run_id_that_is_taken_is_refused(tmp_path: Path) -> None:
    """Two runs in one journal are no run."""
    agent(str(tmp_path)).generate_sync("go", run_id="mine")

    with pytest.raises(StoreError, match="taken"):
        agent(str(tmp_path)).generate_sync("go", run_id="mine")


def test_the_same_clock_and_script_give_the_same_bytes() -> None:
    """Time, ids and chance are injected everywhere, in the real driver too."""

    async def journal() -> list[bytes]:
        store, codec = MemoryStore(), Codec()
        await agent(store, clock=ticking()).generate("go", run_id="r")
        events = await store.load("r")
        return [codec.encode(seq, event) for seq, event in enumerate(events, 1)]

    assert asyncio.run(journal()) == asyncio.run(journal())


def test_a_price_is_asked_for_every_reply() -> None:
    """And None means that the sum is not known."""
    known = agent(price=lambda _: 0.25).generate_sync("go")

    def first_only(answer: Reply) -> float | None:
        return 0.25 if answer.message.calls else None

    assert 0.5 == known.cost_usd
    assert agent(price=first_only).generate_sync("go").cost_usd is None
    assert agent().generate_sync("go").cost_usd is None


@pytest.mark.parametrize("price", [float("nan"), float("inf"), "1", True])
def test_a_price_that_is_no_amount_is_no_price(price: object) -> None:
    """A reply that was paid for must not be lost, nor a journal broken, over its bill."""
    result = agent(price=lambda _: cast("float", price)).generate_sync("go")

    assert ("done", None) == (result.text, result.cost_usd)


def test_a_price_that_fails_is_no_price() -> None:
    """A bill that is guessed is worse than none."""

    def broken(answer: Reply) -> float | None:
        raise LookupError("no such model")

    result = agent(price=broken).generate_sync("go")

    assert ("done", None) == (result.text, result.cost_usd)


def test_a_run_that_ended_is_told_again_and_not_run_again() -> None:
    """Resuming what is over changes nothing."""
    store = MemoryStore()

    async def twice() -> tuple[object, object, int]:
        one = agent(store)
        first = await one.generate("go", run_id="r")
        before = len(await store.load("r"))
        second = await one.resume("r")
        return first.run, second.run, len(await store.load("r")) - before

    first, second, added = asyncio.run(twice())
    assert first == second
    assert 0 == added


PAY = reply(call("pay", arguments='{"amount": 7}'))
PAY_TWICE = reply(call("pay", arguments='{"amount": 1}'), call("pay", arguments='{"amount": 2}'))
AMOUNT = {
    "type": "object",
    "properties": {"amount": {"type": "integer"}},
    "required": ["amount"],
}
CLIENT = Tool(name="client", parameters={"type": "object"})


class Till:
    """A till: what was paid, and an agent that pays only what a human approves."""

    def __init__(self, *replies: Entry, store: Store | str | None = None) -> None:
        self.paid: list[object] = []
        self.model = ScriptedModel(replies)
        self.agent = Agent(self.model, tools=[self.tool, CLIENT], store=store)

    @property
    def tool(self) -> Tool:
        """The tool that pays."""
        return Tool(name="pay", parameters=AMOUNT, execute=self._pay, needs_approval=True)

    def _pay(self, arguments: dict[str, object]) -> str:
        self.paid.append(arguments["amount"])
        return "paid"

    def parked(self, run_id: str | None = None) -> RunResult[None]:
        """Return the result of a run that waits."""
        result = asyncio.run(self.agent.generate("go", run_id=run_id))
        assert EndReason.PARKED is result.end_reason
        return result

    def resumed(
        self,
        run: str | RunResult[None],
        approvals: Mapping[str, bool | Approval] | None = None,
        tool_results: Mapping[str, object] | None = None,
    ) -> RunResult[None]:
        """Take a run up again."""
        return asyncio.run(self.agent.resume(run, approvals=approvals, tool_results=tool_results))


@pytest.mark.parametrize(
    ("answer", "paid", "status"),
    [
        (True, [7], "ok"),
        (False, [], "denied"),
        (Approval(approved=True), [7], "ok"),
        (Approval(approved=False, reason="too much"), [], "denied"),
        (Approval(approved=True, arguments='{"amount": 5}'), [5], "ok"),
        (Approval(approved=False, arguments="nonsense"), [], "denied"),
    ],
)
def test_an_answer_lets_a_parked_call_run_or_not(
    answer: object, paid: list[int], status: str
) -> None:
    """Nothing runs that was not approved, and it runs with the arguments that were approved."""
    till = Till(PAY, "done")

    result = till.resumed(till.parked(), {"c0.0": cast("bool", answer)})

    assert (paid, "done") == (till.paid, result.text)
    assert [status] == [one.status for one in result.steps[0].tool_results]


def test_the_reason_of_a_denial_is_told_to_the_model() -> None:
    """A denial that says why lets the model do better."""
    till = Till(PAY, "done")

    result = till.resumed(till.parked(), {"c0.0": Approval(approved=False, reason="too much")})

    assert "too much" in result.steps[0].tool_results[0].text


def test_an_edit_that_does_not_fit_is_refused_and_the_run_still_waits() -> None:
    """The person at the keyboard mistyped: nothing is journaled, and they can answer again."""
    store = MemoryStore()
    till = Till(PAY, "done", store=store)
    first = till.parked("r")
    before = asyncio.run(store.load("r"))

    with pytest.raises(ConfigError, match=r"approvals\['c0.0'\].*amount"):
        till.resumed(first, {"c0.0": Approval(approved=True, arguments='{"amount": "much"}')})

    assert before == asyncio.run(store.load("r"))
    till.resumed("r", {"c0.0": Approval(approved=True, arguments='{"amount": 6}')})
    assert [6] == till.paid


def test_a_resume_without_the_run_s_tools_changes_nothing() -> None:
    """A forgotten tool must not use up an approval: the run waits for the right process."""
    till = Till(PAY, "done")
    first = till.parked()

    with pytest.raises(ConfigError, match="offers tools that are not here: 'pay'"):
        asyncio.run(Agent(till.model).resume(first, approvals={"c0.0": True}))

    assert [] == till.paid
    assert EndReason.COMPLETED is till.resumed(first, approvals={"c0.0": True}).end_reason


def test_a_resume_with_another_model_changes_nothing() -> None:
    """Its first answer would be the run's last: the journal would say that the model is gone."""
    till = Till(PAY, "done")
    first = till.parked()
    other = Agent(ScriptedModel(["done"], label="other"), **till.agent.options)

    with pytest.raises(ConfigError, match="asks model 'script'"):
        asyncio.run(other.resume(first, approvals={"c0.0": True}))

    assert EndReason.COMPLETED is till.resumed(first, approvals={"c0.0": True}).end_reason


def test_an_edit_can_be_a_mapping() -> None:
    """Whoever has parsed the arguments to show them has a mapping, not a text."""
    till = Till(PAY, "done")

    edited = Approval(approved=True, arguments={"amount": 5})
    till.resumed(till.parked(), approvals={"c0.0": edited})

    assert [5] == till.paid


def test_an_empty_run_id_is_kept_or_refused_but_never_replaced(tmp_path: Path) -> None:
    """Who names a run will look for it by that name."""
    with pytest.raises(ConfigError, match="found ''"):
        agent(str(tmp_path)).generate_sync("go", run_id="")


@pytest.mark.parametrize(
    ("run_id", "message"),
    [
        ("x" * 201, "at most 200 characters.*found 201"),
        ("\ud800", "half a surrogate pair"),
    ],
)
def test_an_id_that_no_store_can_write_down_is_refused(
    tmp_path: Path, run_id: str, message: str
) -> None:
    """Before anything is asked, and not by the file system."""
    with pytest.raises(ConfigError, match=message):
        agent(str(tmp_path)).generate_sync("go", run_id=run_id)
    agent(str(tmp_path)).generate_sync("go", run_id="x" * 200)


def test_what_is_not_answered_keeps_the_run_parked() -> None:
    """Approvals arrive one by one; tools run only when their gate has spoken about all of them."""
    till = Till(PAY_TWICE, "done", store=MemoryStore())

    second = till.resumed(till.parked("r"), {"c0.1": True})

    assert EndReason.PARKED is second.end_reason
    assert ["c0.0"] == [one.key for one in second.pending]
    assert [] == till.paid
    assert "done" == till.resumed("r", {"c0.0": True}).text
    assert [1, 2] == till.paid


def test_a_leg_without_any_answer_changes_nothing() -> None:
    """To look whether something came is harmless."""
    till = Till(PAY, "done", store=MemoryStore())

    first = till.parked("r")

    assert first.run == till.resumed("r").run
    assert 1 == len(till.model.requests)


@pytest.mark.parametrize(
    ("value", "text"), [("sunny", "sunny"), ({"degrees": 21}, '{"degrees":21}'), (None, "null")]
)
def test_a_client_tool_s_result_is_what_the_model_reads(value: object, text: str) -> None:
    """The caller hands in plain values; they become text the way a tool's own result does."""
    till = Till(reply(call("client")), "done")

    result = till.resumed(till.parked(), tool_results={"c0.0": value})

    assert ("done", text) == (result.text, result.steps[0].tool_results[0].text)
    assert result.steps[0].tool_results[0] in till.model.requests[1].messages


def test_a_client_tool_can_have_failed() -> None:
    """The browser was closed: the model must read an error, not a success that says so."""
    till = Till(reply(call("client")), "done")

    result = till.resumed(till.parked(), tool_results={"c0.0": ToolError("the tab was closed")})

    (answer,) = result.steps[0].tool_results
    assert ("error", "the tab was closed") == (answer.status, answer.text)


def test_client_tools_can_be_answered_one_by_one() -> None:
    """Two browsers, two answers, and results in request order."""
    till = Till(reply(call("client"), call("client")), "done")

    second = till.resumed(till.parked(), tool_results={"c0.1": "second"})
    third = till.resumed(second, tool_results={"c0.0": "first"})

    assert ["c0.0"] == [one.key for one in second.pending]
    assert ["first", "second"] == [one.text for one in third.steps[0].tool_results]


@pytest.mark.parametrize(
    ("approvals", "tool_results", "message"),
    [
        ({"c0.9": True}, {}, r"`approvals` answers 'c0.9'.*waits for c0.0.*Did you mean 'c0.0'"),
        ({}, {"c0.0": "x"}, r"`tool_results` answers 'c0.0'.*nothing of this kind"),
        ({"c0.0": True, "zz": True}, {}, "'zz'"),
    ],
)
def test_a_wrong_key_undoes_the_right_one_beside_it(
    approvals: dict[str, bool | Approval], tool_results: dict[str, object], message: str
) -> None:
    """An approval for the wrong call must not vanish: all or nothing is journaled."""
    store = MemoryStore()
    till = Till(PAY, "done", store=store)
    first = till.parked("r")
    before = asyncio.run(store.load("r"))

    with pytest.raises(ConfigError, match=message):
        till.resumed(first, approvals, tool_results)

    assert (before, 1) == (asyncio.run(store.load("r")), len(till.model.requests))
    assert [] == till.paid


def test_a_run_is_taken_up_by_its_id_in_another_process(tmp_path: Path) -> None:
    """An approval may come days later: the directory is all that is left of the first process."""
    Till(PAY, store=str(tmp_path)).parked("r")
    later = Till("done", store=str(tmp_path))

    result = later.resumed("r", {"c0.0": True})

    assert (["r.jsonl"], [7]) == ([one.name for one in tmp_path.iterdir()], later.paid)
    assert ("done", EndReason.COMPLETED) == (result.text, result.end_reason)


def test_an_unknown_run_is_an_error_that_lists_the_known(tmp_path: Path) -> None:
    """Somebody mistyped an id."""
    till = Till(PAY, store=str(tmp_path))
    till.parked("monday")

    with pytest.raises(StoreError, match="monday"):
        till.resumed("tuesday")


def test_without_a_store_a_run_is_reached_by_its_result_only() -> None:
    """The journal in memory goes with the result."""
    till = Till(PAY, "done")
    first = till.parked("r")

    with pytest.raises(ConfigError, match=r"this agent has no `store`.*resume with the RunResult"):
        till.resumed("r", {"c0.0": True})
    for ask in (
        till.agent.runs.approve("r", "c0.0"),
        till.agent.runs.replay("r"),
        till.agent.runs.fork("r", at=1),
    ):
        with pytest.raises(ConfigError, match="this agent has no `store`"):
            asyncio.run(_awaited(ask))
    assert "done" == till.resumed(first, {"c0.0": True}).text


async def _awaited(ask: Awaitable[object]) -> object:
    return await ask


def test_a_failed_run_that_is_resumed_tells_its_failure_again() -> None:
    """The journal holds no exception, but it holds what the exception said."""
    till = Till(ValueError("broken"), store=MemoryStore())
    with pytest.raises(ValueError, match="broken"):
        asyncio.run(till.agent.generate("go", run_id="r"))

    with pytest.raises(RunFailed, match="ValueError: broken"):
        till.resumed("r")
    with pytest.raises(ConfigError, match=r"takes no answers: it is over \(error\)"):
        till.resumed("r", {"c0.0": True})


def test_usage_is_of_the_leg_and_total_usage_of_the_run() -> None:
    """Who bills a request wants this leg; who bounds a run wants all of it."""
    till = Till(PAY, reply("done"))
    first = till.parked()

    second = till.resumed(first, {"c0.0": True})

    assert (Usage(10, 5), Usage(10, 5)) == (first.usage, first.total_usage)
    assert (Usage(10, 5), Usage(20, 10)) == (second.usage, second.total_usage)
    assert (Spent(), first.run.spent) == (first.before, second.before)


def answering(answer: object) -> Callable[[Pending], object]:
    """Return an approver that gives this answer."""
    return lambda _: answer


async def approve_later(pending: Pending) -> bool:
    """Approve, in an async function."""
    await asyncio.sleep(0)
    return pending.name == "pay"


def no_mind(_: Pending) -> bool:
    """Fail to decide."""
    raise LookupError("no policy")


@pytest.mark.parametrize(
    ("decide", "paid"),
    [
        (answering(True), [7]),
        (answering(False), []),
        (answering(Approval(approved=True, arguments='{"amount": 3}')), [3]),
        (answering(Approval(approved=True, arguments='{"amount": "x"}')), []),
        (answering("yes"), []),
        (answering(None), []),
        (approve_later, [7]),
        (no_mind, []),
    ],
)
def test_an_approver_in_this_process_decides_at_once(
    decide: Callable[[Pending], bool], paid: list[int]
) -> None:
    """It fails closed: only True, or an Approval that says so, lets a call run."""
    till = Till(PAY, "done")

    result = asyncio.run(till.agent.with_options(approve_tool_call=decide).generate("go"))

    assert (paid, EndReason.COMPLETED) == (till.paid, result.end_reason)


def test_an_approver_is_told_what_it_decides_about() -> None:
    """The same value that a parked run's result holds."""
    till = Till(reply(call("pay", "id-1", '{"amount": 7}')), "done")
    told: list[Pending] = []

    def decide(pending: Pending) -> bool:
        told.append(pending)
        return True

    asyncio.run(till.agent.with_options(approve_tool_call=decide).generate("go"))

    assert [Pending("approval", "c0.0", "id-1", "pay", '{"amount": 7}')] == told


def test_what_becomes_of_the_caller_s_messages_later_changes_nothing() -> None:
    """A stream is lazy; the conversation is the one it was asked with."""
    model = ScriptedModel(["done"])
    agent = Agent(model)
    messages: list[MessageInput] = [{"role": "user", "content": "first"}]

    stream = agent.stream(messages=messages)
    messages[0] = {"role": "user", "content": "second"}
    asyncio.run(stream.result())

    assert [UserMessage("first")] == list(model.requests[0].messages)[:1]


def test_a_question_comes_with_each_run_and_ids_are_made_up() -> None:
    """Two runs of one runner must not write into one journal."""
    model = ScriptedModel(["done"], restart=True)
    agent = Agent(model, store=MemoryStore())

    first, second = agent.generate_sync("a"), agent.generate_sync("b")

    assert first.run_id != second.run_id


def test_one_model_may_be_named_by_its_string_again(tmp_path: Path) -> None:
    """`model="script:…"` for a turn is the agent's own model, and no quarrel about labels."""
    script = tmp_path / "script.yaml"
    script.write_text("- hi\n", encoding="utf-8")
    name = f"script:{script}"

    agent = Agent(name, prepare_step=lambda _: StepChanges(model=name))

    assert "hi" == asyncio.run(agent.generate("go")).text


def test_a_wrong_question_is_the_stream_s_error_and_leaves_no_journal() -> None:
    """It is found when the stream is made, and told to whoever looks at it."""
    model, store = ScriptedModel(["done"]), MemoryStore()
    stream = Agent(model, store=store).stream(messages=[])

    with pytest.raises(ConfigError, match="`messages` is empty"):
        asyncio.run(stream.result())
    assert ([], []) == (model.requests, list(asyncio.run(store.runs())))


@pytest.mark.parametrize(
    ("label", "priced"), [("openai:gpt-4o", True), ("anthropic:x", True), ("script", False)]
)
def test_replies_of_real_models_are_priced_by_the_table(label: str, priced: bool) -> None:
    """A scripted model costs nothing that anybody knows: None, not zero."""
    model = ScriptedModel(["done"], label=label, model="gpt-4o")

    result = asyncio.run(Agent(model).generate("go"))

    assert priced == (result.cost_usd is not None)


@pytest.mark.parametrize("limit", [1, 2])
def test_one_tool_at_a_time_is_told_to_the_model(limit: int) -> None:
    """Who runs tools one by one should not be sent five calls."""
    model = ScriptedModel(["done"])

    asyncio.run(Agent(model, max_tool_concurrency=limit).generate("go"))

    assert (False if limit == 1 else None) is model.requests[0].settings.parallel_tool_calls
