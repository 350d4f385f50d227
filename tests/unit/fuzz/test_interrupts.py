"""Interrupts: a person's Ctrl-C, and what a node raises."""

from __future__ import annotations

import signal

import pytest

from graphloop.fuzz.interrupts import Interrupts


def test_who_raised_an_interrupt_is_known_while_it_listens() -> None:
    """A node that raises one must not end the search; a person must."""
    interrupts = Interrupts()

    assert not interrupts.is_leaving(KeyboardInterrupt())
    with interrupts:
        assert interrupts.is_leaving(KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert not interrupts.is_leaving(KeyboardInterrupt())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_wish_to_leave_is_a_node_s_own_and_what_others_raise_is_not() -> None:
    """A test runner ends a test that takes too long by an exception of its own."""

    class TooLong(BaseException):
        """It is no error."""

    interrupts = Interrupts()

    assert interrupts.is_leaving(SystemExit(1))
    assert interrupts.is_leaving(GeneratorExit())
    assert not interrupts.is_leaving(TooLong())


def test_who_listens_already_goes_on_listening() -> None:
    """An event loop has its own way to be stopped."""
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        with Interrupts():
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)

    assert [signal.SIGINT] * 2 == heard
