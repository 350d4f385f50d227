"""Ahead: the facts that wait for the next one, so that a turn makes two commits."""

from __future__ import annotations

import pytest

from graphloop import END, Agent, Edges, Graph, Tool, ToolContext
from graphloop.events import Event, ModelReplied
from graphloop.nodes import Append, Critique, ModelCall, PrepareStep
from graphloop.outcomes import Final, Ready
from graphloop.parts.kinds import ToolCallPart
from graphloop.replay import replay
from graphloop.testing import ScriptedModel
from graphloop.tools.options import EffectPolicy
from tests.passing_store import PassingStore
from tests.strategies import call, reply

REPLY, CHECK, NOTE = "ModelReplied", "CallsChecked", "EffectsStarted"


class Commits(PassingStore):
    """A store that tells which events each append has kept."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[list[str]] = []

    async def append(self, run_id: str, seq: int, *events: Event) -> None:
        """Keep events."""
        self.kept.append([type(event).__name__ for event in events])
        await super().append(run_id, seq, *events)


class Act:
    """A tool that counts its calls, and what is known of its journal when it begins."""

    def __init__(self, store: Commits) -> None:
        self.calls = 0
        self.kept: list[list[str]] = []
        self._store = store

    def tool(self, effect: EffectPolicy = "at_most_once", *, asks: object = False) -> Tool:
        """Return the tool `act`."""
        return Tool(
            name="act",
            parameters={"type": "object"},
            execute=self._act,
            effect=effect,
            needs_approval=asks,  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        )

    def _act(self, arguments: dict[str, object]) -> str:
        self.calls += 1
        self.kept = list(self._store.kept)
        return f"acted on {arguments}"


def asks_nobody(_: dict[str, object], __: ToolContext) -> bool:
    """Say that no person is to be asked."""
    return False


@pytest.mark.parametrize(
    ("effect", "asks", "before"),
    [
        ("at_most_once", False, [[REPLY, NOTE]]),
        ("idempotent", False, [[REPLY]]),
        ("at_most_once", asks_nobody, [[REPLY], [CHECK, NOTE]]),
    ],
    ids=["it acts", "it may be repeated", "a function of the user's decides"],
)
async def test_a_turn_is_kept_before_its_tool_starts_and_after(
    effect: EffectPolicy, asks: object, before: list[list[str]]
) -> None:
    """In two commits, unless a function of the user's is asked in between."""
    store = Commits()
    act = Act(store)
    model = ScriptedModel([reply(call("act", arguments="{}")), "done"])

    await Agent(model, tools=[act.tool(effect, asks=asks)], store=store).generate("go")

    assert [["Started"], *before] == act.kept
    assert [["Started"], *before, ["ToolReturned"], [REPLY]] == store.kept


async def test_a_forced_choice_is_not_checked() -> None:
    """Its tool is a form for the answer, which no gate lets through and no process runs."""
    store = Commits()
    verdict = {"calls": [{"name": "verdict", "arguments": {"accepted": True}}]}
    model = ScriptedModel(["A draft.", verdict], label="m")
    prepare, asks, critic = PrepareStep(), ModelCall(), Critique("Is it good?")
    append = Append()
    edges: Edges[None] = {
        prepare: {Ready: asks, ...: END},
        asks: {...: append},
        append: {Final: critic, ...: END},
        critic: {...: END},
    }
    graph = Graph("critics", prepare, edges)

    await graph.run(None, model=model, prompt="go", run_id="r", store=store)

    replies = [one for one in await store.load("r") if isinstance(one, ModelReplied)]
    assert 2 == len(replies)
    assert [(), ()] == [one.checks for one in replies]


async def test_a_question_to_a_person_is_kept_before_the_run_parks() -> None:
    """The reply and its check wait for nobody."""
    store = Commits()
    act = Act(store)
    agent = Agent(
        ScriptedModel([reply(call("act", arguments="{}")), "done"]),
        tools=[act.tool(asks=True)],
        store=store,
    )

    parked = await agent.generate("go", run_id="r")
    assert [["Started"], [REPLY]] == store.kept
    await agent.resume("r", approvals={parked.pending[0].key: True})

    assert [["Resumed"], ["Decided"], [NOTE], ["ToolReturned"], [REPLY]] == store.kept[2:]


async def test_a_call_that_was_noted_and_not_begun_runs_when_resumed() -> None:
    """Its caller left at the reply: the note is taken back, so the result is not unknown."""
    store = Commits()
    act = Act(store)
    agent = Agent(
        ScriptedModel([reply(call("act", arguments="{}")), "done"]),
        tools=[act.tool()],
        store=store,
    )
    stream = agent.stream("go", run_id="r")
    async for part in stream.full_stream:
        if isinstance(part, ToolCallPart):
            break
    await stream.aclose()

    assert [[REPLY, NOTE], [NOTE]] == store.kept[1:]
    assert not replay(agent.graph, await store.load("r")).started
    result = await agent.resume("r")

    assert 1 == act.calls
    assert ["ok"] == [str(one.status) for one in result.steps[0].tool_results]


async def test_a_refused_commit_leaves_the_run_at_its_last_kept_event() -> None:
    """None of the events that were held has happened."""

    class Full(Commits):
        """Refuses what comes after the first event."""

        async def append(self, run_id: str, seq: int, *events: Event) -> None:
            """Keep the first event."""
            if seq > 1:
                raise OSError("the disk is full")
            await super().append(run_id, seq, *events)

    store = Full()
    act = Act(store)
    agent = Agent(
        ScriptedModel([reply(call("act", arguments="{}")), "done"]), tools=[act.tool()], store=store
    )

    stream = agent.stream("go", run_id="r")
    with pytest.raises(OSError, match="full"):
        await stream.result()
    assert stream.run is not None
    assert (1, 0) == (stream.run.seq, act.calls)
