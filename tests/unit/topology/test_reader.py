"""The reader: it refuses bad files where they are bad, and reads the files that they include."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from graphloop.proofs.report import PROPERTIES
from graphloop.topology import includes
from graphloop.topology.diagnostics import TopologyError
from graphloop.topology.reader import read_path, read_text
from graphloop.topology.registration import Registry
from graphloop.topology.schema import CODES
from tests.topology_files import BAD, RIGHT, Bad, lines_of, problems, with_line

NAMES = Registry()


@pytest.mark.parametrize("bad", BAD, ids=[bad.kind for bad in BAD])
def test_a_bad_file_is_refused_where_it_is_bad(bad: Bad) -> None:
    """Its author looks at that line, and knows what to write instead."""
    found = problems(bad.text)

    places = [problem.place for problem in found if bad.said in str(problem)]
    assert [f"a.yaml:{bad.line}:{bad.column}"] == places, found


def test_ten_megabytes_cost_the_memory_of_one(tmp_path: Path) -> None:
    """Nothing is parsed before it is known to be small."""
    (tmp_path / "a.yaml").write_bytes(b"a: [" + b"x, " * 3_300_000 + b"]")
    tracemalloc.start()

    with pytest.raises(TopologyError, match="at most 1,000,000 bytes"):
        read_path(tmp_path / "a.yaml", NAMES)

    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 5_000_000


@pytest.mark.parametrize(
    "text",
    [
        "[" * 900_000,
        "- " * 450_000,
        "&a " * 300_000,
        "%a\n" * 300_000,
        "---\n" * 200_000,
        "a: " * 300_000,
        "nodes: {" + ", ".join(f"n{n}: {{use: modelcall}}" for n in range(1_990)) + "}",
    ],
    ids=["brackets", "dashes", "anchors", "directives", "documents", "colons", "unknown uses"],
)
def test_a_megabyte_that_means_no_good_is_refused_early(text: str) -> None:
    """No part of the work grows faster than the text; the suite's timeout would tell."""
    assert problems(text)


MANY = """\
graphloop: 1
name: t
start: mm
nodes:
  m: {use: modle_call}
  s: {use: stop_check, max_steps: x}
  g: {use: gate, rules: [{allow: a, when: no_such}]}
edges:
  m: {calls: zz, else: s}
  s: {go: m, else: END}
  g: {else: END}
tools: [nope]
rules: [{nver: x}]
ignore: [{node: q, code: GL99, reason: x}]
agents: {a: {inclde: x}}
prompt: 3
description: [1]
wrong: 1
"""


def test_the_problems_of_all_parts_are_told_at_once() -> None:
    """One in the table hides none in the tools, the rules, or what is set aside."""
    assert [3, 5, 6, 7, 9, 12, 13, 14, 15, 15, 16, 17, 18] == lines_of(problems(MANY))


@pytest.mark.parametrize("part", ["nodes: [a]", "edges: [a]", "agents: [a]"])
def test_a_part_of_no_form_hides_no_other(part: str) -> None:
    """Here, too, the prompt is told."""
    found = problems(f"graphloop: 1\nname: a\nstart: a\n{part}\nprompt: 3\n")

    assert {4, 5} <= {*lines_of(found)}


def test_nodes_of_agents_count_once_for_each_agent() -> None:
    """Agents within agents could be a billion nodes in a few lines."""
    count = 700
    nodes = ", ".join(f"n{n}: {{use: append}}" for n in range(count))
    rows = ", ".join(f"n{n}: {{else: END}}" for n in range(count))
    graph = f"{{graph: {{name: w, start: n0, nodes: {{{nodes}}}, edges: {{{rows}}}}}}}"

    (problem,) = problems(f"{RIGHT}agents: {{a: {graph}, b: {graph}, c: {graph}}}\n")

    assert "a.yaml:1:1" == problem.place
    assert "expected at most 2,000 nodes" in problem.found
    assert "found 2,106" in problem.found


def test_an_agent_that_could_not_be_read_is_told_once() -> None:
    """It is called as a tool; that models know nothing of it is not its mistake."""
    text = RIGHT + "tools: [a]\nagents: {a: {description: x, graph: {name: 3}}}\n"

    assert {23} == {*lines_of(problems(text))}


def test_ignore_takes_the_codes_of_findings_only() -> None:
    """A number too many sets nothing aside."""
    (problem,) = problems(RIGHT + "ignore: [{node: gate, code: GL66, reason: x}]\n")

    assert "a.yaml:22:29" == problem.place
    assert "Did you mean 'GL6'?" in problem.found
    assert set(CODES) == set(PROPERTIES)


@pytest.mark.parametrize("name", ["s\\e[2J", "a\\nb", "a\\Nb", " a", "k" * 201])
@pytest.mark.parametrize("line", [2, 5, 22], ids=["graph", "node", "agent"])
def test_a_name_that_drives_a_terminal_is_refused(name: str, line: int) -> None:
    """And the message shows it without doing so."""
    text = {
        2: with_line(2, f'name: "{name}"'),
        5: with_line(5, f'  "{name}": {{use: prepare_step}}'),
        22: RIGHT + f'agents: {{"{name}": {{given: true}}}}\n',
    }[line]
    if line == 2 and "\\" not in name:
        assert read_text(text, NAMES).graph.name == name
        return
    found = problems(text)

    assert line in lines_of(found)
    assert all(str(problem).isprintable() for problem in found)


