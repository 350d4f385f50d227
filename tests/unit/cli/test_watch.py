"""Watching one run: what is told at its end, and what is noted at its beginning."""

from __future__ import annotations

import asyncio
import io
import sys

import pytest

from graphloop import Agent, Approval, Pending, tool
from graphloop.cli.json_lines import JsonScreen
from graphloop.cli.live import LiveScreen
from graphloop.cli.place import Place
from graphloop.cli.plain import PlainScreen
from graphloop.cli.request import Approve
from graphloop.cli.status import Status
from graphloop.cli.watch import Watched, decider, screen_for, watch
from graphloop.drivers.ports import LeftOpen
from graphloop.providers.script import Entry
from graphloop.stores.memory import MemoryStore
from graphloop.temporal import always_followed_by, never
from graphloop.testing import ScriptedModel


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"{amount} paid"


def watched(reply: Entry) -> tuple[Status, str, list[str], MemoryStore]:
    """Watch a run; return its status, what was shown, what was closed, and the store."""
    store, closed, out = MemoryStore(), list[str](), io.StringIO()
    agent = Agent(ScriptedModel([reply]), tools=[pay], store=store)

    async def close() -> None:
        closed.append("closed")

    async def look() -> Status:
        run = Watched(agent.stream("hello", run_id="r"), close, Place(store, "runs.db", "pay"))
        return await watch(run, PlainScreen(out), "hello")

    return asyncio.run(look()), out.getvalue(), closed, store


def test_a_run_is_shown_to_its_end() -> None:
    """With the question first, where it is kept last, and everything closed."""
    status, shown, closed, store = watched("Hi.")

    assert status is Status.OK
    assert shown == "> hello\nHi.\ncompleted · 1 step · 11 tokens · run r in runs.db\n"
    assert closed == ["closed"]
    (record,) = asyncio.run(store.overview())
    assert record.target == "pay"


def test_a_parked_run_is_told_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """What can be piped is the run's own; how to go on is for people."""
    status, shown, closed, _ = watched({"calls": [{"name": "pay", "arguments": {"amount": 5}}]})

    assert status is Status.PARKED
    assert shown.splitlines()[-1] == "parked · 1 step · 15 tokens · run r in runs.db"
    assert "  graphloop approve r c0.0 --store runs.db\n" in capsys.readouterr().err
    assert closed == ["closed"]


def test_a_run_that_fails_is_closed_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Its store may be needed a moment later, by whoever looks into it."""
    status, _, closed, _ = watched(ValueError("out of order"))

    assert (status, closed) == (Status.FAILED, ["closed"])
    assert capsys.readouterr().err == "error: ValueError: out of order\n"


def test_a_run_without_a_whole_answer_is_a_failure_to_a_shell() -> None:
    """What comes next in a script would work with half an answer."""
    status, shown, _, _ = watched({"text": "Half", "finish_reason": "length"})

    assert status is Status.FAILED
    assert "\nlength · 1 step" in shown


def test_a_question_that_is_left_open_parks_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-D at the prompt: the call is neither approved nor denied, and can be, later."""

    async def later(pending: Pending) -> Approval:
        raise LeftOpen

    store = MemoryStore()
    reply: Entry = {"calls": [{"name": "pay", "arguments": {"amount": 5}}]}
    agent = Agent(ScriptedModel([reply]), tools=[pay], store=store, approve_tool_call=later)

    async def look() -> Status:
        place = Place(store, "runs.db", "pay")
        run = Watched(agent.stream("hello", run_id="r"), agent.aclose, place)
        return await watch(run, PlainScreen(io.StringIO()), None)

    assert Status.PARKED is asyncio.run(look())
    assert "  graphloop approve r c0.0 --store runs.db\n" in capsys.readouterr().err
    (record,) = asyncio.run(store.overview())
    assert ("suspended", ["c0.0"]) == (record.status, [one.key for one in record.asks])


class Deaf(io.StringIO):
    """A pipe that nobody reads any more."""

    def write(self, text: str, /) -> int:
        """Say so."""
        raise BrokenPipeError(32, "Broken pipe")


def test_a_run_that_nobody_reads_is_left_before_its_store_is_closed() -> None:
    """What is noted of it is what whoever takes it up has to know."""
    store, closed = MemoryStore(), list[str]()
    agent = Agent(ScriptedModel(["Hi."]), store=store)

    async def close() -> None:
        (record,) = await store.overview()
        closed.append(record.status)

    async def look() -> Status:
        run = Watched(agent.stream("hello", run_id="r"), close, Place(store, "runs.db", "pay"))
        return await watch(run, PlainScreen(Deaf()), None)

    with pytest.raises(BrokenPipeError):
        asyncio.run(look())

    assert ["suspended"] == closed


def test_a_run_that_has_not_kept_a_rule_is_told_and_is_no_success(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whoever runs it in a pipeline reads the status, and people the line."""
    out = io.StringIO()
    rules = always_followed_by("node:append", "tool:pay") & never("node:append", before="tool:pay")
    agent = Agent(ScriptedModel(["Hi."]), tools=[pay], rules=rules)

    async def look() -> Status:
        return await watch(Watched(agent.stream("hello"), agent.aclose, None), PlainScreen(out), "")

    assert asyncio.run(look()) is Status.FAILED
    assert out.getvalue().endswith("completed · 1 rule broken · 1 rule owed · 1 step · 11 tokens\n")
    told = capsys.readouterr().err.splitlines()
    assert ["warning: the rule 'never node:append before tool:pay' was broken"] == told[:1]
    assert told[1].endswith("is still owed, and the run is over")


class Terminal(io.StringIO):
    """A stream with somebody at its end."""

    def isatty(self) -> bool:
        """Be one."""
        return True


def test_the_screen_fits_what_takes_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that are redrawn would fill a pipe with control characters."""
    assert isinstance(screen_for(as_json=True), JsonScreen)
    assert isinstance(screen_for(as_json=False), PlainScreen)
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert isinstance(screen_for(as_json=False), LiveScreen)


def test_only_a_terminal_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways: the question has to be seen, and the answer typed. A rule needs neither."""
    screen = PlainScreen(io.StringIO())
    for stdin, stderr, asks in (
        (Terminal(), Terminal(), True),
        (Terminal(), io.StringIO(), False),
        (io.StringIO(), Terminal(), False),
        (None, Terminal(), False),
    ):
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "stderr", stderr)
        assert (decider(None, screen) is not None) is asks
        assert decider(Approve.NEVER, screen) is not None
