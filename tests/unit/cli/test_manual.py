"""What `--help` says."""

from __future__ import annotations

import pytest

from graphloop.cli import manual
from graphloop.cli.status import Status


@pytest.mark.parametrize("name", manual.__all__)
def test_help_fits_on_a_terminal(name: str) -> None:
    """A table whose lines are broken is no table."""
    text: str = getattr(manual, name)

    assert max(map(len, text.splitlines())) <= 78


def test_every_exit_status_is_documented() -> None:
    """Scripts are written from this line."""
    missing = [status for status in Status if f" {status.value} " not in manual.RUN]

    assert not missing
