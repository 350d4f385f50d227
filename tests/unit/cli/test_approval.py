"""Decisions about gated calls."""

from __future__ import annotations

import asyncio
import io
import os
import sys
import threading
from collections.abc import Iterator

import pytest

from graphloop import Approval
from graphloop.cli.approval import READER, approver, read_answer
from graphloop.cli.plain import PlainScreen
from graphloop.cli.request import Approve
from graphloop.front.result import Pending

PENDING = Pending("approval", "c0.0", "id", "pay", '{"amount": 5}')


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Yield the end of a pipe whose other end is stdin."""
    ours, theirs = os.pipe()
    with os.fdopen(ours) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield theirs
        os.close(theirs)


def decision(mode: Approve | None) -> Approval:
    decide = approver(mode, PlainScreen(io.StringIO()), interactive=True)
    assert decide is not None

    async def decided() -> Approval:
        return await decide(PENDING)

    return asyncio.run(decided())


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("y\n", Approval(approved=True)),
        (" YES \n", Approval(approved=True)),
        ("n\n", Approval(approved=False)),
        ("\n", Approval(approved=False)),
        ("", Approval(approved=False)),
        ("yes, but less\n", Approval(approved=False, reason="yes, but less")),
    ],
)
def test_only_a_clear_yes_is_a_yes(line: str, expected: Approval) -> None:
    """Everything else denies, the end of input included; the model is told the reason."""
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
        "\n? pay(amount=5)\n  allow it? y, n, or the reason why not: ",
    )


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
