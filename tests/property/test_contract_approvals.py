"""§3.5, §7.3 A01-A26, property 9: nothing gated runs that nobody has approved, and never twice.

The same decisions are given in all the ways there are: live, to a parked run, by another process
through the mailbox of the store, and with a conversation that was handed in. Stores are in memory
and in a real file; each leg over a file is a process of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, TypeAlias

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphloop import Agent, Approval, EndReason, Pending, RunResult, approve, decline
from graphloop.agent.options import AgentOptions
from graphloop.errors import ConfigError, StoreError
from graphloop.events import Decided
from graphloop.policy.approvals import Capability, digest, issue
from graphloop.stores.base import Store
from graphloop.stores.memory import MemoryStore
from graphloop.stores.sqlite.store import SqliteStore
from graphloop.tools.tool import Tool, ToolContext
from graphloop.values import Message, ToolCall, ToolResult, UserMessage
from tests.planned_model import PlannedModel
from tests.sizes import sized
from tests.strategies import wrong

Way: TypeAlias = Literal["live", "parked", "mailbox", "handed in"]

SECRET = "a secret"  # noqa: S105 - nobody's
AMOUNT = {
    "type": "object",
    "properties": {"amount": {"type": "integer"}},
    "required": ["amount"],
    "additionalProperties": False,
}


class Bank:
    """Tools with and without a human before them; notes every execution with its arguments."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, object]] = []

    def tools(self) -> list[Tool]:
        """Return the tools."""
        return [
            self.tool("note"),
            self.tool("pay", needs_approval=True),
            self.tool("maybe", needs_approval=self.above_ten),
            self.tool("fickle", needs_approval=self.raising),
            Tool(name="client", parameters=AMOUNT),
        ]

    def tool(self, name: str, *, needs_approval: bool | Callable[..., bool] = False) -> Tool:
        """Return one tool."""

        async def execute(arguments: dict[str, object], context: ToolContext) -> str:
            self.ran.append((context.key, arguments["amount"]))
            return f"{name} {arguments['amount']}"

        return Tool(name=name, parameters=AMOUNT, execute=execute, needs_approval=needs_approval)

    @staticmethod
    def above_ten(arguments: dict[str, int], context: ToolContext) -> bool:
        """Ask about large amounts."""
        return arguments["amount"] > 10

    @staticmethod
    def raising(arguments: dict[str, int], context: ToolContext) -> bool:
        """Fail to say."""
        raise LookupError

    def agent(
        self, calls: Sequence[ToolCall], store: Store | None = None, **options: object
    ) -> Agent:
        """Return an agent whose model makes these calls, then is done."""
        own: AgentOptions = wrong({"tools": self.tools(), "store": store, **options})
        return Agent(PlannedModel(lambda _: [calls]), **own)


def pay(name: str = "pay", amount: object = 5, call_id: str = "") -> ToolCall:
    """Return a call of a tool of the bank."""
    return ToolCall(call_id, name, f'{{"amount": {amount}}}')


def on_disk(work: Callable[[Store], Awaitable[None]], *, file: bool) -> None:
    """Run `work` over a database file or over memory."""

    async def scenario() -> None:
        if not file:
            await work(MemoryStore())
            return
        with TemporaryDirectory() as folder:
            store = SqliteStore(Path(folder) / "runs.db", durability="process")
            await work(store)
            await store.aclose()

    asyncio.run(scenario())


async def decided(
    way: Way,
    bank: Bank,
    calls: Sequence[ToolCall],
    answer: Callable[[Pending], object],
    store: Store,
) -> RunResult:
    """Return the result of a run whose gated calls are answered in this way."""
    result = await _decided(way, bank, calls, answer, store)
    if result.end_reason is EndReason.PARKED:
        theirs = {one.key: "theirs" for one in result.pending}
        return await bank.agent(calls, store).resume(result, tool_results=theirs)
    return result


