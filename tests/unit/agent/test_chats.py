"""Chats: each question is a run, and their chain is one conversation, in any store."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import AsyncGenerator, Collection
from pathlib import Path
from statistics import median

import pytest

from graphloop import Agent, Compaction, EndReason, Runs, ToolContext, approve, budget, tool
from graphloop.agent import Chat, MessageInput
from graphloop.agent.chats.chain import STRIDES, Chain
from graphloop.agent.options import AgentOptions
from graphloop.errors import ConfigError, Overloaded, RunBusy, StoreError
from graphloop.media import MediaPart, Url, image
from graphloop.providers.base import StreamItem
from graphloop.rules import at_most, at_most_once, never
from graphloop.stores.base import Store
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.values import (
    Message,
    ModelRequest,
    Reply,
    SystemMessage,
    TextPart,
    UserMessage,
)
from tests.strategies import call, reply, said, wrong
from tests.unit.agent.doubles import gated, read

Place = Store | str


@pytest.fixture(params=["memory", "c.db", "runs"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return a place for chats of each kind: memory, SQLite, and JSON lines."""
    return MemoryStore() if request.param == "memory" else str(tmp_path / request.param)


def texts(messages: tuple[Message, ...]) -> list[str]:
    """Return what was said, in words."""
    return [
        str(one.content) if isinstance(one, UserMessage | SystemMessage) else one.text
        for one in messages
    ]


def asked(model: ScriptedModel, at: int = -1) -> list[str]:
    """Return the conversation in a request."""
    return texts(tuple(model.requests[at].messages))


async def test_a_chat_goes_on_wherever_it_is_opened(place: Place) -> None:
    """A web server has no chat in memory: each request opens it anew."""
    model = ScriptedModel([reply(call()), "one", "two", "three"])
    agent = Agent(model, tools=[read], instructions="Be brief.")

    for question in ("first", "second", "third"):
        async with agent.chat("user-42", store=place) as chat:
            result = await chat.send(question)
            assert "user-42." in result.run_id

    expected = ["first", "", "text", "one", "second", "two", "third", "three"]
    assert ["Be brief.", *expected[:-1]] == asked(model)
    async with agent.chat("user-42", store=place) as chat:
        assert expected == texts(await chat.messages()) == texts(await chat.messages())
        assert ("user-42.1", "user-42.2", "user-42.3") == await chat.run_ids()
        assert (4, 1) == ((await chat.spent()).model_calls, (await chat.spent()).tool_calls)
        assert (await Runs(place, agent).replay("user-42.2")).ended


async def test_one_chat_object_asks_question_after_question(place: Place) -> None:
    model = ScriptedModel([f"answer {number}" for number in range(20)])

    async with Agent(model).chat("c", store=place) as chat:
        assert "<Chat 'c' with 'agent'>" == repr(chat)
        for number in range(20):
            assert f"answer {number}" == (await chat.send(f"question {number}")).text
        assert 40 == len(await chat.messages())

    assert 39 == len(model.requests[-1].messages)


