"""Handed in: the answers to the calls that a conversation ends in, each bound to its call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from graphloop import Agent, Approval, EndReason, RunResult, Tool, decline, tool
from graphloop.agent.answers import Answers
from graphloop.agent.conversation_answers import ConversationAnswers, conversation_digest
from graphloop.agent.inputs import MessageInput, messages_of
from graphloop.effects import AskHuman, CallTool
from graphloop.errors import ConfigError, StoreError
from graphloop.media import Inline, MediaPart, Url
from graphloop.policy.approvals import issue
from graphloop.providers.script import Entry
from graphloop.questions.pending import capability_of
from graphloop.run import evolve
from graphloop.stores.base import Store
from graphloop.stores.jsonl import JsonlStore
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.tools.outcome import ToolOutcome
from graphloop.tools.toolbox import Toolbox
from graphloop.values import (
    AssistantMessage,
    Message,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
)
from tests.strategies import call, fresh, reply, said
from tests.unit.agent.doubles import gated

PAY = ToolCall("p", "pay", '{"amount": 5}')


HANDED: tuple[Message, ...] = (UserMessage("go"), said(PAY, call("client", "k")))


def handed(
    answers: Answers, secret: bytes | None = None, messages: tuple[Message, ...] = HANDED
) -> ConversationAnswers:
    """Return a conversation with answers, at second 9."""
    return ConversationAnswers(messages, answers, secret, lambda: 9.0)


FIRST = AskHuman(1, "c-1.0", PAY)


def settled(
    answers: Answers,
    effect: AskHuman | CallTool = FIRST,
    secret: bytes | None = None,
    messages: tuple[Message, ...] = HANDED,
) -> Approval | ToolOutcome:
    """Return the answer to one open call of a conversation."""
    return handed(answers, secret, messages).given_answer()(effect)


def test_the_calls_of_a_conversation_are_answered_by_id_or_key() -> None:
    third = AskHuman(3, "c-1.2", call("pay", "p"))
    twice = (UserMessage("go"), said(PAY, call("client", "k"), call("pay", "p")))

    assert Approval(True) == settled(Answers({"p": True}))
    assert Approval(True) == settled(Answers({"c-1.0": True}))
    names = {"c-1.0": "c-1.0", "c-1.1": "c-1.1", "p": "c-1.0", "k": "c-1.1"}
    assert names == handed(Answers()).names
    assert ["c-1.0", "c-1.1", "c-1.2", "k"] == list(handed(Answers(), messages=twice).names)
    denied = Approval(False, "no person has answered.")
    assert denied == settled(Answers({"p": True}), messages=twice)
    assert Approval(True) == settled(Answers({"c-1.2": True}), third, messages=twice)


def test_what_a_conversation_has_no_answer_for_is_denied() -> None:
    client = CallTool(2, "c-1.1", call("client", "k"), client=True)

    assert Approval(False, "no person has answered.") == settled(Answers())
    outcome = settled(Answers(), client)
    assert isinstance(outcome, ToolOutcome)
    assert "not_run" == outcome.status
    assert ToolOutcome("x", "ok") == settled(Answers(tool_results={"k": "x"}), client)


SECRET = b"s"


def signed(
    effect: AskHuman,
    secret: bytes = SECRET,
    messages: Sequence[Message] = HANDED,
    run_id: str = "r",
) -> str:
    """Return the token of a question of some run at the end of a conversation."""
    capability = capability_of(evolve(fresh(), id=run_id), effect)
    return issue(evolve(capability, conversation=conversation_digest(messages)), secret)


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        (Answers({"nobody's": True}), r"found \"nobody's\""),
        (Answers(tool_results={"nobody's": 1}), r"found \"nobody's\""),
        (
            Answers({"c0.0/c1.0": Approval(True, token=signed(AskHuman(1, "c0.0/c1.0", PAY)))}),
            "answer a call of a child run by resume",
        ),
    ],
    ids=["approval", "result", "child"],
)
def test_an_answer_to_no_open_call_is_refused(answers: Answers, found: str) -> None:
    with pytest.raises(ConfigError, match=found):
        handed(answers).check(Toolbox([]), ())


def test_a_result_for_a_tool_that_runs_here_is_refused() -> None:
    """The tool would run although the caller has done its work, and the result would be lost."""
    toolbox = Toolbox([gated("pay")])

    with pytest.raises(ConfigError, match=r"`tool_results`: expected .* of a client tool"):
        handed(Answers(tool_results={"p": "paid"})).check(toolbox, ())


QUESTION = AskHuman(1, "c0.0", PAY)


OTHER = evolve(QUESTION, call=call("pay"))


UNBOUND = issue(capability_of(fresh(), QUESTION), SECRET)


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({"p": True}, "not signed"),
        ({"p": Approval(True, "", "", "x")}, "malformed"),
        ({"p": Approval(True, token=signed(QUESTION, b"x"))}, "forged"),
        ({"p": Approval(True, token=signed(evolve(QUESTION, key="c0.1")))}, "of another call"),
        ({"p": Approval(True, token=signed(OTHER))}, "for other arguments"),
        (
            {"p": Approval(True, token=signed(QUESTION, messages=HANDED[1:]))},
            "of another conversation",
        ),
        ({"p": Approval(True, token=UNBOUND)}, "of another conversation"),
        ({"p": Approval(True, token=signed(evolve(QUESTION, expires_at=9.0)))}, "expired"),
    ],
)
def test_a_conversation_is_approved_by_signed_tokens_only(
    answers: Mapping[str, bool | Approval], reason: str
) -> None:
    expected = Approval(False, f"the approval is {reason}.")

    assert expected == settled(Answers(answers), secret=SECRET)


LOOK = UserMessage((TextPart("go"), MediaPart("image/*", Url("https://a.test/b.png"))))


def shown(data: bytes, name: str = "") -> UserMessage:
    return UserMessage((TextPart("go"), MediaPart("image/png", Inline(data), name)))


RESULT = ToolResult("c0.0", "p", "pay", "paid")


THOUGHT = AssistantMessage((ReasoningPart("hm"), TextPart("well"), call("pay", "p")))


WRITTEN: list[MessageInput] = [
    {"role": "user", "content": "go"},
    {
        "role": "assistant",
        "content": "well",
        "tool_calls": [
            {"id": "p", "type": "function", "function": {"name": "pay", "arguments": "{}"}}
        ],
    },
]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ([UserMessage("go"), THOUGHT], messages_of(WRITTEN), True),
        ([SystemMessage("be nice"), UserMessage("go"), THOUGHT], messages_of(WRITTEN), True),
        ([UserMessage((TextPart("go"),)), THOUGHT], messages_of(WRITTEN), True),
        ([UserMessage("go"), THOUGHT, RESULT], [UserMessage("go"), THOUGHT], True),
        ([UserMessage("go"), THOUGHT], [UserMessage("stop"), THOUGHT], False),
        ([UserMessage("go"), THOUGHT], [THOUGHT], False),
        ([UserMessage("go"), THOUGHT], [UserMessage("go"), said("well", PAY)], False),
        ([LOOK, THOUGHT], [UserMessage("go"), THOUGHT], False),
        ([LOOK, THOUGHT], [evolve(LOOK, origin="x"), THOUGHT], True),
        ([shown(b"one"), THOUGHT], [shown(b"two"), THOUGHT], False),
        ([shown(b"one"), THOUGHT], [shown(b"one", "a.png"), THOUGHT], True),
        (
            [UserMessage("go"), THOUGHT, RESULT, THOUGHT],
            [UserMessage("go"), THOUGHT, evolve(RESULT, content="not paid"), THOUGHT],
            False,
        ),
    ],
)
def test_a_digest_depends_on_texts_calls_and_results(
    one: Sequence[Message], other: Sequence[Message], same: bool
) -> None:
    assert same is (conversation_digest(one) == conversation_digest(other))


ASKED = reply("well", call("pay", "p"))


def agent(
    *script: Entry,
    store: Store | None = None,
    ran: list[str] | None = None,
    secret: bytes | None = None,
) -> Agent:
    """Return an agent with a gated tool."""
    ran = [] if ran is None else ran

    async def execute(arguments: dict[str, object]) -> str:
        ran.append("pay")
        return "paid"

    pay = Tool(name="pay", parameters={"type": "object"}, execute=execute, needs_approval=True)
    return Agent(
        ScriptedModel(script),
        tools=[pay],
        store=store,
        instructions="Be nice.",
        approval_secret=secret,
    )


async def parked(one: Agent) -> tuple[RunResult, list[MessageInput]]:
    """Return a run that waits, and its conversation."""
    result = await one.generate("go")
    assert EndReason.PARKED is result.end_reason
    return result, [UserMessage("go"), *result.messages]


@pytest.mark.parametrize("leg", ["result", "id"])
async def test_a_token_is_bound_to_the_conversation_of_any_leg(tmp_path: Path, leg: str) -> None:
    ran: list[str] = []

    store = JsonlStore(tmp_path)
    one = agent(ASKED, ASKED, store=store, ran=ran, secret=SECRET)
    first, _ = await parked(one)
    given = {"c0.0": first.pending[0].approve()}
    second = await one.resume(first if leg == "result" else first.run_id, approvals=given)
    (pending,) = second.pending
    other = agent("done", ran=ran, secret=SECRET)
    assert (
        "done"
        == (
            await other.generate(
                messages=[UserMessage("go"), *second.messages], approvals={"p": pending.approve()}
            )
        ).text
    )
    assert ["pay", "pay"] == ran


async def test_only_a_store_counts_how_often_an_approval_is_used() -> None:
    ran: list[str] = []
    one = agent(ASKED, "done", "done", ran=ran)
    _, history = await parked(one)
    for _ in range(2):
        await one.generate(messages=history, approvals={"p": True})
    assert ["pay", "pay"] == ran

    stored = agent("done", "done", store=MemoryStore(), ran=ran)
    first = await stored.generate(messages=history, approvals={"p": True}, run_id="mine")
    assert "mine" == first.run_id
    with pytest.raises(StoreError, match="'mine'"):
        await stored.generate(messages=history, approvals={"p": True}, run_id="mine")
    assert ["pay"] * 3 == ran


@pytest.mark.parametrize("jsonl", [False, True])
async def test_in_a_store_a_conversation_is_approved_once(tmp_path: Path, jsonl: bool) -> None:
    ran: list[str] = []

    store = JsonlStore(tmp_path) if jsonl else MemoryStore()
    result, history = await parked(agent(ASKED))
    given = {"p": result.pending[0].approve()}
    first = await agent("done", store=store, ran=ran).generate(messages=history, approvals=given)
    for answers in (given, {"p": True}):
        with pytest.raises(ConfigError, match=f"run '{first.run_id}' has taken this conv"):
            await agent(store=store, ran=ran).generate(messages=history, approvals=answers)

    assert ["pay"] == ran


async def test_a_run_that_died_with_its_approvals_is_resumed_by_its_id() -> None:
    ran: list[str] = []

    whole, cut = MemoryStore(), MemoryStore()
    _, history = await parked(agent(ASKED))
    one = agent("done", store=whole)
    run_id = (await one.generate(messages=history, approvals={"p": True})).run_id
    await cut.append(run_id, 1, (await whole.load(run_id))[0])
    later = agent("done", store=cut, ran=ran)
    with pytest.raises(ConfigError, match=f"run '{run_id}' has taken this conversation"):
        await later.generate(messages=history, approvals={"p": True})
    waiting = await later.resume(run_id)
    assert ["c-1.0"] == [one.key for one in waiting.pending]
    assert "done" == (await later.resume(run_id, approvals={"c-1.0": True})).text
    assert ["pay"] == ran


async def test_a_token_that_is_no_good_uses_nothing_up() -> None:
    ran: list[str] = []

    one = agent(ASKED, "denied", "done", store=MemoryStore(), ran=ran, secret=SECRET)
    result, history = await parked(one)
    (pending,) = result.pending
    forged = Approval(approved=True, token=pending.token[:-2] + "AA")
    await one.generate(messages=history, approvals={"p": forged})
    assert "done" == (await one.generate(messages=history, approvals={"p": pending.approve()})).text
    assert ["pay"] == ran


def strict(*script: Entry, ran: list[str], store: Store | None = None) -> Agent:
    """Return an agent whose gated tool takes an amount only."""

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        """Pay."""
        ran.append(f"pay {amount}")
        return "paid"

    return Agent(ScriptedModel(script), tools=[pay], store=store)


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("name", ["p", "c-1.0"])
@pytest.mark.parametrize("edit", ['{"amount": "much"}', "{", "[]"])
async def test_an_edit_that_does_not_fit_leaves_it_waiting(
    edit: str, name: str, stored: bool
) -> None:
    ran: list[str] = []
    store = MemoryStore() if stored else None

    one = strict(reply(PAY), "done", ran=ran, store=store)
    result, history = await parked(one)
    known = () if store is None else tuple(await store.runs())
    (pending,) = result.pending
    for given in (Approval(approved=True, arguments=edit), pending.approve(edit=edit)):
        with pytest.raises(ConfigError, match=f"approvals\\['{name}'\\]: the edited arguments"):
            await one.generate(messages=history, approvals={name: given})
    if store is not None:
        assert (known, {}) == (tuple(await store.runs()), await store.posted(result.run_id))
    right = {name: pending.approve(edit={"amount": 6})}
    assert "done" == (await one.generate(messages=history, approvals=right)).text
    assert ["pay 6"] == ran


async def test_a_token_of_another_call_is_refused_and_uses_nothing() -> None:
    ran: list[str] = []
    store = MemoryStore()
    both = reply(call("pay", "p"), call("pay", "q"))

    one = agent(both, both, "done", store=store, ran=ran, secret=SECRET)
    first, history = await parked(one)
    second = await one.generate("stop")
    known = await store.runs()
    p, q = first.pending
    for wrong, problem in ((q, "of another call"), (second.pending[0], "of another conv")):
        with pytest.raises(ConfigError, match=f"'p'.* has a token that is {problem}"):
            await one.generate(messages=history, approvals={"p": wrong.approve()})
    assert (known, {}) == (await store.runs(), await store.posted(first.run_id))
    given = {"p": p.approve(), "q": q.approve()}
    assert "done" == (await one.generate(messages=history, approvals=given)).text
    assert ["pay", "pay"] == ran


KID = reply(call("kid", "k", '{"prompt": "go"}'))


@pytest.mark.parametrize("secret", [None, SECRET])
@pytest.mark.parametrize("stored", [False, True])
async def test_an_open_call_of_an_agent_is_refused_and_its_run_goes_on(
    stored: bool, secret: bytes | None
) -> None:
    ran: list[str] = []

    kid = agent(ASKED, "kid done", ran=ran).as_tool(name="kid", description="Works.")
    store = MemoryStore() if stored else None
    one = Agent(ScriptedModel([KID, "done"]), tools=[kid], store=store, approval_secret=secret)
    result, history = await parked(one)
    (pending,) = result.pending
    answers: list[bool | Approval] = [True, False, decline("no"), pending.approve()]
    for given in ({}, *[{"k": answer} for answer in answers]):
        with pytest.raises(ConfigError, match=r"'kid' is open.*resume\(result"):
            await one.generate(messages=history, approvals=given)
    assert [] == ran
    assert "done" == (await one.resume(result, approvals={pending.key: pending.approve()})).text
    assert ["pay"] == ran
