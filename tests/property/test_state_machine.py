"""Contract 1, 4, 9 and 14 as a game: everything that people and processes do to runs, in any order.

Each rule does to a real agent what a user, a colleague or an operating system does: start, answer,
answer through the mailbox, steer, stop, die, take up, fork. After each, what can be seen of the run
is compared with a reference model that knows nothing of graphs and journals.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from pydantic import BaseModel

from graphloop import Agent, EndReason, RunResult, RunStream, Tool, ToolContext
from graphloop.agent.answers import RESULT, Answers
from graphloop.agent.options import ToolInput
from graphloop.agent.sub_agents import AgentTool
from graphloop.effects import AskHuman, CallTool, StartRun
from graphloop.events import Cancelled, ChildEnded, Decided, Event, Queued, Started, ToolReturned
from graphloop.policy.approvals import Approval
from graphloop.questions.pending import Pending, ask_key
from graphloop.replay import replay, replay_steps
from graphloop.run import Run, Spent
from graphloop.stores.memory import MemoryStore
from graphloop.stores.sqlite.store import SqliteStore
from graphloop.tools.options import EffectPolicy
from graphloop.tools.schema import parameters_of
from graphloop.values import ToolResult, UserMessage
from tests.mortal_store import Died, Fate, MortalSqliteStore, MortalStore
from tests.planned_model import PlannedModel
from tests.property.test_contract_pairing import assert_paired
from tests.reference_model import GATED, Answer, Facts, Plan, Wish, follow, lines, written
from tests.sizes import sized


class Told(BaseModel):
    """What every tool is told."""

    text: str


PARAMETERS = parameters_of(Told, "every tool")
POLICIES: Mapping[str, EffectPolicy] = {
    "look": "pure",
    "note": "idempotent",
    "send": "at_most_once",
    "fail": "at_least_once",
    "pay": "at_most_once",
    "sign": "idempotent",
}
NAMES = (*POLICIES, "client")


def plans_of(wishes: st.SearchStrategy[Wish]) -> st.SearchStrategy[Plan]:
    """Return plans of a few turns with a few calls each."""
    return st.lists(st.lists(wishes, min_size=1, max_size=3).map(tuple), max_size=2).map(tuple)


def wishes(*names: str) -> st.SearchStrategy[Wish]:
    """Return calls of these tools."""
    return st.builds(Wish, st.sampled_from(names))


deep = st.builds(Wish, st.just("deep"), plans_of(wishes("pay", "send")))
helper = st.builds(
    Wish, st.just("helper"), plans_of(wishes("pay", "send", "client", "look") | deep)
)
plans = plans_of(wishes(*POLICIES, "client") | helper | wishes("pay"))
fates = st.none() | st.integers(0, 30)
"""After how many moments the process dies, if it does."""

says = st.sampled_from(["", "", "", "hurry", "and then?"])
kinds = st.sampled_from(["", "later", "new process", "later, in a new process"])


class World:
    """What tools have done: it outlives every process."""

    def __init__(self) -> None:
        self.fate = Fate()
        self.ran: Counter[tuple[str, str]] = Counter()
        self.texts: dict[tuple[str, str], str] = {}
        self.now = 0.0
        self.tools = self.make_tools()
        self.helper = self.make_helper()

    def clock(self) -> float:
        """Return a second more whenever somebody asks."""
        self.now += 1.0
        return self.now

    async def do(self, arguments: Told, context: ToolContext) -> str:
        """Do something, unless death comes before, or in the middle of it."""
        fate = self.fate
        fate.moment()
        self.ran[context.run_id, context.key] += 1
        self.texts[context.run_id, context.key] = arguments.text
        await asyncio.sleep(0)
        fate.moment()
        return f"did {arguments.text}"

    async def fail(self, arguments: Told, context: ToolContext) -> str:
        """Do something, and fail."""
        await self.do(arguments, context)
        raise OSError("disk")

    def make_tools(self) -> tuple[Tool[..., object], ...]:
        """Return all tools."""
        own = [
            Tool(
                name=name,
                parameters=PARAMETERS,
                execute=self.fail if name == "fail" else self.do,
                effect=effect,
                needs_approval=name in GATED,
            )
            for name, effect in POLICIES.items()
        ]
        return (*own, Tool(name="client", parameters=PARAMETERS))

    def agent(self, store: MortalStore) -> Agent:
        """Return the agent as every process makes it anew."""
        return self.make_agent("top", (*self.tools, self.helper), store)

    def make_helper(self) -> AgentTool:
        """Return the helper, which has a helper of its own."""
        bottom = self.make_agent("bottom", self.tools)
        deep = bottom.as_tool(name="deep", description="Helps.")
        middle = self.make_agent("middle", (*self.tools, deep))
        return middle.as_tool(name="helper", description="Helps.")

    def make_agent(
        self, label: str, tools: Sequence[ToolInput], store: MortalStore | None = None
    ) -> Agent:
        """Return an agent that no bound of its own stops."""
        return Agent(
            PlannedModel(lines, label),
            tools=tools,
            max_steps=500,
            max_consecutive_tool_errors=99,
            max_consecutive_denials=99,
            store=store,
            clock=self.clock,
        )


@dataclass
class Book:
    """What the reference side knows of one run.

    `certain` says that the last process ended well and all answers have been taken, so that what
    can be seen is exactly what follows from the facts. `tried` are answers whose giver died.
    """

    run_id: str
    plan: Plan
    facts: Facts = field(default_factory=Facts)
    result: RunResult | None = None
    certain: bool = False
    over: bool = False
    cancelled: bool = False
    spent: Spent = Spent()
    taken: set[str] = field(default_factory=set[str])

    def accept(self, key: str, answer: Answer) -> None:
        """Note an answer that is in the mailbox; of two to one question the first counts."""
        base, again, _ = key.partition("#")
        if key in self.taken:
            return
        self.taken.add(key)
        if again:
            self.facts.again.setdefault(base, []).append(answer)
        else:
            self.facts.answers[key] = answer

    def interrupted(self, runs: Mapping[str, Run[None]]) -> None:
        """Note what a dead process had begun: from its journals, for who else could know."""
        for path, run in runs.items():
            for number in run.started:
                effect = run.pending[number]
                assert isinstance(effect, CallTool)
                self.facts.interrupted.setdefault(at(path, effect.key), set()).add(number)


def learn_from(book: Book, path: str, before: Run[None], event: Event) -> None:
    """Learn one fact of a copy."""
    effect = before.pending.get(getattr(event, "effect", 0))
    match event, effect:
        case Decided(approved=approved, arguments=edit), AskHuman():
            text = json.loads(edit)["text"] if edit else ""
            answer = Answer("approve", text) if approved else Answer("deny")
            book.accept(at(path, ask_key(effect)), answer)
        case ToolReturned(content=str(text)), CallTool(client=True, key=key):
            book.accept(at(path, key), Answer("result", text))
        case ToolReturned(status="unknown"), CallTool(key=key):
            book.facts.interrupted.setdefault(at(path, key), set()).add(effect.id)
        case ChildEnded(), StartRun(key=key) if not path:
            book.facts.settled.add(key)
        case Cancelled(after_step=True), _ if not path and book.facts.stop_after is None:
            book.facts.stop_after = before.turn.number
        case _:
            pass


def assert_read_once(root: Run[None], events: Sequence[Event]) -> None:
    """Assert that what was said to a run, and journaled, is read once or still to be read."""
    queued = Counter(text_of(one.message) for one in events if isinstance(one, Queued))
    queued.update(
        text_of(word) for one in events if isinstance(one, Started) for word in one.steering
    )
    read = Counter(text_of(one) for one in root.record.added if isinstance(one, UserMessage))
    unread = Counter(text_of(one) for one in (*root.inbox.steering, *root.inbox.follow_ups))
    assert queued == read + unread


def said(pending: Pending, answer: Answer) -> object:
    """Return an answer as a caller gives it."""
    if answer.kind == "result":
        return answer.text
    if answer.kind == "deny":
        # A forged token is no approval either.
        return Approval(True, token=answer.text) if answer.text else pending.decline("no")
    return pending.approve(edit={"text": answer.text} if answer.text else None)


def answers_to(data: st.DataObject, asks: Sequence[Pending]) -> dict[str, tuple[Pending, Answer]]:
    """Draw answers to some of what is asked."""
    chosen: dict[str, tuple[Pending, Answer]] = {}
    for one in asks:
        if one.kind == "client_tool":
            options = [None, Answer("result", "theirs")]
        else:
            yes, no = Answer("approve"), Answer("deny")
            # A call that may have run already runs again as it was, or not at all.
            edited = yes if one.unknown else Answer("approve", "edited")
            options = [None, yes, yes, edited, no, Answer("deny", FORGED)]
        answer = data.draw(st.sampled_from(options), one.key)
        if answer is not None:
            chosen[one.key] = (one, answer)
    return chosen


FORGED = "v1.bm8.bm8"
ASKS = (
    Pending("approval", "c0.0", "toolu_1", "pay", "{}"),
    Pending("approval", "c0.0#7", "toolu_1", "pay", "{}", unknown=True),
    Pending("client_tool", "c0.1", "toolu_2", "client", "{}"),
)


class Runs(RuleBasedStateMachine):
    """Agents, people and crashes over one store in memory that outlives its processes."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.disk = self.make_disk()
        self.store = self.make_store()
        self.agent = self.world.agent(self.store)
        self.books: list[Book] = []

    def make_disk(self) -> MemoryStore | SqliteStore:
        """Return what outlives a process."""
        return MemoryStore()

    def make_store(self) -> MortalStore:
        """Return the store of a new process."""
        return MortalStore(self.disk, self.world.fate)

    def reborn(self) -> None:
        """Begin a new process over what is on the disk."""
        self.world.fate = Fate()
        self.store = self.make_store()
        self.agent = self.world.agent(self.store)

    # What happens.

    @rule(plan=plans, fate=fates, words=says)
    def start(self, plan: Plan, fate: int | None, words: str) -> None:
        """Somebody asks a question."""
        book = Book(f"r{len(self.books)}", plan)
        stream = self.agent.stream(written(plan), run_id=book.run_id)
        if words:
            stream.steer(words)
        if self.drive(book, stream, {}, fate):
            self.books.append(book)

    @precondition(lambda self: self.waiting())
    @rule(data=st.data(), fate=st.none() | st.integers(4, 14))
    def answer(self, data: st.DataObject, fate: int | None) -> None:
        """Somebody answers some of what a run waits for, and takes it up."""
        book = data.draw(st.sampled_from(self.waiting()))
        assert book.result is not None
        chosen = answers_to(data, book.result.pending)
        stream = self.agent.resume_stream(
            book.run_id,
            approvals={
                key: approval
                for key, (ask, one) in chosen.items()
                if isinstance(approval := said(ask, one), Approval)
            },
            tool_results={
                key: one.text for key, (_, one) in chosen.items() if one.kind == "result"
            },
        )
        self.drive(book, stream, {key: one for key, (_, one) in chosen.items()}, fate)

    @precondition(lambda self: self.waiting())
    @rule(data=st.data())
    def post(self, data: st.DataObject) -> None:
        """Somebody answers through the mailbox, from another process; nobody takes the run up."""
        book = data.draw(st.sampled_from(self.waiting()))
        assert book.result is not None
        chosen = answers_to(data, book.result.pending)
        for key, (ask, one) in chosen.items():
            given = said(ask, one)
            told = (
                Answers({key: given}) if isinstance(given, Approval) else Answers({}, {key: given})
            )
            for place, text in told.posts(0.0):
                asyncio.run(self.disk.post(book.run_id, place, key, text))
            book.accept(key, one)
            book.certain = False

    @precondition(lambda self: self.open_books())
    @rule(data=st.data(), fate=fates, words=says, kind=kinds)
    def take_up(self, data: st.DataObject, fate: int | None, words: str, kind: str) -> None:
        """Somebody takes a run up, perhaps in a new process, and perhaps says something to it."""
        book = data.draw(st.sampled_from(self.open_books()))
        if "new process" in kind:
            self.reborn()
        stream = self.agent.resume_stream(book.run_id)
        if words and "later" in kind:
            stream.follow_up(words)
        elif words:
            stream.steer(words)
        self.drive(book, stream, {}, fate)

    @precondition(lambda self: self.waiting())
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """Somebody stops a run at once."""
        book = data.draw(st.sampled_from(self.waiting()))
        stream = self.agent.resume_stream(book.run_id)
        stream.abort("enough")
        book.cancelled = True
        self.drive(book, stream, {}, None)

    @precondition(lambda self: self.waiting())
    @rule(data=st.data())
    def stop_after_this_turn(self, data: st.DataObject) -> None:
        """Somebody stops a run once its turn is over."""
        book = data.draw(st.sampled_from(self.waiting()))
        assert book.result is not None
        stream = self.agent.resume_stream(book.run_id)
        stream.abort("after this", after_step=True)
        if book.facts.stop_after is None:
            book.facts.stop_after = book.result.run.turn.number
        self.drive(book, stream, {}, None)

    @precondition(lambda self: 0 < len(self.books) < 8)
    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        """Somebody lets a run's past go on in another way."""
        book = data.draw(st.sampled_from(self.books))
        events = asyncio.run(self.disk.load(book.run_id))
        at = data.draw(st.integers(1, len(events)), "at")
        copy = Book(f"r{len(self.books)}", book.plan)
        asyncio.run(
            self.agent.runs.fork(book.run_id, at=at, new_id=copy.run_id, share_approvals=True)
        )
        self.books.append(copy)
        self.learn(copy)
        copy.over = replay(self.agent.graph, events[:at]).ended
        copy.cancelled = book.cancelled and copy.over

    # What is known of it.

    def waiting(self) -> list[Book]:
        """Return the runs that wait for somebody, and nothing else."""
        return [one for one in self.open_books() if one.certain and one.result is not None]

    def open_books(self) -> list[Book]:
        """Return the runs that are not over."""
        return [one for one in self.books if not one.over]

    def drive(
        self, book: Book, stream: RunStream, given: Mapping[str, Answer], fate: int | None
    ) -> bool:
        """Drive a run as far as it goes, perhaps to its process's death; return whether it is."""
        self.world.fate.after = fate
        try:
            result = asyncio.run(driven(stream))
        except Died:
            book.certain, book.result = False, None
            self.die()
        else:
            self.world.fate.after = None
            book.certain, book.result = True, result
        posted, journals = asyncio.run(self.read(book))
        if "" not in journals:
            return False
        for key, answer in given.items():
            if key in posted or f"{key}{RESULT}" in posted:
                book.accept(key, answer)
            else:
                assert not book.certain, f"the answer to {key} is lost"
        runs = {path: replay(self.agent.graph, events) for path, events in journals.items()}
        if not book.certain:
            book.interrupted(runs)
        self.look_at(book, runs, journals[""])
        return True

    def die(self) -> None:
        """Let another process begin where one has died."""
        self.reborn()

    async def read(self, book: Book) -> tuple[Mapping[str, str], dict[str, Sequence[Event]]]:
        """Return the answers to a run, and all journals of its tree, by the path of their keys."""
        journals: dict[str, Sequence[Event]] = {}
        for run_id in await self.disk.runs():
            root, _, path = run_id.partition("/")
            if root == book.run_id:
                journals[path] = await self.disk.load(run_id)
        return await self.disk.posted(book.run_id), journals

    def learn(self, book: Book) -> None:
        """Learn the facts of a copy from its journals."""
        _, journals = asyncio.run(self.read(book))
        for path, events in journals.items():
            before: Run[None] | None = None
            for taken in replay_steps(self.agent.graph, events):
                if before is not None:
                    learn_from(book, path, before, taken.event)
                before = taken.run
        book.interrupted({one: replay(self.agent.graph, them) for one, them in journals.items()})

    # What must hold.

    def look_at(self, book: Book, runs: Mapping[str, Run[None]], events: Sequence[Event]) -> None:
        """Compare what can be seen of a run with what follows from the facts."""
        root = runs[""]
        expected = follow(book.plan, book.facts)
        assert grows(book.spent, root.spent)
        book.spent = root.spent
        found = {
            at(path, result.key): result.status
            for path, run in runs.items()
            for result in (*run.record.added, *run.turn.results)
            if isinstance(result, ToolResult)
        }
        for run in runs.values():
            assert_paired(tuple(run.messages))
        assert_read_once(root, events)
        if not book.certain or book.result is None:
            return
        result = book.result
        book.over = result.run.ended
        assert root == result.run, "a run is the replay of its journal"
        if book.cancelled:
            assert EndReason.ABORTED is result.end_reason
            return
        waits = [
            base + again for base, again, _ in (one.key.partition("#") for one in result.pending)
        ]
        assert sorted(expected.pending) == sorted(waits)
        for key, status in expected.results.items():
            assert status == found[key], key
        if expected.pending:
            assert EndReason.PARKED is result.end_reason
            return
        assert expected.results.keys() == found.keys()
        reason = EndReason.ABORTED if expected.stopped else EndReason.COMPLETED
        assert reason is result.end_reason

    @invariant()
    def nothing_ran_that_was_not_allowed(self) -> None:
        """No call ran before its answers were there, nor more often than it may."""
        expected = {one.run_id: (one, follow(one.plan, one.facts)) for one in self.books}
        for (run_id, key), count in self.world.ran.items():
            root, _, path = run_id.partition("/")
            if root not in expected:
                continue
            book, model = expected[root]
            place = at(path, key)
            assert count <= model.ran.get(place, 0), f"{run_id} {place} ran {count} times"
            answer = book.facts.answers.get(place)
            if answer is not None and answer.text and place not in book.facts.again:
                assert answer.text == self.world.texts[run_id, key]

    def teardown(self) -> None:
        """Whatever has happened to it: every run can be brought to its end."""
        for book in self.open_books():
            for _ in range(40):
                if book.over:
                    break
                asks = book.result.pending if book.certain and book.result is not None else ()
                given = {
                    one.key: Answer("result" if one.kind == "client_tool" else "approve")
                    for one in asks
                }
                stream = self.agent.resume_stream(
                    book.run_id,
                    approvals={one.key: one.approve() for one in asks if one.kind == "approval"},
                    tool_results={one.key: "" for one in asks if one.kind == "client_tool"},
                )
                self.drive(book, stream, given, None)
            assert book.over, f"run {book.run_id} does not end"
        self.nothing_ran_that_was_not_allowed()


