"""Opens connections to the PostgreSQL database of a store, and creates its tables.

The tables are in the schema `graphloop` of the database that the DSN names. All times are Unix
seconds of the database's clock, `now_s()`: the clocks of the machines decide nothing.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, LiteralString, final

import psycopg
from psycopg import Connection, Cursor, IsolationLevel
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.errors import InsufficientPrivilege
from psycopg.sql import Identifier

from ...errors import ConfigError, StoreError
from ..rows import other_schema

__all__ = [
    "CHANNEL",
    "CONNECT_S",
    "LOCK_CLASS",
    "SCHEMA_VERSION",
    "PostgresLink",
    "granted",
    "open_reader",
    "opened",
    "place_of",
    "tell_engine",
    "told",
]

SCHEMA_VERSION: Final = 5
TURNS_MAX: Final = 999
"""The turns of a tenant that an engine tells apart: each costs a look at so many rows at most."""
CHANNEL: Final = "graphloop_ready"
"""The channel of notifications about runs that wait for a driver."""
LOCK_CLASS: Final = 0x67726C70
"""The first number of the session lock that a live worker holds."""

# To plan a look costs several times its execution, so each statement is planned once. That plan
# must not be one for the empty tables of the first minute.
SETTINGS: Final[LiteralString] = (
    "SET search_path TO graphloop; SET client_min_messages TO warning; "
    "SET plan_cache_mode TO force_generic_plan; SET enable_seqscan TO off; SET jit TO off"
)
CONNECT_S: Final = 10
OLDEST: Final = 140000
"""The oldest supported version of PostgreSQL."""

# A worker is live while its session has its lock and its beat is younger than its lease. It
# `serves` the runs of agents, each with the pins of its workers, revisions or "".
# `entry` is append-only; the primary key lets one of two writers of a number through.
# `begun` is set with the first event: a claim of a run without events is no run yet.
# `band` is the first order of runs that wait; a run whose time has come is in band 1 as well.
# `agent` is the name of the agent whose workers take the run: that of the root's graph. It is empty
# for a child run that its parent drives.
# `refusals` tells why a blocked run is blocked, as JSON, and by the code of which revisions.
# `revision` is that of the code that began the run; it is empty until the journal tells it.
# `ending` tells why the run ended; it is empty if it just completed.
# `posts` counts the signals of the run: answers, commands and news.
# `known`, `record` and `drivers` are what `stores/database` reads.
TABLES: Final[tuple[LiteralString, ...]] = (
    # IF NOT EXISTS would need the right to create it also where an administrator has created it.
    """DO $$ BEGIN IF to_regnamespace('graphloop') IS NULL THEN CREATE SCHEMA graphloop; END IF;
         END $$""",
    "CREATE TABLE meta(key text PRIMARY KEY, value text NOT NULL)",
    """CREATE FUNCTION now_s() RETURNS float8 LANGUAGE sql VOLATILE AS
         'SELECT extract(epoch FROM clock_timestamp())::float8'""",
    """CREATE TABLE worker(
         name text COLLATE "C" PRIMARY KEY,
         lock_id int GENERATED ALWAYS AS IDENTITY UNIQUE,
         lease_s float8 NOT NULL, beat float8 NOT NULL,
         serves text NOT NULL DEFAULT '{}') WITH (fillfactor=50)""",
    """CREATE VIEW live AS SELECT name FROM worker
         WHERE beat + lease_s > now_s() AND EXISTS(
           SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted
             AND classid::bigint = 1735552112 AND objid::bigint = lock_id AND objsubid = 2
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))""",
    """CREATE TABLE run(
         number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
         run_id text COLLATE "C" NOT NULL UNIQUE, graph text NOT NULL DEFAULT '',
         agent text NOT NULL DEFAULT '',
         status text NOT NULL DEFAULT 'ready' CHECK(status IN(
           'ready', 'interrupted', 'parked', 'blocked', 'done', 'failed', 'cancelled')),
         owner text COLLATE "C", epoch bigint NOT NULL DEFAULT 0, begun bool NOT NULL DEFAULT false,
         posts int NOT NULL DEFAULT 0,
         asks text NOT NULL DEFAULT '[]', refusals text NOT NULL DEFAULT '[]',
         wake_at float8, target text NOT NULL DEFAULT '',
         tenant text COLLATE "C" NOT NULL DEFAULT '', priority smallint NOT NULL DEFAULT 0,
         deadline float8,
         queue text COLLATE "C" NOT NULL DEFAULT 'default', revision text NOT NULL DEFAULT '',
         ending text NOT NULL DEFAULT '',
         band smallint GENERATED ALWAYS AS (CASE WHEN status IN('interrupted', 'blocked') THEN 0
           WHEN asks = '[]' AND epoch = 0 AND strpos(run_id, '/') = 0 THEN 2 ELSE 1 END) STORED,
         created float8 NOT NULL DEFAULT now_s(), updated float8 NOT NULL DEFAULT now_s())
         WITH (fillfactor=70)""",
    "CREATE INDEX run_owner ON run(owner) WHERE owner IS NOT NULL",
    # The line of each tenant in its order: a look reads the heads of the lines only.
    "CREATE INDEX run_line ON run(queue, agent, tenant, band, priority DESC, updated, run_id) "
    "WHERE status IN('ready', 'interrupted') AND owner IS NULL AND begun AND agent <> ''",
    "CREATE INDEX run_wake ON run(wake_at) WHERE wake_at IS NOT NULL",
    "CREATE INDEX run_status ON run(status, number)",
    """CREATE TABLE entry(
         run bigint NOT NULL, seq int NOT NULL CHECK(seq >= 1), kind text NOT NULL,
         data bytea NOT NULL, ts float8 NOT NULL DEFAULT now_s(), PRIMARY KEY(run, seq))""",
    "CREATE TABLE blob(digest text PRIMARY KEY, data bytea NOT NULL)",
    """CREATE TABLE signal(
         run bigint NOT NULL, key text COLLATE "C" NOT NULL, signal_id text NOT NULL,
         data text NOT NULL, ts float8 NOT NULL DEFAULT now_s(), PRIMARY KEY(run, key))""",
    """CREATE TABLE queue(
         name text COLLATE "C" PRIMARY KEY, running int, weights jsonb NOT NULL)""",
    """CREATE TABLE meter(
         name text COLLATE "C" PRIMARY KEY, at float8) WITH (fillfactor=10)""",
    """CREATE VIEW known AS SELECT *, CASE WHEN owner IS NULL THEN status
         WHEN owner IN (SELECT name FROM live) THEN 'running' ELSE 'interrupted' END AS told
         FROM run WHERE begun""",
    """CREATE VIEW record AS SELECT number, run_id, graph, told, seq AS events, created,
         greatest(updated, ts) AS changed,
         CASE WHEN owner IS NULL OR told = 'running' THEN asks ELSE '[]' END AS open_asks,
         target, refusals, deadline - now_s() AS remaining_s, revision, queue, ending
         FROM known CROSS JOIN LATERAL
           (SELECT seq, ts FROM entry WHERE run = number ORDER BY seq DESC LIMIT 1) e""",
    """CREATE VIEW drivers AS SELECT (SELECT count(*) FROM live) AS live,
         count(*) FILTER (WHERE name NOT IN (SELECT name FROM live)) AS lapsed FROM worker""",
    # A run that is deleted just then takes its signals along.
    """CREATE FUNCTION signal_wakes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         UPDATE graphloop.run SET posts = posts + 1,
           updated = CASE WHEN owner IS NULL AND status = 'parked' THEN NEW.ts ELSE updated END,
           status = CASE WHEN owner IS NULL AND status = 'parked' THEN 'ready' ELSE status END
           WHERE number = NEW.run;
         IF NOT FOUND THEN DELETE FROM graphloop.signal WHERE run = NEW.run; END IF;
         PERFORM pg_notify('graphloop_ready', '');
         RETURN NULL; END $$""",
    """CREATE TRIGGER signal_wakes AFTER INSERT ON signal
         FOR EACH ROW EXECUTE FUNCTION signal_wakes()""",
    """CREATE FUNCTION tell_workers() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN PERFORM pg_notify('graphloop_ready', ''); RETURN NULL; END $$""",
    """CREATE TRIGGER tell_workers AFTER UPDATE ON run FOR EACH ROW WHEN (
         NEW.begun AND NEW.owner IS NULL AND NEW.agent <> ''
         AND NEW.status IN('ready', 'interrupted', 'blocked')
         AND NOT (OLD.begun AND OLD.owner IS NULL AND OLD.agent <> ''
           AND OLD.status IN('ready', 'interrupted', 'blocked')))
         EXECUTE FUNCTION tell_workers()""",
    "INSERT INTO meta(key, value) VALUES('schema', '5')",
)

# The outbox: an engine's statements, which each transaction executes that makes a run ready. A
# trigger does it, so no writer can leave it out: a submit, an answer, a release or a sweep.
# A claim ends each time of being ready, and adds 1 to the epoch: so the epoch names the leg. The
# leg of a driver that died is from before its claim, and the sweep has added 1 since.
# The turn is the place of the run among those of its tenant, over the tenant's weight.
BODY: Final = """
DECLARE
  told record;
