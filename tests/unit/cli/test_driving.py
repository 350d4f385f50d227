"""The exit status of a run says how the run ended, for shells and CI."""

import re

from graphloop import EndReason
from graphloop.cli.driving import ENDS
from graphloop.cli.errors import Status

from .command_line import ROOT


def test_each_end_of_a_run_has_a_documented_exit_status() -> None:
    """A script decides by the status, so a new end reason without one would be a surprise."""
    table = (ROOT / "docs" / "command-line.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \|[^|]*\|([^|]*)\|$", table, re.MULTILINE)
    documented = {
        EndReason(name): Status(int(status))
        for status, names in rows
        for name in re.findall(r"`(\w+)`", names)
    }

    assert {*EndReason} == ENDS.keys()
    assert documented == ENDS
    assert [end for end, status in ENDS.items() if status is Status.OK] == [EndReason.COMPLETED]
