"""Exit statuses and how an error is told."""

from __future__ import annotations

import errno
import io
import os
import sys

import pytest

from graphloop.cli.status import (
    Status,
    complain,
    delivered,
    guarded,
    put_file,
    put_picture,
    tell,
)
from graphloop.errors import ConfigError, Overloaded, ScriptError


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (ConfigError("no such option"), Status.USAGE, "error: no such option\n"),
        (ScriptError("bad\x1b script"), Status.USAGE, "error: bad script\n"),
        (Overloaded("busy"), Status.FAILED, "error: busy\n"),
        (ValueError("from a callback"), Status.FAILED, "error: ValueError: from a callback\n"),
    ],
)
def test_an_error_is_a_line_and_a_status(
    error: Exception, status: Status, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """2 says "change the command", 1 says "the world failed": scripts tell them apart."""
    assert complain(error) is status
    assert capsys.readouterr() == ("", line)


def test_an_intended_error_is_told_without_a_trace(capsys: pytest.CaptureFixture[str]) -> None:
    """A trace of graphloop's own files does not help whoever mistyped a name."""

    def work() -> Status:
        raise ConfigError("wrong")

    assert guarded(work) is Status.USAGE
    assert capsys.readouterr().err == "error: wrong\n"


def test_a_bug_keeps_its_trace() -> None:
    """What nobody raised on purpose must be reported whole."""

    def work() -> Status:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        guarded(work)


def test_a_status_passes() -> None:
    """The work's own status is the command's."""
    assert guarded(lambda: Status.PARKED) is Status.PARKED


def test_no_encoding_ends_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names may be in any script, and terminals of any time."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, "ascii", newline=""))

    delivered(lambda: print("Bär", end=" "))  # noqa: T201 - what a command does
    put_picture("━▶ Bär ")
    put_file("Bär ━▶")
    sys.stdout.flush()

    assert raw.getvalue() == b"B?r => B?r " + "Bär ━▶".encode()


def test_where_nobody_knows_the_encoding_text_stays_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that listens in memory gets what was said."""
    monkeypatch.setattr(sys, "stdout", out := io.StringIO())
    put_picture("━▶")
    put_file("Bär")

    assert out.getvalue() == "━▶Bär"


class Broken(io.StringIO):
    """A stdout that takes nothing."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def flush(self) -> None:
        raise OSError(self._number, os.strerror(self._number))


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (
            errno.ENOSPC,
            "error: expected stdout to take the output, found: No space left on device\n",
        ),
        (errno.EPIPE, ""),
    ],
)
def test_output_that_is_lost_is_a_failure(
    number: int,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A full disk is told; a reader that has gone, as `head` does, has read what it wanted."""
    monkeypatch.setattr(sys, "stdout", Broken(number))

    with pytest.raises(SystemExit) as ended:
        delivered(lambda: None)

    assert ended.value.code == Status.FAILED
    assert capsys.readouterr().err == told


def test_nothing_is_begun_for_a_stdout_that_is_closed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that nobody can read would still be paid for."""
    begun: list[bool] = []
    monkeypatch.setattr(sys, "stdout", None)

    with pytest.raises(SystemExit) as ended:
        delivered(lambda: begun.append(True))

    assert (ended.value.code, begun) == (Status.USAGE, [])
    assert capsys.readouterr().err.startswith("error: expected stdout to write to, found it closed")


def test_an_error_about_a_file_is_not_blamed_on_stdout() -> None:
    """What nobody expected keeps its trace."""

    def work() -> None:
        raise FileNotFoundError(errno.ENOENT, "No such file", "own.py")

    with pytest.raises(FileNotFoundError):
        delivered(work)


@pytest.mark.parametrize("stderr", [None, Broken(errno.ENOSPC)])
def test_a_stderr_that_takes_nothing_spoils_nothing(
    stderr: Broken | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Least of all stdout, where `print` would put it."""
    monkeypatch.setattr(sys, "stderr", stderr)

    tell("for nobody")

    assert capsys.readouterr().out == ""
