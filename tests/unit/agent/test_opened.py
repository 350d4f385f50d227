"""Opened: what a run has come to, read from its last state."""

from __future__ import annotations

from graphloop import OutputInvalid, RunResult, Usage
from graphloop.agent.final_answer import FinalAnswer
from graphloop.agent.opened import RunHandle
from graphloop.driver.driver import AsyncDriver
from graphloop.driver.ports import Ports
from graphloop.errors import RunFailed
from graphloop.events import Failure
from graphloop.run import Ending, EndReason, Run, Spent, evolve
from graphloop.stores.memory import MemoryStore
from graphloop.tools.toolbox import Toolbox
from graphloop.turn import StepResult
from graphloop.values import FinishReason
from tests.runs import changed
from tests.strategies import fresh, loop, wrong


def read() -> str:
    """Read."""
    return "text"


def opened(final: FinalAnswer | None = None, **given: object) -> RunHandle[None]:
    """Return a run that nobody has driven in this process."""
    ports: Ports[None] = Ports(store=MemoryStore(), models={}, toolbox=Toolbox(), secret=b"s")
    ports.toolbox.add([read])
    driver = AsyncDriver(loop(), ports, None)
    return RunHandle(loop(), ports, driver, driver.resume(fresh()), final=final, **wrong(given))


def run(text: str, ending: Ending) -> Run[None]:
    """Return a run of one turn that ended so."""
    step = StepResult(0, text, "", (), (), FinishReason.STOP, "", Usage(), "model", ())
    begun = fresh()
    return changed(begun, steps=begun.record.steps.append(step), ending=ending, node="END")


DONE = Ending(EndReason.COMPLETED)


def failed(error: str, message: str) -> Ending:
    """Return the ending of a run that failed so."""
    return Ending(EndReason.ERROR, failure=Failure(error, message))


def test_a_run_that_completed_has_its_answer_and_its_world() -> None:
    """What the next leg, and whoever looks for the journal, need."""
    ready = opened(FinalAnswer(int, "native", []), before=Spent(model_calls=3))

    result = ready.ended(run('{"value": 3}', DONE), ["careful"])

    assert isinstance(result, RunResult)
    assert (3, ("careful",), 3) == (result.output, result.warnings, result.before.model_calls)
    assert (ready.ports.store, b"s") == (result.store, result.secret)
    assert ["read"] == [one.name for one in result.added]


def test_the_runs_below_are_those_of_all_legs() -> None:
    """A child that was begun in an earlier leg may still be what the run waits for."""
    result = opened(children={"r/c0.0": fresh()}).ended(fresh(), ())

    assert isinstance(result, RunResult)
    assert {"r/c0.0": fresh()} == result.children


def test_a_run_without_a_form_or_without_an_end_has_no_answer() -> None:
    """Half an answer is none."""
    stopped = Ending(EndReason.MAX_STEPS)

    for ready, ending in ((opened(), DONE), (opened(FinalAnswer(int, "native", [])), stopped)):
        result = ready.ended(run('{"value": 3}', ending), ())
        assert isinstance(result, RunResult)
        assert result.output is None


def test_a_failure_of_another_process_is_told_from_its_record() -> None:
    """The exception itself is gone."""
    error = opened().ended(run("", failed("LookupError", "bug")), ())

    assert isinstance(error, RunFailed)
    assert "LookupError: bug" == str(error)


def test_a_failure_without_a_record_is_still_a_failure() -> None:
    """A node of the user's may end a run in error and not say why."""
    error = opened().ended(run("", Ending(EndReason.ERROR)), ())

    assert isinstance(error, RunFailed)
    assert "unknown" == str(error)


def test_an_answer_that_was_given_up_on_is_an_error_of_its_own_with_what_was_said() -> None:
    """In any process: the journal has both."""
    final = FinalAnswer(int, "native", [])
    ending = failed("OutputInvalid", "not a number")

    with_form = opened(final).ended(run("three", ending), ())
    without = opened().ended(run("three", ending), ())
    silent = opened(final).ended(evolve(fresh(), ending=ending, node="END"), ())

    for error, text in ((with_form, "three"), (without, ""), (silent, "")):
        assert isinstance(error, OutputInvalid)
        assert str(error).endswith("sent back 0 time(s). As the model reads it: not a number")
        assert text == error.text
