"""The gallery: each topology runs, is proven, bounded, drawn and fuzzed, and its file says it all.

`WRITE_GALLERY=1 pytest tests/examples/test_topologies.py` writes examples/topologies/README.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphloop.agent.agent import Agent
from graphloop.cli.errors import Status
from graphloop.proofs.bounds import bound
from graphloop.run import EndReason
from graphloop.testing import assert_safe, fuzz
from graphloop.topology.loaded import Topology, dump, load
from tests.examples.gallery import GALLERY, NAMES, Exhibit, exhibits, page
from tests.property.test_diagrams import dot_table, mermaid_table, table
from tests.sizes import sized
from tests.unit.cli.command_line import graphloop

LINES_MAX = 60
SEEDS = sized(60, 1_000)
README = GALLERY / "README.md"
ANSWERS = {
    "prompt_chain": "Sunlight is a box of colours. Air tosses the blue ones about, so blue rains "
    "from everywhere.",
    "routing": "The second charge is on its way back to you.",
    "parallel_voting": "Yes",
    "orchestrator_workers": "Faro for the sun; Lisbon if you want museums.",
    "evaluator_optimizer": "A loop you can see.",
    "plan_approve_execute": "Done: old.log is gone.",
    "supervisor": "It comes on Friday.",
    "debate": "No: what nobody maintains, nobody can trust.",
    "escalation": "We look at your case, and write by Friday.",
    "react": "575,739 people live in Lisbon.",
    "reflexion": "It reads what I wrote,\nand tells me what I have meant:\none semicolon.",
}
STEPS = {
    "prompt_chain": 4,
    "routing": 1,
    "parallel_voting": 1,
    "orchestrator_workers": 4,
    "evaluator_optimizer": 2,
    "plan_approve_execute": 3,
    "supervisor": 1,
    "debate": 5,
    "escalation": 2,
    "react": 3,
    "reflexion": 3,
}
UNKNOWN = {"GL12: no rules are given: pass them with `rules`."}
"""What is not decided, and why; where there are rules, they are proven."""
RULED = {"plan_approve_execute"}


@pytest.fixture(scope="module", name="gallery")
def _gallery() -> Iterator[dict[str, Exhibit]]:
    with exhibits() as gallery:
        yield gallery


@pytest.fixture(params=NAMES)
def exhibit(gallery: dict[str, Exhibit], request: pytest.FixtureRequest) -> Exhibit:
    """Return each topology in turn."""
    return gallery[request.param]


def test_the_gallery_is_complete() -> None:
    """What stands in the folder is tested."""
    assert set(NAMES) == {one.name for one in GALLERY.iterdir() if one.is_dir()}


@pytest.mark.parametrize("written", [False, True], ids=["python", "yaml"])
def test_it_runs_offline_to_its_end(exhibit: Exhibit, written: bool) -> None:
    """From Python and from its file: the same answer after as many turns."""
    result = exhibit.run(written=written)

    assert (ANSWERS[exhibit.name], EndReason.COMPLETED) == (result.text, result.end_reason)
    assert STEPS[exhibit.name] == len(result.steps)


def test_all_of_it_is_proven(exhibit: Exhibit) -> None:
    """No finding; nothing is left open but rules where none are given."""
    for graph in (exhibit.graph, exhibit.written):
        report = assert_safe(graph, proven=[f"GL{number}" for number in range(1, 12)])

        assert () == tuple(report.findings)
        expected = set[str]() if exhibit.name in RULED else UNKNOWN
        assert expected == {f"{one.code}: {one.reason}" for one in report.unknown}


def test_its_worst_case_is_known(exhibit: Exhibit) -> None:
    """In model calls from the graph alone; in tools, tokens and money with a run's numbers."""
    loop = exhibit.loop
    alone = bound(loop.graph if isinstance(loop, Agent) else loop)
    told = exhibit.bound

    assert alone.ends
    assert told.model_calls == bound(exhibit.written).model_calls
    # Those that a supervisor in Python hands over to are agents, and ask again where the file's
    # do not.
    assert (alone.model_calls == told.model_calls) is (exhibit.name != "supervisor")
    assert {} == told.missing


def test_no_run_comes_to_more_than_the_bound(exhibit: Exhibit) -> None:
    """The scripts go round some of the cycles."""
    calls = exhibit.bound.model_calls

    result = exhibit.run(written=True)

    assert calls is not None
    assert result.run.spent.model_calls <= calls


def test_its_diagrams_show_every_line(exhibit: Exhibit, tmp_path: Path) -> None:
    """Read back, a diagram is the table; Graphviz can draw it."""
    graph = exhibit.table

    assert table(graph) == dot_table(graph) == mermaid_table(graph)
    assert graph.save(tmp_path / "graph.svg").stat().st_size > 1_000


def test_its_file_says_the_same(exhibit: Exhibit) -> None:
    """The same graph, agents included; the same question and rules; and it is written back."""
    written = exhibit.written

    assert exhibit.table == written.document.graph
    assert exhibit.target.prompt == written.prompt
    if isinstance(exhibit.graph, Topology):
        assert exhibit.graph.rules == written.rules
        assert exhibit.graph.document.agents == written.document.agents
    assert written == load(dump(written))


def test_no_world_breaks_it(exhibit: Exhibit) -> None:
    """Many hostile worlds: models, tools, people and crashes."""
    tools = () if isinstance(exhibit.loop, Agent) else exhibit.target.tools
    rules = exhibit.graph.rules if isinstance(exhibit.graph, Topology) else ()

    report = fuzz(exhibit.loop, seeds=SEEDS, rules=rules, tools=tools)

    assert report.ok, str(report)
    assert SEEDS == report.seeds


def test_it_reads_like_a_page(exhibit: Exhibit) -> None:
    """One idea, on a screen."""
    lines = (GALLERY / exhibit.name / "topology.py").read_text("utf-8").splitlines()

    assert len(lines) <= LINES_MAX


def test_the_readme_is_what_the_gallery_is(gallery: dict[str, Exhibit]) -> None:
    """Diagrams and bounds are printed, never drawn by hand."""
    if os.environ.get("WRITE_GALLERY"):
        README.write_text(page(gallery), encoding="utf-8")

    assert page(gallery) == README.read_text("utf-8")


def test_the_command_line_runs_and_checks_it() -> None:
    """As the docstrings say; where a person is needed, a run without a terminal parks."""
    chain = graphloop("run", "examples/topologies/prompt_chain")
    asked = graphloop("run", "examples/topologies/plan_approve_execute")
    checked = graphloop("check", "examples/topologies/routing/topology.yaml")

    assert (Status.OK, Status.PARKED, Status.OK) == tuple(
        one.returncode for one in (chain, asked, checked)
    )
    assert ANSWERS["prompt_chain"] in chain.stdout
    assert "approval of approve" in asked.stderr
