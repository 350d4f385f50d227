"""Answer a call that a run waits for; graphloop resume then goes on with the run.

  graphloop approve 1f3a2b4c c0.0 --store runs.db
  graphloop approve 1f3a2b4c pay --edit '{"amount": 4}' --store runs.db
  graphloop approve 1f3a c0.1/c0.0 --deny --reason "too much" --store runs.db

CALL is the call's key or its beginning, or the name of its tool, if only one call fits. The first
answer counts. --edit gives all arguments, in place of the model's; they must fit the tool. To a
question of a tool or its server, it gives the answer. A call that may have run already takes no
--edit: it runs again unchanged, or not at all. No code of the run is loaded here; its gates check
the answer when the run is resumed.

Exit status: 0 the answer is stored, 1 the call was answered before, 2 wrong usage.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, TypeAlias

import typer

from ..agent import Runs
from ..errors import ConfigError, StoreError, nearest
from ..policy import Approval
from ..stores import Ask, Mailbox, root_of, shown_address
from .ask_at_terminal import json_object
from .display import ask_text
from .errors import Status, tell_error
from .options import RunId, StorePath, Text
from .stored import Origin, answers_text, find_run, opened
from .text import agents_text, call_text

__all__ = ["approve_command"]

Call: TypeAlias = Annotated[
    str, typer.Argument(metavar="CALL", help="The call's key, or its tool.")
]
Deny: TypeAlias = Annotated[bool, typer.Option("--deny", help="Do not let it run.")]
Reason: TypeAlias = Annotated[
    str, typer.Option(metavar="TEXT", help="The reason; the model reads why a call is denied.")
]
Edit: TypeAlias = Annotated[
    Text, typer.Option(metavar="JSON", help="Let it run with these arguments instead.")
]


def approve_command(
    run: RunId,
    call: Call,
    *,
    deny: Deny = False,
    reason: Reason = "",
    edit: Edit = None,
    store: StorePath = None,
) -> Status:
    """Store the answer to a waiting call; the next resume of the run reads it."""
    if deny and edit is not None:
        raise ConfigError("--deny: expected it or --edit, found both: a denied call does not run.")
    arguments = None if edit is None else json_object(edit)
    asyncio.run(_post_answer(run, call, store, Approval(not deny, reason, arguments)))
    return Status.OK


async def _post_answer(run: str, call: str, where: str | None, answer: Approval) -> None:
    async with opened(where) as store:
        typed_id = await find_run(store, run, str(where))
        origin = Origin(store, shown_address(str(where)), ("TARGET",))
        if not isinstance(store, Mailbox):
            raise ConfigError(
                f"{where}: expected a database (a file such as runs.db), found a directory of JSON "
                "lines, which keeps no answers for later. Fix: answer in a terminal: "
                f"{await origin.resume_command(typed_id)}"
            )
        run_id, key = root_of(typed_id, call)
        runs: Runs[None] = Runs(store)
        asks = await runs.pending(run_id)
        ask = _find_ask(asks, run_id, key, await answers_text(store, run_id))
        posted = await runs.approve(run_id, ask.key, answer)
        answers = await answers_text(store, run_id)
        resume = await origin.resume_command(run_id)
    if posted != "accepted":
        raise StoreError(
            f"{ask.key} of run {run_id!r} was answered already "
            f"({answers.get(ask.key, 'answered')}): the first answer counts."
        )
    how = "denied" if not answer.approved else "approved, edited" if answer.edit else "approved"
    approved_call = _call_of(ask, answer.edit)
    sys.stdout.write(f"{how} {approved_call}, {ask.key} of run {run_id}\n")
    if ask.unknown and answer.approved:
        tell_error("warning: it may have run already; it will run again.")
    for other in asks:
        if other.key not in answers:
            tell_error(f"still waits for {other.key}: {ask_text(other)}")
    is_noted = "--target" not in resume
    tell_error(f"go on with{'' if is_noted else ' a worker of its agent, or'}: {resume}")


def _find_ask(asks: Sequence[Ask], run_id: str, call: str, answers: Mapping[str, str]) -> Ask:
    """Return the question about `call`, which is a key, the beginning of a key, or a tool's name.

    A beginning or a tool's name matches only unanswered calls. `answers` holds the keys of the
    answered calls.
    """
    named = [ask for ask in asks if ask.key == call]
    if named:
        return named[0]
    matches = [ask for ask in asks if ask.name == call or ask.key.startswith(call)]
    waiting = [ask for ask in asks if ask.key not in answers]
    candidates = [ask for ask in matches if ask in waiting]
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        raise ConfigError(
            f"{call}: expected one call, found {len(candidates)}: {_list_asks(candidates)}. "
            "Fix: name it by its key."
        )
    if matches:
        raise StoreError(f"answered already: {_list_asks(matches)}. The first answer counts.")
    names = [name for ask in waiting for name in (ask.name, ask.key)]
    raise ConfigError(
        f"run {run_id!r} does not wait for {call!r}; it waits for "
        f"{_list_asks(waiting) or 'nothing'}.{nearest(call, names)}"
    )


def _list_asks(asks: Sequence[Ask]) -> str:
    return ", ".join(f"{ask.key} {_call_of(ask)}" for ask in asks)


def _call_of(ask: Ask, edit: str = "") -> str:
    """Return the text of a call with the server that runs it, perhaps with edited arguments."""
    return f"{agents_text((), ask.server)}{call_text(ask.name, edit or ask.arguments)}"
