"""An agent that is a global, and its tests: a script, an override, a fuzzer, a recording.

pytest p09_tested.py
"""

from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import given, settings

from graphloop import Agent, tool
from graphloop.errors import ConfigError
from graphloop.testing import ScriptedModel, Simulation, assert_safe, recorded, refuse_requests
from graphloop.testing.strategies import simulations


@tool
async def lend(book: str) -> str:
    """Lend a book."""
    return f"{book} is yours"


librarian = Agent("openai:gpt-5", api_key="none", name="librarian", tools=[lend], max_steps=4)


def borrow(book: str) -> str:
    """Borrow a book, as the rest of the program does."""
    return librarian.generate_sync(f"I'd like {book}.").text


class Fuzz(Protocol):
    """What the fixture `fuzz_graph` is."""

    def __call__(self, subject: Agent, *, seeds: int) -> object:
        """Play hostile worlds."""
        ...


SCRIPT = [{"calls": [{"name": "lend", "arguments": {"book": "Emma"}}]}, "Here is Emma."]


def test_a_book_is_lent() -> None:
    """The global agent answers from a script, and its requests can be looked at."""
    model = ScriptedModel(SCRIPT)
    with librarian.override(model=model):
        assert borrow("Emma") == "Here is Emma."
    assert [spec.name for spec in model.requests[0].tools] == ["lend"]


def test_no_real_model_is_asked() -> None:
    """A forgotten override is an error instead of a bill."""
    with refuse_requests(), pytest.raises(ConfigError, match="request"):
        borrow("Emma")


def test_a_talk_is_recorded_once(tmp_path: Path) -> None:
    """The second run reads the file, and asks no model."""
    talk, model = tmp_path / "talk.yaml", ScriptedModel(SCRIPT)
    with librarian.override(model=recorded(model, talk)):
        borrow("Emma")
    with librarian.override(model=recorded("openai:gpt-5", talk)), refuse_requests():
        assert borrow("Emma") == "Here is Emma."
    assert len(model.requests) == 2


def test_the_loop_is_proven_and_fuzzed(fuzz_graph: Fuzz) -> None:
    """The proofs hold, and no hostile world breaks the loop."""
    assert_safe(librarian, proven=["GL2", "GL3", "GL4"])
    fuzz_graph(librarian, seeds=25)


@settings(max_examples=15, deadline=None)
@given(run=simulations(librarian))
def test_no_book_is_lent_twice(run: Simulation[None]) -> None:
    """Whatever the model says, and wherever the process dies."""
    assert not run.repeated