class DatabaseRuns(Runs):
    """The same over a database, with its leases and its writer."""

    def make_disk(self) -> SqliteStore:
        """Open a database of its own."""
        self.directory = tempfile.TemporaryDirectory()
        return self.open()

    def open(self) -> SqliteStore:
        """Open the database, as a process does."""
        return SqliteStore(Path(self.directory.name) / "runs.db", durability="process")

    def make_store(self) -> MortalStore:
        """Return the store of a new process."""
        assert isinstance(self.disk, SqliteStore)
        return MortalSqliteStore(self.disk, self.world.fate)

    def reborn(self) -> None:
        """Begin a new process, once the leases of the dead one have run out."""
        asyncio.run(self.close())
        self.disk = self.open()
        super().reborn()

    async def close(self) -> None:
        """Give up what the dead process held."""
        assert isinstance(self.disk, SqliteStore)
        await self.disk.aclose()

    def teardown(self) -> None:
        """Bring every run to its end, and leave nothing behind."""
        try:
            super().teardown()
        finally:
            asyncio.run(self.close())
            self.directory.cleanup()


async def driven(stream: RunStream) -> RunResult:
    """Drive a stream to its end."""
    return await stream.result()


def at(path: str, key: str) -> str:
    """Return a key as the root's caller knows it."""
    return f"{path}/{key}" if path else key


def text_of(message: UserMessage) -> str:
    """Return what somebody said."""
    assert isinstance(message.content, str)
    return message.content


def grows(before: Spent, after: Spent) -> bool:
    """Whether nothing that was spent is forgotten."""
    return all(
        old <= new
        for old, new in (
            (before.model_calls, after.model_calls),
            (before.tool_calls, after.tool_calls),
            (before.usage.total_tokens, after.usage.total_tokens),
            (before.seconds, after.seconds),
        )
    )


@given(st.data(), st.sampled_from(ASKS))
def test_each_answer_that_people_give_can_be_given(data: st.DataObject, ask: Pending) -> None:
    """A call that may have run already takes no edit, which once failed the game itself."""
    for asked, answer in answers_to(data, [ask]).values():
        said(asked, answer)


TestRuns = Runs.TestCase
TestRuns.settings = settings(max_examples=sized(10), stateful_step_count=sized(20, 200))
TestDatabaseRuns = DatabaseRuns.TestCase
TestDatabaseRuns.settings = settings(max_examples=sized(6), stateful_step_count=sized(20, 200))