async def _decided(
    way: Way,
    bank: Bank,
    calls: Sequence[ToolCall],
    answer: Callable[[Pending], object],
    store: Store,
) -> RunResult:
    if way == "live":
        approver = wrong(answer)
        return await bank.agent(calls, store, approve_tool_call=approver).generate("go")
    parked = await bank.agent(calls, store).generate("go", run_id="r")
    asked = [one for one in parked.pending if one.kind == "approval"]
    answers: Mapping[str, bool | Approval] = wrong({one.key: answer(one) for one in asked})
    if parked.end_reason is not EndReason.PARKED or (not asked and way != "handed in"):
        return parked
    unclear = [key for key, one in answers.items() if not is_answer(one) or is_stray(way, one)]
    if unclear:
        ran = list(bank.ran)
        with pytest.raises(
            ConfigError, match=r"expected True, False or an Approval|has a token that is"
        ):
            await _given(way, bank, calls, parked, answers)
        assert ran == bank.ran
    return await _given(way, bank, calls, parked, {**answers, **dict.fromkeys(unclear, False)})


def is_answer(given: object) -> bool:
    """Whether something is a yes or a no at all."""
    return isinstance(given.approved if isinstance(given, Approval) else given, bool)


def is_stray(way: Way, given: object) -> bool:
    """Whether an approval has the token of no question, which a mailbox does not even accept."""
    return way == "mailbox" and isinstance(given, Approval) and given.token != ""


async def _given(
    way: Way,
    bank: Bank,
    calls: Sequence[ToolCall],
    parked: RunResult,
    answers: Mapping[str, bool | Approval],
) -> RunResult:
    """Give the answers, and return the result of the leg that they begin."""
    store = parked.store
    if way == "parked":
        return await bank.agent(calls, store).resume("r", approvals=answers)
    if way == "mailbox":
        for key, one in answers.items():
            await bank.agent(calls, store).runs.approve("r", key, one)
        return await bank.agent(calls, store).resume("r")
    open_at = [
        at for at, one in enumerate(calls) if one.name == "client" and "many" not in one.arguments
    ]
    return await bank.agent(calls, store).generate(
        messages=[UserMessage("go"), *parked.messages],
        approvals={key.replace("c0.", "c-1."): one for key, one in answers.items()},
        tool_results={f"c-1.{at}": "theirs" for at in open_at},
    )


class Sly:
    """Claims to be true, and equal to everything."""

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


YES: tuple[object, ...] = (True, Approval(True), approve(), approve(edit={"amount": 7}))
NO: tuple[object, ...] = (
    False,
    None,
    1,
    "yes",
    "approved",
    [True],
    {"approved": True},
    Sly(),
    decline("no"),
    Approval(wrong(1)),
    Approval(wrong("true"), "sure"),
    Approval(wrong(Sly())),
    Approval(True, "", "", "forged"),
    Approval(True, "", "", "v1.e30."),
)
ways: st.SearchStrategy[Way] = st.sampled_from(["live", "parked", "mailbox", "handed in"])
calls_of = st.builds(
    pay,
    st.sampled_from(["note", "pay", "maybe", "fickle", "client", "nowhere"]),
    st.sampled_from([5, 50, '"many"']),
    st.sampled_from(["", "same", "own"]),
)


def asks(one: ToolCall) -> bool:
    """Whether a human must be asked about a call: worked out without any node."""
    if "many" in one.arguments:
        return False
    return one.name in {"pay", "fickle"} or (one.name == "maybe" and "50" in one.arguments)


def may_run(one: ToolCall) -> bool:
    """Whether a call is known and valid, and runs here."""
    return "many" not in one.arguments and one.name in {"note", "pay", "maybe", "fickle"}


