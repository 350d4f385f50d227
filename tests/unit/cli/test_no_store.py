"""Commands that read, answer or delete, where there is no store: they create none."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.postgres_server import database
from tests.unit.cli.command_line import ROOT, refused, shown

WEATHER = ROOT / "examples/weather"


@pytest.fixture
def theirs(postgres: str) -> str:
    """The address of another program's database, with a password that nothing may print."""
    return database(postgres).replace("postgres@", "postgres:s3cret@")


def schemas(dsn: str) -> list[str]:
    """Return the names of the schemas that a store or a user has created."""
    with psycopg.connect(dsn) as link:
        rows = link.execute("SELECT nspname FROM pg_namespace WHERE nspname !~ '^(pg_|inf|public)'")
        return [name for (name,) in rows]


@pytest.mark.parametrize(
    "command",
    [
        ("runs",),
        ("runs", "--all", "--json"),
        ("doctor",),
        ("doctor", "--metrics"),
        ("prune", "--older", "1d"),
        ("approve", "r", "c0.0"),
        ("cancel", "r"),
        ("steer", "r", "now"),
        ("watch", "r"),
        ("replay", "r"),
        ("resume", "r"),
        ("fork", "r", "--at", "1"),
        ("otel", "r"),
        ("draw", WEATHER, "--run", "r"),
    ],
    ids=lambda words: "-".join(words[:1]),
)
def test_a_mistyped_address_gets_a_hint_and_no_tables(
    command: tuple[str | Path, ...], theirs: str, tmp_path: Path
) -> None:
    """The database may be another program's, and the file's name a typing error."""
    absent, empty = tmp_path / "rums.db", tmp_path / "empty.db"
    empty.touch()

    told = refused(*command, "--store", theirs)
    assert "found a database without its tables. Fix: " in told
    assert "s3cret" not in told
    assert schemas(theirs) == []
    assert "expected a store, found a database" in refused(*command, "--store", str(empty))
    assert "expected a store, found nothing" in refused(*command, "--store", str(absent))
    assert [(one.name, one.stat().st_size) for one in tmp_path.iterdir()] == [("empty.db", 0)]


@pytest.mark.parametrize("command", [("runs",), ("run", WEATHER)], ids=lambda words: words[0])
def test_a_name_that_is_too_long_is_refused(
    command: tuple[str | Path, ...], tmp_path: Path
) -> None:
    """The file system says so only when the path is looked at."""
    for where in ("x" * 300, f"{'x' * 300}.db"):
        told = refused(*command, "--store", str(tmp_path / where))
        assert "File name too long. Fix: " in " ".join(told.split())


def test_a_link_to_nothing_is_not_its_own_correction(tmp_path: Path) -> None:
    """The folder has a file of the wanted name: the link itself."""
    (tmp_path / "runs.db").symlink_to("gone.db")

    told = refused("runs", "--store", str(tmp_path / "runs.db"))
    assert "found a link to nothing" in told
    assert "Did you mean" not in told


def test_a_folder_that_cannot_be_listed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files belong to others."""

    def refuse(_: Path) -> list[Path]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    told = refused("runs", "--store", str(tmp_path))
    assert "Permission denied. Fix: " in " ".join(told.split())


@pytest.mark.parametrize("command", ["run", "submit"])
def test_a_new_run_creates_the_store(command: str, theirs: str, tmp_path: Path) -> None:
    """As does a worker, which may come first: `tests/unit/cli/test_worker.py` starts some so."""
    question = ("How is the weather?",) if command == "submit" else ()
    for where in (theirs, str(tmp_path / "runs.db")):
        shown(command, WEATHER, *question, "--store", where)
        assert "agent" in shown("runs", "--all", "--store", where)
