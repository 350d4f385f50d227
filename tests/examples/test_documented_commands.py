"""What the pages about topologies tell to type works as it stands, in a folder of one's own."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from pathlib import Path
from subprocess import CompletedProcess

import jsonschema
import pytest
import yaml

from graphloop.cli.errors import Status
from graphloop.cli.modules import EXECUTED
from graphloop.topology import registry, topology_schema
from tests.examples.gallery import GALLERY, NAMES
from tests.unit.cli.command_line import ROOT, called

PAGE = (ROOT / "docs" / "topologies.md").read_text("utf-8")
FENCED = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
COMMAND = re.compile(r"^(?: {4})?(graphloop .*?)(?: {2,}#.*)?$", re.MULTILINE)
ENDS = {"plan_approve_execute": Status.PARKED, "escalation": Status.PARKED}
"""What needs a person, who is not there."""


def _typed(*arguments: str | Path, cwd: Path = ROOT) -> CompletedProcess[str]:
    """Do a command as in a process of its own: what it registers is forgotten."""
    executed = [name for name, one in sys.modules.items() if one.__name__.startswith(EXECUTED)]
    for name in executed:
        del sys.modules[name]
    with registry.set_back():
        return called(*arguments, cwd=cwd)


def _commands(text: str) -> list[list[str]]:
    return [shlex.split(one)[1:] for one in COMMAND.findall(text)]


def _section(title: str) -> str:
    """Return the part of the page under a heading; before the first, it has no title."""
    parts = re.split(r"^## (.*)\n", PAGE, flags=re.MULTILINE)
    return dict(zip(["", *parts[1::2]], parts[::2], strict=True))[title]


def _run_all(commands: list[list[str]], cwd: Path) -> None:
    for one in commands:
        done = _typed(*one, cwd=cwd)
        assert Status.OK == done.returncode, (one, done.stdout, done.stderr)


def test_the_first_example_works_in_a_fresh_folder(tmp_path: Path) -> None:
    """Nothing else is needed but a model; here a script answers."""
    text = _section("")
    (tmp_path / "support.yaml").write_text(FENCED.findall(text)[0][1], encoding="utf-8")
    (tmp_path / "script.yaml").write_text("- text: Done.\n", encoding="utf-8")

    commands = _commands(text)
    _run_all(commands, tmp_path)

    assert ["run", "check", "draw", "schema"] == [one[0] for one in commands]
    assert (tmp_path / "support.svg").is_file()
    assert (tmp_path / "topology.schema.json").is_file()


def test_what_is_ones_own_is_registered_as_the_page_says(tmp_path: Path) -> None:
    """The lines that it adds to the file, and the Python that it shows."""
    text = _section("Register your own names in Python")
    (_, python), (_, lines) = FENCED.findall(text)[:2]
    page = yaml.safe_load(FENCED.findall(_section(""))[0][1])
    added = yaml.safe_load(lines)
    page["nodes"] |= added.pop("nodes")
    (tmp_path / "support.yaml").write_text(yaml.safe_dump(page | added), encoding="utf-8")
    (tmp_path / "desk.py").write_text(python, encoding="utf-8")
    (tmp_path / "script.yaml").write_text(
        "- calls: [{name: refund, arguments: {amount: 5}}]\n- text: Done.\n", encoding="utf-8"
    )

    commands = _commands(text)
    _run_all(commands, tmp_path)

    assert {"run", "check", "schema"} == {one[0] for one in commands}


def test_the_gallerys_commands_work_where_it_lies(tmp_path: Path) -> None:
    """As its page says."""
    shutil.copytree(GALLERY, tmp_path / "examples" / "topologies")
    head = (GALLERY / "README.md").read_text("utf-8").partition("<!-- gallery:begin -->")[0]

    commands = _commands(head)
    _run_all(commands, tmp_path)

    assert len(commands) >= 5


@pytest.mark.parametrize("name", NAMES)
def test_every_file_of_the_gallery_runs_with_its_registrations(name: str, tmp_path: Path) -> None:
    """From the command line, without a line of Python that loads it."""
    file, python = GALLERY / name / "topology.yaml", GALLERY / name / "topology.py"
    own = ("--with", str(python))

    data = yaml.safe_load(file.read_text("utf-8"))
    checked = _typed("check", file, *own)
    drawn = _typed("draw", file, "-o", tmp_path / "a.svg", *own)
    done = _typed("run", file, *own)
    closed = json.loads(_typed("schema", *own).stdout)

    assert (Status.OK, Status.OK) == (checked.returncode, drawn.returncode), drawn.stderr
    assert ENDS.get(name, Status.OK) == done.returncode, done.stderr
    jsonschema.validate(data, closed)
    jsonschema.validate(data, topology_schema(registry, open_to_others=True))