@settings(max_examples=sized(20))
@given(
    way=ways,
    calls=st.lists(calls_of, min_size=1, max_size=4),
    answers=st.lists(st.sampled_from([*range(len(YES)), *range(-len(NO), 0)]), min_size=4),
    file=st.booleans(),
)
@example(way="mailbox", calls=[pay(), pay("fickle")], answers=[0, -3, 0, 0], file=True)
@example(way="mailbox", calls=[pay(), pay()], answers=[0, -1, 0, 0], file=False)
@example(way="handed in", calls=[pay(), pay()], answers=[0, -2, 0, 0], file=False)
@example(way="handed in", calls=[pay(), pay("client")], answers=[0, 0, 0, 0], file=False)
@example(
    way="handed in",
    calls=[pay("note", 5, ""), pay("note", '"many"', ""), pay("client", 5, "")],
    answers=[0, 0, 0, 0],
    file=False,
)
@example(
    way="handed in",
    calls=[pay("client", 5, ""), pay("client", '"many"', "")],
    answers=[0, 0, 0, 0],
    file=False,
)
def test_a_gated_call_runs_if_and_only_if_it_was_approved(
    way: Way, calls: list[ToolCall], answers: list[int], file: bool
) -> None:
    """In all ways alike; what is neither a yes nor a no denies, or is refused where it was given.

    An approver in the process is asked by a server, and fails closed; who hands answers in is told.
    """
    bank = Bank()

    def answer(one: Pending) -> object:
        pick = answers[int(one.key.rpartition(".")[2]) % len(answers)]
        return YES[pick] if pick >= 0 else NO[pick]

    async def work(store: Store) -> None:
        result = await decided(way, bank, calls, answer, store)

        assert EndReason.COMPLETED is result.end_reason
        expected: list[tuple[int, object]] = []
        for place, one in enumerate(calls):
            pick = answers[place % len(answers)]
            amount = 50 if "50" in one.arguments else 5
            if may_run(one) and (not asks(one) or pick >= 0):
                edited = asks(one) and pick == 3
                expected.append((place, 7 if edited else amount))
        ran = sorted((int(key.rpartition(".")[2]), amount) for key, amount in bank.ran)
        assert expected == ran
        messages = tuple(result.run.messages)
        results = [one for one in messages if isinstance(one, ToolResult)]
        assert [(one.id, one.name) for one in calls] == [(one.call_id, one.name) for one in results]

    on_disk(work, file=file)


@pytest.mark.parametrize("file", [False, True])
@pytest.mark.parametrize("way", ["live", "parked", "mailbox", "handed in"])
def test_a_reason_reaches_the_model_and_edited_arguments_the_tool(way: Way, file: bool) -> None:
    """A11, §9 #16: in every way to answer."""
    bank = Bank()

    def answer(one: Pending) -> object:
        return decline("too dear") if one.key.endswith("0") else approve(edit={"amount": 1})

    async def work(store: Store) -> None:
        result = await decided(way, bank, [pay(), pay("maybe", 99)], answer, store)

        first, second = [one for one in result.run.messages if isinstance(one, ToolResult)]
        assert ("denied", "Tool call denied. Reason: too dear") == (first.status, first.content)
        assert ("ok", "maybe 1") == (second.status, second.content)

    on_disk(work, file=file)


@pytest.mark.parametrize("file", [False, True])
def test_an_approval_is_good_once(file: bool) -> None:
    """E15, E19: applied twice it runs once, whoever applies it, to whichever state of the run."""
    bank = Bank()

    async def work(store: Store) -> None:
        parked = await bank.agent([pay()], store).generate("go", run_id="r")
        approvals = {"c0.0": parked.pending[0].approve()}
        await bank.agent([pay()], store).resume("r", approvals=approvals)
        with pytest.raises(ConfigError, match=r"does not wait for|takes no answers"):
            await bank.agent([pay()], store).resume("r", approvals=approvals)
        with pytest.raises(ConfigError, match="was resumed from this result before"):
            await bank.agent([pay()], store).resume(parked, approvals=approvals)

    on_disk(work, file=file)

    assert 1 == len(bank.ran)


