"""The lines that findings are about: of a program's table, and of a file's."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from graphloop import Agent, load
from graphloop.graph import Graph
from graphloop.proofs.check import check
from graphloop.proofs.places import Places
from graphloop.proofs.sarif import to_sarif
from graphloop.testing import ScriptedModel

TABLE = """\
{
    ask: {
        Answered: append,
        ...: END,
    },
    append: {Resend: ask, ...: END},
}"""
HEAD = """\
from graphloop import END, Graph
from graphloop.nodes import Append, ModelCall
from graphloop.outcomes import Answered, Resend

ask, append = ModelCall(), Append()
"""
YAML = """\
graphloop: 1
name: chatty
start: model_call
nodes:
  model_call: {use: model_call}
  append: {use: append}
edges:
  model_call:
    answered: append
    else: END
  append: {resend: model_call, else: END}
"""


def made(folder: Path, text: str) -> Graph[Any]:
    """Execute a program in a file, and return its graph."""
    file = folder / "desk.py"
    file.write_text(text, encoding="utf-8")
    module = ModuleType("desk")
    exec(compile(text, str(file), "exec"), module.__dict__)  # noqa: S102 - a program of this test.
    graph: Graph[Any] = module.__dict__["graph"]
    return graph


def lines(graph: Graph[Any], *places: tuple[str, str]) -> list[str]:
    """Return where things were written, without the folder."""
    found = [Places(graph).at(*place) for place in places]
    return [one.rpartition("/")[2] if one else "" for one in found]


PLACES = (
    ("", ""),
    ("model_call", ""),
    ("model_call", "answered"),
    ("model_call", "calls"),
    ("append", "resend"),
    ("nowhere", ""),
)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (f'graph = Graph("chatty", ask, {TABLE})\n', (6, 7, 8, 9, 11, 6)),
        (f'graph = Graph[None]("chatty", ask, edges={TABLE})\n', (6, 7, 8, 9, 11, 6)),
        (f'table = {TABLE}\ngraph = Graph("chatty", ask, table)\n', (13, 7, 8, 9, 11, 13)),
        (f'graph = Graph("chatty", ask, dict({TABLE}))\n', (6, 6, 6, 6, 6, 6)),
        (f'graph = Graph("chatty", ask, {{**{TABLE}}})\n', (6, 6, 6, 6, 6, 6)),
    ],
)
def test_a_row_of_a_program_is_found(tmp_path: Path, code: str, expected: tuple[int, ...]) -> None:
    """Where it cannot be told, it is the line of the graph."""
    graph = made(tmp_path, HEAD + code)

    assert [f"desk.py:{line}" for line in expected] == lines(graph, *PLACES)


def test_a_row_of_a_file_is_found(tmp_path: Path) -> None:
    """`else` stands for every outcome that has no cell."""
    (tmp_path / "desk.yaml").write_text(YAML, encoding="utf-8")
    graph = load(tmp_path / "desk.yaml")

    expected = [f"desk.yaml:{line}" for line in (1, 8, 9, 10, 11, 1)]
    assert expected == lines(graph, *PLACES)


def test_an_agent_was_written_where_it_was_made() -> None:
    """Its table is the library's."""
    agent = Agent(ScriptedModel(()))

    assert (Places(agent.graph).at("gate") or "").endswith(f"test_places.py:{line_of('agent = A')}")


def line_of(text: str) -> int:
    """Return the line of this file that holds a text first."""
    rows = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, row in enumerate(rows, 1) if row.strip().startswith(text))


def test_who_makes_graphs_in_another_way_is_not_blamed() -> None:
    """A line that does not name a graph would be a wrong place, which is worse than none."""
    graph = getattr(Agent(ScriptedModel(())), "graph")  # noqa: B009
    assert graph.source is not None
    graph.source = None
    assert Places(graph).at("gate") is None


def test_findings_name_the_line_of_their_row(tmp_path: Path) -> None:
    """In text, and where an editor shows them."""
    report = check(made(tmp_path, f'{HEAD}graph = Graph("chatty", ask, {TABLE})\n'))

    places = {one.code: (one.written or "").rpartition("/")[2] for one in report.findings}
    assert {"GL3": "desk.py:7"} == places
    assert "desk.py:7\n" in str(report)
    assert '"startLine": 7' in to_sarif([report])


OTHERS = f"""\
edges = {TABLE}
def rows():
    edges = {TABLE}
    return edges
def given(edges):
    return Graph("chatty", ask, edges)
def unpacked():
    edges, _ = rows(), 1
    return Graph("chatty", ask, edges)
def own():
    edges = {TABLE}
    return Graph("chatty", ask, edges)
def outer():
    return Graph("chatty", ask, edges)
"""


