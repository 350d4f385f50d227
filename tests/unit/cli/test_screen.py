"""The seam between a run and what shows it: every screen keeps to it."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Callable

import pytest
from rich.console import Console

from graphloop import Agent, tool
from graphloop.cli.json_lines import JsonScreen
from graphloop.cli.live import LiveScreen
from graphloop.cli.plain import PlainScreen
from graphloop.cli.screen import Screen
from graphloop.testing import ScriptedModel


def live(out: io.StringIO) -> Screen:
    return LiveScreen(Console(file=out, width=60), lambda: 0.0)


SCREENS: tuple[Callable[[io.StringIO], Screen], ...] = (PlainScreen, JsonScreen, live)


@tool
async def shout(text: str) -> str:
    """Shout."""
    return text.upper()


@pytest.mark.parametrize("make", SCREENS)
def test_every_screen_shows_the_text_and_the_results(make: Callable[[io.StringIO], Screen]) -> None:
    """Whatever is watched with, nothing that matters is missing."""
    out = io.StringIO()

    asyncio.run(watched(make(out)))

    assert "shout" in out.getvalue()
    assert "HI" in out.getvalue()
    assert "Done" in out.getvalue()


@pytest.mark.parametrize("make", SCREENS)
def test_every_screen_leaves_stdout_as_it_was(make: Callable[[io.StringIO], Screen]) -> None:
    """Also when the run is left by an exception."""
    before = sys.stdout

    with pytest.raises(ZeroDivisionError), make(io.StringIO()).open():
        raise ZeroDivisionError

    assert sys.stdout is before


@pytest.mark.parametrize("make", SCREENS)
def test_every_screen_makes_room_for_a_question(make: Callable[[io.StringIO], Screen]) -> None:
    """And goes on afterwards."""
    screen = make(io.StringIO())

    with screen.open():
        with screen.aside():
            pass
        screen.note("done")


async def watched(screen: Screen) -> None:
    calls = [{"name": "shout", "arguments": {"text": "hi"}}]
    stream = Agent(ScriptedModel([{"calls": calls}, "Done."]), tools=[shout]).stream("hello")
    with screen.open():
        screen.asked("hello")
        async for part in stream.full_stream:
            screen.show(part, stream.run)
    screen.finish(await stream.result(), "")