@pytest.mark.parametrize("file", [False, True])
@pytest.mark.parametrize("secret", [None, SECRET])
@pytest.mark.parametrize("token", [False, True])
def test_an_approval_that_is_handed_in_is_good_once_in_a_store(
    file: bool, secret: str | None, token: bool
) -> None:
    """A conversation is no journal, but the store knows the run that has taken it up."""
    bank = Bank()

    async def work(store: Store) -> None:
        agent = bank.agent([pay(call_id="p")], store, approval_secret=secret)
        parked = await bank.agent([pay(call_id="p")], approval_secret=secret).generate("go")
        given = parked.pending[0].approve() if token or secret else True
        history: list[Message] = [UserMessage("go"), *parked.messages]
        first = await agent.generate(messages=history, approvals={"p": given})
        for name in ("p", "c-1.0"):
            with pytest.raises(ConfigError, match=f"run '{first.run_id}' has taken this conv.*"):
                await agent.generate(messages=history, approvals={name: given})
        assert ["pay 5"] == [one.text for one in first.messages if isinstance(one, ToolResult)]

    on_disk(work, file=file)

    assert [("c-1.0", 5)] == bank.ran


@pytest.mark.parametrize("file", [False, True])
def test_a_conversation_that_two_processes_hand_in_runs_once(file: bool) -> None:
    """Neither finds the other's run before it starts its own: the store refuses the second."""
    bank = Bank()

    async def work(store: Store) -> None:
        agent = bank.agent([pay(call_id="p")], store, approval_secret=SECRET)
        parked = await agent.generate("go", run_id="r")
        given = {"p": parked.pending[0].approve()}
        history: list[Message] = [UserMessage("go"), *parked.messages]
        results = await asyncio.gather(
            *[agent.generate(messages=history, approvals=given) for _ in range(3)],
            return_exceptions=True,
        )
        finished = [one for one in results if isinstance(one, RunResult)]
        refused = [one for one in results if isinstance(one, StoreError | ConfigError)]
        assert (1, 2) == (len(finished), len(refused))

    on_disk(work, file=file)

    assert [("c-1.0", 5)] == bank.ran


@pytest.mark.parametrize("verdicts", [(True, True), (True, False), (False, True)])
def test_of_two_processes_that_answer_at_once_the_first_counts(
    verdicts: tuple[bool, bool],
) -> None:
    """However their steps interleave: one drives the run, the other is told so."""
    bank = Bank()

    async def scenario(folder: str) -> None:
        stores = [SqliteStore(Path(folder) / "r.db", durability="process") for _ in verdicts]
        await bank.agent([pay()], stores[0]).generate("go", run_id="r")
        results = await asyncio.gather(
            *[
                bank.agent([pay()], store).resume("r", approvals={"c0.0": verdict})
                for store, verdict in zip(stores, verdicts, strict=True)
            ],
            return_exceptions=True,
        )
        finished = [one for one in results if isinstance(one, RunResult)]
        refused = [one for one in results if isinstance(one, StoreError | ConfigError)]
        assert 1 == len(finished)
        assert 1 == len(refused)
        decisions = [one for one in await stores[0].load("r") if isinstance(one, Decided)]
        assert 1 == len(decisions)
        assert decisions[0].approved is bool(bank.ran)
        for store in stores:
            await store.aclose()

    with TemporaryDirectory() as folder:
        asyncio.run(scenario(folder))

    assert len(bank.ran) <= 1


CAPABILITY = Capability("r", "c0.0", "pay", digest(pay().arguments), None)


def test_an_approval_without_a_token_is_refused_and_not_recorded() -> None:
    """It could only deny, for good; the person can answer again, as the message says."""
    bank = Bank()

    async def work(store: Store) -> None:
        agent = bank.agent([pay()], store, approval_secret=SECRET)
        parked = await agent.generate("go", run_id="r")
        before = list(await store.load("r"))
        for unsigned in (True, Approval(True)):
            with pytest.raises(ConfigError, match=r"no token.*call\.approve\(\)"):
                await agent.resume("r", approvals={"c0.0": unsigned})
        assert before == list(await store.load("r"))
        await agent.resume("r", approvals={"c0.0": parked.pending[0].approve()})

    on_disk(work, file=True)

    assert 1 == len(bank.ran)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(("answered_at", "runs"), [(59.0, True), (60.0, False)])
