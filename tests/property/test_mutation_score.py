"""The mutation score in docs/how-proofs-are-decided.md is what the checker scores today.

To write it anew: `WRITE_SCORE=1 pytest tests/property/test_mutation_score.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from graphloop.proofs.checking import check
from graphloop.proofs.report import PROPERTIES
from graphloop.spending import Budget
from tests.topology_data import MUTANTS, Mutant, Topology, graph_of, standard
from tests.witness import is_run

PAGE = Path(__file__).parents[2] / "docs" / "how-proofs-are-decided.md"
BEGIN, END = "<!-- score:begin -->\n", "<!-- score:end -->"
BASES = (
    standard(hold=False),
    standard(hold=False, retries=(1,), context_window=2_000, critic=True, fallbacks=("b",)),
)


def verdict(mutant: Mutant, base: Topology) -> tuple[bool, bool]:
    """Return whether a mutant is found, and whether a run takes one of its witnesses."""
    topology = mutant.of(base)
    graph, given = graph_of(topology), topology.get("budget")
    report = check(graph, budget=None if given is None else Budget(**given))
    found = [one for one in report.findings if one.code == mutant.code]
    return bool(found), mutant.walks and any(is_run(graph, one) for one in found)


def lines() -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| code | kinds of mutants | found | with a path | walked |\n|---|---|---|---|---|\n"
    for code in PROPERTIES:
        mutants = [one for one in MUTANTS if one.code == code]
        if not mutants:
            continue
        verdicts = [verdict(one, base) for one in mutants for base in BASES]
        paths = sum(one.walks for one in mutants) * len(BASES)
        found = sum(one for one, _ in verdicts)
        walked = sum(one for _, one in verdicts)
        names = "; ".join(one.name for one in mutants)
        yield f"| {code} | {names} | {found} of {len(verdicts)} | {paths} | {walked} |\n"


def test_the_score_on_the_page_is_todays_and_nothing_escapes() -> None:
    """A score that is written by hand is a wish."""
    page = PAGE.read_text(encoding="utf-8")
    head, _, rest = page.partition(BEGIN)
    old, _, tail = rest.partition(END)
    table = "".join(lines())
    if os.environ.get("WRITE_SCORE"):
        PAGE.write_text(f"{head}{BEGIN}{table}{END}{tail}", encoding="utf-8")
        return

    assert table == old
    for row in table.splitlines()[2:]:
        found, paths, walked = [cell.strip() for cell in row.split("|")[3:6]]
        assert len(set(found.split(" of "))) == 1
        assert paths == walked
