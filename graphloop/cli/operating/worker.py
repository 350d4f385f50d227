"""Drive the runs of a store that wait for a driver, until the service manager stops it.

  graphloop worker desk.py --store runs.db
  graphloop worker desk.py --store postgresql://app@db.example/runs --slots 50

A run waits if a program submitted it (`agent.runs(store).submit`), if it got an answer, or if its
driver died. A worker takes the runs of the agent of its target. Start any number of workers, on
each machine that reaches the store, and one command for each agent.

--engine decides who drives a run next, and when: `pull` looks into the store, and `dbos` leaves it
to the queues of DBOS, in the same PostgreSQL database (pip install 'graphloop[dbos]'). `temporal`
leaves it to a Temporal server, for any store on a disk (pip install 'graphloop[temporal]'). It
reads TEMPORAL_ADDRESS and the other variables of Temporal's programs; the options go before them.

--queue default:100 --queue bulk:20:50 takes the runs of two queues: at most 100 and 20 of them at
once, and at most 50 of `bulk` on all workers. Without it, the runs of all queues are taken.
--weight acme:3 gives a tenant three times the share of another in these queues.

--pin takes no run that code of another revision began: during a deploy, workers of the old and of
the new code serve side by side, and each run ends with the code that began it.

SIGTERM and Ctrl-C end the worker: it takes no more runs, and has --grace seconds for those under
way; another worker goes on with what is left. A second Ctrl-C ends it at once. The log goes to
stderr.

Python is executed. Exit status: 0 it was stopped, 2 wrong usage, 130 a second Ctrl-C.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Container, Sequence
from enum import StrEnum
from functools import partial
from typing import Annotated, TypeAlias, TypeVar

import typer

from ... import engines
from ...errors import ConfigError
from ...stores import QueueLimits, open_store
from ...workers import Worker
from ..errors import Status, tell_error
from ..options import BaseUrl, Registers, StorePath, TargetArgument
from ..run import ModelName, Script, agent_for
from ..stored import close, named, refuse_unreachable

__all__ = ["worker_command"]

N = TypeVar("N", int, float)

EngineName = StrEnum("EngineName", {"PULL": "pull", "DBOS": "dbos", "TEMPORAL": "temporal"})

Slots: TypeAlias = Annotated[
    int, typer.Option(metavar="NUMBER", min=1, help="The most runs to drive at once.")
]
Queues: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--queue",
        metavar="NAME[:N[:N]]",
        help="A queue whose runs the worker takes, and the most that it and all workers drive.",
    ),
]
Weights: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--weight", metavar="TENANT:NUMBER", help="The share of a tenant, 1 by default."),
]
Grace: TypeAlias = Annotated[
    float, typer.Option(metavar="SECONDS", min=0, help="The time for runs under way at the end.")
]

EngineOption: TypeAlias = Annotated[
    EngineName, typer.Option("--engine", help="Decides which run the worker drives next.")
]
TemporalAddress: TypeAlias = Annotated[
    str | None,
    typer.Option("--temporal", metavar="HOST:PORT", help="The Temporal server."),
]
TemporalNamespace: TypeAlias = Annotated[
    str | None,
    typer.Option("--namespace", metavar="NAME", help="The namespace of this store."),
]
Pin: TypeAlias = Annotated[
    bool, typer.Option("--pin", help="Take only runs that code of this revision began, or none.")
]


def worker_command(  # noqa: PLR0913 - the options of a command are its parameters
    target: TargetArgument,
    *,
    store: StorePath = None,
    slots: Slots = 100,
    queue: Queues = None,
    weight: Weights = None,
    grace: Grace = 30.0,
    pin: Pin = False,
    engine: EngineOption = EngineName.PULL,
    temporal_address: TemporalAddress = None,
    temporal_namespace: TemporalNamespace = None,
    model: ModelName = None,
    script: Script = None,
    base_url: BaseUrl = None,
    registers: Registers = None,
) -> Status:
    """Serve until SIGTERM or Ctrl-C."""
    where = named(store)
    refuse_unreachable(where)
    engine_class = _engine_class(engine, temporal_address, temporal_namespace)
    agent, making = agent_for(target, registers, model, script, base_url)
    shared, bounds = open_store(where), _queue_limits(queue or (), weight or ())
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")

    async def serve() -> None:
        async with making as deps:
            worker = Worker(
                [agent],
                shared,
                slots=slots,
                queues=bounds,
                engine=engine_class,
                deps=(lambda _: deps["deps"]) if deps else None,
                pinned=pin,
            )
            _ends_by_signals(worker, grace)
            try:
                await worker.serve(grace_s=grace)
            finally:
                await close(shared)

    asyncio.run(serve())
    return Status.OK


def _ends_by_signals(worker: Worker, grace: float) -> None:
    """Have the first SIGTERM or Ctrl-C end the worker, and the next one the process."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        worker.stop()
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(each)
        tell_error(f"takes no more runs; those under way have {grace:g} s")

    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stop)


def _queue_limits(given: Sequence[str], weights: Sequence[str]) -> dict[str, QueueLimits]:
    shares: dict[str, float] = {}
    for text in weights:
        tenant, _, share = text.partition(":")
        _refuse_second("--weight", tenant, shares)
        shares[tenant] = _read_number("--weight", share, text, float)
    if shares and not given:
        raise ConfigError("--weight: expected a --queue beside it, found none. Fix: --queue NAME")
    queues: dict[str, QueueLimits] = {}
    for text in given:
        name, _, numbers = text.partition(":")
        slots, _, running = numbers.partition(":")
        if not name:
            raise ConfigError(
                f"--queue {text}: expected the name of a queue first. Fix: --queue default{text}"
            )
        _refuse_second("--queue", name, queues)
        queues[name] = QueueLimits(
            slots=_read_number("--queue", slots, text, int) if slots else None,
            running=_read_number("--queue", running, text, int) if running else None,
            weights=shares,
        )
    return queues


def _refuse_second(option: str, name: str, known: Container[str]) -> None:
    if name in known:
        raise ConfigError(
            f"{option}: expected each name once, found {name!r} twice. Fix: keep one of the two."
        )


def _read_number(option: str, text: str, given: str, kind: Callable[[str], N]) -> N:
    try:
        return kind(text)
    except ValueError as error:
        form = "NAME[:N[:N]]" if kind is int else "TENANT:NUMBER"
        raise ConfigError(
            f"{option} {given}: expected a number in {form}, found {text!r}."
        ) from error


def _engine_class(
    name: EngineName, address: str | None, namespace: str | None
) -> Callable[[engines.Legs], engines.Engine]:
    if name != EngineName.TEMPORAL and (address or namespace):
        raise ConfigError(
            f"--temporal, --namespace: expected --engine temporal, found {name}. "
            "Fix: leave them out, or take that engine."
        )
    try:
        match name:
            case EngineName.PULL:
                return engines.Pull
            case EngineName.DBOS:
                return engines.Dbos
            case EngineName.TEMPORAL:
                return partial(engines.TemporalIo, address=address, namespace=namespace)
    except ModuleNotFoundError as missing:
        raise ConfigError(str(missing)) from missing