def test_an_approval_in_time_is_good_whenever_the_run_is_driven(
    answered_at: float, runs: bool, signed: bool
) -> None:
    """`approval_ttl_s` bounds the answer; who answered has no say in when the run goes on."""
    bank, now = Bank(), [0.0]

    async def work(store: Store) -> None:
        agent = bank.agent(
            [pay()],
            store,
            approval_ttl_s=60,
            clock=lambda: now[0],
            approval_secret=SECRET if signed else None,
        )
        await agent.generate("go", run_id="r")
        now[0] = answered_at
        if runs:
            assert "accepted" == await agent.runs.approve("r", "c0.0")
        else:
            with pytest.raises(ConfigError, match="comes too late"):
                await agent.runs.approve("r", "c0.0")
            await agent.runs.approve("r", "c0.0", False)
        now[0] = 1e6
        result = await agent.resume("r")
        assert EndReason.COMPLETED is result.end_reason
        assert result.run == await agent.runs.replay("r")

    on_disk(work, file=True)

    assert runs is bool(bank.ran)


@pytest.mark.parametrize("way", ["parked", "mailbox", "handed in"])
@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (issue(CAPABILITY, None), "not signed"),
        (issue(CAPABILITY, "another secret"), "forged"),
        (issue(CAPABILITY, SECRET)[:-2] + "AA", "forged"),
        ("v1.x.y.z", "malformed"),
        ("v2.e30.e30", "malformed"),
        ("\ud800", "malformed"),
    ],
)
def test_with_a_secret_only_what_was_signed_approves(way: Way, token: str, reason: str) -> None:
    """A18 to A20, §9 #46: with or without a store; the model is told that it was denied."""
    bank = Bank()

    async def work(store: Store) -> None:
        parked = await bank.agent([pay()], store, approval_secret=SECRET).generate("go", run_id="r")
        agent = bank.agent([pay()], store, approval_secret=SECRET)
        given = Approval(True, token=token)
        if way == "handed in":
            result = await agent.generate(
                messages=[UserMessage("go"), *parked.messages], approvals={"c-1.0": given}
            )
        else:
            result = await agent.resume("r", approvals={"c0.0": given})
        (answer,) = [one for one in result.run.messages if isinstance(one, ToolResult)]
        expected = f"Tool call denied. Reason: the approval is {reason}."
        assert ("denied", expected) == (answer.status, answer.content)

    on_disk(work, file=way == "mailbox")

    assert [] == bank.ran


@pytest.mark.parametrize("handed_in", [False, True])
@pytest.mark.parametrize("approved", [True, False])
def test_with_a_secret_the_signed_answer_counts(approved: bool, handed_in: bool) -> None:
    """`Pending.approve` carries the token; a denial needs none."""
    bank = Bank()

    async def scenario() -> RunResult:
        agent = bank.agent([pay(call_id="p")], approval_secret=SECRET)
        parked = await agent.generate("go")
        (one,) = parked.pending
        given = one.approve() if approved else one.decline()
        if handed_in:
            history: list[Message] = [UserMessage("go"), *parked.messages]
            return await agent.generate(messages=history, approvals={"p": given})
        return await agent.resume(parked, approvals={one.key: given})

    assert EndReason.COMPLETED is asyncio.run(scenario()).end_reason
    assert approved is bool(bank.ran)


async def test_a_token_for_one_call_approves_no_other_of_a_conversation() -> None:
    """Neither other arguments nor another tool."""
    bank = Bank()

    small = bank.agent([pay(call_id="p")], approval_secret=SECRET)
    (asked,) = (await small.generate("go")).pending
    for other in (pay(amount=500, call_id="p"), pay("fickle", call_id="p")):
        agent = bank.agent([other], approval_secret=SECRET)
        parked = await agent.generate("go")
        history: list[Message] = [UserMessage("go"), *parked.messages]
        with pytest.raises(ConfigError, match="has a token that is"):
            await agent.generate(messages=history, approvals={"p": asked.approve()})
        await agent.resume(parked, approvals={"c0.0": asked.approve()})

    assert [] == bank.ran


