"""Reports of running tools: few enough to show, in order, and never without the last one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphloop.errors import ConfigError
from graphloop.tools import ProgressReports, ToolContext, ToolProgress

PERIOD_S = 0.05


class StillLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock only a test puts forward."""

    at = 0.0

    def time(self) -> float:
        return self.at

    async def leap(self, seconds: float) -> None:
        """Put the clock forward, and let timers run."""
        self.at += seconds
        for _ in range(3):
            await asyncio.sleep(0)


Told = tuple[float, list[ToolProgress]]


def told(steps: Sequence[tuple[float, int, bool]]) -> Told:
    """Report after each wait as often as is said; return the seconds, and what was heard.

    A step is the seconds to wait, the number of reports, and whether the reader keeps up.
    """
    heard: list[ToolProgress] = []
    keeps_up = True

    def hear(report: ToolProgress) -> bool:
        if keeps_up:
            heard.append(report)
        return keeps_up

    async def main() -> Told:
        nonlocal keeps_up
        loop = asyncio.get_running_loop()
        assert isinstance(loop, StillLoop)
        reports, done = ProgressReports(hear, "c0.0", "load"), 0
        for seconds, count, keeps_up in steps:  # noqa: B007 - `hear` reads it
            await loop.leap(seconds)
            for _ in range(count):
                reports.tell(done := done + 1, None, "")
        keeps_up = True
        reports.close()
        reports.tell(-1, None, "too late")
        await loop.leap(1.0)
        return loop.at - 1.0, heard

    with asyncio.Runner(loop_factory=StillLoop) as runner:
        return runner.run(main())


def hearing(heard: list[ToolProgress]) -> Callable[[ToolProgress], bool]:
    """Return a listener that always keeps up."""

    def hear(report: ToolProgress) -> bool:
        heard.append(report)
        return True

    return hear


steps = st.tuples(st.sampled_from([0.0, 0.01, 0.05, 0.3]), st.integers(0, 9), st.booleans())


@given(st.lists(steps, max_size=40))
@example([(0.0001, 1, True)] * 10_000)
@example([(0.0, 10_000, True)])
@example([(0.1, 1, False), (0.1, 0, True), (0.1, 1, False)])
def test_reports_are_few_ordered_and_end_with_the_last(
    steps: Sequence[tuple[float, int, bool]],
) -> None:
    """A tool may report for each of a million rows; a page shows twenty a second."""
    seconds, heard = told(steps)
    last = sum(count for _, count, _ in steps)

    done = [report.done for report in heard]
    assert done == sorted(set(done))
    assert done[-1:] == ([last] if last else [])
    assert len(done) <= 2 + seconds / PERIOD_S


async def test_a_report_is_heard_while_the_tool_works() -> None:
    """The first at once, as soon as the tool waits for something."""
    heard: list[ToolProgress] = []
    reports = ProgressReports(hearing(heard), "c0.1", "load")
    context = ToolContext("r", "c0.1", "", 0, (), reports=reports)

    await context.report(3, 40, "reading")
    await asyncio.sleep(0)

    assert [ToolProgress("c0.1", "load", 3, 40, "reading")] == heard
    reports.close()


async def test_a_thread_may_report() -> None:
    """A plain function that blocks calls it without `await`."""
    heard: list[ToolProgress] = []
    reports = ProgressReports(hearing(heard), "c0.1", "load")
    context = ToolContext("r", "c0.1", "", 0, (), reports=reports)

    await asyncio.to_thread(context.report, 1)
    await asyncio.to_thread(context.report, 2)
    reports.close()

    assert heard[-1].done == 2


@pytest.mark.parametrize(("done", "total"), [("1", None), (None, None), (1, "2"), (True, None)])
async def test_a_report_of_no_number_is_refused(done: object, total: object) -> None:
    """Where it is made, not where it is shown."""
    reports = ProgressReports(lambda _: True, "c0.1", "load")

    with pytest.raises(ConfigError, match=r"report: `(done|total)`: expected a number"):
        reports.tell(done, total, "")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - a caller without a type checker
    reports.close()


async def test_without_a_reader_a_report_has_no_effect() -> None:
    """A tool reports whether or not anybody looks."""
    await ToolContext("r", "c0.1", "", 0, ()).report(1)
