"""Files that a file names."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop.topology import includes
from graphloop.topology.diagnostics import TopologyError
from graphloop.topology.reader import read_path
from tests.topology_files import RIGHT
from tests.topology_forms import NAMES


def _with(name: str) -> str:
    return RIGHT + f"agents: {{a: {{include: {name!r}}}}}\n"


def _refusal(path: Path) -> str:
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
    for one, other in (("a", "b"), ("b", "c"), ("c", "b")):
        (tmp_path / f"{one}.yaml").write_text(_with(f"{other}.yaml"))

    found = _refusal(tmp_path / "a.yaml")

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
    ],
)
def test_nothing_else_can_be_included(tmp_path: Path, name: str, said: str) -> None:
    """A file of data reaches no other file of the machine."""
    folder = tmp_path / "in"
    (folder / "folder.yaml").mkdir(parents=True)
    (tmp_path / "b.yaml").write_text(RIGHT)
    (folder / "link.yaml").symlink_to(tmp_path / "b.yaml")
    (folder / "a.yaml").write_text(_with(name).replace("\\\\", "\\"))

    assert said in _refusal(folder / "a.yaml")


def test_a_file_that_is_not_there_is_told_where_it_is_named(tmp_path: Path) -> None:
    """Of many files, nobody sees which one names it."""
    (tmp_path / "in").mkdir()
    (tmp_path / "a.yaml").write_text(_with("in/b.yaml"))
    (tmp_path / "in" / "b.yaml").write_text(_with("writer.yml"))
    (tmp_path / "in" / "writer.yaml").write_text(RIGHT)
    (tmp_path / "in" / "writer.py").write_text("")

    assert (
        f"{tmp_path}/in/b.yaml:22:23: `include`: 'writer.yml': there is no such file. "
        "Did you mean 'writer.yaml'? Fix: write its path from the folder of this file, or make it."
    ) in _refusal(tmp_path / "a.yaml")


def test_files_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A topology is no tree of a thousand files."""
    monkeypatch.setattr(includes, "FILES_MAX", 2)
    for at in range(4):
        (tmp_path / f"{at}.yaml").write_text(_with(f"{at + 1}.yaml"))

    assert "at most 2 files" in _refusal(tmp_path / "0.yaml")