async def test_a_token_of_one_conversation_approves_nothing_in_another() -> None:
    """Servers give the same ids again and again: only the conversation tells two calls apart."""
    bank = Bank()
    agent = bank.agent([pay(call_id="p")], approval_secret=SECRET)

    async def answered(history: list[Message], given: Approval) -> str:
        result = await agent.generate(messages=history, approvals={"p": given})
        (answer,) = [one for one in result.messages if isinstance(one, ToolResult)]
        return answer.text

    parked = await agent.generate("pay the baker")
    (asked,) = parked.pending
    given = asked.approve()
    own: list[Message] = [UserMessage("pay the baker"), *parked.messages]
    for history in (
        [UserMessage("pay the thief"), *parked.messages],
        [UserMessage("hello"), *own],
    ):
        with pytest.raises(ConfigError, match="of another conversation"):
            await answered(history, given)
    assert [] == bank.ran
    assert "pay 5" == await answered(own, given)

    assert 1 == len(bank.ran)


def test_a_token_of_another_run_approves_nothing() -> None:
    """A21: the same call, the same arguments, the same key."""
    bank = Bank()

    async def work(store: Store) -> None:
        agent = bank.agent([pay()], store, approval_secret=SECRET)
        (other,) = (await agent.generate("go", run_id="other")).pending
        await agent.generate("go", run_id="r")
        result = await agent.resume("r", approvals={"c0.0": other.approve()})
        assert "of another run" in str(result.steps[0].tool_results[0].content)

    on_disk(work, file=True)

    assert [] == bank.ran


def test_a_run_with_a_secret_is_not_resumed_without() -> None:
    """§9 #46: nobody could tell a forged approval from a true one."""
    bank = Bank()

    async def work(store: Store) -> None:
        await bank.agent([pay()], store, approval_secret=SECRET).generate("go", run_id="r")
        with pytest.raises(ConfigError, match="approval_secret"):
            await bank.agent([pay()], store).resume("r", approvals={"c0.0": True})

    on_disk(work, file=True)

    assert [] == bank.ran


@pytest.mark.parametrize(("late", "ran"), [(59.0, 1), (60.0, 0), (1e9, 0)])
def test_an_approval_comes_in_time_or_not_at_all(late: float, ran: int) -> None:
    """A20: the clock of the run decides, and the token says so too."""
    bank, now = Bank(), [1000.0]

    async def work(store: Store) -> None:
        agent = bank.agent([pay()], store, approval_ttl_s=60.0, clock=lambda: now[0])
        parked = await agent.generate("go", run_id="r")
        (asked,) = parked.pending
        assert 1060.0 == asked.expires_at
        now[0] += late
        await agent.resume("r", approvals={"c0.0": asked.approve() if ran else True})

    on_disk(work, file=True)

    assert ran == len(bank.ran)


def test_nobody_is_asked_about_a_call_that_could_not_run() -> None:
    """A22, §9 #15: validate, then gate, then approve; approvals of a batch come before any tool."""
    bank = Bank()
    asked: list[tuple[str, int]] = []

    def approver(one: Pending) -> bool:
        asked.append((one.name, len(bank.ran)))
        return True

    calls = [pay("note"), pay(amount='"many"'), pay("nowhere"), pay(), pay("fickle")]
    result = asyncio.run(bank.agent(calls, approve_tool_call=approver).generate("go"))

    assert [("pay", 0), ("fickle", 0)] == sorted(asked, reverse=True)
    assert ["ok", "invalid", "unknown_tool", "ok", "ok"] == [
        one.status for one in result.steps[0].tool_results
    ]


def test_an_approver_that_fails_denies() -> None:
    """A04: and its message is the reason."""
    bank = Bank()

    def approver(one: Pending) -> bool:
        raise TimeoutError("nobody there")

    result = asyncio.run(bank.agent([pay()], approve_tool_call=approver).generate("go"))

    (answer,) = result.steps[0].tool_results
    assert "denied" == answer.status
    assert "nobody there" in str(answer.content)
    assert [] == bank.ran


