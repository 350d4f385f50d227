"""`graphloop init` writes files that run, are proven and pass their test at once."""

import subprocess
from pathlib import Path

import pytest

from graphloop.cli.errors import Status
from tests.unit.cli.command_line import environment, graphloop, refused, shown
from tests.warm_python import warm_python

pytestmark = pytest.mark.usefixtures("desk")


def test_the_printed_commands_work_as_they_stand(desk: Path) -> None:
    text = shown("init", "first desk")

    commands = [line for line in text.splitlines() if line.startswith("  graphloop ")]
    assert len(commands) == 3
    assert "London is 55°F" in shown("run", "first desk")
    assert "graph 'review': no problem found" in shown("check", "first desk/review")
    assert "graph 'agent': no problem found" in shown("check", "first desk")
    parked = graphloop("run", "first desk/review", "--store", "runs.db", cwd=desk)
    assert parked.returncode == Status.PARKED
    assert "in the thyme" in parked.stdout


def test_the_written_test_passes(desk: Path) -> None:
    shown("init", "desk")

    done = subprocess.run(
        [*warm_python(), "-m", "pytest", "-q", "-p", "no:cacheprovider", "desk"],
        cwd=desk,
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )

    assert "2 passed" in done.stdout, done.stdout


@pytest.mark.parametrize("name", ["agent.py", "review/script.yaml"])
def test_no_file_is_overwritten_and_none_is_added_beside_it(desk: Path, name: str) -> None:
    mine = desk / "mine" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")

    assert f"found {name}." in refused("init", "mine")
    assert [path for path in (desk / "mine").rglob("*") if path.is_file()] == [mine]
    assert mine.read_text() == "mine"


def test_a_place_that_is_no_directory_is_refused(desk: Path) -> None:
    (desk / "file").write_text("")

    assert "expected a directory to write to" in refused("init", "file")
