"""resuming: a run that parked, or whose process died, goes on where its journal stops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from ..driver import AsyncDriver
from ..errors import ConfigError
from ..run import Run
from .answers import Answers, approver_alone
from .inherited_limits import refuse_other_rules
from .inputs import AnswersInput
from .journals import descendants, not_over, opening_of, resumption, state_after
from .opened import RunHandle
from .result import RunResult, spent_by
from .stream import RunStream
from .terms import RunTerms

__all__ = ["resume_run"]

S = TypeVar("S")


def resume_run(
    terms: RunTerms[S],
    run: str | RunResult[S],
    answers: AnswersInput,
    *,
    attended: bool = False,
    keep: bool = True,
) -> RunStream[S]:
    """Return the stream of a run that goes on, by its result or by its id in the store.

    Args:
        terms: the terms that the run was started on.
        run: the run's id in the store, or the result of the leg that parked.
        answers: decisions about the calls that wait, and the results of client tools.
        attended: whether the caller iterates the run, as the caller who started it did.
        keep: whether the stream keeps its parts for all readers.
    """
    given = Answers.given(answers.get("approvals"), answers.get("tool_results"))

    async def open_run() -> RunHandle[S]:
        if isinstance(run, RunResult):
            store, known, added = terms.shared.reopened(run.store), run.run, run.added
            opening = run.opening
            await not_over(run.run, store, terms.graph)
        else:
            store, added = terms.shared.stored(), ()
            events = await store.load(run)
            known, opening = state_after(terms.graph, events), opening_of(events)
        refuse_other_rules(known, terms.setup.watch)
        if attended:
            _refuse_unattended(known)
        approve = approver_alone(terms.approver, known)
        ports = replace(terms.ports(store, added), attended=attended, approve=approve)
        tree = await resumption(known, ports, given)
        driver, below = AsyncDriver(terms.graph, ports, known.state), descendants(tree)
        return RunHandle(
            terms.graph,
            ports,
            driver,
            driver.resume(tree.run, tree.answers, tree.children),
            spent_by(tree.run, below),
            len(tree.run.record.steps),
            on_step_finish=terms.options.get("on_step_finish"),
            children=below,
            final=terms.final,
            opening=opening,
        )

    return RunStream(open_run, terms.graph, keep=keep, has_objects=terms.final is not None)


def _refuse_unattended(run: Run[Any]) -> None:
    """Refuse to iterate a run that does not stop at its turns.

    Raises:
        ConfigError: the call that started the run does not iterate it.
    """
    if not (run.setup.attended or run.ended):
        raise ConfigError(
            f"run {run.id!r} was not begun by `iter`, so it hands no turn over: take it up by "
            "`resume` or `resume_stream`"
        )