def test_a_text_of_json_is_read_as_json() -> None:
    """With tabs and byte order marks; other texts in braces are YAML."""
    data = {
        "graphloop": 1,
        "name": "a b",
        "prompt": "\x7f",
        "start": "append",
        "nodes": {"append": {"use": "append"}},
        "edges": {"append": {"else": "END"}},
    }
    text = "\ufeff" + json.dumps(data, indent="\t", ensure_ascii=False)
    yaml = json.dumps(data).replace('"a b"', "a b").replace("}}}", "}}} # so")

    assert read_text(text, NAMES) == read_text(text.encode(), NAMES) == read_text(yaml, NAMES)
    assert "\x7f" == read_text(text, NAMES).prompt


def test_a_json_file_is_json(tmp_path: Path) -> None:
    """And no YAML that lies in one."""
    (tmp_path / "a.json").write_text(RIGHT, encoding="utf-8")

    assert "a.json:1:1: this is no JSON" in refusal(tmp_path / "a.json")


def test_an_agent_that_models_call_has_the_name_of_a_tool() -> None:
    """Wires take no other, so every run would be refused; nodes may run an agent of any name."""
    graph = "name: w, start: p, nodes: {p: {use: limit, times: 1}}, edges: {p: {else: END}}"
    agents = f"agents: {{my writer: {{graph: {{{graph}}}, description: writes}}}}"
    text = f"{{graphloop: 1, {graph}, {agents}}}"

    assert read_text(text, NAMES)
    (problem,) = problems(text.replace(", agents", ", tools: [my writer], agents"))
    assert "'my writer' is called as a tool" in problem.found
    assert "name it 'my_writer'." == problem.fix


def including(name: str) -> str:
    """Return a file that includes another, on line 22."""
    return RIGHT + f"agents: {{a: {{include: {name!r}}}}}\n"


def refusal(path: Path) -> str:
    """Return the message about a file."""
    with pytest.raises(TopologyError) as refused:
        read_path(path, NAMES)
    return str(refused.value)


def test_files_of_the_folder_and_below_are_read_once(tmp_path: Path) -> None:
    """However often they are named."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "b.json").write_text(
        '{"graphloop": 1, "name": "b", "start": "c", "nodes": {"c": {"use": "append"}},'
        '\n\t"edges": {"c": {"else": "END"}}}'
    )
    (tmp_path / "a.yaml").write_text(
        RIGHT + "agents: {a: {include: in/b.json}, b: {include: ./in/../in/b.json}}\n"
    )

    agents = read_path(tmp_path / "a.yaml", NAMES).agents

    assert agents["a"].document is not None
    assert agents["a"].document is agents["b"].document


def test_circles_of_includes_are_told(tmp_path: Path) -> None:
    """With the way round."""
    for name, other in (("a", "b"), ("b", "c"), ("c", "b")):
        (tmp_path / f"{name}.yaml").write_text(including(f"{other}.yaml"))

    found = refusal(tmp_path / "a.yaml")

    assert "b.yaml → c.yaml → b.yaml" in found
    assert f"{tmp_path}/c.yaml:22:23" in found


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("../b.yaml", "leads out of the folder"),
        ("link.yaml", "leads out of the folder"),
        ("/etc/passwd", "an absolute path"),
        ("C:/b.yaml", "an absolute path"),
        ("in\\\\b.yaml", "of another system"),
        ("b.txt", "ends in .yaml"),
        ("none.yaml", "no such file"),
        ("folder.yaml", "is a folder"),
        ("x" * 5000 + ".yaml", "cannot be read"),
        ("wirter.yaml", "Did you mean 'writer.yaml'? Fix: write its path from the folder of this"),
    ],
)
def test_an_include_of_another_kind_is_refused(tmp_path: Path, name: str, said: str) -> None:
    """A file of data reaches no other file; each problem is told where that is named."""
    folder = tmp_path / "in"
    (folder / "folder.yaml").mkdir(parents=True)
    for path in (tmp_path / "b.yaml", folder / "writer.yaml", folder / "writer.py"):
        path.write_text(RIGHT)
    (folder / "link.yaml").symlink_to(tmp_path / "b.yaml")
    (folder / "a.yaml").write_text(including(name).replace("\\\\", "\\"))

    found = refusal(folder / "a.yaml")

    assert f"{folder}/a.yaml:22:23: " in found
    assert said in found


def test_files_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A topology is no tree of a thousand files."""
    monkeypatch.setattr(includes, "FILES_MAX", 2)
    for at in range(4):
        (tmp_path / f"{at}.yaml").write_text(including(f"{at + 1}.yaml"))

    assert "at most 2 files" in refusal(tmp_path / "0.yaml")
