"""`graphloop draw`."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop import Agent
from graphloop.cli.draw import draw
from graphloop.cli.status import Status
from graphloop.errors import ConfigError
from graphloop.testing import ScriptedModel

MAGIC = {"svg": b"<svg", "png": b"\x89PNG", "mmd": b"flowchart", "dot": b"digraph"}


@pytest.mark.parametrize("suffix", MAGIC)
def test_a_file_is_drawn_by_its_suffix(
    suffix: str, desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the command says what it wrote."""
    assert draw("agent", f"loop.{suffix}") is Status.OK

    assert MAGIC[suffix] in (desk / f"loop.{suffix}").read_bytes()
    assert capsys.readouterr().out.startswith(f"loop.{suffix}: graph 'agent', 9 nodes, ")


@pytest.mark.parametrize("output", [None, "-"])
def test_without_a_file_it_is_mermaid(
    output: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ready to be pasted where Markdown is read."""
    draw("agent", output)

    assert capsys.readouterr().out.strip() == Agent(ScriptedModel(())).graph.mermaid().strip()


@pytest.mark.usefixtures("desk")
def test_another_suffix_is_refused() -> None:
    """The message lists those there are."""
    with pytest.raises(ConfigError, match=r"\.svg, \.png"):
        draw("agent", "loop.bmp")
