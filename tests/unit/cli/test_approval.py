"""Decisions about gated calls."""

from __future__ import annotations

import asyncio
import io
import os
import sys
import threading
from collections.abc import Iterator

import pytest

from graphloop import Approval, Pending
from graphloop.cli.approval import READER, UNKNOWN, approver, question, read_answer
from graphloop.cli.plain import PlainScreen
from graphloop.cli.request import Approve
from graphloop.drivers.ports import LeftOpen
from graphloop.effects import IN_WORDS

ASKED = "  allow it? y, n, e to edit the arguments, or the reason why not (Ctrl-D: no): "
PAY = '{"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}'
PENDING = Pending("approval", "c0.0", "id", "pay", '{"amount": 5}', parameters=PAY)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Yield the end of a pipe whose other end is stdin."""
    ours, theirs = os.pipe()
    with os.fdopen(ours) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield theirs
        os.close(theirs)


def decision(mode: Approve | None, pending: Pending = PENDING) -> Approval:
    decide = approver(mode, PlainScreen(io.StringIO()), interactive=True)
    assert decide is not None

    async def decided() -> Approval:
        return await decide(pending)

    return asyncio.run(decided())


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("y\n", Approval(approved=True)),
        (" YES \n", Approval(approved=True)),
        ("n\n", Approval(approved=False)),
        ("yes, but less\n", Approval(approved=False, reason="yes, but less")),
    ],
)
def test_only_a_clear_yes_is_a_yes(line: str, expected: Approval) -> None:
    """Everything else denies; the model is told the reason."""
    assert read_answer(line) == expected


def test_a_rule_decides_without_asking() -> None:
    """`--approve` is for where nobody sits."""
    assert decision(Approve.ALWAYS).approved
    assert not decision(Approve.NEVER).approved


@pytest.mark.parametrize("mode", [Approve.ASK, None])
def test_nobody_to_ask_is_nobody_who_decides(mode: Approve | None) -> None:
    """So the run parks, instead of taking silence for consent."""
    assert approver(mode, PlainScreen(io.StringIO()), interactive=False) is None


def test_the_answer_is_read_from_the_terminal(
    typed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The question goes to stderr, for stdout may be a pipe."""
    os.write(typed, b"too much\n")

    assert decision(Approve.ASK) == Approval(approved=False, reason="too much")
    assert capsys.readouterr() == (
        "",
        f"\n? pay(amount=5)\n{ASKED}",
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tech team", Approval(approved=True, arguments='{"answer": "tech team"}')),
        ("e", Approval(approved=True, arguments='{"answer": "e"}')),
        ("yes", Approval(approved=True)),
        ("n", Approval(approved=False)),
    ],
)
def test_a_question_of_a_node_is_answered_in_words(
    line: str, expected: Approval, typed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who is asked which team it is for, and says so, has not declined."""
    asked = '{"question": "Which team?", "answer": ""}'
    words = Pending("approval", "triage.2", "", "triage", asked, parameters=IN_WORDS, in_words=True)
    os.write(typed, f"{line}\n".encode())

    assert decision(Approve.ASK, words) == expected
    assert capsys.readouterr().err.endswith("  your answer in words, or y, n (Ctrl-D: no): ")


@pytest.mark.parametrize("line", ["e", "Edit"])
def test_arguments_can_be_edited(line: str, typed: int, capsys: pytest.CaptureFixture[str]) -> None:
    """What is typed must be what the tool takes; until it is, the question stands."""
    decide = approver(Approve.ASK, PlainScreen(io.StringIO()), interactive=True)
    assert decide is not None
    answers = iter([line, "[4]", line, "{no", line, " ", line, '{"sum": 4}', line, '{"amount": 4}'])

    async def edited() -> Approval:
        asking = asyncio.ensure_future(decide(PENDING))
        while not asking.done():
            if capsys_ends_in_question():
                os.write(typed, f"{next(answers)}\n".encode())
            await asyncio.wait([asking], timeout=0)
        return await asking

    told = ""

    def capsys_ends_in_question() -> bool:
        nonlocal told
        told += (new := capsys.readouterr().err)
        return new.endswith(": ")

    approval = asyncio.run(edited())

    assert approval == Approval(approved=True, arguments='{"amount": 4}')
    assert told.count(ASKED) == 5
    assert told.count('  in place of {"amount": 5}\n  arguments as JSON (empty: go back): ') == 5
    assert "expected the arguments as a JSON object, found '[4]'\n" in told
    assert "found '{no': Expecting property name" in told
    assert "'amount' is a required property" in told


def test_the_end_of_input_in_the_middle_of_an_edit_denies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And ends the asking: nothing will ever be typed again."""
    lines = iter(["e\n", ""])

    async def line() -> str:
        return next(lines)

    monkeypatch.setattr("graphloop.cli.approval._line", line)

    assert decision(Approve.ASK) == Approval(approved=False)


def test_a_question_says_who_asks_and_what_may_have_happened() -> None:
    """A call that may have run is approved differently, and so is one of an agent's agent."""
    nested = Pending(
        "approval", "c0.0/c1.0", "id", "pay", "{}", ("desk", "payer\x1b"), unknown=True
    )

    assert list(question(PENDING)) == ["", "? pay(amount=5)"]
    assert list(question(nested)) == ["", "? desk > payer > pay()", f"  warning: {UNKNOWN}"]


def test_always_is_no_answer_to_a_call_that_may_have_run() -> None:
    """Whoever said it had calls in mind that have not happened."""
    again = Pending("approval", "c0.0#7", "id", "pay", "{}", unknown=True)

    assert not decision(Approve.ALWAYS, again).approved


def test_a_call_that_may_have_run_cannot_be_edited_at_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither is it offered; who tries is told why, and asked again."""
    again = Pending("approval", "c0.0#7", "id", "pay", "{}", unknown=True)
    lines = iter(["e\n", "y\n"])

    async def line() -> str:
        return next(lines)

    monkeypatch.setattr("graphloop.cli.approval._line", line)

    assert decision(Approve.ASK, again) == Approval(approved=True)
    told = capsys.readouterr().err
    assert 2 == told.count("  run it again? y, n, or the reason why not (Ctrl-D: no): ")
    assert "e to edit" not in told
    assert "it may have run already, so its arguments cannot be edited" in told


@pytest.mark.parametrize("in_words", [False, True])
def test_enter_alone_decides_nothing(
    in_words: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is pressed by accident, and what was denied is denied for good."""
    lines = iter(["\n", "  \n", "y\n"])
    asked = '{"question": "Which team?", "answer": ""}'
    words = Pending("approval", "triage.2", "", "triage", asked, parameters=IN_WORDS, in_words=True)

    async def line() -> str:
        return next(lines)

    monkeypatch.setattr("graphloop.cli.approval._line", line)

    assert Approval(approved=True) == decision(Approve.ASK, words if in_words else PENDING)
    assert 2 == capsys.readouterr().err.count("nothing was said, and nothing is decided")


@pytest.mark.parametrize("lines", [[""], ["e\n", ""]])
def test_the_end_of_input_leaves_a_question_of_a_kept_run_open(
    lines: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is also what a lost terminal gives, and nobody has said no."""
    left = iter(lines)

    async def line() -> str:
        return next(left)

    monkeypatch.setattr("graphloop.cli.approval._line", line)
    decide = approver(Approve.ASK, PlainScreen(io.StringIO()), interactive=True, kept=True)
    assert decide is not None

    async def decided() -> Approval:
        return await decide(PENDING)

    with pytest.raises(LeftOpen):
        asyncio.run(decided())
    assert "(Ctrl-D: decide later)" in capsys.readouterr().err


def test_a_terminal_that_is_gone_is_the_end_of_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody would ever answer, and the run would wait for ever."""

    def gone(descriptor: int, length: int) -> bytes:
        raise OSError(5, "Input/output error")

    ours, theirs = os.pipe()
    os.close(theirs)
    with os.fdopen(ours) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(os, "read", gone)

        assert Approval(approved=False) == decision(Approve.ASK)


def test_a_question_can_be_left_unanswered(typed: int) -> None:
    """Ctrl-C while the question stands must end the run, not wait for the line."""
    decide = approver(Approve.ASK, PlainScreen(io.StringIO()), interactive=True)
    assert decide is not None

    async def left() -> bool:
        asking = asyncio.ensure_future(decide(PENDING))
        while READER not in {thread.name for thread in threading.enumerate()}:
            await asyncio.wait([asking], timeout=0)
        asking.cancel()
        await asyncio.wait([asking])
        return asking.cancelled()

    assert asyncio.run(left())

    os.write(typed, b"late\n")
    for thread in threading.enumerate():
        if thread.name == READER:
            thread.join()