BEGIN
  SELECT NEW.run_id AS run_id, NEW.agent AS graph, NEW.queue AS queue,
    NEW.priority AS priority, NEW.run_id || ':' || NEW.epoch AS leg,
    CASE WHEN NEW.status = 'interrupted' THEN NEW.run_id || ':' || (NEW.epoch - 2) END AS lost_leg,
    CASE WHEN NEW.status = 'interrupted' THEN 1
      WHEN NEW.asks <> '[]' OR NEW.epoch > 0 OR strpos(NEW.run_id, '/') > 0 THEN 10
      ELSE 100 END AS band,
    least({turns}, ceil(((SELECT count(*) FROM (SELECT FROM run r WHERE {waits}
        AND r.queue = NEW.queue AND r.agent = NEW.agent AND r.tenant = NEW.tenant
        LIMIT {turns}) line)
      + (SELECT count(*) FROM run r WHERE r.owner IS NOT NULL AND r.agent <> ''
        AND r.queue = NEW.queue AND r.tenant = NEW.tenant))
      / coalesce((SELECT (weights->>NEW.tenant)::float8 FROM queue WHERE name = NEW.queue), 1))
    )::int AS turn
    INTO told;
  {statements}
  RETURN NULL;
END
"""
IS_WAITING: Final = (
    "({0}.begun AND {0}.owner IS NULL AND {0}.status IN ('ready', 'interrupted') "
    "AND {0}.agent <> '')"
)
# No INSERT makes a run ready: its first event does, by an update.
TRIGGER: Final = (
    "CREATE TRIGGER tell_engine AFTER UPDATE ON graphloop.run FOR EACH ROW "
    f"WHEN ({IS_WAITING.format('NEW')} AND NOT {IS_WAITING.format('OLD')}) "
    "EXECUTE FUNCTION graphloop.tell_engine()"
)
INSTALLED: Final = (
    "SELECT prosrc FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid "
    "WHERE t.tgrelid = 'graphloop.run'::regclass AND t.tgname = 'tell_engine'"
)
OWNER: Final = (
    "SELECT quote_ident(pg_get_userbyid(relowner)), quote_ident(current_user) FROM pg_class "
    "WHERE oid = 'graphloop.run'::regclass"
)

VALUE: Final = re.compile(r":(\w+)")


@final
class PostgresLink(Connection[tuple[Any, ...]]):
    """A connection to the database, in autocommit mode."""

    is_again = False

    def ask(self, statement: str, **given: object) -> Cursor[tuple[Any, ...]]:
        """Execute a shared statement with these values."""
        return self.execute(_worded(statement), given)

    def name_of(self, name: str) -> str:
        """Return the name as the database can hold it: without the character NUL."""
        return name.replace("\0", "\ufffd")


@cache
def _worded(statement: str) -> bytes:
    return VALUE.sub(r"%(\1)s", statement).encode()


def place_of(dsn: str) -> str:
    """Return where a DSN leads, without its password.

    Raises:
        ConfigError: the text is no DSN.
    """
    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError as error:
        raise ConfigError(
            f"`store`: expected the address of a PostgreSQL database, found one that cannot be "
            f"read ({str(error).strip()}). Fix: postgresql://user@host:5432/database."
        ) from error
    host, port = parts.get("host") or "localhost", parts.get("port") or 5432
    return f"postgresql://{host}:{port}/{parts.get('dbname') or ''}"


def granted(rights: str, dsn: str) -> str:
    """Return the statement that gives the user of a DSN these rights; `{database}` is its name."""
    parts = conninfo_to_dict(dsn)
    user, name = [
        Identifier(str(parts.get(part) or f"the {part}")).as_string() for part in ("user", "dbname")
    ]
    return f"GRANT {rights.format(database=name)} TO {user}"


def opened(dsn: str) -> PostgresLink:
    """Connect to the database for writing, and create the tables if there are none.

    Raises:
        StoreError: the connection is a pooler's, the tables have another version, or the user may
            not create them.
        psycopg.Error: the database does not answer, or refuses the user.
    """
    link = _connected(dsn)
    with _closed_on_error(link):
        if not _has_tables(link, dsn):
            _create_tables(link, dsn)
    return link


def open_reader(dsn: str) -> PostgresLink | None:
    """Connect to the database for reading; return None if it has no tables of a store.

    Raises:
        StoreError: the connection is a pooler's, or the tables have another version.
        psycopg.Error: the database does not answer, or refuses the user.
    """
    link = _connected(dsn)
    with _closed_on_error(link):
        if _has_tables(link, dsn):
            link.isolation_level, link.read_only = IsolationLevel.REPEATABLE_READ, True
            return link
    link.close()
    return None


@contextmanager
def _closed_on_error(link: PostgresLink) -> Generator[None]:
    try:
        yield
    except BaseException:
        link.close()
        raise


def _connected(dsn: str) -> PostgresLink:
    link = PostgresLink.connect(
        make_conninfo(
            dsn,
            connect_timeout=CONNECT_S,
            keepalives_idle=5,
            keepalives_interval=2,
            keepalives_count=3,
            fallback_application_name="graphloop",
        ),
        autocommit=True,
    )
    with _closed_on_error(link):
        _refuse_pooled(link, place_of(dsn))
        link.execute(SETTINGS)
    return link


def tell_engine(link: PostgresLink, statements: str) -> None:
    """Let each transaction that makes a run ready execute these PL/pgSQL statements.

    They have the rights of the user who calls this: other users write to runs only.
    """
    waits = IS_WAITING.format("r")
    body = BODY.format(statements=statements, turns=TURNS_MAX, waits=waits) if statements else None
    row = link.execute(INSTALLED).fetchone()
    if (None if row is None else row[0]) == body:
        return
    # The lock lets in one process at a time, after the transactions that write to runs now.
    link.execute("SELECT pg_advisory_xact_lock(%s, 0)", (LOCK_CLASS,))
    owner, user = link.execute(OWNER).fetchone() or ("", "")
    try:
        link.execute("DROP TRIGGER IF EXISTS tell_engine ON graphloop.run")
        if body is None:
            return
        link.execute(
            "CREATE OR REPLACE FUNCTION graphloop.tell_engine() RETURNS trigger LANGUAGE plpgsql "
            f"SECURITY DEFINER SET search_path TO graphloop, pg_temp AS $told${body}$told$".encode()
        )
        link.execute(TRIGGER.encode())
    except InsufficientPrivilege as error:
        raise StoreError(
            f"the store's tables: expected their owner {owner}, whom a new engine needs once, "
            f"found the user {user}. Fix: start its first worker as {owner}."
        ) from error


def told(error: Exception) -> str:
    """Return a database's error as one line."""
    return " ".join(str(error).split()) or type(error).__name__


