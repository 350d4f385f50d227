"""Ctrl-C during a run."""

from __future__ import annotations

import asyncio
import os
import signal

from graphloop.cli.interrupt import interrupts


def test_the_first_ctrl_c_aborts_and_the_second_is_the_systems() -> None:
    """Whatever blocks the event loop, the user gets out with two."""

    async def main() -> object:
        aborted = asyncio.Event()
        with interrupts(aborted.set):
            os.kill(os.getpid(), signal.SIGINT)
            await aborted.wait()
            return signal.getsignal(signal.SIGINT)

    assert asyncio.run(main()) is signal.SIG_DFL


def test_afterwards_ctrl_c_is_what_it_was() -> None:
    """The handler belongs to one run."""
    before = signal.getsignal(signal.SIGINT)

    async def main() -> None:
        with interrupts(lambda: None):
            pass

    asyncio.run(main())

    assert signal.getsignal(signal.SIGINT) is before


def test_a_loop_that_is_kept_busy_need_not_have_a_turn() -> None:
    """A tool that blocks the event loop: whoever sees it return ends the run there."""
    aborts: list[bool] = []

    async def main() -> list[bool]:
        with interrupts(lambda: aborts.append(True)) as interrupt:
            interrupt.heed()
            before = list(aborts)
            os.kill(os.getpid(), signal.SIGINT)
            interrupt.heed()
            at_once = list(aborts)
            await asyncio.to_thread(int)  # The loop has its turn, and nothing left to do in it.
        assert interrupt.came
        return [*before, *at_once]

    assert asyncio.run(main()) == [True] == aborts