@pytest.mark.parametrize(
    ("call", "place"),
    [
        ("given(rows())", "def given(edges):"),
        ("unpacked()", "    edges, _ = rows(), 1"),
        ("own()", "def own():\n    edges = {"),
        ("outer()", "edges = {"),
    ],
)
def test_a_table_is_looked_for_where_its_name_means_it(
    tmp_path: Path, call: str, place: str
) -> None:
    """A table of another function has nothing to do with it: the call is told then."""
    graph = made(tmp_path, f"{HEAD}{OTHERS}graph = {call}\n")
    text = HEAD + OTHERS
    above = text[: text.index(place) + len(place)].count("\n") + 1

    assert [f"desk.py:{above + 1}"] == lines(graph, ("model_call", ""))


@pytest.mark.parametrize(
    "code",
    [
        f"if True:\n    table = {TABLE}\nelse:\n    table = {TABLE}\n",
        f"table = {TABLE}\ntable[append] = {{Resend: ask, ...: END}}\n",
        f"table = {TABLE}\ntable[ask][Answered] = append\n",
        f"table = {TABLE}\ntable.update({{append: {{Resend: ask, ...: END}}}})\n",
        f"table = {TABLE}\ntable |= {{append: {{Resend: ask, ...: END}}}}\n",
        f"def change(rows):\n    rows[append] = {{...: END}}\ntable = {TABLE}\nchange(table)\n",
        f"table = {TABLE}\ndef change():\n    table[append] = {{...: END}}\nchange()\n",
        f"table = {TABLE}\ndef change():\n    global table\n    table = {TABLE}\nchange()\n",
    ],
)
def test_a_line_that_is_not_certain_is_that_of_the_call(tmp_path: Path, code: str) -> None:
    """What stands in the literal may have been changed, or never have been the table."""
    text = f'{HEAD}{code}graph = Graph("chatty", ask, table)\n'
    graph = made(tmp_path, text)

    last = text.count("\n")
    assert [f"desk.py:{last}"] * 2 == lines(graph, ("append", ""), ("append", "resend"))


def test_another_name_that_is_spelled_so_does_no_harm(tmp_path: Path) -> None:
    """A function's own is another; and one table may make two graphs."""
    code = f"table = {TABLE}\ndef change(table):\n    table[append] = {{...: END}}\n"
    two = 'graph = Graph("chatty", ask, table)\nanother = Graph("another", ask, table)\n'

    assert ["desk.py:7"] == lines(made(tmp_path, HEAD + code + two), ("model_call", ""))


def test_a_graph_by_another_name_has_the_line_of_its_call(tmp_path: Path) -> None:
    """It is the user's own, and not where the library defines its nodes."""
    graph = made(tmp_path, f"{HEAD}Made = Graph\ngraph = Made('chatty', ask, {TABLE})\n")

    assert ["desk.py:7"] * 2 == lines(graph, ("", ""), ("append", "resend"))
    assert "graphloop/nodes/" not in to_sarif([check(graph)])


def test_what_cannot_be_read_has_no_line() -> None:
    """Such as a program that somebody has typed in."""
    namespace: dict[str, Graph[None]] = {}
    code = f"{HEAD}graph = Graph('chatty', ask, {TABLE})\n"
    exec(compile(code, "<typed in>", "exec"), namespace)  # noqa: S102 - a program of this test.

    assert Places(namespace["graph"]).at("append") is None


def test_a_file_that_was_changed_is_read_again(tmp_path: Path) -> None:
    """As who edits and reloads it does."""
    first = made(tmp_path, f"{HEAD}graph = Graph('chatty', ask, {TABLE})\n")
    before = lines(first, ("append", ""))
    again = made(tmp_path, f"{HEAD}{chr(10) * 9}graph = Graph('chatty', ask, {TABLE})\n")

    assert int(before[0].partition(":")[2]) + 9 == int(lines(again, ("append", ""))[0][8:])


def test_a_directory_that_is_gone_shortens_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever stands in it still hears what is wrong."""
    graph = made(tmp_path, f"{HEAD}graph = Graph('chatty', ask, {TABLE})\n")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    assert (Places(graph).at("append") or "").startswith((tmp_path / "desk.py").as_posix())


def test_every_finding_has_a_line(tmp_path: Path) -> None:
    """At least that of its graph: a table that was changed, a state, a reason for nothing."""
    graph = made(tmp_path, f"{HEAD}graph = Graph('chatty', ask, {TABLE})\n")
    graph.table = {**graph.table, "other": {}}

    report = check(graph, ignore={("append", "GL6"): "nothing"})

    assert {"GL0", "GL3", "GL5"} <= {one.code for one in report.findings}
    assert all("desk.py:" in (one.written or "") for one in report.findings)