def _refuse_pooled(link: PostgresLink, place: str) -> None:
    """Raise if a pooler answers in the server's place: its sessions are not the server's.

    A pooler numbers its sessions itself. Under one that lends a session for a transaction, a lock
    of a session and LISTEN end with the transaction.
    """
    row = link.execute("SELECT pg_backend_pid()").fetchone()
    if row is not None and row[0] != link.info.backend_pid:
        raise StoreError(
            f"{place}: expected a PostgreSQL server, found a connection pooler before it. Fix: "
            "give the server's own address: live workers hold session locks, and listen."
        )
    if link.info.server_version < OLDEST:
        raise StoreError(
            f"{place}: expected PostgreSQL {OLDEST // 10000} or newer, found "
            f"{link.info.server_version // 10000}. Fix: upgrade the server."
        )


def _has_tables(link: PostgresLink, dsn: str) -> bool:
    """Whether the database has the tables of a store.

    Raises:
        StoreError: the tables have another version.
    """
    # Not to_regclass: after a wait for an advisory lock, it answers from the session's cache.
    found = link.execute(
        "SELECT 1 FROM pg_tables WHERE schemaname = 'graphloop' AND tablename = 'meta'"
    ).fetchone()
    if found is None:
        return False
    # With its schema: without the right to use that, the search path would be without it.
    row = link.execute("SELECT value FROM graphloop.meta WHERE key = 'schema'").fetchone()
    version = "0" if row is None else str(row[0])
    if version != str(SCHEMA_VERSION):
        elsewhere = "drop the schema graphloop, or give another database"
        raise other_schema(place_of(dsn), version, SCHEMA_VERSION, elsewhere)
    return True


def _create_tables(link: PostgresLink, dsn: str) -> None:
    try:
        with link.transaction():
            # Of several processes that find no tables, one creates them.
            link.execute("SELECT pg_advisory_xact_lock(%s, 0)", (LOCK_CLASS,))
            if not _has_tables(link, dsn):
                for statement in TABLES:
                    link.execute(statement)
    except InsufficientPrivilege as error:
        raise StoreError(
            f"{place_of(dsn)}: expected a store, or the right to create one, found: {told(error)}. "
            f"Fix: {granted('CREATE ON DATABASE {database}', dsn)}."
        ) from error
