"""`graphloop convert`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphloop import load
from graphloop.cli.convert import convert
from graphloop.cli.request import Notation
from graphloop.cli.status import Status
from graphloop.errors import ConfigError
from tests.agent_spec_documents import agent_node, chain, refund, written

BOUNDED = """\
graphloop: 1
name: bounded
start: limit
agents: {writer: {given: true}}
nodes: {limit: {use: limit, times: 2}, writer: {use: child, agent: writer}}
edges: {limit: {go: writer, stop: END}, writer: {answered: limit, else: END}}
"""


def test_a_flow_becomes_a_topology_and_the_report_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its tools need not be registered to be written down."""
    flow, output = tmp_path / "flow.json", tmp_path / "topology.yaml"
    flow.write_text(written(chain(agent_node(tools=[refund()]))))

    done = convert(str(flow), to=Notation.TOPOLOGY, output=str(output))

    out = capsys.readouterr().out
    assert Status.OK == done
    assert "ask: refund" in output.read_text()
    assert "exact" in out
    assert "the gate asks a person about each call" in out
    assert "0 refused" in out


def test_what_is_refused_is_not_written_unless_it_is_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script sees it by the status; what was written comes back as it was."""
    file, output = tmp_path / "topology.yaml", tmp_path / "flow.json"
    file.write_text(BOUNDED)

    assert Status.FAILED == convert(str(file), to=Notation.AGENT_SPEC, output=str(output))
    assert not output.exists()
    assert "--allow-refused" in capsys.readouterr().err
    assert Status.OK == convert(
        str(file), to=Notation.AGENT_SPEC, output=str(output), allow_refused=True
    )
    assert "Flow" == json.loads(output.read_text())["component_type"]
    capsys.readouterr()
    assert Status.OK == convert(
        str(file), to=Notation.AGENT_SPEC, output="-.json", allow_refused=True
    )
    assert output.read_text() == capsys.readouterr().out
    with pytest.raises(ConfigError, match=r"found '-\.yaml'"):
        convert(str(file), to=Notation.AGENT_SPEC, output="-.yaml")
    assert Status.FAILED == convert(str(output), to=Notation.TOPOLOGY)
    assert "does not show what the topology has" in capsys.readouterr().err
    assert Status.OK == convert(str(output), to=Notation.TOPOLOGY, allow_refused=True)
    assert load(BOUNDED) == load(capsys.readouterr().out)


def test_with_a_python_file_names_are_looked_for(tmp_path: Path) -> None:
    """So a topology that travels along can name what is one's own."""
    flow, tools = tmp_path / "flow.json", tmp_path / "own_tools.py"
    flow.write_text(written(chain(agent_node(tools=[refund()]))))
    tools.write_text("NOTHING = 1\n")

    with pytest.raises(ConfigError, match="no tool is registered as 'refund'"):
        convert(str(flow), to=Notation.TOPOLOGY, registers=str(tools))


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """In words."""
    flow = tmp_path / "flow.json"
    flow.write_text(written(chain(agent_node())))

    with pytest.raises(ConfigError, match="cannot be written"):
        convert(str(flow), to=Notation.TOPOLOGY, output=str(tmp_path / "none" / "a.yaml"))


def test_what_needs_a_python_file_names_the_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A topology names what is registered, as a file and in the metadata."""
    file = tmp_path / "topology.yaml"
    file.write_text(BOUNDED.replace("start: limit", "start: limit\ntools: [refund_of_nobody]"))

    with pytest.raises(ConfigError, match="refund_of_nobody"):
        convert(str(file), to=Notation.AGENT_SPEC)

    assert "--with FILE.py" in capsys.readouterr().err
