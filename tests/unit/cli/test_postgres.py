"""The commands of stored runs over a PostgreSQL server, as its user types them."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.postgres_server import database
from tests.unit.cli.command_line import ROOT, graphloop


@pytest.fixture
def store(postgres: str) -> tuple[str, str]:
    """The option for an empty database; the address has a password, which a test server ignores."""
    parts = urlsplit(database(postgres))
    name = f"{parts.username}:s3cret@{parts.hostname}:{parts.port}"
    return "--store", parts._replace(netloc=name).geturl()


def test_a_run_is_parked_approved_and_resumed(desk: Path, store: tuple[str, str]) -> None:
    """No command needs more than the address, and none prints its password."""
    parked = graphloop("run", ROOT / "examples/approval", *store, cwd=desk)
    listed = graphloop("runs", *store, cwd=desk)
    run = listed.stdout.splitlines()[1].split()[0]
    approved = graphloop("approve", run, "c0.1", *store, cwd=desk)
    resumed = graphloop("resume", run, *store, cwd=desk)
    unknown = graphloop("resume", "nope", *store, cwd=desk)
    told = graphloop("replay", run, *store, cwd=desk)

    done = [parked, listed, approved, resumed, unknown, told]
    assert [one.returncode for one in done] == [3, 0, 0, 0, 2, 0]
    assert "s3cret" not in "".join(one.stdout + one.stderr for one in done)
    assert "graphloop approve" in parked.stderr
    assert "completed" in resumed.stdout
    assert list(desk.iterdir()) == []
