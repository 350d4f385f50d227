"""Mutants of the protocol by which workers share runs: each rule is broken once, and noticed.

    python -m tests.protocol_mutants                 plant each mutant, and run its tests
    python -m tests.protocol_mutants --only sweep    those whose name has this text

A mutant leaves out one rule of the protocol. Its tests are those that must notice, and no others
run. The status is 0 if every mutant is killed, and 1 if one survives.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.mutants import ROOT, Bench

__all__ = ["MUTANTS", "ProtocolMutant"]

CLAIMS: Final = "graphloop/stores/database/claims.py"
CHILDREN: Final = "graphloop/driver/children.py"
DRIVER: Final = "graphloop/driver/driver.py"
JOURNAL: Final = "graphloop/stores/postgres/journal.py"
LEASES: Final = "graphloop/stores/postgres/leases.py"
SCHEMA: Final = "graphloop/stores/postgres/schema.py"
WRITER: Final = "graphloop/stores/postgres/writer.py"
SWEPT: Final = 'link.execute("DELETE FROM worker WHERE name NOT IN (SELECT name FROM live)")'
OUTBOX_TESTS: Final = "tests/unit/engines/test_dbos.py"
STORE_TESTS: Final = "tests/unit/stores/test_postgres.py"
STORES: Final = "tests/conformance/test_stores.py"
PLACED: Final = "tests/unit/workers/test_children_elsewhere.py"
UNREAD: Final = f"{STORES}::test_an_answer_that_its_driver_has_not_read_wakes_the_run[postgres]"


@dataclass(frozen=True, slots=True)
class ProtocolMutant:
    """A rule that is left out: the changes of texts in files, and the tests that must notice."""

    name: str
    changes: Sequence[tuple[str, str, str]]
    tests: tuple[str, ...]

    def planted(self) -> Mapping[str, str]:
        """Return the changed files.

        Raises:
            ValueError: a text is not in its file exactly once; the mutant is lost.
        """
        files: dict[str, str] = {}
        for path, old, new in self.changes:
            source = files.get(path) or (ROOT / path).read_text("utf-8")
            if source.count(old) != 1:
                raise ValueError(f"{self.name}: expected {old!r} once in {path}. Fix: mend it.")
            files[path] = source.replace(old, new)
        return files


MUTANTS: Final = (
    ProtocolMutant(
        "epoch: an append does not ask for the latest claim",
        [(JOURNAL, " AND r.epoch = e.epoch \"", ' "')],
        (f"{STORE_TESTS}::test_a_driver_whose_run_another_has_claimed_is_fenced",),
    ),
    ProtocolMutant(
        "number: an append does not ask for the number before",
        [(JOURNAL, "WHERE (e.first = 1 OR EXISTS", "WHERE (true OR EXISTS")],
        (f"{STORE_TESTS}::test_a_claimed_append_leaves_no_gap",),
    ),
    ProtocolMutant(
        "poke in release: a parked run with an unread answer sleeps on",
        [(CLAIMS, "AND :seen < posts", "AND false")],
        (UNREAD, f"{STORE_TESTS}::test_an_answer_and_a_release_meet_on_the_row"),
    ),
    ProtocolMutant(
        "poke in post: an answer does not make a parked run ready",
        [(SCHEMA, " status = CASE WHEN owner IS NULL AND", " status = CASE WHEN false AND")],
        (UNREAD,),
    ),
    ProtocolMutant(
        "count: an answer is not counted in the run's row",
        [(SCHEMA, "SET posts = posts + 1", "SET posts = posts")],
        (UNREAD,),
    ),
    ProtocolMutant(
        "count: a release counts the answers as they were before it waited for the row",
        [(CLAIMS, ":seen < posts", ":seen < (SELECT count(*) FROM signal WHERE run = number)")],
        (f"{STORE_TESTS}::test_an_answer_and_a_release_meet_on_the_row",),
    ),
    ProtocolMutant(
        "news: the end of a placed child wakes nobody",
        [(CLAIMS, "and agent and tells_parent(", "and not agent and tells_parent(")],
        (f"{STORES}::test_what_a_placed_child_has_to_tell_wakes_the_run_that_waits",),
    ),
    ProtocolMutant(
        "news: a run that has not parked yet does not hear of it",
        [(CLAIMS, "(:run_ids) AND begun", "(:run_ids) AND owner IS NULL AND begun")],
        (f"{STORES}::test_what_a_placed_child_has_to_tell_wakes_the_run_that_waits",),
    ),
    ProtocolMutant(
        "placed: a cancelled run does not wait for the ends of its placed children",
        [(CHILDREN, "if not event.timeout:", "if not event.reason:")],
        (f"{PLACED}::test_a_cancelled_root_is_over_after_its_children[memory]",),
    ),
    ProtocolMutant(
        "placed: a worker drives a child for which its parent does not wait",
        [("graphloop/agent/resumption.py", "if not is_awaited and tree", "if not tree and tree")],
        (f"{PLACED}::test_a_child_that_is_not_awaited_any_more_is_ended",),
    ),
    ProtocolMutant(
        "claim before read: a driver does not look whether its reading is old",
        [(DRIVER, "            await recorder.refuse_outrun()\n", "            pass\n")],
        (
            "tests/regressions/test_driven_on_meanwhile.py::"
            "test_a_run_that_another_driver_went_on_with_is_busy[False]",
        ),
    ),
    ProtocolMutant(
        "queue: a claim does not ask whether the queue of its run is full",
        [(LEASES, "    _refuse_full(link, run_id)\n", "")],
        (
            "tests/conformance/test_stores.py::"
            "test_no_more_runs_of_a_queue_go_on_than_may[postgres]",
        ),
    ),
    ProtocolMutant(
        "sweep: only the runs of the workers that this sweep found dead are freed",
        [
            (LEASES, SWEPT, f"dead = {SWEPT[:-2]} RETURNING name\").fetchall()"),
            (LEASES, "AND NOT EXISTS(SELECT 1 FROM worker w WHERE w.name = r.owner) ",
             "AND r.owner = ANY(%s) "),
            (LEASES, 'RETURNING number"\n    ).fetchall()',
             'RETURNING number",\n        ([name for (name,) in dead],),\n    ).fetchall()'),
        ],
        (f"{STORE_TESTS}::test_a_run_is_freed_whose_owner_has_no_row",),
    ),
    ProtocolMutant(
        "eviction: a worker that was declared dead goes on under its name",
        [(LEASES, "        return\n    holder.rename()\n", "        return\n"),
         (WRITER, "        holder.rename()  # Without", "        # Without")],
        (f"{STORE_TESTS}::test_a_worker_that_was_declared_dead_goes_on_under_a_new_name",),
    ),
    ProtocolMutant(
        "telling: what makes a run ready tells nobody in its transaction",
        [(SCHEMA, "$$ BEGIN PERFORM pg_notify('graphloop_ready', ''); ", "$$ BEGIN ")],
        (f"{STORE_TESTS}::test_a_store_tells_others_of_a_run_that_waits",),
    ),
    ProtocolMutant(
        "outbox: a run of a dead worker gets no new leg in its transaction",
        [(SCHEMA, "{0}.status IN ('ready', 'interrupted')", "{0}.status IN ('ready')")],
        (f"{OUTBOX_TESTS}::test_the_leg_of_a_dead_worker_is_cancelled_and_a_new_one_enqueued",),
    ),
    ProtocolMutant(
        "pin: a pinned worker drives each run that its engine hands out",
        [(
            "graphloop/engines/legs.py",
            "(not self.pinned or record.revision",
            "(True or record.revision",
        )],
        ("tests/unit/engines/test_engines.py::"
         "test_a_pinned_worker_takes_no_run_that_other_code_began[dbos-pinned]",),
    ),
    ProtocolMutant(
        "leg: two legs of a run have one name, and DBOS drops the second",
        [(SCHEMA, "NEW.run_id || ':' || NEW.epoch AS leg", "NEW.run_id AS leg")],
        (f"{OUTBOX_TESTS}::test_what_makes_a_run_ready_enqueues_its_leg",),
    ),
    ProtocolMutant(
        "started: an effect that may not be repeated begins before the journal says so",
        [(
            "graphloop/driver/in_flight.py",
            "return EffectsStarted(self._clock(), risky) if risky else None",
            "return None",
        )],
        ("tests/regressions/test_exactly_once.py",),
    ),
    ProtocolMutant(
        "signal: a command that is delivered twice counts twice",
        [("graphloop/step.py", "if signal_id in inbox.signals:", "if signal_id is None:")],
        ("tests/unit/test_step.py::test_a_message_of_a_store_counts_once",),
    ),
)  # fmt: skip
"""One for each rule of the protocol (docs/decisions/2026-11-28-runs-in-postgresql.md)."""


def main() -> int:
    """Plant the mutants, and print what became of each."""
    parser = argparse.ArgumentParser(prog="python -m tests.protocol_mutants", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", default="", metavar="TEXT", help="mutants whose name has it")
    only = parser.parse_args().only
    chosen = [mutant for mutant in MUTANTS if only in mutant.name]
    killed = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        bench = Bench(Path(folder))
        for mutant in chosen:
            noticed = bench.notices(mutant.planted(), mutant.tests)
            killed += noticed
            print(f"{'killed' if noticed else 'SURVIVED':9}{mutant.name}", flush=True)
    print(f"{killed:4} of {len(chosen):3} killed")
    return int(killed < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