def test_a_model_that_keeps_asking_for_what_is_denied_is_stopped() -> None:
    """§9 #17: denials end a run; they are no tool errors."""
    bank = Bank()
    model = PlannedModel(lambda _: [[pay()]] * 50)
    agent = Agent(
        model, tools=bank.tools(), approve_tool_call=lambda _: False, max_consecutive_denials=3
    )

    result = asyncio.run(agent.generate("go"))

    assert EndReason.DENIALS is result.end_reason
    assert 3 == len(result.steps)
    assert [] == bank.ran


@pytest.mark.parametrize("answers", [{}, {"nobody's": True}])
def test_what_is_not_answered_in_a_conversation_is_denied(answers: dict[str, bool]) -> None:
    """A12 to A14: what needs nobody runs, what has a result is left alone, the rest is answered."""
    bank = Bank()
    calls = (pay("note", call_id="n"), pay(call_id="p"), pay("client", call_id="c"))
    done = ToolResult("", "d", "note", "note 9")
    assistant = wrong({"role": "assistant", "content": "", "tool_calls": []})
    assistant["tool_calls"] = [
        {"id": one.id, "function": {"name": one.name, "arguments": one.arguments}}
        for one in (pay("note", 9, "d"), *calls)
    ]
    history: list[Message] = [UserMessage("go"), assistant, done]
    agent = bank.agent([])
    if answers:
        with pytest.raises(ConfigError, match="expected the key"):
            asyncio.run(agent.generate(messages=history, approvals=answers))
        return

    result = asyncio.run(agent.generate(messages=history, approvals=answers))

    statuses = [one.status for one in result.run.messages if isinstance(one, ToolResult)]
    assert ["ok", "ok", "denied", "not_run"] == statuses
    assert [("c-1.1", 5)] == bank.ran
    assert ["tool"] * 3 == [one.role for one in result.messages[:3]]


@pytest.mark.parametrize("file", [False, True])
def test_some_can_be_answered_now_and_others_later(file: bool) -> None:
    """§4.6: what is not answered stays pending, and nothing of the batch has run."""
    bank = Bank()
    calls = [pay(), pay(), pay("note"), pay("client")]

    async def work(store: Store) -> None:
        await bank.agent(calls, store).generate("go", run_id="r")
        second = await bank.agent(calls, store).resume("r", approvals={"c0.1": True})
        assert ["c0.0"] == [one.key for one in second.pending]
        third = await bank.agent(calls, store).resume("r", approvals={"c0.0": False})
        assert [("c0.3", "client_tool")] == [(one.key, one.kind) for one in third.pending]
        assert [] == bank.ran
        last = await bank.agent(calls, store).resume("r", tool_results={"c0.3": [1]})
        assert ["denied", "ok", "ok", "ok"] == [one.status for one in last.steps[0].tool_results]
        assert "[1]" == last.steps[0].tool_results[3].content

    on_disk(work, file=file)

    assert ["c0.1", "c0.2"] == [key for key, _ in bank.ran]


def test_calls_that_need_nobody_may_run_before() -> None:
    """§9 #21: an option; their results are kept, and they do not run again."""
    bank = Bank()
    calls = [pay("note"), pay(), pay("client")]

    async def work(store: Store) -> None:
        parked = await bank.agent(calls, store, run_ungated=True).generate("go", run_id="r")
        assert ["c0.0"] == [key for key, _ in bank.ran]
        assert {"c0.1", "c0.2"} >= {one.key for one in parked.pending}
        result = parked
        for _ in range(3):
            if result.end_reason is EndReason.PARKED:
                result = await bank.agent(calls, store, run_ungated=True).resume(
                    "r",
                    approvals={one.key: True for one in result.pending if one.kind == "approval"},
                    tool_results={
                        one.key: "theirs" for one in result.pending if one.kind == "client_tool"
                    },
                )
        assert EndReason.COMPLETED is result.end_reason

    on_disk(work, file=True)

    assert ["c0.0", "c0.1"] == [key for key, _ in bank.ran]