async def test_a_late_question_keeps_and_takes_no_more_memory_than_an_early_one() -> None:
    """The runs of a chat share what they begin with: a copy for each would grow with its square.

    Bytes are counted and not time, because the same program takes the same.
    """
    gc.collect()
    gc.freeze()  # As the tests begin: a collection looks at nothing that other tests have left.
    peaks, kept = dict[int, list[int]](), dict[int, list[int]]()
    chat = Agent(ScriptedModel(["answer"], restart=True), instructions="Be brief.").chat()
    for number in range(330):
        is_counted = 20 <= number % 300 < 30
        if is_counted:
            gc.collect()
            tracemalloc.start()
        await chat.send("question")
        if not is_counted:
            continue
        _, peak = tracemalloc.get_traced_memory()
        gc.collect()
        now, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        peaks.setdefault(number // 300, []).append(peak)
        kept.setdefault(number // 300, []).append(now)

    for bytes_of in (peaks, kept):
        early, late = (median(bytes_of[part]) for part in (0, 1))
        # A copy of the messages alone would be 5,000 bytes: two each of 300 questions.
        assert late - early < 1_500


def test_a_chat_without_a_loop_goes_on_too(tmp_path: Path) -> None:
    model = ScriptedModel(["one", "two"])
    chat = Agent(model, store=str(tmp_path / "c.db")).chat("c")

    assert ("one", "two") == (chat.send_sync("first").text, chat.send_sync("second").text)
    assert ["first", "one", "second", "two"] == texts(chat.messages_sync())


async def test_a_chat_without_id_and_store_is_kept_in_memory() -> None:
    agent = Agent(ScriptedModel(["one", "two", "three"]))
    chat, other = agent.chat(), agent.chat()

    await chat.send("first")
    await other.send("elsewhere")
    await chat.send("second")

    assert ["first", "one", "second", "three"] == texts(await chat.messages())
    assert () == await agent.chat().messages()


async def test_a_stream_of_a_chat_shows_its_question(place: Place) -> None:
    async with Agent(ScriptedModel(["one", "two words"])).chat("c", store=place) as chat:
        await chat.send("first")
        stream = chat.stream("second")
        assert "two words" == "".join([text async for text in stream.text_stream])
        kinds = [part.type async for part in stream.full_stream]
        assert ("run-start", "finish") == (kinds[0], kinds[-1])
        assert ["first", "one", "second", "two words"] == texts(
            (await stream.result()).conversation
        )


async def test_a_question_that_waits_for_a_person_is_answered_first(place: Place) -> None:
    """No later question may reach the model between a call and its result."""
    model = ScriptedModel([reply(call()), "paid", "two"])
    async with Agent(model, tools=[gated()]).chat("c", store=place) as chat:
        parked = await chat.send("pay")
        assert EndReason.PARKED is parked.end_reason
        (waits,) = await chat.pending()
        assert parked.pending[0].key == waits.key

        with pytest.raises(ConfigError, match=r"run 'c.1' waits for read \(c0.0, approval\)"):
            await chat.send("second")
        with pytest.raises(ConfigError, match=r"c9\.9"):
            await chat.send(approvals={"c9.9": True})
        assert 1 == len(model.requests)

        done = await chat.send(approvals={waits.key: waits.approve()})

        assert ("c.1", "paid", ()) == (done.run_id, done.text, await chat.pending())
        assert "two" == (await chat.send("second")).text
        assert ["pay", "", "text", "paid", "second", "two"] == texts(await chat.messages())


async def test_answers_may_come_with_the_next_question(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """The caller asked for it: there is no warning."""
    model = ScriptedModel([reply(call()), "paid", "two"])
    agent = Agent(model, tools=[gated()])
    async with agent.chat("c", store=place) as chat:
        await chat.send("pay")

        result = await chat.send("second", approvals={"c0.0": approve()})

        assert ("c.2", "two") == (result.run_id, result.text)
        assert (result.warnings, caplog.messages) == ((), [])
        with pytest.raises(ConfigError, match=r"expected no answers.*found approvals"):
            await chat.send("third", approvals={"c0.0": True})
        with pytest.raises(ConfigError, match=r"'c.2' takes no answers: it is over"):
            await chat.send(approvals={"c0.0": True})


async def test_a_question_that_waits_again_keeps_the_next_one_back(place: Place) -> None:
    """The answers given count; the prompt beside them is not asked."""
    model = ScriptedModel([reply(call()), reply(call()), "paid", "two"])
    async with Agent(model, tools=[gated()]).chat("c", store=place) as chat:
        await chat.send("pay")

        with pytest.raises(ConfigError, match=r"run 'c.1' waits for read \(c1.0, approval\)"):
            await chat.send("second", approvals={"c0.0": True})

        assert ("c.1",) == await chat.run_ids()
        assert "paid" == (await chat.send(approvals={"c1.0": True})).text


async def test_a_chat_is_found_again_after_its_length_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An agent with very many chats remembers no lengths; they are only where to look first."""
    monkeypatch.setattr("graphloop.agent.chats.chat.LENGTHS_MAX", 1)
    agent = Agent(ScriptedModel([f"answer {number}" for number in range(9)]), store=MemoryStore())
    for _ in range(3):
        for chat_id in ("c", "d"):
            await agent.chat(chat_id).send("go")

    assert ("c.1", "c.2", "c.3") == await agent.chat("c").run_ids()


async def test_a_posted_answer_lets_the_next_question_through(tmp_path: Path) -> None:
    """A person answers at a web page, by another process; the chat takes the answer up."""
    there = str(tmp_path / "c.db")
    agent = Agent(ScriptedModel([reply(call()), "paid", "two"]), tools=[gated()])
    async with agent.chat("c", store=there) as chat:
        await chat.send("pay")
        await agent.runs(there).approve("c.1", "c0.0")

        assert "two" == (await chat.send("second")).text


async def test_an_approver_of_the_agent_is_asked_again() -> None:
    """A process whose person answers at once does not have to look at what waits."""
    store, model = MemoryStore(), ScriptedModel([reply(call()), "paid", "two"])
    await Agent(model, tools=[gated()]).chat("c", store=store).send("pay")
    asks = Agent(model, tools=[gated()], approve_tool_call=lambda _: True)

    assert "two" == (await asks.chat("c", store=store).send("second")).text


class Failing:
    """A model that is overloaded at first."""

    label = "scripted"

    def __init__(self, failures: int) -> None:
        self.failures = failures

    def session(self) -> Failing:
        """Return itself."""
        return self

    async def aclose(self) -> None:
        """Do nothing."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Fail, or tell how many messages there are."""
        self.failures -= 1
        if self.failures >= 0:
            raise Overloaded("busy")
        yield Reply(said(f"{len(request.messages)} messages"), reply("x").finish_reason)


async def test_an_interrupted_question_is_finished_before_the_next(tmp_path: Path) -> None:
    there, model = str(tmp_path / "c.db"), Failing(2)
    async with Agent(model).chat("c", store=there) as chat:
        with pytest.raises(Overloaded):
            await chat.send("first")
        with pytest.raises(Overloaded):
            await chat.send("second")
        assert ("c.1",) == await chat.run_ids()

        result = await chat.send("second")

        assert ["first", "1 messages", "second", "3 messages"] == texts(result.conversation)


async def test_a_stream_that_a_browser_left_is_finished_by_the_next_question(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """A closed connection loses no answer: the chat knows it when the user comes back."""
    model = ScriptedModel([reply(call()), "one", "two"])
    async with Agent(model, tools=[read]).chat("c", store=place) as chat:
        stream = chat.stream("first")
        async for part in stream.full_stream:
            if part.type == "tool-result":
                break
        await stream.aclose()
        assert ["first", "", "text"] == texts(await chat.messages())[:3]

        result = await chat.send("second")

        assert ["first", "", "text", "one", "second", "two"] == texts(await chat.messages())
        assert ("run 'c.1' of the question before was finished first",) == result.warnings
        assert [f"run c.2: {one}" for one in result.warnings] == caplog.messages


async def test_without_a_prompt_an_interrupted_question_goes_on(tmp_path: Path) -> None:
    async with Agent(Failing(1)).chat("c", store=str(tmp_path)) as chat:
        with pytest.raises(Overloaded):
            await chat.send("first")

        assert "1 messages" == (await chat.send()).text


async def test_without_a_prompt_the_last_answer_is_read_again(place: Place) -> None:
    """A browser that lost its connection asks for the answer, not for another one."""
    model = ScriptedModel(["one"])
    async with Agent(model).chat("c", store=place) as chat:
        with pytest.raises(ConfigError, match="chat 'c': expected its first question, found none"):
            await chat.send()
        await chat.send("first")

        again = await chat.send()
        parts = [part.type async for part in chat.stream().full_stream]

        assert ("c.1", "one", 1) == (again.run_id, again.text, len(model.requests))
        assert "finish" == parts[-1]


async def test_a_chat_goes_on_after_a_question_that_failed(place: Place) -> None:
    """A failed question stays in the conversation; it cannot block the chat for good."""

    def broken(_: object) -> None:
        raise ZeroDivisionError

    store = MemoryStore()
    agent = Agent(ScriptedModel(["one", "two"]), prepare_step=broken)
    with pytest.raises(ZeroDivisionError):
        await agent.chat("c", store=store).send("first")

    mended = agent.with_options(prepare_step=lambda _: None)
    result = await mended.chat("c", store=store).send("second")

    assert ["first", "second", "one"] == texts(result.conversation)


CHANGED: list[AgentOptions] = [
    {"name": "other"},
    {"max_steps": 1},
    {"prepare_step": lambda _: None},
    {"stop_when": lambda _: False},
    {"verify": lambda _: True},
]


@pytest.mark.parametrize("kind", ["memory", "c.db"])
@pytest.mark.parametrize("changes", CHANGED)
async def test_a_chat_goes_on_with_an_agent_that_has_changed(
    kind: str, changes: AgentOptions, tmp_path: Path
) -> None:
    """A chat lives longer than a version of its agent; a deployment must not end it."""
    place: Place = MemoryStore() if kind == "memory" else str(tmp_path / kind)
    model = ScriptedModel([reply(call()), "one", "two"])
    agent = Agent(model, tools=[read])
    async with agent.chat("c", store=place) as chat:
        await chat.send("first")
        spent = await chat.spent()

    async with agent.with_options(**changes).chat("c", store=place) as chat:
        result = await chat.send("second")

        assert ["first", "one", "second", "two"] == texts(result.conversation)
        assert ["first", "one", "second", "two"] == texts(await chat.messages())
        assert "made by an agent with another graph" in result.warnings[0]
        assert spent.model_calls + 1 == (await chat.spent()).model_calls


async def test_a_changed_agent_reads_a_typed_answer_as_text() -> None:
    store, answer = MemoryStore(), call("final_answer", arguments='{"value": 7}')
    agent = Agent(ScriptedModel([reply(answer)]), output_type=int)
    assert 7 == (await agent.chat("c", store=store).send("first")).output

    changed = Agent(ScriptedModel(["two"]))
    result = await changed.chat("c", store=store).send("second")

    assert ["first", '{"value": 7}', "second", "two"] == texts(result.conversation)


async def test_a_changed_agent_knows_which_messages_belong_to_which_question() -> None:
    """The second question holds more messages of the first than the changed agent can read."""
    store, model = MemoryStore(), ScriptedModel([reply(call()), "one", "two", "three"])
    agent = Agent(model, tools=[read])
    for question in ("first", "second"):
        await agent.chat("c", store=store).send(question)
    changed = agent.with_options(name="other").chat("c", store=store)

    expected = ["first", "one", "second", "two"]
    assert expected == texts(await changed.messages())
    await changed.send("third")
    assert [*expected, "third", "three"] == texts(await changed.messages())


async def test_a_question_that_a_changed_agent_cannot_finish_can_be_left_out() -> None:
    store, model = MemoryStore(), ScriptedModel(["one", reply(call()), "two"])
    agent = Agent(model, tools=[gated()])
    for question in ("first", "pay"):
        await agent.chat("c", store=store).send(question)
    chat = agent.with_options(name="other").chat("c", store=store)

    with pytest.raises(StoreError, match="of graph 'agent', not of 'other'") as caught:
        await chat.send("second")

    assert "go on without the question: chat.fork(at=1)" in caught.value.__notes__[0]
    fork = await chat.fork(at=1)
    assert ["first", "one", "second", "two"] == texts((await fork.send("second")).conversation)


@pytest.mark.parametrize("taken", [1, 2])
async def test_a_run_of_another_caller_is_no_question_of_a_chat(taken: int, place: Place) -> None:
    """Its id fits the chat by chance; a model would read what another user has said."""
    model = ScriptedModel(["one", "two"])
    async with Agent(model).chat("c", store=place) as chat:
        if taken == 2:
            await chat.send("first")
        await Agent(ScriptedModel(["ours"]), store=place).generate("secret", run_id=f"c.{taken}")

        for asking in (chat.send("next"), chat.messages(), chat.spent()):
            with pytest.raises(ConfigError, match=rf"found run 'c.{taken}', which no chat"):
                await asking

        assert taken - 1 == len(model.requests)
        fork = await chat.fork("d", at=taken - 1)
        assert "secret" not in texts((await fork.send("next")).conversation)


async def test_two_questions_at_once_are_one_question(place: Place) -> None:
    """The second is refused before it is journaled, and can be sent again."""
    begun, go = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        begun.set()
        await go.wait()
        return "waited"

    agent = Agent(ScriptedModel([reply(call("wait")), "one", "two"]), tools=[wait])
    async with agent.chat("c", store=place) as chat, agent.chat("c", store=place) as other:
        first = asyncio.create_task(chat.send("first"))
        await begun.wait()

        with pytest.raises(RunBusy, match=r"'c.1' is being driven") as caught:
            await other.send("second")

        assert "the question was not asked" in caught.value.__notes__[0]
        go.set()
        assert "one" == (await first).text
        assert "two" == (await other.send("second")).text
        assert ["first", "", "waited", "one", "second", "two"] == texts(await chat.messages())


async def test_a_fork_goes_on_by_itself(place: Place) -> None:
    model = ScriptedModel(["one", "two", "three", "four", "five"])
    agent = Agent(model)
    async with agent.chat("c", store=place) as chat:
        await chat.send("first")
        await chat.send("second")

        fork = await chat.fork("d", at=1)
        await fork.send("other")
        await chat.send("third")

        assert ["first", "one", "other", "three"] == texts(await fork.messages())
        assert ["first", "one", "second", "two", "third", "four"] == texts(await chat.messages())
        assert "five" == (await agent.chat("d", store=place).send("more")).text
        whole = await chat.fork()
        assert await chat.messages() == await whole.messages()
        with pytest.raises(ConfigError, match="'d': expected an id that no chat"):
            await chat.fork("d")
        with pytest.raises(ConfigError, match="`at`: expected a number from 0 to 3, found 4"):
            await chat.fork(at=4)


async def test_a_fork_leaves_an_unanswered_question_out(place: Place) -> None:
    """A call that waits for a person could otherwise run once in each of them."""
    agent = Agent(ScriptedModel(["one", reply(call())]), tools=[gated()])
    async with agent.chat("c", store=place) as chat:
        await chat.send("first")
        await chat.send("pay")

        fork = await chat.fork()

        assert (["first", "one"], ()) == (texts(await fork.messages()), await fork.pending())


async def test_compaction_goes_on_from_question_to_question() -> None:
    """A question does not pay again for the summary of what an earlier one has shortened."""
    model = ScriptedModel(["long " * 900, "two", "A summary.", "three", "four"])
    compaction = Compaction(context_window=1_000, layers=("summarize",), keep_recent_turns=1)
    chat = Agent(model, compaction=compaction).chat()
    for question in ("first", "second", "third", "fourth"):
        await chat.send(question)

    assert 5 == len(model.requests)
    assert "A summary." in asked(model)[1]
    assert ["two", "third", "three", "fourth"] == asked(model)[-4:]
    assert not any(text.startswith("long") for text in asked(model))
    told = texts(await chat.messages())
    assert ["first", "second", "two", "third", "three", "fourth", "four"] == [told[0], *told[2:]]


async def test_a_chat_has_a_budget_of_its_own() -> None:
    """Each reply has fifteen tokens; the third question finds nothing left."""
    store, model = MemoryStore(), ScriptedModel([reply("one"), reply("two"), reply("three")])
    agent = Agent(model, budget=budget(tokens=1_000))
    chat = agent.chat("c", store=store, budget=budget(tokens=30))
    await chat.send("first")
    second = await agent.chat("c", store=store, budget=budget(tokens=30)).send("second")

    assert 15 == second.run.setup.budget.tokens
    assert 30 == (await chat.spent()).usage.total_tokens
    with pytest.raises(ConfigError, match=r"it is spent \(budget.tokens\)"):
        await chat.send("third")
    assert 2 == len(model.requests)
    assert "three" == (await agent.chat("c", store=store).send("third")).text


@tool
def refund() -> str:
    """Refund."""
    return "refunded"


def refunds() -> Agent:
    """Return an agent that wants to refund in each answer."""
    script = [one for number in range(9) for one in (reply(call("refund")), f"answer {number}")]
    return Agent(ScriptedModel(script), tools=[refund, read])


async def test_a_rule_of_a_chat_counts_over_its_questions(place: Place) -> None:
    """At most one refund a chat, whichever question, process or object asks for the next."""
    agent = refunds()
    statuses: list[str] = []
    for question in ("first", "second", "third"):
        async with agent.chat("c", store=place, rules=at_most_once("refund")) as chat:
            result = await chat.send(question)
            statuses += [one.status for one in result.steps[0].tool_results]

    assert ["ok", "denied", "denied"] == statuses
    async with agent.chat("c", store=place, rules=at_most_once("refund")) as chat:
        fork = await chat.fork("d")
        assert "denied" == (await fork.send("fourth")).steps[0].tool_results[0].status


async def test_a_rule_that_comes_later_counts_the_earlier_questions(place: Place) -> None:
    """A rule that began to count with its deployment would allow one refund more."""
    agent, rule = refunds(), at_most("refund", 2)
    async with agent.chat("c", store=place) as chat:
        await chat.send("first")
    async with agent.chat("c", store=place, rules=at_most("refund", 3)) as chat:
        await chat.send("second")

    async with agent.chat("c", store=place, rules=[rule, never("read")]) as chat:
        assert "denied" == (await chat.send("third")).steps[0].tool_results[0].status


async def test_a_rule_of_a_chat_and_one_of_its_agent_both_count() -> None:
    """The same words mean each question in one place, and the whole chat in the other."""
    agent = refunds().with_options(rules=at_most_once("refund"))
    chat = agent.chat("c", store=MemoryStore(), rules=at_most("refund", 2))
    statuses = [(await chat.send("go")).steps[0].tool_results[0].status for _ in range(3)]

    assert ["ok", "ok", "denied"] == statuses


async def test_a_rule_that_cannot_count_is_refused() -> None:
    store, agent = MemoryStore(), refunds()
    await agent.chat("c", store=store).send("first")
    changed = agent.with_options(name="other")

    with pytest.raises(ConfigError, match=r"question 1 cannot be counted.*not of 'other'"):
        await changed.chat("c", store=store, rules=at_most_once("refund")).send("second")
    with pytest.raises(ConfigError, match=r"'refnd'.*Did you mean 'refund'"):
        agent.chat("c", store=store, rules=at_most_once("refnd"))
    assert ("c.1",) == await agent.chat("c", store=store).run_ids()


async def test_each_question_has_the_deps_of_its_caller(place: Place) -> None:
    """They are never journaled, so a question that was interrupted gets them from the next one."""

    @tool
    def who(context: ToolContext[list[str]]) -> str:
        """Say who asks."""
        context.deps.append(context.run_id)
        return context.deps[0]

    model = ScriptedModel([one for _ in range(3) for one in (reply(call("who")), "done")])
    agent = Agent(
        model,
        tools=[who],
        deps_type=list[str],
        instructions=lambda deps: f"You talk with {deps[0]}.",
    )
    async with agent.chat("c", store=place) as chat:
        ada, bob = ["Ada"], ["Bob"]
        stream = chat.stream("first", deps=ada)
        async for part in stream.full_stream:
            if part.type == "step-start":
                break
        await stream.aclose()
        with pytest.raises(ConfigError, match="deps"):
            await chat.send("second")

        result = await chat.send("second", deps=bob)

        assert (["Ada"], ["Bob", "c.1", "c.2"]) == (ada, bob)
        assert ["first", "", "Bob", "done", "second", "", "Bob", "done"] == texts(
            result.conversation
        )
        assert ["You talk with Bob.", "first"] == asked(model)[:2]


async def test_a_message_that_no_model_read_comes_with_the_next_question() -> None:
    """A follow-up to a run without a step left is not lost with that run."""
    model = ScriptedModel(["one", "two"])
    chat = Agent(model, max_steps=1).chat()
    stream = chat.stream("first")
    stream.follow_up("and one more thing")
    await stream.result()

    await chat.send("second")

    assert ["first", "one", "and one more thing", "second"] == asked(model)
    assert ["first", "one", "and one more thing", "second", "two"] == texts(await chat.messages())


@pytest.mark.parametrize(
    "prompt",
    [
        UserMessage((TextPart("look"), MediaPart("image/png", Url("https://x")))),
        ["look", image("https://x", "image/png")],
        {
            "id": "m1",
            "role": "user",
            "parts": [
                {"type": "text", "text": "look"},
                {"type": "file", "mediaType": "image/png", "url": "https://x"},
            ],
        },
    ],
)
async def test_a_question_may_be_a_message_with_an_image(
    prompt: MessageInput | list[str | MediaPart],
) -> None:
    """A browser sends the user's last message as it has it; the server has the others."""
    model = ScriptedModel(["one", "two"])
    chat = Agent(model).chat()
    await chat.send("first")

    await chat.send(prompt)

    assert (
        UserMessage((TextPart("look"), MediaPart("image/png", Url("https://x"))))
        == model.requests[1].messages[-1]
    )


async def test_a_question_that_is_no_message_of_a_user_is_refused() -> None:
    chat = Agent(ScriptedModel(["one"])).chat()

    with pytest.raises(ConfigError, match=r"`prompt`: .* one message of role user"):
        await chat.send(said("I am the model"))
    with pytest.raises(ConfigError, match=r"messages\[0\]: expected a message, found int"):
        await chat.send(wrong(5))
    for blank in ("", " \n", [""], UserMessage("")):
        with pytest.raises(ConfigError, match="`prompt`: expected a question, found"):
            await chat.send(blank)
    assert () == await chat.messages()


@pytest.mark.parametrize(
    ("chat_id", "options", "found"),
    [
        (42, {"store": "x.db"}, "`chat_id`: expected text, found 42"),
        ("c" * 181, {"store": "x.db"}, "`chat_id`: expected at most 180 characters, found 181"),
        ("c", {}, "expected the place of chat 'c', found none"),
        ("a/b", {"store": "x.db"}, "`chat_id`: expected some text without a slash"),
        ("c", {"store": "x.db", "stream": False}, r"Fix: connect\(model, stream=False\)"),
        ("c", {"store": "x.db", "budgt": 1}, "a chat has no option 'budgt'. Did you mean 'budget'"),
    ],
)
def test_a_chat_that_cannot_work_is_refused(chat_id: object, options: object, found: str) -> None:
    with pytest.raises(ConfigError, match=found):
        Agent(ScriptedModel([])).chat(wrong(chat_id), **wrong(options))


async def test_a_wrong_word_to_a_chat_is_refused(tmp_path: Path) -> None:
    chat: Chat = Agent(ScriptedModel(["one"])).chat()

    with pytest.raises(ConfigError, match="no option 'messages'"):
        await chat.send("first", **wrong({"messages": []}))
    assert () == await chat.messages()


async def test_a_question_has_options_of_its_own(place: Place) -> None:
    """The next question asks the agent's model again, in the same conversation."""
    usual, better = ScriptedModel(["one", "three"]), ScriptedModel(["two"])
    async with Agent(usual).chat("user-42", store=place) as chat:
        await chat.send("first")
        result = await chat.send("second", model=better, instructions="Be exact.", max_steps=1)
        last = await chat.send("third")

    assert ("two", "three") == (result.text, last.text)
    assert ["Be exact.", "first", "one", "second"] == asked(better)
    assert ["first", "one", "second", "two", "third"] == asked(usual)


async def test_a_question_that_goes_on_keeps_its_options(place: Place) -> None:
    model = ScriptedModel([reply(call()), "done"])
    async with Agent(model, tools=[gated()]).chat("user-42", store=place) as chat:
        await chat.send("first")
        with pytest.raises(ConfigError, match="max_steps, which a run keeps"):
            await chat.send(max_steps=3)


async def test_a_test_overrides_the_agent_of_a_chat(place: Place) -> None:
    """Else a test of an application would send real requests."""
    real, fake = ScriptedModel(["real"]), ScriptedModel(["fake"])
    agent = Agent(real)
    async with agent.chat("user-42", store=place) as chat:
        with agent.override(model=fake):
            overridden = await chat.send("first")
        later = await chat.send("second")

    assert ("fake", "real") == (overridden.text, later.text)
    assert ["first", "fake", "second"] == asked(real)


@pytest.mark.parametrize(
    ("length", "known"), [(0, 0), (300, 0), (300, 299), (300, 300), (70_000, 1)]
)
async def test_the_last_question_of_a_chat_is_found_in_a_few_looks(length: int, known: int) -> None:
    """Another process knows the chat by its id alone; on a server each look is a round trip."""
    looks: list[int] = []

    class Looked:
        async def existing(self, run_ids: Collection[str]) -> Collection[str]:
            looks.append(len(run_ids))
            return [one for one in run_ids if int(one.partition(".")[2]) <= length]

    found = await Chain("c", Agent(ScriptedModel(())).graph).length(wrong(Looked()), known)

    assert length == found
    assert len(looks) <= (1 if length == known else 6)
    assert max(looks) <= 2 * STRIDES
