"""Run benchmarks and print what they found.

    python -m bench                 all of them
    python -m bench loop stream     these
    python -m bench --write         all of them, and write the table into bench/README.md

The exit status is 0 whatever was found: this reports, it does not judge.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from . import deltas, encode, growth, imports, journal, loop, many, parallel, proofs, stream
from .measure import Row
from .report import as_markdown, as_text, replaced, where
from .sizes import Sizes

__all__ = ["BENCHES", "main"]

BENCHES: Final[Mapping[str, Callable[[Sizes], list[Row]]]] = {
    "loop": loop.rows,
    "encode": encode.rows,
    "stream": stream.rows,
    "deltas": deltas.rows,
    "parallel": parallel.rows,
    "many": many.rows,
    "growth": growth.rows,
    "imports": imports.rows,
    "journal": journal.rows,
    "proofs": proofs.rows,
}
README: Final = Path(__file__).with_name("README.md")


def main(arguments: Sequence[str]) -> None:
    """Run what `arguments` name, all by default."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure graphloop.")
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(BENCHES))
    parser.add_argument("--write", action="store_true", help=f"write the table into {README.name}")
    asked = parser.parse_args(arguments)
    unknown = sorted(set(asked.names) - set(BENCHES))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    if asked.write and asked.names:
        parser.error("--write needs all benchmarks: a table of some would lose the others")
    place = where()
    print(place, flush=True)
    found: list[Row] = []
    for name in asked.names or BENCHES:
        measured = BENCHES[name](Sizes())
        print(f"\n{as_text(measured)}", flush=True)
        found += measured
    if asked.write:
        text = replaced(README.read_text(encoding="utf-8"), f"{place}\n\n{as_markdown(found)}")
        README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
