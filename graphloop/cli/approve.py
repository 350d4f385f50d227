"""`graphloop approve`: an answer to a call that a run waits for, left in its store.

The run's code is not loaded: what is asked, and the token that says exactly which call that is,
stand in the store.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from ..approvals import Approval
from ..errors import ConfigError, StoreError, nearest
from ..front.journals import root_of
from ..front.runs import answer_call, open_ask, recorded_asks
from ..stores.base import Ask, Mailbox
from .edits import edited
from .lines import ask_text, call_text
from .parked import answered, decision_text
from .place import Place
from .request import refuse_blanks
from .status import Status, tell
from .stored import find_run, opened

__all__ = ["answer_of", "approve", "find_ask"]

NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
NO_MAILBOX: Final = (
    "{store}: expected a database (a file such as runs.db), found a directory of JSON lines, which "
    "keeps no answers for later. Answer while the run is driven, in a terminal: {command}"
)


def approve(
    run: str, call: str, *, store: str | None, deny: bool, reason: str, edit: str | None
) -> Status:
    """Leave an answer to a call in the store, for whoever resumes the run.

    Raises:
        ConfigError: there is no such run or call, it takes no answer, or not these arguments.
        StoreError: somebody has answered it already.
    """
    refuse_blanks({"RUN": run, "CALL": call})
    answer = answer_of(deny=deny, reason=reason, edit=edit)
    asyncio.run(_approve(run, call, store or "", answer))
    return Status.OK


def answer_of(*, deny: bool, reason: str, edit: str | None) -> Approval:
    """Return what the options say.

    Raises:
        ConfigError: they contradict each other, or the edit is no JSON object.
    """
    if edit is None:
        return Approval(approved=not deny, reason=reason)
    if deny:
        raise ConfigError("expected --deny or --edit, found both: what is denied does not run.")
    return Approval(approved=True, reason=reason, arguments=edited(edit))


def find_ask(
    asks: Sequence[Ask], run_id: str, call: str, answers: Mapping[str, str] = NOTHING
) -> Ask:
    """Return what is asked about `call`: its key, a beginning of it, or its tool, if only one has.

    A call that is in `answers` (how it was answered, by its key) is meant by its whole key only.

    Raises:
        ConfigError: nothing is, or it is not clear what, or it takes no approval.
        StoreError: what it names has been answered already.
    """
    if call in [one.key for one in asks]:
        return open_ask(asks, run_id, call)
    meant = [one for one in asks if one.name == call or one.key.startswith(call)]
    still_open = [one for one in meant if one.key not in answers]
    if len(still_open) > 1:
        raise ConfigError(
            f"expected one call, found {len(still_open)} that {call!r} can mean: "
            f"{_listed(still_open)}. Name it by its key"
        )
    if still_open:
        return open_ask(asks, run_id, still_open[0].key)
    if meant:
        told = ", ".join(f"{_listed([one])} ({answers[one.key]})" for one in meant)
        raise StoreError(f"answered already: {told}. The first answer counts.")
    waiting = [one for one in asks if one.key not in answers]
    names = [name for one in waiting for name in (one.name, one.key)]
    raise ConfigError(
        f"run {run_id!r} does not wait for {call!r}; it waits for "
        f"{_listed(waiting) or 'nothing'}.{nearest(call, names)}"
    )


def _listed(asks: Sequence[Ask]) -> str:
    return ", ".join(f"{one.key} {call_text(one.name, one.arguments)}" for one in asks)


async def _approve(run: str, call: str, where: str, answer: Approval) -> None:
    async with opened(where) as store:
        found = await find_run(store, run, where)
        if not isinstance(store, Mailbox):
            command = Place(store, where, "").resume_command(found, "--target", "TARGET")
            raise ConfigError(NO_MAILBOX.format(store=where, command=command))
        run_id, key = root_of(found, call)
        asks = await recorded_asks(store, run_id) or ()
        ask = find_ask(asks, run_id, key, answered(await store.posted(run_id)))
        posted = await answer_call(store, run_id, ask, answer=answer, now=time.time())
        answers = answered(await store.posted(run_id))
    if posted != "accepted":
        said = answers.get(ask.key, "answered")
        raise StoreError(
            f"{ask.key} of run {run_id!r} was answered already ({said}): the first answer counts."
        )
    runs = call_text(ask.name, answer.edit or ask.arguments)
    sys.stdout.write(f"{decision_text(answer)} {runs}, {ask.key} of run {run_id}\n")
    if ask.unknown and answer.approved:
        tell("warning: it may have run already; it will run again.")
    for one in asks:
        if one.key not in answers:
            tell(f"still waits for {one.key}: {ask_text(one)}")
    tell(f"go on with: {Place(store, where, '').resume_command(run_id)}")
