"""Mutants of the kernel: faults planted one at a time, and whether the fast tests notice.

    python -m tests.mutants                      plant each fault of tests/mutants.txt
    python -m tests.mutants --only execute.py    those whose line of the list has this text
    python -m tests.mutants --mend 8             replace the lost ones, drawn by seed 8
    python -m tests.mutants --sample 7 120       write the list anew: 120 faults, drawn by seed 7

A line of the list is a file, a function, an operator, a number and the text of the mutated line.
The number tells equal lines of one function apart, so a line may move without losing its mutant.
A mutant whose text is gone is lost, and printed first. `--mend` finds the same fault in another
function or file, and else draws a mutant of the same file.

Each mutant is planted in a temporary copy; the repository is only read. Its tests are those that
`TESTS` gives its file, quickest first, up to the first failure. A mutant is killed by a failed
test, by an import that fails, or by a time limit: `SLOWER` times what the tests take without it.
The status is 0 if every mutant is killed, 1 if one survives, 2 if one is lost.
A survivor is a missing test, or it changes nothing: note its line after `EQUIVALENT` in the list,
with the reason above it, and draw another by `--mend`.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.mutation import Mutant, mutants_of

ROOT: Final = Path(__file__).parents[1]
LIST: Final = ROOT / "tests" / "mutants.txt"
EQUIVALENT: Final = "# changes nothing: "
COPIED: Final = ("graphloop", "tests", "examples", "docs", "pyproject.toml", "README.md")
SLOWER: Final = 5
SECONDS_MIN: Final = 30.0

SQLITE: Final = (
    "tests/unit/stores/test_sqlite.py",
    "tests/unit/stores/test_sqlite_journal.py",
    "tests/unit/stores/test_sqlite_leases.py",
    "tests/unit/stores/test_sqlite_ready.py",
    "tests/unit/stores/test_sqlite_schema.py",
    "tests/unit/stores/test_sqlite_writer.py",
    "tests/conformance/test_stores.py",
)
GOLDEN: Final = "tests/golden/test_runs.py"
TESTS: Final[Mapping[str, tuple[str, ...]]] = {
    "graphloop/step.py": (
        "tests/unit/test_step.py",
        "tests/unit/test_replay.py",
        GOLDEN,
        "tests/regressions/test_stopped_twice.py",
        "tests/regressions/test_exactly_once.py",
    ),
    "graphloop/nodes/gate.py": (
        "tests/unit/nodes/test_gate.py",
        GOLDEN,
        "tests/regressions/test_gates_by_their_rules.py",
        "tests/regressions/test_only_a_no_is_a_no.py",
    ),
    "graphloop/nodes/execute.py": (
        "tests/unit/nodes/test_execute.py",
        "tests/unit/test_rule_watch.py",
        GOLDEN,
        "tests/regressions/test_exactly_once.py",
    ),
    "graphloop/rule_watch.py": ("tests/unit/test_rule_watch.py", GOLDEN),
    "graphloop/nodes/append.py": (
        "tests/unit/nodes/test_append.py",
        GOLDEN,
        "tests/property/test_contract_pairing.py",
    ),
    "graphloop/policy/policy.py": (
        "tests/unit/policy/test_policy.py",
        "tests/unit/nodes/test_gate.py",
        "tests/regressions/test_shadowed_rules.py",
    ),
    "graphloop/stores/rows.py": SQLITE,
    "graphloop/stores/database/claims.py": SQLITE,
    "graphloop/stores/database/jobs.py": SQLITE,
    "graphloop/stores/database/store.py": SQLITE,
    "graphloop/stores/sqlite/store.py": SQLITE,
    "graphloop/stores/sqlite/journal.py": SQLITE,
    "graphloop/stores/sqlite/leases.py": SQLITE,
    "graphloop/stores/sqlite/ready.py": SQLITE,
    "graphloop/stores/sqlite/schema.py": SQLITE,
    "graphloop/stores/sqlite/writer.py": SQLITE,
}
"""The files that are mutated, and the tests that concern each."""


def possible() -> Sequence[Mutant]:
    """Return the mutants of all files, without those that the list notes as equivalent."""
    noted = {line.removeprefix(EQUIVALENT) for line in _lines() if line.startswith(EQUIVALENT)}
    every = [each for path in TESTS for each in mutants_of(path, (ROOT / path).read_text("utf-8"))]
    return [each for each in every if str(each) not in noted]


def sampled(seed: int, count: int) -> Sequence[Mutant]:
    """Return so many mutants of all files, drawn by a seed, in the order of the files."""
    every = possible()
    number = min(count, len(every))
    chosen = random.Random(seed).sample(range(len(every)), number)  # noqa: S311 - no secret
    return [every[at] for at in sorted(chosen)]


def mended(seed: int) -> Sequence[Mutant]:
    """Return the list with another mutant in place of each lost one, in the order of the files."""
    every, wanted = possible(), listed("")
    kept = set(wanted).intersection(every)
    spare = [each for each in every if each not in kept]
    random.Random(seed).shuffle(spare)  # noqa: S311 - no secret
    for lost in wanted:
        if lost not in kept and spare:
            spare.sort(key=lambda each: (_is_same_fault(each, lost), each.path == lost.path))
            kept.add(spare.pop())
    return [each for each in every if each in kept]


def _is_same_fault(mutant: Mutant, other: Mutant) -> bool:
    return (mutant.operator, mutant.text) == (other.operator, other.text)


def listed(only: str) -> Sequence[Mutant]:
    """Return the mutants of the list whose line has a text."""
    mutants = list[Mutant]()
    for line in _lines():
        if line and not line.startswith("#") and only in line:
            path, function, operator, number, text = line.split(maxsplit=4)
            mutants.append(Mutant(path, function, operator, int(number), text))
    return mutants


def _lines() -> Sequence[str]:
    return LIST.read_text("utf-8").splitlines()


def _write(mutants: Sequence[Mutant]) -> None:
    """Write the list; its comments stay above it."""
    comments = [line for line in _lines() if line.startswith("#")]
    LIST.write_text("\n".join([*comments, *map(str, mutants)]) + "\n", "utf-8")


class Bench:
    """A copy of the repository in which mutants are planted, one at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        ignored = shutil.ignore_patterns("__pycache__", ".*")
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name, ignore=ignored)
            else:
                shutil.copy(ROOT / name, folder / name)
        self._seconds: dict[tuple[str, ...], float] = {}

    def kills(self, mutant: Mutant) -> bool:
        """Return whether a test notices the mutant."""
        mutated = mutants_of(mutant.path, (self._folder / mutant.path).read_text("utf-8"))[mutant]
        return self.notices({mutant.path: mutated}, TESTS[mutant.path])

    def notices(self, mutated: Mapping[str, str], tests: tuple[str, ...]) -> bool:
        """Return whether one of the tests notices these files in place of the repository's."""
        limit = max(SECONDS_MIN, SLOWER * self._unharmed(tests))
        sources = {name: (self._folder / name).read_text("utf-8") for name in mutated}
        try:
            for name, text in mutated.items():
                self._write(self._folder / name, text)
            return not self._passes(tests, limit)
        finally:
            for name, text in sources.items():
                self._write(self._folder / name, text)

    def _unharmed(self, tests: tuple[str, ...]) -> float:
        """Return how many seconds the tests take without a mutant."""
        if tests not in self._seconds:
            start = time.monotonic()
            if not self._passes(tests, None):
                sys.exit(
                    f"mutants: expected {' '.join(tests)} to pass without a mutant. Fix: them."
                )
            self._seconds[tests] = time.monotonic() - start
        return self._seconds[tests]

    def _write(self, path: Path, source: str) -> None:
        """Write a module; its bytecode is known by time and size, which a mutant may share."""
        path.write_text(source, "utf-8")
        for old in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            old.unlink()

    def _passes(self, tests: tuple[str, ...], limit: float | None) -> bool:
        found = {**os.environ, "PYTHONPATH": str(self._folder)}
        command = (sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests)
        try:
            done = subprocess.run(
                command,
                cwd=self._folder,
                env=found,
                timeout=limit,
                capture_output=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


def measure(mutants: Sequence[Mutant]) -> int:
    """Plant each mutant, print what became of it and the score of each file."""
    known = frozenset(possible())
    lost = [each for each in mutants if each not in known]
    for each in lost:
        print(f"LOST     {each}", flush=True)
    killed, every = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        bench = Bench(Path(folder))
        for mutant in mutants:
            if mutant in known:
                noticed = bench.kills(mutant)
                print(f"{'killed' if noticed else 'SURVIVED':9}{mutant}", flush=True)
                every[mutant.path] += 1
                killed[mutant.path] += noticed
    for path in every:
        print(f"{killed[path]:4} of {every[path]:3} killed  {path}")
    print(f"{killed.total():4} of {every.total():3} killed")
    if lost or not mutants:
        print(f"{len(lost)} MUTANTS LOST, see the top. Fix: python -m tests.mutants --mend SEED.")
        return 2
    return int(killed.total() < every.total())


def main() -> int:
    """Read the command line and do what it says."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--sample", nargs=2, type=int, metavar=("SEED", "N"), help="write a list")
    parser.add_argument("--mend", type=int, metavar="SEED", help="replace the lost mutants")
    parser.add_argument("--only", default="", metavar="TEXT", help="mutants whose line has it")
    options = parser.parse_args()
    if options.sample:
        _write(sampled(*options.sample))
    elif options.mend is not None:
        _write(mended(options.mend))
    else:
        return measure(listed(options.only))
    return 0


if __name__ == "__main__":
    sys.exit(main())
