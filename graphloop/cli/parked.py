"""What is told of a run that waits: for which answers, and how to go on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeVar

from ..approvals import Approval
from ..front.answers import Answers, approval_of
from ..front.result import RunResult
from .lines import ask_text, counted, one_line
from .place import Place

__all__ = ["answered", "decision_text", "pending_lines"]

S = TypeVar("S")

EDIT_MAX: Final = 120


def answered(posted: Mapping[str, str]) -> Mapping[str, str]:
    """Return how each call was answered, by its key, from what a store's mailbox holds.

    Raises:
        StoreError: an answer cannot be read.
    """
    answers = Answers.of_posts(posted)
    told = dict.fromkeys(answers.tool_results, "answered")
    for key, given in answers.approvals.items():
        approval = approval_of(given)
        edit = (
            f": {one_line(approval.edit, EDIT_MAX)}" if approval.approved and approval.edit else ""
        )
        told[key] = f"{decision_text(approval)}{edit}"
    return told


def decision_text(approval: Approval) -> str:
    """Return what was decided, in a word or two."""
    if not approval.approved:
        return "denied"
    return "approved, edited" if approval.edit else "approved"


def pending_lines(result: RunResult[S], place: Place | None) -> Iterator[str]:
    """Yield what a parked run waits for, and how to go on."""
    yield f"parked: the run waits for {counted(len(result.pending), 'answer')}"
    width = max((len(one.key) for one in result.pending), default=0)
    for one in result.pending:
        yield f"  {one.key:{width}}  {ask_text(one)}"
    if place is None:
        yield (
            "It was kept in memory only. To be able to go on later, run it with --store runs.db; "
            "to decide here, run it in a terminal, or with --approve always."
        )
        return
    approvals = [one.key for one in result.pending if one.kind == "approval"]
    if len(approvals) < len(result.pending) or not place.path:
        yield from _from_python(result, place)
    elif place.takes_answers:
        yield "Go on, here or in another process:"
        for key in approvals:
            yield f"  {place.approve_command(result.run_id, key)}"
        yield f"  {place.resume_command(result.run_id)}"
        takes_edits = any(not one.unknown for one in result.pending)
        edit = "; to change its arguments, --edit JSON" if takes_edits else ""
        yield f"To deny a call, add --deny{edit}."
    else:
        yield "Go on in a terminal, which asks; or with --approve always, or never:"
        yield f"  {place.resume_command(result.run_id)}"


def _from_python(result: RunResult[S], place: Place) -> Iterator[str]:
    answers = ", ".join(f'"{one.key}": True' for one in result.pending if one.kind == "approval")
    results = ", ".join(f'"{one.key}": …' for one in result.pending if one.kind != "approval")
    given = [f"approvals={{{answers}}}"] if answers else []
    given += [f"tool_results={{{results}}}"] if results else []
    made = f', with the agent made with store="{place.path}"' if place.path else ""
    yield f"Go on from Python{made}:"
    yield f'  await agent.resume("{result.run_id}", {", ".join(given)})'
