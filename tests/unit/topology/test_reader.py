"""The reader: what it takes, and that everything else is refused where it stands."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from graphloop.proofs.report import PROPERTIES
from graphloop.topology.diagnostics import TopologyError
from graphloop.topology.reader import read_path, read_text
from graphloop.topology.references import CODES
from graphloop.topology.registration import RegisteredNames, Registry
from tests.topology_files import BAD, RIGHT, Bad, with_line

NAMES = RegisteredNames(Registry(), installed=False)


@pytest.mark.parametrize("bad", BAD, ids=[one.kind for one in BAD])
def test_a_bad_file_is_refused_where_it_is_bad(bad: Bad) -> None:
    """Whoever wrote it looks at that line, and knows what to write instead."""
    with pytest.raises(TopologyError) as refused:
        read_text(bad.text, NAMES, "support.yaml")

    place = f"support.yaml:{bad.line}:{bad.column}"
    found = [one for one in refused.value.problems if bad.said in str(one)]
    assert [place] == [one.place for one in found], str(refused.value)
    assert all(one.fix for one in refused.value.problems)


def test_the_right_file_is_read() -> None:
    """Whole: its table, its rules, its order."""
    document = read_text(RIGHT, NAMES)

    assert "prepare_step" == document.graph.start
    assert 6 == len(document.graph.nodes)
    assert 1 == len(document.rules)


def test_all_problems_are_told_at_once() -> None:
    """Nobody mends a file line by line."""
    text = with_line(3, "start: nowhere").replace("settled", "setled").replace("hold", "hald")

    with pytest.raises(TopologyError) as refused:
        read_text(text, NAMES)

    assert ["3", "10", "16"] == [one.place.split(":")[1] for one in refused.value.problems], str(
        refused.value
    )


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
    with pytest.raises(TopologyError):
        read_text(text, NAMES)


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
    with pytest.raises(TopologyError) as refused:
        read_text(MANY, NAMES)

    lines = [int(one.place.split(":")[1]) for one in refused.value.problems]
    assert [3, 5, 6, 7, 9, 12, 13, 14, 14, 15, 15, 16, 17, 18] == lines, str(refused.value)


@pytest.mark.parametrize("part", ["nodes: [a]", "edges: [a]", "agents: [a]"])
def test_a_part_of_no_form_hides_no_other(part: str) -> None:
    """Here, too, the prompt is told."""
    with pytest.raises(TopologyError) as refused:
        read_text(f"graphloop: 1\nname: a\nstart: a\n{part}\nprompt: 3\n", NAMES)

    assert {"4", "5"} <= {one.place.split(":")[1] for one in refused.value.problems}


def test_an_agent_that_could_not_be_read_is_told_once() -> None:
    """It is called as a tool; that models know nothing of it is not its mistake."""
    text = RIGHT + "tools: [a]\nagents: {a: {description: x, graph: {name: 3}}}\n"
    with pytest.raises(TopologyError) as refused:
        read_text(text, NAMES)

    assert {"23"} == {one.place.split(":")[1] for one in refused.value.problems}


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("{never: zz, before: gate}", "has no node, outcome or tool 'zz'"),
        ("{never: execute, before: 'node:gaet'}", "Did you mean 'gate'?"),
        ("{never: aborted, before: gate}", "the word 'aborted' could mean"),
    ],
)
def test_a_rule_about_nothing_is_refused_where_it_stands(rule: str, said: str) -> None:
    """It would hold for ever, and guard nothing."""
    with pytest.raises(TopologyError) as refused:
        read_text(with_line(21, f"  - {rule}"), NAMES, "a.yaml")

    (problem,) = refused.value.problems
    assert "a.yaml:21:5" == problem.place
    assert said in problem.found
    assert f"t {problem.fix}" != "t "


def test_a_rule_may_speak_of_the_tools_of_its_file_and_of_those_that_a_run_is_given() -> None:
    """The first by their names alone."""
    registry = Registry()
    registry.tool(len, name="refund")
    registry.tool(max, name="search")
    text = with_line(21, "  - {never: refund, before: 'tool:other'}") + "tools: [refund, search]\n"

    assert 1 == len(read_text(text, RegisteredNames(registry, installed=False)).rules)


def test_what_is_set_aside_is_a_finding_that_there_is() -> None:
    """A number too many sets nothing aside."""
    with pytest.raises(TopologyError) as refused:
        read_text(RIGHT + "ignore: [{node: gate, code: GL66, reason: x}]\n", NAMES)

    (problem,) = refused.value.problems
    assert "topology:22:29" == problem.place
    assert "Did you mean 'GL6'?" in problem.found
    assert set(CODES) == set(PROPERTIES)


@pytest.mark.parametrize("name", ["s\\e[2J", "a\\nb", "a\\Nb", " a", "k" * 201])
@pytest.mark.parametrize("line", [2, 5, 22], ids=["graph", "node", "agent"])
def test_a_name_that_drives_a_terminal_is_refused_where_it_stands(name: str, line: int) -> None:
    """And the message shows it without doing so."""
    text = {
        2: with_line(2, f'name: "{name}"'),
        5: with_line(5, f'  "{name}": {{use: prepare_step}}'),
        22: RIGHT + f'agents: {{"{name}": {{given: true}}}}\n',
    }[line]
    if line == 2 and "\\" not in name:
        assert read_text(text, NAMES).graph.name == name
        return
    with pytest.raises(TopologyError) as refused:
        read_text(text, NAMES, "a.yaml")

    assert any(one.place.startswith(f"a.yaml:{line}:") for one in refused.value.problems)
    assert str(refused.value).replace("\n", "").isprintable()


def test_a_text_of_json_is_read_as_json() -> None:
    """With tabs and byte order marks; other texts in braces are YAML."""
    data = {
        "graphloop": 1,
        "name": "a\x7fb".replace("\x7f", " "),
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

    with pytest.raises(TopologyError, match=r"a\.json:1:1: this is no JSON"):
        read_path(tmp_path / "a.json", NAMES)


def test_an_agent_that_models_call_has_the_name_of_a_tool() -> None:
    """Wires take no other, so every run would be refused; nodes may run an agent of any name."""
    graph = "name: w, start: p, nodes: {p: {use: limit, times: 1}}, edges: {p: {else: END}}"
    agents = f"agents: {{my writer: {{graph: {{{graph}}}, description: writes}}}}"
    text = f"{{graphloop: 1, {graph}, {agents}}}"

    assert read_text(text, NAMES)
    with pytest.raises(
        TopologyError, match=r"'my writer' is called as a tool.*name it 'my_writer'"
    ):
        read_text(text.replace(", agents", ", tools: [my writer], agents"), NAMES)


def test_a_path_with_a_nul_character_is_no_file(tmp_path: Path) -> None:
    """The system says so in words of its own, which name no file."""
    with pytest.raises(TopologyError, match="NUL"):
        read_path(tmp_path / "a\0b.yaml", NAMES)
